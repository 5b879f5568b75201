//! Which property an error is about, and where a file has set it.
//!
//! Properties are read in one place, which ends at the first error. The property at fault is the
//! one without which that error does not come up. So whatever is read or refused there is told
//! with its place, when an entity is created as well as when a file is checked.

use spindle_dds_qos::{Location, Origins, Properties};

use crate::error::{Error, Result};

/// Reads properties; an error says where a file has set the property at fault.
///
/// # Errors
/// Those of `read`.
pub(crate) fn placed<T>(
    properties: &Properties,
    origins: &Origins,
    read: impl Fn(&Properties) -> Result<T>,
) -> Result<T> {
    let error = match read(properties) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let at_fault = at_fault(properties, &error, &read);
    let location = at_fault.and_then(|name| location(origins, &name));
    Err(match (error, location) {
        (Error::BadParameter(text), Some(location)) => {
            Error::BadParameter(format!("{text} (set at {location})"))
        }
        (error, _) => error,
    })
}

/// All errors of reading these properties, each with the place of the property at fault, if a
/// file has set it.
pub(crate) fn refusals<T>(
    properties: &Properties,
    origins: &Origins,
    read: impl Fn(&Properties) -> Result<T>,
) -> Vec<(Error, Option<Location>)> {
    let mut left = properties.clone();
    let mut found = Vec::new();
    while let Err(error) = read(&left) {
        let Some(name) = at_fault(&left, &error, &read) else {
            found.push((error, None));
            break;
        };
        found.push((error, location(origins, &name)));
        left.remove(&name);
    }
    found
}

fn location(origins: &Origins, property: &str) -> Option<Location> {
    let policy = spindle_dds_qos::PolicyId::Property;
    origins.of_value(policy, property).cloned()
}

/// The name of the property without which reading does not end with `error`. Where there are
/// several, as of two that do not go together, it is the one that the error names.
fn at_fault<T>(
    properties: &Properties,
    error: &Error,
    read: impl Fn(&Properties) -> Result<T>,
) -> Option<String> {
    let names = properties.iter().map(|property| &property.name);
    let at_fault = names.filter(|name| {
        let mut without = properties.clone();
        without.remove(name);
        read(&without).err().as_ref() != Some(error)
    });
    let text = error.reason();
    let named = |name: &String| text.contains(name.as_str());
    let best = at_fault.max_by_key(|name| named(name).then_some(name.len()));
    best.cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::properties::ParticipantConfig;

    #[test]
    fn all_errors_are_found() {
        let properties: Properties = [
            ("spindle.fialure.limit_ms", "500"),
            ("spindle.wait", "busy"),
            ("spindle.subgroups", "7"),
            ("spindle.topic.A.subgroup", "7"),
            ("spindle.topic.B.subgroup", "6"),
            ("spindle.join.timeout_ms", "5s"),
            ("spindle.threads.poll.policy", "fifo"),
            ("spindle.rdma", "off"),
            ("other", "x"),
        ]
        .into_iter()
        .collect();
        let found = refusals(&properties, &Origins::default(), ParticipantConfig::read);
        let mut said: Vec<String> = found.iter().map(|(error, _)| error.to_string()).collect();
        said.sort();
        assert_eq!(
            said,
            [
                "bad parameter: a participant has no property \"spindle.fialure.limit_ms\"; did you \
                 mean 'spindle.failure.limit_ms'?; docs/configuration.md lists them",
                "bad parameter: property spindle.join.timeout_ms is \"5s\"; it has to be a number of \
                 milliseconds, without a unit, from 0 to 4294967295",
                "bad parameter: property spindle.rdma has no effect without spindle.listen: say \
                 where this participant is reached from other hosts",
                "bad parameter: property spindle.threads.poll.policy is a real-time policy, which \
                 needs spindle.threads.poll.priority: a number from 1 to 99",
                "bad parameter: property spindle.topic.A.subgroup is \"7\"; it has to be a number \
                 from 1 to 6",
                "bad parameter: property spindle.wait is \"busy\"; it has to be one of balanced, \
                 spin, block",
            ]
        );
    }

    #[test]
    fn a_property_of_another_entity_is_told_whose_it_is() {
        let config = ParticipantConfig::read(&Properties::default()).unwrap();
        let of_reader: Properties = [("spindle.ring.bytes", "4096")].into_iter().collect();
        let error = config.reader_of(&of_reader).unwrap_err().to_string();
        assert!(
            error.contains("; it is one of participants and writers;"),
            "{error}"
        );
    }
}
