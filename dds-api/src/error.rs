//! The standard's return codes as one error type.

use std::fmt;

/// The result of the operations of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation failed (DDS 1.4 §2.2.1.1).
///
/// Each variant is one of the standard's return codes; the text says what is wrong, where, and
/// what would be right. `Debug` writes the same as `Display`, as a `main` that returns an error, and
/// `expect`, print that.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// `RETCODE_ERROR`: a failure that has no code of its own, for instance of the group.
    #[error("{0}")]
    Error(String),
    /// `RETCODE_UNSUPPORTED`: a behaviour that is not implemented.
    #[error("unsupported: {0}")]
    Unsupported(String),
    /// `RETCODE_BAD_PARAMETER`: a value that is wrong by itself.
    #[error("bad parameter: {0}")]
    BadParameter(String),
    /// `RETCODE_PRECONDITION_NOT_MET`: not in the present state of the entity.
    #[error("precondition not met: {0}")]
    PreconditionNotMet(String),
    /// `RETCODE_OUT_OF_RESOURCES`: a limit is reached.
    #[error("out of resources: {0}")]
    OutOfResources(String),
    /// `RETCODE_NOT_ENABLED`: the entity has to be enabled first.
    #[error("not enabled: {0}")]
    NotEnabled(String),
    /// `RETCODE_IMMUTABLE_POLICY`: a policy that cannot change any more.
    #[error("immutable policy: {0}")]
    ImmutablePolicy(String),
    /// `RETCODE_INCONSISTENT_POLICY`: policies that contradict each other.
    #[error("inconsistent policy: {0}")]
    InconsistentPolicy(String),
    /// `RETCODE_ALREADY_DELETED`: the entity was deleted.
    #[error("already deleted: {0}")]
    AlreadyDeleted(String),
    /// `RETCODE_TIMEOUT`: the time given was not enough.
    #[error("timeout: {0}")]
    Timeout(String),
    /// `RETCODE_NO_DATA`: no samples now. It allocates nothing, because every loop that takes
    /// samples ends with it.
    #[error("no data: {0}")]
    NoData(&'static str),
    /// `RETCODE_ILLEGAL_OPERATION`: not for this kind of entity, or not here.
    #[error("illegal operation: {0}")]
    IllegalOperation(String),
    /// `RETCODE_NOT_ALLOWED_BY_SECURITY`: the caller is not authorized (a code of DDS
    /// Security).
    #[error("not allowed by security: {0}")]
    NotAllowedBySecurity(String),
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// The standard's return code.
    pub const fn return_code(&self) -> ReturnCode {
        match self {
            Self::Error(_) => ReturnCode::Error,
            Self::Unsupported(_) => ReturnCode::Unsupported,
            Self::BadParameter(_) => ReturnCode::BadParameter,
            Self::PreconditionNotMet(_) => ReturnCode::PreconditionNotMet,
            Self::OutOfResources(_) => ReturnCode::OutOfResources,
            Self::NotEnabled(_) => ReturnCode::NotEnabled,
            Self::ImmutablePolicy(_) => ReturnCode::ImmutablePolicy,
            Self::InconsistentPolicy(_) => ReturnCode::InconsistentPolicy,
            Self::AlreadyDeleted(_) => ReturnCode::AlreadyDeleted,
            Self::Timeout(_) => ReturnCode::Timeout,
            Self::NoData(_) => ReturnCode::NoData,
            Self::IllegalOperation(_) => ReturnCode::IllegalOperation,
            Self::NotAllowedBySecurity(_) => ReturnCode::NotAllowedBySecurity,
        }
    }

    /// What could not be done at once is not done, as it may not wait: see
    /// [`Deadline::Passed`](crate::time::Deadline::Passed).
    pub(crate) const fn would_block() -> Self {
        Self::Timeout(String::new())
    }

    /// Whether it is [`would_block`](Self::would_block). All others have a text.
    pub(crate) const fn is_would_block(&self) -> bool {
        matches!(self, Self::Timeout(text) if text.is_empty())
    }

    /// The text without the name of the code, to be a part of another error's.
    pub(crate) fn reason(&self) -> &str {
        match self {
            Self::Error(text)
            | Self::Unsupported(text)
            | Self::BadParameter(text)
            | Self::PreconditionNotMet(text)
            | Self::OutOfResources(text)
            | Self::NotEnabled(text)
            | Self::ImmutablePolicy(text)
            | Self::InconsistentPolicy(text)
            | Self::AlreadyDeleted(text)
            | Self::Timeout(text)
            | Self::IllegalOperation(text)
            | Self::NotAllowedBySecurity(text) => text,
            Self::NoData(text) => text,
        }
    }

    /// The same error, where `place` stands before its text.
    pub(crate) fn at(self, place: &spindle_dds_qos::Location) -> Self {
        let text = format!("{place}: {}", self.reason());
        match self {
            Self::Error(_) | Self::NoData(_) => Self::Error(text),
            Self::Unsupported(_) => Self::Unsupported(text),
            Self::BadParameter(_) => Self::BadParameter(text),
            Self::PreconditionNotMet(_) => Self::PreconditionNotMet(text),
            Self::OutOfResources(_) => Self::OutOfResources(text),
            Self::NotEnabled(_) => Self::NotEnabled(text),
            Self::ImmutablePolicy(_) => Self::ImmutablePolicy(text),
            Self::InconsistentPolicy(_) => Self::InconsistentPolicy(text),
            Self::AlreadyDeleted(_) => Self::AlreadyDeleted(text),
            Self::Timeout(_) => Self::Timeout(text),
            Self::IllegalOperation(_) => Self::IllegalOperation(text),
            Self::NotAllowedBySecurity(_) => Self::NotAllowedBySecurity(text),
        }
    }

    /// Whether it is NO_DATA.
    pub const fn is_no_data(&self) -> bool {
        matches!(self, Self::NoData(_))
    }

    /// Whether it is TIMEOUT.
    pub const fn is_timeout(&self) -> bool {
        matches!(self, Self::Timeout(_))
    }
}

