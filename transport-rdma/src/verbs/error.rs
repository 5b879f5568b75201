//! Errors of setting up RDMA.

use std::io;

/// Why a station cannot use RDMA.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RdmaError {
    /// There is no device; an error only if RDMA is required.
    #[error("this host has no RDMA device")]
    NoDevice,
    /// RDMA is not compiled in.
    #[error("this program was built without the feature `verbs`, which RDMA needs")]
    NotBuilt,
    /// There is no device of the requested name.
    #[error("there is no RDMA device {name:?}; there are: {there}")]
    NoSuchDevice {
        /// The requested name.
        name: String,
        /// Names of the devices that exist.
        there: String,
    },
    /// The device cannot be used as requested, or in its present state.
    #[error("the RDMA device {device} cannot be used: {problem}")]
    Unfit {
        /// Its name.
        device: String,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// Memory cannot be registered with the device.
    #[error(
        "the RDMA device {device} cannot pin {wanted} bytes of memory ({source}): raise the limit \
         on locked memory, which is {limit} (`ulimit -l`, LimitMEMLOCK=)"
    )]
    Memlock {
        /// Its name.
        device: String,
        /// Number of bytes that was tried.
        wanted: usize,
        /// The limit, in bytes or `none`.
        limit: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A call failed unexpectedly.
    #[error("{what}: {source}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}
