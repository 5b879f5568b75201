//! System calls of all streams of a station, and their bytes.

use core::sync::atomic::{AtomicU64, Ordering};
use std::io;

use serde::{Deserialize, Serialize};

/// System calls by which a station has sent and received on streams, to and from all peers, and
/// what they have moved. Bytes of handshakes are not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamCalls {
    /// Calls that have sent, or found the stream full.
    pub send_calls: u64,
    /// Bytes that they have sent.
    pub bytes_sent: u64,
    /// Calls that have received, or found nothing.
    pub receive_calls: u64,
    /// Bytes that they have received.
    pub bytes_received: u64,
}

/// [`StreamCalls`], counted by any thread.
#[derive(Debug, Default)]
pub(super) struct StreamCallCounters {
    send_calls: AtomicU64,
    bytes_sent: AtomicU64,
    receive_calls: AtomicU64,
    bytes_received: AtomicU64,
}

impl StreamCallCounters {
    pub(super) fn sent(&self, written: &io::Result<usize>) {
        count((&self.send_calls, &self.bytes_sent), written);
    }

    pub(super) fn received(&self, read: &io::Result<usize>) {
        count((&self.receive_calls, &self.bytes_received), read);
    }

    pub(super) fn read(&self) -> StreamCalls {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StreamCalls {
            send_calls: load(&self.send_calls),
            bytes_sent: load(&self.bytes_sent),
            receive_calls: load(&self.receive_calls),
            bytes_received: load(&self.bytes_received),
        }
    }
}

fn count((calls, bytes): (&AtomicU64, &AtomicU64), moved: &io::Result<usize>) {
    calls.fetch_add(1, Ordering::Relaxed);
    if let Ok(len) = moved {
        bytes.fetch_add(*len as u64, Ordering::Relaxed);
    }
}
