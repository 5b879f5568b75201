//! Bitmasks and bitsets: IDL 4.2 §7.4.13.4.3.

use std::collections::{HashMap, HashSet};

use super::annotations::Applied;
use super::scopes::ScopeId;
use super::standard::AnnotationTarget;
use super::targets::Target;
use super::types::Facts;
use super::{Resolver, copies};
use crate::ast;
use crate::model::{BitField, Bitmask, Bitset, Flag, Primitive, Type, TypeId, TypeKind};

/// Most bits of a bitmask or bitset.
const BITS_MAX: u8 = 64;

impl Resolver<'_> {
    pub(super) fn bitmask(
        &mut self,
        scope: ScopeId,
        definition: &ast::Definition,
        bitmask: &ast::Enum,
    ) -> Option<TypeId> {
        let applied = self.annotate(scope, AnnotationTarget::Bitmask, &definition.annotations);
        self.check_nested(scope, &applied);
        let errors = self.sink.error_count();
        let extensibility = self.extensibility_of_values(&applied, "a bitmask");
        let bit_bound = self.bit_bound(scope, &applied, BITS_MAX);
        let flags = self.flags(scope, bitmask, bit_bound);
        if bitmask.broken || self.sink.error_count() > errors {
            self.poison(scope, &bitmask.name);
            return None;
        }
        let kind = TypeKind::Bitmask(Bitmask {
            bit_bound,
            extensibility,
            flags,
        });
        let doc = applied.doc(&definition.doc);
        let facts = Facts::of_bytes(8);
        let id = self.add_type(scope, &bitmask.name, doc, applied, kind, facts)?;
        let names = bitmask
            .literals
            .iter()
            .map(|flag| flag.name.name.to_string());
        self.literals.insert(id, names.zip(0..).collect());
        Some(id)
    }

    fn flags(&mut self, scope: ScopeId, bitmask: &ast::Enum, bit_bound: u8) -> Vec<Flag> {
        let mut flags: Vec<Flag> = Vec::new();
        let mut names = HashSet::new();
        let mut positions = HashMap::new();
        let mut next = 0_i128;
        for flag in &bitmask.literals {
            let applied = self.annotate(scope, AnnotationTarget::Flag, &flag.annotations);
            let name = &flag.name;
            self.check_name_of_part(name, &bitmask.name);
            if !names.insert(name.name.to_ascii_lowercase()) {
                let message = format!("flag `{}` occurs twice in this bitmask", name.name);
                self.sink.error(name.span, message);
            }
            if let Some(value) = &flag.value {
                let message = "a flag of a bitmask cannot be given a value by `=`";
                let hint = format!("write `@position(...) {}`", name.name);
                self.sink.error_hint(value.span, message, hint);
            }
            let position = self.position(scope, &applied).unwrap_or(next);
            next = position + 1;
            let position = match u8::try_from(position) {
                Ok(position) if position < bit_bound => position,
                _ => {
                    let message = format!(
                        "the position {position} of `{}` is not below the bit bound of {bit_bound}",
                        name.name
                    );
                    let hint = "`@bit_bound` on the bitmask says how many bits it has";
                    self.sink.error_hint(name.span, message, hint);
                    continue;
                }
            };
            if let Some(other) = positions.insert(position, &name.name) {
                let message = format!(
                    "`{}` has the same position as `{other}`: {position}",
                    name.name
                );
                self.sink.error(name.span, message);
            }
            flags.push(Flag {
                name: name.name.to_string(),
                doc: applied.doc(&flag.doc),
                custom: applied.custom,
                position,
            });
        }
        flags
    }

    fn position(&mut self, scope: ScopeId, applied: &Applied<'_>) -> Option<i128> {
        let annotation = applied.get("position")?;
        let expr = self.required(annotation)?;
        self.evaluate_integer(scope, expr, &Target::of_primitive(Primitive::UInt16))
    }

    pub(super) fn bitset(
        &mut self,
        scope: ScopeId,
        definition: &ast::Definition,
        bitset: &ast::Bitset,
    ) -> Option<TypeId> {
        let applied = self.annotate(scope, AnnotationTarget::Bitset, &definition.annotations);
        self.check_nested(scope, &applied);
        let errors = self.sink.error_count();
        let mut built = Bitset {
            base: None,
            fields: Vec::new(),
            inherited: 0,
            bits: 0,
        };
        if let Some(name) = &bitset.base
            && let Some(id) = self.base_type(scope, name, "a bitset")
            && self.may_copy(self.bitset_bytes(id), name.span)
        {
            match self.types.get(id.0).map(|decl| &decl.kind) {
                Some(TypeKind::Bitset(base)) => {
                    built = base.clone();
                    built.inherited = built.fields.len();
                    built.base = Some(id);
                }
                _ => {
                    let message = format!("expected a bitset, but `{name}` is not one");
                    self.sink.error(name.span, message);
                }
            }
        }
        for field in &bitset.fields {
            for name in &field.names {
                self.check_name_of_part(name, &bitset.name);
            }
            self.bit_field(scope, field, &mut built);
        }
        if built.bits == 0 && self.sink.error_count() == errors {
            let message = format!("bitset `{}` has no bits", bitset.name.name);
            self.sink.error(bitset.name.span, message);
        }
        if bitset.broken || self.sink.error_count() > errors {
            self.poison(scope, &bitset.name);
            return None;
        }
        let doc = applied.doc(&definition.doc);
        let facts = Facts::of_bytes(8);
        let kind = TypeKind::Bitset(built);
        self.add_type(scope, &bitset.name, doc, applied, kind, facts)
    }

    fn bitset_bytes(&self, id: TypeId) -> usize {
        match self.types.get(id.0).map(|decl| &decl.kind) {
            Some(TypeKind::Bitset(base)) => {
                let fields = base.fields.iter();
                fields
                    .map(|field| {
                        let notes = copies::of_lines(&field.doc) + copies::of_custom(&field.custom);
                        100 + field.name.len() + notes
                    })
                    .sum()
            }
            _ => 0,
        }
    }

    fn bit_field(&mut self, scope: ScopeId, field: &ast::BitField, built: &mut Bitset) {
        let applied = self.annotate(scope, AnnotationTarget::BitField, &field.annotations);
        let doc = applied.doc(&field.doc);
        let target = Target::of_primitive(Primitive::UInt16);
        let width = self.evaluate_integer(scope, &field.bits, &target);
        let width = width.and_then(|width| match u8::try_from(width) {
            Ok(bits) if (1..=BITS_MAX).contains(&bits) => Some(bits),
            _ => {
                let message = format!("a bit field has 1 to {BITS_MAX} bits");
                self.sink.error(field.bits.span, message);
                None
            }
        });
        let ty = match (&field.ty, width) {
            (Some(spec), _) => self.field_type(scope, spec, width),
            (None, Some(bits)) => Some(smallest(bits)),
            (None, None) => None,
        };
        for name in &field.names {
            let same = |one: &&BitField| one.name.eq_ignore_ascii_case(&name.name);
            if let Some(other) = built.fields.iter().find(same) {
                let message = format!("bit field `{}` clashes with `{}`", name.name, other.name);
                self.sink.error(name.span, message);
            }
        }
        let (Some(bits), Some(ty)) = (width, ty) else {
            return;
        };
        // A gap has no name, but occupies bits.
        for at in 0..field.names.len().max(1) {
            let offset = built.bits;
            if bits > BITS_MAX - offset {
                let message = format!("the bitset has more than {BITS_MAX} bits");
                self.sink.error(field.bits.span, message);
                return;
            }
            built.bits += bits;
            if let Some(name) = field.names.get(at)
                && self.may_copy(copies::of_applied(&applied, &doc), name.span)
            {
                built.fields.push(BitField {
                    name: name.name.to_string(),
                    doc: doc.clone(),
                    custom: applied.custom.clone(),
                    offset,
                    bits,
                    ty,
                });
            }
        }
    }

    fn field_type(
        &mut self,
        scope: ScopeId,
        spec: &ast::TypeSpec,
        width: Option<u8>,
    ) -> Option<Primitive> {
        let ty = self.type_spec(scope, spec)?;
        let room = match self.without_aliases(&ty) {
            Type::Primitive(primitive) => room(primitive).map(|bits| (primitive, bits)),
            _ => None,
        };
        let Some((primitive, room)) = room else {
            let message = "a bit field is of an integer type, `octet` or `boolean`";
            self.sink.error(spec.span, message);
            return None;
        };
        if let Some(width) = width.filter(|width| *width > room) {
            let message = format!("{width} bits do not fit in this type: it has {room}");
            self.sink.error(spec.span, message);
            return None;
        }
        Some(primitive)
    }
}

/// The smallest type for so many bits.
fn smallest(bits: u8) -> Primitive {
    match bits {
        0..=1 => Primitive::Boolean,
        2..=8 => Primitive::UInt8,
        9..=16 => Primitive::UInt16,
        17..=32 => Primitive::UInt32,
        _ => Primitive::UInt64,
    }
}

/// The number of bits of each type that a field can have.
fn room(primitive: Primitive) -> Option<u8> {
    Some(match primitive {
        Primitive::Boolean => 1,
        Primitive::Octet | Primitive::Int8 | Primitive::UInt8 => 8,
        Primitive::Int16 | Primitive::UInt16 => 16,
        Primitive::Int32 | Primitive::UInt32 => 32,
        Primitive::Int64 | Primitive::UInt64 => 64,
        Primitive::Char
        | Primitive::WChar
        | Primitive::Float32
        | Primitive::Float64
        | Primitive::Float128 => return None,
    })
}
