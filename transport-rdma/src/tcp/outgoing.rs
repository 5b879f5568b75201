//! My stream to one peer: the queue of what waits, and its writer.
//!
//! There are two locks, and no thread blocks while it holds one. The queue's lock is held
//! to append and to take, never across a system call. The writer's lock is held to fetch and to
//! write. A pushing thread only tries the writer's lock: if it is taken, the thread leaves its
//! records in the queue, and the holder looks at the queue again after it has released the lock.
//!
//! **Opportunistic batching.** On a quiet stream the thread that ends a batch sends it, and wakes
//! no thread. If two sends have ended a moment ago ([`Pace`]), it hands over: the I/O thread
//! sends what has gathered by the time it comes to it, in one system call. What is pushed
//! meanwhile costs its thread a record in the queue, or nothing but a longer one. If the I/O thread
//! gets no processor, the pushing thread sends by itself as soon as a whole stage waits. The I/O
//! thread sends one stage at a time, and lets what has come meanwhile gather again: else it would
//! send few messages at a time to a fast pusher for ever.
//!
//! Nothing is left behind: that a batch is handed over is noted in the queue, under its lock. The
//! I/O thread takes the note back before it takes from the queue, so it also takes what was
//! appended by threads that found the note.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::io::{self, ErrorKind, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

use super::call_counters::StreamCallCounters;
use super::pace::Pace;
use super::record::{HEADER_LEN, Header, RECORD_LEN_MAX};
use super::secure::{Sealer, Sealing};
use super::send_queue::{BatchEnd, SendQueue};
use crate::fabric::WakeReason;
use crate::push_queue::{Full, OwnSegment, Push, SLOTS};
use crate::retry::Classified;

/// Bytes that are fetched and written by one system call.
const STAGE_LEN: usize = RECORD_LEN_MAX + HEADER_LEN;

/// Most records that are staged at once.
const PLAN_MAX: usize = 64;

/// Bytes that wait for the end of a batch, or for the I/O thread, at most; beyond that the pushing
/// thread sends them.
const BATCH_LEN: usize = STAGE_LEN;

/// Whether something may wait for a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Urgency {
    /// Samples, and acknowledgements without which others do not deliver.
    High,
    /// Acknowledgements and releases that only make room: they may gather.
    Low,
}

#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) stream: TcpStream,
    queue: Mutex<SendQueue>,
    writer: Mutex<Writer>,
    opened: Instant,
    pace: Pace,
    /// The stream was ended from here.
    is_shut: AtomicBool,
}

#[derive(Debug)]
struct Writer {
    /// The rows to fetch from, by slot.
    rows: Vec<Option<Arc<OwnSegment>>>,
    /// Fetched bytes; `from..to` are not sent yet. They do not change until they are sent,
    /// so a word that is sent in two pieces has one value (F4).
    stage: Box<[u8]>,
    sealing: Sealing,
    from: usize,
    to: usize,
    plan: Vec<Push>,
    /// The stream is full; the I/O thread continues when it is writable again.
    blocked: bool,
    /// The staged bytes end with the final record of the stream.
    leaves: bool,
    sent: u64,
    calls: Arc<StreamCallCounters>,
}

impl Outgoing {
    /// `stream` is non-blocking. All streams of the station are counted in `streams`.
    pub(super) fn new(
        stream: TcpStream,
        waiting_max: usize,
        calls: &Arc<StreamCallCounters>,
        streams: &Arc<AtomicUsize>,
    ) -> Self {
        Self {
            stream,
            queue: Mutex::new(SendQueue::new(waiting_max)),
            writer: Mutex::new(Writer {
                rows: Vec::with_capacity(SLOTS),
                stage: vec![0; STAGE_LEN].into(),
                sealing: Sealing::Plain,
                from: 0,
                to: 0,
                plan: Vec::with_capacity(PLAN_MAX),
                blocked: false,
                leaves: false,
                sent: 0,
                calls: Arc::clone(calls),
            }),
            opened: Instant::now(),
            pace: Pace::new(streams),
            is_shut: AtomicBool::new(false),
        }
    }

    /// Encrypts all that is sent. Called before anything is.
    pub(super) fn encrypt(&self, sealer: Sealer) {
        self.writer().sealing = Sealing::Sealed(Box::new(sealer));
    }

