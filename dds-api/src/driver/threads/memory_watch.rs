//! What a participant's memory is used for, gathered when a monitor asks.
//!
//! The kernel is asked for each row of each member, so this takes time in proportion to topics and
//! members. It is not done again before fifty times as long has passed: meanwhile a monitor gets the
//! same figures.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use spindle_dds_core::MemoryUse;
use spindle_dds_transport::memory::ResidentPages;

use crate::driver::endpoints::local_endpoints::{LocalEndpoint, LocalEndpoints};
use crate::driver::session::Session;
use crate::driver::threads::preparation::ViewSegments;
use crate::monitor::{MemoryFigures, MemoryKind};

/// Parts of the time that gathering may take.
const SHARE: u32 = 50;

/// The last figures, and when they may be gathered again.
#[derive(Debug, Default)]
pub(crate) struct MemoryWatch {
    figures: Vec<MemoryFigures>,
    again_at: Option<Instant>,
}

/// Bytes by kind: all, and those that are resident if that is known.
type Sums = BTreeMap<MemoryKind, (u64, Option<u64>)>;

impl MemoryWatch {
    /// The figures; `prepared` is what is prepared for a view that is not installed.
    pub(crate) fn figures(
        &mut self,
        session: &Session,
        local_endpoints: &LocalEndpoints,
        prepared: Option<&ViewSegments>,
    ) -> Vec<MemoryFigures> {
        let since = Instant::now();
        if self.again_at.is_none_or(|again_at| since >= again_at) {
            self.figures = gather(session, local_endpoints, prepared);
            self.again_at = Some(since + pause(since.elapsed()));
        }
        self.figures.clone()
    }
}

fn pause(took: Duration) -> Duration {
    took.saturating_mul(SHARE)
}

fn gather(
    session: &Session,
    local_endpoints: &LocalEndpoints,
    prepared: Option<&ViewSegments>,
) -> Vec<MemoryFigures> {
    let mut sums: Sums = MemoryKind::ALL.map(|kind| (kind, (0, Some(0)))).into();
    let mut pages = ResidentPages::open().ok();
    let mut add = |kind, addresses: Range<usize>| {
        let bytes = addresses.len() as u64;
        let pages = pages.as_mut();
        let resident = pages.and_then(|pages| pages.bytes(addresses).ok());
        count(&mut sums, kind, bytes, resident.map(|bytes| bytes as u64));
    };
    for range in session.engine().memory() {
        add(kind_of(range.used_for), range.addresses);
    }
    for addresses in prepared.into_iter().flat_map(ViewSegments::addresses) {
        add(MemoryKind::Prepared, addresses);
    }
    for (_, own) in local_endpoints.numbered() {
        let mut allocated = |kind, bytes: usize| {
            let bytes = bytes as u64;
            count(&mut sums, kind, bytes, Some(bytes));
        };
        match own {
            LocalEndpoint::Writer(writer) => allocated(MemoryKind::Writers, writer.allocated()),
            LocalEndpoint::Reader(reader) => {
                let [caches, queues] = reader.side.port.allocated();
                allocated(MemoryKind::ReaderCaches, caches);
                allocated(MemoryKind::ArrivalQueues, queues);
            }
        }
    }
    let figures = sums
        .into_iter()
        .map(|(kind, (bytes, resident_bytes))| MemoryFigures {
            kind,
            bytes,
            resident_bytes,
        });
    figures.collect()
}

fn count(sums: &mut Sums, kind: MemoryKind, bytes: u64, resident: Option<u64>) {
    let (all, there) = sums.entry(kind).or_insert((0, Some(0)));
    *all += bytes;
    *there = there.zip(resident).map(|(sum, more)| sum + more);
}

fn kind_of(used_for: MemoryUse) -> MemoryKind {
    match used_for {
        MemoryUse::OwnControlRow => MemoryKind::OwnControlRow,
        MemoryUse::OwnState => MemoryKind::OwnState,
        MemoryUse::OwnHeaders => MemoryKind::OwnHeaders,
        MemoryUse::OwnPayload => MemoryKind::OwnPayload,
        MemoryUse::PeerRows => MemoryKind::PeerRows,
        MemoryUse::Bookkeeping => MemoryKind::Bookkeeping,
    }
}
