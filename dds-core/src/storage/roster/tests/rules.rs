//! What keepers do beyond what the views say. Each is needed.

/// Of which rosters that a log knows the group's roster has to hold a majority, before the log raises its word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guard {
    None,
    Generation,
    All,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) guard: Guard,
    /// A log raises its word only in a view that knows it as whole.
    pub(super) whole_in_view: bool,
    /// A learner records the roster of the group before it announces that it follows.
    pub(super) learner_records: bool,
    /// A log takes no records of a generation older than that of its last record.
    pub(super) refuses_older: bool,
    /// What was sent in a generation is not acknowledged by the words of a later one.
    pub(super) acknowledges_in_generation: bool,
}

impl Rules {
    pub(super) const ALL: Self = Self {
        guard: Guard::All,
        whole_in_view: true,
        learner_records: true,
        refuses_older: true,
        acknowledges_in_generation: true,
    };
}
