//! Properties: what tunes Spindle beyond the standard's policies.
//!
//! | property | on | value | default |
//! |---|---|---|---|
//! | `spindle.group.size` | participant | members that the group is formed of, from 1 | required |
//! | `spindle.subgroups` | participant | subgroups of the domain, from 2 to 4096; the same at all. One without topics costs nothing; topics that share one share rings | 1024 |
//! | `spindle.topic.<name>.subgroup` | participant | pins a topic to a subgroup, from 1; the same at all. A warning is logged by `enable` if the participant has no such topic | by hash of the name |
//! | `spindle.ring.messages` | participant, writer | messages in flight of one sender in a subgroup, 2 to 32768, rounded up to a power of two | 1024 |
//! | `spindle.ring.bytes` | participant, writer | bytes in flight, 128 to 2^34, rounded up; a sample takes at most half | 8 MiB |
//! | `spindle.join.timeout_ms` | participant | how long `enable` waits for the others | 30000 |
//! | `spindle.wait` | participant | `balanced`, `spin` or `block`: how long the polling thread spins before it sleeps | `balanced` |
//! | `spindle.doorbell` | participant | `auto`, `futex` or `event`: what it sleeps on | `auto` |
//! | `spindle.directory` | participant | where the processes of a host meet | the user's runtime directory |
//! | `spindle.reader.storage` | participant, reader | `copy`: taken samples are copies; `ring`: they stay where their writer built them until given back | `copy` |
//! | `spindle.reader.untrusted_peers` | participant, reader | `true`: samples are copied before they are looked at, for peers that may alter what they have sent | `false` |
//!
//! Properties of a writer or reader come before those of its participant. A
//! `spindle.` property that is not in this table, or stands on another entity,
//! is refused: nothing is read and ignored. Other names are left alone.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use spindle_dds_core::limits::{
    RING_BYTES_MAX, RING_BYTES_MIN, RING_MESSAGES_MAX, RING_MESSAGES_MIN, SUBGROUPS_MAX,
};
use spindle_dds_qos::{Properties, Property};
use spindle_dds_transport::MEMBERS_MAX;

use crate::error::{Error, Result};

const GROUP_SIZE: &str = "spindle.group.size";
const SUBGROUPS: &str = "spindle.subgroups";
const TOPIC_PREFIX: &str = "spindle.topic.";
const TOPIC_SUFFIX: &str = ".subgroup";
const RING_MESSAGES: &str = "spindle.ring.messages";
const RING_BYTES: &str = "spindle.ring.bytes";
const JOIN_TIMEOUT: &str = "spindle.join.timeout_ms";
const WAIT: &str = "spindle.wait";
const DOORBELL: &str = "spindle.doorbell";
const DIRECTORY: &str = "spindle.directory";
const STORAGE: &str = "spindle.reader.storage";
const UNTRUSTED: &str = "spindle.reader.untrusted_peers";

/// So many that unrelated topics hardly ever share a ring: one that is held up
/// does not hold up the others.
const SUBGROUPS_DEFAULT: u64 = 1024;

/// What the properties of a participant say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ParticipantConfig {
    /// `None`: not given; wanted when the group is formed.
    pub(crate) group_size: Option<usize>,
    pub(crate) subgroups: u32,
    pub(crate) pins: BTreeMap<String, u32>,
    pub(crate) join_timeout: Duration,
    pub(crate) wait: WaitPolicy,
    pub(crate) doorbell: Doorbell,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) ring: RingSize,
    pub(crate) reader: ReaderConfig,
}

/// Ring sizes asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RingSize {
    pub(crate) messages: u32,
    pub(crate) bytes: u64,
}

/// How a reader keeps samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ReaderConfig {
    pub(crate) storage: Storage,
    pub(crate) untrusted: bool,
}

/// Where taken samples lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Storage {
    #[default]
    Copy,
    Ring,
}

/// How long the polling thread spins before it sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum WaitPolicy {
    #[default]
    Balanced,
    Spin,
    Block,
}

