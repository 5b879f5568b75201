//! Data representations and their encapsulation ids.

use crate::error::CdrError;

/// XTypes 1.3 §7.2.2.4.1: how a type may evolve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Extensibility {
    /// `@final`: never changes.
    Final,
    /// `@appendable`: members may be added at the end.
    Appendable,
    /// `@mutable`: members are found by id.
    Mutable,
}

/// The data representations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Representation {
    /// XCDR version 1: classic CDR, aligned to at most 8.
    #[default]
    Xcdr1,
    /// XCDR version 2: aligned to at most 4, with delimiters.
    Xcdr2,
}

impl Representation {
    /// The largest alignment.
    pub const fn align_max(self) -> usize {
        match self {
            Self::Xcdr1 => 8,
            Self::Xcdr2 => 4,
        }
    }
}

/// Byte order of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Most significant byte first.
    Big,
    /// Least significant byte first.
    Little,
}

/// Encapsulation id of RTPS 2.5 §10.5. The body follows without the four bytes
/// of the encapsulation header: the id travels in the message header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Encapsulation(pub u16);

impl Encapsulation {
    /// XCDR1, final or appendable, big endian.
    pub const CDR_BE: Self = Self(0x0000);
    /// XCDR1, final or appendable, little endian.
    pub const CDR_LE: Self = Self(0x0001);
    /// XCDR1, mutable, big endian.
    pub const PL_CDR_BE: Self = Self(0x0002);
    /// XCDR1, mutable, little endian.
    pub const PL_CDR_LE: Self = Self(0x0003);
    /// XCDR2, final, big endian.
    pub const CDR2_BE: Self = Self(0x0006);
    /// XCDR2, final, little endian.
    pub const CDR2_LE: Self = Self(0x0007);
    /// XCDR2, appendable, big endian.
    pub const D_CDR2_BE: Self = Self(0x0008);
    /// XCDR2, appendable, little endian.
    pub const D_CDR2_LE: Self = Self(0x0009);
    /// XCDR2, mutable, big endian.
    pub const PL_CDR2_BE: Self = Self(0x000a);
    /// XCDR2, mutable, little endian.
    pub const PL_CDR2_LE: Self = Self(0x000b);

    /// The id with which samples of a type with this extensibility are written.
    pub const fn of(extensibility: Extensibility, representation: Representation) -> Self {
        match (representation, extensibility) {
            (Representation::Xcdr1, Extensibility::Final | Extensibility::Appendable) => {
                Self::CDR_LE
            }
            (Representation::Xcdr1, Extensibility::Mutable) => Self::PL_CDR_LE,
            (Representation::Xcdr2, Extensibility::Final) => Self::CDR2_LE,
            (Representation::Xcdr2, Extensibility::Appendable) => Self::D_CDR2_LE,
            (Representation::Xcdr2, Extensibility::Mutable) => Self::PL_CDR2_LE,
        }
    }

    /// The same representation in the given byte order.
    #[must_use]
    pub const fn with_order(self, order: ByteOrder) -> Self {
        match order {
            ByteOrder::Big => Self(self.0 & !1),
            ByteOrder::Little => Self(self.0 | 1),
        }
    }

    /// Representation and byte order.
    ///
    /// # Errors
    /// [`CdrError::UnknownEncapsulation`] when the id is not one of the ten above.
    pub const fn decompose(self) -> Result<(Representation, ByteOrder), CdrError> {
        match self.0 {
            0x0000..=0x0003 => Ok((Representation::Xcdr1, self.order())),
            0x0006..=0x000b => Ok((Representation::Xcdr2, self.order())),
            id => Err(CdrError::UnknownEncapsulation { id }),
        }
    }

    /// Byte order, also for an id that is not one of the ten above.
    #[inline(always)]
    pub const fn order(self) -> ByteOrder {
        match self.0 & 1 {
            1 => ByteOrder::Little,
            _ => ByteOrder::Big,
        }
    }

    /// Representation, for a type of this extensibility.
    ///
    /// # Errors
    /// As for [`decompose`](Self::decompose); also [`CdrError::EncapsulationMismatch`] when the
    /// id belongs to another extensibility.
    #[inline(always)]
    pub fn representation(self, extensibility: Extensibility) -> Result<Representation, CdrError> {
        // The last bit of the id is the byte order; samples are written little endian.
        let is = |representation| Self::of(extensibility, representation).0 == self.0 | 1;
        if is(Representation::Xcdr1) {
            Ok(Representation::Xcdr1)
        } else if is(Representation::Xcdr2) {
            Ok(Representation::Xcdr2)
        } else {
            Err(self.unfit())
        }
    }

    /// The error for an id that does not match the type.
    #[cold]
    fn unfit(self) -> CdrError {
        match self.decompose() {
            Ok(_) => CdrError::EncapsulationMismatch { id: self.0 },
            Err(error) => error,
        }
    }
}
