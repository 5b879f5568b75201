//! Type objects and hashes equal those of another product: see `vectors/ORIGIN.md`.

mod support;

use spindle_dds_xtypes::object::{
    Equivalence, TypeIdentifier, TypeInformation, TypeObject, TypeObjects,
};
use spindle_dds_xtypes::{Registry, describe};
use support::{Vector, recursive, vectors};

/// Decoded objects are encoded to the same bytes.
#[test]
fn objects_and_information_survive() {
    for Vector {
        name,
        information,
        minimal,
        complete,
        ..
    } in vectors().into_iter().chain(recursive())
    {
        let read = TypeInformation::from_bytes(&information).expect("information");
        assert_eq!(read.to_bytes().expect("fits"), information, "{name}");
        for bytes in [minimal, complete] {
            let read = TypeObjects::from_bytes(&bytes).expect("objects");
            assert!(!read.0.is_empty());
            assert_eq!(read.to_bytes().expect("fits"), bytes, "{name}");
        }
    }
}

/// The hash of an object is its identifier, and its size the one that is announced.
#[test]
fn hashes_are_those_of_the_objects() {
    let mut hashed = 0;
    for vector in vectors() {
        let information = TypeInformation::from_bytes(&vector.information).expect("information");
        let mut sizes: Vec<_> = [&information.minimal, &information.complete]
            .into_iter()
            .flat_map(|one| one.dependents.iter().chain([&one.sized]))
            .collect();
        for one in vector.objects() {
            let TypeIdentifier::Hash(equivalence, _) = one.identifier else {
                continue;
            };
            assert_eq!(one.object.equivalence(), equivalence);
            assert_eq!(one.object.identifier().expect("fits"), one.identifier);
            let size = one.object.to_bytes().expect("fits").len();
            sizes.retain(|sized| {
                assert!(sized.identifier != one.identifier || sized.object_size as usize == size);
                sized.identifier != one.identifier
            });
            hashed += 1;
        }
    }
    assert!(hashed > 40, "{hashed}");
}

/// A graph resolved from either form yields the same bytes.
#[test]
fn graphs_describe_themselves_alike() {
    for vector in vectors().into_iter().chain(recursive()) {
        let mut registry = Registry::new();
        for bytes in [&vector.minimal, &vector.complete] {
            registry.insert_bytes(bytes).expect("the hashes are right");
        }
        for one in vector.objects() {
            // The C backend's hash of this type differs from the standard.
            let theirs = vector.name == "vectors::Recursive" && !vector.standard;
            let resolved = registry.resolve(&one.identifier).expect("resolves");
            let found = describe(&resolved.graph).expect("fits");
            let index = resolved.graph.indices().next().expect("the type itself");
            let described = match one.object.equivalence() {
                Equivalence::Minimal => found.minimal(index),
                _ => found.complete(index),
            };
            let described = described.expect("is described");
            assert_eq!(
                described.identifier == one.identifier,
                !theirs,
                "{}",
                one.identifier
            );
            assert_eq!(described.object == one.object, !theirs);
            if let (TypeObject::Complete(_), false) = (&one.object, theirs) {
                let minimal = found.minimal(index).expect("is described");
                let known = vector
                    .objects()
                    .into_iter()
                    .any(|one| one.object == minimal.object);
                assert!(
                    known,
                    "the complete form of {} makes the minimal one",
                    vector.name
                );
            }
        }
    }
}

/// The type information is the same, except for the order of the dependencies.
#[test]
fn information_is_alike() {
    for vector in vectors().into_iter().chain(recursive()) {
        if vector.name == "vectors::Recursive" {
            continue;
        }
        let theirs = TypeInformation::from_bytes(&vector.information).expect("information");
        let mut registry = Registry::new();
        registry
            .insert_bytes(&vector.complete)
            .expect("the hashes are right");
        let resolved = registry
            .resolve(&theirs.complete.sized.identifier)
            .expect("resolves");
        let root = resolved.graph.indices().next().expect("the type itself");
        let found = describe(&resolved.graph).expect("fits");
        let mut ours = found.information(&resolved.graph, root).expect("is there");
        let mut theirs = theirs;
        for one in [&mut ours, &mut theirs] {
            one.minimal
                .dependents
                .sort_by(|a, b| a.identifier.cmp(&b.identifier));
            one.complete
                .dependents
                .sort_by(|a, b| a.identifier.cmp(&b.identifier));
        }
        assert_eq!(ours, theirs, "{}", vector.name);
    }
}
