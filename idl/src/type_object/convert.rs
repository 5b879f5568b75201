//! Conversion of a declaration of the model to one of the graph.

use spindle_dds_xtypes::graph::{self, Definition, Name};
use spindle_dds_xtypes::object::AnnotationValue;
use spindle_dds_xtypes::{Bounded, Value as Data};

use crate::model::{
    Alias, BitField, Bitmask, Bitset, Branch, Element, Enum, Extensibility, Member, Model,
    Primitive, Range, Struct, TryConstruct, Type, TypeDecl, TypeId, TypeKind, Union, Value,
};

/// Converts declarations whose parts are all representable.
pub(super) struct Converter<'m> {
    pub(super) model: &'m Model,
    pub(super) indices: &'m [Option<graph::TypeIndex>],
    /// The index of each annotation in the graph.
    pub(super) annotations: &'m [Option<graph::TypeIndex>],
}

/// A label as the 32 bits of a `TypeObject`.
pub(super) fn label(model: &Model, value: &Value) -> Option<i32> {
    match value {
        Value::Integer(number) => i32::try_from(*number).ok(),
        Value::Boolean(value) => Some(i32::from(*value)),
        Value::Char(byte) => Some(i32::from(*byte)),
        Value::WChar(unit) => Some(i32::from(*unit)),
        Value::Enum(id, index) => match &model.types.get(id.0)?.kind {
            TypeKind::Enum(inner) => inner.literals.get(*index).map(|literal| literal.value),
            _ => None,
        },
        Value::Float(_) | Value::Float128(_) | Value::Fixed { .. } | Value::String(_) => None,
    }
}

const fn primitive(primitive: Primitive) -> graph::Primitive {
    match primitive {
        Primitive::Boolean => graph::Primitive::Boolean,
        Primitive::Octet => graph::Primitive::Byte,
        Primitive::Char => graph::Primitive::Char8,
        Primitive::WChar => graph::Primitive::Char16,
        Primitive::Int8 => graph::Primitive::Int8,
        Primitive::UInt8 => graph::Primitive::UInt8,
        Primitive::Int16 => graph::Primitive::Int16,
        Primitive::UInt16 => graph::Primitive::UInt16,
        Primitive::Int32 => graph::Primitive::Int32,
        Primitive::UInt32 => graph::Primitive::UInt32,
        Primitive::Int64 => graph::Primitive::Int64,
        Primitive::UInt64 => graph::Primitive::UInt64,
        Primitive::Float32 => graph::Primitive::Float32,
        Primitive::Float64 => graph::Primitive::Float64,
        Primitive::Float128 => graph::Primitive::Float128,
    }
}

const fn extensibility(extensibility: Extensibility) -> graph::Extensibility {
    match extensibility {
        Extensibility::Final => graph::Extensibility::Final,
        Extensibility::Appendable => graph::Extensibility::Appendable,
        Extensibility::Mutable => graph::Extensibility::Mutable,
    }
}

const fn try_construct(try_construct: TryConstruct) -> graph::TryConstruct {
    match try_construct {
        TryConstruct::Discard => graph::TryConstruct::Discard,
        TryConstruct::UseDefault => graph::TryConstruct::UseDefault,
        TryConstruct::Trim => graph::TryConstruct::Trim,
    }
}

