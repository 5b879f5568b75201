//! Readers whose type is not known where they are used.

use std::fmt;
use std::sync::Arc;

use spindle_dds_idl_runtime::TopicType;

use super::DataReader;
use super::core::ReaderCore;
use crate::entity::entity_operations;
use crate::participant::ParticipantCore;
use crate::topic::AnyTopic;

/// A reader of any type, as listeners of subscribers and participants see it.
#[derive(Clone)]
pub struct AnyDataReader {
    pub(crate) core: Arc<ReaderCore>,
    pub(crate) participant: Arc<ParticipantCore>,
}

entity_operations!(AnyDataReader);

impl AnyDataReader {
    /// Its topic.
    pub fn topic(&self) -> AnyTopic {
        AnyTopic {
            core: self.core.topic.clone(),
            participant: self.participant.clone(),
        }
    }

    /// The reader with its type, if it is `T`.
    pub fn downcast<T: TopicType>(&self) -> Option<DataReader<T>> {
        let typed = || DataReader::new(self.core.clone(), self.participant.clone());
        self.core.topic.is_of::<T>().then(typed)
    }
}

impl fmt::Debug for AnyDataReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.fmt(f)
    }
}
