//! Names of the instances of records.

use spindle_dds_core::storage::{Record, SampleHistory};
use spindle_dds_idl_runtime::Encapsulation;

use crate::keys::KnownKeys;

/// What tells instances apart: their key hashes, or names of their keys where key hashes are digests. The names
/// last as long as this does.
#[derive(Debug)]
pub(crate) struct InstanceNames(Option<KnownKeys>);

impl InstanceNames {
    /// `known`: the keys that are known, of a type whose key hashes are digests; else `None`.
    pub(crate) const fn new(known: Option<KnownKeys>) -> Self {
        Self(known)
    }

    /// The name of a record's instance, which is about to be put into a history.
    pub(crate) fn of(&self, record: &Record, history: &SampleHistory) -> [u8; 16] {
        let meta = record.meta();
        let Some(keys) = &self.0 else {
            return meta.key;
        };
        if keys.has_many() {
            keys.forget(|name| history.has_instance(&name.0));
        }
        let encapsulation = Encapsulation(meta.encapsulation);
        let named = keys.name(meta.kind, record.payload(), encapsulation);
        named.map_or(meta.key, |name| name.0)
    }
}
