//! What a reader takes of a topic: how much in each slice of time, and in which order.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use spindle_dds::{DataReader, Samples};

use super::timetable::{PHASES, SLICES, Timetable};
use crate::exchange::Probe;
use crate::{Failure, clock};

/// What was taken of a topic.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub(super) samples: u64,
    /// Of publication handle and sequence number, in the order of taking.
    pub(super) digest: u64,
    /// Samples taken in each slice of each phase.
    pub(super) slices: Vec<u64>,
}

/// The watch of one reader.
#[derive(Debug)]
pub(super) struct Watch {
    timetable: Timetable,
    /// Whether its first sample says when the phases begin.
    tells_start: bool,
    seen: Seen,
    digest: Fnv,
    /// What went wrong in a listener.
    failure: Option<Failure>,
}

/// A watch that a listener and a thread have in common.
pub(super) type SharedWatch = Arc<Mutex<Watch>>;

/// Does something with a watch.
pub(super) fn with<R>(watch: &SharedWatch, work: impl FnOnce(&mut Watch) -> R) -> R {
    work(&mut watch.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Watch {
    pub(super) fn new(timetable: &Timetable, tells_start: bool) -> SharedWatch {
        Arc::new(Mutex::new(Self {
            timetable: timetable.clone(),
            tells_start,
            seen: Seen {
                slices: vec![0; PHASES.len() * SLICES],
                ..Seen::default()
            },
            digest: Fnv::default(),
            failure: None,
        }))
    }

    /// Takes until nothing is left.
    pub(super) fn take_all(&mut self, reader: &DataReader<Probe>) -> Result<(), Failure> {
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => {
                while self.take_some(reader)?.is_some() {}
                Ok(())
            }
        }
    }

    /// The same in a listener. An error is reported by the next `take_all`.
    pub(super) fn take_all_quietly(&mut self, reader: &DataReader<Probe>) {
        if let Err(failure) = self.take_all(reader) {
            self.failure = Some(failure);
        }
    }

    /// Takes once, and returns the samples.
    pub(super) fn take_some(
        &mut self,
        reader: &DataReader<Probe>,
    ) -> Result<Option<Samples<Probe>>, Failure> {
        let samples = match reader.take(TAKE_MAX) {
            Ok(samples) => samples,
            Err(error) if error.is_no_data() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut count = 0;
        for sample in samples.iter().filter(|sample| sample.info().valid_data) {
            let (info, view) = (sample.info(), sample.view()?);
            if self.tells_start && !self.timetable.is_known() {
                self.timetable.set_start(view.due_at_ns());
            }
            info.publication_handle.hash(&mut self.digest);
            self.digest.write_u64(info.writer_sequence());
            self.digest.write_u64(view.number());
            count += 1;
        }
        self.seen.samples += count;
        if let Some(slice) = self.timetable.slice_at(clock::monotonic_ns()) {
            self.seen.slices[slice] += count;
        }
        Ok(Some(samples))
    }

    /// Samples taken so far.
    pub(super) fn samples(&self) -> u64 {
        self.seen.samples
    }

    pub(super) fn seen(&self) -> Seen {
        Seen {
            digest: self.digest.finish(),
            ..self.seen.clone()
        }
    }
}

/// FNV-1a over 64 bits, the same in every process.
#[derive(Debug)]
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

const TAKE_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_depends_on_the_order() {
        let digest = |values: &[u64]| {
            let mut fnv = Fnv::default();
            values.iter().for_each(|value| fnv.write_u64(*value));
            fnv.finish()
        };
        assert_eq!(digest(&[1, 2, 3]), digest(&[1, 2, 3]));
        assert_ne!(digest(&[1, 2, 3]), digest(&[2, 1, 3]));
        assert_ne!(digest(&[1, 2]), digest(&[1, 2, 3]));
    }
}
