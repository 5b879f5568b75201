//! My stream to one peer: what waits for it, and whoever writes it.
//!
//! Two locks, neither held while anybody waits. The queue's is held to put and
//! to take. The writer's is held to fetch and to write, and only tried by those
//! who push: who finds it taken leaves the records, and the holder looks at the
//! queue again after it has let go.

use core::sync::atomic::{AtomicBool, Ordering};
use std::io::{self, ErrorKind, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use super::queue::Queue;
use super::record::{HEADER_LEN, Header, RECORD_LEN_MAX};
use crate::fabric::WakeReason;
use crate::queue::{Full, Own, Push, SLOTS};

/// Bytes that are fetched and handed to the kernel at once.
const STAGE_LEN: usize = RECORD_LEN_MAX + HEADER_LEN;

/// Records that are staged at once.
const PLAN_MAX: usize = 64;

/// Bytes that wait for the end of the batch, at most: more are sent at once.
const BATCH_LEN: usize = STAGE_LEN;

#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) stream: TcpStream,
    queue: Mutex<Queue>,
    writer: Mutex<Writer>,
    /// Something waits since the last batch ended.
    held_back: AtomicBool,
}

#[derive(Debug)]
struct Writer {
    /// By slot: whose rows are fetched from.
    rows: Vec<Option<Arc<Own>>>,
    /// Fetched bytes; those of `from..to` are not sent yet. They stay as they
    /// were fetched, so that a word in two pieces is one value.
    stage: Box<[u8]>,
    from: usize,
    to: usize,
    plan: Vec<Push>,
    /// The stream is full: the I/O thread goes on when it is not.
    blocked: bool,
    /// What is staged ends with a farewell.
    leaves: bool,
    sent: u64,
}

