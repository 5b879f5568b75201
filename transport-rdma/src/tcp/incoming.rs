//! A peer's stream to me: into my copies of its rows, until it ends.

use core::sync::atomic::{AtomicU64, Ordering};
use std::io::{ErrorKind, Read};
use std::net::{Shutdown, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::decoder::{Decoder, Place};
use super::record::RecordError;
use super::shared::Fault;
use super::splitter::{Piece, Splitter};
use crate::fabric::WakeReason;
use crate::segment::SegmentKey;

/// Most bytes that are read and wait for a segment to be opened.
const REST_LEN_MAX: usize = 1 << 24;

#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) stream: TcpStream,
    /// `None` once nothing of it is taken any more.
    receiver: Mutex<Option<Receiver>>,
    /// Bytes of the stream that were applied, and their rings answered.
    done: AtomicU64,
}

#[derive(Debug, Default)]
struct Receiver {
    splitter: Splitter,
    decoder: Decoder,
    /// What was read and waits for a segment to be opened.
    rest: Vec<u8>,
}

/// What came of some bytes.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) messages: Vec<Vec<u8>>,
    /// The loudest ring.
    pub(super) ring: Option<WakeReason>,
    /// How many were applied; the others wait.
    len: usize,
    /// Nothing more of the stream is taken.
    pub(super) fault: Option<Fault>,
}

impl Receiver {
    /// Whether so much waits for a segment that nothing is read.
    fn is_stuck(&self) -> bool {
        self.decoder.is_waiting() && self.rest.len() >= REST_LEN_MAX
    }

    fn read(
        &mut self,
        mut stream: &TcpStream,
        buffer: &mut [u8],
        place: impl Fn(SegmentKey) -> Place,
    ) -> Received {
        let fault = match stream.read(buffer) {
            Ok(0) if self.splitter.is_between_records() => Fault::Ended,
            Ok(0) => Fault::EndedInside,
            Ok(len) => return self.feed(&buffer[..len], place),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => return Received::default(),
                _ => Fault::Broken(error),
            },
        };
        Received {
            fault: Some(fault),
            ..Received::default()
        }
    }

    fn feed(&mut self, mut bytes: &[u8], place: impl Fn(SegmentKey) -> Place) -> Received {
        let (len, waited) = (bytes.len(), self.rest.len());
        let mut received = Received::default();
        let fault = loop {
            let rows = match self.splitter.next(&mut bytes) {
                Ok(None) => break None,
                Ok(Some(Piece::Rows(rows))) => self.rows(rows, &place),
                Ok(Some(Piece::Header(header))) => self.rows(&header, &place),
                Ok(Some(Piece::Message(message))) => {
                    received.messages.push(message);
                    continue;
                }
                Ok(Some(Piece::Bye)) => break Some(Fault::Left),
                Err(error) => Err(error),
            };
            match rows {
                Ok(ring) => received.ring = received.ring.max(ring),
                Err(error) => break Some(Fault::NoRecord(error)),
            }
        };
        received.len = len - (self.rest.len() - waited);
        received.fault = fault;
        received
    }

    /// Records of rows: behind those that wait, if there are such.
    fn rows(
        &mut self,
        rows: &[u8],
        place: impl Fn(SegmentKey) -> Place,
    ) -> Result<Option<WakeReason>, RecordError> {
        if self.decoder.is_waiting() {
            self.rest.extend_from_slice(rows);
            return Ok(None);
        }
        let fed = self.decoder.feed(rows, place)?;
        self.rest.extend_from_slice(&rows[fed.taken..]);
        Ok(fed.ring)
    }

    /// Those that wait, if what they wait for is there.
    fn resume(&mut self, place: impl Fn(SegmentKey) -> Place) -> Received {
        let mut received = Received::default();
        match self.decoder.feed(&self.rest, place) {
            Ok(fed) => {
                self.rest.drain(..fed.taken);
                (received.len, received.ring) = (fed.taken, fed.ring);
            }
            Err(error) => received.fault = Some(Fault::NoRecord(error)),
        }
        received
    }
}

impl Incoming {
    /// `stream` does not block.
    pub(super) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            receiver: Mutex::new(Some(Receiver::default())),
            done: AtomicU64::new(0),
        }
    }

    fn receiver(&self) -> MutexGuard<'_, Option<Receiver>> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what has come, at most as much as `buffer` holds, and gives what it is
    /// to `handle`. A fault is told once, and the last of the stream. By one thread.
    pub(super) fn receive(
        &self,
        buffer: &mut [u8],
        place: impl Fn(SegmentKey) -> Place,
        handle: impl FnOnce(Received),
    ) {
        self.apply(handle, |receiver| match receiver.is_stuck() {
            true => Received::default(),
            false => receiver.read(&self.stream, buffer, place),
        });
    }

    /// Goes on with what waited for a segment, if it is there. By the same thread.
    pub(super) fn resume(
        &self,
        place: impl Fn(SegmentKey) -> Place,
        handle: impl FnOnce(Received),
    ) {
        self.apply(handle, |receiver| receiver.resume(place));
    }

    fn apply(&self, handle: impl FnOnce(Received), work: impl FnOnce(&mut Receiver) -> Received) {
        // Held while words are applied: a fence waits until they are.
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
        // Release: who sees the count sees what came of it.
        self.done.fetch_add(len as u64, Ordering::Release);
    }

    /// F6: once it has returned, nothing more is applied in this segment.
    pub(super) fn dismiss(&self, key: SegmentKey) {
        if let Some(receiver) = &mut *self.receiver() {
            receiver.decoder.dismiss(key);
        }
    }

    /// Nothing more is applied at all. The stream goes on.
    pub(super) fn close(&self) {
        *self.receiver() = None;
    }

    /// Takes what comes after it was closed, which is of no use; whether the stream
    /// has ended. By the same thread.
    pub(super) fn discard(&self, buffer: &mut [u8]) -> bool {
        match (&self.stream).read(buffer) {
            Ok(len) => len == 0,
            Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    /// Ends the stream in both directions.
    pub(super) fn end(&self) {
        self.close();
        // An error says that it has ended already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.receiver().is_none()
    }

    /// Whether rows wait until a segment is opened.
    pub(super) fn is_waiting(&self) -> bool {
        let receiver = self.receiver();
        receiver.as_ref().is_some_and(|it| it.decoder.is_waiting())
    }

    /// Whether nothing is read until a segment is opened.
    pub(super) fn is_stuck(&self) -> bool {
        self.receiver().as_ref().is_some_and(Receiver::is_stuck)
    }

    /// Bytes of the stream that nothing is left to do for.
    pub(super) fn received(&self) -> u64 {
        // Acquire: pairs with `apply`.
        self.done.load(Ordering::Acquire)
    }
}
