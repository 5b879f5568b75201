//! libibverbs behind types that own what they make: the only `unsafe` of the backend.
//!
//! Outcome is safe here, and why: a device writes into memory only as long as it is
//! registered, and [`Memory`] keeps what it has registered mapped until it is not. A
//! device that reads what others change meanwhile reads words of shared rows, which is
//! what rows are for. Each object keeps those alive that it was made from.

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

/// Outcome a call says that gives an error number.
fn checked(errno: i32) -> io::Result<()> {
    match errno {
        0 => Ok(()),
        // Some calls give -1 and set errno, others the number, with either sign.
        -1 => Err(io::Error::last_os_error()),
        errno => Err(io::Error::from_raw_os_error(errno.abs())),
    }
}
