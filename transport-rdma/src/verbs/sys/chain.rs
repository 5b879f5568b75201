//! A chain of work requests, posted by one call.

use core::ptr;

use ffi::{ibv_send_flags as Flags, ibv_wr_opcode as Opcode};
use ibverbs_sys as ffi;

use super::memory::{Memory, Remote};

/// A work request for a send queue.
#[derive(Debug)]
pub(in crate::verbs) enum Request<'a> {
    /// Writes `len` bytes of my memory, fetched when the request is executed.
    Write {
        from: &'a Memory,
        at: usize,
        len: usize,
        to: Remote,
    },
    /// Writes the same with the bytes of now.
    WriteNow {
        from: &'a Memory,
        at: usize,
        len: usize,
        to: Remote,
    },
    /// Writes a word.
    Word { value: u64, to: Remote },
    /// Sends a message of whole words.
    Message(&'a [u8]),
    /// Writes nothing, with an immediate value: a doorbell.
    Doorbell { number: u32, to: Remote },
    /// Does nothing.
    Nothing { to: Remote },
}

/// Work requests that are not posted yet. Allocates only when it is made.
pub(in crate::verbs) struct Chain {
    requests: Box<[ffi::ibv_send_wr]>,
    parts: Box<[ffi::ibv_sge]>,
    /// Inline bytes, at fixed positions for each work request.
    inline: Box<[u64]>,
    /// Words that each work request may carry inline.
    inline_words: usize,
    len: usize,
}

impl core::fmt::Debug for Chain {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Chain")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

// SAFETY: its pointers lead into itself, and are set when it is posted.
unsafe impl Send for Chain {}

impl Chain {
    /// For at most `max` work requests, each with at most `inline` inline bytes.
    pub(in crate::verbs) fn new(max: usize, inline: usize) -> Self {
        let inline_words = inline / 8;
        let request = ffi::ibv_send_wr {
            wr_id: 0,
            next: ptr::null_mut(),
            sg_list: ptr::null_mut(),
            num_sge: 0,
            opcode: 0,
            send_flags: 0,
            __bindgen_anon_1: ffi::ibv_send_wr__bindgen_ty_1 { imm_data: 0 },
            wr: ffi::ibv_send_wr__bindgen_ty_2 {
                rdma: ffi::ibv_send_wr__bindgen_ty_2__bindgen_ty_1::default(),
            },
            qp_type: ffi::ibv_send_wr__bindgen_ty_3 {
                xrc: ffi::ibv_send_wr__bindgen_ty_3__bindgen_ty_1::default(),
            },
            __bindgen_anon_2: ffi::ibv_send_wr__bindgen_ty_4 {
                tso: ffi::ibv_send_wr__bindgen_ty_4__bindgen_ty_2 {
                    hdr: ptr::null_mut(),
                    hdr_sz: 0,
                    mss: 0,
                },
            },
        };
        Self {
            requests: vec![request; max].into(),
            parts: vec![ffi::ibv_sge::default(); max].into(),
            inline: vec![0; max * inline_words].into(),
            inline_words,
            len: 0,
        }
    }

    /// Most inline bytes of a work request.
    pub(in crate::verbs) fn inline_len(&self) -> usize {
        self.inline_words * 8
    }

    pub(in crate::verbs) fn len(&self) -> usize {
        self.len
    }

    pub(in crate::verbs) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(in crate::verbs) fn is_full(&self) -> bool {
        self.len == self.requests.len()
    }

    pub(in crate::verbs) fn clear(&mut self) {
        self.len = 0;
    }

    /// Appends a work request that is completed as `id` if it is signalled; an error always
    /// is. Panics if the chain is full or the request is invalid, which callers check.
    pub(in crate::verbs) fn add(&mut self, request: &Request<'_>, id: u64, signalled: bool) {
        assert!(!self.is_full(), "a chain has an end");
        let mut flags = if signalled {
            Flags::IBV_SEND_SIGNALED
        } else {
            Flags(0)
        };
        let mut imm = 0;
        let first = self.len * self.inline_words;
        let words = &mut self.inline[first..first + self.inline_words];
        let (opcode, remote, inline_len) = match *request {
            Request::Write { from, at, len, to } => {
                assert!(from.region().contains(at, len), "inside of my row");
                self.parts[self.len] = ffi::ibv_sge {
                    addr: (from.region().address() + at) as u64,
                    length: len as u32,
                    lkey: from.local_key(),
                };
                (Opcode::IBV_WR_RDMA_WRITE, to, None)
            }
            Request::WriteNow { from, at, len, to } => {
                for (word, at) in words[..len / 8].iter_mut().zip((at..).step_by(8)) {
                    *word = from.region().load(at);
                }
                (Opcode::IBV_WR_RDMA_WRITE, to, Some(len))
            }
            Request::Word { value, to } => {
                words[0] = value.to_le();
                (Opcode::IBV_WR_RDMA_WRITE, to, Some(8))
            }
            Request::Message(bytes) => {
                let whole = bytes.as_chunks().0;
                for (word, bytes) in words[..bytes.len() / 8].iter_mut().zip(whole) {
                    *word = u64::from_ne_bytes(*bytes);
                }
                let nowhere = Remote { address: 0, key: 0 };
                (Opcode::IBV_WR_SEND, nowhere, Some(bytes.len()))
            }
            Request::Doorbell { number, to } => {
                imm = number.to_be();
                (Opcode::IBV_WR_RDMA_WRITE_WITH_IMM, to, Some(0))
            }
            Request::Nothing { to } => (Opcode::IBV_WR_RDMA_WRITE, to, Some(0)),
        };
        if let Some(len) = inline_len {
            flags |= Flags::IBV_SEND_INLINE;
            self.parts[self.len] = ffi::ibv_sge {
                addr: words.as_ptr() as u64,
                length: len as u32,
                lkey: 0,
            };
        }
        let has_part = self.parts[self.len].length > 0;
        let slot = &mut self.requests[self.len];
        slot.wr_id = id;
        slot.num_sge = i32::from(has_part);
        slot.opcode = opcode;
        slot.send_flags = if has_part {
            flags.0
        } else {
            (flags & Flags::IBV_SEND_SIGNALED).0
        };
        slot.__bindgen_anon_1.imm_data = imm;
        slot.wr.rdma = ffi::ibv_send_wr__bindgen_ty_2__bindgen_ty_1 {
            remote_addr: remote.address,
            rkey: remote.key,
        };
        self.len += 1;
    }

