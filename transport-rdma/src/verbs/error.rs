//! Why there is no RDMA at a station.

use std::io;

/// Why a station cannot use RDMA.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RdmaError {
    /// There is none: nothing is wrong with that unless RDMA is required.
    #[error("this host has no RDMA device")]
    NoDevice,
    /// Not even the means to look for one.
    #[error("this program was built without the feature `verbs`, which RDMA needs")]
    NotBuilt,
    /// No device of the name that was asked for.
    #[error("there is no RDMA device {name:?}; there are: {there}")]
    NoSuchDevice {
        /// As it was asked for.
        name: String,
        /// Names of those that there are.
        there: String,
    },
    /// There is a device, but it cannot be used as it was asked for, or as it stands.
    #[error("the RDMA device {device} cannot be used: {problem}")]
    Unfit {
        /// Which.
        device: String,
        /// Outcome is wrong, and what would be right.
        problem: String,
    },
    /// Memory cannot be registered with the device.
    #[error(
        "the RDMA device {device} cannot pin {wanted} bytes of memory ({source}): raise the limit \
         on locked memory, which is {limit} (`ulimit -l`, LimitMEMLOCK=)"
    )]
    Memlock {
        /// Which.
        device: String,
        /// How much was tried.
        wanted: usize,
        /// The limit, in words.
        limit: String,
        /// Outcome the kernel said.
        source: io::Error,
    },
    /// A call failed that should not.
    #[error("{what}: {source}")]
    System {
        /// Outcome was tried.
        what: &'static str,
        /// Outcome the system said.
        source: io::Error,
    },
}
