//! From `TypeObject`s of either form to declarations.

use std::collections::HashSet;
use std::hash::Hash;

use super::TypeError;
use super::resolve::{Resolver, array};
use crate::graph::{
    Alias, Bitmask, Bitset, Branch, Definition, Discriminator, Element, Enum, Extensibility, Field,
    Flag, Literal, Member, Name, Primitive, Range, Struct, Type, Union,
};
use crate::object::{
    AliasType, ArrayType, BitmaskType, BitsetType, EnumeratedType, Form, MapType,
    MemberAnnotations, MemberFlags, SequenceType, StructType, TypeDefinition, TypeFlags,
    TypeIdentifier, UnionType,
};

type Declared = (Option<String>, Definition);

/// Why an object makes no declaration.
fn malformed(name: &Option<String>, reason: &'static str) -> TypeError {
    TypeError::Malformed {
        name: name.clone().unwrap_or_default(),
        reason,
    }
}

/// The element of a collection.
pub(super) fn element(ty: Type, flags: MemberFlags) -> Element {
    Element {
        ty,
        try_construct: flags.try_construct(),
        external: flags.has(MemberFlags::EXTERNAL),
    }
}

/// Whether no value comes twice.
pub(super) fn distinct<T: Hash + Eq>(values: impl Iterator<Item = T>) -> bool {
    let mut seen = HashSet::new();
    values.into_iter().all(|value| seen.insert(value))
}

impl Resolver {
    pub(super) fn definition<F: Form>(
        &mut self,
        definition: &TypeDefinition<F>,
    ) -> Result<Declared, TypeError> {
        match definition {
            TypeDefinition::Alias(alias) => self.alias(alias),
            TypeDefinition::Struct(structure) => self.structure(structure),
            TypeDefinition::Union(union) => self.union(union),
            TypeDefinition::Enum(enumeration) => self::enumeration(enumeration),
            TypeDefinition::Bitmask(bitmask) => self::bitmask(bitmask),
            TypeDefinition::Bitset(bitset) => self::bitset(bitset),
            TypeDefinition::Sequence(sequence) => self.sequence(sequence),
            TypeDefinition::Array(array) => self.array(array),
            TypeDefinition::Map(map) => self.map(map),
            TypeDefinition::Annotation(_) => {
                Err(malformed(&None, "an annotation is no type of data"))
            }
            TypeDefinition::Extended(_) => {
                Err(malformed(&None, "it is of a kind that is not known"))
            }
        }
    }

    fn alias<F: Form>(&mut self, alias: &AliasType<F>) -> Result<Declared, TypeError> {
        let (unit, range, _) = F::alias_annotations(&alias.body.annotations).known();
        let ty = self.ty(&alias.body.common.identifier)?;
        let name = F::type_name(&alias.header.detail);
        Ok((name, Definition::Alias(Alias { ty, unit, range })))
    }

    /// A collection with annotations: a typedef of none of the user's.
    fn sequence<F: Form>(&mut self, sequence: &SequenceType<F>) -> Result<Declared, TypeError> {
        let common = &sequence.element.common;
        let ty = self.ty(&common.identifier)?;
        let bound = sequence.header.bound;
        Ok(anonymous(Type::Sequence {
            element: Box::new(element(ty, common.flags)),
            bound: (bound != 0).then_some(bound),
        }))
    }

    fn array<F: Form>(&mut self, array: &ArrayType<F>) -> Result<Declared, TypeError> {
        let common = &array.element.common;
        let element = element(self.ty(&common.identifier)?, common.flags);
        let ty = self::array(Box::new(element), array.header.bounds.clone());
        ty.map(anonymous)
            .ok_or_else(|| malformed(&None, "an array has no elements, or too many"))
    }

    fn map<F: Form>(&mut self, map: &MapType<F>) -> Result<Declared, TypeError> {
        let (key, value) = (&map.key.common, &map.element.common);
        let bound = map.header.bound;
        Ok(anonymous(Type::Map {
            key: Box::new(element(self.ty(&key.identifier)?, key.flags)),
            value: Box::new(element(self.ty(&value.identifier)?, value.flags)),
            bound: (bound != 0).then_some(bound),
        }))
    }

    fn structure<F: Form>(&mut self, structure: &StructType<F>) -> Result<Declared, TypeError> {
        let name = F::type_name(&structure.header.detail);
        let base = match &structure.header.base {
            TypeIdentifier::None => None,
            base => Some(self.declared(base)?),
        };
        let mut members = Vec::with_capacity(structure.members.len());
        for member in &structure.members {
            let common = &member.common;
            let detail = F::member_name(&member.detail);
            let ty = self.ty(&common.identifier)?;
            members.push(self::member(common.id, common.flags, ty, detail));
        }
        let (extensibility, nested, autoid_hash) = flags(&name, structure.flags)?;
        let structure = Struct {
            extensibility,
            nested,
            autoid_hash,
            base,
            members,
        };
        Ok((name, Definition::Struct(structure)))
    }

