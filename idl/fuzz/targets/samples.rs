//! Any bytes as a sample of any fixture type: decoding and viewing agree, and what was read can
//! be written and read again.

use std::fmt::Debug;

use spindle_dds_idl_fixtures as fixtures;
use spindle_dds_idl_runtime::codec::Sample;
use spindle_dds_idl_runtime::{ByteOrder, Encapsulation, Representation};

/// The first byte chooses the type, the second one the byte order; the rest is the sample.
pub fn check(bytes: &[u8], representation: Representation) {
    let [choice, order, sample @ ..] = bytes else {
        return;
    };
    let order = match order & 1 {
        0 => ByteOrder::Little,
        _ => ByteOrder::Big,
    };
    let types = TYPES;
    types[usize::from(*choice) % types.len()](sample, representation, order);
}

type Check = fn(&[u8], Representation, ByteOrder);

/// Every fixture type with something to say; add new ones at the end.
const TYPES: &[Check] = &[
    one::<fixtures::flight::flight::Track>,
    one::<fixtures::layouts::layouts::FinalComposites>,
    one::<fixtures::layouts::layouts::AppendableComposites>,
    one::<fixtures::layouts::layouts::MutableComposites>,
    one::<fixtures::layouts::layouts::FinalPrimitives>,
    one::<fixtures::layouts::layouts::MutablePrimitives>,
    one::<fixtures::layouts::layouts::KeyNested>,
    one::<fixtures::layouts::layouts::KeyCollection>,
    one::<fixtures::evolution::v2::Outer>,
];

fn one<T: Sample + Debug>(bytes: &[u8], representation: Representation, order: ByteOrder)
where
    for<'a> T::View<'a>: Debug,
{
    let id = Encapsulation::of(T::EXTENSIBILITY, representation).with_order(order);
    let decoded = T::decode(bytes, id);
    let view = T::view(bytes, id);
    match (decoded, view) {
        (Ok(decoded), Ok(view)) => {
            let owned = T::view_to_owned(&view).expect("the bytes are the same");
            // Not by `==`: a NaN is no other's equal.
            assert_eq!(format!("{owned:?}"), format!("{decoded:?}"));
            assert_eq!(T::view_key_hash(&view), decoded.key_hash());
            again(&decoded);
        }
        (Err(decoded), Err(view)) => assert_eq!(decoded, view),
        (decoded, view) => panic!("decoded {decoded:?}, viewed {view:?}"),
    }
    if let Ok(key) = T::decode_key(bytes, id) {
        let _ = key.key_hash();
    }
}

/// What was read is written, in either representation, to as many bytes as announced, and
/// read again.
fn again<T: Sample + Debug>(value: &T) {
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let mut out = vec![0xaa; value.size(representation)];
        let used = value
            .encode(representation, &mut out)
            .expect("what was read can be written");
        assert_eq!(used, out.len());
        let read = T::decode(&out, T::encapsulation(representation));
        let read = read.expect("what was written can be read");
        assert_eq!(format!("{read:?}"), format!("{value:?}"));
    }
}
