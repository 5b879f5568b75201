//! Properties: what tunes Spindle beyond the standard's policies.
//!
//! docs/configuration.md lists them all, with values, defaults and meaning. Properties of a writer
//! or reader take precedence over those of its participant. A `spindle.` property that is unknown,
//! or stands on another entity, is refused: no property is read and ignored. Names with another
//! prefix are left alone.

mod log;
mod refusals;
mod table;
mod threads;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use spindle_dds_core::limits::{
    RING_BYTES_MAX, RING_BYTES_MIN, RING_MESSAGES_MAX, RING_MESSAGES_MIN, SUBGROUPS_MAX,
};
use spindle_dds_core::{EngineConfig, EngineSwitch, SWITCHES, TopicKey};
use spindle_dds_qos::{Properties, did_you_mean};
use spindle_dds_transport::RdmaOptions;
use spindle_dds_transport::hybrid::{EncryptionUse, RdmaUse};

pub(crate) use self::log::{LogAck, LogConfig, LogDeliver, LogSync};
pub(crate) use self::refusals::{placed, refusals};
use self::table::{On, PROPERTIES, PropertyRow};
pub(crate) use self::threads::ThreadsConfig;
use crate::error::{Error, Result};

const SUBGROUPS: &str = "spindle.subgroups";
const TOPIC_PREFIX: &str = "spindle.topic.";
const TOPIC_SUFFIX: &str = ".subgroup";
const RING_MESSAGES: &str = "spindle.ring.messages";
const RING_BYTES: &str = "spindle.ring.bytes";
const FAILURE_LIMIT: &str = "spindle.failure.limit_ms";
const FAILURE_REPORT: &str = "spindle.failure.report";
const JOIN_TIMEOUT: &str = "spindle.join.timeout_ms";
const REJOIN: &str = "spindle.rejoin";
const WAIT: &str = "spindle.wait";
const DOORBELL: &str = "spindle.doorbell";
const PREFAULT: &str = "spindle.prefault";
const DIRECTORY: &str = "spindle.directory";
pub(crate) const LISTEN: &str = "spindle.listen";
pub(crate) const CONTACTS: &str = "spindle.contacts";
pub(crate) const SECRET_FILE: &str = "spindle.secret_file";
pub(crate) const ACCEPTED_SECRET_FILE: &str = "spindle.accepted_secret_file";
const ENCRYPTION: &str = "spindle.encryption";
pub(crate) const PREFER_AVAILABILITY: &str = "spindle.prefer_availability";
pub(crate) const RDMA: &str = "spindle.rdma";
const RDMA_DEVICE: &str = "spindle.rdma.device";
const RDMA_PORT: &str = "spindle.rdma.port";
const RDMA_GID_INDEX: &str = "spindle.rdma.gid_index";
const RDMA_MTU: &str = "spindle.rdma.mtu";
/// Properties that have no effect without `spindle.rdma`.
const RDMA_DETAILS: [&str; 4] = [RDMA_DEVICE, RDMA_PORT, RDMA_GID_INDEX, RDMA_MTU];
const HISTORY_BYTES: &str = "spindle.writer.history_bytes";
const ENGINE_PREFIX: &str = "spindle.engine.";
const STORAGE: &str = "spindle.reader.storage";
const UNTRUSTED: &str = "spindle.reader.untrusted_peers";
const ASIDE_BYTES: &str = "spindle.history.aside_bytes";

const MTUS: [(&str, u32); 5] = [
    ("256", 256),
    ("512", 512),
    ("1024", 1024),
    ("2048", 2048),
    ("4096", 4096),
];

const TRUTHS: [(&str, bool); 2] = [("true", true), ("false", false)];

/// Many, so that unrelated topics rarely share a ring: a topic that is held up does not hold up
/// the others.
const SUBGROUPS_DEFAULT: u64 = 1024;

/// As much as most rings have in flight.
const HISTORY_BYTES_DEFAULT: u64 = 4 << 20;

/// What arrives in some seconds at a few MiB a second.
const ASIDE_BYTES_DEFAULT: usize = 16 << 20;

/// Room for some small samples at least, so that not each one waits in its ring.
const ASIDE_BYTES_MIN: u64 = 64 << 10;

/// The properties of a participant.
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
    /// Whether the participant enters its group again by itself when it has lost it.
    pub(crate) rejoin: bool,
    /// Whether the end of its group is written to stderr.
    pub(crate) reports_failure: bool,
    pub(crate) engine: EngineConfig,
    pub(crate) ring: RingSize,
    /// Most bytes of samples that wait in a writer to be sent.
    pub(crate) history_bytes: u64,
    pub(crate) reader: ReaderConfig,
    pub(crate) log: LogConfig,
    pub(crate) threads: ThreadsConfig,
}

