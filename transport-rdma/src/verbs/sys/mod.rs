//! Safe, owning types over libibverbs: the only `unsafe` code of the backend.
//!
//! Why they are sound: a device writes to memory only while it is registered, and [`Memory`]
//! keeps registered memory mapped until it is deregistered. A device that reads what other
//! threads change meanwhile reads words of shared rows, which are made for that. Each object
//! keeps the objects alive from which it was made.

mod chain;
mod completion;
mod context;
mod errno;
mod memory;
mod queue_pair;

pub(super) use chain::{Chain, Request};
pub(super) use completion::{Channel, CompletionQueue, Outcome, status_text};
pub(super) use context::{Context, GidKind, GidRow, LinkLayer, Port, device_names};
pub(super) use memory::{Access, Domain, Memory, Remote};
pub(super) use queue_pair::{Capacity, QueuePair, RETRIES, Target};
