//! The command line.

use std::ffi::OsString;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Parser;

use crate::fault::FaultOptions;
use crate::hosts::Place;
use crate::journal;

/// A real flight on several displays: feeds decode a recording of Mode S frames and
/// publish what they learn; displays subscribe, and prove that all of them saw the
/// same samples in the same order.
#[derive(Debug, Clone, Parser)]
#[command(name = "flight_state", version)]
pub(crate) struct Options {
    /// How fast the recording runs: realtime, xN, or max.
    #[arg(long, default_value = "x100")]
    pub(crate) rate: Rate,
    /// Number of feed processes; the frames are dealt out among them.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=16))]
    pub(crate) feeds: u16,
    /// Number of display processes.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=32))]
    pub(crate) displays: u16,
    /// QoS profile of all participants.
    #[arg(long, default_value = "Flight::Atomic")]
    pub(crate) profile: String,
    /// File of QoS profiles.
    #[arg(long, default_value = QOS_FILE)]
    pub(crate) qos: PathBuf,
    /// The recording, lines of `unix_time,beast_frame_hex`, gzipped or not.
    #[arg(long, default_value = RECORDING)]
    pub(crate) recording: PathBuf,
    /// Stop after this many frames.
    #[arg(long, default_value_t = usize::MAX, hide_default_value = true)]
    pub(crate) frames: usize,
    /// Domain of the run, on which no other group may be [default: nobody else's,
    /// whatever else runs on this host].
    #[arg(long)]
    pub(crate) domain: Option<u32>,
    /// Run this many times, one line of JSON each and one for all.
    #[arg(long, default_value_t = 1)]
    pub(crate) repeat: u32,

    #[command(flatten)]
    pub(crate) fault: FaultOptions,

    /// Address, and port if need be, at which the participants are reached from other hosts
    /// [default: they are not].
    #[arg(long)]
    pub(crate) listen: Option<String>,
    /// Contacts on the way into a domain on several hosts, as `HOST:PORT,...`.
    #[arg(long, requires = "listen")]
    pub(crate) contacts: Option<String>,
    /// Deal the processes out among these addresses of this host, each of which takes the part
    /// of a host: its participants share memory among themselves only, and reach the others
    /// by the network.
    #[arg(long, value_name = "ADDRESS,...", value_delimiter = ',')]
    #[arg(conflicts_with_all = ["listen", "contacts", "domain", "role"])]
    pub(crate) hosts: Vec<IpAddr>,
    /// RDMA device of each of the hosts, or of this one: samples go to others by RDMA, or
    /// not at all [default: by RDMA where it can be had].
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) devices: Vec<String>,
    /// Be one of the processes of a run only, as `feed:0` or `display:2`: the others are
    /// started elsewhere, with the same options.
    #[arg(long)]
    pub(crate) role: Option<Role>,
    /// The process that started this one, with which it ends.
    #[arg(long, hide = true)]
    pub(crate) parent: Option<u32>,
    /// Where the participants of a host meet [default: where all of this user's do].
    #[arg(long, requires = "role")]
    pub(crate) directory: Option<PathBuf>,
    /// A feed goes round the recording until its standard input ends.
    #[arg(long, hide = true)]
    pub(crate) endless: bool,
    /// Where a display keeps account of each sample.
    #[arg(long, hide = true)]
    pub(crate) journal: Option<PathBuf>,
}

impl Options {
    /// The command line of one process of a run whose participants meet in this
    /// directory, unless the domain is given, at its place in the network, if it has one.
    pub(crate) fn arguments(
        &self,
        role: Role,
        directory: &Path,
        place: Option<&Place>,
    ) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        let mut option = |name: &str, value: OsString| {
            arguments.push(name.into());
            arguments.push(value);
        };
        option("--role", role.to_string().into());
        option("--parent", std::process::id().to_string().into());
        match self.domain {
            Some(domain) => option("--domain", domain.to_string().into()),
            None => {
                let meeting = place.map_or(directory, |place| &place.directory);
                option("--directory", meeting.into());
            }
        }
        option("--rate", self.rate.to_string().into());
        option("--feeds", self.feeds.to_string().into());
        option("--displays", self.displays.to_string().into());
        option("--profile", self.profile.clone().into());
        option("--qos", self.qos.clone().into());
        option("--recording", self.recording.clone().into());
        option("--frames", self.frames.to_string().into());
        let (listen, contacts, device) = match place {
            Some(place) => (
                Some(&place.listen),
                Some(&place.contact),
                place.device.as_ref(),
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

/// How fast the recording runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Rate {
    /// So many times as fast as it was received.
    Times(f64),
    /// As fast as it can be published.
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

/// What a process of a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
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

/// The recording that comes with the example.
pub(crate) const RECORDING: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/data/long_flight_60k.csv.gz");
const QOS_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/qos/flight.xml");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates() {
        assert_eq!("realtime".parse(), Ok(Rate::Times(1.0)));
        assert_eq!("x2.5".parse(), Ok(Rate::Times(2.5)));
        assert_eq!("max".parse(), Ok(Rate::Max));
        for wrong in ["", "x", "x0", "x-1", "xinf", "100", "fast"] {
            assert!(wrong.parse::<Rate>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_process_is_told_its_place() {
        let options = ["flight_state", "--hosts=10.0.0.1,10.0.0.2", "--devices=a,b"];
        let options = Options::parse_from(options);
        let place = Place {
            directory: "/somewhere/host-1".into(),
            listen: "10.0.0.2:7400".into(),
            contact: "10.0.0.1:7400".into(),
            device: Some("b".into()),
        };
        let arguments = options.arguments(Role::Feed(0), Path::new("/somewhere"), Some(&place));
        let program = std::iter::once("flight_state".into());
        let told = Options::parse_from(program.chain(arguments));
        assert_eq!(told.directory, Some(place.directory));
        assert_eq!(told.listen, Some(place.listen));
        assert_eq!(told.contacts, Some(place.contact));
        assert_eq!(told.devices, ["b"]);
    }

    #[test]
    fn a_process_is_told_all_it_needs() {
        let options = Options::parse_from([
            "flight_state",
            "--rate=x7",
            "--kill=display:1",
            "--limit-ms=250",
            "--listen=10.0.0.1",
            "--contacts=a:7400,b:7400",
        ]);
        let arguments = options.arguments(Role::Display(1), Path::new("/somewhere"), None);
        let program = std::iter::once("flight_state".into());
        let told = Options::parse_from(program.chain(arguments));
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
