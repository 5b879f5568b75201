//! The announcements of participants and endpoints: JSON, followed, for an endpoint, by its
//! type in the binary form of XTypes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};
use spindle_dds_core::membership::{Endpoint as GroupEndpoint, Member, Note};
use spindle_dds_core::{DeliveryClass, RingSpec, SubgroupId, TopicKey};
use spindle_dds_qos::{DataReaderQos, DataWriterQos, PublisherQos, SubscriberQos};

use super::large_type_ref::LargeTypeRef;
use super::protocol_violation::{ENDPOINT_LEN_MAX, ENTRY_LEN_MAX, ProtocolViolation, TYPE_LEN_MAX};
use super::type_announcement::AnnouncedType;
use super::types::Types;
use crate::error::{Error, Result};
use crate::handle::Guid;

/// Version of the protocol. It rises with every change of the announcements, of the layout of
/// rows, or of the input of a decision's digest.
pub(crate) const PROTOCOL: u32 = 15;

/// A participant, as announced in the info of its member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ParticipantInfo {
    pub(crate) guid: Guid,
    pub(crate) name: String,
    /// The number of subgroups of the group.
    pub(crate) subgroups: u32,
    pub(crate) pid: u32,
    /// Start time of its process, in clock ticks since boot: with the pid it identifies the
    /// process even when the pid is reused.
    pub(crate) start: u64,
}

/// An endpoint, as announced in its info in the view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Entry {
    Writer(WriterEntry),
    Reader(ReaderEntry),
}

/// The fields that writers and readers have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Endpoint {
    pub(crate) guid: Guid,
    pub(crate) topic: String,
    pub(crate) type_name: String,
    pub(crate) has_key: bool,
    pub(crate) subgroup: u32,
    /// Its type; `None` for a type that XTypes cannot describe.
    #[serde(skip)]
    pub(crate) ty: Option<Arc<AnnouncedType>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WriterEntry {
    pub(crate) endpoint: Endpoint,
    /// Distinguishes the writers of one participant in the headers of messages.
    pub(crate) number: u32,
    /// Whether its samples are delivered in total order.
    pub(crate) is_ordered: bool,
    /// How often its participant had lost its group when it joined: a writer that keeps history may
    /// have come back with it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) returns: u32,
    #[serde(
        default,
        skip_serializing_if = "is_default",
        serialize_with = "changed_policies"
    )]
    pub(crate) qos: DataWriterQos,
    #[serde(
        default,
        skip_serializing_if = "is_default",
        serialize_with = "changed_policies"
    )]
    pub(crate) publisher: PublisherQos,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReaderEntry {
    pub(crate) endpoint: Endpoint,
    #[serde(
        default,
        skip_serializing_if = "is_default",
        serialize_with = "changed_policies"
    )]
    pub(crate) qos: DataReaderQos,
    #[serde(
        default,
        skip_serializing_if = "is_default",
        serialize_with = "changed_policies"
    )]
    pub(crate) subscriber: SubscriberQos,
}

