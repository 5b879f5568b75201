//! A peer's stream to me: into my copies of its rows, until it ends.

use core::sync::atomic::{AtomicU64, Ordering};
use std::io::{ErrorKind, Read};
use std::net::{Shutdown, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::decoder::{Decoder, Place};
use super::shared::Fault;
use crate::fabric::Ring;
use crate::segment::SegmentKey;

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
    decoder: Decoder,
    /// What was read and waits for a segment to be opened.
    rest: Vec<u8>,
}

impl Receiver {
    fn feed(
        &mut self,
        bytes: &[u8],
        place: impl Fn(SegmentKey) -> Place,
    ) -> Result<(usize, Option<Ring>), Fault> {
        let fed = self.decoder.feed(bytes, place).map_err(Fault::NoRecord)?;
        self.rest.extend_from_slice(&bytes[fed.taken..]);
        Ok((fed.taken, fed.ring))
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

    /// Takes what has come, at most as much as `buffer` holds, and has the
    /// loudest ring in it answered. An error is told once, and the last of the
    /// stream. By one thread.
    pub(super) fn receive(
        &self,
        buffer: &mut [u8],
        place: impl Fn(SegmentKey) -> Place,
        answer: impl FnOnce(Ring),
    ) -> Result<(), Fault> {
        self.apply(answer, |receiver| {
            if receiver.decoder.is_waiting() {
                return Ok((0, None));
            }
            match (&self.stream).read(buffer) {
                Ok(0) if receiver.decoder.is_between_records() => Err(Fault::Ended),
                Ok(0) => Err(Fault::EndedInside),
                Ok(len) => receiver.feed(&buffer[..len], place),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok((0, None)),
                    _ => Err(Fault::Broken(error)),
                },
            }
        })
    }

    /// Goes on with what waited for a segment, if it is there. By the same thread.
    pub(super) fn resume(
        &self,
        place: impl Fn(SegmentKey) -> Place,
        answer: impl FnOnce(Ring),
    ) -> Result<(), Fault> {
        self.apply(answer, |receiver| {
            let rest = core::mem::take(&mut receiver.rest);
            receiver.feed(&rest, place)
        })
    }

    fn apply(
        &self,
        answer: impl FnOnce(Ring),
        work: impl FnOnce(&mut Receiver) -> Result<(usize, Option<Ring>), Fault>,
    ) -> Result<(), Fault> {
        // Held while words are applied: a fence waits until they are.
        let mut open = self.receiver();
        let Some(receiver) = &mut *open else {
            return Ok(());
        };
        let worked = work(receiver);
        if worked.is_err() {
            self.end(&mut open);
        }
        drop(open);
        let (len, ring) = worked?;
        if let Some(ring) = ring {
            answer(ring);
        }
        // Release: who sees the count sees what came of it.
        self.done.fetch_add(len as u64, Ordering::Release);
        Ok(())
    }

    /// F6: once it has returned, nothing more is applied in this segment.
    pub(super) fn dismiss(&self, key: SegmentKey) {
        if let Some(receiver) = &mut *self.receiver() {
            receiver.decoder.dismiss(key);
        }
    }

    /// Nothing more is applied at all.
    pub(super) fn close(&self) {
        self.end(&mut self.receiver());
    }

    fn end(&self, receiver: &mut Option<Receiver>) {
        *receiver = None;
        // An error says that it has ended already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.receiver().is_none()
    }

    /// Whether nothing is read until a segment is opened.
    pub(super) fn is_waiting(&self) -> bool {
        let receiver = self.receiver();
        receiver.as_ref().is_some_and(|it| it.decoder.is_waiting())
    }

    /// Bytes of the stream that nothing is left to do for.
    pub(super) fn received(&self) -> u64 {
        // Acquire: pairs with `apply`.
        self.done.load(Ordering::Acquire)
    }
}
