//! Protection domains and memory that is registered in them.

use core::ptr::NonNull;
use std::io;
use std::sync::Arc;

use ffi::ibv_access_flags as Flags;
use ibverbs_sys as ffi;

use super::context::Context;
use crate::memory::Region;

/// A protection domain: its queue pairs can access its memory.
#[derive(Debug)]
pub(in crate::verbs) struct Domain {
    domain: NonNull<ffi::ibv_pd>,
    _context: Arc<Context>,
}

// SAFETY: libibverbs may be called from any thread.
unsafe impl Send for Domain {}
// SAFETY: as above, also concurrently.
unsafe impl Sync for Domain {}

impl Domain {
    pub(in crate::verbs) fn new(context: &Arc<Context>) -> io::Result<Arc<Self>> {
        // SAFETY: an open context.
        let domain = NonNull::new(unsafe { ffi::ibv_alloc_pd(context.as_ptr()) });
        Ok(Arc::new(Self {
            domain: domain.ok_or_else(io::Error::last_os_error)?,
            _context: Arc::clone(context),
        }))
    }

    pub(super) fn as_ptr(&self) -> *mut ffi::ibv_pd {
        self.domain.as_ptr()
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // SAFETY: created once, freed once; all that was made in it has kept it alive.
        unsafe { ffi::ibv_dealloc_pd(self.as_ptr()) };
    }
}

/// Access rights of registered memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::verbs) enum Access {
    /// Own queue pairs send from it.
    Source,
    /// Peers that know its key write to it, and own queue pairs do.
    Target,
}

/// An address in a peer's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::verbs) struct Remote {
    pub(in crate::verbs) address: u64,
    pub(in crate::verbs) key: u32,
}

impl Remote {
    /// The address `bytes` further on.
    pub(in crate::verbs) fn at(self, offset: usize) -> Self {
        let address = self.address.wrapping_add(offset as u64);
        Self { address, ..self }
    }
}

/// Registered memory: pinned, and known to the device. It stays mapped as long as this lives.
#[derive(Debug)]
pub(in crate::verbs) struct Memory {
    memory: NonNull<ffi::ibv_mr>,
    region: Region,
    _domain: Arc<Domain>,
}

// SAFETY: libibverbs may be called from any thread.
unsafe impl Send for Memory {}
// SAFETY: its keys do not change.
unsafe impl Sync for Memory {}

impl Memory {
    /// Registers all of `region`, which must be writable for a target.
    pub(in crate::verbs) fn new(
        domain: &Arc<Domain>,
        region: &Region,
        access: Access,
    ) -> io::Result<Self> {
        let flags = match access {
            Access::Source => Flags(0),
            Access::Target if !region.is_writable() => {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            Access::Target => Flags::IBV_ACCESS_LOCAL_WRITE | Flags::IBV_ACCESS_REMOTE_WRITE,
        };
        let (base, flags) = (region.address(), flags.0 as i32);
        let base = core::ptr::with_exposed_provenance_mut(base);
        // SAFETY: the range is mapped (writable if it is to be written), and stays so until
        // it is deregistered, because `region` is kept until then. Other code accesses it
        // by atomic words only, as it does any row.
        let memory =
            NonNull::new(unsafe { ffi::ibv_reg_mr(domain.as_ptr(), base, region.len(), flags) });
        Ok(Self {
            memory: memory.ok_or_else(io::Error::last_os_error)?,
            region: region.clone(),
            _domain: Arc::clone(domain),
        })
    }

    pub(in crate::verbs) fn region(&self) -> &Region {
        &self.region
    }

    pub(super) fn local_key(&self) -> u32 {
        // SAFETY: registered as long as `self` lives.
        unsafe { (*self.memory.as_ptr()).lkey }
    }

    /// Its first address, as peers name it.
    pub(in crate::verbs) fn remote(&self) -> Remote {
        Remote {
            address: self.region.address() as u64,
            // SAFETY: as above.
            key: unsafe { (*self.memory.as_ptr()).rkey },
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: registered once, deregistered once; `region` is dropped afterwards.
        unsafe { ffi::ibv_dereg_mr(self.memory.as_ptr()) };
    }
}
