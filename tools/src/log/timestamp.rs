//! Source timestamps as text.

use core::fmt;

const NANOSECONDS: i64 = 1_000_000_000;
const SECONDS_OF_A_DAY: i64 = 86_400;
/// Days of 400 years.
const DAYS_OF_AN_ERA: i64 = 146_097;

/// Nanoseconds since 1970, shown by RFC 3339 in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timestamp(pub(super) i64);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, fraction) = (
            self.0.div_euclid(NANOSECONDS),
            self.0.rem_euclid(NANOSECONDS),
        );
        let (year, month, day) = date(seconds.div_euclid(SECONDS_OF_A_DAY));
        let of_day = seconds.rem_euclid(SECONDS_OF_A_DAY);
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:09}Z"
        )
    }
}

/// The date of a day since 1970-01-01. Years begin with March here, so that a leap day is the last day of
/// its year.
fn date(day: i64) -> (i64, i64, i64) {
    // Days since 0000-03-01.
    let day = day + 719_468;
    let (era, of_era) = (
        day.div_euclid(DAYS_OF_AN_ERA),
        day.rem_euclid(DAYS_OF_AN_ERA),
    );
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year;
    match month {
        0..=9 => (year, month + 3, day),
        _ => (year + 1, month - 9, day),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(nanoseconds: i64, expected: &str) {
        assert_eq!(Timestamp(nanoseconds).to_string(), expected);
    }

    #[test]
    fn timestamps_are_those_of_rfc_3339() {
        check(0, "1970-01-01T00:00:00.000000000Z");
        check(-1, "1969-12-31T23:59:59.999999999Z");
        check(951_782_400_000_000_000, "2000-02-29T00:00:00.000000000Z");
        check(951_868_799_000_000_001, "2000-02-29T23:59:59.000000001Z");
        check(951_868_800_000_000_000, "2000-03-01T00:00:00.000000000Z");
        check(4_107_542_400_000_000_000, "2100-03-01T00:00:00.000000000Z");
        check(1_735_689_599_000_000_000, "2024-12-31T23:59:59.000000000Z");
        check(i64::MAX, "2262-04-11T23:47:16.854775807Z");
        check(i64::MIN, "1677-09-21T00:12:43.145224192Z");
    }
}
