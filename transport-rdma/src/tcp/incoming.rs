//! A peer's stream to me: applied to my copies of its rows until it ends.

use core::sync::atomic::{AtomicU64, Ordering};
use std::io::Read;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::call_counters::StreamCallCounters;
use super::decoder::{Decoder, RowTarget};
use super::fault::Fault;
use super::record::RecordError;
use super::secure::{OVERHEAD, Opener};
use super::splitter::{Piece, Splitter};
use crate::fabric::WakeReason;
use crate::fabric::news::NewsBuckets;
use crate::retry::{Classified, ErrorClass};
use crate::station::segment::SegmentKey;

/// Most bytes that are read while they wait for a segment to be opened.
const REST_LEN_MAX: usize = 1 << 24;

/// Pause after the kernel lacked memory for reading.
const PAUSE: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) stream: TcpStream,
    /// `None` once nothing more is applied.
    receiver: Mutex<Option<Receiver>>,
    /// Bytes of the stream that were applied, and whose wake-ups were handled.
    done: AtomicU64,
    calls: Arc<StreamCallCounters>,
}

#[derive(Debug, Default)]
struct Receiver {
    /// Set if the stream is encrypted.
    opener: Option<Box<Opener>>,
    splitter: Splitter,
    decoder: Decoder,
    /// Bytes that were read and wait for a segment to be opened.
    rest: Vec<u8>,
}

/// The result of reading some bytes.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) messages: Vec<Vec<u8>>,
    /// The greatest reason of the wake-ups among them.
    pub(super) wake: Option<WakeReason>,
    /// The buckets of the segments into whose copies bytes were written.
    pub(super) landed: NewsBuckets,
    /// Number of bytes that were applied; the rest waits.
    len: usize,
    /// Set if nothing more of the stream is applied.
    pub(super) fault: Option<Fault>,
}

impl Received {
    /// Adds the result of later bytes.
    fn append(&mut self, mut later: Self) {
        self.messages.append(&mut later.messages);
        self.wake = self.wake.max(later.wake);
        self.landed.add(&later.landed);
        self.len += later.len;
        self.fault = later.fault;
    }
}

impl Receiver {
    /// Whether so many bytes wait for a segment that reading has stopped.
    fn is_stuck(&self) -> bool {
        self.decoder.is_waiting() && self.rest.len() >= REST_LEN_MAX
    }

    fn read(
        &mut self,
        mut stream: &TcpStream,
        buffer: &mut [u8],
        target: impl Fn(SegmentKey) -> RowTarget,
        calls: &StreamCallCounters,
    ) -> Received {
        let read = stream.read(buffer);
        calls.received(&read);
        let fault = match read {
            Ok(0) if self.is_between_records() => Fault::Ended,
            Ok(0) => Fault::EndedInside,
            Ok(len) => return self.open(&mut buffer[..len], target),
            Err(error) => match error.class() {
                ErrorClass::Transient => return Received::default(),
                ErrorClass::OutOfResources => {
                    // The stream stays readable, and is read again.
                    thread::sleep(PAUSE);
                    return Received::default();
                }
                ErrorClass::Final => Fault::Broken(error),
            },
        };
        Received {
            fault: Some(fault),
            ..Received::default()
        }
    }

    fn is_between_records(&self) -> bool {
        let frames = self.opener.as_ref().is_none_or(|it| it.is_between_frames());
        frames && self.splitter.is_between_records()
    }

    /// Opens the frames of an encrypted stream, and feeds their plaintext.
    fn open(&mut self, bytes: &mut [u8], target: impl Fn(SegmentKey) -> RowTarget) -> Received {
        let Some(mut opener) = self.opener.take() else {
            return self.feed(bytes, target);
        };
        let mut received = Received::default();
        let opened = opener.open(bytes, |plain| {
            received.append(self.feed(plain, &target));
            received.len += OVERHEAD;
            received.fault.is_none()
        });
        self.opener = Some(opener);
        if let Err(error) = opened {
            received.fault = Some(Fault::InvalidFrame(error));
        }
        received
    }

    fn feed(&mut self, mut bytes: &[u8], target: impl Fn(SegmentKey) -> RowTarget) -> Received {
        let (len, waited) = (bytes.len(), self.rest.len());
        let mut received = Received::default();
        let fault = loop {
            let landed = &mut received.landed;
            let rows = match self.splitter.next(&mut bytes) {
                Ok(None) => break None,
                Ok(Some(Piece::Rows(rows))) => self.rows(rows, &target, landed),
                Ok(Some(Piece::Header(header))) => self.rows(&header, &target, landed),
                Ok(Some(Piece::Message(message))) => {
                    received.messages.push(message);
                    continue;
                }
                Ok(Some(Piece::Bye)) => break Some(Fault::Closed),
                Err(error) => Err(error),
            };
            match rows {
                Ok(wake) => received.wake = received.wake.max(wake),
                Err(error) => break Some(Fault::InvalidRecord(error)),
            }
        };
        received.len = len - (self.rest.len() - waited);
        received.fault = fault;
        received
    }

