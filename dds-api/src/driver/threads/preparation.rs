//! The segments of a view, made with its members, and the memory for their bookkeeping.
//!
//! Usually they are made before the view is agreed, by all members of the present view and the
//! newcomers: one that lacks something says so, and nothing has changed. A view that is agreed
//! without that, as a member has failed, has no newcomers; its segments are made afterwards, and a
//! member that is not reached is not waited for: the view will suspect it.
//!
//! Each attempt has segments of its own: the keys of a view's attempts rise, and those of the
//! segments that are made afterwards are the highest.

use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

use spindle_dds_core::membership::{CONTROL_ROW_LEN, Member, MemberId, View};
use spindle_dds_core::{EpochMemory, PreparedSubgroup, SegmentLayout, SubgroupSpec};
use spindle_dds_transport::hybrid::{HybridError, Station};
use spindle_dds_transport::shm::DomainRegistry;
use spindle_dds_transport::{Fabric, FailureCause, Rank, SegmentKey, SegmentRequest, StationError};

use crate::discovery::ParticipantInfo;
use crate::driver::threads::control::entry;
use crate::error::{Error, Result};
use crate::joining::{refused, unmade};
use crate::wire::Wire;

/// The index of the control segment among the segments of a view.
const CONTROL_INDEX: u32 = u32::MAX;

/// The number of the segments that are made after a view was agreed.
const AFTERWARDS: u64 = 0xffff;

/// The segments of a view.
#[derive(Debug)]
pub(crate) struct ViewSegments {
    /// The number of the view.
    pub(crate) view: u64,
    /// The number of the preparation; 0 if they were made after the view was agreed.
    pub(crate) preparation: u64,
    pub(crate) control: Wire,
    /// The subgroups whose epochs begin with the view.
    pub(crate) subgroups: Vec<PreparedSubgroup<Wire>>,
}

impl ViewSegments {
    /// The addresses of its rows, and of the memory for the bookkeeping.
    pub(crate) fn addresses(&self) -> Vec<Range<usize>> {
        let rows = |segment: &Wire| {
            let ranks = (0..segment.members() as u16).map(Rank);
            let rows = ranks.map(|rank| segment.row(rank));
            let rows = rows.map(|row| row.address()..row.address() + row.len());
            rows.collect::<Vec<_>>()
        };
        let mut all = rows(&self.control);
        for subgroup in &self.subgroups {
            all.extend(rows(&subgroup.segment));
            all.push(subgroup.memory.addresses());
        }
        all
    }
}

/// The epoch in the keys of a view's segments.
pub(crate) fn key_epoch(view: u64, preparation: u64) -> u64 {
    let number = match preparation {
        0 => AFTERWARDS,
        number => number.min(AFTERWARDS - 1),
    };
    view.saturating_mul(AFTERWARDS + 1).saturating_add(number)
}

/// Stops making the segments of a preparation here: it fails.
pub(crate) fn stop(station: &Station, view: u64, number: u64) {
    station.end_exchanges_before(key_epoch(view, number) + 1);
}

/// The epoch in the keys of segments that are made after a view was agreed. Lower ones are those of
/// earlier views, and of what was prepared for this one.
pub(crate) fn first_epoch_afterwards(view: u64) -> u64 {
    key_epoch(view, 0)
}

/// How long the segments of a view may take with this limit of failure detection: longer before
/// it is agreed, as messages flow meanwhile.
pub(crate) fn time_limit(preparation: u64, limit: Duration) -> Duration {
    match preparation {
        0 => limit,
        _ => 2 * limit,
    }
}

/// Makes the segments of a view. Blocks until all members have taken part, within the
/// [`time_limit`]; `watch` is called meanwhile, and may give up members. With a number of a
/// preparation, fails if a member is not reached.
pub(crate) fn make(
    station: &Station,
    me: MemberId,
    view: &View,
    preparation: u64,
    limit: Duration,
    watch: &mut dyn FnMut(),
) -> Result<ViewSegments> {
    let deadline = Instant::now() + time_limit(preparation, limit);
    let rank = view.rank(me).unwrap_or(Rank(0));
    let begun = begun(view, rank);
    let requests = requests(view, rank, key_epoch(view.id, preparation), &begun)?;
    let memories = memories(&begun)?;
    let missing = connect(station, view, rank, deadline);
    let segments = station.segments_watching(&requests, deadline, watch);
    if preparation != 0 && !missing.is_empty() {
        // They may come another time.
        missing.iter().for_each(|(id, _)| station.drop_peer(*id));
        if let Some((_, error)) = missing.into_iter().next() {
            return Err(error);
        }
    }
    let segments = segments.map_err(unmade)?;
    let mut segments = segments.into_iter();
    let control = segments.next();
    let control = control.ok_or_else(|| Error::Error("no control segment".to_owned()))?;
    if preparation != 0
        && let Some(failure) = control.poll()
    {
        let member = &view.members[failure.peer.index()];
        let reason = match failure.cause {
            FailureCause::Unreachable(reason) => reason,
            cause => cause.to_string(),
        };
        return Err(unreached(member, &reason));
    }
    if station.prefaults() {
        // After the rows were sent, for which the others wait.
        let goes_on = || Instant::now() < deadline;
        memories.iter().for_each(|memory| memory.prefault(goes_on));
    }
    let begun = begun.iter().zip(segments).zip(memories);
    let subgroups = begun.map(|(((spec, _), segment), memory)| PreparedSubgroup {
        subgroup: spec.subgroup,
        segment,
        memory,
    });
    Ok(ViewSegments {
        view: view.id,
        preparation,
        control,
        subgroups: subgroups.collect(),
    })
}

