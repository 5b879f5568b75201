//! Programs of `benchmarks/competitors/`: all take the same arguments and print the same lines.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::cell::{Cell, word};
use super::contender::{Contender, DATAGRAM_BYTES, Figures, Latency, LatencyKind, Setup};
use super::options::{Measure, Read, Wait};

/// A program, and how it is used.
#[derive(Debug, Clone)]
pub(super) struct Program {
    name: &'static str,
    path: PathBuf,
    /// Command that installs what `benchmarks/competitors/build` needs for it.
    needs: &'static str,
    /// Another file that it needs.
    also: Option<&'static str>,
    bytes_max: u64,
    readers_max: u32,
    waits: &'static [Wait],
    reads: &'static [Read],
    processes: Processes,
}

/// The processes of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Processes {
    /// One for each role.
    Roles,
    /// One for each role. Readers copy a sample before they read it.
    CopyingRoles,
    /// One that starts the others, beside a daemon. Needs root.
    WithDaemon,
}

impl Program {
    pub(super) fn all(directory: &Path) -> Vec<Self> {
        let both = &[Wait::Poll, Wait::Block];
        let usual = |name, file, needs| Self {
            name,
            path: directory.join(file),
            needs,
            also: None,
            bytes_max: DATAGRAM_BYTES,
            readers_max: READERS_MAX,
            waits: &[Wait::Block],
            reads: &[Read::Touch, Read::Sum],
            processes: Processes::Roles,
        };
        let memory = Self {
            bytes_max: u64::MAX,
            readers_max: 1,
            waits: &[Wait::Poll],
            ..usual("memcpy", "memory", "")
        };
        vec![
            Self {
                bytes_max: u64::MAX,
                waits: both,
                ..usual("iceoryx2", "iceoryx2", "apt-get install libclang-dev")
            },
            usual(
                "fastdds",
                "fastdds",
                "apt-get install g++ libfastrtps-dev libfastcdr-dev",
            ),
            usual("dust_dds", "dust_dds", ""),
            Self {
                processes: Processes::WithDaemon,
                also: Some("/usr/sbin/corosync"),
                path: directory.join("corosync-cell"),
                ..usual("corosync", "cpg", "apt-get install corosync libcpg-dev")
            },
            memory.clone(),
            Self {
                name: "memcpy-twice",
                reads: &[Read::Touch],
                processes: Processes::CopyingRoles,
                ..memory
            },
            Self {
                readers_max: 1,
                waits: both,
                ..usual("udp", "udp", "")
            },
        ]
    }

    fn arguments(&self, cell: &Cell, setup: &Setup) -> Vec<String> {
        let mut arguments = vec![
            ("--session", setup.session.clone()),
            ("--size", cell.size.to_string()),
            ("--readers", cell.readers.to_string()),
            ("--wait", word(cell.wait)),
            ("--seconds", setup.seconds.to_string()),
            (
                "--read",
                match self.processes {
                    Processes::CopyingRoles => "copy".to_owned(),
                    Processes::Roles | Processes::WithDaemon => word(cell.read),
                },
            ),
        ];
        if cell.is_time() {
            arguments.push(("--rate", setup.rate_hz.to_string()));
        }
        let pairs = arguments.into_iter();
        pairs
            .flat_map(|(name, value)| [name.to_owned(), value])
            .collect()
    }
}

impl Contender for Program {
    fn name(&self) -> &'static str {
        self.name
    }

    fn missing(&self) -> Option<String> {
        let there = self.path.is_file() && self.also.is_none_or(|file| Path::new(file).exists());
        if !there {
            let build = format!("benchmarks/competitors/build {}", self.name);
            return Some(match self.needs {
                "" => build,
                needs => format!("{needs} && {build}"),
            });
        }
        let root = rustix::process::geteuid().is_root();
        (self.processes == Processes::WithDaemon && !root).then(|| "run this as root".to_owned())
    }

    fn takes_part(&self, cell: &Cell) -> bool {
        cell.size <= self.bytes_max
            && cell.readers <= self.readers_max
            && self.waits.contains(&cell.wait)
            && self.reads.contains(&cell.read)
    }

    fn commands(&self, cell: &Cell, setup: &Setup) -> Result<Vec<Command>, String> {
        let started = |first: &str| {
            let mut command = Command::new(&self.path);
            command.arg(first).args(self.arguments(cell, setup));
            command
        };
        let round_trip = cell.measure == Measure::RoundTrip;
        Ok(match (self.processes, round_trip) {
            (Processes::WithDaemon, true) => vec![started("round-trip")],
            (Processes::WithDaemon, false) => vec![started("one-way")],
            (_, true) => vec![started("pong"), started("ping")],
            (_, false) => {
                let readers = (0..cell.readers).map(|_| started("subscriber"));
                readers.chain([started("publisher")]).collect()
            }
        })
    }

    fn figures(&self, cell: &Cell, said: &[String]) -> Result<Figures, String> {
        let mut readers = Vec::new();
        for line in said.iter().flat_map(|said| said.lines()) {
            let line: Line =
                serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))?;
            if line.role != "publisher" {
                readers.push(line);
            }
        }
        if readers.len() != cell.readers as usize {
            return Err(format!("{} readers have printed a line", readers.len()));
        }
        if let Some(line) = readers.iter().find(|line| !line.complete) {
            let (samples, lost) = (line.samples, line.lost);
            return Err(format!(
                "a reader did not receive the last sample, after {samples} samples and {lost} lost"
            ));
        }
        let rates = readers.iter().map(Line::samples_per_s);
        Ok(Figures {
            samples_per_s: rates.fold(f64::INFINITY, f64::min),
            samples: readers.iter().map(|line| line.samples).sum(),
            lost: readers.iter().map(|line| line.lost).sum(),
            latency: readers[0].latency.as_ref().map(|latency| Latency {
                kind: latency.kind,
                p50_ns: latency.p50_ns,
                p99_ns: latency.p99_ns,
            }),
        })
    }
}

/// The line that a process prints.
#[derive(Deserialize)]
struct Line {
    role: String,
    samples: u64,
    seconds: f64,
    lost: u64,
    complete: bool,
    latency: Option<LineLatency>,
}

#[derive(Deserialize)]
struct LineLatency {
    kind: LatencyKind,
    p50_ns: f64,
    p99_ns: f64,
}

impl Line {
    /// The clock starts at the first sample, which therefore does not count.
    fn samples_per_s(&self) -> f64 {
        match self.seconds > 0.0 {
            true => self.samples.saturating_sub(1) as f64 / self.seconds,
            false => 0.0,
        }
    }
}

const READERS_MAX: u32 = 8;
