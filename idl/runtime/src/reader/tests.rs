use super::*;

fn reader(bytes: &[u8], encapsulation: Encapsulation) -> Reader<'_> {
    let untrusted = Untrusted::new(bytes, encapsulation);
    untrusted
        .reader(Extensibility::Final, Members::All)
        .expect("goes with final")
}

#[test]
fn depth_is_limited() {
    let mut reader = reader(&[], Encapsulation::CDR_LE);
    for _ in 0..limits::DEPTH_MAX {
        let _scope = reader.begin_collection().expect("is not too deep");
    }
    let error = reader.begin(Extensibility::Final).expect_err("is too deep");
    assert!(matches!(
        error,
        CdrError::TooDeep {
            limit: limits::DEPTH_MAX,
            ..
        }
    ));
}

#[test]
fn delimiters_stay_inside_each_other() {
    // The inner delimiter promises more than the outer one has.
    let bytes = [8, 0, 0, 0, 5, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    let mut reader = reader(&bytes, Encapsulation::CDR2_LE);
    let _outer = reader.begin_collection().expect("fits");
    let error = reader.begin_collection().expect_err("does not fit");
    let place = Place::offset(8);
    assert_eq!(
        error,
        CdrError::Truncated {
            needed: 5,
            remaining: 4,
            place
        }
    );
}

#[test]
fn counts_are_compared_with_what_remains() {
    let bytes = [3, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    assert_eq!(reader(&bytes, Encapsulation::CDR_LE).count(2, 9), Ok(3));
    assert!(reader(&bytes, Encapsulation::CDR_LE).count(4, 9).is_err());
    assert!(reader(&bytes, Encapsulation::CDR_LE).count(2, 2).is_err());
    let many = u32::MAX.to_le_bytes();
    assert!(
        reader(&many, Encapsulation::CDR_LE)
            .count(0, u32::MAX)
            .is_err()
    );
}

#[test]
fn both_byte_orders() {
    let bytes = [1, 2, 3, 4];
    let little = reader(&bytes, Encapsulation::CDR_LE).primitive::<u32>();
    assert_eq!(little, Ok(0x0403_0201));
    let big = reader(&bytes, Encapsulation::CDR_BE).primitive::<u32>();
    assert_eq!(big, Ok(0x0102_0304));
}

/// An unsigned long, a double and a boolean behind each other.
const BLOCK: Layout = Layout {
    size: 17,
    first: 4,
    align: 8,
    depth: 0,
};

fn members(reader: &mut Reader<'_>) -> Result<(u32, f64, bool), CdrError> {
    Ok((
        reader.primitive()?,
        reader.primitive()?,
        reader.primitive()?,
    ))
}

#[test]
fn a_block_is_read_where_it_lies_as_expected() {
    let mut bytes = [0; 32];
    bytes[8] = 7;
    bytes[16..24].copy_from_slice(&1.5_f64.to_le_bytes());
    bytes[24] = 1;
    let at = |position: usize, end: usize, encapsulation| {
        let mut reader = reader(&bytes[..end], encapsulation);
        reader.take(position).expect("is there");
        reader
    };
    let expected = Some(((7, 1.5, true), 8));
    // Aligned to its first member before, if that comes to a multiple of 8.
    for position in 5..=8 {
        let mut there = at(position, 25, Encapsulation::CDR_LE);
        assert_eq!(there.block(BLOCK, members), expected, "at {position}");
        assert_eq!(there.position(), 25);
    }
    let refused = |mut there: Reader<'_>, why: &str| {
        let before = there.position();
        assert_eq!(there.block(BLOCK, members), None, "{why}");
        assert_eq!(there.position(), before, "{why}");
    };
    refused(at(4, 32, Encapsulation::CDR_LE), "not at a multiple of 8");
    refused(at(8, 24, Encapsulation::CDR_LE), "a byte short");
    refused(at(8, 32, Encapsulation::CDR_BE), "the other byte order");
    refused(at(8, 32, Encapsulation::CDR2_LE), "aligned to 4 at most");
    let mut deep = at(8, 32, Encapsulation::CDR_LE);
    deep.depth = limits::DEPTH_MAX as u8;
    let deeper = Layout { depth: 1, ..BLOCK };
    assert_eq!(deep.block(deeper, members), None);
    assert_eq!(deep.block(BLOCK, members), expected);
    bytes[24] = 2;
    let mut wrong = reader(&bytes, Encapsulation::CDR_LE);
    wrong.take(8).expect("is there");
    assert_eq!(wrong.block(BLOCK, members), None);
    let error = members(&mut wrong).expect_err("is no boolean");
    let place = Place::offset(24);
    assert_eq!(error, CdrError::InvalidBool { value: 2, place });
}
