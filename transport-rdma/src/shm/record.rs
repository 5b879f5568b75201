//! The record of a domain: who forms or has its group on this host.
//!
//! One file a domain in a directory of the user's own, read and replaced only
//! under a lock. All decisions that must happen once (who founds, when a group
//! exists) are a look and a change under that lock.
//!
//! ```text
//!            founder writes it          all are there        all have mapped
//!   (none) ------------------> Gathering ------------> Full ----------------> Formed
//!      ^                           |                     |                       |
//!      +---------------------------+---------------------+-----------------------+
//!        the founder is dead, or somebody gives up       all have left or are dead
//! ```

use super::error::JoinError;
use super::process;
use crate::peers::MEMBERS_MAX;

const HEADER: &str = "spindle-dds-domain 1";

/// How far a group has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The founder waits for members.
    Gathering,
    /// All are there, and exchange their rows.
    Full,
    /// All have mapped all rows.
    Formed,
}

/// A member in the record. The start time tells a process from a later one
/// with the same id; the nonce tells two members in one process apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) nonce: u64,
    pub(super) pid: u32,
    pub(super) start: u64,
}

impl Entry {
    /// A member of this process.
    pub(super) fn here(nonce: u64) -> Result<Self, JoinError> {
        let (pid, start) = (std::process::id(), process::own_start_time()?);
        Ok(Self { nonce, pid, start })
    }

    /// A member of a living process.
    pub(super) fn of(nonce: u64, pid: u32) -> Option<Self> {
        let start = process::start_time(pid)?;
        Some(Self { nonce, pid, start })
    }

    fn is_alive(&self) -> bool {
        process::start_time(self.pid) == Some(self.start)
    }
}

/// What is written down about a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) stage: Stage,
    pub(super) size: usize,
    /// Nonce of the group.
    pub(super) group: u64,
    /// The pid namespace in which the members' ids mean something.
    pub(super) namespace: u64,
    /// The founder first.
    pub(super) members: Vec<Entry>,
}

impl Record {
    pub(super) fn founder(&self) -> &Entry {
        &self.members[0]
    }

    /// Whether it still means anything: a formed group while a member lives,
    /// one that is being formed while its founder does.
    pub(super) fn is_alive(&self) -> bool {
        match self.stage {
            Stage::Formed => self.members.iter().any(Entry::is_alive),
            Stage::Gathering | Stage::Full => self.founder().is_alive(),
        }
    }

    /// Process ids of the living members.
    pub(super) fn living(&self) -> Vec<u32> {
        let living = self.members.iter().filter(|member| member.is_alive());
        living.map(|member| member.pid).collect()
    }

    pub(super) fn write(&self) -> String {
        let stage = match self.stage {
            Stage::Gathering => "gathering",
            Stage::Full => "full",
            Stage::Formed => "formed",
        };
        let mut text = format!(
            "{HEADER}\n{stage} {} {:016x} {}\n",
            self.size, self.group, self.namespace
        );
        for Entry { nonce, pid, start } in &self.members {
            text += &format!("{nonce:016x} {pid} {start}\n");
        }
        text
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next() != Some(HEADER) {
            return None;
        }
        let mut fields = lines.next()?.split(' ');
        let stage = match fields.next()? {
            "gathering" => Stage::Gathering,
            "full" => Stage::Full,
            "formed" => Stage::Formed,
            _ => return None,
        };
        let size = fields.next()?.parse().ok()?;
        let group = u64::from_str_radix(fields.next()?, 16).ok()?;
        let namespace = fields.next()?.parse().ok()?;
        let members = lines.map(|line| {
            let mut fields = line.split(' ');
            let nonce = u64::from_str_radix(fields.next()?, 16).ok()?;
            let pid = fields.next()?.parse().ok()?;
            let start = fields.next()?.parse().ok()?;
            Some(Entry { nonce, pid, start })
        });
        let members: Vec<_> = members.collect::<Option<_>>()?;
        let counts = [size, members.len()];
        counts
            .iter()
            .all(|count| (1..=MEMBERS_MAX).contains(count))
            .then_some(Self {
                stage,
                size,
                group,
                namespace,
                members,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(stage: Stage) -> Record {
        let here = Entry::here(7).expect("a process");
        let gone = Entry {
            start: here.start + 1,
            ..here.clone()
        };
        Record {
            stage,
            size: 3,
            group: u64::MAX,
            namespace: 1,
            members: vec![here, gone],
        }
    }

    #[test]
    fn a_record_reads_as_it_was_written() {
        for stage in [Stage::Gathering, Stage::Full, Stage::Formed] {
            let record = record(stage);
            assert_eq!(Record::read(&record.write()), Some(record));
        }
        for nonsense in ["", "x", HEADER, &format!("{HEADER}\nformed 1 2 3\n")] {
            assert_eq!(Record::read(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn a_process_is_told_from_a_later_one_with_its_id() {
        let mut record = record(Stage::Full);
        assert_eq!(record.living(), [std::process::id()]);
        assert!(record.is_alive());
        record.members.swap(0, 1);
        assert!(!record.is_alive(), "its founder is dead");
        record.stage = Stage::Formed;
        assert!(record.is_alive(), "one member lives");
    }
}
