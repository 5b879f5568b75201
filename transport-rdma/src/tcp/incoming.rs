//! A peer's stream to me: into my copy of its row, until it ends or is fenced.

use core::sync::atomic::{AtomicU64, Ordering};
use std::io::{ErrorKind, Read};
use std::net::{Shutdown, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::decoder::Decoder;
use super::streams::Fault;
use crate::fabric::Ring;
use crate::mem::Region;

#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) stream: TcpStream,
    /// `None` once nothing of it is taken any more.
    decoder: Mutex<Option<Decoder>>,
    /// Bytes of the stream that were applied, and their rings answered.
    done: AtomicU64,
}

impl Incoming {
    /// `stream` does not block; `copy` is writable.
    pub(super) fn new(stream: TcpStream, copy: Region) -> Self {
        Self {
            stream,
            decoder: Mutex::new(Some(Decoder::new(copy))),
            done: AtomicU64::new(0),
        }
    }

    fn decoder(&self) -> MutexGuard<'_, Option<Decoder>> {
        self.decoder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what has come, at most as much as `buffer` holds, and has the
    /// loudest ring in it answered. An error is told once, and the last of the
    /// stream. By one thread.
    pub(super) fn receive(
        &self,
        buffer: &mut [u8],
        answer: impl FnOnce(Ring),
    ) -> Result<(), Fault> {
        let (len, ring) = self.apply(buffer)?;
        if let Some(ring) = ring {
            answer(ring);
        }
        // Release: who sees the count sees what came of it.
        self.done.fetch_add(len as u64, Ordering::Release);
        Ok(())
    }

    fn apply(&self, buffer: &mut [u8]) -> Result<(usize, Option<Ring>), Fault> {
        // Held while words are applied: a fence waits until they are.
        let mut open = self.decoder();
        let Some(decoder) = &mut *open else {
            return Ok((0, None));
        };
        let fault = match (&self.stream).read(buffer) {
            Ok(0) if decoder.is_between_records() => Fault::Ended,
            Ok(0) => Fault::EndedInside,
            Ok(len) => match decoder.feed(&buffer[..len]) {
                Ok(rung) => return Ok((len, rung)),
                Err(error) => Fault::NoRecord(error),
            },
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => return Ok((0, None)),
                _ => Fault::Broken(error),
            },
        };
        self.end(&mut open);
        Err(fault)
    }

    /// F6: once it has returned, nothing more is applied.
    pub(super) fn close(&self) {
        self.end(&mut self.decoder());
    }

    fn end(&self, decoder: &mut Option<Decoder>) {
        *decoder = None;
        // An error says that it has ended already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.decoder().is_none()
    }

    /// Bytes of the stream that nothing is left to do for.
    pub(super) fn received(&self) -> u64 {
        // Acquire: pairs with `receive`.
        self.done.load(Ordering::Acquire)
    }
}
