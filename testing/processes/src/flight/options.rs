//! The command line.

use std::ffi::OsString;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;

use super::fault::FaultOptions;
use super::journal;
use crate::hosts::Host;

/// The options of `processes flight`.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// How fast the recording is replayed: realtime, xN, or max.
    #[arg(long, default_value = "x100")]
    pub(super) rate: Rate,
    /// Number of feed processes, among which the frames are dealt out.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=16))]
    pub(super) feeds: u16,
    /// Number of display processes.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=32))]
    pub(super) displays: u16,
    /// QoS profile of all participants.
    #[arg(long, default_value = "Flight::Atomic")]
    pub(super) profile: String,
    /// File of QoS profiles.
    #[arg(long, default_value = QOS_FILE)]
    pub(super) qos: PathBuf,
    /// The recording, lines of `unix_time,beast_frame_hex`, gzipped or not.
    #[arg(long, default_value = RECORDING)]
    pub(super) recording: PathBuf,
    /// Stop after this many frames.
    #[arg(long, default_value_t = usize::MAX, hide_default_value = true)]
    pub(super) frames: usize,
    /// Domain of the run, which no other group may use [default: one in a directory of the run's
    /// own].
    #[arg(long)]
    pub(super) domain: Option<u32>,
    /// Number of runs: one line of JSON for each, and one for all.
    #[arg(long, default_value_t = 1)]
    pub(super) repeat: u32,

    #[command(flatten)]
    pub(super) fault: FaultOptions,

    /// Address, or address and port, at which the participants are reached from other hosts
    /// [default: they are not reached].
    #[arg(long)]
    pub(super) listen: Option<String>,
    /// Contacts of a domain on several hosts, as `HOST:PORT,...`.
    #[arg(long, requires = "listen")]
    pub(super) contacts: Option<String>,
    /// Addresses of this host, among which the processes are dealt out. Each stands for a host:
    /// its participants share memory among themselves only, and reach the others by the network.
    #[arg(long, value_name = "ADDRESS,...", value_delimiter = ',')]
    #[arg(conflicts_with_all = ["listen", "contacts", "domain", "role"])]
    pub(super) hosts: Vec<IpAddr>,
    /// RDMA device of each of the hosts, or of this one; then samples go to other hosts by RDMA
    /// or not at all [default: by RDMA where it is available].
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(super) devices: Vec<String>,
    /// Run only one process of the run, `feed:N` or `display:N`; the others are started elsewhere
    /// with the same options.
    #[arg(long)]
    pub(super) role: Option<Role>,
    /// Process id of the launcher, with which this process ends.
    #[arg(long, hide = true)]
    pub(super) parent: Option<u32>,
    /// Directory in which the participants of a host meet [default: that of the user].
    #[arg(long, requires = "role")]
    pub(super) directory: Option<PathBuf>,
    /// A feed repeats the recording until its standard input ends.
    #[arg(long, hide = true)]
    pub(super) endless: bool,
    /// File of a display's journal.
    #[arg(long, hide = true)]
    pub(super) journal: Option<PathBuf>,
    /// Directory with the logs of the displays, which a PERSISTENT profile has.
    #[arg(long, hide = true)]
    pub(super) logs: Option<PathBuf>,
}

impl Options {
    /// The arguments of one process of a run, on this host if the run has several. Without a
    /// domain the participants meet in this directory, or that of the host.
    pub(super) fn arguments(
        &self,
        role: Role,
        directory: &Path,
        host: Option<&Host>,
    ) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["flight".into()];
        let mut option = |name: &str, value: OsString| {
            arguments.push(name.into());
            arguments.push(value);
        };
        option("--role", role.to_string().into());
        option("--parent", std::process::id().to_string().into());
        match self.domain {
            Some(domain) => option("--domain", domain.to_string().into()),
            None => {
                let directory = host.map_or(directory, |host| &host.directory);
                option("--directory", directory.into());
            }
        }
        option("--rate", self.rate.to_string().into());
        option("--feeds", self.feeds.to_string().into());
        option("--displays", self.displays.to_string().into());
        option("--profile", self.profile.clone().into());
        option("--qos", self.qos.clone().into());
        option("--recording", self.recording.clone().into());
        option("--frames", self.frames.to_string().into());
        let (listen, contacts, device) = match host {
            Some(host) => (
                Some(&host.listen),
                Some(&host.contact),
                host.device.as_ref(),
            ),
            None => {
                let device = self.devices.first();
                (self.listen.as_ref(), self.contacts.as_ref(), device)
            }
        };
        for (name, value) in [
            ("--listen", listen),
            ("--contacts", contacts),
            ("--devices", device),
        ] {
            if let Some(value) = value {
                option(name, value.into());
            }
        }
        option("--logs", directory.join("logs").into());
        if let Some(limit_ms) = self.fault.limit_ms {
            option("--limit-ms", limit_ms.to_string().into());
        }
        if self.fault.fault().is_some() {
            match role {
                Role::Feed(_) => arguments.push("--endless".into()),
                Role::Display(index) => {
                    option("--journal", journal::path(directory, index).into());
                }
            }
        }
        arguments
    }
}

