//! The operations of a writer that may block, as futures.
//!
//! ```text
//!   poll   try, without waiting --could not be done--> register, try once more --> Pending
//!   woken  by the waking thread: the subgroup has changed, or the time is over
//! ```
//!
//! Each attempt does all or nothing, so a future that is dropped before it is ready has done nothing, and
//! leaves nothing behind. None of them needs a thread, or a certain executor.

use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::Poll;

use spindle_dds_core::MessageKind;
use spindle_dds_idl_runtime::TopicType;
use spindle_dds_qos::Duration;

use super::acknowledgments::Written;
use super::core::WriterCore;
use super::loan::Loan;
use super::{DataWriter, Publisher, Receipt};
use crate::driver::{
    AcceptanceWait, FutureWaker, SubgroupObserver, SubgroupWait, WaitRecord, WaitingFuture,
    WriterPort,
};
use crate::error::{Error, Result};
use crate::stamps::source_timestamp;
use crate::time::Deadline;

impl SubgroupObserver for FutureWaker {
    fn subgroup_changed(&self) {
        self.mark();
    }
}

/// What a future waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaits {
    Room,
    Acknowledgments,
}

/// A future that waits for changes of its writer's subgroup.
struct WaitsForSubgroup {
    deadline: Deadline,
    future: WaitingFuture,
    wait: Option<SubgroupWait>,
    record: Option<WaitRecord>,
    _accepting: Option<AcceptanceWait>,
}

impl Drop for WaitsForSubgroup {
    fn drop(&mut self) {
        if self.future.is_inherited() {
            // Their locks may be held by threads of the parent.
            std::mem::forget((self.wait.take(), self.record.take()));
        }
    }
}

impl WaitsForSubgroup {
    fn new(
        writer: &WriterCore,
        port: &WriterPort,
        awaits: Awaits,
        deadline: Deadline,
    ) -> Result<Self> {
        let future = writer.waiting_future(deadline)?;
        let for_room = awaits == Awaits::Room;
        Ok(Self {
            deadline,
            future,
            wait: None,
            record: for_room.then(|| port.record_wait()),
            _accepting: (!for_room).then(|| port.wait_for_acceptance()),
        })
    }

    /// From now on, changes wake the task, in the session that the writer is in now.
    fn observe(&mut self, port: &WriterPort) {
        self.wait = Some(match self.wait.take() {
            Some(wait) if wait.is_of(port) => wait,
            Some(wait) => wait.renewed(port),
            None => {
                let marker: Arc<dyn SubgroupObserver> = self.future.marker().clone();
                let observer: Weak<dyn SubgroupObserver> = Arc::downgrade(&marker);
                port.observe(observer)
            }
        });
    }
}

impl WriterCore {
    /// Repeats `attempt` until it has done what it is to do, or has failed for another reason than that
    /// it may not wait, for `max_wait` at most. `attempt` is given how long it may wait.
    async fn repeat<R>(
        &self,
        awaits: Awaits,
        max_wait: Duration,
        mut attempt: impl FnMut(Deadline) -> Result<R>,
    ) -> Result<R> {
        let mut waits = None::<WaitsForSubgroup>;
        poll_fn(|context| {
            let waits = match &mut waits {
                Some(waits) => waits,
                None => {
                    match attempt(Deadline::Passed) {
                        Err(error) if error.is_would_block() => {}
                        done => return Poll::Ready(done),
                    }
                    let deadline = Deadline::after(max_wait);
                    let new = WaitsForSubgroup::new(self, self.port()?, awaits, deadline)?;
                    waits.insert(new)
                }
            };
            let port = self.port()?;
            waits.observe(port);
            waits.future.set_waker(context.waker());
            port.step();
            match attempt(Deadline::Passed) {
                Err(error) if error.is_would_block() => {}
                done => return Poll::Ready(done),
            }
            match waits.deadline.left() {
                // Says what is in the way.
                None => Poll::Ready(attempt(Deadline::after(Duration::ZERO))),
                Some(_) => Poll::Pending,
            }
        })
        .await
    }

    /// A future of this participant.
    fn waiting_future(&self, deadline: Deadline) -> Result<WaitingFuture> {
        let participant = self.participant.upgrade();
        let participant = participant
            .ok_or_else(|| Error::AlreadyDeleted(format!("{} was deleted", self.base.what())))?;
        Ok(WaitingFuture::new(
            participant.notifier(),
            deadline.instant(),
        ))
    }

    /// As [`wait_for_acknowledgments`](Self::wait_for_acknowledgments), for what is given.
    async fn acknowledged(&self, mut written: Written, max_wait: Duration) -> Result<()> {
        self.send_what_waits();
        self.repeat(Awaits::Acknowledgments, max_wait, |until| {
            let port = self.port()?;
            match self.is_acknowledged(port, &mut written) {
                Some(fate) => fate,
                None if until == Deadline::Passed => Err(Error::would_block()),
                None => Err(self.not_acknowledged(port, &written)),
            }
        })
        .await
    }
}

impl Publisher {
    /// As [`wait_for_acknowledgments`](Self::wait_for_acknowledgments), as a future.
    ///
    /// # Errors
    /// As for [`wait_for_acknowledgments`](Self::wait_for_acknowledgments).
    pub async fn wait_for_acknowledgments_async(&self, timeout: impl Into<Duration>) -> Result<()> {
        self.core.base.ready()?;
        let deadline = Deadline::after(timeout.into());
        let writers = self.core.endpoints().clone();
        let begun: Result<Vec<_>> = writers.iter().map(|it| it.begin_wait()).collect();
        for (writer, written) in writers.iter().zip(begun?) {
            writer.acknowledged(written, deadline.remaining()).await?;
        }
        Ok(())
    }
}

