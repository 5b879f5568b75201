//! All there is to say about files of QoS profiles.

use spindle_dds_qos::{
    AnyQos, DeclaredQos, Diagnostic, Liveliness, LoadError, Location, Origins, PolicyId,
    Properties, QosLoader, Severity,
};

use crate::error::{Error, Result};
use crate::lease::check_lease;
use crate::properties::{ParticipantConfig, refusals};

/// Reads files as a participant does, and returns all for which loading them or creating an
/// entity by them is refused, and all that has no effect; by file and line. Errors in one place
/// do not hide what is to be said of others.
///
/// What depends on the type of a topic, on the host, or on `spindle.` properties that are set in
/// code is not known here. The writers and readers of a profile are taken to be of a participant
/// with the same profile.
///
/// ```
/// use spindle_dds::qos::QosLoader;
///
/// let text = "<dds><qos_library name='L'><qos_profile name='P'><domain_participant_qos>
///   <property><value><element>
///     <name>spindle.fialure.limit_ms</name><value>500</value>
///   </element></value></property>
/// </domain_participant_qos></qos_profile></qos_library></dds>";
/// let remarks = spindle_dds::check_qos_profiles(&QosLoader::new().text("qos.xml", text))?;
/// assert!(remarks[0].to_string().starts_with("qos.xml:2:20: error: a participant has no property"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A file that cannot be opened.
pub fn check_qos_profiles(files: &QosLoader) -> Result<Vec<Diagnostic>, LoadError> {
    let provider = files.inspect()?;
    let mut remarks = provider.check();
    for declared in provider.declared() {
        remarks.extend(remarks_on(&declared));
    }
    Ok(Diagnostic::sorted(remarks))
}

fn remarks_on(declared: &DeclaredQos) -> Vec<Diagnostic> {
    let place = Place {
        declared: &declared.location,
    };
    // A participant whose own properties are refused is told of where they stand.
    let config = ParticipantConfig::read(&declared.participant.property)
        .or_else(|_| ParticipantConfig::read(&Properties::default()));
    let Ok(config) = config else {
        return Vec::new();
    };
    let lease = |liveliness: &Liveliness, origins: &Origins| {
        let refused = check_lease(liveliness, config.failure_limit).err();
        refused.map(|error| place.lease(&error, origins))
    };
    match &declared.qos {
        AnyQos::Participant(qos) => {
            place.properties(&qos.property, &qos.origins, ParticipantConfig::read)
        }
        AnyQos::Publisher(_) | AnyQos::Subscriber(_) => Vec::new(),
        AnyQos::Topic(qos) => {
            let read = ParticipantConfig::check_topic;
            let mut remarks = place.properties(&qos.property, &qos.origins, read);
            remarks.extend(lease(&qos.liveliness, &qos.origins));
            remarks
        }
        AnyQos::Writer(qos) => {
            let read = |properties: &Properties| config.ring_of(properties);
            let mut remarks = place.properties(&qos.property, &qos.origins, read);
            remarks.extend(lease(&qos.liveliness, &qos.origins));
            remarks
        }
        AnyQos::Reader(qos) => {
            let read = |properties: &Properties| config.reader_of(properties);
            let mut remarks = place.properties(&qos.property, &qos.origins, read);
            remarks.extend(lease(&qos.liveliness, &qos.origins));
            remarks
        }
    }
}

/// Where a remark is placed whose policy or property no file has set.
struct Place<'a> {
    declared: &'a Location,
}

impl Place<'_> {
    fn properties<T>(
        &self,
        properties: &Properties,
        origins: &Origins,
        read: impl Fn(&Properties) -> Result<T>,
    ) -> Vec<Diagnostic> {
        let refused = refusals(properties, origins, read).into_iter();
        let remarks = refused.map(|(error, location)| Diagnostic {
            location: location.unwrap_or_else(|| self.declared.clone()),
            severity: Severity::Error,
            message: error.reason().to_owned(),
            unsupported: None,
        });
        remarks.collect()
    }

    fn lease(&self, error: &Error, origins: &Origins) -> Diagnostic {
        let location = origins.get(PolicyId::Liveliness);
        Diagnostic {
            location: location.unwrap_or(self.declared).clone(),
            severity: Severity::Warning,
            message: format!(
                "{} is not supported yet: {}",
                PolicyId::Liveliness,
                error.reason()
            ),
            unsupported: Some(PolicyId::Liveliness),
        }
    }
}
