//! How a participant gets into its group: announce, meet, agree, connect.
//!
//! ```text
//!   endpoints --Announcement--> join --announcements of all--> Plan (the same at all)
//!   Plan --Rows--> build --parts of one fabric--> Engine and its lanes, Session
//!                                                 --Links, Ports--> endpoints
//! ```

mod announcement;
mod connect;
mod matching;
mod plan;

use std::sync::Arc;

use spindle_dds_transport::shm::{Cancel, DoorbellChoice, JoinError, JoinOptions, join};

use crate::driver::{Crew, Session};
use crate::error::{Error, Result};
use crate::participant::ParticipantCore;
use crate::properties::{Doorbell, pin};
use crate::wire::Wire;
use announcement::Announcement;
use plan::Plan;

/// Forms the group with the other participants of the domain on this host.
/// Blocks until all have come, or `cancel` is said. Endpoints are connected afterwards.
pub(crate) fn form(participant: &ParticipantCore, cancel: Cancel) -> Result<Arc<Session<Wire>>> {
    let config = &participant.config;
    let Some(group_size) = config.group_size else {
        return Err(Error::PreconditionNotMet(
            "the group is formed once: the property spindle.group.size of the participant has to \
             say of how many participants, for instance 2"
                .to_owned(),
        ));
    };
    warn_of_unused_pins(participant);
    // Before anybody is promised anything.
    let crew = Crew::muster()?;
    let endpoints = connect::Endpoints::of(participant);
    let mine = Announcement::of(participant, &endpoints).to_bytes()?;
    let options = JoinOptions {
        domain: participant.domain_id,
        group_size,
        directory: config.directory.clone(),
        timeout: Some(config.join_timeout),
        doorbell: match config.doorbell {
            Doorbell::Auto => DoorbellChoice::Auto,
            Doorbell::Futex => DoorbellChoice::Futex,
            Doorbell::Event => DoorbellChoice::Event,
        },
        cancel: Some(cancel),
    };
    let formation = join(&options, &mine).map_err(refused)?;
    let pids = formation.pids();
    let announcements = formation
        .announcements()
        .iter()
        .zip(&pids)
        .map(|(bytes, pid)| Announcement::from_bytes(bytes, *pid))
        .collect::<Result<Vec<_>>>()?;
    let plan = Plan::of(&announcements, &pids, formation.group_id())?;
    let rows = plan.rows()?;
    let fabric = formation.build(&rows.lens).map_err(refused)?;
    let segments = plan.segments(&rows, fabric)?;
    connect::connect(
        participant,
        endpoints,
        &announcements,
        &plan,
        pids,
        segments,
        crew,
    )
}

/// A profile may be shared by participants that have different topics; but it may be a
/// misspelled name too.
fn warn_of_unused_pins(participant: &ParticipantCore) {
    let entities = participant.entities();
    for name in participant.config.pins.keys() {
        if !entities.topics.iter().any(|topic| topic.name == *name) {
            tracing::warn!(
                property = pin(name),
                "the participant has no topic of this name: the property has no effect"
            );
        }
    }
}

fn refused(error: JoinError) -> Error {
    let text = error.to_string();
    match error {
        JoinError::Cancelled { .. } => Error::AlreadyDeleted(text),
        JoinError::GroupExists { .. } | JoinError::SizeMismatch { .. } => {
            Error::PreconditionNotMet(text)
        }
        JoinError::GroupSize { .. } => Error::BadParameter(text),
        JoinError::AnnouncementTooLong { .. } | JoinError::Memory { .. } => {
            Error::OutOfResources(text)
        }
        JoinError::Timeout { .. } => Error::Timeout(text),
        JoinError::NoFutexWaitv => Error::Unsupported(text),
        _ => Error::Error(text),
    }
}
