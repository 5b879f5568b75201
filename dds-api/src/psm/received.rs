//! The sequences that `read` and `take` fill.

use spindle_dds_idl_runtime::TopicType;

use crate::error::{Result, ReturnCode};
use crate::subscription::{SampleInfo, Samples};

/// Data and infos together (DDS 1.4 §2.2.2.5.3.8). One that has no room of its own, `max_len` 0, gets
/// a loan, which is field 0, until `return_loan`. One with room gets copies.
#[derive(Debug)]
pub struct Received<T>(pub Option<Samples<T>>, Copies<T>);

/// What was copied into the application's own room.
#[derive(Debug)]
struct Copies<T> {
    max_len: usize,
    samples: Vec<(Option<T>, SampleInfo)>,
}

impl<T> Default for Received<T> {
    fn default() -> Self {
        Self::with_max_len(0)
    }
}

impl<T> Received<T> {
    /// With room for so many samples, which are copied into it; with none, for a loan.
    pub fn with_max_len(max_len: usize) -> Self {
        let samples = Vec::new();
        Self(None, Copies { max_len, samples })
    }

    /// How many samples there is room for; that of a loan is full.
    pub fn max_len(&self) -> usize {
        match &self.0 {
            Some(loan) => loan.len(),
            None => self.1.max_len,
        }
    }

    /// The number of samples.
    pub fn len(&self) -> usize {
        match &self.0 {
            Some(loan) => loan.len(),
            None => self.1.samples.len(),
        }
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the room is the application's; false while there is a loan.
    pub fn owns(&self) -> bool {
        self.0.is_none()
    }

    /// The info of the sample at a position.
    pub fn info(&self, at: usize) -> Option<&SampleInfo> {
        match &self.0 {
            Some(loan) => loan.get(at).map(|sample| sample.info()),
            None => self.1.samples.get(at).map(|(_, info)| info),
        }
    }

    /// What was copied of the sample at a position. Without its data (`valid_data` is false) that is
    /// nothing.
    pub fn copy(&self, at: usize) -> Option<&T> {
        self.1.samples.get(at)?.0.as_ref()
    }
}

impl<T: TopicType> Received<T> {
    /// Fills it with at most `max_samples`, which `read` returns; `LENGTH_UNLIMITED` is no limit.
    pub(super) fn fill(
        &mut self,
        max_samples: i32,
        read: impl FnOnce(usize) -> Result<Samples<T>>,
    ) -> ReturnCode {
        let Self(loan, copies) = self;
        if loan.is_some() {
            return ReturnCode::PreconditionNotMet;
        }
        let limit = usize::try_from(max_samples);
        if copies.max_len == 0 {
            let samples = read(limit.unwrap_or(usize::MAX));
            let code = ReturnCode::of(&samples);
            *loan = samples.ok();
            return code;
        }
        copies.samples.clear();
        let limit = limit.unwrap_or(copies.max_len);
        if limit > copies.max_len {
            return ReturnCode::PreconditionNotMet;
        }
        let copied = read(limit).and_then(|samples| copied(&samples));
        let code = ReturnCode::of(&copied);
        copies.samples = copied.unwrap_or_default();
        code
    }
}

fn copied<T: TopicType>(samples: &Samples<T>) -> Result<Vec<(Option<T>, SampleInfo)>> {
    let copies = samples.iter().map(|sample| {
        let has_data = sample.info().valid_data;
        let data = has_data.then(|| sample.data()).transpose()?;
        Ok((data, *sample.info()))
    });
    copies.collect()
}
