//! Any bytes as a sample of any fixture type: decoding and viewing agree, and what was read can
//! be written and read again.

use std::fmt::Debug;

use spindle_dds_idl_conformance::fixtures;
use spindle_dds_idl_runtime::{ByteOrder, Encapsulation, Representation, TopicType};

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
    one::<fixtures::borrower::borrower::Waypoint>,
    one::<fixtures::flight::flight::Attitude>,
    one::<fixtures::layouts::layouts::FinalPrimitives>,
    one::<fixtures::layouts::layouts::AppendablePrimitives>,
    one::<fixtures::layouts::layouts::MutablePrimitives>,
    one::<fixtures::layouts::layouts::FinalComposites>,
    one::<fixtures::layouts::layouts::AppendableComposites>,
    one::<fixtures::layouts::layouts::MutableComposites>,
    one::<fixtures::layouts::layouts::KeyShort>,
    one::<fixtures::layouts::layouts::KeyText>,
    one::<fixtures::layouts::layouts::KeyBounded>,
    one::<fixtures::layouts::layouts::KeyNested>,
    one::<fixtures::layouts::layouts::KeyCollection>,
    one::<fixtures::layouts::layouts::Large>,
    one::<fixtures::layouts::layouts::Plain>,
    one::<fixtures::layouts::layouts::Empty>,
    one::<fixtures::layouts::layouts::WithEmpty>,
    one::<fixtures::bits::bits::Enums>,
    one::<fixtures::bits::bits::Masks>,
    one::<fixtures::bits::bits::Sets>,
    one::<fixtures::members::optional::Final>,
    one::<fixtures::members::optional::Appendable>,
    one::<fixtures::members::optional::Mutable>,
    one::<fixtures::members::optional::FirstFinal>,
    one::<fixtures::members::optional::FirstAppendable>,
    one::<fixtures::members::optional::FirstMutable>,
    one::<fixtures::members::optional::Between>,
    one::<fixtures::members::optional::FarId>,
    one::<fixtures::members::optional::KeyOfKeyless>,
    one::<fixtures::members::optional::new::Growing>,
    one::<fixtures::members::external::Node>,
    one::<fixtures::members::external::FinalChain>,
    one::<fixtures::members::external::MutableNode>,
    one::<fixtures::members::wide::Key>,
    one::<fixtures::members::maps::Final>,
    one::<fixtures::members::maps::Appendable>,
    one::<fixtures::members::maps::Mutable>,
    one::<fixtures::members::construct::read::Maps>,
    one::<fixtures::members::construct::read::Words>,
    one::<fixtures::members::construct::read::Rows>,
    one::<fixtures::members::marks::Writer>,
    one::<fixtures::members::marks::Reader>,
    one::<fixtures::members::marks::HiddenMutable>,
    one::<fixtures::members::marks::Base>,
    one::<fixtures::members::marks::Derived>,
    one::<fixtures::members::marks::Third>,
    one::<fixtures::plain::plain::Pose>,
    one::<fixtures::plain::plain::Reading>,
    one::<fixtures::plain::plain::Board>,
    one::<fixtures::plain::plain::Lists>,
    one::<fixtures::plain::plain::MutableLists>,
    one::<fixtures::plain::plain::KeyedList>,
    one::<fixtures::unions::unions::FinalUnion>,
    one::<fixtures::unions::unions::AppendableUnion>,
    one::<fixtures::unions::unions::MutableUnion>,
    one::<fixtures::unions::unions::Sparse>,
    one::<fixtures::unions::unions::Either>,
    one::<fixtures::unions::unions::Closed>,
    one::<fixtures::unions::unions::Letter>,
    one::<fixtures::unions::unions::Names>,
    one::<fixtures::unions::unions::KeyHolder>,
    one::<fixtures::unions::unions::Newer>,
    one::<fixtures::unions::unions::NewerHolder>,
    one::<fixtures::unions::unions::NewerList>,
    one::<fixtures::recursive_unions::recursive::Json>,
    one::<fixtures::recursive_unions::recursive::Document>,
    one::<fixtures::recursive_unions::recursive::Node>,
    one::<fixtures::names::RootStruct>,
    one::<fixtures::names::names::Result>,
    one::<fixtures::names::names::Shadow>,
    one::<fixtures::flight::flight::Track>,
    one::<fixtures::bits::bits::Collections>,
    one::<fixtures::evolution::v2::Appended>,
    one::<fixtures::evolution::v2::Mutated>,
    one::<fixtures::nested::nested::FlightPlan>,
    one::<fixtures::nested::nested::MutablePlan>,
    one::<fixtures::nested::nested::FinalPlan>,
    one::<fixtures::members::external::Boxes>,
    one::<fixtures::members::optional::WithDefault>,
    one::<fixtures::members::wide::Final>,
    one::<fixtures::members::wide::Mutable>,
    one::<fixtures::members::construct::read::Texts>,
    one::<fixtures::members::construct::read::Wides>,
    one::<fixtures::members::construct::read::Lights>,
    one::<fixtures::members::construct::read::Mutable>,
    one::<fixtures::members::construct::read::Outer>,
    one::<fixtures::union_construct::union_construct::read::Plain>,
    one::<fixtures::union_construct::union_construct::read::Listed>,
    one::<fixtures::union_construct::union_construct::read::Rigid>,
    one::<fixtures::union_construct::union_construct::read::Holder>,
];

fn one<T: TopicType + Debug>(bytes: &[u8], representation: Representation, order: ByteOrder)
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
fn again<T: TopicType + Debug>(value: &T) {
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
