//! The QoS profiles of a participant.

mod check;

pub use check::check_qos_profiles;
pub(crate) use spindle_dds_qos::QosProfile;
use spindle_dds_qos::{DeclaredParticipant, QosLoader, QosProvider};

use crate::choice::ProfileQos;
use crate::error::{Error, Result};

/// The profiles of its DDS-XML files, and the one that its entities have.
#[derive(Debug)]
pub(crate) struct Profiles {
    provider: QosProvider,
    chosen: Option<QosProfile>,
    default: Option<QosProfile>,
}

impl Profiles {
    /// Loads files and texts as one. `chosen` names one of their profiles; without it, the one
    /// that they mark with `is_default_qos` is the participant's.
    pub(crate) fn load(files: &QosLoader, chosen: Option<String>) -> Result<Self> {
        let loaded = files.load();
        let provider = loaded.map_err(|error| Error::BadParameter(error.to_string()))?;
        let chosen = chosen.map(|name| match provider.profile(&name) {
            Ok(profile) => Ok(profile),
            Err(error) => Err(Error::BadParameter(error.to_string())),
        });
        Ok(Self {
            chosen: chosen.transpose()?,
            default: provider.default_profile(),
            provider,
        })
    }

    /// Logs what of the files has no effect.
    pub(crate) fn log_warnings(&self) {
        for warning in self.provider.warnings() {
            tracing::warn!("{}: {}", warning.location, warning.message);
        }
    }

    /// The QoS of a profile, or QoS of that kind of entity, by name.
    pub(crate) fn named<Q: ProfileQos>(&self, name: &str, topic: &str) -> Result<Q> {
        let found = Q::named(&self.provider, name, topic);
        found.map_err(|error| Error::BadParameter(error.to_string()))
    }

    /// The participant that the files describe under this name.
    pub(crate) fn participant(&self, name: &str) -> Result<DeclaredParticipant> {
        let found = self.provider.participant(name);
        found.map_err(|error| Error::BadParameter(error.to_string()))
    }

    /// The profile that was chosen by name.
    pub(crate) fn chosen(&self) -> Option<&QosProfile> {
        self.chosen.as_ref()
    }

    /// The profile of entities about whose QoS nothing is said.
    pub(crate) fn default_profile(&self) -> Option<&QosProfile> {
        self.chosen.as_ref().or(self.default.as_ref())
    }
}
