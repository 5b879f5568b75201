//! The logs of a PERSISTENT profile: one of each topic at each display.

use std::path::{Path, PathBuf};
use std::time::Duration;

use spindle_dds::log::{LogPlace, LogReader};

use super::options::Options;

/// How often the logs are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Where a display has its logs.
pub(super) fn directory(logs: &Path, display: u16) -> PathBuf {
    logs.join(format!("display-{display}"))
}

/// Blocks until the displays' logs of these topics know all of each other: from then on most of them go
/// on without the others.
pub(super) fn wait_for_all(options: &Options, topics: &[&str]) {
    let Some(logs) = &options.logs else {
        return;
    };
    let domain = options.domain.unwrap_or(0);
    for topic in topics {
        for display in 0..options.displays {
            let place = LogPlace::new(&directory(logs, display), domain, topic);
            while roster_len(&place) < usize::from(options.displays) {
                std::thread::sleep(LOOK_EVERY);
            }
        }
    }
}

/// The logs of the roster that a log knows to be confirmed.
fn roster_len(place: &LogPlace) -> usize {
    let log = LogReader::open(&place.path).ok();
    let confirmed = log.and_then(|log| log.state().confirmed.clone());
    confirmed.map_or(0, |roster| roster.logs.len())
}