impl Converter<'_> {
    /// The definition; `None` for a type that is not representable.
    pub(super) fn definition(&self, decl: &TypeDecl) -> Option<Definition> {
        Some(match &decl.kind {
            TypeKind::Struct(structure) => Definition::Struct(self.structure(structure)?),
            TypeKind::Union(union) => Definition::Union(self.union(union)?),
            TypeKind::Enum(enumeration) => Definition::Enum(self.enumeration(enumeration)),
            TypeKind::Bitmask(bitmask) => Definition::Bitmask(self.bitmask(bitmask)),
            TypeKind::Bitset(bitset) => Definition::Bitset(self.bitset(bitset)),
            TypeKind::Alias(alias) => Definition::Alias(self.alias(alias)?),
            TypeKind::Native => return None,
        })
    }

    fn index(&self, id: TypeId) -> Option<graph::TypeIndex> {
        self.indices.get(id.0).copied().flatten()
    }

    pub(super) fn ty(&self, ty: &Type) -> Option<graph::Type> {
        Some(match ty {
            Type::Primitive(one) => graph::Type::Primitive(primitive(*one)),
            Type::String { bound } => graph::Type::String8(*bound),
            Type::WString { bound } => graph::Type::String16(*bound),
            Type::Sequence { element, bound } => graph::Type::Sequence {
                element: self.element(element)?,
                bound: *bound,
            },
            Type::Array {
                element,
                dimensions,
            } => graph::Type::Array {
                element: self.element(element)?,
                dimensions: dimensions.clone(),
            },
            Type::Map { key, value, bound } => graph::Type::Map {
                key: self.element(key)?,
                value: self.element(value)?,
                bound: *bound,
            },
            Type::Named(id) => graph::Type::Declared(self.index(*id)?),
            Type::Fixed { .. } | Type::Interface(_) => return None,
        })
    }

    fn element(&self, element: &Element) -> Option<Box<graph::Element>> {
        Some(Box::new(graph::Element {
            ty: self.ty(&element.ty)?,
            try_construct: try_construct(element.try_construct),
            external: element.external,
        }))
    }

    fn alias(&self, alias: &Alias) -> Option<graph::Alias> {
        let (unit, range) = self.own(alias.unit.as_ref(), &alias.range, &alias.ty);
        Some(graph::Alias {
            ty: self.ty(&alias.ty)?,
            unit,
            range,
            custom: Vec::new(),
        })
    }

    /// Annotations of a use of a type that its typedef does not already have.
    fn own(
        &self,
        unit: Option<&String>,
        range: &Range,
        ty: &Type,
    ) -> (Option<String>, graph::Range) {
        let alias = match ty {
            Type::Named(id) => self.model.types.get(id.0).map(|decl| &decl.kind),
            _ => None,
        };
        let (unit, range) = match alias {
            Some(TypeKind::Alias(alias)) => (
                unit.filter(|unit| alias.unit.as_ref() != Some(*unit)),
                Some(range).filter(|range| alias.range != **range),
            ),
            _ => (unit, Some(range)),
        };
        let range = range.and_then(|range| Some((range, self.number(ty)?)));
        let range = range.map_or_else(graph::Range::default, |(range, number)| graph::Range {
            min: range.min.as_ref().and_then(|value| limit(number, value)),
            max: range.max.as_ref().and_then(|value| limit(number, value)),
        });
        (unit.cloned(), range)
    }

    /// The primitive to which a range applies: the type, or its elements.
    fn number(&self, ty: &Type) -> Option<Primitive> {
        match ty {
            Type::Primitive(primitive) => Some(*primitive),
            Type::Sequence { element, .. } | Type::Array { element, .. } => {
                self.number(&element.ty)
            }
            Type::Map { value, .. } => self.number(&value.ty),
            Type::Named(id) => match &self.model.types.get(id.0)?.kind {
                TypeKind::Alias(alias) => self.number(&alias.ty),
                _ => None,
            },
            _ => None,
        }
    }

    fn structure(&self, structure: &Struct) -> Option<graph::Struct> {
        let own = structure.members.get(structure.inherited..)?;
        let serialized = own.iter().filter(|member| !member.non_serialized);
        let base = match structure.base {
            Some(base) => Some(self.index(base)?),
            None => None,
        };
        Some(graph::Struct {
            extensibility: extensibility(structure.extensibility),
            nested: structure.nested,
            autoid_hash: structure.autoid_hash,
            base,
            members: serialized
                .map(|one| self.member(one))
                .collect::<Option<_>>()?,
        })
    }

    fn member(&self, member: &Member) -> Option<graph::Member> {
        let (unit, range) = self.own(member.unit.as_ref(), &member.range, &member.ty);
        Some(graph::Member {
            name: Name::from(member.name.as_str()),
            id: member.id,
            ty: self.ty(&member.ty)?,
            key: member.key,
            optional: member.optional,
            must_understand: member.must_understand && !member.key,
            external: member.external,
            try_construct: try_construct(member.try_construct),
            unit,
            range,
            hash_id: member.hash_id.clone(),
            custom: self.applied(&member.custom),
            default: self.default(member.default.as_ref(), &member.ty),
        })
    }

    /// A default as a dynamic value.
    fn default(&self, value: Option<&Value>, ty: &Type) -> Option<Data> {
        let mut ty = ty;
        while let Type::Named(id) = ty
            && let TypeKind::Alias(alias) = &self.model.types.get(id.0)?.kind
        {
            ty = &alias.ty;
        }
        match (value?, ty) {
            (Value::String(text), _) => Some(Data::Text(text.clone())),
            (Value::Enum(id, index), _) => match &self.model.types.get(id.0)?.kind {
                TypeKind::Enum(inner) => Some(Data::Enum(inner.literals.get(*index)?.value)),
                _ => None,
            },
            (Value::Integer(bits), Type::Named(_)) => Some(Data::Bits(u64::try_from(*bits).ok()?)),
            (value, Type::Primitive(primitive)) => {
                limit(*primitive, value).and_then(|value| value.to_value())
            }
            _ => None,
        }
    }

    fn union(&self, union: &Union) -> Option<graph::Union> {
        let discriminator = &union.discriminator;
        Some(graph::Union {
            extensibility: extensibility(union.extensibility),
            nested: union.nested,
            autoid_hash: union.autoid_hash,
            discriminator: graph::Discriminator {
                ty: self.ty(&discriminator.ty)?,
                key: discriminator.key,
                try_construct: try_construct(discriminator.try_construct),
                default: self.default(discriminator.default.as_ref(), &discriminator.ty),
                annotations: graph::Annotations {
                    verbatim: None,
                    custom: self.applied(&discriminator.custom),
                },
            },
            branches: union
                .branches
                .iter()
                .map(|branch| self.branch(branch))
                .collect::<Option<_>>()?,
        })
    }

    fn branch(&self, branch: &Branch) -> Option<graph::Branch> {
        let labels = branch.labels.iter().map(|value| label(self.model, value));
        Some(graph::Branch {
            labels: labels.collect::<Option<_>>()?,
            default: branch.default,
            member: self.member(&branch.member)?,
        })
    }

    fn enumeration(&self, enumeration: &Enum) -> graph::Enum {
        let literals = enumeration.literals.iter().enumerate();
        let literals = literals.map(|(index, literal)| graph::Literal {
            name: Name::from(literal.name.as_str()),
            value: literal.value,
            default: index == enumeration.default_literal,
            custom: self.applied(&literal.custom),
        });
        graph::Enum {
            bit_bound: u16::from(enumeration.bit_bound),
            extensibility: Some(extensibility(enumeration.extensibility)),
            ignore_literal_names: enumeration.ignore_literal_names,
            literals: literals.collect(),
        }
    }

    fn bitmask(&self, bitmask: &Bitmask) -> graph::Bitmask {
        let flags = bitmask.flags.iter().map(|flag| graph::Flag {
            name: Name::from(flag.name.as_str()),
            position: u16::from(flag.position),
            custom: self.applied(&flag.custom),
        });
        graph::Bitmask {
            bit_bound: u16::from(bitmask.bit_bound),
            extensibility: Some(extensibility(bitmask.extensibility)),
            flags: flags.collect(),
        }
    }

    fn bitset(&self, bitset: &Bitset) -> graph::Bitset {
        let field = |field: &BitField| graph::Field {
            name: Name::from(field.name.as_str()),
            position: u16::from(field.offset),
            bits: field.bits,
            holder: primitive(field.ty),
            custom: self.applied(&field.custom),
        };
        graph::Bitset {
            fields: bitset.fields.iter().map(field).collect(),
        }
    }
}

