//! The reference by which an endpoint announces a type that stands in notes.

use std::collections::BTreeMap;

use spindle_dds_core::membership::Note;

use super::protocol_violation::{ProtocolViolation, TYPE_LEN_MAX};

/// Bits of a note's number below the number of the type: the index of the piece.
pub(super) const TYPE_SHIFT: u32 = 16;

/// Refers to a type in the notes of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LargeTypeRef {
    /// The number of the type among those of its member.
    pub(super) ty: u32,
    /// The number of its pieces.
    pub(super) pieces: u16,
}

impl LargeTypeRef {
    /// The form that is announced.
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

    /// The numbers of its notes, in the order of the pieces.
    pub(super) fn numbers(self) -> impl Iterator<Item = u64> {
        (0..u64::from(self.pieces)).map(move |piece| u64::from(self.ty) << TYPE_SHIFT | piece)
    }

    /// Its pieces, from the notes of its member.
    pub(super) fn find(self, notes: &BTreeMap<u64, Note>) -> Result<Vec<Note>, ProtocolViolation> {
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
