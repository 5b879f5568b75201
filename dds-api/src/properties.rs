//! Properties: what tunes Spindle beyond the standard's policies.
//!
//! | property | on | value | default |
//! |---|---|---|---|
//! | `spindle.subgroups` | participant | subgroups of the domain, from 2 to 4096; the same at all. One without topics costs nothing; topics that share one share rings | 1024 |
//! | `spindle.topic.<name>.subgroup` | participant | pins a topic to a subgroup, from 1; the same at all. A warning is logged by `enable` if the participant has no such topic | by hash of the name |
//! | `spindle.ring.messages` | participant, writer | messages in flight of one sender in a subgroup, 2 to 32768, rounded up to a power of two | 4096 |
//! | `spindle.ring.bytes` | participant, writer | bytes in flight, 128 to 2^34. The ring has memory for the next power of two; a sample takes at most half of that, and those above an eighth of what is in flight may take all of it together. Where the memory is some 3 MiB more than what is in flight, writer and readers do not contend for what their caches hold | 5 MiB, in 8 |
//! | `spindle.join.timeout_ms` | participant | how long `enable` waits to be let in by those who are there | 30000 |
//! | `spindle.failure.limit_ms` | participant | whoever gives no sign of life for so long is taken for failed, from 30; give all the same | 3000 |
//! | `spindle.wait` | participant | `balanced`, `spin` or `block`: how long threads look again before they sleep (the one that polls, those that call listeners and wake streams, one in a WaitSet, one that waits for room): 32 times, yielding between; for some milliseconds; not at all. While a thread polls with `take` or `read`, the polling thread sleeps | `balanced` |
//! | `spindle.doorbell` | participant | `auto`, `futex` or `event`: what it sleeps on | `auto` |
//! | `spindle.prefault` | participant | `true`: what is shared with participants of the same host, all rings among it, has its memory from the moment that it is mapped, so that no sample waits for the kernel to find a page, and where the kernel (6.1) makes huge pages of it within 50 ms, in these. Takes that memory, and a millisecond for each 4 MiB, and those up to 50 ms for each participant that writes, whenever somebody joins or leaves, or more where the kernel has none at hand: what is not there within `spindle.failure.limit_ms` comes while samples flow. Needs Linux 5.14 | `false`: page by page, at the first use |
//! | `spindle.directory` | participant | where the processes of a host meet | the user's runtime directory |
//! | `spindle.listen` | participant | `address[:port]`: the domain is shared with other hosts, which reach this participant there; port 0 is any; so is a port that is taken, which is tried again each second, and listened at besides once it is free. All participants of such a domain have it. Without it no network is used at all | none |
//! | `spindle.contacts` | participant | comma-separated `host:port` of those who are asked on the way into a domain, the same in the same order at all; the first founds it, once a strict majority of them runs. Names are resolved by `enable`. Needs `spindle.listen` | none: a domain is founded by whoever is alone on its host |
//! | `spindle.secret_file` | participant | path of a file with the domain's secret, which nobody but its owner may read: who does not prove to have it is refused. Spaces and line ends at its end do not count. Needs `spindle.listen` | none: everybody is let in |
//! | `spindle.rdma` | participant | `auto`, `off` or `required`: whether samples go to other hosts by RDMA. `auto`: where both have a device and it works, else by TCP; `required`: `enable` fails without a device, and who is on another host and cannot be reached by RDMA is refused. A program needs the cargo feature `verbs` for it. Needs `spindle.listen`, as the four below | `auto` |
//! | `spindle.rdma.device` | participant | name of the RDMA device, as `mlx5_0` | the first with an active port |
//! | `spindle.rdma.port` | participant | number of its port, from 1 | the first active one |
//! | `spindle.rdma.gid_index` | participant | index of the GID, 0 to 255 | RoCE v2 with the address of `spindle.listen`, else with any IPv4 address, else any; 0 on InfiniBand |
//! | `spindle.rdma.mtu` | participant | path MTU: 256, 512, 1024, 2048 or 4096; of two participants the smaller holds | the port's active one |
//! | `spindle.prefer_availability` | participant | `true`: members that are cut off from the majority go on, and the first contact founds without a majority after `spindle.failure.limit_ms`: there may be several groups then, which never become one again. Give all the same | `false` |
//! | `spindle.engine.<switch>` | participant | for measuring alone: `false` turns off one of `send_batching`, `receive_batching`, `delivery_batching`, `bounded_deliveries`, `null_sends`, `batched_upcalls`, `summary_polling`. Without `null_sends` a writer that is silent stops the others of its subgroup | `true` |
//! | `spindle.reader.storage` | participant, reader | `copy`: taken samples are copies; `ring`: they stay where their writer built them until given back | `copy` |
//! | `spindle.reader.untrusted_peers` | participant, reader | `true`: samples are copied before they are looked at, for peers that may alter what they have sent | `false` |
//!
//! Properties of a writer or reader come before those of its participant. A
//! `spindle.` property that is not in this table, or stands on another entity,
//! is refused: nothing is read and ignored. Other names are left alone.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use spindle_dds_core::limits::{
    RING_BYTES_MAX, RING_BYTES_MIN, RING_MESSAGES_MAX, RING_MESSAGES_MIN, SUBGROUPS_MAX,
};
use spindle_dds_core::{EngineConfig, EngineSwitch, SWITCHES, TopicKey};
use spindle_dds_qos::{Properties, Property};
use spindle_dds_transport::RdmaOptions;
use spindle_dds_transport::hybrid::RdmaUse;