/// How a participant reaches those of other hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NetworkConfig {
    pub(crate) listen: SocketAddr,
    /// `host:port` each, in the order of the property.
    pub(crate) contacts: Vec<String>,
    pub(crate) secret_file: Option<PathBuf>,
    pub(crate) accepted_secret_file: Option<PathBuf>,
    pub(crate) encryption: EncryptionUse,
    pub(crate) rdma: RdmaUse,
}

/// Requested ring sizes: messages and bytes in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RingSize {
    pub(crate) messages: u32,
    pub(crate) bytes: u64,
}

/// How a reader keeps samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReaderConfig {
    pub(crate) storage: Storage,
    pub(crate) untrusted: bool,
    /// Most bytes of live samples that are copied aside while the reader awaits history.
    pub(crate) aside_bytes: usize,
}

/// Where samples are that have been taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Storage {
    #[default]
    Copy,
    Ring,
}

/// How long a thread looks again before it sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum WaitPolicy {
    #[default]
    Balanced,
    Spin,
    Block,
}

/// What threads of a participant sleep on.
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
        // In a ring of 8 MiB: the rest is larger than the caches of a processor.
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
        check_names(properties, "a participant", |name, _| {
            !name.starts_with(ENGINE_PREFIX) || switch(name).is_some()
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
            rejoin: choice(properties, REJOIN, &[("auto", true), ("off", false)])?.unwrap_or(true),
            reports_failure: choice(
                properties,
                FAILURE_REPORT,
                &[("stderr", true), ("off", false)],
            )?
            .unwrap_or(true),
            engine: engine(properties)?,
            ring: RingSize::DEFAULT.read(properties)?,
            history_bytes: history_bytes(properties)?.unwrap_or(HISTORY_BYTES_DEFAULT),
            reader: ReaderConfig::default().read(properties)?,
            log: LogConfig::read(properties)?,
            threads: ThreadsConfig::read(properties)?,
        })
    }

    /// The subgroup of a topic: pinned, or by its name. Subgroup 0 is kept free.
    pub(crate) fn subgroup_of(&self, topic: &str) -> u32 {
        let by_name = || 1 + TopicKey::of_name(topic).subgroup(self.subgroups - 1).0;
        self.pins.get(topic).copied().unwrap_or_else(by_name)
    }

    /// Ring sizes for a writer with these properties.
    pub(crate) fn ring_of(&self, writer: &Properties) -> Result<RingSize> {
        check_names(writer, "a writer", |_, on| on == On::Writer)?;
        self.ring.read(writer)
    }

    /// Most bytes of samples that wait in a writer with these properties to be sent.
    pub(crate) fn history_bytes_of(&self, writer: &Properties) -> Result<usize> {
        let bytes = history_bytes(writer)?.unwrap_or(self.history_bytes);
        Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    /// How a reader with these properties keeps samples.
    pub(crate) fn reader_of(&self, reader: &Properties) -> Result<ReaderConfig> {
        check_names(reader, "a reader", |_, on| on == On::Reader)?;
        self.reader.read(reader)
    }

    /// Topics have no `spindle.` properties.
    pub(crate) fn check_topic(properties: &Properties) -> Result<()> {
        check_names(properties, "a topic", |_, _| false)
    }
}

