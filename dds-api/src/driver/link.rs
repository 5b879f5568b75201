//! What lies between the engine and a reader in one lane: the writers that match,
//! and the queue of what comes from them.
//!
//! ```text
//!   engine's thread   pushes here --------------------------> sets `next`, pushes there
//!   reader's side     pops here until it is empty and there is a next one, goes there
//! ```
//!
//! So what is told of a match has its place in the order of samples, and neither
//! side waits for the other.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use crossbeam_queue::ArrayQueue;
use spindle_dds_core::membership::MemberId;
use spindle_dds_core::{Lane, Ring};
use spindle_dds_qos::PolicyId;
use spindle_dds_transport::{Fabric, Rank};

use super::shelf::{Arrival, Stamp};
use crate::handle::InstanceHandle;

/// A reader's side of one lane.
pub(crate) struct Link<F: Fabric> {
    pub(super) arrivals: ArrayQueue<Arrival<F>>,
    /// `None`: no view has the reader yet.
    pub(super) lane: Option<Arc<Lane<F>>>,
    /// By place and number.
    writers: Box<[LinkedWriter]>,
    /// What is new of writers that offer less than the reader asks for.
    pub(super) refusals: Vec<Vec<PolicyId>>,
    /// All of those.
    refused: Vec<InstanceHandle>,
    /// How many writers have ever been matched.
    known: u32,
    /// Messages that one ring holds at most.
    pub(super) ring_max: usize,
    next: OnceLock<Arc<Self>>,
}

/// A writer that a reader accepts samples from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MatchedWriter {
    /// Place of its member in the lane.
    pub(crate) place: Rank,
    /// Its own number in its participant.
    pub(crate) number: u32,
    /// Its member.
    pub(crate) member: MemberId,
    pub(crate) ring: Ring,
    pub(crate) handle: InstanceHandle,
    /// Whether its instances are disposed of when it leaves with its member.
    pub(crate) autodispose: bool,
}

struct LinkedWriter {
    writer: MatchedWriter,
    /// Among all that have ever been matched.
    index: u32,
    /// Source timestamp of its last message.
    timestamp: AtomicI64,
    /// Nothing of it is taken any more. The engine's thread alone.
    gone: AtomicBool,
}

impl<F: Fabric> fmt::Debug for Link<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("lane", &self.lane)
            .finish_non_exhaustive()
    }
}

impl<F: Fabric> Link<F> {
    /// Before the first view.
    pub(super) fn first() -> Self {
        Self {
            arrivals: ArrayQueue::new(1),
            lane: None,
            writers: Box::default(),
            refusals: Vec::new(),
            refused: Vec::new(),
            known: 0,
            ring_max: 0,
            next: OnceLock::new(),
        }
    }

    /// The one after this, in a new lane. `sizes` are messages that the rings of these
    /// writers hold, each ring once. A writer that is gone already, and that the others
    /// have not taken out yet, stays gone.
    pub(crate) fn follow(
        &self,
        lane: Arc<Lane<F>>,
        mut writers: Vec<MatchedWriter>,
        refused: Vec<(InstanceHandle, Vec<PolicyId>)>,
        sizes: &[usize],
    ) -> Self {
        writers.sort_unstable_by_key(|writer| (writer.place, writer.number));
        let mut known = self.known;
        let linked = writers.into_iter().map(|writer| {
            let before = self
                .writers
                .iter()
                .find(|it| it.writer.handle == writer.handle);
            let index = before.map_or(known, |before| before.index);
            known = known.max(index + 1);
            let timestamp = before.map_or(0, |it| it.timestamp.load(Ordering::Relaxed));
            LinkedWriter {
                writer,
                index,
                timestamp: AtomicI64::new(timestamp),
                gone: AtomicBool::new(before.is_some_and(LinkedWriter::is_gone)),
            }
        });
        let writers: Box<[_]> = linked.collect();
        let is_new = |handle: &InstanceHandle| !self.refused.contains(handle);
        let new = refused.iter().filter(|(handle, _)| is_new(handle));
        Self {
            // Each writer can go once.
            arrivals: ArrayQueue::new(sizes.iter().sum::<usize>() + writers.len() + 1),
            lane: Some(lane),
            refusals: new.map(|(_, policies)| policies.clone()).collect(),
            refused: refused.into_iter().map(|(handle, _)| handle).collect(),
            known,
            ring_max: sizes.iter().copied().max().unwrap_or(0),
            writers,
            next: OnceLock::new(),
        }
    }

    /// Nothing more is pushed here: it goes on there.
    pub(crate) fn set_next(&self, next: Arc<Self>) {
        let _ = self.next.set(next);
    }

    pub(super) fn next(&self) -> Option<&Arc<Self>> {
        self.next.get()
    }

    /// Its epoch.
    pub(crate) fn epoch(&self) -> Option<u64> {
        Some(self.lane.as_ref()?.epoch())
    }

    /// The writers, each with its index among all that have ever been matched.
    pub(crate) fn writers(&self) -> impl Iterator<Item = (u32, &MatchedWriter)> {
        self.writers.iter().map(|it| (it.index, &it.writer))
    }

    /// Index of a writer that is not gone; its message of this time came.
    pub(super) fn came(&self, place: Rank, number: u32, timestamp: i64) -> Option<u32> {
        let linked = self.find(place, number)?;
        linked.timestamp.store(timestamp, Ordering::Relaxed);
        Some(linked.index)
    }

    fn find(&self, place: Rank, number: u32) -> Option<&LinkedWriter> {
        let key = |it: &LinkedWriter| (it.writer.place, it.writer.number);
        let found = self.writers.binary_search_by_key(&(place, number), key);
        let linked = &self.writers[found.ok()?];
        (!linked.is_gone()).then_some(linked)
    }

    /// A writer says that it is gone. Whether that is news.
    pub(super) fn says_gone(&self, place: Rank, number: u32, at: Stamp, disposes: bool) -> bool {
        let linked = self.find(place, number);
        linked.is_some_and(|linked| self.go(linked, at, disposes))
    }

    /// Those that `stays` does not know any more go where the lane ends; `disposes`
    /// says what becomes of their instances. Whether there are any.
    pub(crate) fn end(
        &self,
        end: Option<u64>,
        stays: impl Fn(InstanceHandle) -> bool,
        disposes: impl Fn(&MatchedWriter) -> bool,
    ) -> bool {
        let mut any = false;
        for linked in self.writers.iter().filter(|it| !it.is_gone()) {
            if stays(linked.writer.handle) {
                continue;
            }
            let stamp = Stamp {
                position: end.unwrap_or(0),
                timestamp: linked.timestamp.load(Ordering::Relaxed),
            };
            any |= self.go(linked, stamp, disposes(&linked.writer));
        }
        any
    }

    fn go(&self, linked: &LinkedWriter, at: Stamp, disposes: bool) -> bool {
        linked.gone.store(true, Ordering::Relaxed);
        let gone = Arrival::Gone {
            writer: linked.index,
            handle: linked.writer.handle,
            at,
            disposes,
        };
        self.arrivals.push(gone).is_ok()
    }
}

impl LinkedWriter {
    fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }
}