/// What the polling thread sleeps on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Doorbell {
    #[default]
    Auto,
    Futex,
    Event,
}

impl RingSize {
    const DEFAULT: Self = Self {
        messages: 1024,
        bytes: 8 << 20,
    };

    fn read(self, properties: &Properties) -> Result<Self> {
        let (messages, bytes) = (u64::from(self.messages), self.bytes);
        let most = u64::from(RING_MESSAGES_MAX);
        let least = u64::from(RING_MESSAGES_MIN);
        let messages = number(properties, RING_MESSAGES, least, most)?.unwrap_or(messages);
        let bytes =
            number(properties, RING_BYTES, RING_BYTES_MIN, RING_BYTES_MAX)?.unwrap_or(bytes);
        Ok(Self {
            messages: messages as u32,
            bytes,
        })
    }
}

impl ParticipantConfig {
    /// Reads the properties of a participant.
    pub(crate) fn read(properties: &Properties) -> Result<Self> {
        let known = [
            GROUP_SIZE,
            SUBGROUPS,
            RING_MESSAGES,
            RING_BYTES,
            JOIN_TIMEOUT,
            WAIT,
            DOORBELL,
            DIRECTORY,
            STORAGE,
            UNTRUSTED,
        ];
        check_names(properties, "a participant", |name| {
            known.contains(&name) || pinned_topic(name).is_some()
        })?;
        let subgroups =
            number(properties, SUBGROUPS, 2, SUBGROUPS_MAX as u64)?.unwrap_or(SUBGROUPS_DEFAULT);
        let join_timeout = number(properties, JOIN_TIMEOUT, 0, u64::from(u32::MAX))?;
        Ok(Self {
            group_size: number(properties, GROUP_SIZE, 1, MEMBERS_MAX as u64)?
                .map(|size| size as usize),
            subgroups: subgroups as u32,
            pins: pins(properties, subgroups)?,
            join_timeout: Duration::from_millis(join_timeout.unwrap_or(30_000)),
            wait: choice(
                properties,
                WAIT,
                &[
                    ("balanced", WaitPolicy::Balanced),
                    ("spin", WaitPolicy::Spin),
                    ("block", WaitPolicy::Block),
                ],
            )?
            .unwrap_or_default(),
            doorbell: choice(
                properties,
                DOORBELL,
                &[
                    ("auto", Doorbell::Auto),
                    ("futex", Doorbell::Futex),
                    ("event", Doorbell::Event),
                ],
            )?
            .unwrap_or_default(),
            directory: properties.get(DIRECTORY).map(PathBuf::from),
            ring: RingSize::DEFAULT.read(properties)?,
            reader: ReaderConfig::default().read(properties)?,
        })
    }

    /// Ring sizes for a writer with these properties.
    pub(crate) fn ring_of(&self, writer: &Properties) -> Result<RingSize> {
        check_names(writer, "a writer", |name| {
            [RING_MESSAGES, RING_BYTES].contains(&name)
        })?;
        self.ring.read(writer)
    }

    /// How a reader with these properties keeps samples.
    pub(crate) fn reader_of(&self, reader: &Properties) -> Result<ReaderConfig> {
        check_names(reader, "a reader", |name| {
            [STORAGE, UNTRUSTED].contains(&name)
        })?;
        self.reader.read(reader)
    }

    /// Topics have no properties of ours yet.
    pub(crate) fn check_topic(properties: &Properties) -> Result<()> {
        check_names(properties, "a topic", |_| false)
    }
}

impl ReaderConfig {
    fn read(self, properties: &Properties) -> Result<Self> {
        let storages = [("copy", Storage::Copy), ("ring", Storage::Ring)];
        let truths = [("true", true), ("false", false)];
        Ok(Self {
            storage: choice(properties, STORAGE, &storages)?.unwrap_or(self.storage),
            untrusted: choice(properties, UNTRUSTED, &truths)?.unwrap_or(self.untrusted),
        })
    }
}

