//! The way back of a participant that has lost its group (property `spindle.rejoin`).
//!
//! ```text
//!   the control thread of the session that has ended
//!     join as a new member, again and again    --pauses grow where that fails, or does not last
//!     end the session's other threads; writers keep what the group has not delivered
//!     begin a new session                      --its threads go on from here
//!     writers send what they kept, before anything that is written now
//! ```
//!
//! Entities, QoS, listeners, conditions and handles stay. The other members see a member go, and
//! another one come.

use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use spindle_dds_core::membership::{DeliveredCounts, MemberId};

use super::{Entered, Entry};
use crate::driver::{CancelToken, LocalEndpoint, Session, Threads};
use crate::error::{Error, Result};
use crate::participant::ParticipantCore;

/// How often to look whether the return is cancelled.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Enters the group again with a new session, after `ended`, in which the participant was the member
/// `was`. Blocks until that has succeeded, or the participant is closed or dropped.
pub(crate) fn rejoin(participant: &Weak<ParticipantCore>, ended: &Arc<Session>, was: MemberId) {
    let begun = participant.upgrade().map(|it| it.begin_returning(ended));
    let Some(cancel) = begun.flatten() else {
        return;
    };
    tracing::warn!(
        "{}; it comes back by itself",
        ended.group_status().why_out()
    );
    let entered = repeat(participant, ended, was, &cancel);
    let core = participant.upgrade().filter(|_| !cancel.is_cancelled());
    let (Some(entered), Some(core)) = (entered, core) else {
        ended.end_threads();
        if let Some(core) = participant.upgrade() {
            core.return_cancelled();
        }
        return;
    };
    go_on(&core, &entered.begin(&core, Some(ended)));
}

/// Joins, until that succeeds. `None` if the participant is closed or dropped.
fn repeat(
    participant: &Weak<ParticipantCore>,
    ended: &Session,
    was: MemberId,
    cancel: &CancelToken,
) -> Option<Entered> {
    let status = ended.group_status();
    loop {
        let until = Instant::now() + status.next_pause();
        while Instant::now() < until && !cancel.is_cancelled() {
            thread::sleep(LOOK_EVERY.min(until.saturating_duration_since(Instant::now())));
        }
        if cancel.is_cancelled() {
            return None;
        }
        match attempt(participant, was, cancel) {
            Ok(entered) => return Some(entered),
            Err(_) if cancel.is_cancelled() => return None,
            Err(error) => status.not_back(&error),
        }
    }
}

fn attempt(
    participant: &Weak<ParticipantCore>,
    was: MemberId,
    cancel: &CancelToken,
) -> Result<Entered> {
    let core = participant.upgrade();
    let core = core.ok_or_else(|| Error::AlreadyDeleted("it is dropped".to_owned()))?;
    let threads = Threads::spawn(&core.config.threads)?;
    let entry = Entry::prepare(&core, threads, Some(was))?;
    // The application may drop the participant while it joins.
    drop(core);
    entry.enter(cancel)
}

/// Writers keep what the group has not delivered. Returns the writers, and after which sequence number
/// each goes on.
pub(super) fn keep_sent(
    participant: &ParticipantCore,
    ended: &Session,
    delivered: Option<&DeliveredCounts>,
) -> Vec<(u32, u64)> {
    let mut writers = ended.engine().writer_sequences();
    for own in participant.local_endpoints.all() {
        let LocalEndpoint::Writer(writer) = own else {
            continue;
        };
        let known = writers
            .iter_mut()
            .find(|(number, _)| *number == writer.number);
        let last = known.as_ref().map_or(0, |(_, last)| *last);
        let (after, gone) = writer.keep_sent(delivered, last);
        if let Some((_, last)) = known {
            *last = after;
        }
        if gone > 0 {
            let topic = &writer.topic.name;
            tracing::warn!(
                topic,
                gone,
                "samples are gone: they were not delivered, nor kept"
            );
            participant.group_status.samples_gone(gone);
        }
    }
    writers
}

/// The new session has begun.
fn go_on(participant: &ParticipantCore, session: &Arc<Session>) {
    participant.end_returning(session);
    if !session.control_queue().wait_begun() {
        // Its control thread goes on from here, unless it is closed.
        return;
    }
    let own = participant.local_endpoints.all();
    let (logged, others): (Vec<_>, Vec<_>) = own.into_iter().partition(LocalEndpoint::is_logged);
    let send_kept = |endpoints: Vec<LocalEndpoint>| {
        for own in endpoints {
            if let LocalEndpoint::Writer(writer) = own {
                participant.group_status.samples_gone(writer.send_kept());
            }
        }
    };
    send_kept(others);
    if participant.group_status.came_back(session.outages()) {
        tracing::warn!("the participant is a member of its group again");
    }
    // These may have to wait for logs.
    send_kept(logged);
}
