//! Faults that a run can be asked for.

use std::fmt;
use std::str::FromStr;

use clap::Args;

use crate::options::Role;

/// What is to go wrong. A run with a fault goes round the recording until it has
/// happened, the group has gone on to another view, and as many samples more have come
/// as came before it.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Faults")]
pub(crate) struct FaultOptions {
    /// Kill a feed or a display (SIGKILL), as `feed`, `display` or `feed:N`, `display:N`:
    /// all displays that are left must have the same samples in the same order, all of
    /// the feeds that are left, and of a killed one the same beginning.
    #[arg(long, value_name = "VICTIM", group = "fault")]
    pub(crate) kill: Option<Victim>,
    /// Have one more display join, as `display`: from its first sample on it must have
    /// what the others have.
    #[arg(long, value_name = "WHO", group = "fault")]
    pub(crate) join: Option<Newcomer>,
    /// Stop a display (SIGSTOP), as `display` or `display:N`, until the others have
    /// gone on without it, then let it go on: it must say that it is out.
    #[arg(long, value_name = "VICTIM", group = "fault")]
    pub(crate) stop: Option<Victim>,
    /// When: after so many samples, of the feed that is killed, or at the display
    /// (at the first one if one joins).
    #[arg(long, value_name = "SAMPLES", default_value_t = 20_000)]
    pub(crate) at: u64,
    /// Whoever gives no sign of life for so many milliseconds is taken for failed
    /// (`spindle.failure.limit_ms`).
    #[arg(long, value_name = "MS")]
    pub(crate) limit_ms: Option<u32>,
}

impl FaultOptions {
    /// The fault, if one is asked for.
    pub(crate) fn fault(&self) -> Option<Fault> {
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
pub(crate) enum Fault {
    Kill(Role),
    Join,
    Stop(Role),
}

impl Fault {
    /// Whether enough are left in a run of so many to tell what came of it.
    pub(crate) fn check(self, feeds: u16, displays: u16) -> Result<(), String> {
        let (what, index, of) = match self {
            Self::Kill(Role::Feed(index)) => ("feeds", index, feeds),
            Self::Kill(Role::Display(index)) | Self::Stop(Role::Display(index)) => {
                ("displays", index, displays)
            }
            Self::Stop(Role::Feed(_)) => return Err("--stop is for displays".to_owned()),
            Self::Join => return Ok(()),
        };
        if index >= of {
            return Err(format!("there are {of} {what}, and no number {index}"));
        }
        if of < 2 {
            return Err(format!("of {of} {what} none is left then: give 2 or more"));
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

/// `feed:N`, `display:N`; the first one where no number is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Victim(Role);

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
pub(crate) struct Newcomer;

impl FromStr for Newcomer {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "display" => Ok(Self),
            _ => Err("who can join is a display"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn somebody_has_to_be_left() {
        let victim = |text: &str| text.parse::<Victim>().map(|Victim(role)| role);
        assert_eq!(victim("display"), Ok(Role::Display(0)));
        assert_eq!(victim("feed:1"), Ok(Role::Feed(1)));
        assert!(victim("launcher").is_err());
        let check = |fault: Fault, wanted: bool| {
            assert_eq!(fault.check(2, 3).is_ok(), wanted, "{fault:?}");
        };
        check(Fault::Join, true);
        check(Fault::Kill(Role::Feed(1)), true);
        check(Fault::Kill(Role::Feed(2)), false);
        check(Fault::Stop(Role::Display(2)), true);
        check(Fault::Stop(Role::Display(3)), false);
        check(Fault::Stop(Role::Feed(0)), false);
        assert!(Fault::Kill(Role::Feed(0)).check(1, 3).is_err());
    }
}