impl NetworkConfig {
    fn read(properties: &Properties) -> Result<Option<Self>> {
        let Some(text) = properties.get(LISTEN) else {
            let mut needy = [
                CONTACTS,
                SECRET_FILE,
                ACCEPTED_SECRET_FILE,
                ENCRYPTION,
                RDMA,
            ]
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
        let encryption = encryption(properties)?;
        Ok(Some(Self {
            listen,
            contacts: contacts.unwrap_or_default(),
            secret_file: properties.get(SECRET_FILE).map(PathBuf::from),
            accepted_secret_file: properties.get(ACCEPTED_SECRET_FILE).map(PathBuf::from),
            encryption,
            rdma: rdma(properties, encryption)?,
        }))
    }
}

fn encryption(properties: &Properties) -> Result<EncryptionUse> {
    let uses = [
        ("auto", EncryptionUse::Auto),
        ("off", EncryptionUse::Off),
        ("required", EncryptionUse::Required),
    ];
    let chosen = choice(properties, ENCRYPTION, &uses)?.unwrap_or_default();
    let has_secret = properties.get(SECRET_FILE).is_some();
    if chosen == EncryptionUse::Required && !has_secret {
        return Err(Error::BadParameter(format!(
            "property {ENCRYPTION} is required, and there is no secret to make keys of: set \
             {SECRET_FILE}"
        )));
    }
    if properties.get(ACCEPTED_SECRET_FILE).is_some() && !has_secret {
        return Err(Error::BadParameter(format!(
            "property {ACCEPTED_SECRET_FILE} has no effect without {SECRET_FILE}, the secret that \
             this participant itself has"
        )));
    }
    Ok(chosen)
}

fn rdma(properties: &Properties, encryption: EncryptionUse) -> Result<RdmaUse> {
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
        (RdmaUse::Required(_), _) if encryption == EncryptionUse::Required => {
            Err(Error::BadParameter(format!(
                "properties {RDMA} and {ENCRYPTION} are both required, and what goes by RDMA is not \
                 encrypted: leave one of them to auto"
            )))
        }
        (_, Some(detail)) if encryption == EncryptionUse::Required => {
            Err(Error::BadParameter(format!(
                "property {detail} has no effect where {ENCRYPTION} is required: what goes by RDMA \
                 is not encrypted"
            )))
        }
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

impl Default for ReaderConfig {
    fn default() -> Self {
        Self {
            storage: Storage::default(),
            untrusted: false,
            aside_bytes: ASIDE_BYTES_DEFAULT,
        }
    }
}

impl ReaderConfig {
    fn read(self, properties: &Properties) -> Result<Self> {
        let storages = [("copy", Storage::Copy), ("ring", Storage::Ring)];
        let aside_bytes = number(properties, ASIDE_BYTES, ASIDE_BYTES_MIN, RING_BYTES_MAX)?
            .map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        Ok(Self {
            storage: choice(properties, STORAGE, &storages)?.unwrap_or(self.storage),
            untrusted: choice(properties, UNTRUSTED, &TRUTHS)?.unwrap_or(self.untrusted),
            aside_bytes: aside_bytes.unwrap_or(self.aside_bytes),
        })
    }
}

/// Refuses properties that are not in the table, or that `is_taken` does not take.
fn check_names(
    properties: &Properties,
    entity: &str,
    is_taken: impl Fn(&str, On) -> bool,
) -> Result<()> {
    let is_known = |name: &str| {
        let row = PROPERTIES.iter().find(|row| row.is(name));
        row.is_some_and(|row| is_taken(name, row.on))
    };
    let mut ours = properties
        .iter()
        .filter(|property| property.name.starts_with("spindle."));
    match ours.find(|property| !is_known(&property.name)) {
        Some(property) => {
            let row = PROPERTIES.iter().find(|row| row.is(&property.name));
            let why = match row.map(|row| row.on) {
                Some(On::Participant) => "; it is one of participants".to_owned(),
                Some(On::Writer) => "; it is one of participants and writers".to_owned(),
                Some(On::Reader) => "; it is one of participants and readers".to_owned(),
                None => did_you_mean(&property.name, names().iter().map(String::as_str)),
            };
            Err(Error::BadParameter(format!(
                "{entity} has no property {:?}{why}; docs/configuration.md lists them",
                property.name
            )))
        }
        None => Ok(()),
    }
}

/// The names of all properties; without those that have the name of a topic in them.
fn names() -> Vec<String> {
    let rows = PROPERTIES.iter().map(|row| row.name);
    let whole = rows.filter(|name| !name.contains('<')).map(str::to_owned);
    let switches = engine_switches().map(|name| format!("{ENGINE_PREFIX}{name}"));
    whole.chain(switches).chain(threads::names()).collect()
}

impl PropertyRow {
    /// Whether this row is of that name.
    fn is(&self, name: &str) -> bool {
        match self.name.split_once('<') {
            None => self.name == name,
            Some((prefix, _)) if prefix == TOPIC_PREFIX => pinned_topic(name).is_some(),
            Some((prefix, rest)) if prefix == threads::PREFIX => {
                let ending = rest.split_once('>').map_or("", |(_, ending)| ending);
                threads::is_property(name, ending)
            }
            Some((prefix, _)) => name.starts_with(prefix),
        }
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

/// The engine switch that a property sets.
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

fn history_bytes(properties: &Properties) -> Result<Option<u64>> {
    number(properties, HISTORY_BYTES, 0, RING_BYTES_MAX)
}

fn number(properties: &Properties, name: &str, least: u64, most: u64) -> Result<Option<u64>> {
    let Some(text) = properties.get(name) else {
        return Ok(None);
    };
    match text.trim().parse() {
        Ok(value) if (least..=most).contains(&value) => Ok(Some(value)),
        _ => Err(Error::BadParameter(format!(
            "property {name} is {text:?}; it has to be a number{} from {least} to {most}",
            unit(name)
        ))),
    }
}

/// The unit that the name of a property says.
fn unit(name: &str) -> &'static str {
    match name.ends_with("_ms") {
        true => " of milliseconds, without a unit,",
        false => "",
    }
}

fn integer(properties: &Properties, name: &str, least: i32, most: i32) -> Result<Option<i32>> {
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
    fn aside_bytes_are_those_of_the_reader_else_of_the_participant() {
        let of_none = Properties::default();
        let aside = |config: &ParticipantConfig, reader: &Properties| {
            config.reader_of(reader).map(|reader| reader.aside_bytes)
        };
        assert_eq!(aside(&read(&[]).unwrap(), &of_none), Ok(16 << 20));
        let config = read(&[("spindle.history.aside_bytes", "65536")]).unwrap();
        assert_eq!(aside(&config, &of_none), Ok(65_536));
        let of_reader = [("spindle.history.aside_bytes", "70000")];
        assert_eq!(aside(&config, &of_reader.into_iter().collect()), Ok(70_000));
        let too_few = [("spindle.history.aside_bytes", "65535")];
        let error = aside(&config, &too_few.into_iter().collect()).unwrap_err();
        assert!(error.to_string().contains("from 65536 to"), "{error}");
    }

    #[test]
    fn unknown_names_and_wrong_values_are_refused() {
        for pair in [
            ("spindle.failure.limit_ms", "0"),
            ("spindle.failure.limit_ms", "long"),
            ("spindle.group.size", "2"),
            ("spindle.wait", "busy"),
            ("spindle.threads.main.policy", "fifo"),
            ("spindle.threads.poll", "fifo"),
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
    fn engine_switches_are_read() {
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
    }

    #[test]
    fn the_network_is_configured_by_listen_and_contacts() {
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
    fn rdma_properties_are_read() {
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
    fn encryption_properties_are_read() {
        let network = |pairs: &[(&str, &str)]| {
            let pairs = [&[(LISTEN, "10.0.0.1")], pairs].concat();
            read(&pairs).unwrap().network.unwrap()
        };
        assert_eq!(network(&[]).encryption, EncryptionUse::Auto);
        assert_eq!(
            network(&[(ENCRYPTION, "off")]).encryption,
            EncryptionUse::Off
        );
        let secrets = [
            (SECRET_FILE, "mine"),
            (ACCEPTED_SECRET_FILE, "other"),
            (ENCRYPTION, "required"),
        ];
        let network = network(&secrets);
        assert_eq!(network.encryption, EncryptionUse::Required);
        assert_eq!(network.secret_file, Some("mine".into()));
        assert_eq!(network.accepted_secret_file, Some("other".into()));
        assert_eq!(network.rdma, RdmaUse::Auto(RdmaOptions::default()));
    }

    #[test]
    fn wrong_network_properties_are_refused() {
        let here = (LISTEN, "10.0.0.1:7400");
        for (pairs, wanted) in [
            (&[(LISTEN, "here")][..], [LISTEN, "here"]),
            (&[(CONTACTS, "10.0.0.1:7400")], [CONTACTS, LISTEN]),
            (&[(SECRET_FILE, "secret")], [SECRET_FILE, LISTEN]),
            (&[(ENCRYPTION, "off")], [ENCRYPTION, LISTEN]),
            (
                &[(ACCEPTED_SECRET_FILE, "b")],
                [ACCEPTED_SECRET_FILE, LISTEN],
            ),
            (
                &[here, (ACCEPTED_SECRET_FILE, "b")],
                [ACCEPTED_SECRET_FILE, SECRET_FILE],
            ),
            (&[here, (ENCRYPTION, "yes")], [ENCRYPTION, "required"]),
            (&[here, (ENCRYPTION, "required")], [ENCRYPTION, SECRET_FILE]),
            (
                &[
                    here,
                    (SECRET_FILE, "a"),
                    (ENCRYPTION, "required"),
                    (RDMA, "required"),
                ],
                [ENCRYPTION, RDMA],
            ),
            (
                &[
                    here,
                    (SECRET_FILE, "a"),
                    (ENCRYPTION, "required"),
                    (RDMA_MTU, "512"),
                ],
                [ENCRYPTION, RDMA_MTU],
            ),
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
