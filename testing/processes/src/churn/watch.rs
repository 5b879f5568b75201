//! What a reader gets: every sample once, in the order of its writer; how many, and when.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use spindle_dds::{DataReader, DataReaderListener, Error};

use crate::exchange::Probe;
use crate::{Failure, clock};

/// What a reader got.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// By writer: the number of its next sample, and how many samples came.
    writers: BTreeMap<u32, (u64, u64)>,
    /// Whether each writer has to be heard from its first sample on.
    from_first: bool,
    /// When the last samples were taken.
    taken_at_ns: u64,
    /// `due_at_ns` of the last sample.
    pub(super) due_at_ns: u64,
    /// By slice of time: when its first samples were taken, and how many were in it.
    slices: Vec<(u64, u64)>,
    /// Times without a sample, from and to, of at least [`GAP_NS`].
    pub(super) gaps_ns: Vec<(u64, u64)>,
    /// What went wrong in the listener.
    failure: Option<Failure>,
}

/// A watch that a listener and a thread have in common.
pub(crate) type SharedWatch = Arc<Mutex<Watch>>;

/// Does something with a watch.
pub(crate) fn with<R>(watch: &SharedWatch, work: impl FnOnce(&mut Watch) -> R) -> R {
    work(&mut watch.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Watch {
    /// Of a reader that exists before any writer.
    pub(super) fn from_first_unshared() -> Self {
        Self {
            from_first: true,
            ..Self::default()
        }
    }

    /// The same, to be shared with a listener.
    pub(crate) fn from_first() -> SharedWatch {
        Arc::new(Mutex::new(Self::from_first_unshared()))
    }

    /// Of a reader that may come later than its writers.
    pub(crate) fn from_any() -> SharedWatch {
        SharedWatch::default()
    }

    /// Takes until nothing is left.
    pub(crate) fn take_all(&mut self, reader: &DataReader<Probe>) -> Result<(), Failure> {
        while self.take_some(reader)? {}
        Ok(())
    }

    /// Takes once. Whether there was anything.
    pub(super) fn take_some(&mut self, reader: &DataReader<Probe>) -> Result<bool, Failure> {
        let samples = match reader.take(TAKE_MAX) {
            Ok(samples) => samples,
            Err(error) if error.is_no_data() => return Ok(false),
            // A listener may be called while its reader is deleted.
            Err(Error::AlreadyDeleted(_)) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let now_ns = clock::monotonic_ns();
        let mut count = 0;
        for sample in samples.iter().filter(|sample| sample.info().valid_data) {
            let view = sample.view()?;
            self.due_at_ns = view.due_at_ns();
            self.check_order(view.writer(), view.number())?;
            count += 1;
        }
        if count > 0 {
            self.note_time(now_ns, count);
        }
        Ok(true)
    }

    fn check_order(&mut self, writer: u32, found: u64) -> Result<(), Failure> {
        let first = if self.from_first { 0 } else { found };
        let (next, count) = self.writers.entry(writer).or_insert((first, 0));
        let expected = std::mem::replace(next, found + 1);
        *count += 1;
        match found == expected {
            true => Ok(()),
            false => Err(Failure::OutOfOrder {
                writer,
                found,
                expected,
            }),
        }
    }

    fn note_time(&mut self, now_ns: u64, samples: u64) {
        let since_ns = std::mem::replace(&mut self.taken_at_ns, now_ns);
        if since_ns > 0 && now_ns - since_ns >= GAP_NS {
            self.gaps_ns.push((since_ns, now_ns));
        }
        match self.slices.last_mut() {
            Some((at_ns, count)) if now_ns / SLICE_NS == *at_ns / SLICE_NS => *count += samples,
            _ => self.slices.push((now_ns, samples)),
        }
    }

    /// Samples of writer 0, and of all others.
    pub(crate) fn samples(&self) -> (u64, u64) {
        let of_first = self.writers.get(&0).map_or(0, |(_, count)| *count);
        let all: u64 = self.writers.values().map(|(_, count)| *count).sum();
        (of_first, all - of_first)
    }

    /// Samples that were taken within a stretch of time.
    pub(super) fn samples_in(&self, (from_ns, to_ns): (u64, u64)) -> u64 {
        let slices = self.slices.iter();
        let within = slices.filter(|(at_ns, _)| (from_ns..to_ns).contains(at_ns));
        within.map(|(_, count)| *count).sum()
    }

    /// Forgets when samples came, which takes memory for each slice.
    pub(crate) fn forget_times(&mut self) {
        self.slices.clear();
        self.gaps_ns.clear();
    }

    /// Fails if something went wrong in the listener.
    pub(crate) fn check(&mut self) -> Result<(), Failure> {
        self.failure.take().map_or(Ok(()), Err)
    }
}

/// A listener that takes all there is.
pub(crate) struct TakingListener(pub(crate) SharedWatch);

impl DataReaderListener<Probe> for TakingListener {
    fn on_data_available(&mut self, reader: &DataReader<Probe>) {
        with(&self.0, |watch| {
            if let Err(failure) = watch.take_all(reader) {
                watch.failure.get_or_insert(failure);
            }
        });
    }
}

const TAKE_MAX: usize = 256;
/// A shorter time without samples is no gap.
const GAP_NS: u64 = 200_000;
const SLICE_NS: u64 = 1_000_000;
