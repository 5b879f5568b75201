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
