//! The standard's `Duration_t`.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A span of time in the units of DDS: whole seconds and nanoseconds, or infinite
/// (DDS 1.4 §2.3.2, `Duration_t`).
///
/// It is never negative, its nanoseconds are below 10^9 unless it is infinite,
/// and it orders by length with [`Duration::INFINITE`] as the greatest.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(try_from = "Fields", into = "Fields")]
pub struct Duration {
    sec: i32,
    nanosec: u32,
}

/// The two numbers are not a [`Duration`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "{sec} s and {nanosec} ns make no duration: seconds start at 0, nanoseconds end at 999999999"
)]
pub struct InvalidDuration {
    /// The seconds that were given.
    pub sec: i32,
    /// The nanoseconds that were given.
    pub nanosec: u32,
}

impl Duration {
    /// No time at all (`DURATION_ZERO`).
    pub const ZERO: Self = Self { sec: 0, nanosec: 0 };

    /// For ever (`DURATION_INFINITE_SEC`, `DURATION_INFINITE_NSEC`).
    pub const INFINITE: Self = Self {
        sec: i32::MAX,
        nanosec: INFINITE_NANOSEC,
    };

    /// Makes a duration of the two members of `Duration_t`; the pair
    /// (2^31 - 1, 2^31 - 1) is the infinite one.
    pub const fn new(sec: i32, nanosec: u32) -> Result<Self, InvalidDuration> {
        let infinite = sec == i32::MAX && nanosec == INFINITE_NANOSEC;
        if sec < 0 || (nanosec >= NANOSEC_PER_SEC && !infinite) {
            return Err(InvalidDuration { sec, nanosec });
        }
        Ok(Self { sec, nanosec })
    }

    /// Makes a duration of whole seconds; more than `i32::MAX` is infinite.
    pub const fn from_secs(secs: u64) -> Self {
        Self::from_std(std::time::Duration::from_secs(secs))
    }

    /// Makes a duration of milliseconds; more than `i32::MAX` seconds is infinite.
    pub const fn from_millis(millis: u64) -> Self {
        Self::from_std(std::time::Duration::from_millis(millis))
    }

    /// Makes a duration of microseconds; more than `i32::MAX` seconds is infinite.
    pub const fn from_micros(micros: u64) -> Self {
        Self::from_std(std::time::Duration::from_micros(micros))
    }

    /// Makes a duration of nanoseconds; more than `i32::MAX` seconds is infinite.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self::from_std(std::time::Duration::from_nanos(nanos))
    }

    /// Converts a duration of the standard library; more than `i32::MAX`
    /// seconds is infinite.
    pub const fn from_std(duration: std::time::Duration) -> Self {
        if duration.as_secs() > i32::MAX as u64 {
            return Self::INFINITE;
        }
        Self {
            sec: duration.as_secs() as i32,
            nanosec: duration.subsec_nanos(),
        }
    }

    /// The whole seconds, `i32::MAX` when infinite.
    pub const fn sec(self) -> i32 {
        self.sec
    }

    /// The nanoseconds beyond the whole seconds, `0x7fff_ffff` when infinite.
    pub const fn nanosec(self) -> u32 {
        self.nanosec
    }

    /// Whether it never ends.
    pub const fn is_infinite(self) -> bool {
        self.nanosec == INFINITE_NANOSEC
    }

    /// Whether it is no time at all.
    pub const fn is_zero(self) -> bool {
        self.sec == 0 && self.nanosec == 0
    }

    /// The same span for the standard library, or `None` when infinite.
    pub const fn as_std(self) -> Option<std::time::Duration> {
        if self.is_infinite() {
            return None;
        }
        Some(std::time::Duration::new(self.sec as u64, self.nanosec))
    }
}

impl From<std::time::Duration> for Duration {
    fn from(duration: std::time::Duration) -> Self {
        Self::from_std(duration)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_std() {
            Some(duration) => write!(f, "{duration:?}"),
            None => f.write_str("infinite"),
        }
    }
}

/// The serialized form: the two members of `Duration_t` by their names.
#[derive(Serialize, Deserialize)]
struct Fields {
    sec: i32,
    nanosec: u32,
}

impl TryFrom<Fields> for Duration {
    type Error = InvalidDuration;

    fn try_from(fields: Fields) -> Result<Self, InvalidDuration> {
        Self::new(fields.sec, fields.nanosec)
    }
}

impl From<Duration> for Fields {
    fn from(duration: Duration) -> Self {
        Self {
            sec: duration.sec,
            nanosec: duration.nanosec,
        }
    }
}

const NANOSEC_PER_SEC: u32 = 1_000_000_000;
const INFINITE_NANOSEC: u32 = 0x7fff_ffff;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_by_length() {
        let ascending = [
            Duration::ZERO,
            Duration::from_nanos(1),
            Duration::from_millis(1),
            Duration::from_secs(1),
            Duration::from_millis(1001),
            Duration::from_secs(i32::MAX as u64),
            Duration::INFINITE,
        ];
        assert!(ascending.is_sorted());
    }

    #[test]
    fn converts_to_and_from_the_standard_library() {
        let std = std::time::Duration::new(3, 7);
        assert_eq!(Duration::from(std).as_std(), Some(std));
        assert_eq!(Duration::from(std::time::Duration::MAX), Duration::INFINITE);
        assert_eq!(Duration::INFINITE.as_std(), None);
    }

    #[test]
    fn refuses_what_is_no_duration() {
        assert!(Duration::new(-1, 0).is_err());
        assert!(Duration::new(0, 1_000_000_000).is_err());
        assert_eq!(Duration::new(i32::MAX, 0x7fff_ffff), Ok(Duration::INFINITE));
        assert!(serde_json::from_str::<Duration>(r#"{"sec":-1,"nanosec":0}"#).is_err());
    }

    #[test]
    fn travels_as_json() {
        for duration in [
            Duration::ZERO,
            Duration::from_millis(100),
            Duration::INFINITE,
        ] {
            let json = serde_json::to_string(&duration).unwrap();
            assert_eq!(serde_json::from_str::<Duration>(&json).unwrap(), duration);
        }
    }
}
