//! Types that are too long to be announced with an endpoint: they are noted in the view, in
//! pieces, before the endpoint comes, and taken back with the last endpoint that has them.
//!
//! ```text
//!   number of a note:  type << 16 | piece        an endpoint's type:  NOTED | type | pieces
//! ```
//!
//! So an endpoint that a view has can be matched in that view, by everybody alike: there is
//! nothing to ask for and nobody to wait for, and who dies takes along what it noted.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Weak};

use spindle_dds_core::membership::Note;

use super::announcement::ProtocolViolation;
use super::type_announcement::{AnnouncedType, TYPE_LEN_MAX};

/// Bytes of a piece: four of them, each with what is said around it, are asked for at once.
pub(crate) const PIECE_LEN: usize = 15 << 10;
/// Where the number of a type stands in that of a note.
const TYPE_SHIFT: u32 = 16;

/// What stands for a noted type: its number among those of its member, and its pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LargeTypeRef {
    ty: u32,
    pieces: u16,
}

impl LargeTypeRef {
    /// As it is announced.
    pub(crate) fn to_bytes(self) -> [u8; 6] {
        let mut bytes = [0; 6];
        bytes[..4].copy_from_slice(&self.ty.to_le_bytes());
        bytes[4..].copy_from_slice(&self.pieces.to_le_bytes());
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, ProtocolViolation> {
        let (ty, rest) = bytes
            .split_first_chunk()
            .ok_or(ProtocolViolation::Truncated)?;
        let pieces = rest.try_into().map_err(|_| ProtocolViolation::Truncated)?;
        Ok(Self {
            ty: u32::from_le_bytes(*ty),
            pieces: u16::from_le_bytes(pieces),
        })
    }

    fn numbers(self) -> impl Iterator<Item = u64> {
        (0..u64::from(self.pieces)).map(move |piece| u64::from(self.ty) << TYPE_SHIFT | piece)
    }

    /// Its pieces, among the notes of its member.
    fn find(self, notes: &BTreeMap<u64, Note>) -> Result<Vec<Note>, ProtocolViolation> {
        let mut len = 0;
        let mut pieces = Vec::new();
        for number in self.numbers() {
            let piece = notes.get(&number).ok_or(ProtocolViolation::NotNoted)?;
            len += piece.len();
            if len > TYPE_LEN_MAX {
                return Err(ProtocolViolation::TooLong(len));
            }
            pieces.push(piece.clone());
        }
        Ok(pieces)
    }
}

/// What this participant has noted, and for which of its endpoints.
#[derive(Debug, Default)]
pub(crate) struct LargeTypes {
    pages: Vec<Page>,
    /// Types that there have been.
    count: u32,
}

#[derive(Debug)]
struct Page {
    ty: Arc<AnnouncedType>,
    noted: LargeTypeRef,
    users: BTreeSet<u64>,
}

impl LargeTypes {
    /// An endpoint has this type. Returns what stands for it, and what has to be noted first.
    pub(crate) fn put(
        &mut self,
        user: u64,
        ty: &Arc<AnnouncedType>,
    ) -> (LargeTypeRef, Vec<(u64, Note)>) {
        if let Some(page) = self.pages.iter_mut().find(|page| page.ty == *ty) {
            page.users.insert(user);
            return (page.noted, Vec::new());
        }
        let (noted, notes) = cut(self.count, ty, PIECE_LEN);
        self.count += 1;
        self.pages.push(Page {
            ty: ty.clone(),
            noted,
            users: BTreeSet::from([user]),
        });
        (noted, notes)
    }

    /// An endpoint is no more. Returns the notes to be taken back.
    pub(crate) fn remove(&mut self, user: u64) -> Vec<u64> {
        let mut gone = Vec::new();
        self.pages.retain_mut(|page| {
            page.users.remove(&user);
            let is_used = !page.users.is_empty();
            if !is_used {
                gone.extend(page.noted.numbers());
            }
            is_used
        });
        gone
    }

    /// The endpoints that need a note.
    pub(crate) fn users(&self, note: u64) -> Vec<u64> {
        let pages = self.pages.iter();
        let needs = pages.filter(|page| u64::from(page.noted.ty) == note >> TYPE_SHIFT);
        needs.flat_map(|page| page.users.iter().copied()).collect()
    }
}

/// A type in pieces of this length.
pub(crate) fn cut(
    number: u32,
    ty: &AnnouncedType,
    piece_len: usize,
) -> (LargeTypeRef, Vec<(u64, Note)>) {
    let pieces = ty.bytes().chunks(piece_len);
    let noted = LargeTypeRef {
        ty: number,
        // A type is as long as 70 pieces at most, or is made up for a test.
        pieces: u16::try_from(pieces.len()).unwrap_or(u16::MAX),
    };
    let notes = noted.numbers().zip(pieces);
    let notes = notes.map(|(number, piece)| (number, piece.into()));
    (noted, notes.collect())
}

/// LargeTypeRef types that have been read, good or bad: by their pieces, which are the same memory
/// if several members note the same.
#[derive(Debug, Default)]
pub(crate) struct LargeTypeCache(HashMap<Vec<usize>, Book>);

#[derive(Debug)]
struct Book {
    /// While these are here, no other note is where they were.
    pieces: Vec<Weak<[u8]>>,
    ty: Result<Arc<AnnouncedType>, Arc<ProtocolViolation>>,
}

impl LargeTypeCache {
    /// The type that stands in the notes of a member.
    pub(crate) fn read(
        &mut self,
        noted: LargeTypeRef,
        notes: &BTreeMap<u64, Note>,
    ) -> Result<Arc<AnnouncedType>, ProtocolViolation> {
        let pieces = noted.find(notes)?;
        let places = pieces.iter().map(|piece| piece.as_ptr().addr()).collect();
        let book = self.0.entry(places).or_insert_with(|| {
            let read = AnnouncedType::from_bytes(&pieces.concat());
            Book {
                pieces: pieces.iter().map(Arc::downgrade).collect(),
                ty: read.map(Arc::new).map_err(Arc::new),
            }
        });
        book.ty.clone().map_err(ProtocolViolation::Noted)
    }

    /// Forgets what no view has any more.
    pub(crate) fn tidy(&mut self) {
        let in_view = |piece: &Weak<[u8]>| piece.strong_count() != 0;
        self.0.retain(|_, book| book.pieces.iter().all(in_view));
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
