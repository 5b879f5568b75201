//! From `TypeObject`s of either form to declarations.

use std::collections::HashSet;
use std::hash::Hash;

use super::TypeError;
use super::resolve::{Resolver, array};
use crate::graph::{
    Alias, Annotation, AnnotationParameter, Annotations, Applied, Bitmask, Bitset, Branch,
    Definition, Discriminator, Element, Enum, Extensibility, Field, Flag, Literal, Member, Name,
    Primitive, Range, Struct, Type, Union,
};
use crate::object::{
    AliasType, AnnotationType, AppliedAnnotation, ArrayType, BitmaskType, BitsetType,
    EnumeratedType, Form, MapType, MemberFlags, SequenceType, StructType, TypeAnnotations,
    TypeDefinition, TypeFlags, TypeIdentifier, UnionType,
};

type Declared = (Option<String>, Annotations, Definition);

/// The reason why an object is not a valid declaration.
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

/// Whether all values are distinct.
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
            TypeDefinition::Enum(enumeration) => self.enumeration(enumeration),
            TypeDefinition::Bitmask(bitmask) => self.bitmask(bitmask),
            TypeDefinition::Bitset(bitset) => self.bitset(bitset),
            TypeDefinition::Sequence(sequence) => self.sequence(sequence),
            TypeDefinition::Array(array) => self.array(array),
            TypeDefinition::Map(map) => self.map(map),
            TypeDefinition::Annotation(annotation) => self.annotation(annotation),
            TypeDefinition::Extended(_) => {
                Err(malformed(&None, "it is of a kind that is not known"))
            }
        }
    }

    /// Uses of annotations, which are queued for resolution.
    fn applied(&mut self, all: Option<Vec<AppliedAnnotation>>) -> Result<Vec<Applied>, TypeError> {
        let one = |applied: AppliedAnnotation| {
            Ok(Applied {
                annotation: self.declared(&applied.identifier)?,
                parameters: applied.parameters.unwrap_or_default(),
            })
        };
        all.into_iter().flatten().map(one).collect()
    }

    fn annotations(&mut self, annotations: TypeAnnotations) -> Result<Annotations, TypeError> {
        Ok(Annotations {
            verbatim: annotations.verbatim(),
            custom: self.applied(annotations.custom)?,
        })
    }

    /// The name of a type, and its annotations.
    fn detail<F: Form>(
        &mut self,
        detail: &F::TypeDetail,
    ) -> Result<(Option<String>, Annotations), TypeError> {
        let (name, annotations) = F::type_name(detail);
        Ok((name, self.annotations(annotations)?))
    }

    fn annotation<F: Form>(&mut self, one: &AnnotationType<F>) -> Result<Declared, TypeError> {
        let name = F::name_of_annotation(&one.header.name);
        let mut parameters = Vec::with_capacity(one.members.len());
        for parameter in &one.members {
            parameters.push(AnnotationParameter {
                name: F::name_of_parameter(&parameter.name),
                ty: self.ty(&parameter.common.identifier)?,
                default: parameter.default.clone(),
            });
        }
        if !distinct(parameters.iter().map(|parameter| parameter.name.hash())) {
            return Err(malformed(&name, "two parameters have one name"));
        }
        let annotation = Definition::Annotation(Annotation { parameters });
        Ok((name, Annotations::default(), annotation))
    }

    fn alias<F: Form>(&mut self, alias: &AliasType<F>) -> Result<Declared, TypeError> {
        let (name, annotations) = self.detail::<F>(&alias.header.detail)?;
        let of_use = F::alias_annotations(&alias.body.annotations);
        let (unit, range, _) = of_use.known();
        let alias = Alias {
            ty: self.ty(&alias.body.common.identifier)?,
            unit,
            range,
            custom: self.applied(of_use.custom)?,
        };
        Ok((name, annotations, Definition::Alias(alias)))
    }

    /// A collection with annotations, as a typedef without a name.
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
        let (name, annotations) = self.detail::<F>(&structure.header.detail)?;
        let base = match &structure.header.base {
            TypeIdentifier::None => None,
            base => Some(self.declared(base)?),
        };
        let mut members = Vec::with_capacity(structure.members.len());
        for member in &structure.members {
            let common = &member.common;
            let ty = self.ty(&common.identifier)?;
            members.push(self.member::<F>(common.id, common.flags, ty, &member.detail)?);
        }
        let (extensibility, nested, autoid_hash) = flags(&name, structure.flags)?;
        let structure = Struct {
            extensibility,
            nested,
            autoid_hash,
            base,
            members,
        };
        Ok((name, annotations, Definition::Struct(structure)))
    }

    fn union<F: Form>(&mut self, union: &UnionType<F>) -> Result<Declared, TypeError> {
        let (name, annotations) = self.detail::<F>(&union.header.detail)?;
        let of_discriminator = F::discriminator_annotations(&union.discriminator.annotations);
        let discriminator = &union.discriminator.common;
        let mut branches = Vec::with_capacity(union.members.len());
        for branch in &union.members {
            let common = &branch.common;
            let ty = self.ty(&common.identifier)?;
            branches.push(Branch {
                labels: common.labels.clone(),
                default: common.flags.has(MemberFlags::DEFAULT),
                member: self.member::<F>(common.id, common.flags, ty, &branch.detail)?,
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
                annotations: self.annotations(of_discriminator)?,
            },
            branches,
        };
        Ok((name, annotations, Definition::Union(union)))
    }

    fn member<F: Form>(
        &mut self,
        id: u32,
        flags: MemberFlags,
        ty: Type,
        detail: &F::MemberDetail,
    ) -> Result<Member, TypeError> {
        let (name, annotations) = F::member_name(detail);
        let (unit, range, hash_id) = annotations.known();
        Ok(Member {
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
            custom: self.applied(annotations.custom)?,
            default: None,
        })
    }

    /// The name and the declared annotations of a type or member without standard ones.
    fn named<F: Form>(
        &mut self,
        detail: &F::MemberDetail,
    ) -> Result<(Name, Vec<Applied>), TypeError> {
        let (name, annotations) = F::member_name(detail);
        Ok((name, self.applied(annotations.custom)?))
    }

    fn enumeration<F: Form>(
        &mut self,
        enumeration: &EnumeratedType<F>,
    ) -> Result<Declared, TypeError> {
        let (name, annotations) = self.detail::<F>(&enumeration.header.detail)?;
        let bit_bound = enumeration.header.bit_bound;
        if !(1..=32).contains(&bit_bound) {
            return Err(malformed(&name, "an enumeration has 1 to 32 bits"));
        }
        let mut literals = Vec::with_capacity(enumeration.literals.len());
        for literal in &enumeration.literals {
            let (name, custom) = self.named::<F>(&literal.detail)?;
            literals.push(Literal {
                name,
                value: literal.common.value,
                default: literal.common.flags.has(MemberFlags::DEFAULT),
                custom,
            });
        }
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
        Ok((name, annotations, Definition::Enum(enumeration)))
    }

    fn bitmask<F: Form>(&mut self, bitmask: &BitmaskType<F>) -> Result<Declared, TypeError> {
        let (name, annotations) = self.detail::<F>(&bitmask.header.detail)?;
        let bit_bound = bitmask.header.bit_bound;
        if !(1..=64).contains(&bit_bound) {
            return Err(malformed(&name, "a bitmask has 1 to 64 bits"));
        }
        let mut flags = Vec::with_capacity(bitmask.bits.len());
        for flag in &bitmask.bits {
            let (name, custom) = self.named::<F>(&flag.detail)?;
            flags.push(Flag {
                name,
                position: flag.common.position,
                custom,
            });
        }
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
        Ok((name, annotations, Definition::Bitmask(bitmask)))
    }

    fn bitset<F: Form>(&mut self, bitset: &BitsetType<F>) -> Result<Declared, TypeError> {
        let (name, annotations) = self.detail::<F>(&bitset.header.detail)?;
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
            let (field_name, custom) = self.named::<F>(&field.detail)?;
            fields.push(Field {
                name: field_name,
                position: common.position,
                bits: common.bits,
                holder,
                custom,
            });
        }
        Ok((name, annotations, Definition::Bitset(Bitset { fields })))
    }
}

fn anonymous(ty: Type) -> Declared {
    let alias = Alias {
        ty,
        unit: None,
        range: Range::default(),
        custom: Vec::new(),
    };
    (None, Annotations::default(), Definition::Alias(alias))
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
