//! The factory of participants, one in each process (DDS 1.4 §2.2.2.2.2).

use std::collections::BTreeMap;
use std::panic::Location;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use dashmap::DashMap;
use spindle_dds_idl_runtime::TopicType;
use spindle_dds_qos::{DomainParticipantFactoryQos, DomainParticipantQos, QosLoader};

use super::builder::text_at;
use super::core::ParticipantCore;
use super::from_config::{CompiledType, EntityType};
use super::{DomainParticipant, ParticipantBuilder};
use crate::choice::EntityQos;
use crate::error::{Error, Result};
use crate::handle::Guid;
use crate::profiles::Profiles;

/// Makes, finds and deletes participants.
#[derive(Debug)]
pub struct DomainParticipantFactory {
    participants: DashMap<Guid, Weak<ParticipantCore>>,
    settings: Mutex<Settings>,
}

#[derive(Debug, Default)]
struct Settings {
    qos: DomainParticipantFactoryQos,
    /// `None` if no default was set.
    participant_qos: Option<DomainParticipantQos>,
    /// For all participants that are created from now on.
    qos_files: QosLoader,
    /// By the names under which they are registered.
    types: BTreeMap<String, Arc<dyn EntityType>>,
}

static INSTANCE: LazyLock<DomainParticipantFactory> = LazyLock::new(|| DomainParticipantFactory {
    participants: DashMap::new(),
    settings: Mutex::default(),
});

