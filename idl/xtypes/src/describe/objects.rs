//! The `TypeObject` of one declaration.

use super::Identifiers;
use crate::graph::{
    Alias, Annotation, AnnotationParameter as Parameter, Annotations, Applied, Bitmask, Bitset,
    Branch, Definition, Enum, Member, Name, Struct, TypeIndex, Union,
};
use crate::object::{
    AliasBody, AliasHeader, AliasType, AnnotationHeader, AnnotationParameter, AnnotationType,
    AppliedAnnotation, Bitfield, Bitflag, BitmaskType, BitsetHeader, BitsetType, CommonAlias,
    CommonBitfield, CommonBitflag, CommonDiscriminator, CommonLiteral, CommonParameter,
    CommonStructMember, CommonUnionMember, DiscriminatorMember, EnumeratedHeader,
    EnumeratedLiteral, EnumeratedType, Form, MemberAnnotations, MemberFlags, StructHeader,
    StructMember, StructType, TypeAnnotations, TypeDefinition, TypeFlags, TypeIdentifier,
    UnionHeader, UnionMember, UnionType,
};

impl Identifiers<'_> {
    /// The object of a type, with the identifiers found so far.
    pub(super) fn definition<F: Form>(&self, index: TypeIndex) -> TypeDefinition<F> {
        let declaration = self.graph.declaration(index);
        let name = declaration.name.as_deref();
        let detail = || F::type_detail(name, self.annotations(&declaration.annotations));
        match &declaration.definition {
            Definition::Alias(alias) => TypeDefinition::Alias(self.alias(detail(), alias)),
            Definition::Enum(one) => TypeDefinition::Enum(self.enumeration(detail(), one)),
            Definition::Bitmask(one) => TypeDefinition::Bitmask(self.bitmask(detail(), one)),
            Definition::Bitset(one) => TypeDefinition::Bitset(self.bitset(detail(), one)),
            Definition::Struct(one) => TypeDefinition::Struct(self.structure(detail(), one)),
            Definition::Union(union) => TypeDefinition::Union(self.union(detail(), union)),
            Definition::Annotation(one) => TypeDefinition::Annotation(self.annotation(name, one)),
        }
    }

    /// Uses of annotations, ordered by their identifiers as the annex requires.
    fn applied(&self, all: &[Applied]) -> Option<Vec<AppliedAnnotation>> {
        let one = |applied: &Applied| {
            let mut parameters = applied.parameters.clone();
            parameters.sort_by_key(|parameter| parameter.name_hash);
            AppliedAnnotation {
                identifier: self.get(applied.annotation),
                parameters: (!parameters.is_empty()).then_some(parameters),
            }
        };
        let mut all: Vec<_> = all.iter().map(one).collect();
        all.sort_by(|one, other| one.identifier.cmp(&other.identifier));
        (!all.is_empty()).then_some(all)
    }

    fn annotations(&self, annotations: &Annotations) -> TypeAnnotations {
        let custom = self.applied(&annotations.custom);
        TypeAnnotations::of(annotations.verbatim.clone(), custom)
    }

    /// The detail of a type or member without standard annotations.
    fn named<F: Form>(&self, name: &Name, custom: &[Applied]) -> F::MemberDetail {
        let annotations = MemberAnnotations {
            builtin: None,
            custom: self.applied(custom),
        };
        F::member(name, annotations)
    }

    fn annotation<F: Form>(&self, name: Option<&str>, one: &Annotation) -> AnnotationType<F> {
        // Ordered by names or by hashes of names, depending on the form.
        let mut parameters: Vec<&Parameter> = one.parameters.iter().collect();
        match F::IS_ANNOTATED {
            true => parameters.sort_by_key(|parameter| parameter.name.to_string()),
            false => parameters.sort_by_key(|parameter| parameter.name.hash()),
        }
        let members = parameters.into_iter().map(|parameter| AnnotationParameter {
            common: CommonParameter {
                flags: MemberFlags::default(),
                identifier: self.identifier::<F>(&parameter.ty),
            },
            name: F::parameter_name(&parameter.name),
            default: parameter.default.clone(),
        });
        AnnotationType {
            flags: TypeFlags::default(),
            header: AnnotationHeader {
                name: F::annotation_name(name),
            },
            members: members.collect(),
        }
    }

    fn alias<F: Form>(&self, detail: F::TypeDetail, alias: &Alias) -> AliasType<F> {
        let custom = self.applied(&alias.custom);
        let annotations = MemberAnnotations::of(alias.unit.as_ref(), &alias.range, None, custom);
        AliasType {
            flags: TypeFlags::default(),
            header: AliasHeader { detail },
            body: AliasBody {
                common: CommonAlias {
                    flags: MemberFlags::default(),
                    identifier: self.identifier::<F>(&alias.ty),
                },
                annotations: F::alias(annotations),
            },
        }
    }

    fn structure<F: Form>(&self, detail: F::TypeDetail, structure: &Struct) -> StructType<F> {
        let members = structure.members.iter().map(|member| StructMember {
            common: CommonStructMember {
                id: member.id,
                flags: member_flags(member),
                identifier: self.identifier::<F>(&member.ty),
            },
            detail: self.member_detail::<F>(member),
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
                detail,
            },
            members: members.collect(),
        }
    }

    fn union<F: Form>(&self, detail: F::TypeDetail, union: &Union) -> UnionType<F> {
        let discriminator = &union.discriminator;
        // The discriminator must always be understood: §7.2.2.4.4.4.6.
        let flags = MemberFlags::of(discriminator.try_construct)
            .with(MemberFlags::MUST_UNDERSTAND, true)
            .with(MemberFlags::KEY, discriminator.key);
        UnionType {
            flags: TypeFlags::of(union.extensibility)
                .with(TypeFlags::NESTED, union.nested)
                .with(TypeFlags::AUTOID_HASH, union.autoid_hash),
            header: UnionHeader { detail },
            discriminator: DiscriminatorMember {
                common: CommonDiscriminator {
                    flags,
                    identifier: self.identifier::<F>(&discriminator.ty),
                },
                annotations: F::discriminator(self.annotations(&discriminator.annotations)),
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
            detail: self.member_detail::<F>(&branch.member),
        }
    }

    fn member_detail<F: Form>(&self, member: &Member) -> F::MemberDetail {
        let (unit, hash_id) = (member.unit.as_ref(), member.hash_id.as_ref());
        let custom = self.applied(&member.custom);
        let annotations = MemberAnnotations::of(unit, &member.range, hash_id, custom);
        F::member(&member.name, annotations)
    }

    fn enumeration<F: Form>(&self, detail: F::TypeDetail, enumeration: &Enum) -> EnumeratedType<F> {
        let literals = enumeration
            .literals
            .iter()
            .map(|literal| EnumeratedLiteral {
                common: CommonLiteral {
                    value: literal.value,
                    flags: MemberFlags::default().with(MemberFlags::DEFAULT, literal.default),
                },
                detail: self.named::<F>(&literal.name, &literal.custom),
            });
        let mut literals: Vec<EnumeratedLiteral<F>> = literals.collect();
        literals.sort_by_key(|literal| literal.common.value);
        EnumeratedType {
            flags: enumeration
                .extensibility
                .map_or_else(TypeFlags::default, TypeFlags::of),
            header: EnumeratedHeader {
                bit_bound: enumeration.bit_bound,
                detail,
            },
            literals,
        }
    }

    fn bitmask<F: Form>(&self, detail: F::TypeDetail, bitmask: &Bitmask) -> BitmaskType<F> {
        let bits = bitmask.flags.iter().map(|flag| Bitflag {
            common: CommonBitflag {
                position: flag.position,
                flags: MemberFlags::default(),
            },
            detail: self.named::<F>(&flag.name, &flag.custom),
        });
        let mut bits: Vec<Bitflag<F>> = bits.collect();
        bits.sort_by_key(|bit| bit.common.position);
        BitmaskType {
            flags: bitmask
                .extensibility
                .map_or_else(TypeFlags::default, TypeFlags::of),
            header: EnumeratedHeader {
                bit_bound: bitmask.bit_bound,
                detail,
            },
            bits,
        }
    }

    fn bitset<F: Form>(&self, detail: F::TypeDetail, bitset: &Bitset) -> BitsetType<F> {
        let fields = bitset.fields.iter().map(|field| Bitfield {
            common: CommonBitfield {
                position: field.position,
                flags: MemberFlags::default(),
                bits: field.bits,
                holder: field.holder.kind(),
            },
            detail: self.named::<F>(&field.name, &field.custom),
        });
        let mut fields: Vec<Bitfield<F>> = fields.collect();
        fields.sort_by_key(|field| field.common.position);
        BitsetType {
            flags: TypeFlags::default(),
            header: BitsetHeader { detail },
            fields,
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