impl WriterEntry {
    pub(crate) fn class(&self) -> DeliveryClass {
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

    /// Reads the announcement of a member.
    pub(crate) fn of(member: &Member) -> Result<Self> {
        serde_json::from_slice(&member.info).map_err(|error| {
            Error::Error(format!(
                "the announcement of member {} is invalid: {error}",
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

    /// Its type, if that has to be put into notes before the endpoint is announced.
    pub(crate) fn noted_type(&self) -> Option<&Arc<AnnouncedType>> {
        self.endpoint().ty.as_ref().filter(|ty| ty.is_noted())
    }

    /// The endpoint in the form of the view. `ring` is the ring that a writer needs; `noted`
    /// refers to its type if that stands in notes. A type that is too large for notes is
    /// announced by its identifiers only, and matches no other type.
    ///
    /// # Errors
    /// OUT_OF_RESOURCES when its QoS is too long.
    pub(crate) fn to_group(
        &self,
        ring: Option<(DeliveryClass, RingSpec)>,
        noted: Option<LargeTypeRef>,
    ) -> Result<GroupEndpoint> {
        let endpoint = self.endpoint();
        let json = to_bytes(self)?;
        if json.len() + 4 > ENTRY_LEN_MAX {
            return Err(Error::OutOfResources(format!(
                "topic, name of the type and QoS of the endpoint on {} take {} bytes, at most \
                 {ENTRY_LEN_MAX} can be announced",
                endpoint.topic,
                json.len() + 4
            )));
        }
        let mut info = (json.len() as u32).to_le_bytes().to_vec();
        info.extend(json);
        if let Some(ty) = &endpoint.ty {
            let len = ty.bytes().len();
            if len > TYPE_LEN_MAX {
                tracing::warn!(
                    topic = endpoint.topic,
                    type_name = endpoint.type_name,
                    len,
                    len_max = TYPE_LEN_MAX,
                    "the type is too large to be announced: only its hash is announced, and it \
                     matches no other type"
                );
            }
            info.extend(ty.announced(noted));
        }
        Ok(GroupEndpoint {
            subgroup: SubgroupId(endpoint.subgroup),
            topic: TopicKey::of_name(&endpoint.topic),
            ring,
            info,
            log: None,
        })
    }

    /// Reads the announcement of an endpoint whose participant has these notes.
    ///
    /// # Errors
    /// Why it is invalid.
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
        let (json, ty) = rest
            .split_at_checked(len)
            .ok_or(ProtocolViolation::Truncated)?;
        let mut entry: Self = serde_json::from_slice(json)?;
        if !ty.is_empty() {
            entry.endpoint_mut().ty = Some(types.read(ty, notes)?);
        }
        let class = match &entry {
            Self::Writer(writer) => Some(writer.class()),
            Self::Reader(_) => None,
        };
        let announced = entry.endpoint();
        let agrees = announced.subgroup == endpoint.subgroup.0
            && TopicKey::of_name(&announced.topic) == endpoint.topic
            && endpoint.ring.map(|(class, _)| class) == class;
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
    /// Whether the two endpoints compute different hashes for the same key.
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

/// QoS that equals the default is omitted.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Of QoS, the policies that do not equal the default: most endpoints set few, and each member of a
/// group keeps the announcements of all endpoints.
fn changed_policies<T: Default + Serialize, S: Serializer>(
    qos: &T,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    let policies = |qos: &T| serde_json::to_value(qos).map_err(S::Error::custom);
    let (mut changed, default) = (policies(qos)?, policies(&T::default())?);
    if let (Some(changed), Some(default)) = (changed.as_object_mut(), default.as_object()) {
        changed.retain(|name, policy| default.get(name) != Some(policy));
    }
    changed.serialize(serializer)
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
    fn an_announcement_can_be_read_back() {
        let entry = example();
        let announced = entry.to_group(None, None).unwrap();
        assert!(announced.info.len() < 512, "{} bytes", announced.info.len());
        let read = Entry::from_group(&announced, &BTreeMap::new(), &mut Types::default());
        assert_eq!(read.unwrap(), entry);
    }

    #[test]
    fn invalid_announcements_are_refused() {
        let announced = example().to_group(None, None).unwrap();
        let elsewhere = GroupEndpoint {
            subgroup: SubgroupId(4),
            ..announced.clone()
        };
        let ring = Some((DeliveryClass::Ordered, RingSpec::at_least(2, 128)));
        let writes = GroupEndpoint {
            ring,
            ..announced.clone()
        };
        let cut = GroupEndpoint {
            info: announced.info[1..].to_vec(),
            ..announced.clone()
        };
        // Trailing blanks do not change the entry.
        let padded = |len: usize| {
            let mut json = announced.info[4..].to_vec();
            json.resize(len - 4, b' ');
            let info = [&(json.len() as u32).to_le_bytes()[..], &json].concat();
            GroupEndpoint {
                info,
                ..announced.clone()
            }
        };
        let read = Entry::from_group(
            &padded(ENDPOINT_LEN_MAX),
            &BTreeMap::new(),
            &mut Types::default(),
        );
        assert_eq!(read.unwrap(), example());
        let long = padded(ENDPOINT_LEN_MAX + 1);
        for endpoint in [elsewhere, writes, cut, long] {
            let read = Entry::from_group(&endpoint, &BTreeMap::new(), &mut Types::default());
            assert!(read.is_err(), "{read:?}");
        }
    }
}