impl<T> DataWriter<T> {
    /// As [`wait_for_acknowledgments`](Self::wait_for_acknowledgments), as a future: it is about what was
    /// written before it is polled the first time.
    ///
    /// # Errors
    /// As for [`wait_for_acknowledgments`](Self::wait_for_acknowledgments).
    pub async fn wait_for_acknowledgments_async(&self, timeout: impl Into<Duration>) -> Result<()> {
        let written = self.core.begin_wait()?;
        self.core.acknowledged(written, timeout.into()).await
    }

    /// As [`wait_for`](Self::wait_for), as a future.
    ///
    /// # Errors
    /// As for [`wait_for`](Self::wait_for).
    pub async fn wait_for_async(
        &self,
        receipt: &Receipt,
        timeout: impl Into<Duration>,
    ) -> Result<()> {
        self.core.port()?;
        let written = self.core.written_of(receipt)?;
        self.core.acknowledged(written, timeout.into()).await
    }
}

impl<T: TopicType> DataWriter<T> {
    /// As [`write`](Self::write), as a future: where that would block, the future is pending, until there
    /// is room or max_blocking_time is over. Nothing is done before it is polled. If it is dropped
    /// before it is ready, nothing is written.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub async fn write_async(&self, sample: &T) -> Result<Receipt> {
        self.write_w_timestamp_async(sample, source_timestamp())
            .await
    }

    /// As [`write_async`](Self::write_async), with a source timestamp in nanoseconds since 1970.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub async fn write_w_timestamp_async(&self, sample: &T, timestamp: i64) -> Result<Receipt> {
        let representation = self.core.side.representation();
        let message = (MessageKind::Data, sample.key_hash());
        let max_wait = self.core.side.max_blocking_time();
        self.core
            .repeat(Awaits::Room, max_wait, |until| {
                let len = sample.size(representation);
                let encode = |bytes: &mut [u8]| Ok(sample.encode(representation, bytes)?);
                self.core
                    .write_until(until, len, encode, message, timestamp)
            })
            .await
    }

    /// As [`dispose`](Self::dispose), as a future: see [`write_async`](Self::write_async).
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub async fn dispose_async(&self, key: &T) -> Result<Receipt> {
        self.dispose_w_timestamp_async(key, source_timestamp())
            .await
    }

    /// As [`dispose_async`](Self::dispose_async), with a source timestamp.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub async fn dispose_w_timestamp_async(&self, key: &T, timestamp: i64) -> Result<Receipt> {
        self.write_key_async(key, MessageKind::Dispose, timestamp)
            .await
    }

    /// As [`unregister_instance`](Self::unregister_instance), as a future: see
    /// [`write_async`](Self::write_async).
    ///
    /// # Errors
    /// As for [`unregister_instance`](Self::unregister_instance).
    pub async fn unregister_instance_async(&self, key: &T) -> Result<Receipt> {
        self.unregister_instance_w_timestamp_async(key, source_timestamp())
            .await
    }

    /// As [`unregister_instance_async`](Self::unregister_instance_async), with a source timestamp.
    ///
    /// # Errors
    /// As for [`unregister_instance`](Self::unregister_instance).
    pub async fn unregister_instance_w_timestamp_async(
        &self,
        key: &T,
        timestamp: i64,
    ) -> Result<Receipt> {
        let name = self.check_registered(key)?;
        let kind = self.unregistration();
        let receipt = self.write_key_async(key, kind, timestamp).await?;
        self.unregistered(name);
        Ok(receipt)
    }

    async fn write_key_async(&self, key: &T, kind: MessageKind, timestamp: i64) -> Result<Receipt> {
        let representation = self.core.side.representation();
        let message = (kind, key.key_hash());
        let max_wait = self.core.side.max_blocking_time();
        self.core
            .repeat(Awaits::Room, max_wait, |until| {
                let len = key.key_size(representation);
                let encode = |bytes: &mut [u8]| Ok(key.encode_key(representation, bytes)?);
                self.core
                    .write_until(until, len, encode, message, timestamp)
            })
            .await
    }

    /// As [`loan`](Self::loan), as a future. Where the writer limits instances, or the samples of one, or
    /// its history is full, `publish` may still block; [`write_async`](Self::write_async) does not.
    ///
    /// # Errors
    /// As for [`loan`](Self::loan).
    pub async fn loan_async(&self) -> Result<T::Builder<Loan<T>>> {
        self.loan_with_async(self.max_size()?).await
    }

    /// As [`loan_with`](Self::loan_with), as a future: see [`loan_async`](Self::loan_async). If it is
    /// dropped before it is ready, nothing is lent.
    ///
    /// # Errors
    /// As for [`loan`](Self::loan).
    pub async fn loan_with_async(&self, max_bytes: usize) -> Result<T::Builder<Loan<T>>> {
        let max_wait = self.core.side.max_blocking_time();
        let reserve = |until| Loan::reserve_until(&self.core, max_bytes, None, until);
        let loan = self.core.repeat(Awaits::Room, max_wait, reserve).await?;
        Ok(T::build(loan, self.core.side.representation())?)
    }
}
