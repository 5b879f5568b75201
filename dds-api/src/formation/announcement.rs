//! What participants tell each other when they meet.

use serde::{Deserialize, Serialize};
use spindle_dds_core::{Ring, TopicKey};
use spindle_dds_qos::{DataReaderQos, DataWriterQos, PublisherQos, SubscriberQos};

use super::connect::Endpoints;
use crate::error::{Error, Result};
use crate::handle::Guid;
use crate::participant::ParticipantCore;
use crate::properties::ParticipantConfig;

/// Rises with every change of what stands in here, or of the layout of rows.
const PROTOCOL: u32 = 2;

/// One participant with its endpoints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Announcement {
    protocol: u32,
    pub(super) guid: Guid,
    pub(super) subgroups: u32,
    pub(super) writers: Vec<WriterEntry>,
    pub(super) readers: Vec<ReaderEntry>,
}

/// What writers and readers have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Endpoint {
    pub(super) guid: Guid,
    pub(super) topic: String,
    pub(super) type_name: String,
    pub(super) has_key: bool,
    pub(super) subgroup: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WriterEntry {
    pub(super) endpoint: Endpoint,
    pub(super) number: u32,
    pub(super) is_ordered: bool,
    pub(super) ring_messages: u32,
    pub(super) ring_bytes: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) qos: DataWriterQos,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) publisher: PublisherQos,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReaderEntry {
    pub(super) endpoint: Endpoint,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) qos: DataReaderQos,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) subscriber: SubscriberQos,
}

impl WriterEntry {
    pub(super) fn ring(&self) -> Ring {
        if self.is_ordered {
            Ring::Ordered
        } else {
            Ring::Unordered
        }
    }
}

impl Announcement {
    pub(super) fn of(participant: &ParticipantCore, endpoints: &Endpoints) -> Self {
        let config = &participant.config;
        let endpoint = |guid, topic: &crate::topic::TopicCore| Endpoint {
            guid,
            topic: topic.name.clone(),
            type_name: topic.type_name.to_owned(),
            has_key: topic.has_key,
            subgroup: subgroup(config, &topic.name),
        };
        let writers = endpoints
            .writers
            .iter()
            .map(|(publisher, writer)| WriterEntry {
                endpoint: endpoint(writer.base.guid(), &writer.topic),
                number: writer.settings.number,
                is_ordered: writer.settings.ring == Ring::Ordered,
                ring_messages: writer.settings.ring_size.messages,
                ring_bytes: writer.settings.ring_size.bytes,
                qos: writer.qos().clone(),
                publisher: publisher.qos().clone(),
            });
        let readers = endpoints
            .readers
            .iter()
            .map(|(subscriber, reader)| ReaderEntry {
                endpoint: endpoint(reader.base.guid(), &reader.topic),
                qos: reader.qos().clone(),
                subscriber: subscriber.qos().clone(),
            });
        Self {
            protocol: PROTOCOL,
            guid: participant.base.guid(),
            subgroups: config.subgroups,
            writers: writers.collect(),
            readers: readers.collect(),
        }
    }

    pub(super) fn to_bytes(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(|error| Error::Error(error.to_string()))
    }

    /// Reads what another participant announced.
    pub(super) fn from_bytes(bytes: &[u8], pid: u32) -> Result<Self> {
        #[derive(Deserialize)]
        struct Version {
            protocol: u32,
        }
        let nonsense = |error: serde_json::Error| {
            Error::Error(format!(
                "process {pid} announced what makes no sense: {error}"
            ))
        };
        let Version { protocol } = serde_json::from_slice(bytes).map_err(nonsense)?;
        if protocol != PROTOCOL {
            return Err(Error::Error(format!(
                "process {pid} speaks version {protocol} of the protocol, this one {PROTOCOL}: \
                 all participants of a domain are built with one version of Spindle DDS"
            )));
        }
        serde_json::from_slice(bytes).map_err(nonsense)
    }

    pub(super) fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        let writers = self.writers.iter().map(|writer| &writer.endpoint);
        writers.chain(self.readers.iter().map(|reader| &reader.endpoint))
    }
}

/// QoS that says nothing of its own need not travel.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The subgroup of a topic: pinned, or by its name. Subgroup 0 is kept free.
fn subgroup(config: &ParticipantConfig, topic: &str) -> u32 {
    let by_name = || 1 + TopicKey::of_name(topic).subgroup(config.subgroups - 1).0;
    config.pins.get(topic).copied().unwrap_or_else(by_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Announcement {
        let endpoint = Endpoint {
            guid: Guid([7; 16]),
            topic: "State".to_owned(),
            type_name: "flight::State".to_owned(),
            has_key: true,
            subgroup: 3,
        };
        let reader = ReaderEntry {
            endpoint,
            qos: DataReaderQos::default(),
            subscriber: SubscriberQos::default(),
        };
        Announcement {
            protocol: PROTOCOL,
            guid: Guid([1; 16]),
            subgroups: 16,
            writers: Vec::new(),
            readers: vec![reader],
        }
    }

    #[test]
    fn what_is_announced_is_read() {
        let announcement = example();
        let bytes = announcement.to_bytes().unwrap();
        assert!(bytes.len() < 512, "{} bytes", bytes.len());
        assert_eq!(Announcement::from_bytes(&bytes, 1), Ok(announcement));
    }

    #[test]
    fn other_versions_and_nonsense_are_refused() {
        let mut other = example();
        other.protocol += 1;
        let error = Announcement::from_bytes(&other.to_bytes().unwrap(), 4711).unwrap_err();
        assert!(error.to_string().contains("4711") && error.to_string().contains("version"));
        for bytes in [&b""[..], b"{}", b"{\"protocol\":1}", b"\xff\xff"] {
            assert!(matches!(
                Announcement::from_bytes(bytes, 1),
                Err(Error::Error(_))
            ));
        }
    }
}
