//! Flags of members and types: XTypes 1.3 Annex B, `MemberFlag` and `TypeFlag`.

use spindle_dds_idl_runtime::encode::Encoder;
use spindle_dds_idl_runtime::{CdrError, Extensibility, Reader};

use crate::graph::TryConstruct;
use crate::wire::Wire;

/// Flags of a member, an element, a discriminator or a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MemberFlags(pub u16);

impl MemberFlags {
    /// `IS_EXTERNAL`.
    pub const EXTERNAL: Self = Self(1 << 2);
    /// `IS_OPTIONAL`.
    pub const OPTIONAL: Self = Self(1 << 3);
    /// `IS_MUST_UNDERSTAND`.
    pub const MUST_UNDERSTAND: Self = Self(1 << 4);
    /// `IS_KEY`.
    pub const KEY: Self = Self(1 << 5);
    /// `IS_DEFAULT`: the branch of a union, or the literal, that is the default.
    pub const DEFAULT: Self = Self(1 << 6);

    /// `TRY_CONSTRUCT1` and `TRY_CONSTRUCT2`.
    pub const fn of(try_construct: TryConstruct) -> Self {
        Self(match try_construct {
            TryConstruct::Discard => 1,
            TryConstruct::UseDefault => 2,
            TryConstruct::Trim => 3,
        })
    }

    /// These flags and another, if a condition holds.
    #[must_use]
    pub const fn with(self, flag: Self, condition: bool) -> Self {
        if condition {
            Self(self.0 | flag.0)
        } else {
            self
        }
    }

    /// Whether a flag is among them.
    pub const fn has(self, flag: Self) -> bool {
        self.0 & flag.0 != 0
    }

    /// The value of the first two bits; the invalid one counts as the default.
    pub const fn try_construct(self) -> TryConstruct {
        match self.0 & 3 {
            2 => TryConstruct::UseDefault,
            3 => TryConstruct::Trim,
            _ => TryConstruct::Discard,
        }
    }
}

/// Flags of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TypeFlags(pub u16);

impl TypeFlags {
    /// `IS_NESTED`.
    pub const NESTED: Self = Self(1 << 3);
    /// `IS_AUTOID_HASH`.
    pub const AUTOID_HASH: Self = Self(1 << 4);

    /// `IS_FINAL`, `IS_APPENDABLE` or `IS_MUTABLE`.
    pub const fn of(extensibility: Extensibility) -> Self {
        Self(match extensibility {
            Extensibility::Final => 1,
            Extensibility::Appendable => 2,
            Extensibility::Mutable => 4,
        })
    }

    /// These flags and another, if a condition holds.
    #[must_use]
    pub const fn with(self, flag: Self, condition: bool) -> Self {
        if condition {
            Self(self.0 | flag.0)
        } else {
            self
        }
    }

    /// Whether a flag is among them.
    pub const fn has(self, flag: Self) -> bool {
        self.0 & flag.0 != 0
    }

    /// The extensibility; `None` when no flag or more than one is set.
    pub const fn extensibility(self) -> Option<Extensibility> {
        match self.0 & 7 {
            1 => Some(Extensibility::Final),
            2 => Some(Extensibility::Appendable),
            4 => Some(Extensibility::Mutable),
            _ => None,
        }
    }
}

macro_rules! bitmask {
    ($($ty:ty),*) => {$(
        impl Wire for $ty {
            const PRIMITIVE: bool = true;

            fn put<E: Encoder>(&self, encoder: &mut E) -> Result<(), CdrError> {
                encoder.primitive(self.0)
            }

            fn get(reader: &mut Reader<'_>) -> Result<Self, CdrError> {
                reader.primitive().map(Self)
            }
        }
    )*};
}

bitmask!(MemberFlags, TypeFlags);
