//! Safe, owning types over libibverbs: the only `unsafe` code of the backend.
//!
//! Why they are sound: a device writes to memory only while it is registered, and [`Memory`]
//! keeps registered memory mapped until it is deregistered. A device that reads what other
//! threads change meanwhile reads words of shared rows, which are made for that. Each object
//! keeps the objects alive from which it was made.

mod chain;
mod completion;
mod context;
mod memory;
mod queue_pair;

pub(super) use chain::{Chain, Request};
pub(super) use completion::{Channel, CompletionQueue, Outcome, status_text};
pub(super) use context::{Context, GidKind, GidRow, LinkLayer, Port, device_names};
pub(super) use memory::{Access, Domain, Memory, Remote};
pub(super) use queue_pair::{Capacity, QueuePair, RETRIES, Target};

use std::io;

/// The result of a call that returns an error number.
fn checked(errno: i32) -> io::Result<()> {
    match errno {
        0 => Ok(()),
        // Some calls return -1 and set errno, others the number, with either sign.
        -1 => Err(io::Error::last_os_error()),
        errno => Err(io::Error::from_raw_os_error(errno.abs())),
    }
}
