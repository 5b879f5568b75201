//! A peer's stream to me: into my copy of its row, until it ends or is fenced.

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
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// `None` once nothing of it is taken any more.
    decoder: Option<Decoder>,
    received: u64,
}

impl Incoming {
    /// `stream` does not block; `copy` is writable.
    pub(super) fn new(stream: TcpStream, copy: Region) -> Self {
        let state = State {
            decoder: Some(Decoder::new(copy)),
            received: 0,
        };
        Self {
            stream,
            state: Mutex::new(state),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what has come, at most as much as `buffer` holds, and returns the
    /// loudest ring in it. An error is told once, and the last of the stream.
    pub(super) fn receive(&self, buffer: &mut [u8]) -> Result<Option<Ring>, Fault> {
        // Held while words are applied: a fence waits until they are.
        let mut state = self.state();
        let Some(decoder) = &mut state.decoder else {
            return Ok(None);
        };
        let fault = match (&self.stream).read(buffer) {
            Ok(0) if decoder.is_between_records() => Fault::Ended,
            Ok(0) => Fault::EndedInside,
            Ok(len) => match decoder.feed(&buffer[..len]) {
                Ok(rung) => {
                    state.received += len as u64;
                    return Ok(rung);
                }
                Err(error) => Fault::NoRecord(error),
            },
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => return Ok(None),
                _ => Fault::Broken(error),
            },
        };
        self.end(&mut state);
        Err(fault)
    }

    /// F6: once it has returned, nothing more is applied.
    pub(super) fn close(&self) {
        self.end(&mut self.state());
    }

    fn end(&self, state: &mut State) {
        state.decoder = None;
        // An error says that it has ended already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state().decoder.is_none()
    }

    /// Bytes of the stream that were applied.
    pub(super) fn received(&self) -> u64 {
        self.state().received
    }
}
