//! Writers whose type is not known where they are used.

use std::fmt;
use std::sync::Arc;

use spindle_dds_idl_runtime::TopicType;

use super::DataWriter;
use super::core::WriterCore;
use crate::entity::entity_operations;
use crate::participant::ParticipantCore;
use crate::topic::AnyTopic;

/// A writer of any type, as listeners of publishers and participants see it.
#[derive(Clone)]
pub struct AnyDataWriter {
    pub(crate) core: Arc<WriterCore>,
    pub(crate) participant: Arc<ParticipantCore>,
}

entity_operations!(AnyDataWriter);

impl AnyDataWriter {
    /// Its topic.
    pub fn topic(&self) -> AnyTopic {
        AnyTopic {
            core: self.core.topic.clone(),
            participant: self.participant.clone(),
        }
    }

    /// The writer with its type, if it is `T`.
    pub fn downcast<T: TopicType>(&self) -> Option<DataWriter<T>> {
        let typed = || DataWriter::new(self.core.clone(), self.participant.clone());
        self.core.topic.is_of::<T>().then(typed)
    }
}

impl fmt::Debug for AnyDataWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.fmt(f)
    }
}
