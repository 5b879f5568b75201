//! Descriptions of types from outside: what is accepted is written again as it was, put together
//! to a type, compared with itself and with another, and used to read samples.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spindle_dds_idl_runtime::Representation;
use spindle_dds_xtypes::object::{TypeIdentifier, TypeInformation, TypeObject, TypeObjects};
use spindle_dds_xtypes::{Consistency, DynamicType, Registry, assignable};

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, bytes)) = bytes.split_first() else {
        return;
    };
    match choice % 4 {
        0 => {
            if let Ok(identifier) = TypeIdentifier::from_bytes(bytes) {
                let written = identifier.to_bytes().expect("what was read can be written");
                assert_eq!(TypeIdentifier::from_bytes(&written), Ok(identifier));
            }
        }
        1 => {
            if let Ok(information) = TypeInformation::from_bytes(bytes) {
                let written = information
                    .to_bytes()
                    .expect("what was read can be written");
                assert_eq!(TypeInformation::from_bytes(&written), Ok(information));
            }
        }
        2 => {
            if let Ok(object) = TypeObject::from_bytes(bytes) {
                use_type(&object);
            }
        }
        _ => {
            let mut registry = Registry::new();
            let _ = registry.insert_bytes(bytes);
            if let Ok(objects) = TypeObjects::from_bytes(bytes) {
                let written = objects.to_bytes().expect("what was read can be written");
                assert_eq!(TypeObjects::from_bytes(&written), Ok(objects));
            }
        }
    }
});

fn use_type(object: &TypeObject) {
    let written = object.to_bytes().expect("what was read can be written");
    assert_eq!(TypeObject::from_bytes(&written).as_ref(), Ok(object));
    let Ok(identifier) = object.identifier() else {
        return;
    };
    let mut registry = Registry::new();
    if registry.insert(identifier.clone(), object.clone()).is_err() {
        return;
    }
    let Ok(resolved) = registry.resolve(&identifier) else {
        return;
    };
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let (one, default) = (Some(&resolved), Consistency::default());
        assert_eq!(assignable(one, one, representation, &default), Ok(()));
    }
    let ty = DynamicType::from(resolved);
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let layout = ty.layout(representation);
        assert!(layout.size_max.is_none_or(|most| most >= layout.size_min));
        // Its own description is as good a sample as any.
        if let Ok(data) = ty.decode(&written, ty.encapsulation(representation)) {
            let again = data
                .encode(representation)
                .expect("what was read can be written");
            assert!(again.len() >= layout.size_min);
            assert!(layout.size_max.is_none_or(|most| again.len() <= most));
        }
    }
}
