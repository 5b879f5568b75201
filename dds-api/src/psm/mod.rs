//! The literal operations of the DCPS platform specific model (DDS 1.4 §2.3.3)
//! over the idiomatic interface: names, parameters and return codes as in the standard's IDL,
//! for conformance tests and for ported code.
//!
//! An object is a wrapper around the entity that it stands for (field 0).
//! `inout` parameters are `&mut`, nil is `None`, a `ReturnCode_t` is a
//! [`ReturnCode`]. Operations of `Entity` are on each entity. The sequences
//! that `read` and `take` fill are one [`Received`]: a loan, which is given back by
//! `return_loan`, or by dropping it, or copies. A listener is a [`SharedListener`], which
//! `get_listener` returns. It returns nil for a listener that was set by the idiomatic interface:
//! the entity alone has that.
//!
//! [`OPERATIONS`] lists every operation of the standard and whether it exists
//! here.

mod condition;
mod operations;
mod participant;
mod publication;
mod received;
mod special_qos;
mod subscription;
mod topic;

pub use condition::{GuardCondition, ReadCondition, StatusCondition, WaitSet};
pub use operations::{OPEN, OPERATIONS, PRESENT};
pub use participant::{DomainParticipant, DomainParticipantFactory};
pub use publication::{DataWriter, Publisher};
pub use received::Received;
pub use special_qos::{
    DATAREADER_QOS_DEFAULT, DATAREADER_QOS_USE_TOPIC_QOS, DATAWRITER_QOS_DEFAULT,
    DATAWRITER_QOS_USE_TOPIC_QOS, PARTICIPANT_QOS_DEFAULT, PUBLISHER_QOS_DEFAULT,
    SUBSCRIBER_QOS_DEFAULT, TOPIC_QOS_DEFAULT,
};
pub use subscription::{DataReader, Subscriber};
pub use topic::{Topic, TypeSupport};

use crate::error::{Result, ReturnCode};
pub use crate::listener::SharedListener;

/// Stores a value in an `inout` parameter.
fn put<T>(result: Result<T>, into: &mut T) -> ReturnCode {
    let code = ReturnCode::of(&result);
    if let Ok(value) = result {
        *into = value;
    }
    code
}

/// The operations of `Entity` that all entities have alike.
macro_rules! entity {
    ($entity:ident $(<$parameter:ident>)?, $enable:expr) => {
        impl$(<$parameter>)? $entity$(<$parameter>)? {
            /// `enable`: of a participant; its entities are enabled with it.
            pub fn enable(&self) -> $crate::error::ReturnCode {
                let enable: fn(&Self) -> $crate::error::Result<()> = $enable;
                $crate::error::ReturnCode::of(&enable(self))
            }

            /// `get_statuscondition`.
            pub fn get_statuscondition(&self) -> Option<$crate::psm::StatusCondition> {
                self.0.status_condition().ok().map($crate::psm::StatusCondition)
            }

            /// `get_status_changes`.
            pub fn get_status_changes(&self) -> $crate::status::StatusMask {
                self.0.status_changes().unwrap_or_default()
            }

            /// `get_instance_handle`.
            pub fn get_instance_handle(&self) -> $crate::handle::InstanceHandle {
                self.0.instance_handle()
            }
        }
    };
}

/// Entities of a disabled participant cannot be enabled alone: they join with it.
fn enable_part(is_enabled: bool) -> Result<()> {
    if is_enabled {
        return Ok(());
    }
    Err(crate::error::Error::PreconditionNotMet(
        "the participant is disabled; enable it, and with it all that it contains".to_owned(),
    ))
}

use entity;
