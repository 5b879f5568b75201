//! Who looks: asks each participant of this host, one station for all.

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

/// Most bytes that are taken of one answer.
const ANSWER_LEN_MAX: usize = 64 << 20;

/// Looks at the participants of a domain.
#[derive(Debug)]
pub struct Monitor {
    domain: u32,
    directory: PathBuf,
    /// While there is somebody to ask.
    station: Option<Station>,
}

/// A member of the domain's group, by the record of this host.
#[derive(Debug)]
pub struct Seen {
    /// Its name in the group: 32 hexadecimal digits.
    pub member: String,
    /// Its process, on its host.
    pub pid: u32,
    /// Whether it is on this host: others are not asked.
    pub is_here: bool,
    /// What it told, or why it told nothing.
    pub told: Result<ParticipantFigures>,
}

/// An answer on its way.
enum Answer {
    Parts(Vec<u8>),
    Whole(Box<Result<ParticipantFigures>>),
}

impl Monitor {
    /// For a domain in a directory as that of the property `spindle.directory`; `None`: where
    /// it is without that property.
    pub fn new(domain: u32, directory: Option<&Path>) -> Self {
        Self {
            domain,
            directory: directory.map_or_else(default_domain_directory, Path::to_path_buf),
            station: None,
        }
    }

    /// Asks all participants of this host at once, and waits at most `patience` for their
    /// answers. Empty where nobody is. Who has told what makes no sense, or does not answer,
    /// is there with an error.
    ///
    /// # Errors
    /// ERROR when the domain's directory or record cannot be used.
    pub fn look(&mut self, patience: Duration) -> Result<Vec<Seen>> {
        let deadline = Instant::now() + patience;
        let entries = self.living()?;
        if entries.is_empty() {
            self.station = None;
            return Ok(Vec::new());
        }
        let here = shm::host_id(Some(&self.directory)).map_err(unusable)?;
        let mut answers: BTreeMap<u128, Answer> = BTreeMap::new();
        let station = self.station()?;
        for entry in entries.iter().filter(|entry| entry.host == here) {
            let answer = match ask(station, entry, deadline) {
                Ok(()) => Answer::Parts(Vec::new()),
                Err(why) => Answer::whole(Err(Error::Error(why))),
            };
            answers.insert(entry.id, answer);
        }
        listen(station, &mut answers, deadline);
        let seen = entries.into_iter().map(|entry| Seen {
            member: format!("{:032x}", entry.id),
            pid: entry.pid,
            is_here: entry.host == here,
            told: match answers.remove(&entry.id) {
                Some(Answer::Whole(told)) => *told,
                Some(Answer::Parts(_)) => {
                    Err(Error::Timeout("it does not answer in time".to_owned()))
                }
                None => Err(Error::Error("it is on another host".to_owned())),
            },
        });
        Ok(seen.collect())
    }

    fn living(&self) -> Result<Vec<MemberEntry>> {
        // To look takes the domain's lock, which would be made if it were not there.
        let record = format!("domain-{}.record", self.domain);
        if !self.directory.join(record).exists() {
            return Ok(Vec::new());
        }
        // Nobody's: it is in no view, and so it leaves none.
        let me = MemberEntry {
            id: 0,
            host: 0,
            pid: 0,
            start: 0,
            address: Vec::new(),
        };
        let register = DomainRegistry::open(self.domain, Some(&self.directory), me);
        match register.and_then(|register| register.living_members()) {
            Ok(DomainState::Empty) => Ok(Vec::new()),
            Ok(DomainState::Present(members)) => Ok(members),
            Err(error) => Err(unusable(error)),
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

fn unusable(error: shm::SetupError) -> Error {
    Error::Error(error.to_string())
}

/// Each has a part of the time to be reached: one that is stopped does not keep the
/// others from being asked.
fn ask(
    station: &Station,
    entry: &MemberEntry,
    deadline: Instant,
) -> std::result::Result<(), String> {
    let left = deadline.saturating_duration_since(Instant::now());
    let id = station
        .connect(&entry.address, Instant::now() + left / 2)
        .map_err(|error| {
            // It may be another one by the next look.
            station.drop_peer(entry.id);
            error.to_string()
        })?;
    let sent = station.send(id, &Packet::StatusRequest.write());
    sent.map_err(|error| error.to_string())
}

/// Until all have answered, or it is too late.
fn listen(station: &Station, answers: &mut BTreeMap<u128, Answer>, deadline: Instant) {
    let waits = |answers: &BTreeMap<u128, Answer>| {
        let mut answers = answers.values();
        answers.any(|answer| matches!(answer, Answer::Parts(_)))
    };
    while waits(answers) {
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
                    answer.take(&bytes);
                }
            }
        }
    }
}

impl Answer {
    fn whole(told: Result<ParticipantFigures>) -> Self {
        Self::Whole(Box::new(told))
    }

    fn take(&mut self, bytes: &[u8]) {
        let Self::Parts(parts) = self else {
            // Late, of a question before: the one that came is as good.
            return;
        };
        let told = match Packet::read(bytes) {
            Ok(Packet::Told { last, part }) if parts.len() + part.len() <= ANSWER_LEN_MAX => {
                parts.extend(part);
                if !last {
                    return;
                }
                ParticipantFigures::read(parts)
            }
            Ok(Packet::Refused(why)) | Err(why) => Err(Error::Error(why)),
            Ok(_) => Err(Error::Error("it told what makes no sense".to_owned())),
        };
        *self = Self::whole(told);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_make_no_sense_are_errors() {
        let check = |packets: &[Vec<u8>], words: &str| {
            let mut answer = Answer::Parts(Vec::new());
            packets.iter().for_each(|packet| answer.take(packet));
            let Answer::Whole(told) = answer else {
                panic!("waits for more");
            };
            let error = told.expect_err("nonsense").to_string();
            assert!(error.contains(words), "{error}");
        };
        check(&[b"".to_vec()], "makes no sense");
        check(&[Packet::StatusRequest.write()], "makes no sense");
        check(&Packet::told(b"{}"), "makes no sense");
        check(&Packet::told(b"{\"version\":1}"), "makes no sense");
        check(&[Packet::Refused("no".to_owned()).write()], "no");
        let part = Packet::Told {
            last: false,
            part: vec![b' '; 1 << 20],
        };
        check(&vec![part.write(); 65], "makes no sense");
    }

    #[test]
    fn nobody_is_nobody_and_nothing_is_made() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("domains");
        let mut monitor = Monitor::new(3, Some(&missing));
        assert!(monitor.look(Duration::ZERO).unwrap().is_empty());
        assert!(!missing.exists());
    }
}
