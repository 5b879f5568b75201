//! The QoS and the listener that a new entity gets.

use spindle_dds_qos::{
    DataReaderQos, DataWriterQos, DomainParticipantFactoryQos, DomainParticipantQos, PublisherQos,
    QosProvider, SubscriberQos, TopicQos, UnknownProfile,
};

use crate::error::Result;
use crate::listener::NewListener;
use crate::participant::ParticipantCore;
use crate::profiles::{Profiles, QosProfile};

/// The rules that the QoS of every kind of entity has (`spindle_dds_qos`).
pub(crate) trait EntityQos: Clone + Default {
    /// Refuses policies that contradict each other, and those that are not supported.
    ///
    /// # Errors
    /// INCONSISTENT_POLICY, UNSUPPORTED.
    fn check(&self) -> Result<()>;

    /// Refuses a change of policies that cannot change once the entity is enabled.
    ///
    /// # Errors
    /// IMMUTABLE_POLICY.
    fn check_change(&self, new: &Self) -> Result<()>;
}

macro_rules! entity_qos {
    ($($qos:ty),+) => { $(
        impl EntityQos for $qos {
            fn check(&self) -> Result<()> {
                self.check_consistency()?;
                self.unsupported().into_iter().next().map_or(Ok(()), |found| Err(found.into()))
            }

            fn check_change(&self, new: &Self) -> Result<()> {
                Ok(self.check_mutable(new)?)
            }
        }
    )+ };
}

entity_qos!(
    DomainParticipantFactoryQos,
    DomainParticipantQos,
    TopicQos,
    PublisherQos,
    SubscriberQos,
    DataWriterQos,
    DataReaderQos
);

/// QoS that profiles have.
pub(crate) trait ProfileQos: EntityQos {
    /// That of a profile; `topic` is empty where no topic is at hand.
    fn of_profile(profile: &QosProfile, topic: &str) -> Self;

    /// That of a profile or entity of this name.
    fn named(provider: &QosProvider, name: &str, topic: &str) -> Result<Self, UnknownProfile>;
}

macro_rules! profile_qos {
    ($($qos:ty: $operation:ident($($topic:ident)?)),+ $(,)?) => { $(
        impl ProfileQos for $qos {
            fn of_profile(profile: &QosProfile, _topic: &str) -> Self {
                $(let $topic = _topic;)?
                profile.$operation($($topic)?)
            }

            fn named(
                provider: &QosProvider,
                name: &str,
                _topic: &str,
            ) -> Result<Self, UnknownProfile> {
                $(let $topic = _topic;)?
                provider.$operation(name $(, $topic)?)
            }
        }
    )+ };
}

profile_qos!(
    DomainParticipantQos: participant_qos(),
    TopicQos: topic_qos(topic),
    PublisherQos: publisher_qos(),
    SubscriberQos: subscriber_qos(),
    DataWriterQos: datawriter_qos(topic),
    DataReaderQos: datareader_qos(topic),
);

/// Where a builder takes the QoS from.
#[derive(Debug, Clone, Default)]
pub(crate) enum QosChoice<Q> {
    /// See [`default_qos`].
    #[default]
    Default,
    /// Given by value.
    Given(Box<Q>),
    /// From the profile of this name.
    Profile(String),
}

impl<Q: ProfileQos> QosChoice<Q> {
    /// The chosen QoS, checked, for an entity of `topic`, if it is of one. `set` is the default
    /// that the application has set, if any.
    ///
    /// # Errors
    /// BAD_PARAMETER for an unknown profile; INCONSISTENT_POLICY, UNSUPPORTED.
    pub(crate) fn resolve(
        self,
        participant: &ParticipantCore,
        topic: &str,
        set: impl FnOnce() -> Option<Q>,
    ) -> Result<Q> {
        let qos = match self {
            Self::Given(qos) => *qos,
            Self::Profile(name) => participant.profiles().named(&name, topic)?,
            Self::Default => default_qos(participant.profiles(), topic, set()),
        };
        qos.check()?;
        Ok(qos)
    }
}

/// The QoS of an entity that is created without one: the default that was set with
/// `set_default_*_qos`; else that of the participant's profile; else the standard's.
pub(crate) fn default_qos<Q: ProfileQos>(profiles: &Profiles, topic: &str, set: Option<Q>) -> Q {
    set.unwrap_or_else(|| {
        let profile = profiles.default_profile();
        profile.map_or_else(Q::default, |profile| Q::of_profile(profile, topic))
    })
}

/// A listener to be set at creation, with its mask.
pub(crate) type ListenerChoice<L> = Option<NewListener<L>>;

/// The setters that all builders of entities share. The builder has the fields `qos`, a
/// [`QosChoice`], and `listener`, a [`ListenerChoice`]; `$erase` makes a `Box<dyn $listener>` what
/// the latter holds.
macro_rules! builder_setters {
    ($qos:ty, $listener:path, $profile_doc:literal, $erase:expr) => {
        /// With this QoS.
        pub fn qos(mut self, qos: $qos) -> Self {
            self.qos = $crate::choice::QosChoice::Given(Box::new(qos));
            self
        }

        #[doc = $profile_doc]
        pub fn profile(mut self, name: &str) -> Self {
            self.qos = $crate::choice::QosChoice::Profile(name.to_owned());
            self
        }

        /// With a listener for these statuses.
        pub fn listener(
            mut self,
            mask: $crate::status::StatusMask,
            listener: impl $listener + 'static,
        ) -> Self {
            let erase = $erase;
            self.listener = Some($crate::listener::NewListener::new(
                mask,
                Some(erase(Box::new(listener) as Box<dyn $listener>)),
            ));
            self
        }
    };
}

/// The setter that `psm` needs of a builder that has [`builder_setters`].
macro_rules! shared_listener_setter {
    ($listener:path, $erase:expr) => {
        /// With a listener that the application has too, or a nil listener.
        pub(crate) fn shared_listener(
            mut self,
            mask: $crate::status::StatusMask,
            listener: Option<$crate::listener::SharedListener<dyn $listener>>,
        ) -> Self {
            let erase = $erase;
            self.listener = Some($crate::listener::NewListener::shared(
                mask,
                listener,
                |listener| erase(Box::new(listener) as Box<dyn $listener>),
            ));
            self
        }
    };
}

pub(crate) use {builder_setters, shared_listener_setter};