impl Outgoing {
    /// `stream` does not block.
    pub(super) fn new(stream: TcpStream, waiting_max: usize) -> Self {
        Self {
            stream,
            queue: Mutex::new(Queue::new(waiting_max)),
            writer: Mutex::new(Writer {
                rows: Vec::with_capacity(SLOTS),
                stage: vec![0; STAGE_LEN].into(),
                from: 0,
                to: 0,
                plan: Vec::with_capacity(PLAN_MAX),
                blocked: false,
                leaves: false,
                sent: 0,
            }),
            held_back: AtomicBool::new(false),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a record. Whether so much waits that it had better be sent now.
    pub(super) fn put_in(&self, own: &Arc<Own>, push: Push) -> Result<bool, Full> {
        let mut queue = self.queue();
        queue.put_in(own, push)?;
        self.held_back.store(true, Ordering::Relaxed);
        Ok(queue.bytes() >= BATCH_LEN)
    }

    /// Appends a ring.
    pub(super) fn put_wake(&self, ring: WakeReason) -> Result<(), Full> {
        self.held_back.store(true, Ordering::Relaxed);
        self.queue().put_wake(ring)
    }

    /// The last of a segment.
    pub(super) fn shut(&self, slot: u16) -> Result<(), Full> {
        self.held_back.store(true, Ordering::Relaxed);
        self.queue().shut(slot)
    }

    /// Sends what was held back, as far as the stream takes it. Never blocks.
    pub(super) fn end_batch(&self) -> io::Result<()> {
        if self.held_back.swap(false, Ordering::Relaxed) {
            return self.send();
        }
        Ok(())
    }

    /// Sends what waits, as far as the stream takes it, or leaves that to
    /// whoever is at it. Never blocks.
    pub(super) fn send(&self) -> io::Result<()> {
        loop {
            let mut writer = match self.writer.try_lock() {
                Ok(writer) => writer,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return Ok(()),
            };
            writer.write_to(&self.stream, &self.queue)?;
            let blocked = writer.blocked;
            drop(writer);
            // Somebody may have found the lock taken after the queue was empty.
            if blocked || self.queue().is_empty() {
                return Ok(());
            }
        }
    }

    /// Appends a message, and sends what waits as [`send`](Self::send) does.
    pub(super) fn send_message(&self, bytes: &[u8]) -> Result<io::Result<()>, Full> {
        self.queue().put_message(bytes)?;
        Ok(self.send())
    }

    /// Drops what waits and what comes; what is on its way is sent to its end, then
    /// a farewell, and then the stream ends. Nothing of my row is fetched any more.
    pub(super) fn leave(&self) -> io::Result<()> {
        let mut writer = self.writer();
        writer.rows.clear();
        self.queue().leave();
        drop(writer);
        self.send()
    }

    /// By the I/O thread: the stream may take bytes again. It waits for who
    /// writes, so that it comes after whoever has found the stream full.
    pub(super) fn send_again(&self) -> io::Result<()> {
        self.writer().blocked = false;
        self.send()
    }

    /// Drops what waits and what comes, and ends the stream: the peer learns of
    /// it. Once it has returned, nothing of my row is fetched for it any more.
    pub(super) fn close(&self) {
        let mut writer = self.writer();
        (writer.from, writer.to) = (0, 0);
        writer.rows.clear();
        self.queue().close();
        // An error says that it has ended already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.queue().is_closed()
    }

    /// Bytes that wait, and those that were sent.
    pub(super) fn progress(&self) -> (usize, u64) {
        let writer = self.writer();
        let staged = writer.to - writer.from;
        let queue = self.queue();
        (staged + queue.bytes() + queue.messages_len(), writer.sent)
    }
}

impl Writer {
    /// Writes until nothing waits or the stream is full.
    fn write_to(&mut self, mut stream: &TcpStream, queue: &Mutex<Queue>) -> io::Result<()> {
        while !self.blocked && (self.from < self.to || self.fetch(queue)) {
            match stream.write(&self.stage[self.from..self.to]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(len) => {
                    self.from += len;
                    self.sent += len as u64;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.blocked = true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.leaves && self.from == self.to {
            self.leaves = false;
            // An error says that it has ended already.
            let _ = stream.shutdown(Shutdown::Write);
        }
        Ok(())
    }

    /// Fills the stage anew from the queue; whether there was anything.
    fn fetch(&mut self, queue: &Mutex<Queue>) -> bool {
        let mut plan = core::mem::take(&mut self.plan);
        let mut waiting = queue.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.take(&mut plan, STAGE_LEN);
        let part = waiting.take_part();
        let bye = waiting.take_bye();
        self.leaves |= bye;
        drop(waiting);
        (self.from, self.to) = (0, 0);
        for push in plan.drain(..) {
            match push {
                Push::Range { slot, at, len } => self.stage_range(slot, at, len),
                Push::Word { slot, at, value } => {
                    self.stage(&Header::Write { slot, at, len: 8 }.encode());
                    self.stage(&value.to_le_bytes());
                }
                Push::Wake(ring) => self.stage(&Header::Wake(ring).encode()),
                Push::Open(own) => {
                    let (slot, key) = (own.slot, own.key);
                    self.stage(&Header::Open { slot, key }.encode());
                    let slot = usize::from(slot);
                    if self.rows.len() <= slot {
                        self.rows.resize(slot + 1, None);
                    }
                    self.rows[slot] = Some(own);
                }
                Push::Shut { slot } => {
                    self.stage(&Header::Shut { slot }.encode());
                    self.rows[usize::from(slot)] = None;
                }
            }
        }
        self.plan = plan;
        if let Some(part) = part {
            self.stage(&part.header().encode());
            self.stage(part.bytes());
        }
        if bye {
            self.stage(&Header::Bye.encode());
        }
        self.to > 0
    }

    /// The queue has opened the slot before.
    fn stage_range(&mut self, slot: u16, at: usize, len: usize) {
        self.stage(&Header::Write { slot, at, len }.encode());
        if let Some(own) = &self.rows[usize::from(slot)] {
            own.row
                .copy_out(at, &mut self.stage[self.to..self.to + len]);
        }
        self.to += len;
    }

    fn stage(&mut self, bytes: &[u8]) {
        self.stage[self.to..self.to + bytes.len()].copy_from_slice(bytes);
        self.to += bytes.len();
    }
}
