//! Key hashes: the type decides whether a key can be longer than the hash.

use super::plan::{Declared, Members, Plan, bits, enum_size, word_size};
use crate::graph::{Member, Type};
use crate::limits::DEPTH_MAX;

/// Bytes of a key hash: longer keys are digested.
const HASH: usize = 16;

/// More elements make a key too long, or take no bytes.
const ELEMENTS_MAX: u32 = 2 * HASH as u32;

/// The end of the longest key in big endian XCDR2; `None` if it exceeds the hash.
struct Longest<'p> {
    plan: &'p Plan,
    end: usize,
}

impl Plan {
    /// Largest size in bytes of the key of a structure or union; `None` for more than 16.
    pub(super) fn key_size_max(&self, ty: &Type) -> Option<usize> {
        let mut longest = Longest { plan: self, end: 0 };
        longest.add(ty, DEPTH_MAX)?;
        Some(longest.end)
    }

    /// Whether a type has a key of its own.
    pub(super) fn has_key(&self, ty: &Type) -> bool {
        let Type::Declared(index) = self.resolve(ty) else {
            return false;
        };
        match self.declared(*index) {
            Some(Declared::Struct(_, members)) => members.iter().any(|member| member.key),
            Some(Declared::Union(_, union)) => union.discriminator.key,
            _ => false,
        }
    }
}

impl Longest<'_> {
    fn primitives(&mut self, size: usize, count: usize) -> Option<()> {
        if count > 0 && size > 0 {
            self.end = self.end.checked_next_multiple_of(size.clamp(1, 4))?;
            self.end = self.end.checked_add(size.checked_mul(count)?)?;
        }
        (self.end <= HASH).then_some(())
    }

    fn repeat(&mut self, ty: &Type, count: u32, depth: usize) -> Option<()> {
        (0..count.min(ELEMENTS_MAX)).try_for_each(|_| self.add(ty, depth))
    }

    fn delimiter(&mut self, plain: bool) -> Option<()> {
        match plain {
            true => Some(()),
            false => self.primitives(4, 1),
        }
    }

    fn add(&mut self, ty: &Type, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        let plan = self.plan;
        match plan.resolve(ty) {
            Type::Primitive(primitive) => self.primitives(primitive.size(), 1),
            Type::String8(bound) => {
                self.primitives(4, 1)?;
                self.primitives(1, (*bound)? as usize + 1)
            }
            Type::String16(bound) => {
                self.primitives(4, 1)?;
                self.primitives(2, (*bound)? as usize)
            }
            Type::Sequence { element, bound } => {
                self.delimiter(plan.primitive(&element.ty).is_some())?;
                self.primitives(4, 1)?;
                self.repeat(&element.ty, (*bound)?, depth)
            }
            Type::Array {
                element,
                dimensions,
            } => {
                self.delimiter(plan.primitive(&element.ty).is_some())?;
                let count = dimensions.iter().copied().fold(1, u32::saturating_mul);
                self.repeat(&element.ty, count, depth)
            }
            Type::Map { key, value, bound } => {
                self.delimiter(plan.plain_entries(&key.ty, &value.ty))?;
                self.primitives(4, 1)?;
                (0..(*bound)?.min(ELEMENTS_MAX)).try_for_each(|_| {
                    self.add(&key.ty, depth)?;
                    self.add(&value.ty, depth)
                })
            }
            Type::Declared(index) => match plan.declared(*index)? {
                Declared::Enum(one) => self.primitives(enum_size(one), 1),
                Declared::Bitmask(one) => self.primitives(word_size(one.bit_bound), 1),
                Declared::Bitset(one) => self.primitives(word_size(bits(one)), 1),
                Declared::Struct(_, members) => self.members(members, depth),
                Declared::Union(_, union) => self.add(&union.discriminator.ty, depth),
            },
        }
    }

    fn members(&mut self, members: &Members, depth: usize) -> Option<()> {
        let mut keys: Vec<&Member> = members.iter().filter(|one| members.is_key(one)).collect();
        keys.sort_by_key(|member| member.id);
        keys.into_iter().try_for_each(|member| {
            if member.optional {
                self.primitives(1, 1)?;
            }
            self.add(&member.ty, depth)
        })
    }
}
