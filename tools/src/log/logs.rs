//! The logs that a command is about.

use std::path::Path;

use spindle_dds::log::{LogLock, LogPlace, log_places};

use super::failure::Failure;
use super::options::Selection;

/// The logs of a directory that are selected; at least one, where a topic is named.
pub(super) fn selected(directory: &Path, selection: &Selection) -> Result<Vec<LogPlace>, Failure> {
    let mut places = log_places(directory).map_err(Failure::directory(directory))?;
    let (topic, domain) = (&selection.topic, selection.domain);
    places.retain(|place| {
        topic.as_ref().is_none_or(|topic| *topic == place.topic)
            && domain.is_none_or(|domain| domain == place.domain)
    });
    match topic {
        Some(topic) if places.is_empty() => Err(none(directory, topic, domain)),
        _ => Ok(places),
    }
}

/// The log of a topic in a directory.
pub(super) fn one(directory: &Path, topic: &str, domain: Option<u32>) -> Result<LogPlace, Failure> {
    let selection = Selection {
        topic: Some(topic.to_owned()),
        domain,
    };
    let mut places = selected(directory, &selection)?;
    match (places.pop(), places.last()) {
        (Some(place), None) => Ok(place),
        (None, _) => Err(none(directory, topic, domain)),
        (Some(last), Some(other)) => Err(Failure::Selection(format!(
            "{}: there are logs of topic {topic} of several domains: say --domain {} or --domain {}",
            directory.display(),
            other.domain,
            last.domain,
        ))),
    }
}

fn none(directory: &Path, topic: &str, domain: Option<u32>) -> Failure {
    let of = domain.map_or_else(String::new, |domain| format!(" of domain {domain}"));
    let directory = directory.display();
    Failure::Selection(format!("{directory}: there is no log of topic {topic}{of}"))
}

/// The logs of the domain of a log, for this process to write.
pub(super) fn lock(place: &LogPlace) -> Result<LogLock, Failure> {
    let directory = place.domain_directory();
    let lock = LogLock::acquire(directory).map_err(Failure::directory(directory))?;
    lock.ok_or_else(|| Failure::InUse(directory.to_owned()))
}
