//! Files of DDS-XML: loading them, and finding what has a name in them.

mod built_in;
mod check;
mod declared;
mod default_files;
mod links;
mod loader;
mod names;
mod profile;
mod system;
mod twice;
mod walk;

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use spindle_dds_xtypes::DynamicType;
use thiserror::Error;

use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::entity::{
    DataReaderQos, DataWriterQos, DomainParticipantQos, PublisherQos, SubscriberQos, TopicQos,
};
use crate::xml::entity::EntityQos;
use crate::xml::library::{Group, GroupKind, qualified};

pub use check::DeclaredQos;
pub use declared::{
    DeclaredParticipant, DeclaredPublisher, DeclaredReader, DeclaredSubscriber, DeclaredTopic,
    DeclaredWriter, UnknownParticipant,
};
pub use loader::QosLoader;
pub use profile::QosProfile;

use links::Links;
use profile::Layers;
use system::System;

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

/// No loaded file has a profile of this name, nor QoS of that kind of entity.
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
        let add = |loader: QosLoader, path: P| loader.file(path);
        paths.into_iter().fold(QosLoader::new(), add).load()
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
        let add =
            |loader: QosLoader, (name, bytes): (N, B)| loader.text(name.as_ref(), bytes.as_ref());
        sources.into_iter().fold(QosLoader::new(), add).load()
    }

    /// The profile `name`, which is `Library::Profile`; the library may be left
    /// out where only one has a profile of that name. The built-in profiles of other products
    /// are found by their full name.
    pub fn profile(&self, name: &str) -> Result<QosProfile, UnknownProfile> {
        let profiles = || self.model.profiles();
        // The profile of a file comes before a built-in one.
        let exact = profiles().find(|(_, group)| group.full_name() == name);
        let in_files = || profiles().filter(|(_, group)| !group.is_built_in);
        let mut bare = in_files().filter(|(_, group)| group.name == name);
        let found = exact.or_else(|| bare.next().filter(|_| bare.next().is_none()));
        match found {
            Some((group, _)) => Ok(QosProfile::new(self.model.clone(), group)),
            None => built_in_profile(name).ok_or_else(|| UnknownProfile {
                name: name.to_owned(),
                known: self.profile_names(),
            }),
        }
    }

    /// The profile with `is_default_qos="true"`, of which the last one counts: for entities that
    /// are created without QoS and without a profile.
    pub fn default_profile(&self) -> Option<QosProfile> {
        let mut profiles = self.model.profiles().filter(|(_, group)| group.is_default);
        let (group, _) = profiles.next_back()?;
        Some(QosProfile::new(self.model.clone(), group))
    }

    /// The QoS for participants of this name: of a profile, or of a `domain_participant_qos` that
    /// has a name, as `Library::Name` or `Library::Profile::Name`.
    pub fn participant_qos(&self, name: &str) -> Result<DomainParticipantQos, UnknownProfile> {
        self.named(name, "")
    }

    /// The QoS for a topic: of a profile, or of a `topic_qos` that has a name.
    pub fn topic_qos(&self, name: &str, topic_name: &str) -> Result<TopicQos, UnknownProfile> {
        self.named(name, topic_name)
    }

    /// The QoS for publishers of this name: of a profile, or of a `publisher_qos` that has a name.
    pub fn publisher_qos(&self, name: &str) -> Result<PublisherQos, UnknownProfile> {
        self.named(name, "")
    }

    /// The QoS for subscribers of this name: of a profile, or of a `subscriber_qos` that has a
    /// name.
    pub fn subscriber_qos(&self, name: &str) -> Result<SubscriberQos, UnknownProfile> {
        self.named(name, "")
    }

    /// The QoS for writers of a topic: of a profile, or of a `datawriter_qos` that has a name.
    pub fn datawriter_qos(
        &self,
        name: &str,
        topic_name: &str,
    ) -> Result<DataWriterQos, UnknownProfile> {
        self.named(name, topic_name)
    }

    /// The QoS for readers of a topic: of a profile, or of a `datareader_qos` that has a name.
    pub fn datareader_qos(
        &self,
        name: &str,
        topic_name: &str,
    ) -> Result<DataReaderQos, UnknownProfile> {
        self.named(name, topic_name)
    }

    fn named<Q: EntityQos>(&self, name: &str, topic_name: &str) -> Result<Q, UnknownProfile> {
        let unknown = match self.profile(name) {
            Ok(profile) => return Ok(profile.qos(topic_name)),
            Err(unknown) => unknown,
        };
        let named: Vec<_> = self.model.named_entities::<Q>().collect();
        match named.iter().find(|(_, _, known)| known == name) {
            Some(&(group, entity, _)) => {
                let mut layers = Layers::new(&self.model, Q::KIND, topic_name);
                layers.of_entity(group, entity);
                Ok(layers.apply())
            }
            None => Err(UnknownProfile {
                known: unknown
                    .known
                    .into_iter()
                    .chain(named.into_iter().map(|(_, _, name)| name))
                    .collect(),
                ..unknown
            }),
        }
    }

    /// The participant of this name, with all that it inherits: `Library::Participant`, or
    /// `Library::Application::Participant`. The library may be left out where only one has it.
    ///
    /// # Errors
    /// No file has it.
    pub fn participant(&self, name: &str) -> Result<DeclaredParticipant, UnknownParticipant> {
        self.model.participant(name)
    }

    /// The names of all participants, in the order of the files.
    pub fn participant_names(&self) -> Vec<String> {
        self.model.participant_names()
    }

    /// The structure or union that a file describes under this scoped name.
    pub fn topic_type(&self, name: &str) -> Option<DynamicType> {
        self.model.system.types.topic_type(name)
    }

    /// The scoped names of all types, in the order of the files.
    pub fn type_names(&self) -> Vec<String> {
        let names = self.model.system.types.names();
        names.map(str::to_owned).collect()
    }

    /// The names of all profiles, in the order of the files.
    pub fn profile_names(&self) -> Vec<String> {
        self.model
            .profiles()
            .filter(|(_, group)| !group.is_built_in)
            .map(|(_, group)| group.full_name())
            .collect()
    }

    /// Parts of the files without effect, by file and line; after [`QosLoader::inspect`], errors
    /// too.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.model.remarks
    }

    /// All diagnostics of the files: those of loading, policies that
    /// contradict each other (errors), and policies whose behaviour is not built, so
    /// that creating an entity would be refused (warnings). By file and line.
    pub fn check(&self) -> Vec<Diagnostic> {
        check::check(&self.model)
    }

    /// The QoS of each `..._qos` element of the files, with all that it inherits. Snippets count
    /// where they are applied.
    pub fn declared(&self) -> Vec<DeclaredQos> {
        check::declared(&self.model)
    }
}

