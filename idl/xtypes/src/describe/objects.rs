//! The `TypeObject` of one declaration.

use super::Identifiers;
use crate::graph::{
    Alias, Bitmask, Bitset, Branch, Definition, Enum, Member, Struct, TypeIndex, Union,
};
use crate::object::{
    AliasBody, AliasHeader, AliasType, Bitfield, Bitflag, BitmaskType, BitsetHeader, BitsetType,
    CommonAlias, CommonBitfield, CommonBitflag, CommonDiscriminator, CommonLiteral,
    CommonStructMember, CommonUnionMember, DiscriminatorMember, EnumeratedHeader,
    EnumeratedLiteral, EnumeratedType, Form, MemberAnnotations, MemberFlags, StructHeader,
    StructMember, StructType, TypeDefinition, TypeFlags, TypeIdentifier, UnionHeader, UnionMember,
    UnionType,
};

impl Identifiers<'_> {
    /// The object of a type, with the identifiers found so far.
    pub(super) fn definition<F: Form>(&self, index: TypeIndex) -> TypeDefinition<F> {
        let declaration = self.graph.declaration(index);
        let name = declaration.name.as_deref();
        match &declaration.definition {
            Definition::Alias(alias) => TypeDefinition::Alias(self.alias(name, alias)),
            Definition::Enum(enumeration) => {
                TypeDefinition::Enum(self::enumeration(name, enumeration))
            }
            Definition::Bitmask(bitmask) => TypeDefinition::Bitmask(self::bitmask(name, bitmask)),
            Definition::Bitset(bitset) => TypeDefinition::Bitset(self::bitset(name, bitset)),
            Definition::Struct(structure) => {
                TypeDefinition::Struct(self.structure(name, structure))
            }
            Definition::Union(union) => TypeDefinition::Union(self.union(name, union)),
        }
    }

    fn alias<F: Form>(&self, name: Option<&str>, alias: &Alias) -> AliasType<F> {
        let annotations = MemberAnnotations::of(alias.unit.as_ref(), &alias.range, None);
        AliasType {
            flags: TypeFlags::default(),
            header: AliasHeader {
                detail: F::type_detail(name),
            },
            body: AliasBody {
                common: CommonAlias {
                    flags: MemberFlags::default(),
                    identifier: self.identifier::<F>(&alias.ty),
                },
                annotations: F::alias(annotations),
            },
        }
    }

    fn structure<F: Form>(&self, name: Option<&str>, structure: &Struct) -> StructType<F> {
        let members = structure.members.iter().map(|member| StructMember {
            common: CommonStructMember {
                id: member.id,
                flags: member_flags(member),
                identifier: self.identifier::<F>(&member.ty),
            },
            detail: member_detail::<F>(member),
        });
        StructType {
            flags: TypeFlags::of(structure.extensibility)
                .with(TypeFlags::NESTED, structure.nested)
                .with(TypeFlags::AUTOID_HASH, structure.autoid_hash),
            header: StructHeader {
                base: match structure.base {
                    Some(base) => self.get(base),
                    None => TypeIdentifier::None,
                },
                detail: F::type_detail(name),
            },
            members: members.collect(),
        }
    }

    fn union<F: Form>(&self, name: Option<&str>, union: &Union) -> UnionType<F> {
        let discriminator = &union.discriminator;
        // The discriminator must always be understood: §7.2.2.4.4.4.6.
        let flags = MemberFlags::of(discriminator.try_construct)
            .with(MemberFlags::MUST_UNDERSTAND, true)
            .with(MemberFlags::KEY, discriminator.key);
        UnionType {
            flags: TypeFlags::of(union.extensibility)
                .with(TypeFlags::NESTED, union.nested)
                .with(TypeFlags::AUTOID_HASH, union.autoid_hash),
            header: UnionHeader {
                detail: F::type_detail(name),
            },
            discriminator: DiscriminatorMember {
                common: CommonDiscriminator {
                    flags,
                    identifier: self.identifier::<F>(&discriminator.ty),
                },
                annotations: F::no_annotations(),
            },
            members: union.branches.iter().map(|one| self.branch(one)).collect(),
        }
    }

    fn branch<F: Form>(&self, branch: &Branch) -> UnionMember<F> {
        let mut labels = branch.labels.clone();
        labels.sort_unstable();
        UnionMember {
            common: CommonUnionMember {
                id: branch.member.id,
                flags: MemberFlags::of(branch.member.try_construct)
                    .with(MemberFlags::EXTERNAL, branch.member.external)
                    .with(MemberFlags::DEFAULT, branch.default),
                identifier: self.identifier::<F>(&branch.member.ty),
                labels,
            },
            detail: member_detail::<F>(&branch.member),
        }
    }
}

fn member_flags(member: &Member) -> MemberFlags {
    MemberFlags::of(member.try_construct)
        .with(MemberFlags::EXTERNAL, member.external)
        .with(MemberFlags::OPTIONAL, member.optional)
        .with(MemberFlags::MUST_UNDERSTAND, member.must_understand)
        .with(MemberFlags::KEY, member.key)
}

fn member_detail<F: Form>(member: &Member) -> F::MemberDetail {
    let (unit, hash_id) = (member.unit.as_ref(), member.hash_id.as_ref());
    F::member(
        &member.name,
        MemberAnnotations::of(unit, &member.range, hash_id),
    )
}

fn enumeration<F: Form>(name: Option<&str>, enumeration: &Enum) -> EnumeratedType<F> {
    let literals = enumeration
        .literals
        .iter()
        .map(|literal| EnumeratedLiteral {
            common: CommonLiteral {
                value: literal.value,
                flags: MemberFlags::default().with(MemberFlags::DEFAULT, literal.default),
            },
            detail: F::member(&literal.name, MemberAnnotations::default()),
        });
    let mut literals: Vec<EnumeratedLiteral<F>> = literals.collect();
    literals.sort_by_key(|literal| literal.common.value);
    EnumeratedType {
        flags: enumeration
            .extensibility
            .map_or_else(TypeFlags::default, TypeFlags::of),
        header: EnumeratedHeader {
            bit_bound: enumeration.bit_bound,
            detail: F::type_detail(name),
        },
        literals,
    }
}

fn bitmask<F: Form>(name: Option<&str>, bitmask: &Bitmask) -> BitmaskType<F> {
    let bits = bitmask.flags.iter().map(|flag| Bitflag {
        common: CommonBitflag {
            position: flag.position,
            flags: MemberFlags::default(),
        },
        detail: F::member(&flag.name, MemberAnnotations::default()),
    });
    let mut bits: Vec<Bitflag<F>> = bits.collect();
    bits.sort_by_key(|bit| bit.common.position);
    BitmaskType {
        flags: bitmask
            .extensibility
            .map_or_else(TypeFlags::default, TypeFlags::of),
        header: EnumeratedHeader {
            bit_bound: bitmask.bit_bound,
            detail: F::type_detail(name),
        },
        bits,
    }
}

fn bitset<F: Form>(name: Option<&str>, bitset: &Bitset) -> BitsetType<F> {
    let fields = bitset.fields.iter().map(|field| Bitfield {
        common: CommonBitfield {
            position: field.position,
            flags: MemberFlags::default(),
            bits: field.bits,
            holder: field.holder.kind(),
        },
        detail: F::member(&field.name, MemberAnnotations::default()),
    });
    let mut fields: Vec<Bitfield<F>> = fields.collect();
    fields.sort_by_key(|field| field.common.position);
    BitsetType {
        flags: TypeFlags::default(),
        header: BitsetHeader {
            detail: F::type_detail(name),
        },
        fields,
    }
}
