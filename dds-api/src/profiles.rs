//! The QoS profiles of a participant.

use std::path::PathBuf;

pub(crate) use spindle_dds_qos::QosProfile;
use spindle_dds_qos::QosProvider;

use crate::error::{Error, Result};

/// The profiles of its DDS-XML files, and the default among them.
#[derive(Debug, Default)]
pub(crate) struct Profiles {
    provider: Option<QosProvider>,
    default: Option<QosProfile>,
}

impl Profiles {
    /// Loads the files as one. `default` names one of their profiles.
    pub(crate) fn load(files: &[PathBuf], default: Option<String>) -> Result<Self> {
        let provider = match files {
            [] => None,
            files => {
                let loaded = QosProvider::from_files(files);
                Some(loaded.map_err(|error| Error::BadParameter(error.to_string()))?)
            }
        };
        let mut profiles = Self {
            provider,
            default: None,
        };
        if let Some(name) = default {
            profiles.default = Some(profiles.named(&name)?);
        }
        Ok(profiles)
    }

    pub(crate) fn named(&self, name: &str) -> Result<QosProfile> {
        let Some(provider) = &self.provider else {
            return Err(Error::BadParameter(format!(
                "QoS profile {name} is asked for and no file is loaded; call qos_profiles(file)"
            )));
        };
        provider
            .profile(name)
            .map_err(|error| Error::BadParameter(error.to_string()))
    }

    pub(crate) fn default_profile(&self) -> Option<&QosProfile> {
        self.default.as_ref()
    }
}
