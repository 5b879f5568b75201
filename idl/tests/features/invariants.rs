//! The invariants of the model for the back ends, checked for every valid input.

use std::collections::HashSet;

use spindle_dds_idl::model::{
    Bitset, Enum, Extensibility, Item, Member, Model, Module, Struct, Type, TypeId, TypeKind,
    Union, Value,
};

/// Panics if an invariant of `model.rs` is violated.
pub(crate) fn check(model: &Model) {
    let mut declared = HashSet::new();
    items(model, &model.root, &mut declared);
    for decl in &model.interfaces {
        for item in &decl.items {
            one_item(model, item, &mut declared);
        }
        for attribute in &decl.attributes {
            known(model, &attribute.ty);
        }
        for operation in &decl.operations {
            operation
                .parameters
                .iter()
                .for_each(|one| known(model, &one.ty));
            assert!(!operation.oneway || operation.returns.is_none());
        }
        let raised = decl.operations.iter().flat_map(|one| &one.raises);
        for id in raised {
            assert!(matches!(kind(model, *id), TypeKind::Struct(one) if one.exception));
        }
        assert!(decl.file < model.files.len());
    }
    for (index, decl) in model.types.iter().enumerate() {
        assert!(decl.file < model.files.len(), "{} has a file", decl.name);
        match &decl.kind {
            TypeKind::Struct(structure) => check_struct(model, TypeId(index), structure),
            TypeKind::Union(union) => check_union(model, union),
            TypeKind::Enum(enumeration) => check_enum(enumeration),
            TypeKind::Bitmask(mask) => {
                let mut seen = HashSet::new();
                for flag in &mask.flags {
                    assert!(flag.position < mask.bit_bound && seen.insert(flag.position));
                }
                assert!((1..=64).contains(&mask.bit_bound));
            }
            TypeKind::Bitset(bitset) => check_bitset(model, bitset),
            TypeKind::Alias(alias) => known(model, &alias.ty),
            TypeKind::Native => {}
        }
    }
    for constant in &model.constants {
        known(model, &constant.ty);
        check_value(model, &constant.value);
    }
}

fn items(model: &Model, module: &Module, declared: &mut HashSet<TypeId>) {
    for item in &module.items {
        one_item(model, item, declared);
    }
}

fn one_item(model: &Model, item: &Item, declared: &mut HashSet<TypeId>) {
    match item {
        Item::Module(inner) => items(model, inner, declared),
        Item::Type(id) => {
            assert!(id.0 < model.types.len());
            assert!(declared.insert(*id), "a type stands in one place");
        }
        Item::Const(id) => assert!(id.0 < model.constants.len()),
        Item::Interface(id) => assert!(id.0 < model.interfaces.len()),
    }
}

fn kind(model: &Model, id: TypeId) -> &TypeKind {
    &model.types[id.0].kind
}

/// Checks that all types named by a use exist.
fn known(model: &Model, ty: &Type) {
    match ty {
        Type::Named(id) => assert!(id.0 < model.types.len()),
        Type::Interface(id) => assert!(id.0 < model.interfaces.len()),
        Type::Sequence { element, bound } => {
            known(model, &element.ty);
            assert_ne!(*bound, Some(0));
        }
        Type::Map { key, value, bound } => {
            known(model, &key.ty);
            known(model, &value.ty);
            assert_ne!(*bound, Some(0));
        }
        Type::Array {
            element,
            dimensions,
        } => {
            known(model, &element.ty);
            assert!(!dimensions.is_empty() && !dimensions.contains(&0));
            assert!(!matches!(element.ty, Type::Array { .. }));
        }
        Type::Fixed { digits, scale } => {
            assert!((1..=31).contains(digits) && scale <= digits);
        }
        Type::Primitive(_) | Type::String { .. } | Type::WString { .. } => {}
    }
}

fn check_member(model: &Model, member: &Member) {
    known(model, &member.ty);
    assert!(member.id <= 0x0FFF_FFFF);
    assert!(!member.external || member.boxed);
    assert!(!member.key || (member.must_understand && !member.optional));
    assert!(is_data(model, &member.ty, 0), "{} is data", member.name);
    member
        .default
        .iter()
        .for_each(|value| check_value(model, value));
}

