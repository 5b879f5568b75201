//! Selections of members to write: all, or the key.

/// The members of a structure that are written.
#[derive(Hash, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Members {
    /// All of them.
    All,
    /// The key members, laid out as if there were no others.
    Key,
    /// The key members by ascending id, as if every structure were final.
    KeyHash,
}

impl Members {
    /// Whether a member is written.
    #[inline]
    pub const fn includes(self, key: bool) -> bool {
        key || matches!(self, Self::All)
    }
}

/// The selection of an [`Encoder`](super::Encoder) as a type.
pub trait Selection: Copy + std::fmt::Debug {
    /// The selection.
    const MEMBERS: Members;
}

/// [`Members::All`].
#[derive(Debug, Clone, Copy)]
pub struct AllMembers;
/// [`Members::Key`].
#[derive(Debug, Clone, Copy)]
pub struct KeyMembers;
/// [`Members::KeyHash`].
#[derive(Debug, Clone, Copy)]
pub struct HashMembers;

impl Selection for AllMembers {
    const MEMBERS: Members = Members::All;
}
impl Selection for KeyMembers {
    const MEMBERS: Members = Members::Key;
}
impl Selection for HashMembers {
    const MEMBERS: Members = Members::KeyHash;
}
