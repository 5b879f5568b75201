//! Groups within one process, for tests and benches.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::descriptor;
use super::doorbell::{Bell, DoorbellChoice, DoorbellKind};
use super::error::JoinError;
use super::fabric::{Parts, ShmFabric};
use super::memory;
use crate::peers::{MEMBERS_MAX, Rank};

/// A group within this process, over the same memory files and doorbells: for
/// tests and benches. The members' threads take the part of processes.
pub fn local_group(
    members: usize,
    row_len: usize,
    doorbell: DoorbellChoice,
) -> Result<Vec<ShmFabric>, JoinError> {
    local_group_of(&vec![doorbell; members], row_len)
}

/// [`local_group`] with a doorbell for each member.
pub fn local_group_of(
    doorbells: &[DoorbellChoice],
    row_len: usize,
) -> Result<Vec<ShmFabric>, JoinError> {
    let count = doorbells.len();
    if count == 0 || count > MEMBERS_MAX {
        return Err(JoinError::GroupSize {
            wanted: count,
            max: MEMBERS_MAX,
        });
    }
    let copy = |fd: &OwnedFd| {
        fd.try_clone()
            .map_err(JoinError::system("copying a descriptor"))
    };
    let mut seats = Vec::new();
    for &choice in doorbells {
        let kind = DoorbellKind::choose(choice, count)?;
        seats.push((
            memory::create_row(row_len)?,
            kind,
            descriptor::event()?,
            descriptor::event()?,
        ));
    }
    let member = |me: usize| {
        let mut mappings = Vec::new();
        let mut bells = Vec::new();
        let mut lifelines = Vec::new();
        for (rank, ((own, file), kind, bell, lifeline)) in seats.iter().enumerate() {
            let (kind, event) = (*kind, copy(bell)?);
            bells.push(Bell { kind, event });
            if rank == me {
                mappings.push(Arc::clone(own));
                continue;
            }
            let pid = std::process::id();
            mappings.push(memory::open_row(copy(file)?, rank as u16, pid, row_len)?);
            lifelines.push((Rank(rank as u16), copy(lifeline)?));
        }
        let mut fabric = ShmFabric::new(Parts {
            me: Rank(me as u16),
            mappings,
            bells,
            lifelines,
        })?;
        fabric.set_lifeline(copy(&seats[me].3)?);
        Ok(fabric)
    };
    (0..count).map(member).collect()
}
