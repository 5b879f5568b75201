//! The monitor: asks the participants of this host, all from one station.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use spindle_dds_transport::hybrid::{Station, StationOptions};
use spindle_dds_transport::shm::{
    self, DomainRegistry, DomainState, MemberEntry, StationEvent, default_domain_directory,
};

use super::figures::ParticipantFigures;
use crate::error::{Error, Result};
use crate::joining::Packet;

/// Maximum length of an answer in bytes.
const ANSWER_LEN_MAX: usize = 64 << 20;

/// Observes the participants of a domain.
#[derive(Debug)]
pub struct Monitor {
    domain: u32,
    directory: PathBuf,
    /// Open while there are participants to ask.
    station: Option<Station>,
}

/// A member of the domain's group, from the record of this host.
#[derive(Debug)]
pub struct ObservedMember {
    /// Its id in the group: 32 hexadecimal digits.
    pub member: String,
    /// Its process id on its host.
    pub pid: u32,
    /// Whether it is on this host: members of other hosts are not asked.
    pub is_here: bool,
    /// Its figures, or why there are none.
    pub figures: Result<ParticipantFigures>,
}

/// The answer of a participant.
enum Answer {
    /// The parts received so far.
    Parts(Vec<u8>),
    Whole(Box<Result<ParticipantFigures>>),
}

impl Monitor {
    /// A monitor of a domain. `directory` is as the property `spindle.directory`; `None` means
    /// its default.
    pub fn new(domain: u32, directory: Option<&Path>) -> Self {
        Self {
            domain,
            directory: directory.map_or_else(default_domain_directory, Path::to_path_buf),
            station: None,
        }
    }

    /// Asks all participants of this host at once, and waits at most `patience` for their
    /// answers. A participant that answers with invalid figures, or not in time, is listed with
    /// an error. Empty if there is no participant.
    ///
    /// # Errors
    /// ERROR when the domain's directory or record cannot be used.
    pub fn observe(&mut self, patience: Duration) -> Result<Vec<ObservedMember>> {
        let deadline = Instant::now() + patience;
        let entries = self.living_members()?;
        if entries.is_empty() {
            self.station = None;
            return Ok(Vec::new());
        }
        let here = shm::host_id(self.domain, Some(&self.directory)).map_err(setup_error)?;
        let mut answers: BTreeMap<u128, Answer> = BTreeMap::new();
        let station = self.station()?;
        for entry in entries.iter().filter(|entry| entry.host == here) {
            let answer = match ask(station, entry, deadline) {
                Ok(()) => Answer::Parts(Vec::new()),
                Err(why) => Answer::whole(Err(Error::Error(why))),
            };
            answers.insert(entry.id, answer);
        }
        receive_answers(station, &mut answers, deadline);
        let observed = entries.into_iter().map(|entry| ObservedMember {
            member: format!("{:032x}", entry.id),
            pid: entry.pid,
            is_here: entry.host == here,
            figures: match answers.remove(&entry.id) {
                Some(Answer::Whole(figures)) => *figures,
                Some(Answer::Parts(_)) => {
                    Err(Error::Timeout("it does not answer in time".to_owned()))
                }
                None => Err(Error::Error("it is on another host".to_owned())),
            },
        });
        Ok(observed.collect())
    }

    fn living_members(&self) -> Result<Vec<MemberEntry>> {
        // Reading the record takes the domain's lock, which would create a missing file.
        let record = format!("domain-{}.record", self.domain);
        if !self.directory.join(record).exists() {
            return Ok(Vec::new());
        }
        // A placeholder: the monitor is in no view.
        let me = MemberEntry {
            id: 0,
            host: 0,
            pid: 0,
            start: 0,
            address: Vec::new(),
        };
        let registry = DomainRegistry::open(self.domain, Some(&self.directory), me);
        match registry.and_then(|registry| registry.living_members()) {
            Ok(DomainState::Empty) => Ok(Vec::new()),
            Ok(DomainState::Present(members)) => Ok(members),
            Err(error) => Err(setup_error(error)),
        }
    }

