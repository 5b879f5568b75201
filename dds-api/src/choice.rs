//! Where the QoS of an entity to be created comes from.

use crate::profiles::QosProfile;

use crate::error::Result;
use crate::participant::ParticipantCore;

/// What a builder was told.
#[derive(Debug, Clone, Default)]
pub(crate) enum QosChoice<Q> {
    /// Nothing: the participant's profile, or the default of the factory entity.
    #[default]
    Default,
    /// This.
    Given(Box<Q>),
    /// What a profile has for it.
    Profile(String),
}

impl<Q> QosChoice<Q> {
    /// The QoS that is meant.
    pub(crate) fn resolve(
        self,
        participant: &ParticipantCore,
        of_profile: impl Fn(&QosProfile) -> Q,
        default: impl FnOnce() -> Q,
    ) -> Result<Q> {
        match self {
            Self::Given(qos) => Ok(*qos),
            Self::Profile(name) => Ok(of_profile(&participant.profiles().named(&name)?)),
            Self::Default => Ok(participant
                .profiles()
                .default_profile()?
                .map_or_else(default, |profile| of_profile(&profile))),
        }
    }
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