    fn union<F: Form>(&mut self, union: &UnionType<F>) -> Result<Declared, TypeError> {
        let name = F::type_name(&union.header.detail);
        let discriminator = &union.discriminator.common;
        let mut branches = Vec::with_capacity(union.members.len());
        for branch in &union.members {
            let common = &branch.common;
            let detail = F::member_name(&branch.detail);
            let ty = self.ty(&common.identifier)?;
            branches.push(Branch {
                labels: common.labels.clone(),
                default: common.flags.has(MemberFlags::DEFAULT),
                member: member(common.id, common.flags, ty, detail),
            });
        }
        if !distinct(branches.iter().flat_map(|branch| &branch.labels)) {
            return Err(malformed(&name, "two branches have one label"));
        }
        if !distinct(branches.iter().map(|branch| branch.member.id)) {
            return Err(malformed(&name, "two branches have one id"));
        }
        if branches.iter().filter(|branch| branch.default).count() > 1 {
            return Err(malformed(&name, "two branches are the default"));
        }
        let (extensibility, nested, autoid_hash) = flags(&name, union.flags)?;
        let union = Union {
            extensibility,
            nested,
            autoid_hash,
            discriminator: Discriminator {
                ty: self.ty(&discriminator.identifier)?,
                key: discriminator.flags.has(MemberFlags::KEY),
                try_construct: discriminator.flags.try_construct(),
                default: None,
            },
            branches,
        };
        Ok((name, Definition::Union(union)))
    }
}

fn anonymous(ty: Type) -> Declared {
    let alias = Alias {
        ty,
        unit: None,
        range: Range::default(),
    };
    (None, Definition::Alias(alias))
}

fn flags(
    name: &Option<String>,
    flags: TypeFlags,
) -> Result<(Extensibility, bool, bool), TypeError> {
    let extensibility = flags
        .extensibility()
        .ok_or_else(|| malformed(name, "it has not one extensibility"))?;
    let nested = flags.has(TypeFlags::NESTED);
    Ok((extensibility, nested, flags.has(TypeFlags::AUTOID_HASH)))
}

fn member(
    id: u32,
    flags: MemberFlags,
    ty: Type,
    (name, annotations): (Name, MemberAnnotations),
) -> Member {
    let (unit, range, hash_id) = annotations.known();
    Member {
        name,
        id,
        ty,
        key: flags.has(MemberFlags::KEY),
        optional: flags.has(MemberFlags::OPTIONAL),
        must_understand: flags.has(MemberFlags::MUST_UNDERSTAND),
        external: flags.has(MemberFlags::EXTERNAL),
        try_construct: flags.try_construct(),
        unit,
        range,
        hash_id,
        default: None,
    }
}

fn enumeration<F: Form>(enumeration: &EnumeratedType<F>) -> Result<Declared, TypeError> {
    let name = F::type_name(&enumeration.header.detail);
    let bit_bound = enumeration.header.bit_bound;
    if !(1..=32).contains(&bit_bound) {
        return Err(malformed(&name, "an enumeration has 1 to 32 bits"));
    }
    let literals = enumeration.literals.iter().map(|literal| Literal {
        name: F::member_name(&literal.detail).0,
        value: literal.common.value,
        default: literal.common.flags.has(MemberFlags::DEFAULT),
    });
    let literals: Vec<Literal> = literals.collect();
    if literals.is_empty() || !distinct(literals.iter().map(|literal| literal.value)) {
        return Err(malformed(
            &name,
            "its literals are none, or two have one value",
        ));
    }
    let enumeration = Enum {
        bit_bound,
        extensibility: enumeration.flags.extensibility(),
        ignore_literal_names: false,
        literals,
    };
    Ok((name, Definition::Enum(enumeration)))
}

fn bitmask<F: Form>(bitmask: &BitmaskType<F>) -> Result<Declared, TypeError> {
    let name = F::type_name(&bitmask.header.detail);
    let bit_bound = bitmask.header.bit_bound;
    if !(1..=64).contains(&bit_bound) {
        return Err(malformed(&name, "a bitmask has 1 to 64 bits"));
    }
    let flags = bitmask.bits.iter().map(|flag| Flag {
        name: F::member_name(&flag.detail).0,
        position: flag.common.position,
    });
    let flags: Vec<Flag> = flags.collect();
    if !distinct(flags.iter().map(|flag| flag.position))
        || flags.iter().any(|flag| flag.position >= bit_bound)
    {
        return Err(malformed(
            &name,
            "two flags are one bit, or one is out of bounds",
        ));
    }
    let bitmask = Bitmask {
        bit_bound,
        extensibility: bitmask.flags.extensibility(),
        flags,
    };
    Ok((name, Definition::Bitmask(bitmask)))
}

fn bitset<F: Form>(bitset: &BitsetType<F>) -> Result<Declared, TypeError> {
    let name = F::type_name(&bitset.header.detail);
    let (mut fields, mut end) = (Vec::new(), 0);
    for field in &bitset.fields {
        let common = &field.common;
        let holder = Primitive::of_kind(common.holder).filter(|holder| holder.holds_bits());
        let holder = holder.ok_or_else(|| malformed(&name, "a bit field is of no integer"))?;
        let after = common.position.saturating_add(u16::from(common.bits));
        if common.position < end || common.bits == 0 || after > 64 {
            return Err(malformed(&name, "bit fields overlap, or are out of bounds"));
        }
        end = after;
        fields.push(Field {
            name: F::member_name(&field.detail).0,
            position: common.position,
            bits: common.bits,
            holder,
        });
    }
    Ok((name, Definition::Bitset(Bitset { fields })))
}