fn check_names(properties: &Properties, entity: &str, known: impl Fn(&str) -> bool) -> Result<()> {
    let ours = |property: &&Property| property.name.starts_with("spindle.");
    match properties
        .iter()
        .filter(ours)
        .find(|property| !known(&property.name))
    {
        Some(property) => Err(Error::BadParameter(format!(
            "{entity} has no property {:?}; the documentation of spindle_dds::properties lists them",
            property.name
        ))),
        None => Ok(()),
    }
}

/// The property that pins a topic.
pub(crate) fn pin(topic: &str) -> String {
    format!("{TOPIC_PREFIX}{topic}{TOPIC_SUFFIX}")
}

fn pinned_topic(name: &str) -> Option<&str> {
    name.strip_prefix(TOPIC_PREFIX)?
        .strip_suffix(TOPIC_SUFFIX)
        .filter(|topic| !topic.is_empty())
}

fn pins(properties: &Properties, subgroups: u64) -> Result<BTreeMap<String, u32>> {
    let mut pins = BTreeMap::new();
    for property in properties {
        let Some(topic) = pinned_topic(&property.name) else {
            continue;
        };
        if let Some(subgroup) = number(properties, &property.name, 1, subgroups - 1)? {
            pins.insert(topic.to_owned(), subgroup as u32);
        }
    }
    Ok(pins)
}

fn number(properties: &Properties, name: &str, least: u64, most: u64) -> Result<Option<u64>> {
    let Some(text) = properties.get(name) else {
        return Ok(None);
    };
    match text.trim().parse() {
        Ok(value) if (least..=most).contains(&value) => Ok(Some(value)),
        _ => Err(Error::BadParameter(format!(
            "property {name} is {text:?}; it has to be a number from {least} to {most}"
        ))),
    }
}

fn choice<T: Copy>(
    properties: &Properties,
    name: &str,
    choices: &[(&str, T)],
) -> Result<Option<T>> {
    let Some(text) = properties.get(name) else {
        return Ok(None);
    };
    match choices.iter().find(|(label, _)| *label == text.trim()) {
        Some((_, value)) => Ok(Some(*value)),
        None => {
            let labels: Vec<&str> = choices.iter().map(|(label, _)| *label).collect();
            let labels = labels.join(", ");
            Err(Error::BadParameter(format!(
                "property {name} is {text:?}; it has to be one of {labels}"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<ParticipantConfig> {
        ParticipantConfig::read(&pairs.iter().copied().collect())
    }

    #[test]
    fn defaults_and_values() {
        let config = read(&[]).unwrap();
        assert_eq!((config.group_size, config.subgroups), (None, 1024));
        assert_eq!(config.ring, RingSize::DEFAULT);
        let config = read(&[
            ("spindle.group.size", "5"),
            ("spindle.topic.A.B.subgroup", "3"),
            ("spindle.wait", "block"),
            ("spindle.ring.bytes", "100000"),
            ("vendor.other", "x"),
        ])
        .unwrap();
        assert_eq!(config.group_size, Some(5));
        assert_eq!(config.pins.get("A.B"), Some(&3));
        assert_eq!(config.wait, WaitPolicy::Block);
        assert_eq!(config.ring.bytes, 100_000);
        let writer = [("spindle.ring.messages", "64")].into_iter().collect();
        assert_eq!(config.ring_of(&writer).unwrap().messages, 64);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for pair in [
            ("spindle.group.size", "0"),
            ("spindle.group.size", "many"),
            ("spindle.grup.size", "2"),
            ("spindle.wait", "busy"),
            ("spindle.topic.A.subgroup", "1024"),
            ("spindle.topic..subgroup", "1"),
            ("spindle.ring.messages", "1"),
        ] {
            let error = read(&[pair]).unwrap_err();
            assert!(matches!(error, Error::BadParameter(_)), "{pair:?}: {error}");
            assert!(error.to_string().contains(pair.0), "{error}");
        }
        let reader = [("spindle.ring.bytes", "4096")].into_iter().collect();
        assert!(read(&[]).unwrap().reader_of(&reader).is_err());
    }
}
