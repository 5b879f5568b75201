//! Sends samples of a topic, at a pace or as fast as there is room.

use std::time::Duration;

use spindle_dds::DataWriter;

use super::timetable::{PHASES, Timetable};
use crate::exchange::Probe;
use crate::workers::participant::send;
use crate::{Failure, clock};

/// Sends one topic.
#[derive(Debug)]
pub(super) struct Pacer {
    pub(super) writer: DataWriter<Probe>,
    pub(super) timetable: Timetable,
    pub(super) payload_len: usize,
    /// From one sample to the next; 0: samples are sent as fast as there is room.
    pub(super) period_ns: u64,
}

/// What was sent.
#[derive(Debug, Clone, Default)]
pub(super) struct Sent {
    pub(super) samples: u64,
    /// By phase: samples whose write began in the phase.
    pub(super) by_phase: Vec<u64>,
    /// By phase: the longest of the writes that were under way in the phase.
    pub(super) longest_write_ns: Vec<u64>,
}

impl Pacer {
    /// Sends from now to the end of the phases, in bursts of a millisecond. A short delay is
    /// caught up with; what a long one has cost is left out.
    pub(super) fn run(self) -> Result<Sent, Failure> {
        let mut sent = Sent {
            samples: 0,
            by_phase: vec![0; PHASES.len()],
            longest_write_ns: vec![0; PHASES.len()],
        };
        let mut next_due_ns = clock::monotonic_ns();
        loop {
            let now_ns = clock::monotonic_ns();
            if self.timetable.is_over(now_ns) {
                return Ok(sent);
            }
            if self.period_ns == 0 {
                for _ in 0..BURST {
                    self.timed_send(&mut sent)?;
                }
                continue;
            }
            next_due_ns = next_due_ns.max(now_ns.saturating_sub(CATCH_UP_NS));
            while next_due_ns <= now_ns {
                self.timed_send(&mut sent)?;
                next_due_ns += self.period_ns;
            }
            std::thread::sleep(TICK);
        }
    }

    fn timed_send(&self, sent: &mut Sent) -> Result<(), Failure> {
        let began_ns = clock::monotonic_ns();
        send(&self.writer, 0, sent.samples, began_ns, self.payload_len)?;
        let ended_ns = clock::monotonic_ns();
        sent.samples += 1;
        let [began, ended] = [began_ns, ended_ns].map(|at_ns| self.timetable.phase_at(at_ns));
        if let Some(phase) = began {
            sent.by_phase[phase] += 1;
        }
        // A write that waits from one phase into the next counts in both.
        let over = self.timetable.is_over(ended_ns).then_some(PHASES.len() - 1);
        if let (Some(first), Some(last)) = (began, ended.or(over)) {
            for longest_write_ns in &mut sent.longest_write_ns[first..=last] {
                *longest_write_ns = (*longest_write_ns).max(ended_ns - began_ns);
            }
        }
        Ok(())
    }
}

const TICK: Duration = Duration::from_millis(1);
const BURST: u32 = 64;
const CATCH_UP_NS: u64 = 100_000_000;