    /// Records of rows; they queue behind those that wait, if there are any.
    fn rows(
        &mut self,
        rows: &[u8],
        target: impl Fn(SegmentKey) -> RowTarget,
        landed: &mut NewsBuckets,
    ) -> Result<Option<WakeReason>, RecordError> {
        if self.decoder.is_waiting() {
            self.rest.extend_from_slice(rows);
            return Ok(None);
        }
        let fed = self.decoder.feed(rows, target)?;
        self.rest.extend_from_slice(&rows[fed.taken..]);
        landed.add(&fed.landed);
        Ok(fed.wake)
    }

    /// Applies the bytes that wait, as far as their segments are open now.
    fn resume(&mut self, target: impl Fn(SegmentKey) -> RowTarget) -> Received {
        let mut received = Received::default();
        match self.decoder.feed(&self.rest, target) {
            Ok(fed) => {
                self.rest.drain(..fed.taken);
                (received.len, received.wake) = (fed.taken, fed.wake);
                received.landed = fed.landed;
            }
            Err(error) => received.fault = Some(Fault::InvalidRecord(error)),
        }
        received
    }
}

impl Incoming {
    /// `stream` is non-blocking.
    pub(super) fn new(stream: TcpStream, calls: &Arc<StreamCallCounters>) -> Self {
        Self {
            stream,
            receiver: Mutex::new(Some(Receiver::default())),
            done: AtomicU64::new(0),
            calls: Arc::clone(calls),
        }
    }

    /// All that is received is encrypted. Called before anything is.
    pub(super) fn decrypt(&self, opener: Opener) {
        if let Some(receiver) = &mut *self.receiver() {
            receiver.opener = Some(Box::new(opener));
        }
    }

    fn receiver(&self) -> MutexGuard<'_, Option<Receiver>> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads at most `buffer.len()` bytes and passes the result to `handle`. A fault is
    /// reported once, as the last result. One thread at a time.
    pub(super) fn receive(
        &self,
        buffer: &mut [u8],
        target: impl Fn(SegmentKey) -> RowTarget,
        handle: impl FnOnce(Received),
    ) {
        self.apply(handle, |receiver| match receiver.is_stuck() {
            true => Received::default(),
            false => receiver.read(&self.stream, buffer, target, &self.calls),
        });
    }

    /// Applies what waited for a segment, if that is open now. By the same thread.
    pub(super) fn resume(
        &self,
        target: impl Fn(SegmentKey) -> RowTarget,
        handle: impl FnOnce(Received),
    ) {
        self.apply(handle, |receiver| receiver.resume(target));
    }

    fn apply(&self, handle: impl FnOnce(Received), work: impl FnOnce(&mut Receiver) -> Received) {
        // Locked while words are applied, so that a fence waits for them.
        let mut open = self.receiver();
        let Some(receiver) = &mut *open else {
            return;
        };
        let received = work(receiver);
        if received.fault.is_some() {
            *open = None;
        }
        drop(open);
        let len = received.len;
        handle(received);
        // Release: a reader of the count sees the effects of these bytes.
        self.done.fetch_add(len as u64, Ordering::Release);
    }

    /// F6: once this has returned, nothing more is applied in this segment.
    pub(super) fn close_segment(&self, key: SegmentKey) {
        if let Some(receiver) = &mut *self.receiver() {
            receiver.decoder.close_segment(key);
        }
    }

    /// Applies nothing more. The stream itself stays open.
    pub(super) fn close(&self) {
        *self.receiver() = None;
    }

    /// Reads and discards bytes after `close`; returns whether the stream has ended. By the
    /// same thread.
    pub(super) fn discard(&self, buffer: &mut [u8]) -> bool {
        match (&self.stream).read(buffer) {
            Ok(len) => len == 0,
            Err(error) => !error.may_pass(),
        }
    }

    /// Ends the stream in both directions.
    pub(super) fn end(&self) {
        self.close();
        // An error means that it has ended already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.receiver().is_none()
    }

    /// Whether records wait for a segment to be opened.
    pub(super) fn is_waiting(&self) -> bool {
        let receiver = self.receiver();
        receiver.as_ref().is_some_and(|it| it.decoder.is_waiting())
    }

    /// Whether nothing is read until a segment is opened.
    pub(super) fn is_stuck(&self) -> bool {
        self.receiver().as_ref().is_some_and(Receiver::is_stuck)
    }

    /// Number of bytes of the stream that are fully handled.
    pub(super) fn received(&self) -> u64 {
        // Acquire: pairs with the release in `apply`.
        self.done.load(Ordering::Acquire)
    }
}
