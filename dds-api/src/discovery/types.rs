//! The announced types that this participant knows.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};

use spindle_dds_core::membership::Note;

use super::large_type_ref::LargeTypeRef;
use super::large_types::LargeTypeCache;
use super::protocol_violation::ProtocolViolation;
use super::type_announcement::{AnnouncedType, NOTED};

/// The announced types that are in use. Endpoints that announce the same type share it.
#[derive(Debug, Default)]
pub(crate) struct Types {
    /// By the bytes of the announcement.
    inline: HashMap<Box<[u8]>, Weak<AnnouncedType>>,
    /// Types that stand in notes.
    noted: LargeTypeCache,
}

impl Types {
    /// Reads the type of an endpoint whose participant has these notes.
    pub(crate) fn read(
        &mut self,
        bytes: &[u8],
        notes: &BTreeMap<u64, Note>,
    ) -> Result<Arc<AnnouncedType>, ProtocolViolation> {
        if let Some((&NOTED, noted)) = bytes.split_first() {
            return self.noted.read(LargeTypeRef::from_bytes(noted)?, notes);
        }
        if let Some(known) = self.inline.get(bytes).and_then(Weak::upgrade) {
            return Ok(known);
        }
        let read = Arc::new(AnnouncedType::from_bytes(bytes)?);
        self.inline.insert(bytes.into(), Arc::downgrade(&read));
        Ok(read)
    }

    /// Removes types that are no longer in use.
    pub(crate) fn tidy(&mut self) {
        self.inline.retain(|_, ty| ty.strong_count() != 0);
        self.noted.tidy();
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.inline.is_empty() && self.noted.is_empty()
    }
}
