//! What participants tell each other of themselves and of their endpoints.

use serde::{Deserialize, Serialize};
use spindle_dds_core::membership::{Endpoint as GroupEndpoint, Member};
use spindle_dds_core::{Ring, RingSpec, SubgroupId, TopicKey};
use spindle_dds_qos::{DataReaderQos, DataWriterQos, PublisherQos, SubscriberQos};

use crate::error::{Error, Result};
use crate::handle::Guid;
use crate::properties::ParticipantConfig;
use crate::publication::{PublisherCore, WriterCore};
use crate::subscription::{ReaderCore, SubscriberCore};
use crate::topic::TopicCore;

/// Rises with every change of what stands in here, or of the layout of rows.
pub(crate) const PROTOCOL: u32 = 4;

/// Most bytes that are said of one endpoint.
const ENDPOINT_LEN_MAX: usize = 16 << 10;

/// A participant, in the info of its member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ParticipantInfo {
    pub(crate) guid: Guid,
    pub(crate) subgroups: u32,
    pub(crate) pid: u32,
    /// When its process started: with the pid, it names one for good.
    pub(crate) start: u64,
}

/// An endpoint, in the info of what the group knows of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Entry {
    Writer(WriterEntry),
    Reader(ReaderEntry),
}

/// What writers and readers have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Endpoint {
    pub(crate) guid: Guid,
    pub(crate) topic: String,
    pub(crate) type_name: String,
    pub(crate) has_key: bool,
    pub(crate) subgroup: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WriterEntry {
    pub(crate) endpoint: Endpoint,
    pub(crate) number: u32,
    pub(crate) is_ordered: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) qos: DataWriterQos,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) publisher: PublisherQos,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReaderEntry {
    pub(crate) endpoint: Endpoint,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) qos: DataReaderQos,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) subscriber: SubscriberQos,
}

impl WriterEntry {
    pub(crate) fn ring(&self) -> Ring {
        if self.is_ordered {
            Ring::Ordered
        } else {
            Ring::Unordered
        }
    }
}

impl ParticipantInfo {
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>> {
        to_bytes(self)
    }

    /// Reads what a member says of itself.
    pub(crate) fn of(member: &Member) -> Result<Self> {
        serde_json::from_slice(&member.info).map_err(|error| {
            Error::Error(format!(
                "member {} says of itself what makes no sense: {error}",
                member.id
            ))
        })
    }
}

impl Entry {
    pub(crate) fn of_writer(
        config: &ParticipantConfig,
        publisher: &PublisherCore,
        writer: &WriterCore,
    ) -> Self {
        Self::Writer(WriterEntry {
            endpoint: Endpoint::new(config, writer.base.guid(), &writer.topic),
            number: writer.settings.number,
            is_ordered: writer.settings.ring == Ring::Ordered,
            qos: writer.qos().clone(),
            publisher: publisher.qos().clone(),
        })
    }

    pub(crate) fn of_reader(
        config: &ParticipantConfig,
        subscriber: &SubscriberCore,
        reader: &ReaderCore,
    ) -> Self {
        Self::Reader(ReaderEntry {
            endpoint: Endpoint::new(config, reader.base.guid(), &reader.topic),
            qos: reader.qos().clone(),
            subscriber: subscriber.qos().clone(),
        })
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        match self {
            Self::Writer(writer) => &writer.endpoint,
            Self::Reader(reader) => &reader.endpoint,
        }
    }

    /// As the group needs to know it. A writer asks for a ring of this size.
    ///
    /// # Errors
    /// OUT_OF_RESOURCES when its QoS is too long.
    pub(crate) fn to_group(&self, ring: Option<(Ring, RingSpec)>) -> Result<GroupEndpoint> {
        let endpoint = self.endpoint();
        let info = to_bytes(self)?;
        if info.len() > ENDPOINT_LEN_MAX {
            return Err(Error::OutOfResources(format!(
                "topic, type and QoS of the endpoint on {} take {} bytes, at most \
                 {ENDPOINT_LEN_MAX} can be announced",
                endpoint.topic,
                info.len()
            )));
        }
        Ok(GroupEndpoint {
            subgroup: SubgroupId(endpoint.subgroup),
            topic: TopicKey::of_name(&endpoint.topic),
            ring,
            info,
        })
    }

    /// Reads what somebody announced; `None` if it makes no sense.
    pub(crate) fn from_group(endpoint: &GroupEndpoint) -> Option<Self> {
        let entry: Self = serde_json::from_slice(&endpoint.info).ok()?;
        let ring = match &entry {
            Self::Writer(writer) => Some(writer.ring()),
            Self::Reader(_) => None,
        };
        let said = entry.endpoint();
        let agrees = said.subgroup == endpoint.subgroup.0
            && TopicKey::of_name(&said.topic) == endpoint.topic
            && endpoint.ring.map(|(ring, _)| ring) == ring;
        agrees.then_some(entry)
    }
}

impl Endpoint {
    fn new(config: &ParticipantConfig, guid: Guid, topic: &TopicCore) -> Self {
        Self {
            guid,
            topic: topic.name.clone(),
            type_name: topic.type_name.to_owned(),
            has_key: topic.has_key,
            subgroup: config.subgroup_of(&topic.name),
        }
    }
}

fn to_bytes(value: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| Error::Error(error.to_string()))
}

/// QoS that says nothing of its own need not travel.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Entry {
        let endpoint = Endpoint {
            guid: Guid([7; 16]),
            topic: "State".to_owned(),
            type_name: "flight::State".to_owned(),
            has_key: true,
            subgroup: 3,
        };
        Entry::Reader(ReaderEntry {
            endpoint,
            qos: DataReaderQos::default(),
            subscriber: SubscriberQos::default(),
        })
    }

    #[test]
    fn what_is_announced_is_read() {
        let entry = example();
        let told = entry.to_group(None).unwrap();
        assert!(told.info.len() < 512, "{} bytes", told.info.len());
        assert_eq!(Entry::from_group(&told), Some(entry));
    }

    #[test]
    fn what_makes_no_sense_is_no_entry() {
        let told = example().to_group(None).unwrap();
        let elsewhere = GroupEndpoint {
            subgroup: SubgroupId(4),
            ..told.clone()
        };
        let ring = Some((Ring::Ordered, RingSpec::at_least(2, 128)));
        let writes = GroupEndpoint {
            ring,
            ..told.clone()
        };
        let cut = GroupEndpoint {
            info: told.info[1..].to_vec(),
            ..told
        };
        for endpoint in [elsewhere, writes, cut] {
            assert_eq!(Entry::from_group(&endpoint), None);
        }
    }
}
