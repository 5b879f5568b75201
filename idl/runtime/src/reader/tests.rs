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
    // The inner length exceeds the outer one.
    let bytes = [8, 0, 0, 0, 5, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    let mut reader = reader(&bytes, Encapsulation::CDR2_LE);
    let _outer = reader.begin_collection().expect("fits");
    let error = reader.begin_collection().expect_err("does not fit");
    let place = SamplePosition::offset(8);
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

/// An unsigned long, a double and a boolean in sequence, nested `DEEP` structures.
struct Block<const DEEP: u8 = 0>;

impl<const DEEP: u8> Together for Block<DEEP> {
    type Members = (u32, f64, bool);

    const LAYOUT: BlockLayout = BlockLayout {
        size: 17,
        first: 4,
        align: 8,
        depth: DEEP,
        both: false,
    };

    fn read(reader: &mut Reader<'_>) -> Result<(u32, f64, bool), CdrError> {
        Ok((
            reader.primitive()?,
            reader.primitive()?,
            reader.primitive()?,
        ))
    }
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
    // Also at a multiple of 8 by alignment to its first member.
    for position in 5..=8 {
        let mut there = at(position, 25, Encapsulation::CDR_LE);
        assert_eq!(there.block::<Block>(), expected, "at {position}");
        assert_eq!(there.position(), 25);
    }
    let refused = |mut there: Reader<'_>, why: &str| {
        let before = there.position();
        assert_eq!(there.block::<Block>(), None, "{why}");
        assert_eq!(there.position(), before, "{why}");
    };
    refused(at(4, 32, Encapsulation::CDR_LE), "not at a multiple of 8");
    refused(at(8, 24, Encapsulation::CDR_LE), "a byte short");
    refused(at(8, 32, Encapsulation::CDR_BE), "the other byte order");
    refused(at(8, 32, Encapsulation::CDR2_LE), "aligned to 4 at most");
    let mut deep = at(8, 32, Encapsulation::CDR_LE);
    deep.depth = limits::DEPTH_MAX as u8;
    assert_eq!(deep.block::<Block<1>>(), None);
    assert_eq!(deep.block::<Block>(), expected);
    bytes[24] = 2;
    let mut wrong = reader(&bytes, Encapsulation::CDR_LE);
    wrong.take(8).expect("is there");
    assert_eq!(wrong.block::<Block>(), None);
    let error = Block::<0>::read(&mut wrong).expect_err("is no boolean");
    let place = SamplePosition::offset(24);
    assert_eq!(error, CdrError::InvalidBool { value: 2, place });
}

const PAIR: BlockLayout = BlockLayout {
    size: 16,
    first: 8,
    align: 8,
    depth: 0,
    both: true,
};

/// Two doubles in sequence.
struct Pair;

impl Together for Pair {
    type Members = [f64; 2];

    const LAYOUT: BlockLayout = PAIR;

    fn read(reader: &mut Reader<'_>) -> Result<[f64; 2], CdrError> {
        Ok([reader.primitive()?, reader.primitive()?])
    }
}

/// Their offsets.
struct PairAt;

impl Together for PairAt {
    type Members = [u32; 2];

    const LAYOUT: BlockLayout = PAIR;

    fn read(reader: &mut Reader<'_>) -> Result<[u32; 2], CdrError> {
        let first = reader.position();
        reader.primitive::<f64>()?;
        let second = reader.position();
        reader.primitive::<f64>()?;
        Ok([first, second])
    }
}

#[test]
fn members_without_gaps_lie_in_both_representations() {
    let mut bytes = [0; 32];
    for (start, encapsulation) in [(16, Encapsulation::CDR_LE), (12, Encapsulation::CDR2_LE)] {
        bytes[start..start + 8].copy_from_slice(&1.5_f64.to_le_bytes());
        bytes[start + 8..start + 16].copy_from_slice(&2.5_f64.to_le_bytes());
        for position in 9..=12 {
            let mut there = reader(&bytes, encapsulation);
            there.take(position).expect("is there");
            let mut again = there;
            assert_eq!(there.block::<Pair>(), Some(([1.5, 2.5], start as u32)));
            assert_eq!(there.position() as usize, start + 16);
            assert_eq!(again.together::<Pair>(), Ok([1.5, 2.5]));
            assert_eq!(again.position() as usize, start + 16);
        }
    }
}

#[test]
fn members_are_read_one_by_one_where_they_do_not_lie_together() {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&1.5_f64.to_be_bytes());
    bytes[8..].copy_from_slice(&2.5_f64.to_be_bytes());
    let mut big = reader(&bytes, Encapsulation::CDR_BE);
    assert_eq!(big.block::<Pair>(), None);
    assert_eq!(big.together::<Pair>(), Ok([1.5, 2.5]));
    let mut short = reader(&bytes[..15], Encapsulation::CDR_LE);
    let error = short.together::<Pair>().expect_err("a byte short");
    let place = SamplePosition::offset(8);
    assert_eq!(
        error,
        CdrError::Truncated {
            needed: 8,
            remaining: 7,
            place
        }
    );
    for encapsulation in [Encapsulation::CDR_LE, Encapsulation::CDR_BE] {
        let bytes = [0; 24];
        let mut there = reader(&bytes, encapsulation);
        there.take(8).expect("is there");
        assert_eq!(there.located_together::<2, PairAt>(), Ok([8, 16]));
    }
}
