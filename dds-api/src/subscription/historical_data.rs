//! Waiting for historical data (DDS 1.4 §2.2.2.5.3.15), and how far it is.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};
use std::thread::{self, Thread};

use spindle_dds_qos::Duration;

use super::core::{ReaderCore, is_durable};
use super::{AnyDataReader, DataReader};
use crate::driver::{HistoryWait, WaitingFuture};
use crate::error::{Error, Result};
use crate::status::HistoricalDataStatus;
use crate::time::Deadline;

/// Wakes a thread that waits.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A wait for the historical data of a reader.
struct HistoryFuture<'r> {
    reader: &'r ReaderCore,
    deadline: Deadline,
    future: WaitingFuture,
    wait: Option<HistoryWait<'r>>,
}

impl Drop for HistoryFuture<'_> {
    fn drop(&mut self) {
        if self.future.is_inherited() {
            // A thread of the parent may have had the lock.
            std::mem::forget(self.wait.take());
        }
    }
}

impl<'r> HistoryFuture<'r> {
    fn new(reader: &'r ReaderCore, deadline: Deadline) -> Result<Self> {
        let participant = reader
            .participant
            .upgrade()
            .ok_or_else(|| Error::AlreadyDeleted(format!("{} was deleted", reader.base.what())))?;
        let future = WaitingFuture::new(participant.notifier(), deadline.instant());
        Ok(Self {
            wait: Some(reader.side.port.wait_for_history(future.marker())),
            reader,
            deadline,
            future,
        })
    }

    /// Whether the wait is over. If it is not, the task is woken when that may have changed.
    fn poll(&self, waker: &Waker) -> Option<Result<()>> {
        self.future.set_waker(waker);
        let over = self.reader.has_historical_data();
        over.or_else(|| match self.deadline.left() {
            None => Some(Err(self.reader.no_historical_data())),
            Some(_) => None,
        })
    }
}

impl ReaderCore {
    fn wait_for_historical_data(&self, timeout: Duration) -> Result<()> {
        if let Some(over) = self.has_historical_data() {
            return over;
        }
        let wait = HistoryFuture::new(self, Deadline::after(timeout))?;
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        loop {
            if let Some(over) = wait.poll(&waker) {
                return over;
            }
            match wait.deadline.left() {
                Some(Some(left)) => thread::park_timeout(left),
                Some(None) => thread::park(),
                None => {}
            }
        }
    }

    async fn wait_for_historical_data_async(&self, timeout: Duration) -> Result<()> {
        if let Some(over) = self.has_historical_data() {
            return over;
        }
        let wait = HistoryFuture::new(self, Deadline::after(timeout))?;
        poll_fn(|context| {
            let over = wait.poll(context.waker());
            over.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// Whether it has come, or why it will not; `None` if not yet.
    fn has_historical_data(&self) -> Option<Result<()>> {
        if let Err(error) = self.base.ready() {
            return Some(Err(error));
        }
        if !is_durable(&self.qos()) {
            return Some(Ok(()));
        }
        self.side.port.has_historical_data()
    }

    /// TIMEOUT, with what is in the way.
    #[cold]
    fn no_historical_data(&self) -> Error {
        let what = self.base.what();
        let status = self.side.port.historical_data();
        Error::Timeout(match status {
            HistoricalDataStatus {
                is_awaiting: false, ..
            } => format!("the group has not taken {what} in yet"),
            _ if self.side.port.awaits_opening() => format!(
                "{what} still awaits historical data, which is in logs: {}",
                self.topic.logs.why_shut().unwrap_or_default()
            ),
            HistoricalDataStatus {
                samples, donors, ..
            } => format!(
                "{what} still awaits historical data: {samples} samples have come, and more is to \
                 come from {donors} participants"
            ),
        })
    }

    fn historical_data(&self) -> Result<HistoricalDataStatus> {
        self.base.alive()?;
        Ok(self.side.port.historical_data())
    }
}

/// The same for readers of a known type and of any.
macro_rules! historical_data {
    ($($reader:tt)+) => {
        $($reader)+ {
            /// Blocks until the reader has the samples that were written before it was matched with their
            /// writers (`wait_for_historical_data`), at most for `timeout`: until it is in a view of its
            /// group, and the history of all writers that it is matched with there has come. With DURABILITY
            /// VOLATILE there is none: it returns at once.
            ///
            /// What has come is to be taken where RESOURCE_LIMITS leave no room for the rest.
            ///
            /// # Errors
            /// TIMEOUT; NOT_ENABLED, ALREADY_DELETED; ERROR when the participant has lost its group for
            /// good.
            pub fn wait_for_historical_data(&self, timeout: impl Into<Duration>) -> Result<()> {
                self.core.wait_for_historical_data(timeout.into())
            }

            /// As [`wait_for_historical_data`](Self::wait_for_historical_data), as a future.
            ///
            /// # Errors
            /// As for [`wait_for_historical_data`](Self::wait_for_historical_data).
            pub async fn wait_for_historical_data_async(
                &self,
                timeout: impl Into<Duration>,
            ) -> Result<()> {
                self.core.wait_for_historical_data_async(timeout.into()).await
            }

            /// How far the historical data is. An extension of Spindle.
            ///
            /// # Errors
            /// ALREADY_DELETED.
            pub fn historical_data(&self) -> Result<HistoricalDataStatus> {
                self.core.historical_data()
            }
        }
    };
}

historical_data!(impl<T> DataReader<T>);
historical_data!(impl AnyDataReader);
