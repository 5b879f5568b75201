//! Masks over the three kinds of states of a sample.

use crate::subscription::{InstanceState, SampleState, ViewState};

macro_rules! mask {
    ($(#[$doc:meta])* $mask:ident of $state:ident: $($(#[$bit_doc:meta])* $name:ident = $bit:literal,)+) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $mask(u32);

        impl $mask {
            $( $(#[$bit_doc])* pub const $name: Self = Self($bit); )+
            /// Any of them.
            pub const ANY: Self = Self(0xffff);

            /// The bits of the standard's mask.
            pub const fn bits(self) -> u32 {
                self.0
            }

            /// The mask of these bits.
            pub const fn from_bits(bits: u32) -> Self {
                Self(bits)
            }

            /// Whether a state is in the mask.
            pub const fn allows(self, state: $state) -> bool {
                self.0 & state as u32 != 0
            }
        }

        impl Default for $mask {
            fn default() -> Self {
                Self::ANY
            }
        }

        impl std::ops::BitOr for $mask {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl From<$state> for $mask {
            fn from(state: $state) -> Self {
                Self(state as u32)
            }
        }
    };
}

mask! {
    /// A set of sample states (`SampleStateMask`).
    SampleStateMask of SampleState:
    /// Read before.
    READ = 1,
    /// Not read yet.
    NOT_READ = 2,
}

mask! {
    /// A set of view states (`ViewStateMask`).
    ViewStateMask of ViewState:
    /// Of an instance from which no sample was taken or read since it became alive.
    NEW = 1,
    /// Of an instance from which samples were taken or read.
    NOT_NEW = 2,
}

mask! {
    /// A set of instance states (`InstanceStateMask`).
    InstanceStateMask of InstanceState:
    /// Alive.
    ALIVE = 1,
    /// Disposed of.
    NOT_ALIVE_DISPOSED = 2,
    /// Without a writer.
    NOT_ALIVE_NO_WRITERS = 4,
    /// Disposed of, or without a writer.
    NOT_ALIVE = 6,
}

/// The three masks together; by default any state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct StateMasks {
    /// Sample states.
    pub sample: SampleStateMask,
    /// View states.
    pub view: ViewStateMask,
    /// Instance states.
    pub instance: InstanceStateMask,
}

impl StateMasks {
    /// Samples in any state.
    pub const ANY: Self = Self {
        sample: SampleStateMask::ANY,
        view: ViewStateMask::ANY,
        instance: InstanceStateMask::ANY,
    };

    /// Samples that were not read yet.
    pub const NOT_READ: Self = Self {
        sample: SampleStateMask::NOT_READ,
        ..Self::ANY
    };
}
