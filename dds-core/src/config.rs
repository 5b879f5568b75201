//! The configuration of an engine: a switch for each optimisation of Spindle.

/// Switches of the engine. With all on it is Spindle, with all off the baseline that
/// the paper measures against (Spindle §III).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineConfig {
    /// Publish all committed messages at once; off: one per step and ring (§III-A).
    pub send_batching: bool,
    /// Receive all visible messages at once; off: one per sender and step (§III-A).
    pub receive_batching: bool,
    /// Deliver all stable messages at once; off: one per step and subgroup (§III-A).
    pub delivery_batching: bool,
    /// Deliver at most [`Bounds`] per step, so that the other predicates are evaluated in
    /// between; off: all that is stable, during which nothing is sent and no room is given
    /// back. No effect without `delivery_batching`.
    pub bounded_deliveries: bool,
    /// Send nulls when another sender is ahead (§III-B).
    pub null_sends: bool,
    /// Call [`Sink::batch_end`](crate::Sink::batch_end) once per batch; off: after each message
    /// (§III-D).
    pub batched_upcalls: bool,
    /// Evaluate idle subgroups only when a word on which they depend has changed; off: at every
    /// step.
    pub summary_polling: bool,
    /// Bounds of `bounded_deliveries`. No switch; a harness draws others.
    pub bounds: Bounds,
    /// Polls in vain after which an idle subgroup is polled less often. No switch; a harness with
    /// short runs sets fewer.
    pub polls_until_cold: u32,
    /// How far a ring is used before it is restarted when it is empty. No switch; a harness with
    /// short runs sets less.
    pub ring_stretch: RingStretch,
}

/// By default, a polling thread takes some tenths of a millisecond for these polls.
const POLLS_UNTIL_COLD: u32 = 1024;

/// How many messages of a subgroup are delivered before other predicates are evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Most messages per step, or [`per_sender`](Self::per_sender) of each sender if that is
    /// more: with many senders, each gets little room back per message delivered.
    /// Messages that are not read here ([`MessageRun::skip`](crate::MessageRun::skip)) do not count.
    pub step: u64,
    /// Most messages per step and sender.
    pub per_sender: u64,
    /// Least messages per call of [`Sink::batch_end`](crate::Sink::batch_end), unless nothing
    /// more is stable, or a quarter of the senders' room is less: a reader that is woken for a
    /// few would sleep again before the next step has delivered more.
    pub batch: u64,
}

impl Bounds {
    /// The product's bounds. Reading a batch takes about as long as waking a thread.
    pub const SPINDLE: Self = Self {
        step: 32,
        per_sender: 4,
        batch: 128,
    };
}

/// A part of a ring. An empty ring of which at least this was used goes on at its start: the writer
/// uses the same memory again, and not all of the ring's, one page after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingStretch {
    /// Messages.
    pub messages: u32,
    /// Bytes of payload.
    pub bytes: u64,
}

impl RingStretch {
    /// The product's: a page of headers, and so much payload that a restart costs little beside it.
    pub const SPINDLE: Self = Self {
        messages: 64,
        bytes: 64 << 10,
    };
}

/// A switch of [`EngineConfig`], by name.
#[derive(Debug, Clone, Copy)]
pub struct EngineSwitch {
    /// The name of its field.
    pub name: &'static str,
    at: fn(&mut EngineConfig) -> &mut bool,
}

macro_rules! switches {
    ($($name:ident),+ $(,)?) => {
        [$(EngineSwitch { name: stringify!($name), at: |config| &mut config.$name }),+]
    };
}

/// All switches of [`EngineConfig`]: tools that set switches by name know these only.
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
        polls_until_cold: POLLS_UNTIL_COLD,
        ring_stretch: RingStretch::SPINDLE,
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
        polls_until_cold: POLLS_UNTIL_COLD,
        ring_stretch: RingStretch::SPINDLE,
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

    /// Fails for a new field that has no entry in `SWITCHES`: it stays on.
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