    fn queue(&self) -> MutexGuard<'_, SendQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a record. True if so much waits that it should be sent now.
    pub(super) fn put_in(&self, own: &Arc<OwnSegment>, push: Push) -> Result<bool, Full> {
        let mut queue = self.queue();
        queue.put_in(own, push)?;
        Ok(queue.bytes() >= BATCH_LEN)
    }

    /// Appends a wake-up.
    pub(super) fn put_wake(&self, reason: WakeReason) -> Result<(), Full> {
        self.queue().put_wake(reason)
    }

    /// Appends the end of a segment.
    pub(super) fn shut(&self, slot: u16) -> Result<(), Full> {
        self.queue().shut(slot)
    }

    /// Ends a batch; returns what is left to do. What nothing waits for is handed over in any case.
    /// Never blocks.
    pub(super) fn end_batch(&self, urgency: Urgency) -> BatchEnd {
        self.queue()
            .end_batch(|| urgency == Urgency::Low || self.pace.is_busy(self.now()))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Bytes of pushes that wait in the queue.
    pub(super) fn waiting(&self) -> usize {
        self.queue().bytes()
    }

    /// Sends what was handed over, up to a stage. Called by the I/O thread. Returns whether more has
    /// come meanwhile, which is handed over again: it gathers, too.
    pub(super) fn send_handed_over(&self) -> io::Result<bool> {
        self.queue().take_hand_over();
        let Some(mut writer) = self.try_writer() else {
            return Ok(false);
        };
        writer.write_to(&self.stream, &self.queue, 1)?;
        self.pace.sent(self.now());
        let blocked = writer.blocked;
        drop(writer);
        Ok(!blocked && self.queue().hand_over_rest())
    }

    /// The writer, unless another thread has it, which looks at the queue again.
    fn try_writer(&self) -> Option<MutexGuard<'_, Writer>> {
        match self.writer.try_lock() {
            Ok(writer) => Some(writer),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Sends what waits, as far as the stream accepts it, or leaves it to the thread that
    /// is writing. Never blocks. After an error that [may pass](Classified::may_pass), nothing is
    /// lost, and [`send_again`](Self::send_again) goes on.
    pub(super) fn send(&self) -> io::Result<()> {
        loop {
            let Some(mut writer) = self.try_writer() else {
                return Ok(());
            };
            writer.write_to(&self.stream, &self.queue, usize::MAX)?;
            self.pace.sent(self.now());
            let blocked = writer.blocked;
            drop(writer);
            // A thread may have found the lock taken after the queue was seen empty.
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

    /// Discards what waits and what is appended later. Staged bytes are sent to their end,
    /// then a final record, and the stream ends. My row is not fetched from any more.
    pub(super) fn leave(&self) -> io::Result<()> {
        let mut writer = self.writer();
        writer.rows.clear();
        self.queue().leave();
        drop(writer);
        self.send()
    }

    /// The stream may be writable again. Called by the I/O thread. Waits for the current
    /// writer, so that `blocked` is not set after it was reset here.
    pub(super) fn send_again(&self) -> io::Result<()> {
        self.writer().blocked = false;
        self.send()
    }

    /// Discards what waits and what is appended later, and ends the stream; the peer
    /// notices. Once this has returned, my row is not fetched from any more.
    pub(super) fn close(&self) {
        let mut writer = self.writer();
        (writer.from, writer.to) = (0, 0);
        writer.sealing = Sealing::Ended;
        writer.rows.clear();
        self.queue().close();
        drop(writer);
        // Once: where the stream has ended, the kernel says so again each time, and the I/O thread
        // would be called again for that.
        if !self.is_shut.swap(true, Ordering::Relaxed) {
            // An error means that it has ended already.
            let _ = self.stream.shutdown(Shutdown::Both);
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.queue().is_closed()
    }

    /// Number of bytes that wait, and number of bytes sent. The caller [sends](Self::send)
    /// afterwards: a thread that found the writer's lock taken has left its records to it.
    pub(super) fn progress(&self) -> (usize, u64) {
        let writer = self.writer();
        let staged = writer.to - writer.from;
        let queue = self.queue();
        (staged + queue.bytes() + queue.messages_len(), writer.sent)
    }
}

impl Writer {
    /// Writes until nothing waits or the stream is full; fills the stage so often at most.
    fn write_to(
        &mut self,
        mut stream: &TcpStream,
        queue: &Mutex<SendQueue>,
        mut stages: usize,
    ) -> io::Result<()> {
        while !self.blocked {
            if self.from == self.to {
                if stages == 0 || !self.fetch(queue) {
                    break;
                }
                stages -= 1;
            }
            let written = stream.write(&self.stage[self.from..self.to]);
            self.calls.sent(&written);
            match written {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(len) => {
                    self.from += len;
                    self.sent += len as u64;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.blocked = true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    // The kernel lacks memory: the I/O thread tries again.
                    self.blocked = error.may_pass();
                    return Err(error);
                }
            }
        }
        if self.leaves && self.from == self.to {
            self.leaves = false;
            // An error means that it has ended already.
            let _ = stream.shutdown(Shutdown::Write);
        }
        Ok(())
    }

    /// Fills the stage from the queue; false if the queue was empty.
    fn fetch(&mut self, queue: &Mutex<SendQueue>) -> bool {
        let Some((start, room)) = self.sealing.stage(STAGE_LEN) else {
            return false;
        };
        let mut plan = core::mem::take(&mut self.plan);
        let mut waiting = queue.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.take(&mut plan, room);
        let part = waiting.take_part();
        let bye = waiting.take_bye();
        self.leaves |= bye;
        drop(waiting);
        (self.from, self.to) = (0, start);
        for push in plan.drain(..) {
            match push {
                Push::Range { slot, at, len } => self.stage_range(slot, at, len),
                Push::Word { slot, at, value } => {
                    self.stage(&Header::Write { slot, at, len: 8 }.encode());
                    self.stage(&value.to_le_bytes());
                }
                Push::Messages(_) => debug_assert!(false, "taken in parts"),
                Push::Wake(reason) => self.stage(&Header::Wake(reason).encode()),
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
        if self.to == start {
            self.to = 0;
            return false;
        }
        self.to = self.sealing.seal(&mut self.stage, self.to);
        true
    }

    /// Stages a range of an open slot.
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

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{Ipv4Addr, TcpListener};

    use rustix::event::Timespec;
    use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
        let at = listener.local_addr().expect("bound");
        let stream = TcpStream::connect(at).expect("connected");
        stream.set_nonblocking(true).expect("set");
        (stream, listener.accept().expect("called").0)
    }

    /// What has come while a stage was sent gathers, and is not left behind.
    #[test]
    fn what_was_handed_over_is_sent_a_stage_at_a_time() {
        let (stream, mut peer) = pair();
        let outgoing = Outgoing::new(stream, 1, &Arc::default(), &Arc::default());
        let bytes = vec![7; 2 * STAGE_LEN];
        outgoing.queue().put_message(&bytes).expect("room");
        assert_eq!(outgoing.end_batch(Urgency::Low), BatchEnd::HandOver);
        let mut stages = 1;
        while outgoing.send_handed_over().expect("sent") {
            assert_eq!(
                outgoing.end_batch(Urgency::High),
                BatchEnd::Over,
                "handed over"
            );
            stages += 1;
        }
        assert!(stages > 2, "{stages}");
        assert!(outgoing.queue().is_empty());
        assert_eq!(outgoing.end_batch(Urgency::High), BatchEnd::Over);
        outgoing.leave().expect("sent");
        let mut received = Vec::new();
        peer.read_to_end(&mut received).expect("read");
        assert!(received.len() > bytes.len());
    }

    /// The kernel reports an end whenever a stream is shut. A thread that shut it for each report
    /// would never rest.
    #[test]
    fn a_stream_that_has_ended_is_shut_once() {
        let (stream, peer) = pair();
        let outgoing = Outgoing::new(stream, 1, &Arc::default(), &Arc::default());
        let set = epoll::create(CreateFlags::CLOEXEC).expect("a set");
        let edges = EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&set, &outgoing.stream, EventData::new_u64(0), edges).expect("watched");
        let reports = || {
            let mut found = [const {
                Event {
                    flags: EventFlags::empty(),
                    data: EventData::new_u64(0),
                }
            }; 1];
            epoll::wait(&set, &mut found[..], Some(&Timespec::default())).expect("looked")
        };
        assert_eq!(reports(), 1, "it is writable");
        drop(peer);
        outgoing.close();
        assert_eq!(reports(), 1, "it has ended");
        outgoing.close();
        assert_eq!(reports(), 0);
        assert!(outgoing.is_closed());
    }
}
