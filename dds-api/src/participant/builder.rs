//! Making participants.

use std::panic::Location;
use std::path::Path;

use spindle_dds_qos::{DomainParticipantQos, Properties, QosLoader};

use super::core::ParticipantCore;
use super::{DomainParticipant, factory, from_config};
use crate::choice::{EntityQos, ListenerChoice, QosChoice, default_qos};
use crate::error::{Error, Result};
use crate::listener::{DomainParticipantListener, NewListener, SharedListener};
use crate::names::{checked_name, of_this_process};
use crate::profiles::Profiles;
use crate::properties::{self, ParticipantConfig};
use crate::status::StatusMask;

/// Makes a [`DomainParticipant`].
#[must_use = "a builder does nothing until `create`"]
pub struct ParticipantBuilder {
    /// `None`: that of the configuration.
    domain_id: Option<u32>,
    /// A participant of the files.
    config: Option<String>,
    name: Option<String>,
    files: QosLoader,
    ignores_default_files: bool,
    profile: Option<String>,
    qos: QosChoice<DomainParticipantQos>,
    properties: Properties,
    disabled: bool,
    listener: ListenerChoice<dyn DomainParticipantListener>,
}

impl std::fmt::Debug for ParticipantBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParticipantBuilder")
            .field("domain_id", &self.domain_id)
            .field("config", &self.config)
            .field("files", &self.files)
            .field("profile", &self.profile)
            .finish_non_exhaustive()
    }
}

impl ParticipantBuilder {
    pub(super) fn new(domain_id: u32) -> Self {
        Self {
            domain_id: Some(domain_id),
            ..Self::from_config(None)
        }
    }

    /// Of a participant of the files.
    pub(super) fn from_config(config: Option<String>) -> Self {
        Self {
            domain_id: None,
            config,
            name: None,
            files: QosLoader::new(),
            ignores_default_files: false,
            profile: None,
            qos: QosChoice::Default,
            properties: Properties::default(),
            disabled: false,
            listener: None,
        }
    }

    /// Names the participant, for people: in `discovered_participant_data` and `spindle top`. The
    /// default is the name of the executable and the process id, as `radar/4711`. Several
    /// participants may have one name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the domain; it comes before that of the file, for a participant that a file describes.
    pub fn domain_id(mut self, domain_id: u32) -> Self {
        self.domain_id = Some(domain_id);
        self
    }

    /// Adds a DDS-XML file with QoS profiles. Several files are read as one.
    ///
    /// # Errors
    /// BAD_PARAMETER with all errors in the file, by line and column.
    pub fn qos_profiles(mut self, file: impl AsRef<Path>) -> Result<Self> {
        self.files = self.files.file(file);
        self.check_profiles()
    }

    /// Adds the text of a DDS-XML file with QoS profiles, such as `include_str!("flight.xml")`,
    /// so that the program needs no file when it runs. Errors name the line that calls this.
    ///
    /// # Errors
    /// BAD_PARAMETER with all errors in the text, by line and column.
    #[track_caller]
    pub fn qos_profiles_str(mut self, text: &str) -> Result<Self> {
        self.files = self.files.text(text_at(Location::caller()), text);
        self.check_profiles()
    }

    /// Reads no default files: `USER_QOS_PROFILES.xml` in the working directory and those in the
    /// environment variable `SPINDLE_QOS_PROFILES` or `NDDS_QOS_PROFILES`, which
    /// [`create`](Self::create) reads where neither this builder nor the factory has been given
    /// any ([`QosLoader::default_files`]).
    pub fn ignore_default_qos_files(mut self) -> Self {
        self.ignores_default_files = true;
        self
    }

    fn check_profiles(self) -> Result<Self> {
        Profiles::load(&factory::qos_files().and(&self.files), None)?;
        Ok(self)
    }

    /// The profile, as `Library::Profile`, from which the participant and all
    /// of its entities take their QoS, unless it is set otherwise: by the builder of the entity,
    /// or, for contained entities, by a default that was set with `set_default_*_qos`. Without
    /// it, it is the profile that the files mark with `is_default_qos="true"`.
    pub fn profile(mut self, name: &str) -> Self {
        self.profile = Some(name.to_owned());
        self
    }

    /// Sets the QoS; it comes before the profile.
    pub fn qos(mut self, qos: DomainParticipantQos) -> Self {
        self.qos = QosChoice::Given(Box::new(qos));
        self
    }

