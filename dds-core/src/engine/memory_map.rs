//! Where an engine's memory lies, by what it is used for: for tools that show what is resident.

use std::ops::Range;

use spindle_dds_transport::memory::Region;
use spindle_dds_transport::{Fabric, Rank};

use crate::engine::Engine;
use crate::engine::views::Views;
use crate::sink::Sink;
use crate::subgroup::layout::Columns;

/// What a range of memory is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemoryUse {
    /// This member's row of the view's control segment.
    OwnControlRow,
    /// What this member acknowledges, and its digests, in its rows of subgroups.
    OwnState,
    /// The headers of its rings, with their guards.
    OwnHeaders,
    /// The payload of its rings.
    OwnPayload,
    /// Rows of other members, control rows included, as this process has them mapped.
    PeerRows,
    /// What this member notes about the messages of all rings.
    Bookkeeping,
}

/// A range of addresses. Nothing is read or written by it; it may be unmapped at any time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryRange {
    /// What it is used for.
    pub used_for: MemoryUse,
    /// From the first byte to behind the last.
    pub addresses: Range<usize>,
}

impl<F: Fabric, S: Sink<F>> Engine<F, S> {
    /// The memory of the present view and of the subgroup epochs that have not ended. Waits for a
    /// step in progress.
    pub fn memory(&self) -> Vec<MemoryRange> {
        let mut ranges = Vec::new();
        if let Some(control) = self.state().views.as_ref().and_then(Views::control) {
            control_rows(control, &mut ranges);
        }
        for subgroup in self.participant().subgroups() {
            rows(&subgroup.fabric, &subgroup.columns, &mut ranges);
            add(MemoryUse::Bookkeeping, &subgroup.bookkeeping, &mut ranges);
        }
        ranges
    }
}

fn add(used_for: MemoryUse, addresses: &Range<usize>, ranges: &mut Vec<MemoryRange>) {
    if !addresses.is_empty() {
        let addresses = addresses.clone();
        ranges.push(MemoryRange {
            used_for,
            addresses,
        });
    }
}

fn addresses(row: &Region) -> Range<usize> {
    row.address()..row.address() + row.len()
}

/// The rows of a control segment.
fn control_rows<F: Fabric>(control: &F, ranges: &mut Vec<MemoryRange>) {
    let me = control.me();
    add(
        MemoryUse::OwnControlRow,
        &addresses(control.row(me)),
        ranges,
    );
    peer_rows(control, ranges);
}

fn peer_rows<F: Fabric>(fabric: &F, ranges: &mut Vec<MemoryRange>) {
    let members = (0..fabric.members() as u16).map(Rank);
    for peer in members.filter(|rank| *rank != fabric.me()) {
        add(MemoryUse::PeerRows, &addresses(fabric.row(peer)), ranges);
    }
}

/// The rows of an epoch's segment: the own one in its parts.
fn rows<F: Fabric>(fabric: &F, columns: &Columns, ranges: &mut Vec<MemoryRange>) {
    let row = addresses(fabric.row(fabric.me()));
    let mut at = row.start;
    let mut part = |used_for, end: usize| {
        let end = end.clamp(at, row.end);
        add(used_for, &(at..end), ranges);
        at = end;
    };
    // A ring comes after the other: guard, headers, payload.
    let mut used_for = MemoryUse::OwnState;
    for ring in columns.rings.iter().flatten() {
        part(used_for, row.start + ring.guard);
        part(MemoryUse::OwnHeaders, row.start + ring.payload);
        used_for = MemoryUse::OwnPayload;
    }
    part(used_for, row.end);
    peer_rows(fabric, ranges);
}
