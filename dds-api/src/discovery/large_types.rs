//! Types that are too long to be announced with an endpoint. They are put into the notes of
//! the view, in pieces, before the endpoint is announced, and removed with the last endpoint of
//! that type.
//!
//! ```text
//!   number of a note:  type << 16 | piece        an endpoint's type:  NOTED | type | pieces
//! ```
//!
//! Therefore every member can match an endpoint in the view that announces it, and all members
//! find the same matches: there are no requests and no waiting. The notes of a member disappear
//! with the member.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Weak};

use spindle_dds_core::membership::Note;

use super::large_type_ref::{LargeTypeRef, TYPE_SHIFT};
use super::protocol_violation::ProtocolViolation;
use super::type_announcement::AnnouncedType;

/// Length of a piece in bytes. Four pieces with their framing fit into one request.
pub(crate) const PIECE_LEN: usize = 15 << 10;
/// The types in the notes of this participant, and the endpoints that use them.
#[derive(Debug, Default)]
pub(crate) struct LargeTypes {
    entries: Vec<NotedType>,
    /// The number of the next type. Numbers are not reused.
    next_number: u32,
}

#[derive(Debug)]
struct NotedType {
    ty: Arc<AnnouncedType>,
    noted: LargeTypeRef,
    /// The numbers of the endpoints of this type. Never empty.
    users: BTreeSet<u64>,
}

impl LargeTypes {
    /// Adds an endpoint of this type. Returns the reference to announce, and the notes that
    /// have to be made before.
    pub(crate) fn put(
        &mut self,
        user: u64,
        ty: &Arc<AnnouncedType>,
    ) -> (LargeTypeRef, Vec<(u64, Note)>) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.ty == *ty) {
            entry.users.insert(user);
            return (entry.noted, Vec::new());
        }
        let (noted, notes) = cut(self.next_number, ty, PIECE_LEN);
        self.next_number += 1;
        self.entries.push(NotedType {
            ty: ty.clone(),
            noted,
            users: BTreeSet::from([user]),
        });
        (noted, notes)
    }

    /// Removes an endpoint. Returns the notes to be removed.
    pub(crate) fn remove(&mut self, user: u64) -> Vec<u64> {
        let mut gone = Vec::new();
        self.entries.retain_mut(|entry| {
            entry.users.remove(&user);
            let is_used = !entry.users.is_empty();
            if !is_used {
                gone.extend(entry.noted.numbers());
            }
            is_used
        });
        gone
    }

    /// The endpoints that use a note.
    pub(crate) fn users(&self, note: u64) -> Vec<u64> {
        let entries = self.entries.iter();
        let needs = entries.filter(|entry| u64::from(entry.noted.ty) == note >> TYPE_SHIFT);
        needs
            .flat_map(|entry| entry.users.iter().copied())
            .collect()
    }
}

/// Cuts a type into notes of `piece_len` bytes.
pub(crate) fn cut(
    number: u32,
    ty: &AnnouncedType,
    piece_len: usize,
) -> (LargeTypeRef, Vec<(u64, Note)>) {
    let pieces = ty.bytes().chunks(piece_len);
    // A type of at most `TYPE_LEN_MAX` bytes has about 70 pieces; only tests have more.
    let noted = LargeTypeRef {
        ty: number,
        pieces: u16::try_from(pieces.len()).unwrap_or(u16::MAX),
    };
    let notes = noted.numbers().zip(pieces);
    let notes = notes.map(|(number, piece)| (number, piece.into()));
    (noted, notes.collect())
}

/// Types that have been read from notes, valid or not. The key is the addresses of the pieces:
/// equal notes of several members share their memory.
#[derive(Debug, Default)]
pub(crate) struct LargeTypeCache(HashMap<Vec<usize>, CachedType>);

#[derive(Debug)]
struct CachedType {
    /// These weak references keep the allocations, so that no other note gets an address of
    /// the key.
    pieces: Vec<Weak<[u8]>>,
    ty: Result<Arc<AnnouncedType>, Arc<ProtocolViolation>>,
}

impl LargeTypeCache {
    /// Reads a type from the notes of a member.
    pub(crate) fn read(
        &mut self,
        noted: LargeTypeRef,
        notes: &BTreeMap<u64, Note>,
    ) -> Result<Arc<AnnouncedType>, ProtocolViolation> {
        let pieces = noted.find(notes)?;
        let addresses = pieces.iter().map(|piece| piece.as_ptr().addr()).collect();
        let cached = self.0.entry(addresses).or_insert_with(|| {
            let read = AnnouncedType::from_bytes(&pieces.concat());
            CachedType {
                pieces: pieces.iter().map(Arc::downgrade).collect(),
                ty: read.map(Arc::new).map_err(Arc::new),
            }
        });
        cached.ty.clone().map_err(ProtocolViolation::Noted)
    }

    /// Removes types whose notes are in no view.
    pub(crate) fn tidy(&mut self) {
        let in_view = |piece: &Weak<[u8]>| piece.strong_count() != 0;
        self.0.retain(|_, cached| cached.pieces.iter().all(in_view));
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
