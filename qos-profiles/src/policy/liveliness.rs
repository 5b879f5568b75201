//! How a writer proves that it is alive.

use serde::{Deserialize, Serialize};

use crate::duration::Duration;
use crate::label::labelled_enum;

labelled_enum! {
    /// How the liveliness of a writer is asserted; the later value is the stricter.
    pub enum LivelinessKind {
        /// The middleware.
        #[default]
        Automatic = "AUTOMATIC_LIVELINESS_QOS",
        /// The application, once for all writers of a participant.
        ManualByParticipant = "MANUAL_BY_PARTICIPANT_LIVELINESS_QOS",
        /// The application, for each writer.
        ManualByTopic = "MANUAL_BY_TOPIC_LIVELINESS_QOS",
    }
}

/// LIVELINESS: how, and how often, a writer is asserted to be alive (DDS 1.4
/// §2.2.3.11). Default: the middleware, without a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Liveliness {
    /// The kind of assertion.
    pub kind: LivelinessKind,
    /// The longest time between two assertions.
    pub lease_duration: Duration,
}

impl Default for Liveliness {
    fn default() -> Self {
        Self {
            kind: LivelinessKind::Automatic,
            lease_duration: Duration::INFINITE,
        }
    }
}
