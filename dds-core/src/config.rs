//! How an engine works: every Spindle optimisation with its switch.

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
    /// Push at the end of a step, else as soon as each word changes (§III-C).
    pub late_pushes: bool,
    /// Tell the layer above once a batch, else after each message (§III-D).
    pub batched_upcalls: bool,
    /// Look into lanes at rest only when something has changed there, else at every step.
    pub summary_polling: bool,
    /// A message takes, and pushes, as much payload as it has; else a slot of fixed size,
    /// as in the paper: the bytes of its ring, divided by its messages, which no message
    /// can exceed (§II-B).
    pub variable_lengths: bool,
    /// Of bounded deliveries. No switch: a harness draws others.
    pub bounds: Bounds,
    /// A bug, for a harness to find.
    #[cfg(feature = "planted")]
    pub planted: Option<PlantedBug>,
}

/// How many messages of a lane are delivered before something else is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// A step delivers so many at most, or [`per_sender`](Self::per_sender) of each sender if
    /// that is more: the more there are, the fewer are of any one, whose room goes back.
    /// What nobody here reads ([`Run::skip`](crate::Run::skip)) does not count.
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
    late_pushes,
    batched_upcalls,
    summary_polling,
    variable_lengths,
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

/// Bugs that a harness can plant in an engine, if it is built with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "planted"), expect(unreachable_pub))]
pub enum PlantedBug {
    /// The guard is pushed before the headers and payload that it vouches for.
    GuardFirst,
    /// A receiver takes everything up to the guard as nulls before it looks
    /// for the header that lies behind the first null.
    NullsBeforeHeaders,
    /// What is delivered and not held is not told to its sender.
    MissingRelease,
    /// The sender frees the message behind the last released one too.
    ReleaseTooFar,
    /// A message is delivered when it is received here, not when all have it.
    DeliverUnstable,
    /// Of one who sends it is believed that it has received what others send.
    ImpliesTooMuch,
    /// Of one whose last is a null it is not asked whether others have received its messages.
    SilentNotAwaited,
    /// What has been received is said at every step, though nothing is new.
    AcksForEver,
    /// Nulls fill up one round less than they should.
    NullsTooFew,
    /// Nulls are sent in answer to nulls of the same round, for ever.
    NullsForEver,
    /// A guard claims more messages than anybody can have sent.
    WildGuard,
    /// A member takes other lengths into its digest than the others.
    WrongDigest,
    /// A lane begins when this member is ready, whatever the others are.
    BeginsAlone,
    /// A message is committed in a lane that is wedged.
    CommitAfterWedge,
    /// What failed members send is received, and acknowledged, after the counts
    /// have been reported.
    AckAfterFreeze,
    /// A lane ends at the first message that is missing, at some members.
    StopsAtHole,
    /// Where a lane ends, the layer above is not told that the batch does.
    EndsUntold,
    /// Whatever is committed is taken for received by all.
    HastyReceipt,
    /// What was committed in a lane that is wedged is taken for received by all.
    ReceiptByWedge,
    /// Nobody is told that what was committed in an earlier lane has been received by all.
    ForgetsReceipt,
    /// What comes in a lane at rest is not noticed.
    RestsForEver,
    /// What threads of this participant leave in a lane at rest is not noticed.
    NotStirred,
    /// Who goes to sleep looks at no more lanes at rest before than at any other time.
    SleepsOnAGlance,
}

impl EngineConfig {
    pub(crate) const fn plants(&self, bug: PlantedBug) -> bool {
        #[cfg(feature = "planted")]
        if let Some(planted) = self.planted {
            return planted as u8 == bug as u8;
        }
        let _ = bug;
        false
    }

    /// Everything on.
    pub const SPINDLE: Self = Self {
        send_batching: true,
        receive_batching: true,
        delivery_batching: true,
        bounded_deliveries: true,
        null_sends: true,
        late_pushes: true,
        batched_upcalls: true,
        summary_polling: true,
        variable_lengths: true,
        bounds: Bounds::SPINDLE,
        #[cfg(feature = "planted")]
        planted: None,
    };

    /// Everything off.
    pub const BASELINE: Self = Self {
        send_batching: false,
        receive_batching: false,
        delivery_batching: false,
        bounded_deliveries: false,
        null_sends: false,
        late_pushes: false,
        batched_upcalls: false,
        summary_polling: false,
        variable_lengths: false,
        bounds: Bounds::SPINDLE,
        #[cfg(feature = "planted")]
        planted: None,
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

    /// Whoever adds a field and forgets its switch leaves it on here.
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