    fn station(&mut self) -> Result<&Station> {
        if self.station.is_none() {
            let id = crate::joining::random_id();
            let mut host = shm::HostOptions::new(self.domain, id);
            host.directory = Some(self.directory.clone());
            let options = StationOptions {
                host,
                network: None,
            };
            let station = Station::open(&options);
            self.station = Some(station.map_err(|error| Error::Error(error.to_string()))?);
        }
        let missing = || Error::Error("no station".to_owned());
        self.station.as_ref().ok_or_else(missing)
    }
}

fn setup_error(error: shm::SetupError) -> Error {
    Error::Error(error.to_string())
}

/// Connecting may use half of the remaining time, so that a stopped process does not prevent
/// asking the others.
fn ask(
    station: &Station,
    entry: &MemberEntry,
    deadline: Instant,
) -> std::result::Result<(), String> {
    let left = deadline.saturating_duration_since(Instant::now());
    let id = station
        .connect(&entry.address, Instant::now() + left / 2)
        .map_err(|error| {
            // Its address may belong to another process at the next call.
            station.drop_peer(entry.id);
            error.to_string()
        })?;
    let sent = station.send(id, &Packet::StatusRequest.write());
    sent.map_err(|error| error.to_string())
}

/// Receives answers until all are complete or the deadline has passed.
fn receive_answers(station: &Station, answers: &mut BTreeMap<u128, Answer>, deadline: Instant) {
    let is_waiting = |answers: &BTreeMap<u128, Answer>| {
        let mut answers = answers.values();
        answers.any(|answer| matches!(answer, Answer::Parts(_)))
    };
    while is_waiting(answers) {
        let left = deadline.saturating_duration_since(Instant::now());
        let Some(event) = station.next_event(left) else {
            if left.is_zero() {
                return;
            }
            continue;
        };
        match event {
            StationEvent::Connected { .. } => {}
            StationEvent::Closed { id, cause } => {
                station.drop_peer(id);
                if let Some(answer @ Answer::Parts(_)) = answers.get_mut(&id) {
                    *answer = Answer::whole(Err(Error::Error(cause.to_string())));
                }
            }
            StationEvent::Message { from, bytes } => {
                if let Some(answer) = answers.get_mut(&from) {
                    answer.receive(&bytes);
                }
            }
        }
    }
}

impl Answer {
    fn whole(figures: Result<ParticipantFigures>) -> Self {
        Self::Whole(Box::new(figures))
    }

    /// Handles a packet of the participant.
    fn receive(&mut self, bytes: &[u8]) {
        let Self::Parts(parts) = self else {
            // A late answer to an earlier request: the first complete answer counts.
            return;
        };
        let figures = match Packet::read(bytes) {
            Ok(Packet::Status { last, part }) if parts.len() + part.len() <= ANSWER_LEN_MAX => {
                parts.extend(part);
                if !last {
                    return;
                }
                ParticipantFigures::read(parts)
            }
            Ok(Packet::Refused { reason, .. }) | Err(reason) => Err(Error::Error(reason)),
            Ok(_) => Err(Error::Error("its answer is invalid".to_owned())),
        };
        *self = Self::whole(figures);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::VERSION;

    #[test]
    fn invalid_answers_are_errors() {
        let check = |packets: &[Vec<u8>], words: &str| {
            let mut answer = Answer::Parts(Vec::new());
            packets.iter().for_each(|packet| answer.receive(packet));
            let Answer::Whole(figures) = answer else {
                panic!("waits for more");
            };
            let error = figures.expect_err("invalid").to_string();
            assert!(error.contains(words), "{error}");
        };
        check(&[b"".to_vec()], "makes no sense");
        check(&[Packet::StatusRequest.write()], "its answer is invalid");
        check(&Packet::status(b"{}"), "its figures are invalid");
        let bare = format!("{{\"version\":{VERSION}}}");
        check(&Packet::status(bare.as_bytes()), "its figures are invalid");
        check(&[Packet::refused(Error::Error("no".to_owned()))], "no");
        let part = Packet::Status {
            last: false,
            part: vec![b' '; 1 << 20],
        };
        check(&vec![part.write(); 65], "its answer is invalid");
    }

    #[test]
    fn a_domain_without_participants_is_empty_and_no_file_is_created() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("domains");
        let mut monitor = Monitor::new(3, Some(&missing));
        assert!(monitor.observe(Duration::ZERO).unwrap().is_empty());
        assert!(!missing.exists());
    }
}
