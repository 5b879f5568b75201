//! Whether created entities are enabled at once.

use serde::{Deserialize, Serialize};

/// ENTITY_FACTORY: how an entity makes other entities (DDS 1.4 §2.2.3.20).
/// Default: enabled at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EntityFactory {
    /// Whether entities are enabled by their creation rather than by `enable`.
    pub autoenable_created_entities: bool,
}

impl Default for EntityFactory {
    fn default() -> Self {
        Self {
            autoenable_created_entities: true,
        }
    }
}