/// A limit of a range as a value of its type.
pub(super) fn limit(primitive: Primitive, value: &Value) -> Option<AnnotationValue> {
    let number = match value {
        Value::Integer(number) => *number,
        Value::Boolean(value) => return Some(AnnotationValue::Boolean(*value)),
        Value::Char(byte) => return Some(AnnotationValue::Char8(*byte)),
        Value::WChar(unit) => return Some(AnnotationValue::Char16(*unit)),
        Value::Float(value) => {
            return Some(match primitive {
                Primitive::Float32 => AnnotationValue::Float32((*value as f32).to_bits()),
                _ => AnnotationValue::Float64(value.to_bits()),
            });
        }
        Value::Float128(bits) => return Some(AnnotationValue::Float128(bits.to_le_bytes())),
        Value::String(text) => return Some(AnnotationValue::String8(Bounded(text.clone()))),
        Value::Fixed { .. } | Value::Enum(..) => return None,
    };
    Some(match primitive {
        Primitive::Octet => AnnotationValue::Byte(u8::try_from(number).ok()?),
        Primitive::Int8 => AnnotationValue::Int8(i8::try_from(number).ok()?),
        Primitive::UInt8 => AnnotationValue::UInt8(u8::try_from(number).ok()?),
        Primitive::Int16 => AnnotationValue::Int16(i16::try_from(number).ok()?),
        Primitive::UInt16 => AnnotationValue::UInt16(u16::try_from(number).ok()?),
        Primitive::Int32 => AnnotationValue::Int32(i32::try_from(number).ok()?),
        Primitive::UInt32 => AnnotationValue::UInt32(u32::try_from(number).ok()?),
        Primitive::Int64 => AnnotationValue::Int64(i64::try_from(number).ok()?),
        Primitive::UInt64 => AnnotationValue::UInt64(u64::try_from(number).ok()?),
        Primitive::Boolean
        | Primitive::Char
        | Primitive::WChar
        | Primitive::Float32
        | Primitive::Float64
        | Primitive::Float128 => return None,
    })
}
