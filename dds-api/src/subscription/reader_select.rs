//! The forms of `read` and `take` (DDS 1.4 §2.2.2.5.3.8 to §2.2.2.5.3.19).
//!
//! `take` moves samples out of the reader; `read` returns copies, and leaves the samples there,
//! marked as read. Both remove samples whose bytes are invalid, and count them in SAMPLE_LOST.
//! All forms return NO_DATA when no sample is selected, and ERROR once the group has failed and
//! all that was delivered has been taken. None of them blocks.
//!
//! Before they return NO_DATA they step the engine once, so that a thread that polls does not
//! depend on another thread. Inside of a listener or a waker they do not.

use spindle_dds_idl_runtime::{KeyHash, TopicType};

use super::{DataReader, Samples};
use crate::cache::{Query, Whose};
use crate::condition::{ReadCondition, StateMasks};
use crate::driver::{Access, Item};
use crate::error::{Error, Result};
use crate::handle::InstanceHandle;
use crate::wire::Wire;

impl<T: TopicType> DataReader<T> {
    /// Takes at most `max` samples in any state.
    ///
    /// # Errors
    /// NO_DATA, NOT_ENABLED, ALREADY_DELETED; ERROR when the group failed.
    pub fn take(&self, max: usize) -> Result<Samples<T>> {
        self.select(Access::Take, max, StateMasks::ANY, Whose::Any)
    }

    /// Reads at most `max` samples in any state.
    ///
    /// # Errors
    /// As for [`take`](Self::take).
    pub fn read(&self, max: usize) -> Result<Samples<T>> {
        self.select(Access::Read, max, StateMasks::ANY, Whose::Any)
    }

    /// Takes at most `max` samples in these states.
    ///
    /// # Errors
    /// As for [`take`](Self::take).
    pub fn take_states(&self, max: usize, masks: StateMasks) -> Result<Samples<T>> {
        self.select(Access::Take, max, masks, Whose::Any)
    }

    /// Reads at most `max` samples in these states.
    ///
    /// # Errors
    /// As for [`take`](Self::take).
    pub fn read_states(&self, max: usize, masks: StateMasks) -> Result<Samples<T>> {
        self.select(Access::Read, max, masks, Whose::Any)
    }

    /// Takes samples in the states of a condition of this reader.
    ///
    /// # Errors
    /// Also PRECONDITION_NOT_MET for a condition of another reader.
    pub fn take_w_condition(&self, max: usize, condition: &ReadCondition) -> Result<Samples<T>> {
        self.select(Access::Take, max, self.masks_of(condition)?, Whose::Any)
    }

    /// Reads samples in the states of a condition of this reader.
    ///
    /// # Errors
    /// As for [`take_w_condition`](Self::take_w_condition).
    pub fn read_w_condition(&self, max: usize, condition: &ReadCondition) -> Result<Samples<T>> {
        self.select(Access::Read, max, self.masks_of(condition)?, Whose::Any)
    }

    /// Takes the next sample that was not read.
    ///
    /// # Errors
    /// As for [`take`](Self::take).
    pub fn take_next_sample(&self) -> Result<Samples<T>> {
        self.select(Access::Take, 1, StateMasks::NOT_READ, Whose::Any)
    }

    /// Reads the next sample that was not read.
    ///
    /// # Errors
    /// As for [`take`](Self::take).
    pub fn read_next_sample(&self) -> Result<Samples<T>> {
        self.select(Access::Read, 1, StateMasks::NOT_READ, Whose::Any)
    }

    /// Takes samples of one instance.
    ///
    /// # Errors
    /// Also BAD_PARAMETER for a handle that names no instance of this reader.
    pub fn take_instance(
        &self,
        max: usize,
        instance: InstanceHandle,
        masks: StateMasks,
    ) -> Result<Samples<T>> {
        self.select(
            Access::Take,
            max,
            masks,
            Whose::Instance(self.known(instance)?),
        )
    }

    /// Reads samples of one instance.
    ///
    /// # Errors
    /// As for [`take_instance`](Self::take_instance).
    pub fn read_instance(
        &self,
        max: usize,
        instance: InstanceHandle,
        masks: StateMasks,
    ) -> Result<Samples<T>> {
        self.select(
            Access::Read,
            max,
            masks,
            Whose::Instance(self.known(instance)?),
        )
    }

    /// Takes samples of the first instance after `previous` that has any;
    /// begin with [`InstanceHandle::NIL`]. `previous` need not be known any more.
    ///
    /// # Errors
    /// Also BAD_PARAMETER for a handle that names no instance.
    pub fn take_next_instance(
        &self,
        max: usize,
        previous: InstanceHandle,
        masks: StateMasks,
    ) -> Result<Samples<T>> {
        self.select(Access::Take, max, masks, Whose::Next(after(previous)?))
    }

