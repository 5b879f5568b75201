//! What participants tell each other of themselves and of their endpoints: JSON, and behind
//! that of an endpoint its type in the binary form of XTypes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use spindle_dds_core::membership::{Endpoint as GroupEndpoint, Member, Note};
use spindle_dds_core::{DeliveryClass, RingSpec, SubgroupId, TopicKey};
use spindle_dds_qos::{DataReaderQos, DataWriterQos, PublisherQos, SubscriberQos};
use spindle_dds_xtypes::TypeError;

use super::large_types::LargeTypeRef;
use super::type_announcement::{AnnouncedType, INLINE_LEN_MAX, TYPE_LEN_MAX, Types};
use crate::error::{Error, Result};
use crate::handle::Guid;

/// Rises with every change of what stands in here, of the layout of rows, or of what makes the
/// digest of a decision.
pub(crate) const PROTOCOL: u32 = 8;

/// Most bytes that are said of one endpoint beside its type.
const SAID_LEN_MAX: usize = 16 << 10;
/// Most bytes that are said of one endpoint.
const ENDPOINT_LEN_MAX: usize = SAID_LEN_MAX + INLINE_LEN_MAX;

/// Why what somebody announced makes no sense.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProtocolViolation {
    #[error(
        "{0} bytes are said of one endpoint or type, at most {ENDPOINT_LEN_MAX} or \
         {TYPE_LEN_MAX} can be"
    )]
    TooLong(usize),
    #[error("it ends too soon")]
    Truncated,
    #[error("it contradicts itself")]
    Contradicts,
    #[error("it names a type that no topic can have")]
    NoTopicType,
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    #[error("its type makes no sense: {0}")]
    Type(#[from] TypeError),
    #[error("its participant has not noted its type")]
    NotNoted,
    #[error("what is noted of its type: {0}")]
    Noted(Arc<Self>),
}

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
    /// Its type; `None` of one that XTypes has no words for.
    #[serde(skip)]
    pub(crate) ty: Option<Arc<AnnouncedType>>,
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
    pub(crate) fn ring(&self) -> DeliveryClass {
        if self.is_ordered {
            DeliveryClass::Ordered
        } else {
            DeliveryClass::Unordered
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
    pub(crate) fn endpoint(&self) -> &Endpoint {
        match self {
            Self::Writer(writer) => &writer.endpoint,
            Self::Reader(reader) => &reader.endpoint,
        }
    }

    /// Its type, if that has to be noted before it is announced.
    pub(crate) fn noted_type(&self) -> Option<&Arc<AnnouncedType>> {
        self.endpoint().ty.as_ref().filter(|ty| ty.is_noted())
    }

    /// As the group needs to know it. A writer asks for a ring of this size. A type that is
    /// too large even to be `noted` is announced by its identifiers, and matches itself alone.
    ///
    /// # Errors
    /// OUT_OF_RESOURCES when its QoS is too long.
    pub(crate) fn to_group(
        &self,
        ring: Option<(DeliveryClass, RingSpec)>,
        noted: Option<LargeTypeRef>,
    ) -> Result<GroupEndpoint> {
        let endpoint = self.endpoint();
        let said = to_bytes(self)?;
        if said.len() + 4 > SAID_LEN_MAX {
            return Err(Error::OutOfResources(format!(
                "topic, name of the type and QoS of the endpoint on {} take {} bytes, at most \
                 {SAID_LEN_MAX} can be announced",
                endpoint.topic,
                said.len() + 4
            )));
        }
        let mut info = (said.len() as u32).to_le_bytes().to_vec();
        info.extend(said);
        if let Some(ty) = &endpoint.ty {
            let len = ty.bytes().len();
            if len > TYPE_LEN_MAX {
                tracing::warn!(
                    topic = endpoint.topic,
                    type_name = endpoint.type_name,
                    len,
                    len_max = TYPE_LEN_MAX,
                    "the type is too large to be announced: it is by its hash, and matches no \
                     other one"
                );
            }
            info.extend(ty.announced(noted));
        }
        Ok(GroupEndpoint {
            subgroup: SubgroupId(endpoint.subgroup),
            topic: TopicKey::of_name(&endpoint.topic),
            ring,
            info,
        })
    }

    /// Reads what somebody announced who has noted this.
    ///
    /// # Errors
    /// Why it makes no sense.
    pub(crate) fn from_group(
        endpoint: &GroupEndpoint,
        notes: &BTreeMap<u64, Note>,
        types: &mut Types,
    ) -> Result<Self, ProtocolViolation> {
        let info = &endpoint.info;
        if info.len() > ENDPOINT_LEN_MAX {
            return Err(ProtocolViolation::TooLong(info.len()));
        }
        let (len, rest) = info
            .split_first_chunk()
            .ok_or(ProtocolViolation::Truncated)?;
        let len = u32::from_le_bytes(*len) as usize;
        let (said, ty) = rest
            .split_at_checked(len)
            .ok_or(ProtocolViolation::Truncated)?;
        let mut entry: Self = serde_json::from_slice(said)?;
        if !ty.is_empty() {
            entry.endpoint_mut().ty = Some(types.read(ty, notes)?);
        }
        let ring = match &entry {
            Self::Writer(writer) => Some(writer.ring()),
            Self::Reader(_) => None,
        };
        let said = entry.endpoint();
        let agrees = said.subgroup == endpoint.subgroup.0
            && TopicKey::of_name(&said.topic) == endpoint.topic
            && endpoint.ring.map(|(ring, _)| ring) == ring;
        agrees
            .then_some(entry)
            .ok_or(ProtocolViolation::Contradicts)
    }

    fn endpoint_mut(&mut self) -> &mut Endpoint {
        match self {
            Self::Writer(writer) => &mut writer.endpoint,
            Self::Reader(reader) => &mut reader.endpoint,
        }
    }
}

impl Endpoint {
    /// Whether one and the same key has another hash here than there.
    pub(crate) fn hashes_keys_unlike(&self, other: &Self) -> bool {
        match (&self.ty, &other.ty) {
            (Some(one), Some(other)) => one.digests_key != other.digests_key,
            _ => false,
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
            ty: None,
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
        let told = entry.to_group(None, None).unwrap();
        assert!(told.info.len() < 512, "{} bytes", told.info.len());
        let read = Entry::from_group(&told, &BTreeMap::new(), &mut Types::default());
        assert_eq!(read.unwrap(), entry);
    }

    #[test]
    fn what_makes_no_sense_is_no_entry() {
        let told = example().to_group(None, None).unwrap();
        let elsewhere = GroupEndpoint {
            subgroup: SubgroupId(4),
            ..told.clone()
        };
        let ring = Some((DeliveryClass::Ordered, RingSpec::at_least(2, 128)));
        let writes = GroupEndpoint {
            ring,
            ..told.clone()
        };
        let cut = GroupEndpoint {
            info: told.info[1..].to_vec(),
            ..told.clone()
        };
        // Blanks change nothing of what it says.
        let blown_up = |len: usize| {
            let mut said = told.info[4..].to_vec();
            said.resize(len - 4, b' ');
            let info = [&(said.len() as u32).to_le_bytes()[..], &said].concat();
            GroupEndpoint {
                info,
                ..told.clone()
            }
        };
        let read = Entry::from_group(
            &blown_up(ENDPOINT_LEN_MAX),
            &BTreeMap::new(),
            &mut Types::default(),
        );
        assert_eq!(read.unwrap(), example());
        let long = blown_up(ENDPOINT_LEN_MAX + 1);
        for endpoint in [elsewhere, writes, cut, long] {
            let read = Entry::from_group(&endpoint, &BTreeMap::new(), &mut Types::default());
            assert!(read.is_err(), "{read:?}");
        }
    }
}
