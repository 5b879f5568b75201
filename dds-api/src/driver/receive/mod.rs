//! The receiving side: from the engine to the cache of a reader.
//!
//! ```text
//!   Engine --deliver_run, deliver--> Sink --Routes--> ReaderPort --> ReaderState --> Cache
//!                                                         |             ^
//!                                      arrivals, while the lock is taken or the cache is full
//!                                                         v             |
//!                                                    ReaderEpoch --> EpochCursor
//! ```

pub(super) mod arrival;
pub(super) mod arrival_queue;
pub(super) mod delivery_timer;
pub(super) mod epoch_cursor;
pub(super) mod in_ring;
pub(super) mod payload;
pub(super) mod reader_epoch;
pub(super) mod reader_port;
pub(super) mod reader_state;
pub(super) mod rekey;
pub(super) mod routes;
pub(super) mod sink;
