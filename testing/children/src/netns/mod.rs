//! Hosts that are network namespaces of this machine.
//!
//! The namespaces have no names. A process holds them by descriptors, and those that it starts enter
//! them and end with it: so the kernel removes all of it, however the process ends.

mod namespace;
mod network;

pub use self::namespace::enter_by_path;
pub use self::network::{LINK, Network, NetworkError};

/// What a host's link does to the packets that the host sends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkDiscipline {
    /// A queueing discipline in the words of `tc`; `None` for the kernel's.
    pub words: Option<String>,
    /// Whether packets are as long as on the wire. Else the kernel hands over up to 64 KiB at once.
    pub is_unsegmented: bool,
}

impl LinkDiscipline {
    /// Whether the kernel needs netem for it.
    fn needs_netem(&self) -> bool {
        let words = self.words.as_deref();
        words.is_some_and(|words| words.starts_with("netem"))
    }
}