    /// Sets a property; it replaces one of the same name in the QoS or profile. The
    /// documentation of [`properties`](crate::properties) lists them.
    pub fn property(mut self, name: &str, value: &str) -> Self {
        self.properties.set(name, value);
        self
    }

    /// Creates the participant disabled: it joins with its writers and readers when it is
    /// [enabled](DomainParticipant::enable).
    pub fn disabled(mut self) -> Self {
        self.disabled = true;
        self
    }

    /// Sets a listener for these statuses.
    pub fn listener(
        mut self,
        mask: StatusMask,
        listener: impl DomainParticipantListener + 'static,
    ) -> Self {
        self.listener = Some(NewListener::new(mask, Some(Box::new(listener))));
        self
    }

    /// Sets a listener that the application has too, or a nil listener.
    pub(crate) fn shared_listener(
        mut self,
        mask: StatusMask,
        listener: Option<SharedListener<dyn DomainParticipantListener>>,
    ) -> Self {
        let erase = |listener| Box::new(listener) as Box<dyn DomainParticipantListener>;
        self.listener = Some(NewListener::shared(mask, listener, erase));
        self
    }

    /// Creates the participant and enables it, unless it is [`disabled`](Self::disabled) or the
    /// factory's ENTITY_FACTORY disables autoenabling.
    ///
    /// # Errors
    /// BAD_PARAMETER for an unknown profile or property, a name that is empty, longer than 256
    /// bytes or has a NUL, or an error in a default file;
    /// INCONSISTENT_POLICY, UNSUPPORTED; those of [`enable`](DomainParticipant::enable). For a
    /// participant that a file describes, those of creating its entities, with the line of the file;
    /// BAD_PARAMETER if no file describes it, or a registered type does not fit its description.
    pub fn create(self) -> Result<DomainParticipant> {
        if let Some(domain_id) = self.domain_id.filter(|id| *id > DOMAIN_ID_MAX) {
            return Err(Error::BadParameter(format!(
                "domain id {domain_id} is above {DOMAIN_ID_MAX}"
            )));
        }
        let mut files = factory::qos_files().and(&self.files);
        if files.is_empty() && !self.ignores_default_files {
            files = QosLoader::default_files();
        }
        let profiles = Profiles::load(&files, self.profile)?;
        profiles.log_warnings();
        let declared = self.config.map(|name| profiles.participant(&name));
        let declared = declared.transpose()?;
        let of_file = declared.as_ref().map(|it| it.domain_id);
        let domain_id = self.domain_id.or(of_file).unwrap_or_default();
        let name = self
            .name
            .or_else(|| declared.as_ref().map(|it| it.name.clone()));
        let name = checked_name("participant", name)?.unwrap_or_else(of_this_process);
        let of_file = declared.as_ref().and_then(|it| it.qos.clone());
        let mut qos = match self.qos {
            QosChoice::Given(qos) => *qos,
            // A profile is chosen for this participant: it comes before the factory's
            // default.
            _ => match (of_file, profiles.chosen()) {
                (Some(qos), _) => qos,
                (None, Some(profile)) => profile.participant_qos(),
                (None, None) => default_qos(&profiles, "", factory::set_participant_qos()),
            },
        };
        for property in &self.properties {
            qos.origins.forget_property(&property.name);
            qos.property.insert(property.clone());
        }
        qos.check()?;
        let config = properties::placed(&qos.property, &qos.origins, ParticipantConfig::read)?;
        let core = ParticipantCore::new(domain_id, name, qos, config, profiles);
        if let Some(listener) = self.listener {
            core.set_listener(listener);
        }
        let participant = DomainParticipant::of(core);
        factory::register(&participant);
        if let Some(declared) = &declared {
            let created = from_config::create_entities(&participant, declared);
            // The error says more than what closing it may say.
            created.inspect_err(|_| drop(participant.close()))?;
        }
        if !self.disabled && factory::autoenables() {
            participant.enable()?;
        }
        Ok(participant)
    }
}

/// What a text is called in errors.
pub(super) fn text_at(caller: &Location<'_>) -> String {
    format!("text[{}:{}]", caller.file(), caller.line())
}

/// As in DDSI-RTPS 2.5 §9.6.1.1, so that ports could be computed from it.
const DOMAIN_ID_MAX: u32 = 232;
