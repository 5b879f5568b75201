//! The factory of participants, one in each process (DDS 1.4 §2.2.2.2.2).

use std::panic::Location;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use dashmap::DashMap;
use spindle_dds_qos::{DomainParticipantFactoryQos, DomainParticipantQos, QosLoader};

use super::builder::text_at;
use super::core::ParticipantCore;
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