use crate::error::{Error, Result};

const SUBGROUPS: &str = "spindle.subgroups";
const TOPIC_PREFIX: &str = "spindle.topic.";
const TOPIC_SUFFIX: &str = ".subgroup";
const RING_MESSAGES: &str = "spindle.ring.messages";
const RING_BYTES: &str = "spindle.ring.bytes";
const FAILURE_LIMIT: &str = "spindle.failure.limit_ms";
const JOIN_TIMEOUT: &str = "spindle.join.timeout_ms";
const WAIT: &str = "spindle.wait";
const DOORBELL: &str = "spindle.doorbell";
const PREFAULT: &str = "spindle.prefault";
const DIRECTORY: &str = "spindle.directory";
pub(crate) const LISTEN: &str = "spindle.listen";
pub(crate) const CONTACTS: &str = "spindle.contacts";
pub(crate) const SECRET_FILE: &str = "spindle.secret_file";
pub(crate) const PREFER_AVAILABILITY: &str = "spindle.prefer_availability";
pub(crate) const RDMA: &str = "spindle.rdma";
const RDMA_DEVICE: &str = "spindle.rdma.device";
const RDMA_PORT: &str = "spindle.rdma.port";
const RDMA_GID_INDEX: &str = "spindle.rdma.gid_index";
const RDMA_MTU: &str = "spindle.rdma.mtu";
/// Those that need another one.
const RDMA_DETAILS: [&str; 4] = [RDMA_DEVICE, RDMA_PORT, RDMA_GID_INDEX, RDMA_MTU];
const ENGINE_PREFIX: &str = "spindle.engine.";
const STORAGE: &str = "spindle.reader.storage";
const UNTRUSTED: &str = "spindle.reader.untrusted_peers";

const MTUS: [(&str, u32); 5] = [
    ("256", 256),
    ("512", 512),
    ("1024", 1024),
    ("2048", 2048),
    ("4096", 4096),
];

const TRUTHS: [(&str, bool); 2] = [("true", true), ("false", false)];

/// So many that unrelated topics hardly ever share a ring: one that is held up
/// does not hold up the others.
const SUBGROUPS_DEFAULT: u64 = 1024;

/// What the properties of a participant say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ParticipantConfig {
    pub(crate) subgroups: u32,
    pub(crate) pins: BTreeMap<String, u32>,
    pub(crate) join_timeout: Duration,
    pub(crate) failure_limit: Duration,
    pub(crate) wait: WaitPolicy,
    pub(crate) doorbell: Doorbell,
    pub(crate) prefault: bool,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) network: Option<NetworkConfig>,
    pub(crate) prefer_availability: bool,
    pub(crate) engine: EngineConfig,
    pub(crate) ring: RingSize,
    pub(crate) reader: ReaderConfig,
}

