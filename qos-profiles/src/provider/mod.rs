//! Files of QoS profiles: loading them and finding a profile by name.

mod check;
mod links;
mod names;
mod profile;
mod walk;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

use crate::diagnostic::{Diagnostic, Report, Severity, did_you_mean};
use crate::xml::library::{self, Group, GroupKind};
use crate::xml::tree;

pub use profile::QosProfile;

use links::Links;

/// The QoS profiles of one or several DDS-XML files (DDS-XML 1.0 §7.2).
///
/// Everything is checked when it is loaded, names included, so that looking a
/// profile up and taking QoS from it cannot fail for any reason but its name.
///
/// ```
/// use spindle_dds_qos::{QosProvider, ReliabilityKind};
///
/// let provider = QosProvider::from_str(
///     r#"<dds xmlns="http://www.omg.org/spec/DDS-XML">
///          <qos_library name="Cockpit">
///            <qos_profile name="Display">
///              <datareader_qos>
///                <reliability><kind>RELIABLE_RELIABILITY_QOS</kind></reliability>
///              </datareader_qos>
///            </qos_profile>
///          </qos_library>
///        </dds>"#,
///     "qos.xml",
/// )?;
/// let qos = provider.profile("Cockpit::Display")?.datareader_qos("State");
/// assert_eq!(qos.reliability.kind, ReliabilityKind::Reliable);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct QosProvider {
    model: Arc<Model>,
}

/// Files that cannot be used as QoS profiles.
#[derive(Debug, Error)]
pub enum LoadError {
    /// A file cannot be read at all.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The contents of the files are invalid; all diagnostics are listed.
    #[error("{}", lines(diagnostics))]
    Invalid {
        /// All diagnostics, errors and warnings, by file and line.
        diagnostics: Vec<Diagnostic>,
    },
}

/// No loaded file has a profile of this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no QoS profile is named '{name}'{}", suggestion(name, known))]
pub struct UnknownProfile {
    /// The name that was looked for.
    pub name: String,
    /// The names of all profiles, in the order of the files.
    pub known: Vec<String>,
}

impl QosProvider {
    /// Loads one file.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        Self::from_files([path])
    }

    /// Loads several files as one: profiles of one may inherit from another's, and
    /// a library may be spread over them.
    pub fn from_files<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
    ) -> Result<Self, LoadError> {
        let mut sources = Vec::new();
        for path in paths {
            let path = path.as_ref();
            let bytes = std::fs::read(path).map_err(|source| LoadError::Unreadable {
                path: path.to_owned(),
                source,
            })?;
            sources.push((path.display().to_string(), bytes));
        }
        Self::from_sources(sources)
    }

    /// Loads the text of one file, called `name` in diagnostics.
    pub fn from_str(text: &str, name: &str) -> Result<Self, LoadError> {
        Self::from_sources([(name, text)])
    }

    /// Loads several texts as one, each with its name in diagnostics.
    /// Any bytes may be given.
    pub fn from_sources<N: AsRef<str>, B: AsRef<[u8]>>(
        sources: impl IntoIterator<Item = (N, B)>,
    ) -> Result<Self, LoadError> {
        let mut model = Model::default();
        let mut broken = false;
        for (name, bytes) in sources {
            let mut report = Report::new(name.as_ref().into());
            let document = tree::read(bytes.as_ref(), &mut report);
            broken |= document.broken;
            if let Some(root) = document.root {
                model.groups.extend(library::read(root, &mut report));
            }
            model.remarks.extend(report.into_diagnostics());
        }
        // If a file is truncated, unknown names may be its fault.
        if !broken {
            let (links, remarks) = Links::of(&model.groups);
            model.links = links;
            model.remarks.extend(remarks);
        }
        model.remarks.sort_by(|a, b| a.location.cmp(&b.location));
        if model
            .remarks
            .iter()
            .any(|remark| remark.severity == Severity::Error)
        {
            return Err(LoadError::Invalid {
                diagnostics: model.remarks,
            });
        }
        Ok(Self {
            model: Arc::new(model),
        })
    }

    /// The profile `name`, which is `Library::Profile`; the library may be left
    /// out where only one has a profile of that name.
    pub fn profile(&self, name: &str) -> Result<QosProfile, UnknownProfile> {
        let profiles = || self.model.profiles();
        let exact = profiles().find(|(_, group)| group.full_name() == name);
        let mut bare = profiles().filter(|(_, group)| group.name == name);
        let found = exact.or_else(|| bare.next().filter(|_| bare.next().is_none()));
        match found {
            Some((group, _)) => Ok(QosProfile::new(self.model.clone(), group)),
            None => Err(UnknownProfile {
                name: name.to_owned(),
                known: self.profile_names(),
            }),
        }
    }

    /// The names of all profiles, in the order of the files.
    pub fn profile_names(&self) -> Vec<String> {
        self.model
            .profiles()
            .map(|(_, group)| group.full_name())
            .collect()
    }

    /// Parts of the files without effect, by file and line.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.model.remarks
    }

    /// All diagnostics of the files: the warnings of loading, policies that
    /// contradict each other (errors), and policies whose behaviour is not built, so
    /// that creating an entity would be refused (warnings). By file and line.
    pub fn check(&self) -> Vec<Diagnostic> {
        check::check(&self.model)
    }
}

/// The groups of all files with their names linked.
#[derive(Debug, Default)]
struct Model {
    groups: Vec<Group>,
    links: Links,
    remarks: Vec<Diagnostic>,
}

impl Model {
    fn profiles(&self) -> impl Iterator<Item = (usize, &Group)> {
        self.groups
            .iter()
            .enumerate()
            .filter(|(_, group)| group.kind == GroupKind::Profile)
    }
}

fn lines(diagnostics: &[Diagnostic]) -> String {
    diagnostics
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

fn suggestion(name: &str, known: &[String]) -> String {
    match did_you_mean(name, known.iter().map(String::as_str)) {
        hint if !hint.is_empty() => hint,
        _ if known.is_empty() => "; there are no profiles".to_owned(),
        _ => format!("; there are {}", known.join(", ")),
    }
}
