//! RESOURCE_LIMITS of a writer (DDS 1.4 §2.2.3.19): which samples may be in flight.
//!
//! ```text
//!   admit --> building --committed--> in flight --released by all--> forgotten
//!                      --withdrawn------------------------------->   forgotten
//! ```
//!
//! One that is kept waits between the two, in the writer's history.
//!
//! Of a writer that keeps history for readers that come later, what it keeps counts in place of what is
//! in flight:
//!
//! ```text
//!   building --committed--> kept --replaced, or its instance is disposed of and unregistered--> forgotten
//! ```
//!
//! A sample is counted from before it is built. Releases are noticed by the next sample that
//! asks, so the engine does nothing for them. The lock belongs to the writer and is held for a
//! few instructions; writers without limits have none.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use spindle_dds_core::MessageKind;
use spindle_dds_idl_runtime::KeyHash;
use spindle_dds_qos::{DataWriterQos, DurabilityKind, HistoryKind, Length, ResourceLimits};

use crate::driver::SendPosition;

/// Which limit has been reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    Samples,
    SamplesOfInstance,
    Instances,
}

/// What a writer keeps for readers that come later, of each instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeps {
    Nothing,
    /// The last so many samples.
    Last(u32),
    All,
}

impl Keeps {
    /// By DURABILITY and HISTORY.
    pub(super) fn of(qos: &DataWriterQos) -> Self {
        match qos.history.kind {
            // Of a topic that is kept beyond its writers, DURABILITY_SERVICE bounds what is kept.
            _ if qos.durability.kind != DurabilityKind::TransientLocal => Self::Nothing,
            HistoryKind::KeepLast => Self::Last(qos.history.depth),
            HistoryKind::KeepAll => Self::All,
        }
    }

    /// Whether another sample replaces one, of an instance with so many.
    fn replaces(self, samples: u64) -> bool {
        matches!(self, Self::Last(depth) if samples >= u64::from(depth))
    }
}

/// The limits of a writer, and what counts against them now.
#[derive(Debug)]
pub(super) struct Limits {
    limits: ResourceLimits,
    keeps: Keeps,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Samples being built, in flight, or kept.
    samples: u64,
    /// In the order of messages; empty unless samples are limited.
    in_flight: VecDeque<InFlight>,
    /// Instances that are alive or have samples; empty unless instances are limited.
    instances: HashMap<KeyHash, Instance>,
    /// Instances that are alive.
    alive: u64,
}

#[derive(Debug)]
struct InFlight {
    position: SendPosition,
    key: KeyHash,
}

#[derive(Debug, Default)]
struct Instance {
    /// Samples being built.
    building: u64,
    /// Samples that wait in the writer's history, and count already.
    waiting: u64,
    in_flight: u64,
    /// Samples that are kept for readers that come later.
    kept: u64,
    /// Registered or written, and not unregistered.
    registered: bool,
    /// The last message that was kept disposes of it.
    disposed: bool,
}

impl Instance {
    /// Whether it counts against max_instances.
    fn is_alive(&self) -> bool {
        self.registered || self.building > 0 || self.kept > 0
    }
}

/// Memory for so many instances at most is reserved in advance.
const INSTANCES_READY_MAX: usize = 16_384;

impl Limits {
    /// `None` when nothing is limited. `in_flight_max` samples fit in the ring.
    pub(super) fn of(limits: ResourceLimits, in_flight_max: u32, keeps: Keeps) -> Option<Self> {
        if limits == ResourceLimits::default() {
            return None;
        }
        let this = Self {
            limits,
            keeps,
            state: Mutex::default(),
        };
        let mut state = this.state();
        if this.counts_in_flight() {
            let samples = limits.max_samples.limit().unwrap_or(in_flight_max);
            state.in_flight.reserve(samples.min(in_flight_max) as usize);
        }
        if this.limits_instances() {
            let alive = limits.max_instances.limit().unwrap_or(0) as usize;
            let instances = alive.min(INSTANCES_READY_MAX) + state.in_flight.capacity();
            // A map that is at most half full cleans up in place.
            state.instances.reserve(2 * instances);
        }
        drop(state);
        Some(this)
    }

    fn limits_samples(&self) -> bool {
        let limits = [
            self.limits.max_samples,
            self.limits.max_samples_per_instance,
        ];
        limits.iter().any(|limit| *limit != Length::Unlimited)
    }

    /// What is in flight counts, unless it is kept beyond that.
    fn counts_in_flight(&self) -> bool {
        !self.keeps_any() && self.limits_samples()
    }

    /// Whether samples are kept for readers that come later.
    pub(super) fn keeps_any(&self) -> bool {
        self.keeps != Keeps::Nothing
    }

