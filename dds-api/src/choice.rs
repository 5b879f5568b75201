//! Where the QoS of an entity to be created comes from.

use crate::error::Result;
use crate::participant::ParticipantCore;
use crate::profiles::{Profiles, QosProfile};

/// What a builder was told.
#[derive(Debug, Clone, Default)]
pub(crate) enum QosChoice<Q> {
    /// Nothing: see [`default_qos`].
    #[default]
    Default,
    /// This.
    Given(Box<Q>),
    /// What a profile has for it.
    Profile(String),
}

impl<Q: Default> QosChoice<Q> {
    /// The QoS that is meant; `set` is the default that was set, if one was.
    pub(crate) fn resolve(
        self,
        participant: &ParticipantCore,
        of_profile: impl Fn(&QosProfile) -> Q,
        set: impl FnOnce() -> Option<Q>,
    ) -> Result<Q> {
        match self {
            Self::Given(qos) => Ok(*qos),
            Self::Profile(name) => Ok(of_profile(&participant.profiles().named(&name)?)),
            Self::Default => Ok(default_qos(participant.profiles(), of_profile, set())),
        }
    }
}

/// The QoS of an entity about which nothing is said: the default that was set with
/// `set_default_*_qos`; else what the participant's profile has; else the standard's.
pub(crate) fn default_qos<Q: Default>(
    profiles: &Profiles,
    of_profile: impl Fn(&QosProfile) -> Q,
    set: Option<Q>,
) -> Q {
    set.unwrap_or_else(|| {
        let profile = profiles.default_profile();
        profile.map_or_else(Q::default, of_profile)
    })
}

/// Refuses what contradicts itself, and what is not built.
macro_rules! check_qos {
    ($qos:expr) => {{
        $qos.check_consistency()?;
        if let Some(refused) = $qos.unsupported().into_iter().next() {
            return Err(refused.into());
        }
    }};
}

pub(crate) use check_qos;