/// How fast the recording is replayed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Rate {
    /// As a multiple of the rate at which it was received.
    Times(f64),
    /// As fast as samples can be published.
    Max,
}

impl FromStr for Rate {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let times = match text {
            "realtime" => 1.0,
            "max" => return Ok(Self::Max),
            _ => text
                .strip_prefix('x')
                .and_then(|times| times.parse().ok())
                .filter(|times: &f64| times.is_finite() && *times > 0.0)
                .ok_or("a rate is realtime, xN with N above 0, or max")?,
        };
        Ok(Self::Times(times))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Times(times) => write!(f, "x{times}"),
            Self::Max => f.write_str("max"),
        }
    }
}

/// The role of a process, with its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    Feed(u16),
    Display(u16),
}

impl FromStr for Role {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let index = |index: &str| index.parse().map_err(|_| "a role ends in its number");
        match text.split_once(':') {
            Some(("feed", number)) => Ok(Self::Feed(index(number)?)),
            Some(("display", number)) => Ok(Self::Display(index(number)?)),
            _ => Err("a role is feed:N or display:N"),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Feed(index) => write!(f, "feed:{index}"),
            Self::Display(index) => write!(f, "display:{index}"),
        }
    }
}

/// The recording that the examples use too.
pub(super) const RECORDING: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../examples/data/long_flight_60k.csv.gz"
);
const QOS_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/qos/flight.xml");

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::Command;

    #[derive(Parser)]
    struct Arguments {
        #[command(subcommand)]
        command: Command,
    }

    fn parse(arguments: impl IntoIterator<Item = OsString>) -> Options {
        let program = std::iter::once("processes".into());
        match Arguments::parse_from(program.chain(arguments)).command {
            Command::Flight(options) => *options,
            command => panic!("{command:?}"),
        }
    }

    #[test]
    fn rates_are_parsed() {
        assert_eq!("realtime".parse(), Ok(Rate::Times(1.0)));
        assert_eq!("x2.5".parse(), Ok(Rate::Times(2.5)));
        assert_eq!("max".parse(), Ok(Rate::Max));
        for malformed in ["", "x", "x0", "x-1", "xinf", "100", "fast"] {
            assert!(malformed.parse::<Rate>().is_err(), "{malformed}");
        }
    }

    #[test]
    fn a_process_is_told_its_host() {
        let options = ["flight", "--hosts=10.0.0.1,10.0.0.2", "--devices=a,b"];
        let options = parse(options.map(OsString::from));
        let host = Host {
            directory: "/somewhere/host-1".into(),
            listen: "10.0.0.2:7400".into(),
            contact: "10.0.0.1:7400".into(),
            device: Some("b".into()),
            namespace: None,
        };
        let arguments = options.arguments(Role::Feed(0), Path::new("/somewhere"), Some(&host));
        let told = parse(arguments);
        assert_eq!(told.directory, Some(host.directory));
        assert_eq!(told.listen, Some(host.listen));
        assert_eq!(told.contacts, Some(host.contact));
        assert_eq!(told.devices, ["b"]);
    }

    #[test]
    fn a_process_is_told_all_options() {
        let options = [
            "flight",
            "--rate=x7",
            "--kill=display:1",
            "--limit-ms=250",
            "--listen=10.0.0.1",
            "--contacts=a:7400,b:7400",
        ];
        let options = parse(options.map(OsString::from));
        let arguments = options.arguments(Role::Display(1), Path::new("/somewhere"), None);
        let told = parse(arguments);
        assert_eq!(told.role, Some(Role::Display(1)));
        assert_eq!(told.directory.as_deref(), Some(Path::new("/somewhere")));
        assert_eq!(told.rate, options.rate);
        let network = |options: &Options| (options.listen.clone(), options.contacts.clone());
        assert_eq!(network(&told), network(&options));
        assert!(told.contacts.is_some());
        assert_eq!(told.fault.limit_ms, Some(250));
        let journal = Path::new("/somewhere/display-1.journal");
        assert_eq!(told.journal.as_deref(), Some(journal));
        let sizes = |options: &Options| (options.feeds, options.displays);
        assert_eq!(sizes(&told), sizes(&options));
    }
}
