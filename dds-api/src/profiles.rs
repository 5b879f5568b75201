//! The QoS profiles of a participant.

use std::path::PathBuf;

use spindle_dds_qos::{
    DataReaderQos, DataWriterQos, DomainParticipantQos, PublisherQos, SubscriberQos, TopicQos,
};

use crate::error::{Error, Result};

/// The files' profiles, and which of them is the default.
#[derive(Debug, Default)]
pub(crate) struct Profiles {
    default: Option<String>,
}

impl Profiles {
    /// Loads the files as one; the default profile has to be among what they hold.
    pub(crate) fn load(files: &[PathBuf], default: Option<String>) -> Result<Self> {
        if files.is_empty() && default.is_none() {
            return Ok(Self::default());
        }
        Err(Error::Unsupported("QoS profiles".to_owned()))
    }

    pub(crate) fn named(&self, name: &str) -> Result<QosProfile> {
        Err(Error::BadParameter(format!("no profile {name} is loaded")))
    }

    pub(crate) fn default_profile(&self) -> Result<Option<QosProfile>> {
        self.default.as_deref().map(|name| self.named(name)).transpose()
    }
}

#[derive(Debug)]
pub(crate) struct QosProfile {}

impl QosProfile {
    pub(crate) fn participant_qos(&self) -> DomainParticipantQos {
        Default::default()
    }
    pub(crate) fn topic_qos(&self, _: &str) -> TopicQos {
        Default::default()
    }
    pub(crate) fn publisher_qos(&self) -> PublisherQos {
        Default::default()
    }
    pub(crate) fn subscriber_qos(&self) -> SubscriberQos {
        Default::default()
    }
    pub(crate) fn datawriter_qos(&self, _: &str) -> DataWriterQos {
        Default::default()
    }
    pub(crate) fn datareader_qos(&self, _: &str) -> DataReaderQos {
        Default::default()
    }
}