    /// Reads samples of the first instance after `previous` that has any.
    ///
    /// # Errors
    /// As for [`take_next_instance`](Self::take_next_instance).
    pub fn read_next_instance(
        &self,
        max: usize,
        previous: InstanceHandle,
        masks: StateMasks,
    ) -> Result<Samples<T>> {
        self.select(Access::Read, max, masks, Whose::Next(after(previous)?))
    }

    /// As [`take_next_instance`](Self::take_next_instance), with the states of a condition.
    ///
    /// # Errors
    /// Also PRECONDITION_NOT_MET for a condition of another reader.
    pub fn take_next_instance_w_condition(
        &self,
        max: usize,
        previous: InstanceHandle,
        condition: &ReadCondition,
    ) -> Result<Samples<T>> {
        self.take_next_instance(max, previous, self.masks_of(condition)?)
    }

    /// As [`read_next_instance`](Self::read_next_instance), with the states of a condition.
    ///
    /// # Errors
    /// Also PRECONDITION_NOT_MET for a condition of another reader.
    pub fn read_next_instance_w_condition(
        &self,
        max: usize,
        previous: InstanceHandle,
        condition: &ReadCondition,
    ) -> Result<Samples<T>> {
        self.read_next_instance(max, previous, self.masks_of(condition)?)
    }

    fn select(
        &self,
        access: Access,
        max: usize,
        masks: StateMasks,
        whose: Whose,
    ) -> Result<Samples<T>> {
        self.select_valid(access, max, masks, whose, is_valid::<T>)
    }

    fn masks_of(&self, condition: &ReadCondition) -> Result<StateMasks> {
        if !condition.is_of(&self.core) {
            let text = "the condition belongs to another reader, or was deleted";
            return Err(Error::PreconditionNotMet(text.to_owned()));
        }
        Ok(condition.masks())
    }

    pub(super) fn known(&self, instance: InstanceHandle) -> Result<KeyHash> {
        self.core.base.ready()?;
        let key = instance
            .key_hash()
            .filter(|key| self.core.side.port.knows(*key));
        key.ok_or_else(|| {
            Error::BadParameter(format!(
                "{instance:?} names no instance that the reader knows"
            ))
        })
    }
}

impl<T> DataReader<T> {
    /// Selects samples; those that `is_valid` refuses are removed, and counted as lost.
    #[inline]
    pub(crate) fn select_valid(
        &self,
        access: Access,
        max: usize,
        masks: StateMasks,
        whose: Whose,
        is_valid: impl Fn(&Item<Wire>) -> bool,
    ) -> Result<Samples<T>> {
        self.core.base.ready()?;
        if max == 0 {
            return Err(Error::BadParameter(
                "max is 0: no sample could be returned".to_owned(),
            ));
        }
        let query = Query { max, masks, whose };
        let mut has_stepped = false;
        loop {
            // Before the selection: what arrives after it raises the statuses again.
            self.core.clear_data_available();
            let mut items = self.core.side.port.select(access, &query);
            if items.is_empty() {
                if !std::mem::replace(&mut has_stepped, true) && self.core.step_once() {
                    continue;
                }
                return Err(self.core.side.port.nothing());
            }
            // A key without a sample is not looked at in this loop, which all samples go through.
            if !items.iter().all(&is_valid) {
                items.retain(|item| {
                    let is_valid = !item.0.valid_data || is_valid(item);
                    if !is_valid {
                        self.core.side.port.lose(access, &item.0);
                    }
                    is_valid
                });
            }
            if !items.is_empty() {
                return Ok(Samples::new(items, self.core.clone()));
            }
            self.core.side.port.return_loan(items);
        }
    }
}

/// Whether the bytes of a sample, if it has any, are a valid sample of the type.
#[inline]
fn is_valid<T: TopicType>((info, payload): &Item<Wire>) -> bool {
    let is_sample = |bytes: &[u8]| T::validate(bytes, info.encapsulation()).is_ok();
    payload
        .as_ref()
        .is_none_or(|payload| is_sample(payload.bytes()))
}

fn after(previous: InstanceHandle) -> Result<Option<KeyHash>> {
    match previous.key_hash() {
        Some(key) => Ok(Some(key)),
        None if previous.is_nil() => Ok(None),
        None => Err(Error::BadParameter(format!(
            "{previous:?} names no instance"
        ))),
    }
}
