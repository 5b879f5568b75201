//! The samples of a RELIABLE writer that are not committed yet, as a pure state machine: HISTORY
//! and RESOURCE_LIMITS of a writer (DDS 1.4 §2.2.3.18, §2.2.3.19).
//!
//! A committed sample has its place in the common order, and is never withdrawn. One that found no
//! room in the ring, or no epoch of its subgroup that takes messages, waits here with its source
//! timestamp, and is committed in its turn. KEEP_LAST replaces among those that wait.
//!
//! ```text
//!   push --> | oldest ............ newest | --pop_front--> committed, in the order of writing
//!               \-- replaced by newer samples of their instance (KEEP_LAST)
//! ```
//!
//! Invariants:
//!
//! - What waits of an instance is in the order of writing, and so is all together.
//! - Replaced samples are the oldest of their instance. What is left of an instance gives it the same
//!   final state as all of it would: a disposal or unregistration is replaced only by a later one that
//!   says as much, if no sample is left between the two.
//! - What is replaced is counted with the next sample in the order, as a gap in the writer's sequence
//!   numbers: readers count it as lost.
//!
//! It knows no rings, threads or clocks.

use std::collections::{BTreeMap, HashMap, VecDeque};

use spindle_dds_core::MessageKind;
use spindle_dds_idl_runtime::KeyHash;
use spindle_dds_qos::{History, HistoryKind, Length};

/// A sample, or a change of an instance's state, that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WaitingSample {
    pub(super) kind: MessageKind,
    /// Identifies the instance in this participant.
    pub(super) instance: KeyHash,
    /// As the header carries it.
    pub(super) key_hash: KeyHash,
    /// Source timestamp, nanoseconds since 1970.
    pub(super) timestamp: i64,
    pub(super) payload: Vec<u8>,
    /// It counts against the writer's RESOURCE_LIMITS already.
    pub(super) is_admitted: bool,
    /// Samples before it that were replaced, and that no earlier sample announces.
    pub(super) skipped: u32,
}

impl WaitingSample {
    /// Bytes that it takes, with what is noted about it.
    fn bytes(&self) -> usize {
        NOTED_BYTES + self.payload.len()
    }

    fn is_data(&self) -> bool {
        self.kind == MessageKind::Data
    }
}

/// Bytes noted about each sample beside its payload, about.
const NOTED_BYTES: usize = size_of::<WaitingSample>() + 64;

/// What is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HistoryFull {
    /// max_samples of RESOURCE_LIMITS.
    Samples,
    /// The bound in bytes.
    Bytes,
}

