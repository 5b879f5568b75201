//! Bytes that travel with the announcement of an entity.

use serde::{Deserialize, Serialize};

/// USER_DATA: bytes attached to a participant, writer or reader and shown in the
/// built-in topics (DDS 1.4 §2.2.3.1). Default: none.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct UserData {
    /// The bytes; the middleware does not look at them.
    pub value: Vec<u8>,
}

/// TOPIC_DATA: bytes attached to a topic and shown in the built-in topics
/// (DDS 1.4 §2.2.3.2). Default: none.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct TopicData {
    /// The bytes; the middleware does not look at them.
    pub value: Vec<u8>,
}

/// GROUP_DATA: bytes attached to a publisher or subscriber and shown in the
/// built-in topics (DDS 1.4 §2.2.3.3). Default: none.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct GroupData {
    /// The bytes; the middleware does not look at them.
    pub value: Vec<u8>,
}
