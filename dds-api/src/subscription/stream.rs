//! Samples as a `Stream`, for any executor.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use spindle_dds_idl_runtime::TopicType;

use super::{DataReader, Samples};
use crate::error::{Error, Result};

/// See [`DataReader::stream`]. Ends when the reader is deleted or the
/// participant closed; a failed group is one last error, as is a reader that a child of `fork` has
/// inherited.
#[derive(Debug)]
pub struct SampleStream<T> {
    reader: Option<DataReader<T>>,
    max: usize,
    /// The task that was registered last.
    waker: Option<Waker>,
}

impl<T> SampleStream<T> {
    pub(super) fn new(reader: DataReader<T>, max: usize) -> Self {
        Self {
            reader: Some(reader),
            max,
            waker: None,
        }
    }
}

impl<T> Drop for SampleStream<T> {
    fn drop(&mut self) {
        let (Some(reader), Some(waker)) = (&self.reader, self.waker.take()) else {
            return;
        };
        if !reader.core.base.is_inherited() {
            reader.core.side.streams.unregister(&waker);
        }
    }
}

impl<T: TopicType> Stream for SampleStream<T> {
    type Item = Result<Samples<T>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(reader) = self.reader.clone() else {
            return Poll::Ready(None);
        };
        let mut taken = reader.take(self.max);
        if matches!(taken, Err(Error::NoData(_))) {
            reader.core.side.streams.register(context.waker());
            self.waker = Some(context.waker().clone());
            // Samples that arrived between the first take and the registration.
            taken = reader.take(self.max);
        }
        match taken {
            Ok(samples) => Poll::Ready(Some(Ok(samples))),
            Err(Error::NoData(_)) => Poll::Pending,
            Err(Error::AlreadyDeleted(_)) if !reader.core.base.is_inherited() => {
                self.reader = None;
                Poll::Ready(None)
            }
            Err(error) => {
                self.reader = None;
                Poll::Ready(Some(Err(error)))
            }
        }
    }
}
