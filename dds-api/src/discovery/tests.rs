//! Announcement and comparison of types.

use std::collections::BTreeMap;
use std::sync::Arc;

use spindle_dds_core::membership::{Endpoint as GroupEndpoint, Note};
use spindle_dds_idl_runtime::Representation;
use spindle_dds_qos::{
    DataReaderQos, DataRepresentationId, DataWriterQos, Partition, PublisherQos, SubscriberQos,
    TypeConsistencyEnforcement, TypeConsistencyKind,
};
use spindle_dds_xtypes::graph::{
    Annotations, Branch, Definition, Discriminator, Extensibility, Member, Primitive, Struct,
    TryConstruct, Type, Union,
};
use spindle_dds_xtypes::object::TypeObjects;
use spindle_dds_xtypes::{Resolved, TypeGraph, describe};

use super::announcement::{Endpoint, Entry, ReaderEntry, WriterEntry};
use super::fuzzing;
use super::large_types::LargeTypes;
use super::matching::{Comparisons, Conflict, Match};
use super::protocol_violation::ProtocolViolation;
use super::type_announcement::{LocalType, read_logged};
use super::types::Types;
use crate::handle::Guid;

mod large_types;

const LONG: Type = Type::Primitive(Primitive::Int32);

/// `m::Outer`, with a member `inner` of a type that has these members.
fn outer(extensibility: Extensibility, members: Vec<Member>) -> LocalType {
    let structure = |members| {
        Definition::Struct(Struct {
            extensibility,
            nested: false,
            autoid_hash: false,
            base: None,
            members,
        })
    };
    let mut graph = TypeGraph::new();
    let inner = graph.add("m::Inner", structure(members));
    let member = Member::new("inner", 0, Type::Declared(inner));
    let index = graph.add("m::Outer", structure(vec![member]));
    let ty = Type::Declared(index);
    LocalType::of_resolved(Resolved { graph, ty }).unwrap()
}

/// A type with `members` members of four bytes.
fn long(members: u32) -> LocalType {
    let member = |id: u32| Member::new(&format!("member_{id}"), id, LONG);
    outer(Extensibility::Mutable, (0..members).map(member).collect())
}

/// A union with `labels` labels of four bytes each.
fn labelled(labels: i32) -> LocalType {
    let branch = |labels: Vec<i32>, default, name: &str, id| Branch {
        labels,
        default,
        member: Member::new(name, id, LONG),
    };
    let mut graph = TypeGraph::new();
    let union = Definition::Union(Union {
        extensibility: Extensibility::Mutable,
        nested: false,
        autoid_hash: false,
        discriminator: Discriminator {
            ty: LONG,
            key: false,
            try_construct: TryConstruct::Discard,
            default: None,
            annotations: Annotations::default(),
        },
        branches: vec![
            branch((0..labels).collect(), false, "number", 1),
            branch(Vec::new(), true, "other", 2),
        ],
    });
    let ty = Type::Declared(graph.add("m::Choice", union));
    LocalType::of_resolved(Resolved { graph, ty }).unwrap()
}

fn text(bound: Option<u32>) -> Vec<Member> {
    vec![Member::new("text", 0, Type::String8(bound))]
}

fn endpoint(ty: Option<&LocalType>, type_name: &str) -> Endpoint {
    Endpoint {
        guid: Guid([7; 16]),
        topic: "State".to_owned(),
        type_name: type_name.to_owned(),
        has_key: false,
        subgroup: 3,
        ty: ty.map(|ty| ty.announced.clone()),
    }
}

fn writer(ty: Option<&LocalType>, type_name: &str) -> WriterEntry {
    let qos = DataWriterQos {
        representation: DataRepresentationId::Xcdr2.into(),
        ..DataWriterQos::default()
    };
    WriterEntry {
        endpoint: endpoint(ty, type_name),
        number: 1,
        is_ordered: true,
        returns: 0,
        qos,
        publisher: PublisherQos::default(),
    }
}

fn reader(
    ty: Option<&LocalType>,
    type_name: &str,
    type_consistency: TypeConsistencyEnforcement,
) -> ReaderEntry {
    let qos = DataReaderQos {
        representation: DataRepresentationId::Xcdr2.into(),
        type_consistency,
        ..DataReaderQos::default()
    };
    ReaderEntry {
        endpoint: endpoint(ty, type_name),
        qos,
        subscriber: SubscriberQos::default(),
    }
}

