//! Mistakes of a driver around the engine, for the harness to find.

use spindle_dds_transport::WakeInterest;

/// A mistake of the drivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blunder {
    /// Goes to sleep without looking once more: a doorbell is lost.
    NoSecondLook,
    /// Sleeps for data alone though acknowledgements are waited for.
    WantsTooLittle,
}

impl Blunder {
    /// What a driver says that it wants to be woken for, instead of `want`.
    pub(super) fn announced(blunder: Option<Self>, want: WakeInterest) -> WakeInterest {
        match blunder {
            Some(Self::WantsTooLittle) => WakeInterest::Data,
            _ => want,
        }
    }

    /// Whether what was announced is all that is wanted now.
    pub(super) fn covers(
        blunder: Option<Self>,
        announced: WakeInterest,
        wanted: WakeInterest,
    ) -> bool {
        announced >= wanted || blunder == Some(Self::WantsTooLittle)
    }
}