impl DomainParticipantFactory {
    /// The factory of this process.
    pub fn instance() -> &'static Self {
        &INSTANCE
    }

    fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a participant of a domain.
    pub fn create_participant(&self, domain_id: u32) -> ParticipantBuilder {
        DomainParticipant::builder(domain_id)
    }

    /// Starts the participant that a file of DDS-XML describes, as `Library::Participant` or
    /// `Library::Application::Participant`, with its topics, publishers, subscribers, writers and
    /// readers (`create_participant_from_config`). The files are those of the builder and of this
    /// factory, or else the default files. Entities have the names that the file gives them:
    /// [`DomainParticipant::lookup_datawriter_by_name`] finds them.
    ///
    /// ```
    /// use spindle_dds::{DomainParticipantFactory, Dynamic};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let directory = directory.path().join("domains").display().to_string();
    ///
    /// let text = "<dds>
    ///   <types><struct name='Reading'><member name='value' type='float64'/></struct></types>
    ///   <domain_library name='Plant'><domain name='Boiler' domain_id='3'>
    ///     <register_type name='Reading'/><topic name='Pressure' register_type_ref='Reading'/>
    ///   </domain></domain_library>
    ///   <domain_participant_library name='Parts'>
    ///     <domain_participant name='Gauge' domain_ref='Plant::Boiler'>
    ///       <publisher name='Out'><data_writer name='Pressure' topic_ref='Pressure'/></publisher>
    ///     </domain_participant>
    ///   </domain_participant_library>
    /// </dds>";
    /// let participant = DomainParticipantFactory::instance()
    ///     .create_participant_from_config("Parts::Gauge")
    ///     .qos_profiles_str(text)?
    ///     # .property("spindle.directory", &directory)
    ///     .create()?;
    /// let writer = participant.lookup_datawriter_by_name("Out::Pressure")?.ok_or("no writer")?;
    /// let writer = writer.downcast::<Dynamic>().ok_or("a compiled type")?;
    /// let mut reading = writer.dynamic_type().default_data()?;
    /// reading.set("value", 1.5.into())?;
    /// writer.write(&reading)?;
    /// # participant.close()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn create_participant_from_config(&self, name: &str) -> ParticipantBuilder {
        ParticipantBuilder::from_config(Some(name.to_owned()))
    }

    /// Registers a compiled type for participants that files describe: their topics whose
    /// `register_type`, or whose type, has this name are topics of `T`. It replaces a type that
    /// was registered under the name.
    pub fn register_type<T: TopicType>(&self, name: &str) {
        let ty = Arc::new(CompiledType::<T>::default());
        self.settings().types.insert(name.to_owned(), ty);
    }

    /// A participant of this name in this process, if there is one: of several, any.
    pub fn lookup_participant_by_name(&self, name: &str) -> Option<DomainParticipant> {
        local_participants()
            .into_iter()
            .find(|core| core.name == name && core.base.alive().is_ok())
            .map(DomainParticipant::of)
    }

    /// A participant of the domain in this process, if there is one.
    pub fn lookup_participant(&self, domain_id: u32) -> Option<DomainParticipant> {
        local_participants()
            .into_iter()
            .find(|core| core.domain_id == domain_id && core.base.alive().is_ok())
            .map(DomainParticipant::of)
    }

    /// Leaves the group and deletes the participant.
    ///
    /// # Errors
    /// PRECONDITION_NOT_MET when it contains entities; those of
    /// [`close`](DomainParticipant::close).
    pub fn delete_participant(&self, participant: &DomainParticipant) -> Result<()> {
        participant.core.base.alive()?;
        if !participant.core.entities().is_empty() {
            return Err(Error::PreconditionNotMet(
                "the participant contains entities; delete them first, or call close()".to_owned(),
            ));
        }
        participant.close()
    }

    /// Its QoS.
    pub fn qos(&self) -> DomainParticipantFactoryQos {
        self.settings().qos.clone()
    }

    /// Changes its QoS: whether participants are enabled when they are created.
    ///
    /// # Errors
    /// INCONSISTENT_POLICY.
    pub fn set_qos(&self, qos: DomainParticipantFactoryQos) -> Result<()> {
        qos.check()?;
        self.settings().qos = qos;
        Ok(())
    }

    /// Adds a DDS-XML file with QoS profiles for all participants that are created from now on.
    /// It is read when each is created, together with the files of its builder.
    ///
    /// # Errors
    /// BAD_PARAMETER with all errors in the file, by line and column; the file is not added.
    pub fn qos_profiles(&self, file: impl AsRef<Path>) -> Result<()> {
        self.add_profiles(|files| files.file(file))
    }

    /// Adds the text of a DDS-XML file with QoS profiles, such as `include_str!("flight.xml")`,
    /// for all participants that are created from now on.
    ///
    /// # Errors
    /// BAD_PARAMETER with all errors in the text, by line and column; the text is not added.
    #[track_caller]
    pub fn qos_profiles_str(&self, text: &str) -> Result<()> {
        let name = text_at(Location::caller());
        self.add_profiles(|files| files.text(name, text))
    }

    /// Removes all files and texts with QoS profiles. Participants that exist keep their profiles.
    pub fn unload_qos_profiles(&self) {
        self.settings().qos_files = QosLoader::new();
    }

    fn add_profiles(&self, add: impl FnOnce(QosLoader) -> QosLoader) -> Result<()> {
        let files = add(qos_files());
        Profiles::load(&files, None)?;
        self.settings().qos_files = files;
        Ok(())
    }

    /// Default QoS of participants without QoS and profile: the one that was set, or the
    /// standard's. Where none was set, a profile that the participant's files mark as the default
    /// comes before the standard's.
    pub fn default_participant_qos(&self) -> DomainParticipantQos {
        self.settings().participant_qos.clone().unwrap_or_default()
    }

    /// Sets the default QoS of participants without QoS and profile.
    ///
    /// # Errors
    /// INCONSISTENT_POLICY, UNSUPPORTED.
    pub fn set_default_participant_qos(&self, qos: DomainParticipantQos) -> Result<()> {
        qos.check()?;
        self.settings().participant_qos = Some(qos);
        Ok(())
    }

    /// Undoes [`set_default_participant_qos`](Self::set_default_participant_qos).
    pub fn reset_default_participant_qos(&self) {
        self.settings().participant_qos = None;
    }
}

/// The type that is registered under one of these names, the first first.
pub(super) fn registered_type(names: [&str; 2]) -> Option<Arc<dyn EntityType>> {
    let types = &INSTANCE.settings().types;
    names.into_iter().find_map(|name| types.get(name).cloned())
}

/// The participants of this process.
fn local_participants() -> Vec<Arc<ParticipantCore>> {
    // Collected: the last handle must not be dropped while the map is locked.
    let all = INSTANCE.participants.iter();
    all.filter_map(|entry| entry.value().upgrade()).collect()
}

pub(super) fn register(participant: &DomainParticipant) {
    let guid = participant.core.base.guid();
    let weak = Arc::downgrade(&participant.core);
    INSTANCE.participants.insert(guid, weak);
}

pub(super) fn forget(participant: Guid) {
    INSTANCE.participants.remove(&participant);
}

/// The default QoS, if one was set.
pub(super) fn set_participant_qos() -> Option<DomainParticipantQos> {
    INSTANCE.settings().participant_qos.clone()
}

/// The files and texts with QoS profiles for all participants.
pub(super) fn qos_files() -> QosLoader {
    INSTANCE.settings().qos_files.clone()
}

pub(super) fn autoenables() -> bool {
    INSTANCE
        .settings()
        .qos
        .entity_factory
        .autoenable_created_entities
}
