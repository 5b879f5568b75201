//! Generation counts of an instance (DDS 1.4 §2.2.2.5.1.5).

/// How often an instance became alive again, by the state that it left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Generations {
    /// From NOT_ALIVE_DISPOSED (`disposed_generation_count`).
    pub(super) disposed: i32,
    /// From NOT_ALIVE_NO_WRITERS (`no_writers_generation_count`).
    pub(super) no_writers: i32,
}

impl Generations {
    pub(super) fn total(self) -> i32 {
        self.disposed.saturating_add(self.no_writers)
    }

    /// The number of generations after `before`.
    #[inline]
    pub(super) fn since(self, before: Self) -> i32 {
        if self == before {
            return 0;
        }
        self.total() - before.total()
    }
}
