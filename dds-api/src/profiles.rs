//! The QoS profiles of a participant.

use std::path::Path;

pub(crate) use spindle_dds_qos::QosProfile;
use spindle_dds_qos::{LoadError, QosProvider};

use crate::error::{Error, Result};

/// The bytes of DDS-XML files and texts, each with its name in diagnostics.
#[derive(Debug, Default)]
pub(crate) struct ProfileSources {
    named: Vec<(String, Vec<u8>)>,
    /// How many of them are texts without a file.
    text_count: usize,
}

impl ProfileSources {
    pub(crate) fn add_file(&mut self, path: &Path) -> Result<()> {
        let bytes = std::fs::read(path).map_err(|source| {
            let path = path.to_owned();
            Error::BadParameter(LoadError::Unreadable { path, source }.to_string())
        })?;
        self.named.push((path.display().to_string(), bytes));
        Ok(())
    }

    /// Adds a text that is in no file: by its number in diagnostics, if it is not the first.
    pub(crate) fn add_text(&mut self, text: &str) {
        self.text_count += 1;
        let name = match self.text_count {
            1 => "qos_profiles_str".to_owned(),
            number => format!("qos_profiles_str {number}"),
        };
        self.named.push((name, text.as_bytes().to_owned()));
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.named.iter().map(|(name, _)| name.as_str()).collect()
    }
}

/// The profiles of DDS-XML files and texts, and the default among them.
#[derive(Debug, Default)]
pub(crate) struct Profiles {
    provider: Option<QosProvider>,
    default: Option<QosProfile>,
}

impl Profiles {
    /// Loads all sources as one. `default` names one of their profiles.
    pub(crate) fn load(sources: &ProfileSources, default: Option<String>) -> Result<Self> {
        let provider = match &*sources.named {
            [] => None,
            named => {
                let named = named.iter().map(|(name, bytes)| (name, bytes));
                let loaded = QosProvider::from_sources(named);
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
                "QoS profile {name} is asked for and no file is loaded; call qos_profiles(file) or \
                 qos_profiles_str(text)"
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