/// Announces an endpoint: its announcement, and the notes of its participant.
fn announce(entry: &Entry) -> (GroupEndpoint, BTreeMap<u64, Note>) {
    let ring = match entry {
        Entry::Writer(writer) => {
            Some((writer.class(), spindle_dds_core::RingSpec::at_least(2, 128)))
        }
        Entry::Reader(_) => None,
    };
    let mut large_types = LargeTypes::default();
    let noted = entry.noted_type().map(|ty| large_types.put(1, ty));
    let (noted, notes) = noted.unzip();
    let announced = entry.to_group(ring, noted).unwrap();
    (announced, notes.into_iter().flatten().collect())
}

/// Why a writer and a reader do not match, after both have read the announcement of the other;
/// checks that both sides decide the same.
fn conflict(writer: &WriterEntry, reader: &ReaderEntry, own: [Option<&LocalType>; 2]) -> String {
    let through = |entry: &Entry| {
        let (announced, notes) = announce(entry);
        Entry::from_group(&announced, &notes, &mut Types::default()).unwrap()
    };
    let entries = [
        through(&Entry::Writer(writer.clone())),
        through(&Entry::Reader(reader.clone())),
    ];
    let [one, other] = &entries;
    let (Entry::Writer(writer), Entry::Reader(reader)) = (one, other) else {
        panic!("{entries:?}");
    };
    let mut comparisons = Comparisons::default();
    // The second result comes from the cache.
    let both = [0; 2].map(|_| {
        let matched = Match::of(&mut comparisons, writer, reader);
        let found = [
            comparisons.conflict(one, other, own[0]),
            comparisons.conflict(other, one, own[1]),
        ];
        let differs = found[0].is_some();
        assert_eq!(matches!(matched, Match::Inconsistent(_)), differs);
        assert_eq!(matched == Match::Matched, !differs, "{found:?}");
        assert_eq!(comparisons.are_inconsistent(one, other), differs);
        found.map(|found| found.map_or_else(String::new, |found| found.to_string()))
    });
    assert_eq!(both[0], both[1]);
    assert_eq!(both[0][0], both[0][1], "both sides decide the same");
    let [[reason, _], _] = both;
    reason
}

#[track_caller]
fn check(
    writes: Option<&LocalType>,
    reads: Option<&LocalType>,
    policy: TypeConsistencyEnforcement,
    expected: &str,
) {
    let (writer, reader) = (writer(writes, "m::One"), reader(reads, "m::Two", policy));
    assert_eq!(conflict(&writer, &reader, [writes, reads]), expected);
}

fn policy(change: impl Fn(&mut TypeConsistencyEnforcement)) -> TypeConsistencyEnforcement {
    let mut policy = TypeConsistencyEnforcement::default();
    change(&mut policy);
    policy
}

#[test]
fn types_are_compared_whatever_their_names_are() {
    let any = policy(|_| {});
    let short = outer(Extensibility::Appendable, text(Some(4)));
    let unbounded = outer(Extensibility::Appendable, text(None));
    let number = outer(
        Extensibility::Appendable,
        vec![Member::new("text", 0, LONG)],
    );
    check(Some(&short), Some(&short), any, "");
    check(Some(&short), Some(&unbounded), any, "");
    check(Some(&unbounded), Some(&short), any, "");
    // Both sides report the member's name, although only one side knows it.
    let differs = "Outer.inner.text: int32 cannot be read from string";
    check(Some(&short), Some(&number), any, differs);
    let bounds = policy(|policy| policy.ignore_string_bounds = false);
    check(Some(&short), Some(&unbounded), bounds, "");
    let differs = "Outer.inner.text: string bound 4 is less than unbounded";
    check(Some(&unbounded), Some(&short), bounds, differs);
    let same = policy(|policy| policy.kind = TypeConsistencyKind::DisallowTypeCoercion);
    check(Some(&short), Some(&short), same, "");
    let differs = "Outer: the types differ, and coercion is not allowed";
    check(Some(&short), Some(&unbounded), same, differs);
}

#[test]
fn names_are_compared_if_a_type_is_not_announced_unless_validation_is_forced() {
    let any = policy(|_| {});
    let forced = policy(|policy| policy.force_type_validation = true);
    let ty = outer(Extensibility::Appendable, text(None));
    for (writes, reads) in [(None, None), (Some(&ty), None), (None, Some(&ty))] {
        check(writes, reads, any, &Conflict::Names.to_string());
        check(writes, reads, forced, &Conflict::NotAnnounced.to_string());
        let [one, other] = [writes, reads];
        let reason = conflict(
            &writer(one, "m::T"),
            &reader(other, "m::T", any),
            [one, other],
        );
        assert_eq!(reason, "");
    }
    check(Some(&ty), Some(&ty), forced, "");
    let mut keyed = reader(Some(&ty), "m::One", any);
    keyed.endpoint.has_key = true;
    let reason = conflict(&writer(Some(&ty), "m::One"), &keyed, [Some(&ty); 2]);
    assert_eq!(reason, Conflict::HasKey.to_string());
}

