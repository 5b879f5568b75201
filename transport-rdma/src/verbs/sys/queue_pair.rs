//! Reliable connected queue pairs.

use core::ptr::{self, NonNull};
use std::io;
use std::sync::Arc;

use ffi::ibv_qp_attr_mask as Mask;
use ffi::{ibv_access_flags as Flags, ibv_qp_state as State};
use ibverbs_sys as ffi;

use super::chain::Chain;
use super::completion::CompletionQueue;
use super::errno::checked;
use super::memory::{Domain, Memory};

/// Retries of a packet; 7 would mean for ever on some devices.
pub(in crate::verbs) const RETRIES: u8 = 6;

/// For ever: a stopped process takes no messages, but has not failed.
const RETRIES_NOT_READY: u8 = 7;

/// How long a sender waits for a receive buffer at the peer: 0.64 ms.
const NOT_READY_TIMER: u8 = 12;

const HOPS: u8 = 64;

/// Capacity of a queue pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::verbs) struct Capacity {
    pub(in crate::verbs) sends: u32,
    pub(in crate::verbs) receives: u32,
    /// Inline bytes of a work request.
    pub(in crate::verbs) inline: u32,
}

/// The peer of a queue pair, and how to reach it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::verbs) struct Target {
    pub(in crate::verbs) queue_pair: u32,
    pub(in crate::verbs) first_packet: u32,
    pub(in crate::verbs) gid: [u8; 16],
    pub(in crate::verbs) lid: u16,
    /// By global address, as in Ethernet.
    pub(in crate::verbs) is_global: bool,
    /// Path MTU, in bytes.
    pub(in crate::verbs) mtu: u32,
    pub(in crate::verbs) my_port: u8,
    pub(in crate::verbs) my_gid_index: u8,
    pub(in crate::verbs) my_first_packet: u32,
    /// Exponent of the acknowledgement timeout: 4.096 us times 2 to this power.
    pub(in crate::verbs) timeout: u8,
}

#[derive(Debug)]
pub(in crate::verbs) struct QueuePair {
    pair: NonNull<ffi::ibv_qp>,
    /// The granted capacity, at least the requested one.
    pub(in crate::verbs) capacity: Capacity,
    pub(in crate::verbs) sends: CompletionQueue,
    pub(in crate::verbs) receives: CompletionQueue,
    _domain: Arc<Domain>,
}

// SAFETY: libibverbs may be called from any thread.
unsafe impl Send for QueuePair {}
// SAFETY: as above, also concurrently.
unsafe impl Sync for QueuePair {}

impl QueuePair {
    /// Creates one; asynchronous events report it as `number`.
    pub(in crate::verbs) fn new(
        domain: &Arc<Domain>,
        sends: CompletionQueue,
        receives: CompletionQueue,
        wanted: Capacity,
        number: u64,
    ) -> io::Result<Self> {
        let mut attributes = ffi::ibv_qp_init_attr {
            qp_context: number as *mut _,
            send_cq: sends.as_ptr(),
            recv_cq: receives.as_ptr(),
            srq: ptr::null_mut(),
            cap: ffi::ibv_qp_cap {
                max_send_wr: wanted.sends,
                max_recv_wr: wanted.receives,
                max_send_sge: 1,
                max_recv_sge: 1,
                max_inline_data: wanted.inline,
            },
            qp_type: ffi::ibv_qp_type::IBV_QPT_RC,
            sq_sig_all: 0,
        };
        // SAFETY: a live domain and live queues; the attributes are initialized.
        let pair = unsafe { ffi::ibv_create_qp(domain.as_ptr(), &raw mut attributes) };
        Ok(Self {
            pair: NonNull::new(pair).ok_or_else(io::Error::last_os_error)?,
            capacity: Capacity {
                inline: attributes.cap.max_inline_data,
                ..wanted
            },
            sends,
            receives,
            _domain: Arc::clone(domain),
        })
    }

    fn as_ptr(&self) -> *mut ffi::ibv_qp {
        self.pair.as_ptr()
    }

    pub(in crate::verbs) fn number(&self) -> u32 {
        // SAFETY: lives as long as `self`.
        unsafe { (*self.as_ptr()).qp_num }
    }

    fn modify(&self, mut attributes: ffi::ibv_qp_attr, mask: Mask) -> io::Result<()> {
        // SAFETY: a live queue pair, and attributes of which the mask selects those that are
        // initialized.
        checked(unsafe { ffi::ibv_modify_qp(self.as_ptr(), &raw mut attributes, mask.0 as i32) })
    }

