//! Blocking until one of several conditions holds.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use spindle_dds_qos::Duration;
use spindle_dds_transport::fork::OwnerProcess;

use super::Condition;
use super::observers::{DataWaiter, Signal};
use crate::entity::inherited;
use crate::error::{Error, Result};

/// Blocks a thread until a condition holds (DDS 1.4 §2.2.2.1.6).
///
/// ```
/// use spindle_dds::{DomainParticipant, Duration, GuardCondition, StateMasks, WaitSet};
/// # use spindle_dds_test_types::flight::State;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path().join("domains").display().to_string();
/// # let participant = DomainParticipant::builder(0);
/// # let participant = participant.property("spindle.directory", &directory).create()?;
/// # let topic = participant.topic::<State>("State").create()?;
/// # let reader = participant.subscriber().create()?.reader(&topic).create()?;
///
/// let stop = GuardCondition::new();
/// let data = reader.read_condition(StateMasks::NOT_READ)?;
/// let wait_set = WaitSet::new();
/// wait_set.attach(&stop);
/// wait_set.attach(&data);
/// # stop.set_trigger_value(true);
/// loop {
///     let active = wait_set.wait(Duration::INFINITE)?;
///     if active.contains(&(&data).into()) {
///         let samples = reader.take_w_condition(100, &data)?;
///         println!("{} samples", samples.len());
///     }
///     if active.contains(&(&stop).into()) {
///         break; // another thread has called stop.set_trigger_value(true)
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct WaitSet {
    conditions: Mutex<Vec<Condition>>,
    signal: Arc<Signal>,
    owner: OwnerProcess,
}

impl Default for WaitSet {
    fn default() -> Self {
        Self {
            conditions: Mutex::default(),
            signal: Arc::default(),
            owner: OwnerProcess::this(),
        }
    }
}

impl WaitSet {
    /// A set without conditions.
    pub fn new() -> Self {
        Self::default()
    }

    fn conditions(&self) -> MutexGuard<'_, Vec<Condition>> {
        self.conditions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Attaches a condition; attaching it again has no effect. Wakes a waiting thread if the
    /// condition holds.
    pub fn attach(&self, condition: impl Into<Condition>) {
        let condition = condition.into();
        if self.owner.is_inherited() {
            return;
        }
        let mut conditions = self.conditions();
        if conditions.contains(&condition) {
            return;
        }
        conditions.push(condition.clone());
        drop(conditions);
        condition.attach(&self.signal);
    }

    /// Detaches a condition.
    ///
    /// # Errors
    /// PRECONDITION_NOT_MET when it is not attached; ALREADY_DELETED in a child of `fork`.
    pub fn detach(&self, condition: impl Into<Condition>) -> Result<()> {
        self.not_inherited()?;
        let condition = condition.into();
        let mut conditions = self.conditions();
        let Some(at) = conditions.iter().position(|known| *known == condition) else {
            let text = "the condition is not attached to this wait-set";
            return Err(Error::PreconditionNotMet(text.to_owned()));
        };
        conditions.remove(at);
        drop(conditions);
        condition.detach(&self.signal);
        Ok(())
    }

    /// The attached conditions that are not deleted, in the order in which they were attached.
    pub fn attached(&self) -> Vec<Condition> {
        let mut attached = self.conditions().clone();
        attached.retain(|condition| !condition.is_deleted());
        attached
    }

    /// Blocks until at least one condition holds, and returns all that do. A listener is told of a
    /// status first: a StatusCondition counts once it has been called.
    ///
    /// # Errors
    /// TIMEOUT; PRECONDITION_NOT_MET when another thread waits on the set; ALREADY_DELETED in a
    /// child of `fork` that has inherited the set, or the entity of a condition.
    pub fn wait(&self, timeout: impl Into<Duration>) -> Result<Vec<Condition>> {
        self.not_inherited()?;
        let timeout = timeout.into();
        let deadline = timeout
            .as_std()
            .and_then(|span| Instant::now().checked_add(span));
        let conditions = self.conditions();
        if conditions.iter().any(Condition::is_inherited) {
            return Err(inherited("the entity of a condition"));
        }
        let data_waiter = conditions.iter().find_map(Condition::data_waiter);
        drop(conditions);
        if !self.signal.begin(data_waiter.clone()) {
            let text = "another thread waits on this wait-set; give each thread its own";
            return Err(Error::PreconditionNotMet(text.to_owned()));
        }
        let result = self.wait_begun(data_waiter.as_deref(), deadline);
        self.signal.end();
        result.ok_or_else(|| Error::Timeout(format!("no condition held within {timeout}")))
    }

    fn not_inherited(&self) -> Result<()> {
        match self.owner.is_inherited() {
            true => Err(inherited("the wait-set")),
            false => Ok(()),
        }
    }

    /// Whether a thread waits.
    pub(crate) fn is_waiting(&self) -> bool {
        self.signal.is_waiting()
    }

    fn wait_begun(
        &self,
        data_waiter: Option<&dyn DataWaiter>,
        deadline: Option<Instant>,
    ) -> Option<Vec<Condition>> {
        loop {
            self.signal.reset();
            let holding: Vec<Condition> = self
                .conditions()
                .iter()
                .filter(|condition| condition.is_signaled())
                .cloned()
                .collect();
            if !holding.is_empty() {
                return Some(holding);
            }
            let raised = match data_waiter {
                Some(data_waiter) => data_waiter.wait(&self.signal, deadline),
                None => self.signal.wait(deadline),
            };
            if !raised {
                return None;
            }
        }
    }
}

impl Drop for WaitSet {
    fn drop(&mut self) {
        if self.owner.is_inherited() {
            return;
        }
        for condition in self.conditions().drain(..) {
            condition.detach(&self.signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::GuardCondition;

    #[test]
    fn a_guard_wakes_its_waiter() {
        let (set, guard) = (WaitSet::new(), GuardCondition::new());
        set.attach(&guard);
        set.attach(&guard);
        assert_eq!(set.attached().len(), 1);
        assert!(
            set.wait(Duration::ZERO)
                .is_err_and(|error| error.is_timeout())
        );
        let setter = guard.clone();
        let thread = std::thread::spawn(move || setter.set_trigger_value(true));
        assert_eq!(set.wait(Duration::INFINITE), Ok(vec![(&guard).into()]));
        thread.join().unwrap();
        set.detach(&guard).unwrap();
        assert!(matches!(
            set.detach(&guard),
            Err(Error::PreconditionNotMet(_))
        ));
    }

    #[test]
    fn a_condition_attached_later_wakes_too() {
        let set = Arc::new(WaitSet::new());
        let guard = GuardCondition::new();
        guard.set_trigger_value(true);
        let waiter = {
            let set = set.clone();
            std::thread::spawn(move || set.wait(Duration::INFINITE))
        };
        set.attach(&guard);
        assert_eq!(waiter.join().unwrap(), Ok(vec![guard.into()]));
    }
}