#[test]
fn endpoints_without_a_common_partition_do_not_match_and_both_lists_are_named() {
    let ty = outer(Extensibility::Appendable, text(None));
    let mut writer = writer(Some(&ty), "m::T");
    let mut reader = reader(Some(&ty), "m::T", policy(|_| {}));
    writer.publisher.partition = Partition::new(["north", "a\nb"]);
    let mut comparisons = Comparisons::default();
    let matched = Match::of(&mut comparisons, &writer, &reader);
    let Match::NoCommonPartition(found) = &matched else {
        panic!("{matched:?}");
    };
    let expected = "PARTITION: offered \"north\", \"a\\nb\", requested \"\"";
    assert_eq!(found.to_string(), expected);
    assert!(matched.is_mismatch());
    reader.subscriber.partition = Partition::new(["n*"]);
    let matched = Match::of(&mut comparisons, &writer, &reader);
    assert_eq!(matched, Match::Matched);
    assert!(!matched.is_mismatch());
}

#[test]
fn only_endpoints_of_one_topic_match() {
    let ty = outer(Extensibility::Appendable, text(None));
    let writer = writer(Some(&ty), "m::T");
    let mut elsewhere = reader(None, "m::Other", policy(|_| {}));
    elsewhere.endpoint.topic = "Elsewhere".to_owned();
    let mut comparisons = Comparisons::default();
    assert_eq!(
        Match::of(&mut comparisons, &writer, &elsewhere),
        Match::Apart
    );
    let entries = [Entry::Writer(writer.clone()), Entry::Reader(elsewhere)];
    assert_eq!(comparisons.conflict(&entries[0], &entries[1], None), None);
    // Two writers have no conflict.
    let mut other = writer;
    other.endpoint.has_key = true;
    let other = Entry::Writer(other);
    assert_eq!(comparisons.conflict(&entries[0], &other, None), None);
}

/// What fuzzing holds announcements to is true of types that match, and of types that do not.
#[test]
fn announcements_that_are_fuzzed_meet_as_their_types_match() {
    let types = [Extensibility::Appendable, Extensibility::Final].map(|it| outer(it, text(None)));
    let [appendable, closed] = types.each_ref().map(|it| &it.named);
    let announced = |writes, ty| fuzzing::announce(writes, ty, false, Some(40)).unwrap();
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let writer = announced(Some(representation), appendable);
        let meet = |ty| fuzzing::meet(&writer, &announced(None, ty)).unwrap();
        assert_eq!(meet(appendable), None);
        let conflict = meet(closed).unwrap();
        assert!(conflict.contains("Final is not Appendable"), "{conflict}");
    }
}

/// A type that is too large is announced by its hash, and still matches itself.
#[test]
fn a_type_that_is_too_large_matches_only_itself() {
    let any = policy(|_| {});
    let (large, larger, small) = (labelled(270_000), labelled(270_001), labelled(3));
    let announced = |ty: &LocalType| {
        let (announced, notes) = announce(&Entry::Reader(reader(Some(ty), "m::T", any)));
        assert!(notes.is_empty());
        let read = Entry::from_group(&announced, &notes, &mut Types::default()).unwrap();
        let is_known = read.endpoint().ty.as_ref().unwrap().resolved.is_some();
        (announced.info.len(), is_known)
    };
    assert!(announced(&small).1);
    let (len, is_known) = announced(&large);
    assert!(len < 2048 && !is_known, "{len}");
    check(Some(&large), Some(&large), any, "");
    for (writes, reads) in [(&large, &larger), (&large, &small), (&small, &large)] {
        let differs = Conflict::TooLarge.to_string();
        check(Some(writes), Some(reads), any, &differs);
    }
    // Small types of the same kind are assignable.
    let few = [long(300), long(301)];
    check(Some(&few[0]), Some(&few[1]), any, "");
}

fn announcement(ty: &LocalType) -> GroupEndpoint {
    let entry = Entry::Reader(reader(Some(ty), "m::T", policy(|_| {})));
    announce(&entry).0
}

/// Reads `announced` with these bytes in its place.
fn read(announced: &GroupEndpoint, info: Vec<u8>) -> Result<Entry, ProtocolViolation> {
    let endpoint = GroupEndpoint {
        info,
        ..announced.clone()
    };
    Entry::from_group(&endpoint, &BTreeMap::new(), &mut Types::default())
}