impl From<spindle_dds_qos::Inconsistent> for Error {
    fn from(found: spindle_dds_qos::Inconsistent) -> Self {
        Self::InconsistentPolicy(found.to_string())
    }
}

impl From<spindle_dds_qos::UnsupportedPolicy> for Error {
    fn from(found: spindle_dds_qos::UnsupportedPolicy) -> Self {
        Self::Unsupported(found.to_string())
    }
}

impl From<spindle_dds_qos::ImmutablePolicy> for Error {
    fn from(found: spindle_dds_qos::ImmutablePolicy) -> Self {
        Self::ImmutablePolicy(found.to_string())
    }
}

impl From<spindle_dds_idl_runtime::CdrError> for Error {
    #[cold]
    fn from(found: spindle_dds_idl_runtime::CdrError) -> Self {
        use spindle_dds_idl_runtime::CdrError;
        match found {
            CdrError::Full { .. } | CdrError::TooLong { .. } => {
                Self::OutOfResources(found.to_string())
            }
            _ => Self::BadParameter(found.to_string()),
        }
    }
}

/// The standard's `ReturnCode_t` (DDS 1.4 §2.3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i32)]
pub enum ReturnCode {
    /// `RETCODE_OK`.
    Ok = 0,
    /// `RETCODE_ERROR`.
    Error = 1,
    /// `RETCODE_UNSUPPORTED`.
    Unsupported = 2,
    /// `RETCODE_BAD_PARAMETER`.
    BadParameter = 3,
    /// `RETCODE_PRECONDITION_NOT_MET`.
    PreconditionNotMet = 4,
    /// `RETCODE_OUT_OF_RESOURCES`.
    OutOfResources = 5,
    /// `RETCODE_NOT_ENABLED`.
    NotEnabled = 6,
    /// `RETCODE_IMMUTABLE_POLICY`.
    ImmutablePolicy = 7,
    /// `RETCODE_INCONSISTENT_POLICY`.
    InconsistentPolicy = 8,
    /// `RETCODE_ALREADY_DELETED`.
    AlreadyDeleted = 9,
    /// `RETCODE_TIMEOUT`.
    Timeout = 10,
    /// `RETCODE_NO_DATA`.
    NoData = 11,
    /// `RETCODE_ILLEGAL_OPERATION`.
    IllegalOperation = 12,
    /// `RETCODE_NOT_ALLOWED_BY_SECURITY`, which DDS Security 1.1 adds.
    NotAllowedBySecurity = 1000,
}

impl ReturnCode {
    /// The code of a result.
    pub const fn of<T>(result: &Result<T>) -> Self {
        match result {
            Ok(_) => Self::Ok,
            Err(error) => error.return_code(),
        }
    }

    /// The number.
    pub const fn value(self) -> i32 {
        self as i32
    }
}

impl fmt::Display for ReturnCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "OK",
            Self::Error => "ERROR",
            Self::Unsupported => "UNSUPPORTED",
            Self::BadParameter => "BAD_PARAMETER",
            Self::PreconditionNotMet => "PRECONDITION_NOT_MET",
            Self::OutOfResources => "OUT_OF_RESOURCES",
            Self::NotEnabled => "NOT_ENABLED",
            Self::ImmutablePolicy => "IMMUTABLE_POLICY",
            Self::InconsistentPolicy => "INCONSISTENT_POLICY",
            Self::AlreadyDeleted => "ALREADY_DELETED",
            Self::Timeout => "TIMEOUT",
            Self::NoData => "NO_DATA",
            Self::IllegalOperation => "ILLEGAL_OPERATION",
            Self::NotAllowedBySecurity => "NOT_ALLOWED_BY_SECURITY",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_are_the_standards() {
        assert_eq!(ReturnCode::Ok.value(), 0);
        assert_eq!(ReturnCode::IllegalOperation.value(), 12);
        // `RETCODE_NOT_ALLOWED_BY_SECURITY` of DDS Security 1.1, which is not the next one.
        assert_eq!(ReturnCode::NotAllowedBySecurity.value(), 1000);
    }
}
