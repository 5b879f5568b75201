//! Where the bytes of a sample are.

use spindle_dds_core::Held;
use spindle_dds_transport::Fabric;

use crate::subscription::SampleInfo;

/// The bytes of a sample.
#[derive(Debug)]
pub(crate) enum Payload<F: Fabric> {
    /// Where their writer built them.
    Ring(Held<F>),
    /// Copied out, in a buffer that is used again.
    Copy(Vec<u8>),
}

/// A sample that is handed out; or none, and the key of the instance whose state has changed, where
/// its key hash is a digest (see [`keys`](crate::keys)).
pub(crate) type Item<F> = (SampleInfo, Option<Payload<F>>);

impl<F: Fabric> Payload<F> {
    /// Bytes that it has allocated.
    pub(crate) fn allocated(&self) -> usize {
        match self {
            Self::Ring(_) => 0,
            Self::Copy(bytes) => bytes.capacity(),
        }
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Ring(held) => held.bytes(),
            Self::Copy(bytes) => bytes,
        }
    }
}

/// Takes a payload out that lies in its ring.
pub(crate) fn in_ring<F: Fabric>(payload: &mut Option<Payload<F>>) -> Option<Held<F>> {
    if let Some(Payload::Ring(_)) = payload
        && let Some(Payload::Ring(held)) = payload.take()
    {
        return Some(held);
    }
    None
}

/// Buffers to be used again.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

/// Most buffers that a pool keeps.
const BUFFERS_MAX: usize = 4096;
/// Most bytes that a pool keeps.
const BYTES_MAX: usize = 64 << 20;

impl Pool {
    /// Bytes that it has allocated.
    pub(crate) fn allocated(&self) -> usize {
        self.bytes + self.buffers.capacity() * size_of::<Vec<u8>>()
    }

    /// A copy of `bytes`. Allocates only while the pool is cold.
    pub(crate) fn copy(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut buffer = self.buffers.pop().unwrap_or_default();
        self.bytes -= buffer.capacity();
        buffer.clear();
        buffer.extend_from_slice(bytes);
        buffer
    }

    /// Copies a payload out of its ring; what it held there is to be let go.
    pub(crate) fn copy_out<F: Fabric>(&mut self, payload: &mut Payload<F>) -> Option<Held<F>> {
        let Payload::Ring(held) = payload else {
            return None;
        };
        let copy = Payload::Copy(self.copy(held.bytes()));
        match std::mem::replace(payload, copy) {
            Payload::Ring(held) => Some(held),
            Payload::Copy(_) => None,
        }
    }

    /// Takes a payload's buffer back; a payload in the ring is let go.
    pub(crate) fn recycle<F: Fabric>(&mut self, payload: Payload<F>) {
        if let Payload::Copy(buffer) = payload
            && self.buffers.len() < BUFFERS_MAX
            && self.bytes + buffer.capacity() <= BYTES_MAX
        {
            self.bytes += buffer.capacity();
            self.buffers.push(buffer);
        }
    }
}
