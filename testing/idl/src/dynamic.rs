//! Dynamic types from the descriptions of generated types encode and decode the same bytes
//! as those, and refuse the same samples.

use spindle_dds_xtypes::object::{Equivalence, TypeInformation};
use spindle_dds_xtypes::{DynamicType, Registry};

use crate::big_endian::encode_big_endian;
use crate::random::Random;
use crate::sample::Checked;
use crate::{ByteOrder, Encapsulation, REPRESENTATIONS, Representation, TopicType};

/// The dynamic type from the announced description.
pub fn dynamic<T: TopicType>() -> DynamicType {
    let description = T::DESCRIPTION.expect("is described");
    let information = TypeInformation::from_bytes(description.information).expect("information");
    let mut registry = Registry::new();
    registry
        .insert_bytes(description.objects)
        .expect("the hashes are right");
    let resolved = registry
        .resolve(&information.complete.sized.identifier)
        .expect("resolves");
    let ty = DynamicType::from(resolved);
    assert_eq!(ty.name(), Some(T::TYPE_NAME));
    assert_eq!(ty.has_key(), T::HAS_KEY);
    assert_eq!(ty.extensibility(), T::EXTENSIBILITY);
    for representation in REPRESENTATIONS {
        let layout = ty.layout(representation);
        assert_eq!(
            layout.size_max,
            T::max_size(representation),
            "{representation:?}"
        );
    }
    let equivalences = [&information.minimal, &information.complete].map(|one| {
        matches!(
            one.sized.identifier,
            spindle_dds_xtypes::object::TypeIdentifier::Hash(Equivalence::Minimal, _)
        )
    });
    assert!(!equivalences[1], "the complete form is not the minimal one");
    ty
}

fn written<T: TopicType>(value: &T, representation: Representation) -> Option<Vec<u8>> {
    let mut out = vec![0xaa; value.size(representation)];
    let used = value.encode(representation, &mut out).ok()?;
    out.truncate(used);
    Some(out)
}

/// A valid value is decoded and encoded again unchanged.
pub fn round_trip<T: Checked>(ty: &DynamicType, value: &T) {
    for representation in REPRESENTATIONS {
        let Some(little) = written(value, representation) else {
            continue;
        };
        let id = T::encapsulation(representation);
        assert_eq!(ty.encapsulation(representation), id);
        let big = encode_big_endian(value, representation);
        for (bytes, id) in [(&little, id), (&big, id.with_order(ByteOrder::Big))] {
            let data = ty.decode(bytes, id).expect("decodes");
            assert_eq!(
                data.encode(representation).as_ref(),
                Ok(&little),
                "{value:?}"
            );
            assert_eq!(data.key_hash(), value.key_hash(), "{value:?}");
            assert!(!data.to_string().is_empty());
            serde_json::to_string(&data).expect("serialises");
            let same = ty.data(data.value().clone());
            same.expect("what was read is of the type");
        }
        let mut key = vec![0xaa; value.key_size(representation)];
        value
            .encode_key(representation, &mut key)
            .expect("the key is part of it");
        let data = ty.decode(&little, id).expect("decodes");
        assert_eq!(data.encode_key(representation), Ok(key.clone()));
        if T::HAS_KEY {
            let data = ty.decode_key(&key, id).expect("decodes");
            assert_eq!(data.key_hash(), value.key_hash());
        }
    }
}

/// On any bytes both agree whether they are a sample, and on its value. For types with
/// `@default`s, which type objects do not have, they agree only on the former.
pub fn agree<T: Checked>(ty: &DynamicType, bytes: &[u8], id: Encapsulation, defaults: bool) {
    match (T::decode(bytes, id), ty.decode(bytes, id)) {
        (Ok(value), Ok(data)) if !defaults => {
            for representation in REPRESENTATIONS {
                let ours = data.encode(representation).ok();
                assert_eq!(ours, written(&value, representation), "{value:?} {data}");
            }
            assert_eq!(data.key_hash(), value.key_hash(), "{value:?}");
        }
        (Ok(_), Ok(_)) | (Err(_), Err(_)) => {}
        (value, data) => panic!("generated {value:?} but dynamic {data:?} of {bytes:02x?}"),
    }
}

/// Checks random values of a type; `defaults` says whether it contains `@default`s.
pub fn check<T: Checked>(defaults: bool) {
    let ty = dynamic::<T>();
    if !defaults {
        let ours = ty.default_data().expect("has a default");
        for representation in REPRESENTATIONS {
            let theirs = written(&T::default(), representation);
            assert_eq!(ours.encode(representation).ok(), theirs, "{ours}");
        }
    }
    let mut random = Random::new(7);
    let mut values = vec![T::default()];
    for seed in 0..10 {
        values.extend(T::deserialize(&mut Random::new(seed)));
    }
    for value in &values {
        round_trip(&ty, value);
    }
    for value in &values[..values.len().min(4)] {
        for representation in REPRESENTATIONS {
            let id = T::encapsulation(representation);
            let Some(bytes) = written(value, representation) else {
                continue;
            };
            for length in 0..bytes.len() {
                agree::<T>(&ty, &bytes[..length], id, defaults);
            }
            for _ in 0..50 {
                let altered = random.alter(&bytes);
                agree::<T>(&ty, &altered, id, defaults);
            }
        }
    }
    for _ in 0..100 {
        let noise: Vec<u8> = (0..random.below(60)).map(|_| random.next() as u8).collect();
        for representation in REPRESENTATIONS {
            agree::<T>(&ty, &noise, T::encapsulation(representation), defaults);
        }
    }
}