    /// Initializes it: receives can be posted.
    pub(in crate::verbs) fn initialize(&self, port: u8) -> io::Result<()> {
        let attributes = ffi::ibv_qp_attr {
            qp_state: State::IBV_QPS_INIT,
            port_num: port,
            qp_access_flags: Flags::IBV_ACCESS_REMOTE_WRITE.0,
            ..ffi::ibv_qp_attr::default()
        };
        let mask = Mask::IBV_QP_STATE | Mask::IBV_QP_PKEY_INDEX | Mask::IBV_QP_PORT;
        self.modify(attributes, mask | Mask::IBV_QP_ACCESS_FLAGS)
    }

    /// Connects it: it receives and sends. May block while the peer's address is resolved.
    pub(in crate::verbs) fn connect(&self, to: &Target) -> io::Result<()> {
        let mut receive = ffi::ibv_qp_attr {
            qp_state: State::IBV_QPS_RTR,
            path_mtu: to.mtu.max(256).ilog2() - 7,
            dest_qp_num: to.queue_pair,
            rq_psn: to.first_packet,
            min_rnr_timer: NOT_READY_TIMER,
            ..ffi::ibv_qp_attr::default()
        };
        let address = &mut receive.ah_attr;
        address.port_num = to.my_port;
        address.dlid = to.lid;
        address.is_global = u8::from(to.is_global);
        address.grh.dgid = ffi::ibv_gid { raw: to.gid };
        address.grh.sgid_index = to.my_gid_index;
        address.grh.hop_limit = HOPS;
        let mask = Mask::IBV_QP_STATE | Mask::IBV_QP_AV | Mask::IBV_QP_PATH_MTU;
        let mask = mask | Mask::IBV_QP_DEST_QPN | Mask::IBV_QP_RQ_PSN;
        let mask = mask | Mask::IBV_QP_MAX_DEST_RD_ATOMIC | Mask::IBV_QP_MIN_RNR_TIMER;
        self.modify(receive, mask)?;
        let send = ffi::ibv_qp_attr {
            qp_state: State::IBV_QPS_RTS,
            timeout: to.timeout,
            retry_cnt: RETRIES,
            rnr_retry: RETRIES_NOT_READY,
            sq_psn: to.my_first_packet,
            ..ffi::ibv_qp_attr::default()
        };
        let mask = Mask::IBV_QP_STATE | Mask::IBV_QP_TIMEOUT | Mask::IBV_QP_RETRY_CNT;
        let mask = mask | Mask::IBV_QP_RNR_RETRY | Mask::IBV_QP_SQ_PSN;
        self.modify(send, mask | Mask::IBV_QP_MAX_QP_RD_ATOMIC)
    }

    /// Stops it: nothing is sent or received any more.
    pub(in crate::verbs) fn stop(&self) -> io::Result<()> {
        let attributes = ffi::ibv_qp_attr {
            qp_state: State::IBV_QPS_ERR,
            ..ffi::ibv_qp_attr::default()
        };
        self.modify(attributes, Mask::IBV_QP_STATE)
    }

    /// Posts a receive: `len` bytes at `at` of `memory`.
    pub(in crate::verbs) fn receive(
        &self,
        id: u64,
        memory: &Memory,
        at: usize,
        len: usize,
    ) -> io::Result<()> {
        assert!(memory.region().contains(at, len), "room for a message");
        let mut part = ffi::ibv_sge {
            addr: (memory.region().address() + at) as u64,
            length: len as u32,
            lkey: memory.local_key(),
        };
        let mut request = ffi::ibv_recv_wr {
            wr_id: id,
            next: ptr::null_mut(),
            sg_list: &raw mut part,
            num_sge: 1,
        };
        let mut bad = ptr::null_mut();
        let Some(post) = self.operations().post_recv else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        // SAFETY: a live queue pair, and a request that the call copies.
        checked(unsafe { post(self.as_ptr(), &raw mut request, &raw mut bad) })
    }

    /// Posts all work requests of a chain in order, by one call.
    pub(in crate::verbs) fn post(&self, chain: &mut Chain) -> io::Result<()> {
        let Some(first) = chain.link() else {
            return Ok(());
        };
        let Some(post) = self.operations().post_send else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let mut bad = ptr::null_mut();
        // SAFETY: a live queue pair. The requests and their inline bytes are in `chain` and
        // are copied by the call; other memory is referred to by keys.
        checked(unsafe { post(self.as_ptr(), first, &raw mut bad) })
    }

    fn operations(&self) -> &ffi::ibv_context_ops {
        // SAFETY: the queue pair lives as long as `self`.
        let context = unsafe { (*self.as_ptr()).context };
        // SAFETY: the context lives as long as the queue pair.
        unsafe { &(*context).ops }
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once; its queues are dropped afterwards.
        unsafe { ffi::ibv_destroy_qp(self.as_ptr()) };
    }
}
