//! The stream transport: one-sided writes between participants over TCP, on any IP network.
//!
//! Each pair of participants has one connection for all segments that they share, with one
//! stream in each direction: I write records of my rows to a peer, and it writes records of
//! its rows to me. A record is a slot, which stands for a segment, an offset, a length and
//! the bytes; the receiver writes them into its copy. Messages are sent between records, in
//! parts.
//!
//! ```text
//!   pushing thread                                       the peer's I/O thread
//!   --------------                                       ---------------------
//!   push(range) --.                                      checks the header
//!   push_word   --+--> queue --> stage --> stream =====> words into the copy
//!   wake        --'      ^ bytes are fetched here        wake: wakes its sleeper
//!                        |
//!                  the thread that finds the writer free, and a quiet stream;
//!                  else the I/O thread, with all that has gathered
//! ```
//!
//! This is a part of a [`hybrid::Station`](crate::hybrid::Station), which makes the
//! connections and knows how the process sleeps.
//!
//! - Set-up: `transport`, over connections; `shared` is the state of the transport, its
//!   segments and its thread.
//! - Data path: `streams`, the part of a segment; for each peer `outgoing` with its
//!   `send_queue`, and `incoming` with its `splitter`, which takes the messages out, and its
//!   `decoder` of `record`s; one `io_thread` for all.
//!
//! # Pushing
//!
//! Ranges wait for a stream, not bytes: a range is fetched when it is sent (F1 allows this),
//! a word carries its value (F1b), and the order is call order over all segments (F2). So a
//! peer that reads nothing costs its sender only a list of ranges, bounded by
//! [`StreamOptions::waiting_max`]; at the bound the peer has failed. A range that is pushed
//! again while it waits is not queued twice, so acknowledgements do not accumulate. Staged
//! bytes were fetched as whole words and do not change until they are sent, in however many
//! pieces (F4).
//!
//! No thread waits for a peer or for the thread that writes: a thread that finds the writer
//! busy leaves its records to it. Messages that gather while a stream is busy are one record, and
//! are sent by one system call (`outgoing`, `due_links`).
//!
//! # Segments
//!
//! Segments are opened without a request: the first push to a peer opens a slot in its
//! stream. If the peer has not made the segment yet, its records wait there until it has, or
//! forgets it (F6), up to 16 MiB; then the stream is not read any more, and a peer that
//! leaves a stream unread for [`StreamOptions::user_timeout`] has failed for its sender.
//! Messages do not wait, because one of them may cause the peer to make the segment. A
//! dropped segment shuts its slot in all streams; the slot is free then. Records of a dropped
//! segment, or of an epoch that is over, are discarded.
//!
//! # Encryption
//!
//! If the handshake has exchanged keys, what the writer has staged is one encrypted frame
//! (`secure`), sealed in place before it is written; the receiving side opens it in place before
//! its records are looked at. Without keys, both are a look at an option.
//!
//! # Sleeping
//!
//! The sleep epoch does not travel. [`wake`](crate::Fabric::wake) sends what was held back
//! for the members of its segment and, behind it, a record that says what it wakes for. The
//! handshake of [`crate::sleep`] takes place inside the receiving process: its I/O thread
//! stores the words, fences and reads the epoch; its sleeper has announced, fenced and
//! looked. So wake-ups are counted by the receiver.
//!
//! # Failure
//!
//! A peer has failed if its stream ends, breaks, accepts nothing for
//! [`StreamOptions::user_timeout`], or carries an invalid record, or an encrypted
//! frame that does not open. Each control segment
//! reports it once, with the reason. A peer whose host is gone is noticed when it
//! acknowledges neither data nor the kernel's probes for that time; heartbeats are
//! membership's and may be faster. A peer that closes on purpose sends a final record. A
//! process that forks keeps the streams; the child must not use the station, and keeps the
//! streams open until it ends or executes another program.

mod call_counters;
mod decoder;
mod due_links;
mod fault;
mod incoming;
mod io_thread;
mod outgoing;
mod pace;
mod record;
pub(crate) mod secure;
mod send_queue;
mod shared;
mod source;
mod splitter;
mod stalled;
mod streams;
mod transport;

pub use self::call_counters::StreamCalls;
pub(crate) use self::transport::{ReadyStream, StreamTransport, problem};
pub use self::transport::{StreamOptions, StreamState};
pub(crate) use shared::{PushPath, StreamHooks, WakeHook};
pub(crate) use streams::{StreamReach, Streams};
