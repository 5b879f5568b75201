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
    /// Fill up with nulls when another sender is ahead (§III-B).
    pub null_sends: bool,
    /// Push at the end of a step, else as soon as each word changes (§III-C).
    pub late_pushes: bool,
    /// Tell the layer above once a batch, else after each message (§III-D).
    pub batched_upcalls: bool,
}

impl EngineConfig {
    /// Everything on.
    pub const SPINDLE: Self = Self {
        send_batching: true,
        receive_batching: true,
        delivery_batching: true,
        null_sends: true,
        late_pushes: true,
        batched_upcalls: true,
    };

    /// Everything off.
    pub const BASELINE: Self = Self {
        send_batching: false,
        receive_batching: false,
        delivery_batching: false,
        null_sends: false,
        late_pushes: false,
        batched_upcalls: false,
    };
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self::SPINDLE
    }
}
