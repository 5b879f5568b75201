//! Conditions and wait-sets by their literal names.

use spindle_dds_qos::Duration;

use crate::condition::{Condition, InstanceStateMask, SampleStateMask, ViewStateMask};
use crate::error::ReturnCode;
use crate::participant::AnyEntity;
use crate::status::StatusMask;
use crate::subscription::AnyDataReader;

/// `GuardCondition`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuardCondition(pub crate::GuardCondition);

impl GuardCondition {
    /// `set_trigger_value`.
    pub fn set_trigger_value(&self, value: bool) -> ReturnCode {
        self.0.set_trigger_value(value);
        ReturnCode::Ok
    }

    /// `get_trigger_value`.
    pub fn get_trigger_value(&self) -> bool {
        self.0.trigger_value()
    }
}

/// `StatusCondition`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusCondition(pub crate::StatusCondition);

impl StatusCondition {
    /// `get_enabled_statuses`.
    pub fn get_enabled_statuses(&self) -> StatusMask {
        self.0.enabled_statuses()
    }

    /// `set_enabled_statuses`.
    pub fn set_enabled_statuses(&self, mask: StatusMask) -> ReturnCode {
        self.0.set_enabled_statuses(mask);
        ReturnCode::Ok
    }

    /// `get_entity`; nil once it is deleted.
    pub fn get_entity(&self) -> Option<AnyEntity> {
        self.0.entity().ok()
    }

    /// `get_trigger_value`.
    pub fn get_trigger_value(&self) -> bool {
        self.0.trigger_value()
    }
}

/// `ReadCondition`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadCondition(pub crate::ReadCondition);

impl ReadCondition {
    /// `get_datareader`; nil once it is deleted.
    pub fn get_datareader(&self) -> Option<AnyDataReader> {
        self.0.reader().ok()
    }

    /// `get_sample_state_mask`.
    pub fn get_sample_state_mask(&self) -> SampleStateMask {
        self.0.masks().sample
    }

    /// `get_view_state_mask`.
    pub fn get_view_state_mask(&self) -> ViewStateMask {
        self.0.masks().view
    }

    /// `get_instance_state_mask`.
    pub fn get_instance_state_mask(&self) -> InstanceStateMask {
        self.0.masks().instance
    }

    /// `get_trigger_value`.
    pub fn get_trigger_value(&self) -> bool {
        self.0.trigger_value()
    }
}

/// `WaitSet`. Conditions of this module are attached by their field 0.
#[derive(Debug, Default)]
pub struct WaitSet(pub crate::WaitSet);

impl WaitSet {
    /// `wait`.
    pub fn wait(&self, active_conditions: &mut Vec<Condition>, timeout: Duration) -> ReturnCode {
        super::put(self.0.wait(timeout), active_conditions)
    }

    /// `attach_condition`.
    pub fn attach_condition(&self, condition: &Condition) -> ReturnCode {
        self.0.attach(condition);
        ReturnCode::Ok
    }

    /// `detach_condition`.
    pub fn detach_condition(&self, condition: &Condition) -> ReturnCode {
        ReturnCode::of(&self.0.detach(condition))
    }

    /// `get_conditions`.
    pub fn get_conditions(&self, attached_conditions: &mut Vec<Condition>) -> ReturnCode {
        *attached_conditions = self.0.attached();
        ReturnCode::Ok
    }
}
