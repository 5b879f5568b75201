//! The tables of aircraft that the displays have at the end of a run with a fault.

use super::kept::Kept;
use super::report::{AircraftRow, DisplayReport};
use super::verdict::{Evidence, Presence, catches_up};

/// Names each display whose table of aircraft says something else than that of the first one that
/// stayed. The whole table is due at a display that stayed, and at any other for which something is
/// kept; of one that joined without that, each row that it has.
pub(super) fn check(evidence: &Evidence) -> Vec<String> {
    let Some(first) = evidence.shown.first() else {
        return Vec::new();
    };
    let stored = |part| catches_up(evidence, part);
    let others = evidence.shown.iter().skip(1);
    let mut tables: Vec<(&str, Option<Kept>, &DisplayReport)> = others
        .map(|it| ("a display that stayed", Some(Kept::All), it))
        .collect();
    let late = evidence.late.iter();
    tables.extend(late.map(|it| ("the display that joined", stored(Presence::Late), it)));
    let returned = evidence.returned.iter();
    let returned = returned.filter_map(|it| stored(Presence::Returned).map(|kept| (kept, it)));
    tables.extend(returned.map(|(kept, it)| ("the stopped display", Some(kept), it)));
    let mut complaints = Vec::new();
    for (name, kept, report) in tables {
        let expected = first
            .aircraft
            .iter()
            .filter(|row| kept.is_some() || report.aircraft.iter().any(|own| own.icao == row.icao));
        let expected: Vec<&AircraftRow> = expected.collect();
        let counts = kept == Some(Kept::All);
        let differs = expected.len() != report.aircraft.len()
            || expected.iter().zip(&report.aircraft).any(|(row, own)| {
                let messages = if counts { own.messages } else { row.messages };
                **row
                    != AircraftRow {
                        messages,
                        ..own.clone()
                    }
            });
        if differs {
            complaints.push(format!(
                "the table of {name} has {} rows, and is not that of {} rows which the others have",
                report.aircraft.len(),
                expected.len()
            ));
        }
        let lost: u64 = report.lost.iter().sum();
        if kept.is_some() && lost > 0 {
            complaints.push(format!("{name}: {lost} are SAMPLE_LOST"));
        }
    }
    complaints
}