/// How a participant meets those of other hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NetworkConfig {
    pub(crate) listen: SocketAddr,
    /// Each is a host, or its address, and a port.
    pub(crate) contacts: Vec<String>,
    pub(crate) secret_file: Option<PathBuf>,
    pub(crate) rdma: RdmaUse,
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
        messages: 4096,
        // Of 8 MiB: the rest is more than what the cache of a processor holds.
        bytes: 5 << 20,
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
            SUBGROUPS,
            RING_MESSAGES,
            RING_BYTES,
            JOIN_TIMEOUT,
            FAILURE_LIMIT,
            WAIT,
            DOORBELL,
            PREFAULT,
            DIRECTORY,
            LISTEN,
            CONTACTS,
            SECRET_FILE,
            RDMA,
            RDMA_DEVICE,
            RDMA_PORT,
            RDMA_GID_INDEX,
            RDMA_MTU,
            PREFER_AVAILABILITY,
            STORAGE,
            UNTRUSTED,
        ];
        check_names(properties, "a participant", |name| {
            known.contains(&name) || pinned_topic(name).is_some() || switch(name).is_some()
        })?;
        let subgroups =
            number(properties, SUBGROUPS, 2, SUBGROUPS_MAX as u64)?.unwrap_or(SUBGROUPS_DEFAULT);
        let failure_limit = number(properties, FAILURE_LIMIT, 30, u64::from(u32::MAX))?;
        let join_timeout = number(properties, JOIN_TIMEOUT, 0, u64::from(u32::MAX))?;
        Ok(Self {
            subgroups: subgroups as u32,
            pins: pins(properties, subgroups)?,
            join_timeout: Duration::from_millis(join_timeout.unwrap_or(30_000)),
            failure_limit: Duration::from_millis(failure_limit.unwrap_or(3000)),
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
            prefault: choice(properties, PREFAULT, &TRUTHS)?.unwrap_or_default(),
            directory: properties.get(DIRECTORY).map(PathBuf::from),
            network: NetworkConfig::read(properties)?,
            prefer_availability: choice(properties, PREFER_AVAILABILITY, &TRUTHS)?
                .unwrap_or_default(),
            engine: engine(properties)?,
            ring: RingSize::DEFAULT.read(properties)?,
            reader: ReaderConfig::default().read(properties)?,
        })
    }

    /// The subgroup of a topic: pinned, or by its name. Subgroup 0 is kept free.
    pub(crate) fn subgroup_of(&self, topic: &str) -> u32 {
        let by_name = || 1 + TopicKey::of_name(topic).subgroup(self.subgroups - 1).0;
        self.pins.get(topic).copied().unwrap_or_else(by_name)
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

impl NetworkConfig {
    fn read(properties: &Properties) -> Result<Option<Self>> {
        let Some(text) = properties.get(LISTEN) else {
            let mut needy = [CONTACTS, SECRET_FILE, RDMA]
                .into_iter()
                .chain(RDMA_DETAILS);
            return match needy.find(|name| properties.get(name).is_some()) {
                None => Ok(None),
                Some(name) => Err(Error::BadParameter(format!(
                    "property {name} has no effect without {LISTEN}: say where this participant is \
                     reached from other hosts"
                ))),
            };
        };
        let listen = text.trim();
        let address = listen.parse::<IpAddr>().map(|address| (address, 0).into());
        let listen = address.or_else(|_| listen.parse()).map_err(|_| {
            Error::BadParameter(format!(
                "property {LISTEN} is {text:?}; it has to be an address of this host, as 10.0.0.1, \
                 10.0.0.1:7400 or [fd00::1]:7400"
            ))
        })?;
        let contacts = properties.get(CONTACTS).map(contacts).transpose()?;
        Ok(Some(Self {
            listen,
            contacts: contacts.unwrap_or_default(),
            secret_file: properties.get(SECRET_FILE).map(PathBuf::from),
            rdma: rdma(properties)?,
        }))
    }
}

fn rdma(properties: &Properties) -> Result<RdmaUse> {
    let options = RdmaOptions {
        device: properties.get(RDMA_DEVICE).map(|it| it.trim().to_owned()),
        port: number(properties, RDMA_PORT, 1, 255)?.map(|port| port as u8),
        gid_index: number(properties, RDMA_GID_INDEX, 0, 255)?.map(|index| index as u8),
        mtu: choice(properties, RDMA_MTU, &MTUS)?,
    };
    type Use = fn(RdmaOptions) -> RdmaUse;
    let uses: [(&str, Use); 3] = [
        ("auto", RdmaUse::Auto),
        ("off", |_| RdmaUse::Off),
        ("required", RdmaUse::Required),
    ];
    let chosen = choice(properties, RDMA, &uses)?.unwrap_or(RdmaUse::Auto);
    let chosen = chosen(options);
    let detail = RDMA_DETAILS
        .into_iter()
        .find(|name| properties.get(name).is_some());
    match (&chosen, detail) {
        (RdmaUse::Off, Some(detail)) => Err(Error::BadParameter(format!(
            "property {detail} has no effect where {RDMA} is off"
        ))),
        _ => Ok(chosen),
    }
}

fn contacts(text: &str) -> Result<Vec<String>> {
    let contact = |item: &str| {
        let item = item.trim();
        let parts = item.rsplit_once(':');
        let good = parts.is_some_and(|(host, port)| {
            let whole = !host.contains(':') || host.starts_with('[') && host.ends_with(']');
            !host.is_empty() && whole && port.parse::<u16>().is_ok_and(|port| port > 0)
        });
        good.then(|| item.to_owned()).ok_or_else(|| {
            Error::BadParameter(format!(
                "property {CONTACTS} has the item {item:?}; each has to be host:port, with commas \
                 between"
            ))
        })
    };
    text.split(',').map(contact).collect()
}

impl ReaderConfig {
    fn read(self, properties: &Properties) -> Result<Self> {
        let storages = [("copy", Storage::Copy), ("ring", Storage::Ring)];
        Ok(Self {
            storage: choice(properties, STORAGE, &storages)?.unwrap_or(self.storage),
            untrusted: choice(properties, UNTRUSTED, &TRUTHS)?.unwrap_or(self.untrusted),
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

/// What a property switches in the engine.
fn switch(name: &str) -> Option<&'static EngineSwitch> {
    let name = name.strip_prefix(ENGINE_PREFIX)?;
    SWITCHES.iter().find(|switch| switch.name == name)
}

/// The property that switches an optimisation of the engine off, for measuring; `None` if
/// there is no such switch.
pub fn engine_switch(name: &str) -> Option<String> {
    let known = engine_switches().any(|switch| switch == name);
    known.then(|| format!("{ENGINE_PREFIX}{name}"))
}

/// The names of all switches of the engine.
pub fn engine_switches() -> impl Iterator<Item = &'static str> {
    SWITCHES.iter().map(|switch| switch.name)
}

fn engine(properties: &Properties) -> Result<EngineConfig> {
    let mut engine = EngineConfig::SPINDLE;
    for property in properties {
        if let Some(switch) = switch(&property.name)
            && let Some(on) = choice(properties, &property.name, &TRUTHS)?
        {
            switch.set(&mut engine, on);
        }
    }
    Ok(engine)
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
        assert_eq!(config.subgroups, 1024);
        assert_eq!(config.failure_limit, Duration::from_secs(3));
        assert_eq!(config.ring, RingSize::DEFAULT);
        let config = read(&[
            ("spindle.failure.limit_ms", "500"),
            ("spindle.topic.A.B.subgroup", "3"),
            ("spindle.wait", "block"),
            ("spindle.ring.bytes", "100000"),
            ("vendor.other", "x"),
        ])
        .unwrap();
        assert_eq!(config.failure_limit, Duration::from_millis(500));
        assert_eq!(config.pins.get("A.B"), Some(&3));
        assert_eq!(config.wait, WaitPolicy::Block);
        assert_eq!(config.ring.bytes, 100_000);
        let writer = [("spindle.ring.messages", "64")].into_iter().collect();
        assert_eq!(config.ring_of(&writer).unwrap().messages, 64);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for pair in [
            ("spindle.failure.limit_ms", "0"),
            ("spindle.failure.limit_ms", "long"),
            ("spindle.group.size", "2"),
            ("spindle.wait", "busy"),
            ("spindle.topic.A.subgroup", "1024"),
            ("spindle.topic..subgroup", "1"),
            ("spindle.ring.messages", "1"),
            ("spindle.engine.null_sends", "off"),
            ("spindle.engine.nulls", "true"),
        ] {
            let error = read(&[pair]).unwrap_err();
            assert!(matches!(error, Error::BadParameter(_)), "{pair:?}: {error}");
            assert!(error.to_string().contains(pair.0), "{error}");
        }
        let reader = [("spindle.ring.bytes", "4096")].into_iter().collect();
        assert!(read(&[]).unwrap().reader_of(&reader).is_err());
    }

    #[test]
    fn switches_of_the_engine() {
        assert_eq!(read(&[]).unwrap().engine, EngineConfig::SPINDLE);
        let off: Vec<(String, &str)> = SWITCHES
            .iter()
            .map(|switch| (format!("{ENGINE_PREFIX}{}", switch.name), "false"))
            .collect();
        let all: Vec<(&str, &str)> = off.iter().map(|(name, off)| (&**name, *off)).collect();
        assert_eq!(read(&all).unwrap().engine, EngineConfig::BASELINE);
        let one = read(&[("spindle.engine.null_sends", "false")]).unwrap();
        let expected = EngineConfig {
            null_sends: false,
            ..EngineConfig::SPINDLE
        };
        assert_eq!(one.engine, expected);
        let table = include_str!("properties.rs");
        let row = table
            .lines()
            .find(|line| line.starts_with("//! | `spindle.engine."));
        for switch in SWITCHES {
            let name = format!("`{}`", switch.name);
            assert!(row.unwrap().contains(&name), "the table lacks {name}");
        }
    }

    #[test]
    fn a_place_in_the_network() {
        assert_eq!(read(&[]).unwrap().network, None);
        let contacts = "10.0.0.1:7400, spine.example:7400,[fd00::1]:9";
        for (listen, expected) in [
            ("10.0.0.1", "10.0.0.1:0"),
            (" 0.0.0.0:7400", "0.0.0.0:7400"),
            ("fd00::1", "[fd00::1]:0"),
            ("[fd00::1]:7400", "[fd00::1]:7400"),
        ] {
            let config = read(&[(LISTEN, listen), (CONTACTS, contacts)]).unwrap();
            let network = config.network.unwrap();
            assert_eq!(network.listen, expected.parse().unwrap());
            let known = ["10.0.0.1:7400", "spine.example:7400", "[fd00::1]:9"];
            assert_eq!(network.contacts, known);
            assert_eq!(network.rdma, RdmaUse::Auto(RdmaOptions::default()));
            assert!(!config.prefer_availability);
        }
    }

    #[test]
    fn rdma_as_it_is_asked_for() {
        let rdma = |pairs: &[(&str, &str)]| {
            let pairs = [&[(LISTEN, "10.0.0.1")], pairs].concat();
            read(&pairs).unwrap().network.unwrap().rdma
        };
        assert_eq!(rdma(&[(RDMA, "off")]), RdmaUse::Off);
        let options = RdmaOptions {
            device: Some("mlx5_0".into()),
            port: Some(2),
            gid_index: Some(3),
            mtu: Some(4096),
        };
        let details = [
            (RDMA, "required"),
            (RDMA_DEVICE, "mlx5_0"),
            (RDMA_PORT, "2"),
            (RDMA_GID_INDEX, "3"),
            (RDMA_MTU, "4096"),
        ];
        assert_eq!(rdma(&details), RdmaUse::Required(options.clone()));
        assert_eq!(rdma(&details[1..]), RdmaUse::Auto(options));
    }

    #[test]
    fn a_place_in_no_network_is_refused() {
        let here = (LISTEN, "10.0.0.1:7400");
        for (pairs, wanted) in [
            (&[(LISTEN, "here")][..], [LISTEN, "here"]),
            (&[(CONTACTS, "10.0.0.1:7400")], [CONTACTS, LISTEN]),
            (&[(SECRET_FILE, "secret")], [SECRET_FILE, LISTEN]),
            (&[(RDMA, "auto")], [RDMA, LISTEN]),
            (&[(RDMA_PORT, "1")], [RDMA_PORT, LISTEN]),
            (&[here, (RDMA, "yes")], [RDMA, "required"]),
            (&[here, (RDMA_PORT, "0")], [RDMA_PORT, "1 to 255"]),
            (&[here, (RDMA_GID_INDEX, "256")], [RDMA_GID_INDEX, "255"]),
            (&[here, (RDMA_MTU, "1500")], [RDMA_MTU, "1024"]),
            (
                &[here, (RDMA, "off"), (RDMA_DEVICE, "a")],
                [RDMA_DEVICE, "off"],
            ),
            (&[here, (CONTACTS, "a:1,,b:2")], [CONTACTS, "\"\""]),
            (&[here, (CONTACTS, "a:1,b")], [CONTACTS, "\"b\""]),
            (&[here, (CONTACTS, "a:0")], [CONTACTS, "\"a:0\""]),
            (&[here, (CONTACTS, "fd00::1:7400")], [CONTACTS, "fd00"]),
            (
                &[(PREFER_AVAILABILITY, "yes")],
                [PREFER_AVAILABILITY, "true"],
            ),
        ] {
            let error = read(pairs).unwrap_err();
            assert!(matches!(error, Error::BadParameter(_)), "{error}");
            let text = error.to_string();
            assert!(wanted.iter().all(|it| text.contains(it)), "{text}");
        }
    }
}
