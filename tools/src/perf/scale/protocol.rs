//! What the processes of a run and their parent tell each other, by lines of JSON on the standard
//! input and output. `cyclone.py` speaks the same.
//!
//! ```text
//!   parent                      process
//!                               ready         it has started, and uses no middleware yet
//!   begin                       matched       its endpoints exist, and all are matched
//!   count                       counted
//!   exchange ...                exchanged     the samples were sent, and its readers have them
//!   pace ...                    paced         samples were sent and taken for a while
//!   close                       closed        and it ends
//!                               failed ...    at any time, and it ends
//! ```

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::contender::Contender;

/// What a process is started with.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Job {
    /// Id of the process that started it, with which it ends.
    pub(super) parent: u32,
    pub(super) contender: Contender,
    /// `spindle.directory` of the participants.
    pub(super) directory: PathBuf,
    pub(super) participants: u32,
    pub(super) topics: u32,
    /// Which of the participants it is, from 0.
    pub(super) index: u32,
    /// Whether there is a topic for samples at a pace.
    pub(super) has_paced_topic: bool,
}

/// What a process is to do next.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Order {
    /// Create a participant with a writer and a reader on each topic, and wait until they match.
    Begin,
    /// Tell what it counts.
    Count,
    Exchange(Exchange),
    /// Send samples at a pace for so long, and take them.
    Pace {
        ms: u64,
    },
    /// Close the participant, and end.
    Close,
}

/// Samples that the processes send each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Exchange {
    /// The first so many topics.
    pub(super) topics: u32,
    pub(super) writers: Writers,
    /// Samples of each of these writers.
    pub(super) samples: u32,
    /// Bytes of payload in a sample.
    pub(super) size: u32,
}

/// Which writers of a topic send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Writers {
    /// One, of the participants in turn.
    One,
    All,
}

impl Exchange {
    /// Whether this participant's writer of a topic sends.
    pub(super) fn is_sent_by(&self, index: u32, topic: u32, participants: u32) -> bool {
        self.writers == Writers::All || topic % participants == index
    }

    /// Samples that each reader of its topics receives.
    pub(super) fn samples_per_reader(&self, participants: u32) -> u64 {
        let writers = match self.writers {
            Writers::One => 1,
            Writers::All => u64::from(participants),
        };
        writers * u64::from(self.samples)
    }
}

/// What a process tells.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Told {
    Ready,
    Matched(Matched),
    Counted(Counted),
    Exchanged,
    Paced(Paced),
    Closed(Closed),
    Failed { error: String },
}

/// When a process has done what, by CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Matched {
    /// When it was told to begin.
    pub(super) began_at_ns: u64,
    /// When it had its participant.
    pub(super) participant_at_ns: u64,
    /// When it had its endpoints.
    pub(super) endpoints_at_ns: u64,
    /// When each of them was matched with those of all processes.
    pub(super) matched_at_ns: u64,
}

/// What a process counts.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Counted {
    /// Processor time since it was told to begin.
    pub(super) cpu_ns: u64,
    /// Matches, summed over its endpoints.
    pub(super) matches: u64,
    /// What its participant counts of its group; `None` for middleware without views.
    pub(super) group: Option<Group>,
}

/// What a process has seen of the samples at a pace.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Paced {
    /// Samples that were taken.
    pub(super) taken: u64,
    /// Longest time without a sample of one of the writers.
    pub(super) longest_gap_ns: u64,
}

/// Counts of the group.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Group {
    /// Number of the current view, and so of the views that were agreed.
    pub(super) view: u64,
    /// Subgroup epochs that have begun at this participant.
    pub(super) epochs: u64,
    /// Its pushes for the view protocol, times the peers of each.
    pub(super) control_pushes: u64,
    /// Bytes of these.
    pub(super) control_pushed_bytes: u64,
    /// Packets of its station to others of the host.
    pub(super) packets: u64,
    /// Bytes of these.
    pub(super) packet_bytes: u64,
    /// Rows of segments in these.
    pub(super) rows: u64,
    /// Pushes of this participant in its subgroups, times the peers of each.
    pub(super) pushes: u64,
    /// Bytes of these.
    pub(super) pushed_bytes: u64,
}

impl Group {
    /// Of two participants together.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            view: self.view.max(other.view),
            epochs: self.epochs + other.epochs,
            control_pushes: self.control_pushes + other.control_pushes,
            control_pushed_bytes: self.control_pushed_bytes + other.control_pushed_bytes,
            packets: self.packets + other.packets,
            packet_bytes: self.packet_bytes + other.packet_bytes,
            rows: self.rows + other.rows,
            pushes: self.pushes + other.pushes,
            pushed_bytes: self.pushed_bytes + other.pushed_bytes,
        }
    }
}

/// When a process has begun and ended to close its participant, by CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Closed {
    pub(super) began_at_ns: u64,
    pub(super) ended_at_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_topic_has_one_sender_or_all() {
        let exchange = |writers| Exchange {
            topics: 5,
            writers,
            samples: 7,
            size: 64,
        };
        let (one, all) = (exchange(Writers::One), exchange(Writers::All));
        for topic in 0..5 {
            let senders = |it: &Exchange| (0..3).filter(|at| it.is_sent_by(*at, topic, 3)).count();
            assert_eq!((senders(&one), senders(&all)), (1, 3));
        }
        let received = [one, all].map(|it| it.samples_per_reader(3));
        assert_eq!(received, [7, 21]);
    }
}