/// What waits of one instance.
#[derive(Debug, Default)]
struct WaitingInstance {
    /// Tickets, ascending.
    tickets: VecDeque<u64>,
    /// How many of them have data.
    samples: u64,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct WriterHistory {
    /// `None`: KEEP_ALL.
    depth: Option<u64>,
    samples_max: Length,
    bytes_max: usize,
    /// By ticket: the number of its write.
    waiting: BTreeMap<u64, WaitingSample>,
    instances: HashMap<KeyHash, WaitingInstance>,
    /// Waiting samples with data.
    samples: u64,
    bytes: usize,
    /// The ticket of the next write that waits.
    next: u64,
}

impl WriterHistory {
    /// Keeps at most so many samples, and bytes; one sample in any case.
    pub(super) fn new(history: History, samples_max: Length, bytes_max: usize) -> Self {
        let keeps_last = history.kind == HistoryKind::KeepLast;
        Self {
            depth: keeps_last.then_some(history.depth.into()),
            samples_max,
            bytes_max,
            waiting: BTreeMap::new(),
            instances: HashMap::new(),
            samples: 0,
            bytes: 0,
            next: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Bytes that the samples take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether anything of an instance waits.
    pub(super) fn has(&self, instance: KeyHash) -> bool {
        self.instances.contains_key(&instance)
    }

    /// The oldest sample.
    pub(super) fn front(&self) -> Option<&WaitingSample> {
        self.waiting.values().next()
    }

    /// Takes the oldest sample out.
    pub(super) fn pop_front(&mut self) -> Option<WaitingSample> {
        let ticket = *self.waiting.keys().next()?;
        self.remove(ticket)
    }

    /// Takes the oldest sample out, which is not sent. The next one announces that.
    pub(super) fn give_up_front(&mut self) -> Option<WaitingSample> {
        let gone = self.pop_front()?;
        if let Some((_, next)) = self.waiting.iter_mut().next() {
            let lost = gone.skipped.saturating_add(u32::from(gone.is_data()));
            next.skipped = next.skipped.saturating_add(lost);
        }
        Some(gone)
    }

    /// The ticket below which nothing waits any more.
    pub(super) fn settled(&self) -> u64 {
        let first = self.waiting.keys().next();
        first.copied().unwrap_or(self.next)
    }

    /// The ticket of the next write that waits.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Takes all out, oldest first.
    pub(super) fn clear(&mut self) -> Vec<WaitingSample> {
        std::iter::from_fn(|| self.pop_front()).collect()
    }

    /// Adds a sample behind all others. If it `replaces`, KEEP_LAST keeps no more than its depth of
    /// the instance; else only where it would not fit otherwise. Returns the sample's ticket, and what
    /// is gone instead.
    ///
    /// # Errors
    /// It does not fit: then nothing has changed.
    pub(super) fn push(
        &mut self,
        mut sample: WaitingSample,
        replaces: bool,
    ) -> Result<(u64, Vec<WaitingSample>), (WaitingSample, HistoryFull)> {
        let mut outdated = self.outdated(&sample);
        if self.check(&sample, &[]).is_ok() {
            if !replaces {
                outdated.clear();
            }
        } else if let Err(full) = self.check(&sample, &outdated) {
            return Err((sample, full));
        }
        let mut gone = Vec::new();
        for ticket in outdated {
            self.replace(ticket, &mut sample, &mut gone);
        }
        let ticket = self.append(sample, &mut gone);
        Ok((ticket, gone))
    }

    /// The samples with data that a new one may replace, oldest first.
    fn outdated(&self, sample: &WaitingSample) -> Vec<u64> {
        let (Some(depth), true) = (self.depth, sample.is_data()) else {
            return Vec::new();
        };
        let Some(instance) = self.instances.get(&sample.instance) else {
            return Vec::new();
        };
        let count = (instance.samples + 1).saturating_sub(depth);
        let data = instance.tickets.iter().copied();
        let is_data = |ticket: &u64| self.waiting.get(ticket).is_some_and(WaitingSample::is_data);
        let data = data.filter(is_data);
        data.take(usize::try_from(count).unwrap_or(usize::MAX))
            .collect()
    }

    /// Whether a sample fits once these are gone.
    fn check(&self, sample: &WaitingSample, without: &[u64]) -> Result<(), HistoryFull> {
        if self.waiting.len() == without.len() {
            return Ok(());
        }
        let gone = without.iter().filter_map(|it| self.waiting.get(it));
        let gone: usize = gone.map(WaitingSample::bytes).sum();
        if self.bytes - gone + sample.bytes() > self.bytes_max {
            return Err(HistoryFull::Bytes);
        }
        let samples = self.samples - without.len() as u64;
        match sample.is_data() && !self.samples_max.allows(samples + 1) {
            true => Err(HistoryFull::Samples),
            false => Ok(()),
        }
    }

    fn append(&mut self, mut sample: WaitingSample, gone: &mut Vec<WaitingSample>) -> u64 {
        if let Some((last, kind)) = self.state_at_end(sample.instance)
            && let Some(kind) = merged(kind, sample.kind)
        {
            sample.kind = kind;
            self.drop_out(last, 0, &mut sample, gone);
        }
        let ticket = self.next;
        self.next += 1;
        self.samples += u64::from(sample.is_data());
        self.bytes += sample.bytes();
        let instance = self.instances.entry(sample.instance).or_default();
        instance.tickets.push_back(ticket);
        instance.samples += u64::from(sample.is_data());
        self.waiting.insert(ticket, sample);
        ticket
    }

    /// The newest that waits of an instance, if that has no data. `None` for KEEP_ALL, which merges
    /// nothing.
    fn state_at_end(&self, instance: KeyHash) -> Option<(u64, MessageKind)> {
        self.depth?;
        let last = *self.instances.get(&instance)?.tickets.back()?;
        let last = (last, self.waiting.get(&last)?);
        (!last.1.is_data()).then_some((last.0, last.1.kind))
    }

    /// Takes a sample with data out, because `newest` replaces it.
    fn replace(&mut self, ticket: u64, newest: &mut WaitingSample, gone: &mut Vec<WaitingSample>) {
        self.drop_out(ticket, 1, newest, gone);
        // Two changes of state may stand side by side now.
        let Some(instance) = self.instances.get(&newest.instance) else {
            return;
        };
        let at = instance.tickets.partition_point(|it| *it < ticket);
        let before = at.checked_sub(1).and_then(|at| instance.tickets.get(at));
        let (Some(&before), Some(&after)) = (before, instance.tickets.get(at)) else {
            return;
        };
        let kinds = (self.waiting.get(&before), self.waiting.get(&after));
        if let (Some(earlier), Some(later)) = kinds
            && let Some(kind) = merged(earlier.kind, later.kind)
        {
            self.drop_out(before, 0, newest, gone);
            if let Some(later) = self.waiting.get_mut(&after) {
                later.kind = kind;
            }
        }
    }

    /// Takes a sample out that is not sent. The next one behind it, at last `newest`, announces the
    /// `lost` samples, and those that it would have announced.
    fn drop_out(
        &mut self,
        ticket: u64,
        lost: u32,
        newest: &mut WaitingSample,
        gone: &mut Vec<WaitingSample>,
    ) {
        let Some(sample) = self.remove(ticket) else {
            return;
        };
        let next = self.waiting.range_mut(ticket..).next();
        let next = next.map_or(newest, |(_, next)| next);
        let lost = sample.skipped.saturating_add(lost);
        next.skipped = next.skipped.saturating_add(lost);
        gone.push(sample);
    }

    fn remove(&mut self, ticket: u64) -> Option<WaitingSample> {
        let sample = self.waiting.remove(&ticket)?;
        self.samples -= u64::from(sample.is_data());
        self.bytes -= sample.bytes();
        if let Some(instance) = self.instances.get_mut(&sample.instance) {
            let at = instance.tickets.partition_point(|it| *it < ticket);
            instance.tickets.remove(at);
            instance.samples -= u64::from(sample.is_data());
            if instance.tickets.is_empty() {
                self.instances.remove(&sample.instance);
            }
        }
        Some(sample)
    }
}

/// What two changes of an instance's state without data between them come to; `None` if it takes
/// both. (To dispose of what is unregistered is something else than both at once.)
fn merged(earlier: MessageKind, later: MessageKind) -> Option<MessageKind> {
    use MessageKind::{Dispose, DisposeUnregister, Unregister};
    match (earlier, later) {
        (Dispose | Unregister | DisposeUnregister, DisposeUnregister)
        | (Dispose | DisposeUnregister, Unregister) => Some(DisposeUnregister),
        (Dispose, Dispose) => Some(Dispose),
        (Unregister, Unregister) => Some(Unregister),
        _ => None,
    }
}

/// Without data: `Dispose` counts against RESOURCE_LIMITS, unregistrations do not.
pub(super) const fn counts_against_limits(kind: MessageKind) -> bool {
    matches!(kind, MessageKind::Data | MessageKind::Dispose)
}

#[cfg(test)]
mod tests;
