//! How an engine works: every Spindle optimisation with its switch.

use crate::engine::active_set::LOOKS_TO_SLEEP;

/// Switches of the engine. All on is Spindle; all off is the baseline that
/// the paper measures against (Spindle §III).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineConfig {
    /// Publish all committed messages at once, else one a step and ring (§III-A).
    pub send_batching: bool,
    /// Take all visible messages at once, else one a sender and step (§III-A).
    pub receive_batching: bool,
    /// Deliver all stable messages at once, else one a step and subgroup (§III-A).
    pub delivery_batching: bool,
    /// Deliver as much as is worth a push at a time, and let the other predicates have
    /// their turn, else all that is stable: while it is delivered nothing is sent, nor is
    /// room given back. Of no effect without batching. How much that is, [`Bounds`] say.
    pub bounded_deliveries: bool,
    /// Fill up with nulls when another sender is ahead (§III-B).
    pub null_sends: bool,
    /// Tell the layer above once a batch, else after each message (§III-D).
    pub batched_upcalls: bool,
    /// Look into epochs at rest only when something has changed there, else at every step.
    pub summary_polling: bool,
    /// Of bounded deliveries. No switch: a harness draws others.
    pub bounds: Bounds,
    /// Looks in vain after which a resting subgroup is looked at less often. No switch: a harness,
    /// whose runs are short, sets fewer.
    pub looks_to_sleep: u32,
}

/// How many messages of an epoch are delivered before something else is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// A step delivers so many at most, or [`per_sender`](Self::per_sender) of each sender if
    /// that is more: the more there are, the fewer are of any one, whose room goes back.
    /// Messages that are not read here ([`MessageRun::skip`](crate::MessageRun::skip)) do not count.
    pub step: u64,
    /// Of each sender.
    pub per_sender: u64,
    /// The layer above is told of so many at a time at least, unless nothing more is stable, or
    /// that is more than a quarter of what senders have room for: whom it wakes for a few would
    /// sleep again before the next step has delivered more.
    pub batch: u64,
}

impl Bounds {
    /// A batch is what a thread reads in about the time that waking it takes.
    pub const SPINDLE: Self = Self {
        step: 32,
        per_sender: 4,
        batch: 128,
    };
}

/// A switch by its name, which is that of its field.
#[derive(Debug, Clone, Copy)]
pub struct EngineSwitch {
    /// Its name.
    pub name: &'static str,
    at: fn(&mut EngineConfig) -> &mut bool,
}

macro_rules! switches {
    ($($name:ident),+ $(,)?) => {
        [$(EngineSwitch { name: stringify!($name), at: |config| &mut config.$name }),+]
    };
}

/// All switches of [`EngineConfig`]: what tunes an engine by name knows no others.
pub const SWITCHES: &[EngineSwitch] = &switches![
    send_batching,
    receive_batching,
    delivery_batching,
    bounded_deliveries,
    null_sends,
    batched_upcalls,
    summary_polling,
];

impl EngineSwitch {
    /// Whether it is on.
    pub fn is_on(&self, config: &EngineConfig) -> bool {
        let mut copy = *config;
        *(self.at)(&mut copy)
    }

    /// Turns it on or off.
    pub fn set(&self, config: &mut EngineConfig, on: bool) {
        *(self.at)(config) = on;
    }
}

impl EngineConfig {
    /// Everything on.
    pub const SPINDLE: Self = Self {
        send_batching: true,
        receive_batching: true,
        delivery_batching: true,
        bounded_deliveries: true,
        null_sends: true,
        batched_upcalls: true,
        summary_polling: true,
        bounds: Bounds::SPINDLE,
        looks_to_sleep: LOOKS_TO_SLEEP,
    };

    /// Everything off.
    pub const BASELINE: Self = Self {
        send_batching: false,
        receive_batching: false,
        delivery_batching: false,
        bounded_deliveries: false,
        null_sends: false,
        batched_upcalls: false,
        summary_polling: false,
        bounds: Bounds::SPINDLE,
        looks_to_sleep: LOOKS_TO_SLEEP,
    };
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self::SPINDLE
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A field that is added without its switch stays on here.
    #[test]
    fn all_switches_off_are_the_baseline() {
        let mut config = EngineConfig::SPINDLE;
        for switch in SWITCHES {
            let before = config;
            switch.set(&mut config, false);
            assert_ne!(config, before, "{}", switch.name);
        }
        assert_eq!(config, EngineConfig::BASELINE);
        SWITCHES.iter().for_each(|it| it.set(&mut config, true));
        assert_eq!(config, EngineConfig::SPINDLE);
    }
}