    fn limits_instances(&self) -> bool {
        // What replaces a sample, and what is removed, depends on the instance.
        if self.keeps_any() {
            return true;
        }
        let limits = [
            self.limits.max_instances,
            self.limits.max_samples_per_instance,
        ];
        limits.iter().any(|limit| *limit != Length::Unlimited)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a sample that is about to be built, of this instance if that is known. Messages
    /// below `released` are released.
    pub(super) fn admit(&self, key: Option<KeyHash>, released: SendPosition) -> Result<(), Full> {
        let mut state = self.state();
        state.release(released);
        if let Some(key) = key {
            self.check_instance(&state, key)?;
        }
        if !self.has_room(&state, key) {
            return Err(Full::Samples);
        }
        if let Some(key) = key {
            self.enter_instance(&mut state, key)?;
        }
        state.samples += 1;
        Ok(())
    }

    /// Whether max_samples allows another sample, of this instance if that is known; if it is not, and the
    /// sample may replace another one, that is asked when it is.
    fn has_room(&self, state: &State, key: Option<KeyHash>) -> bool {
        if let Keeps::Last(_) = self.keeps {
            let Some(key) = key else { return true };
            let instance = state.instances.get(&key);
            let samples = instance.map_or(0, |it| it.building + it.waiting + it.kept);
            if self.keeps.replaces(samples) {
                return true;
            }
        }
        self.limits.max_samples.allows(state.samples + 1)
    }

    /// The instance of an admitted sample becomes known.
    pub(super) fn name(&self, key: KeyHash, released: SendPosition) -> Result<(), Full> {
        let mut state = self.state();
        state.release(released);
        self.check_instance(&state, key)?;
        // The sample itself is counted already.
        state.samples -= 1;
        let has_room = self.has_room(&state, Some(key));
        state.samples += 1;
        if !has_room {
            return Err(Full::Samples);
        }
        self.enter_instance(&mut state, key)
    }

    fn check_instance(&self, state: &State, key: KeyHash) -> Result<(), Full> {
        let known = state.instances.get(&key).is_some_and(Instance::is_alive);
        let allowed = known || self.limits.max_instances.allows(state.alive + 1);
        allowed.then_some(()).ok_or(Full::Instances)
    }

    fn enter_instance(&self, state: &mut State, key: KeyHash) -> Result<(), Full> {
        if !self.limits_instances() {
            return Ok(());
        }
        let instance = state.instances.entry(key).or_default();
        if !self.allows_another(instance) {
            return Err(Full::SamplesOfInstance);
        }
        state.alive += u64::from(!instance.is_alive());
        instance.building += 1;
        Ok(())
    }

    /// As [`admit`](Self::admit), for a sample that has waited: its instance is registered, or was
    /// since.
    pub(super) fn admit_waiting(&self, key: KeyHash, released: SendPosition) -> Result<(), Full> {
        let mut state = self.state();
        state.release(released);
        if !self.limits.max_samples.allows(state.samples + 1) {
            return Err(Full::Samples);
        }
        if self.limits_instances() {
            let instance = state.instances.entry(key).or_default();
            if !self.allows_another(instance) {
                return Err(Full::SamplesOfInstance);
            }
            instance.waiting += 1;
        }
        state.samples += 1;
        Ok(())
    }

    /// An admitted sample is built, and waits.
    pub(super) fn kept(&self, key: KeyHash) {
        self.state().change(key, |instance| {
            instance.building -= 1;
            instance.waiting += 1;
        });
    }

    /// A sample that waits is not sent, or not yet.
    pub(super) fn withdraw_waiting(&self, key: KeyHash) {
        let mut state = self.state();
        state.samples -= 1;
        state.change(key, |instance| instance.waiting -= 1);
    }

    fn allows_another(&self, instance: &Instance) -> bool {
        let kept = match self.keeps {
            Keeps::All => instance.kept,
            // It replaces them.
            Keeps::Last(_) | Keeps::Nothing => 0,
        };
        let samples = instance.building + instance.waiting + instance.in_flight + kept;
        self.limits.max_samples_per_instance.allows(samples + 1)
    }

    /// Whether an instance counts.
    pub(super) fn knows(&self, key: KeyHash) -> bool {
        self.state().instances.contains_key(&key)
    }

    /// The sample is not sent.
    pub(super) fn withdraw(&self, key: Option<KeyHash>) {
        let mut state = self.state();
        state.samples -= 1;
        if let Some(key) = key {
            state.change(key, |instance| instance.building -= 1);
        }
    }

    /// The sample was sent as this message. Its instance is registered by that.
    pub(super) fn committed(&self, kind: MessageKind, key: KeyHash, position: SendPosition) {
        let registered = self.keeps_any() || self.limits.max_instances != Length::Unlimited;
        self.sent(kind, key, position, |instance| {
            instance.building -= 1;
            instance.registered |= registered;
        });
    }

    /// The same for a sample that has waited: it was registered when it was written.
    pub(super) fn committed_waiting(
        &self,
        kind: MessageKind,
        key: KeyHash,
        position: SendPosition,
    ) {
        self.sent(kind, key, position, |instance| instance.waiting -= 1);
    }

    fn sent(
        &self,
        kind: MessageKind,
        key: KeyHash,
        position: SendPosition,
        note: impl FnOnce(&mut Instance),
    ) {
        let in_flight = self.counts_in_flight();
        let mut state = self.state();
        if self.keeps_any() {
            return self.keep(&mut state, (kind, key), note);
        }
        state.change(key, |instance| {
            note(instance);
            instance.in_flight += u64::from(in_flight);
        });
        if in_flight {
            state.insert(InFlight { position, key });
        } else {
            state.samples -= 1;
        }
    }

    /// A message is sent, and kept for readers that come later.
    fn keep(
        &self,
        state: &mut State,
        (kind, key): (MessageKind, KeyHash),
        note: impl FnOnce(&mut Instance),
    ) {
        let mut is_new = false;
        state.change(key, |instance| {
            note(instance);
            if kind == MessageKind::Data {
                is_new = !self.keeps.replaces(instance.kept);
                instance.kept += u64::from(is_new);
                instance.disposed = false;
            } else {
                instance.disposed = true;
            }
        });
        state.samples -= u64::from(!is_new);
    }

    /// The writer registers an instance. Whether it was not registered before.
    pub(super) fn register(&self, key: KeyHash) -> Result<bool, Full> {
        if self.limits.max_instances == Length::Unlimited && !self.keeps_any() {
            return Ok(false);
        }
        let mut state = self.state();
        self.check_instance(&state, key)?;
        let instance = state.instances.entry(key).or_default();
        let alive = instance.is_alive();
        let is_new = !std::mem::replace(&mut instance.registered, true);
        state.alive += u64::from(!alive);
        Ok(is_new)
    }

    /// The writer unregisters an instance, and disposes of it if the kind of message says so. What is kept
    /// of one that is disposed of is removed.
    pub(super) fn unregister(&self, kind: MessageKind, key: KeyHash) {
        let mut removed = 0;
        let mut state = self.state();
        state.change(key, |instance| {
            instance.registered = false;
            if kind == MessageKind::DisposeUnregister || instance.disposed {
                removed = std::mem::take(&mut instance.kept);
            }
        });
        state.samples -= removed;
    }

    /// The text of an error.
    pub(super) fn describe(&self, full: Full) -> String {
        let ResourceLimits {
            max_samples,
            max_instances,
            max_samples_per_instance,
        } = self.limits;
        let keeps = self.keeps_any();
        match full {
            Full::Samples if keeps => format!(
                "the writer's history keeps max_samples {max_samples} of its RESOURCE_LIMITS for \
                 readers that come later"
            ),
            Full::SamplesOfInstance if keeps => format!(
                "the writer's history keeps max_samples_per_instance {max_samples_per_instance} of \
                 its RESOURCE_LIMITS for readers that come later"
            ),
            Full::Samples => format!(
                "max_samples {max_samples} of the writer's RESOURCE_LIMITS are in flight or on loan"
            ),
            Full::SamplesOfInstance => format!(
                "max_samples_per_instance {max_samples_per_instance} of the writer's \
                 RESOURCE_LIMITS are in flight or on loan"
            ),
            Full::Instances => format!(
                "the writer has max_instances {max_instances} of its RESOURCE_LIMITS; unregister \
                 one, or raise the limit"
            ),
        }
    }
}

impl State {
    /// Commits of several threads may arrive here in another order than their positions.
    fn insert(&mut self, sample: InFlight) {
        let mut at = self.in_flight.len();
        self.in_flight.push_back(sample);
        while at > 0 && self.in_flight[at - 1].position > self.in_flight[at].position {
            self.in_flight.swap(at - 1, at);
            at -= 1;
        }
    }

    fn release(&mut self, released: SendPosition) {
        while let Some(oldest) = self.in_flight.front()
            && oldest.position < released
        {
            let key = oldest.key;
            self.in_flight.pop_front();
            self.samples -= 1;
            self.change(key, |instance| instance.in_flight -= 1);
        }
    }

    /// Changes an instance, if instances are counted, and forgets it if nothing is left of it.
    fn change(&mut self, key: KeyHash, change: impl FnOnce(&mut Instance)) {
        let Some(instance) = self.instances.get_mut(&key) else {
            return;
        };
        let was_alive = instance.is_alive();
        change(instance);
        let is_alive = instance.is_alive();
        if !is_alive && instance.in_flight + instance.waiting + instance.kept == 0 {
            self.instances.remove(&key);
        }
        self.alive = self.alive + u64::from(is_alive) - u64::from(was_alive);
    }
}

#[cfg(test)]
mod tests;
