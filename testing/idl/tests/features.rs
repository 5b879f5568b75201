//! Each feature of IDL (`code.idl` in the folders of `idl/tests/features`) in generated code: its
//! topic types in every encoding, by owned form, view, builder and dynamic type, and their bytes,
//! which `bytes.snap` beside the IDL shows. Features without a topic type have a test of their own.
#![forbid(unsafe_code)]

use std::fmt::Debug;
use std::path::Path;

use spindle_dds_idl_conformance::every_way::every_way as try_in_every_way;
use spindle_dds_idl_conformance::exercise::Exercise;
use spindle_dds_idl_conformance::random::Random;
use spindle_dds_idl_conformance::{REPRESENTATIONS, Representation, encode, hex};

include!(concat!(env!("OUT_DIR"), "/features_modules.rs"));

/// Values per type; the first is its default.
const VALUES: u64 = 20;

/// Number of candidates for the shown value, and its largest size.
const SEEDS: u64 = 40;
const SHOWN_BYTES_MAX: usize = 48;

fn every_way<T: Exercise>()
where
    for<'a> T::View<'a>: Debug,
{
    try_in_every_way::<T>(VALUES);
}

/// The bytes of the longest candidate that fits.
fn layout<T: Exercise>() -> String {
    let values = (1..=SEEDS).map(|seed| T::any(&mut Random::of_numbers(seed)));
    let values = values.filter(|value| *value != T::default());
    let said = |value: &T| match encode(value, Representation::Xcdr2).len() {
        length if length <= SHOWN_BYTES_MAX => length,
        _ => 0,
    };
    let value = values.max_by_key(said).expect("not all are the default");
    let mut text = format!("{}\n{value:#?}\n", T::TYPE_NAME);
    for representation in REPRESENTATIONS {
        let id = T::encapsulation(representation).0;
        let bytes = numbered(&encode(&value, representation));
        text.push_str(&format!("\n{representation:?}, id {id:#06x}\n{bytes}"));
        if T::HAS_KEY {
            let mut key = vec![0; value.key_size(representation)];
            value.encode_key(representation, &mut key).expect("fits");
            text.push_str(&format!("key only\n{}", numbered(&key)));
        }
    }
    if T::HAS_KEY {
        text.push_str(&format!("\nhash\n{}", numbered(&value.key_hash().0)));
    }
    text
}

/// Each line with the offset of its first byte.
fn numbered(bytes: &[u8]) -> String {
    let lines = hex(bytes);
    let lines = lines.lines().zip((0..).step_by(8));
    lines
        .map(|(line, at)| format!("{at:>3}: {line}\n"))
        .collect()
}

fn bytes(folder: &str, layouts: &[String]) {
    let features = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../idl/tests/features");
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_snapshot_path(features.join(folder));
    settings.bind(|| insta::assert_snapshot!("bytes", layouts.join("\n")));
}

#[test]
fn constants_have_the_values_of_the_idl() {
    use core_constants::constants::{
        BOTH, BYTE, Colour, FAVOURITE, Flags, LEAST, LETTER, PRICE, QUAD, RATIO, SUM, TEXT, WIDE,
        WIDE_TEXT, YES,
    };
    assert_eq!((BYTE, LEAST, YES), (0xff, i64::MIN, true));
    assert_eq!((LETTER, WIDE), (b'\n', 0x20ac));
    assert_eq!((RATIO, SUM), (0.1_f32, 1e300_f64));
    assert_eq!(QUAD.to_string(), "0x1.999999999999999999999999999ap-4");
    assert_eq!(PRICE.to_string(), "1.25");
    assert_eq!((TEXT, WIDE_TEXT), ("a \"quote\"", "café"));
    assert_eq!((FAVOURITE, BOTH), (Colour::GREEN, Flags::A | Flags::B));
}

/// A oneway operation returns nothing and cannot fail.
#[test]
fn oneway_operations_are_methods() {
    use std::sync::atomic::{AtomicI32, Ordering};

    #[derive(Default)]
    struct Last(AtomicI32);

    impl annotations_oneway::m::Calls for Last {
        fn tell(&self, number: i32) {
            self.0.store(number, Ordering::Relaxed);
        }
    }

    let last = Last::default();
    annotations_oneway::m::Calls::tell(&last, 7);
    assert_eq!(last.0.into_inner(), 7);
}

#[allow(
    non_snake_case,
    reason = "types have names of Rust's keywords, with an underscore"
)]
mod checks {
    use super::{bytes, every_way, layout};

    include!(concat!(env!("OUT_DIR"), "/features_checks.rs"));
}
