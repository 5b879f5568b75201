//! Coherence and order among changes.

use serde::{Deserialize, Serialize};

use crate::label::labelled_enum;

labelled_enum! {
    /// Among which changes coherence and order hold; the later value is the wider.
    pub enum PresentationAccessScope {
        /// Those of one instance.
        #[default]
        Instance = "INSTANCE_PRESENTATION_QOS",
        /// Those of one writer; of one topic where the middleware orders a topic.
        Topic = "TOPIC_PRESENTATION_QOS",
        /// Those of all writers of a publisher.
        Group = "GROUP_PRESENTATION_QOS",
    }
}

/// PRESENTATION: how changes of a publisher depend on each other (DDS 1.4 §2.2.3.6).
/// Default: within an instance, neither coherent nor ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Presentation {
    /// Among which changes.
    pub access_scope: PresentationAccessScope,
    /// Whether sets of changes are seen whole or not at all.
    pub coherent_access: bool,
    /// Whether changes are presented in their order.
    pub ordered_access: bool,
}
