//! Errors in what another participant announces, and the limits that announcements keep.

use std::sync::Arc;

use spindle_dds_xtypes::TypeError;

/// Maximum length of the JSON entry of an endpoint, with its length prefix, in bytes.
pub(crate) const ENTRY_LEN_MAX: usize = 16 << 10;
/// Maximum length of a type that is announced with each endpoint, in bytes. Longer types go
/// into notes.
pub(crate) const INLINE_LEN_MAX: usize = 16 << 10;
/// Maximum length of a type that is announced with its TypeObjects, in bytes.
pub(crate) const TYPE_LEN_MAX: usize = 1 << 20;
/// Maximum length of the announcement of an endpoint, in bytes.
pub(crate) const ENDPOINT_LEN_MAX: usize = ENTRY_LEN_MAX + INLINE_LEN_MAX;

/// Why an announcement is invalid.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProtocolViolation {
    #[error(
        "the announcement of an endpoint or type has {0} bytes; the maximum is \
         {ENDPOINT_LEN_MAX} or {TYPE_LEN_MAX}"
    )]
    TooLong(usize),
    #[error("it is truncated")]
    Truncated,
    #[error("it contradicts itself")]
    Contradicts,
    #[error("its type cannot be the type of a topic")]
    NoTopicType,
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    #[error("its type is invalid: {0}")]
    Type(#[from] TypeError),
    #[error("its participant has no note of its type")]
    NotNoted,
    /// Shared by all endpoints whose type stands in the same notes.
    #[error("the notes of its type are invalid: {0}")]
    Noted(Arc<Self>),
}
