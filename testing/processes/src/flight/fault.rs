//! Faults that a run can be asked for.

use std::fmt;
use std::str::FromStr;

use clap::Args;

use super::options::Role;

/// What is to go wrong. The feeds of a run with a fault repeat the recording until the fault was
/// injected, the group has another view, and as many samples have come after it as before.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Faults")]
pub(super) struct FaultOptions {
    /// Kill a feed or a display (SIGKILL): `feed`, `display`, `feed:N` or `display:N`. All
    /// displays that are left must have the same samples in the same order: all samples of the
    /// feeds that are left, and the same first samples of a killed one.
    #[arg(long, value_name = "VICTIM", group = "fault")]
    pub(super) kill: Option<Victim>,
    /// Let one more `display` join: from its first sample on it must have what the others have.
    #[arg(long, value_name = "NEWCOMER", group = "fault")]
    pub(super) join: Option<Newcomer>,
    /// Stop a feed or a display (SIGSTOP) until the others have gone on without it, then resume
    /// it: it must come back by itself. All samples of a stopped feed must come once, in order;
    /// a stopped display must have the common order, but for what it counts as lost.
    #[arg(long, value_name = "VICTIM", group = "fault")]
    pub(super) stop: Option<Victim>,
    /// How long a process is stopped, in milliseconds; at least until the others have gone on.
    #[arg(long, value_name = "MS", default_value_t = 0, requires = "stop")]
    pub(super) stopped_ms: u64,
    /// After how many samples: of the feed that is killed or stopped, or at the display (the
    /// first one if one joins).
    #[arg(long, value_name = "SAMPLES", default_value_t = 20_000)]
    pub(super) at: u64,
    /// Heartbeat timeout in milliseconds (`spindle.failure.limit_ms`).
    #[arg(long, value_name = "MS")]
    pub(super) limit_ms: Option<u32>,
}

impl FaultOptions {
    /// The fault, if one is asked for.
    pub(super) fn fault(&self) -> Option<Fault> {
        match (self.kill, self.join, self.stop) {
            (Some(Victim(role)), _, _) => Some(Fault::Kill(role)),
            (_, Some(Newcomer), _) => Some(Fault::Join),
            (_, _, Some(Victim(role))) => Some(Fault::Stop(role)),
            (None, None, None) => None,
        }
    }
}

/// What goes wrong in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Kill(Role),
    Join,
    Stop(Role),
}

impl Fault {
    /// Fails if too few of so many feeds and displays would be left to judge the run.
    pub(super) fn check(self, feeds: u16, displays: u16) -> Result<(), String> {
        let (kind, index, count) = match self {
            Self::Kill(Role::Feed(index)) | Self::Stop(Role::Feed(index)) => {
                ("feeds", index, feeds)
            }
            Self::Kill(Role::Display(index)) | Self::Stop(Role::Display(index)) => {
                ("displays", index, displays)
            }
            Self::Join => return Ok(()),
        };
        if index >= count {
            return Err(format!("there are {count} {kind}, and no number {index}"));
        }
        if count < 2 {
            return Err(format!(
                "of {count} {kind} none is left then: give 2 or more"
            ));
        }
        Ok(())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill(role) => write!(f, "kill {role}"),
            Self::Join => f.write_str("join display"),
            Self::Stop(role) => write!(f, "stop {role}"),
        }
    }
}

/// `feed:N` or `display:N`; the first one if no number is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Victim(Role);

impl FromStr for Victim {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "feed" => Ok(Self(Role::Feed(0))),
            "display" => Ok(Self(Role::Display(0))),
            _ => text
                .parse()
                .map(Self)
                .map_err(|_| "a victim is feed, display, feed:N or display:N"),
        }
    }
}

/// Only displays join late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Newcomer;

impl FromStr for Newcomer {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "display" => Ok(Self),
            _ => Err("only a display can join"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_each_kind_has_to_be_left() {
        let victim = |text: &str| text.parse::<Victim>().map(|Victim(role)| role);
        assert_eq!(victim("display"), Ok(Role::Display(0)));
        assert_eq!(victim("feed:1"), Ok(Role::Feed(1)));
        assert!(victim("launcher").is_err());
        let check = |fault: Fault, expected: bool| {
            assert_eq!(fault.check(2, 3).is_ok(), expected, "{fault:?}");
        };
        check(Fault::Join, true);
        check(Fault::Kill(Role::Feed(1)), true);
        check(Fault::Kill(Role::Feed(2)), false);
        check(Fault::Stop(Role::Display(2)), true);
        check(Fault::Stop(Role::Display(3)), false);
        check(Fault::Stop(Role::Feed(1)), true);
        assert!(Fault::Stop(Role::Feed(0)).check(1, 3).is_err());
        assert!(Fault::Kill(Role::Feed(0)).check(1, 3).is_err());
    }
}
