//! The properties `spindle.threads.*`: how the system schedules the threads of a participant.

use spindle_dds_qos::Properties;
use spindle_dds_transport::thread_settings::{ThreadPolicy, ThreadSettings};

use super::{choice, integer};
use crate::error::{Error, Result};

/// Before the name of a thread, in the name of a property.
pub(super) const PREFIX: &str = "spindle.threads.";

const POLICY: &str = ".policy";
const PRIORITY: &str = ".priority";
const CPUS: &str = ".cpus";

/// How the threads of a participant are scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadsConfig {
    pub(crate) poll: ThreadSettings,
    pub(crate) control: ThreadSettings,
    pub(crate) dispatch: ThreadSettings,
    pub(crate) wake: ThreadSettings,
    pub(crate) history: ThreadSettings,
    pub(crate) log: ThreadSettings,
    /// The threads of the station.
    pub(crate) io: ThreadSettings,
}

const NAMES: [&str; 7] = [
    "spindle.threads.poll",
    "spindle.threads.control",
    "spindle.threads.dispatch",
    "spindle.threads.wake",
    "spindle.threads.history",
    "spindle.threads.log",
    "spindle.threads.io",
];

/// Whether a property of this name and of this ending exists.
pub(super) fn is_property(name: &str, ending: &str) -> bool {
    let thread = name.strip_suffix(ending);
    thread.is_some_and(|thread| NAMES.contains(&thread))
}

/// The names of all these properties.
pub(super) fn names() -> impl Iterator<Item = String> {
    let endings = [POLICY, PRIORITY, CPUS];
    NAMES
        .into_iter()
        .flat_map(move |thread| endings.map(|ending| format!("{thread}{ending}")))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PolicyKind {
    Other,
    Fifo,
    RoundRobin,
}

const POLICIES: [(&str, PolicyKind); 3] = [
    ("other", PolicyKind::Other),
    ("fifo", PolicyKind::Fifo),
    ("rr", PolicyKind::RoundRobin),
];

impl ThreadsConfig {
    pub(super) fn read(properties: &Properties) -> Result<Self> {
        let [poll, control, dispatch, wake, history, log, io] =
            NAMES.map(|name| settings(properties, name));
        Ok(Self {
            poll: poll?,
            control: control?,
            dispatch: dispatch?,
            wake: wake?,
            history: history?,
            log: log?,
            io: io?,
        })
    }
}

fn settings(properties: &Properties, name: &'static str) -> Result<ThreadSettings> {
    let [policy_name, priority_name, cpus_name] =
        [POLICY, PRIORITY, CPUS].map(|ending| format!("{name}{ending}"));
    let kind = choice(properties, &policy_name, &POLICIES)?;
    let (least, most) = match kind {
        None | Some(PolicyKind::Other) => (-20, 19),
        Some(PolicyKind::Fifo | PolicyKind::RoundRobin) => (1, 99),
    };
    let priority = integer(properties, &priority_name, least, most)?;
    let needed = || {
        priority.ok_or_else(|| {
            Error::BadParameter(format!(
                "property {policy_name} is a real-time policy, which needs {priority_name}: a \
                 number from 1 to 99"
            ))
        })
    };
    let policy = match kind {
        None => priority.map(|nice| ThreadPolicy::Other(Some(nice))),
        Some(PolicyKind::Other) => Some(ThreadPolicy::Other(priority)),
        Some(PolicyKind::Fifo) => Some(ThreadPolicy::Fifo(needed()?)),
        Some(PolicyKind::RoundRobin) => Some(ThreadPolicy::RoundRobin(needed()?)),
    };
    let cpus = properties.get(&cpus_name).map(|text| {
        text.parse().map_err(|()| {
            Error::BadParameter(format!(
                "property {cpus_name} is {text:?}; it has to be numbers of processors and ranges, \
                 up to 1023, with commas between, as 0,2-3"
            ))
        })
    });
    Ok(ThreadSettings {
        name,
        policy,
        cpus: cpus.transpose()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<ThreadsConfig> {
        ThreadsConfig::read(&pairs.iter().copied().collect())
    }

    #[test]
    fn threads_have_policies_priorities_and_processors() {
        let config = read(&[
            ("spindle.threads.poll.policy", "fifo"),
            ("spindle.threads.poll.priority", "50"),
            ("spindle.threads.poll.cpus", "1"),
            ("spindle.threads.io.policy", "rr"),
            ("spindle.threads.io.priority", "1"),
            ("spindle.threads.wake.priority", "-5"),
            ("spindle.threads.control.policy", "other"),
            ("spindle.threads.dispatch.cpus", "0,2-3"),
        ])
        .unwrap();
        assert_eq!(config.poll.policy, Some(ThreadPolicy::Fifo(50)));
        assert_eq!(config.poll.cpus, Some("1".parse().unwrap()));
        assert_eq!(config.io.policy, Some(ThreadPolicy::RoundRobin(1)));
        assert_eq!(config.wake.policy, Some(ThreadPolicy::Other(Some(-5))));
        assert_eq!(config.control.policy, Some(ThreadPolicy::Other(None)));
        assert_eq!(config.dispatch.policy, None);
        assert_eq!(config.dispatch.cpus, Some("0,2-3".parse().unwrap()));
        assert_eq!(config.dispatch.name, "spindle.threads.dispatch");
    }

    #[test]
    fn wrong_values_are_refused_with_property_and_value() {
        let fifo = ("spindle.threads.poll.policy", "fifo");
        for (pairs, wanted) in [
            (&[fifo][..], ["poll.policy", "poll.priority"]),
            (
                &[("spindle.threads.io.policy", "batch")],
                ["io.policy", "batch"],
            ),
            (
                &[fifo, ("spindle.threads.poll.priority", "100")],
                ["poll.priority", "\"100\""],
            ),
            (
                &[("spindle.threads.wake.priority", "20")],
                ["wake.priority", "-20 to 19"],
            ),
            (
                &[("spindle.threads.io.cpus", "two")],
                ["io.cpus", "\"two\""],
            ),
        ] {
            let error = read(pairs).unwrap_err();
            assert!(matches!(error, Error::BadParameter(_)), "{error}");
            let text = error.to_string();
            assert!(wanted.iter().all(|it| text.contains(it)), "{text}");
        }
    }
}