    /// Adds an immediate value to the last work request, if it is a write without one: the
    /// peer is told when it has landed. Returns whether it was added.
    pub(in crate::verbs) fn add_doorbell(&mut self, number: u32) -> bool {
        let Some(last) = self.requests[..self.len].last_mut() else {
            return false;
        };
        let writes = last.opcode == Opcode::IBV_WR_RDMA_WRITE;
        if writes {
            last.opcode = Opcode::IBV_WR_RDMA_WRITE_WITH_IMM;
            last.__bindgen_anon_1.imm_data = number.to_be();
        }
        writes
    }

    /// Sets the pointers from each request to the next, and returns the first.
    pub(super) fn link(&mut self) -> Option<*mut ffi::ibv_send_wr> {
        let (requests, parts) = (self.requests.as_mut_ptr(), self.parts.as_mut_ptr());
        for at in 0..self.len {
            let next = match at + 1 < self.len {
                true => requests.wrapping_add(at + 1),
                false => ptr::null_mut(),
            };
            self.requests[at].next = next;
            self.requests[at].sg_list = parts.wrapping_add(at);
        }
        (self.len > 0).then_some(requests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_carries_one_immediate_value_at_most() {
        let mut chain = Chain::new(2, 64);
        let to = Remote { address: 0, key: 7 };
        assert!(!chain.add_doorbell(1), "nothing to say it");
        chain.add(&Request::Message(&[0; 8]), 1, false);
        assert!(!chain.add_doorbell(1), "a message says none");
        chain.add(&Request::Word { value: 5, to }, 2, false);
        assert!(chain.add_doorbell(1));
        assert!(!chain.add_doorbell(0), "it says one already");
        assert_eq!(chain.len(), 2);
        let last = &chain.requests[1];
        assert_eq!(last.opcode, Opcode::IBV_WR_RDMA_WRITE_WITH_IMM);
        // SAFETY: this field of the union was written above.
        let imm = unsafe { last.__bindgen_anon_1.imm_data };
        assert_eq!((u32::from_be(imm), last.num_sge), (1, 1));
        assert_eq!((chain.inline[8], chain.parts[1].length), (5, 8));
    }

    #[test]
    fn a_chain_contains_what_was_added() {
        let mut chain = Chain::new(4, 64);
        let to = Remote {
            address: 4096,
            key: 7,
        };
        let message = [3_u8; 40];
        chain.add(
            &Request::Word {
                value: 5,
                to: to.at(8),
            },
            1,
            false,
        );
        chain.add(&Request::Message(&message), 2, false);
        chain.add(&Request::Doorbell { number: 1, to }, 3, false);
        chain.add(&Request::Nothing { to }, 4, true);
        assert!(chain.is_full() && chain.len() == 4 && !chain.is_empty());
        assert_eq!(
            (chain.inline[0], chain.inline[8]),
            (5, 0x0303_0303_0303_0303)
        );
        let first = chain.link().expect("not empty");
        assert_eq!(first, &raw mut chain.requests[0]);
        let requests = &chain.requests;
        assert_eq!(requests[0].next, &raw const requests[1] as *mut _);
        assert!(requests[3].next.is_null());
        // SAFETY: this field of the union was written above.
        let imm = unsafe { requests[2].__bindgen_anon_1.imm_data };
        assert_eq!((requests[2].num_sge, u32::from_be(imm)), (0, 1));
        let lens = chain.parts.iter().map(|part| part.length);
        assert_eq!(lens.collect::<Vec<_>>(), [8, 40, 0, 0]);
        let inline = Flags::IBV_SEND_INLINE.0;
        let flags = requests.iter().map(|request| request.send_flags);
        let signalled = Flags::IBV_SEND_SIGNALED.0;
        assert_eq!(flags.collect::<Vec<_>>(), [inline, inline, 0, signalled]);
        // SAFETY: as above.
        let rdma = unsafe { requests[0].wr.rdma };
        assert_eq!((rdma.remote_addr, rdma.rkey), (4104, 7));
        chain.clear();
        assert!(chain.link().is_none());
    }
}