/// The built-in profile of this name, for files that do not refer to one.
fn built_in_profile(name: &str) -> Option<QosProfile> {
    static MODEL: LazyLock<Arc<Model>> = LazyLock::new(|| {
        let groups = built_in::all();
        let (links, _) = Links::of(&groups);
        Arc::new(Model {
            groups,
            links,
            ..Model::default()
        })
    });
    if !built_in::is_built_in(name) {
        return None;
    }
    let mut profiles = MODEL.profiles();
    let (group, _) = profiles.find(|(_, group)| group.full_name() == name)?;
    Some(QosProfile::new(MODEL.clone(), group))
}

/// The groups of all files with their names linked.
#[derive(Debug, Default)]
struct Model {
    groups: Vec<Group>,
    links: Links,
    system: System,
    remarks: Vec<Diagnostic>,
}

impl Model {
    fn profiles(&self) -> impl DoubleEndedIterator<Item = (usize, &Group)> {
        self.groups
            .iter()
            .enumerate()
            .filter(|(_, group)| group.kind == GroupKind::Profile)
    }

    /// The entity QoS of a kind that have a name: group, entity, and the full name.
    fn named_entities<Q: EntityQos>(&self) -> impl Iterator<Item = (usize, usize, String)> {
        self.groups.iter().enumerate().flat_map(|(index, group)| {
            let entities = group.entities.iter().enumerate();
            let of_kind = entities.filter(|(_, entity)| entity.kind == Q::KIND);
            of_kind.filter_map(move |(at, entity)| {
                let prefix = match group.kind {
                    GroupKind::Loose => group.library.clone(),
                    _ => group.full_name(),
                };
                Some((index, at, qualified(&prefix, entity.name.as_ref()?)))
            })
        })
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
