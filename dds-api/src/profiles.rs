//! The QoS profiles of a participant.

use std::path::PathBuf;

pub(crate) use spindle_dds_qos::QosProfile;
use spindle_dds_qos::QosProvider;

use crate::error::{Error, Result};

/// The profiles of its files, and which of them is the default.
#[derive(Debug, Default)]
pub(crate) struct Profiles {
    provider: Option<QosProvider>,
    default: Option<String>,
}

impl Profiles {
    /// Loads the files as one; the default profile has to be among what they hold.
    pub(crate) fn load(files: &[PathBuf], default: Option<String>) -> Result<Self> {
        let provider = match files {
            [] => None,
            files => {
                let loaded = QosProvider::from_files(files);
                Some(loaded.map_err(|error| Error::BadParameter(error.to_string()))?)
            }
        };
        let profiles = Self { provider, default };
        profiles.default_profile()?;
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

    pub(crate) fn default_profile(&self) -> Result<Option<QosProfile>> {
        self.default
            .as_deref()
            .map(|name| self.named(name))
            .transpose()
    }
}
