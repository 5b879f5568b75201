//! Identities of entities, and handles of entities and instances.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};
use spindle_dds_idl_runtime::KeyHash;

/// Identity of an entity: 12 bytes of its participant, 4 of its own, as in
/// DDSI-RTPS 2.5 §8.2.4.1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Guid(pub [u8; 16]);

impl Guid {
    /// A new, unique participant.
    pub(crate) fn new_participant() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(1);
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u32(std::process::id());
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&std::process::id().to_be_bytes());
        bytes[4..8].copy_from_slice(&COUNT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        bytes[8..12].copy_from_slice(&(hasher.finish() as u32).to_be_bytes());
        Self(bytes).entity(EntityKind::Participant, 1)
    }

    /// The participant of an entity.
    pub(crate) fn participant(self) -> Self {
        self.entity(EntityKind::Participant, 1)
    }

    /// An entity of the same participant.
    pub(crate) fn entity(mut self, kind: EntityKind, number: u32) -> Self {
        self.0[12..].copy_from_slice(&(number << 8 | kind as u32).to_be_bytes());
        self
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Last byte of an entity's [`Guid`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntityKind {
    Writer = 0x02,
    Reader = 0x07,
    Publisher = 0x08,
    Subscriber = 0x09,
    Topic = 0x0a,
    Participant = 0xc1,
}

/// Names an instance of a topic, or an entity (the standard's `InstanceHandle_t`). Two handles
/// are equal if they name the same thing, wherever they come from, except for instances of which
/// only the digests of the keys are equal: their handles differ, and are of one participant. They
/// have a total order, in which `take_next_instance` visits instances.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct InstanceHandle {
    kind: HandleKind,
    value: [u8; 16],
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
enum HandleKind {
    #[default]
    Nil,
    Instance,
    Entity,
}

impl InstanceHandle {
    /// Names nothing (`HANDLE_NIL`); less than all others.
    pub const NIL: Self = Self {
        kind: HandleKind::Nil,
        value: [0; 16],
    };

    /// Whether it names nothing.
    pub const fn is_nil(&self) -> bool {
        matches!(self.kind, HandleKind::Nil)
    }

    /// The instance with this key hash; for a topic without a key
    /// [`KeyHash::NONE`] is its one instance.
    pub const fn of_instance(key: KeyHash) -> Self {
        Self {
            kind: HandleKind::Instance,
            value: key.0,
        }
    }

    /// The entity with this identity.
    pub const fn of_entity(guid: Guid) -> Self {
        Self {
            kind: HandleKind::Entity,
            value: guid.0,
        }
    }

    /// The key hash of the instance it names, if it names one. Of the instances of which the key
    /// hashes are digests and equal, all but one have another value in its place.
    pub const fn key_hash(&self) -> Option<KeyHash> {
        match self.kind {
            HandleKind::Instance => Some(KeyHash(self.value)),
            HandleKind::Nil | HandleKind::Entity => None,
        }
    }

    /// The identity of the entity it names, if it names one.
    pub const fn guid(&self) -> Option<Guid> {
        match self.kind {
            HandleKind::Entity => Some(Guid(self.value)),
            HandleKind::Nil | HandleKind::Instance => None,
        }
    }
}

impl fmt::Debug for InstanceHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            HandleKind::Nil => f.write_str("NIL"),
            HandleKind::Instance => KeyHash(self.value).fmt(f),
            HandleKind::Entity => Guid(self.value).fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zero_key_is_not_nil() {
        let zero = InstanceHandle::of_instance(KeyHash::NONE);
        assert!(!zero.is_nil() && zero > InstanceHandle::NIL);
        assert_eq!(zero.key_hash(), Some(KeyHash::NONE));
        assert_eq!(InstanceHandle::NIL.key_hash(), None);
    }

    #[test]
    fn participants_differ() {
        let (a, b) = (Guid::new_participant(), Guid::new_participant());
        assert_ne!(a, b);
        assert_ne!(
            a.entity(EntityKind::Writer, 1),
            a.entity(EntityKind::Reader, 1)
        );
    }
}