/// A damaged announcement is refused, or its type is unchanged, because the hashes are checked.
#[test]
fn damaged_announcements_are_refused_or_keep_the_type() {
    let ty = outer(Extensibility::Appendable, text(Some(9)));
    let announced = announcement(&ty);
    let info = &announced.info;
    let whole = &ty.announced;
    let without_objects = info.len() - (whole.bytes().len() - whole.bytes_without_objects().len());
    let without_type = info.len() - whole.bytes().len();
    for len in 0..info.len() {
        let cut = read(&announced, info[..len].to_vec());
        let is_whole = [without_objects, without_type].contains(&len);
        assert_eq!(cut.is_ok(), is_whole, "{len}: {cut:?}");
    }
    let mut refused = 0;
    for at in 0..info.len() {
        for bit in 0..8 {
            let mut altered = info.clone();
            altered[at] ^= 1 << bit;
            match read(&announced, altered) {
                Err(_) => refused += 1,
                Ok(entry) => {
                    let Some(read) = &entry.endpoint().ty else {
                        panic!("a type does not disappear");
                    };
                    assert_eq!(read.minimal(), whole.minimal(), "{at}");
                    assert_eq!(read.resolved, whole.resolved, "{at}");
                }
            }
        }
    }
    assert!(refused > info.len(), "{refused} of {}", info.len() * 8);
}

/// The objects are valid, but belong to another type.
#[test]
fn objects_of_another_type_are_refused() {
    let ty = outer(Extensibility::Appendable, text(Some(9)));
    let other = outer(Extensibility::Final, text(Some(9)));
    let announced = announcement(&ty);
    let whole = &announced.info;
    let objects = |ty: &LocalType| {
        let ty = &ty.announced;
        ty.bytes()[ty.bytes_without_objects().len()..].to_vec()
    };
    let start = whole[..whole.len() - objects(&ty).len()].to_vec();
    let with = |objects: &[u8]| read(&announced, [&start[..], objects].concat());
    assert!(with(&objects(&ty)).is_ok());
    let theirs = with(&objects(&other)).unwrap_err().to_string();
    assert!(theirs.contains("is not known"), "{theirs}");
    // Complete objects instead of minimal ones.
    let described = describe(&ty.named.graph).unwrap();
    let index = ty.named.graph.find("m::Outer").unwrap();
    let complete = described
        .objects(&ty.named.graph, index)
        .to_bytes()
        .unwrap();
    assert!(matches!(
        with(&complete),
        Err(ProtocolViolation::Contradicts)
    ));
    // One of two objects is missing; or the bytes are no objects.
    let mut half = TypeObjects::from_bytes(&objects(&ty)).unwrap();
    half.0.pop();
    let missing = with(&half.to_bytes().unwrap()).unwrap_err().to_string();
    assert!(missing.contains("is not known"), "{missing}");
    assert!(matches!(with(&[1]), Err(ProtocolViolation::Type(_))));
}

/// A log has the type with its names, and whether key hashes are digests.
#[test]
fn a_logged_type_has_names() {
    let ty = outer(Extensibility::Appendable, text(Some(9)));
    let bytes = ty.logged().unwrap();
    let (read, digests_key) = read_logged(&bytes).unwrap().unwrap();
    assert_eq!(read.name(), Some("m::Outer"));
    let (graph, ty_again) = (read.graph().clone(), read.ty().clone());
    let again = LocalType::of_resolved(Resolved {
        graph,
        ty: ty_again,
    });
    assert_eq!(again.unwrap().logged().unwrap(), bytes);
    assert_eq!(digests_key, ty.announced.digests_key);
    // Not the form that is announced; cut; without objects.
    let announced = read_logged(ty.announced.bytes());
    assert!(matches!(announced, Err(ProtocolViolation::Contradicts)));
    for len in 0..bytes.len() {
        let read = read_logged(&bytes[..len]);
        let is_without = len == ty.announced.bytes_without_objects().len();
        assert!(if is_without {
            matches!(read, Ok(None))
        } else {
            read.is_err()
        });
    }
}

#[test]
fn endpoints_share_a_type_until_the_last_of_them_is_dropped() {
    let ty = outer(Extensibility::Appendable, text(None));
    let announced = announcement(&ty);
    let mut types = Types::default();
    let mut read = || {
        let entry = Entry::from_group(&announced, &BTreeMap::new(), &mut types).unwrap();
        entry.endpoint().ty.clone().unwrap()
    };
    let [one, other] = [read(), read()];
    assert!(Arc::ptr_eq(&one, &other));
    drop((one, other));
    types.tidy();
    assert!(types.is_empty());
}