/// Whether it has no interface or native type in its first few levels.
fn is_data(model: &Model, ty: &Type, depth: usize) -> bool {
    match ty {
        Type::Interface(_) => false,
        Type::Named(id) if depth < 8 => match kind(model, *id) {
            TypeKind::Native => false,
            TypeKind::Alias(alias) => is_data(model, &alias.ty, depth + 1),
            TypeKind::Struct(structure) => !structure.exception,
            _ => true,
        },
        Type::Sequence { element, .. } | Type::Array { element, .. } => {
            is_data(model, &element.ty, depth)
        }
        _ => true,
    }
}

fn check_struct(model: &Model, own: TypeId, structure: &Struct) {
    assert!(structure.inherited <= structure.members.len());
    assert!(structure.representations.xcdr1 || structure.representations.xcdr2);
    let (mut ids, mut names) = (HashSet::new(), HashSet::new());
    for member in &structure.members {
        check_member(model, member);
        assert!(
            ids.insert(member.id),
            "{} has an id of its own",
            member.name
        );
        assert!(names.insert(member.name.to_ascii_lowercase()));
    }
    match structure.base {
        None => assert_eq!(structure.inherited, 0),
        Some(base) => {
            let TypeKind::Struct(base) = kind(model, base) else {
                panic!("the base is no struct");
            };
            assert_eq!(base.extensibility, structure.extensibility);
            let inherited = &structure.members[..structure.inherited];
            assert_eq!(base.members, inherited, "members of the base come first");
        }
    }
    assert!(!reaches(model, own), "a value has an end");
}

/// Whether a value of this type would contain another value of the same type.
fn reaches(model: &Model, start: TypeId) -> bool {
    let mut seen = HashSet::new();
    let mut open = vec![start];
    while let Some(id) = open.pop() {
        let mut parts: Vec<&Type> = Vec::new();
        match kind(model, id) {
            TypeKind::Struct(one) => {
                let members = one.members.iter().filter(|member| !member.boxed);
                parts.extend(members.map(|member| &member.ty));
            }
            TypeKind::Union(one) => {
                let members = one.branches.iter().map(|branch| &branch.member);
                parts.extend(members.filter(|one| !one.boxed).map(|one| &one.ty));
            }
            TypeKind::Alias(alias) => parts.push(&alias.ty),
            _ => {}
        }
        for mut part in parts {
            while let Type::Array { element, .. } = part {
                part = &element.ty;
            }
            match part {
                Type::Named(id) if *id == start => return true,
                Type::Named(id) if seen.insert(*id) => open.push(*id),
                _ => {}
            }
        }
    }
    false
}

fn check_union(model: &Model, union: &Union) {
    known(model, &union.discriminator.ty);
    assert!(!union.branches.is_empty());
    // The id of the discriminator, where ids are encoded.
    let written = union.extensibility == Extensibility::Mutable;
    let mut ids: HashSet<u32> = written.then_some(0).into_iter().collect();
    let mut labels = HashSet::new();
    for branch in &union.branches {
        check_member(model, &branch.member);
        assert!(!branch.member.key && !branch.member.optional);
        assert!(ids.insert(branch.member.id));
        assert!(branch.default || !branch.labels.is_empty());
        for label in &branch.labels {
            check_value(model, label);
            assert!(labels.insert(format!("{label:?}")), "a label stands once");
        }
    }
    assert!(union.branches.iter().filter(|one| one.default).count() <= 1);
}

fn check_enum(enumeration: &Enum) {
    assert!(enumeration.default_literal < enumeration.literals.len());
    assert!((1..=32).contains(&enumeration.bit_bound));
    let values: HashSet<i32> = enumeration.literals.iter().map(|one| one.value).collect();
    assert_eq!(values.len(), enumeration.literals.len());
}

fn check_bitset(model: &Model, bitset: &Bitset) {
    assert!((1..=64).contains(&bitset.bits) && bitset.inherited <= bitset.fields.len());
    let mut end = 0;
    for field in &bitset.fields {
        assert!(field.offset >= end && field.bits >= 1);
        end = field.offset + field.bits;
    }
    assert!(end <= bitset.bits);
    if let Some(base) = bitset.base {
        let TypeKind::Bitset(base) = kind(model, base) else {
            panic!("the base is no bitset");
        };
        assert_eq!(base.fields, bitset.fields[..bitset.inherited]);
    }
}

fn check_value(model: &Model, value: &Value) {
    if let Value::Enum(id, index) = value {
        let TypeKind::Enum(of) = kind(model, *id) else {
            panic!("a literal of a type that is no enum");
        };
        assert!(*index < of.literals.len());
    }
}