/// Gets the room in the domain's record that a view needs, before it is agreed.
pub(crate) fn make_room(register: &DomainRegistry, view: &View) -> Result<()> {
    let members: Result<Vec<_>> = view.members.iter().map(entry).collect();
    register.make_room(&members?).map_err(refused)
}

/// Gives up members of this host that have died or closed before they were connected.
pub(crate) fn give_up_gone(station: &Station, register: &DomainRegistry, members: &[Member]) {
    // The station itself watches those that are connected.
    let missing = members.iter().filter(|it| station.path(it.id.0).is_none());
    for member in missing.filter_map(|it| entry(it).ok()) {
        if register.is_known_dead(&member) {
            station.give_up(member.id, "its process ended");
        } else if station.has_closed(&member.address) {
            station.give_up(member.id, "it has closed");
        }
    }
}

/// Connects to the members: of two members, the one that joined later connects. Returns those that
/// are not reached, which are given up.
fn connect(station: &Station, view: &View, me: Rank, deadline: Instant) -> Vec<(u128, Error)> {
    // All that are called answer at the same time, not one after the other.
    let called = &view.members[..me.index().min(view.members.len())];
    called
        .iter()
        .for_each(|member| station.begin_connecting(&member.address));
    let mut missing = Vec::new();
    for (rank, member) in (0..).map(Rank).zip(&view.members) {
        let reached = match rank {
            rank if rank == me => continue,
            rank => station
                .expect_peer(&member.address)
                .and_then(|()| match rank < me {
                    true => station.connect(&member.address, deadline).map(drop),
                    false => Ok(()),
                }),
        };
        if let Err(error) = reached {
            tracing::warn!(%error, "a member cannot be reached");
            // Not waited for; the others get the rows of this one, and need not wait for it.
            station.give_up(member.id.0, &error.to_string());
            missing.push((member.id.0, unconnected(member, error)));
        }
    }
    missing
}

/// The subgroup epochs that begin with the view and that this member is in, and its rank in each. A
/// newcomer enters no others.
fn begun(view: &View, me: Rank) -> Vec<(&SubgroupSpec, Rank)> {
    let begun = view.subgroups.iter().filter(|spec| spec.epoch == view.id);
    let mine = begun.filter_map(|spec| {
        let place = spec.members.iter().position(|rank| *rank == me)?;
        Some((spec, Rank(place as u16)))
    });
    mine.collect()
}

/// The memory for the bookkeeping of these epochs.
fn memories(begun: &[(&SubgroupSpec, Rank)]) -> Result<Vec<EpochMemory>> {
    let memory = |(spec, place): &(&SubgroupSpec, Rank)| EpochMemory::new(spec, *place);
    let memories: io::Result<_> = begun.iter().map(memory).collect();
    memories.map_err(|error| {
        Error::OutOfResources(format!(
            "no memory for the bookkeeping of messages: {error}: lower spindle.ring.messages, or \
             raise the limit of the process's address space"
        ))
    })
}

/// The segments that this member is in and that begin with the view, its control segment first.
fn requests(
    view: &View,
    me: Rank,
    epoch: u64,
    begun: &[(&SubgroupSpec, Rank)],
) -> Result<Vec<SegmentRequest>> {
    let ids = |ranks: &[Rank]| {
        let ids = ranks.iter().map(|rank| view.members[rank.index()].id.0);
        ids.collect::<Vec<_>>()
    };
    let all: Vec<Rank> = (0..view.members.len() as u16).map(Rank).collect();
    let mut requests = vec![SegmentRequest {
        key: SegmentKey {
            epoch,
            index: CONTROL_INDEX,
        },
        members: ids(&all),
        me,
        row_lens: vec![CONTROL_ROW_LEN; all.len()],
        control: true,
    }];
    for (spec, place) in begun {
        let layout = SegmentLayout::new(spec).map_err(|error| Error::Error(error.to_string()))?;
        requests.push(SegmentRequest {
            key: SegmentKey {
                epoch,
                index: spec.subgroup.0,
            },
            members: ids(&spec.members),
            me: *place,
            row_lens: layout.row_lens(),
            control: false,
        });
    }
    Ok(requests)
}

/// A member in messages for users.
pub(crate) fn name(member: &Member) -> String {
    match ParticipantInfo::of(member) {
        Ok(info) => format!("process {}", info.pid),
        Err(_) => format!("member {}", member.id),
    }
}

/// Why this participant and a member are not connected.
fn unconnected(member: &Member, error: HybridError) -> Error {
    match error {
        // It is this one that lacks something.
        HybridError::Join(_) | HybridError::Station(StationError::System(_)) => unmade(error),
        error => unreached(member, &why(&error)),
    }
}

/// Why a member is not reached, without its id: the text around it names the member.
fn why(error: &HybridError) -> String {
    match error {
        HybridError::Station(StationError::Unreachable { reason, .. }) => reason.clone(),
        HybridError::Station(StationError::Refused { reason, .. }) => {
            format!("it refuses the connection: {reason}")
        }
        error => error.to_string(),
    }
}

fn unreached(member: &Member, reason: &str) -> Error {
    Error::Error(format!("{} is not reached: {reason}", name(member)))
}
