//! Completion queues, and the channel that reports when one has an entry.

use core::ptr::{self, NonNull};
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use ffi::{ibv_wc_opcode as Opcode, ibv_wc_status as Status};
use ibverbs_sys as ffi;
use rustix::fs::OFlags;

use super::context::Context;
use super::errno::checked;

/// Most completions that are taken by one call.
const BATCH: usize = 16;

/// Reports which completion queue has an entry.
#[derive(Debug)]
pub(in crate::verbs) struct Channel {
    channel: NonNull<ffi::ibv_comp_channel>,
    _context: Arc<Context>,
}

// SAFETY: libibverbs may be called from any thread.
unsafe impl Send for Channel {}
// SAFETY: as above, also concurrently.
unsafe impl Sync for Channel {}

impl Channel {
    pub(in crate::verbs) fn new(context: &Arc<Context>) -> io::Result<Arc<Self>> {
        // SAFETY: an open context.
        let channel = NonNull::new(unsafe { ffi::ibv_create_comp_channel(context.as_ptr()) });
        let channel = Self {
            channel: channel.ok_or_else(io::Error::last_os_error)?,
            _context: Arc::clone(context),
        };
        let flags = rustix::fs::fcntl_getfl(&channel)? | OFlags::NONBLOCK;
        rustix::fs::fcntl_setfl(&channel, flags)?;
        Ok(Arc::new(channel))
    }

    /// The number of a queue that has an entry, or had one; `None` if there is no report.
    pub(in crate::verbs) fn next(&self) -> Option<u64> {
        let (mut queue, mut number) = (ptr::null_mut(), ptr::null_mut());
        let channel = self.channel.as_ptr();
        // SAFETY: an open channel, and room for the results.
        let none = unsafe { ffi::ibv_get_cq_event(channel, &raw mut queue, &raw mut number) } != 0;
        if none {
            return None;
        }
        // SAFETY: a queue is not destroyed before its events are acknowledged.
        unsafe { ffi::ibv_ack_cq_events(queue, 1) };
        Some(number as u64)
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the channel lives as long as `self`.
        let fd = unsafe { (*self.channel.as_ptr()).fd };
        // SAFETY: open as long as the channel.
        unsafe { BorrowedFd::borrow_raw(fd) }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once; its queues keep it alive.
        unsafe { ffi::ibv_destroy_comp_channel(self.channel.as_ptr()) };
    }
}

/// How a work request was completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::verbs) enum Outcome {
    Sent,
    /// A message of this many bytes.
    Received(usize),
    /// A write with this immediate value.
    Doorbell(u32),
    /// Failed with this status; no other field is valid.
    Failed(u32),
}

/// The completion of a work request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::verbs) struct Completion {
    pub(in crate::verbs) id: u64,
    pub(in crate::verbs) what: Outcome,
}

impl Completion {
    fn of(entry: &ffi::ibv_wc) -> Self {
        let what = match (entry.error(), entry.opcode()) {
            (Some((status, _)), _) => Outcome::Failed(status),
            (None, Opcode::IBV_WC_RECV) => Outcome::Received(entry.len()),
            (None, Opcode::IBV_WC_RECV_RDMA_WITH_IMM) => {
                Outcome::Doorbell(u32::from_be(entry.imm_data().unwrap_or(u32::MAX)))
            }
            (None, _) => Outcome::Sent,
        };
        Self {
            id: entry.wr_id(),
            what,
        }
    }
}

/// A status as text, with what to check.
pub(in crate::verbs) fn status_text(status: u32) -> String {
    // SAFETY: returns a text for any number.
    let text = unsafe { ffi::ibv_wc_status_str(status) };
    // SAFETY: a static text.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let look = match status {
        Status::IBV_WC_RETRY_EXC_ERR => {
            ": it acknowledges nothing; its process or host is gone, or packets are lost (for \
             RoCE, UDP port 4791)"
        }
        Status::IBV_WC_REM_ACCESS_ERR => ": it has taken away the memory that was to be written",
        Status::IBV_WC_RNR_RETRY_EXC_ERR => ": it takes no messages",
        _ => "",
    };
    format!("{text} ({status}){look}")
}

/// A completion queue.
#[derive(Debug)]
pub(in crate::verbs) struct CompletionQueue {
    queue: NonNull<ffi::ibv_cq>,
    _channel: Arc<Channel>,
    _context: Arc<Context>,
}

// SAFETY: libibverbs may be called from any thread.
unsafe impl Send for CompletionQueue {}
// SAFETY: as above, also concurrently.
unsafe impl Sync for CompletionQueue {}

impl CompletionQueue {
    /// With room for `len` entries; the channel reports it as `number`.
    pub(in crate::verbs) fn new(
        context: &Arc<Context>,
        channel: &Arc<Channel>,
        len: u32,
        number: u64,
    ) -> io::Result<Self> {
        let len = i32::try_from(len).unwrap_or(i32::MAX);
        let (on, number) = (channel.channel.as_ptr(), number as *mut _);
        // SAFETY: an open context and channel; the number is only returned, not dereferenced.
        let queue = unsafe { ffi::ibv_create_cq(context.as_ptr(), len, number, on, 0) };
        Ok(Self {
            queue: NonNull::new(queue).ok_or_else(io::Error::last_os_error)?,
            _channel: Arc::clone(channel),
            _context: Arc::clone(context),
        })
    }

    pub(super) fn as_ptr(&self) -> *mut ffi::ibv_cq {
        self.queue.as_ptr()
    }

    fn operations(&self) -> &ffi::ibv_context_ops {
        // SAFETY: the queue lives as long as `self`.
        let context = unsafe { (*self.as_ptr()).context };
        // SAFETY: the context lives as long as the queue.
        unsafe { &(*context).ops }
    }

    /// Passes all completions to `take`, in order; returns their number.
    pub(in crate::verbs) fn poll(&self, mut take: impl FnMut(Completion)) -> io::Result<usize> {
        let Some(poll) = self.operations().poll_cq else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let mut entries = [ffi::ibv_wc::default(); BATCH];
        let mut all = 0;
        loop {
            // SAFETY: a live queue, and room for `BATCH` entries.
            let count = unsafe { poll(self.as_ptr(), BATCH as i32, entries.as_mut_ptr()) };
            let Ok(count) = usize::try_from(count) else {
                return Err(io::Error::other("the completion queue is broken"));
            };
            entries[..count]
                .iter()
                .for_each(|entry| take(Completion::of(entry)));
            all += count;
            if count < BATCH {
                return Ok(all);
            }
        }
    }

    /// Has the channel report the next completion. The caller polls once more afterwards.
    pub(in crate::verbs) fn arm(&self) -> io::Result<()> {
        let Some(arm) = self.operations().req_notify_cq else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        // SAFETY: a live queue.
        checked(unsafe { arm(self.as_ptr(), 0) })
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once; its queue pair keeps it alive.
        unsafe { ffi::ibv_destroy_cq(self.as_ptr()) };
    }
}
