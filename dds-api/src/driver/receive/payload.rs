//! Where the bytes of a sample are.

use std::sync::Arc;

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
    /// A copy that was read: the cache and the collections that have it share it.
    Shared(Arc<Vec<u8>>),
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
            Self::Shared(bytes) => bytes.capacity(),
        }
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Ring(held) => held.bytes(),
            Self::Copy(bytes) => bytes,
            Self::Shared(bytes) => bytes,
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
    /// Without buffers, and not shared.
    shells: Vec<Arc<Vec<u8>>>,
}

/// Most buffers that a pool keeps.
const BUFFERS_MAX: usize = 4096;
/// Most bytes that a pool keeps.
const BYTES_MAX: usize = 64 << 20;

impl Pool {
    /// Bytes that it has allocated.
    pub(crate) fn allocated(&self) -> usize {
        let shell = size_of::<Arc<Vec<u8>>>() + size_of::<Vec<u8>>();
        let shells = self.shells.capacity() * shell;
        self.bytes + self.buffers.capacity() * size_of::<Vec<u8>>() + shells
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
            Payload::Copy(_) | Payload::Shared(_) => None,
        }
    }

    /// The payload once more: it is copied out of its ring, if it lies there, and shared from then
    /// on. What it held in the ring is to be let go.
    pub(crate) fn share<F: Fabric>(
        &mut self,
        payload: &mut Payload<F>,
    ) -> (Payload<F>, Option<Held<F>>) {
        let held = self.copy_out(payload);
        if let Payload::Copy(buffer) = payload {
            let buffer = std::mem::take(buffer);
            *payload = Payload::Shared(self.shell_of(buffer));
        }
        let again = match payload {
            Payload::Shared(bytes) => Payload::Shared(bytes.clone()),
            other => Payload::Copy(self.copy(other.bytes())),
        };
        (again, held)
    }

    fn shell_of(&mut self, buffer: Vec<u8>) -> Arc<Vec<u8>> {
        let mut shell = self.shells.pop().unwrap_or_default();
        match Arc::get_mut(&mut shell) {
            Some(inside) => {
                *inside = buffer;
                shell
            }
            None => Arc::new(buffer),
        }
    }

    /// Takes a payload's buffer back; a payload in the ring is let go, and one that is shared is the
    /// others'.
    pub(crate) fn recycle<F: Fabric>(&mut self, payload: Payload<F>) {
        match payload {
            Payload::Ring(_) => {}
            Payload::Copy(buffer) => self.recycle_buffer(buffer),
            Payload::Shared(mut shell) => {
                if let Some(buffer) = Arc::get_mut(&mut shell) {
                    self.recycle_buffer(std::mem::take(buffer));
                    if self.shells.len() < BUFFERS_MAX {
                        self.shells.push(shell);
                    }
                }
            }
        }
    }

    fn recycle_buffer(&mut self, buffer: Vec<u8>) {
        if self.buffers.len() < BUFFERS_MAX && self.bytes + buffer.capacity() <= BYTES_MAX {
            self.bytes += buffer.capacity();
            self.buffers.push(buffer);
        }
    }
}
