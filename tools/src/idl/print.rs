//! `spindle idl print`: the types as the compiler understands them, and on the wire.

use std::fmt::Write as _;

use spindle_dds::idl::Representation;
use spindle_dds_idl::model::{Model, Struct, TypeDecl, TypeId, TypeKind};
use spindle_dds_idl::type_object::TypeDescriptions;

const REPRESENTATIONS: [(Representation, &str); 2] = [
    (Representation::Xcdr1, "XCDR1"),
    (Representation::Xcdr2, "XCDR2"),
];

/// The model, and the wire format of each structure and union.
pub(super) fn text(model: &Model) -> String {
    let mut out = spindle_dds_idl::print(model);
    // The front end has reported names that are too long for a TypeObject.
    let Ok(descriptions) = TypeDescriptions::of(model) else {
        return out;
    };
    for (index, decl) in model.types.iter().enumerate() {
        let is_data = match &decl.kind {
            TypeKind::Struct(structure) => !structure.exception,
            TypeKind::Union(_) => true,
            _ => false,
        };
        if is_data {
            out.push('\n');
            wire(&mut out, &descriptions, TypeId(index), decl);
        }
    }
    out
}

/// The lines of one type.
fn wire(out: &mut String, descriptions: &TypeDescriptions, id: TypeId, decl: &TypeDecl) {
    let scope: String = decl.scope.iter().map(|name| format!("{name}::")).collect();
    line(out, 0, &format!("{scope}{}", decl.name));
    line(out, 1, &format!("key: {}", key(&decl.kind)));
    let (Some(ty), Some(index)) = (descriptions.dynamic(id), descriptions.index(id)) else {
        line(
            out,
            1,
            "TypeIdentifier: none, XTypes cannot describe a part of it",
        );
        return;
    };
    for (representation, name) in REPRESENTATIONS {
        let layout = ty.layout(representation);
        let size = match layout.size_max {
            Some(most) if most == layout.size_min => format!("{most} bytes"),
            Some(most) => format!("{} to {most} bytes", layout.size_min),
            None => format!("{} bytes or more, without a bound", layout.size_min),
        };
        line(out, 1, &format!("{name}: {size}"));
        if let TypeKind::Struct(structure) = &decl.kind
            && !layout.offsets.is_empty()
        {
            line(out, 2, &offsets(structure, &layout.offsets));
        }
    }
    let described = descriptions.descriptions();
    let forms = [
        ("minimal", described.minimal(index)),
        ("complete", described.complete(index)),
    ];
    for (form, described) in forms {
        if let Some(described) = described {
            let text = format!("TypeIdentifier, {form}: {}", described.identifier);
            line(out, 1, &text);
        }
    }
}

fn key(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Struct(structure) => {
            let keys = structure.members.iter().filter(|member| member.key);
            let names: Vec<&str> = keys.map(|member| member.name.as_str()).collect();
            match names.is_empty() {
                true => "none".to_owned(),
                false => names.join(", "),
            }
        }
        TypeKind::Union(union) if union.discriminator.key => "the discriminator".to_owned(),
        _ => "none".to_owned(),
    }
}

/// Offsets of the members; `-` where an offset depends on the members before.
fn offsets(structure: &Struct, offsets: &[Option<usize>]) -> String {
    let members = structure
        .members
        .iter()
        .filter(|member| !member.non_serialized);
    let mut text = String::from("offsets:");
    for (member, offset) in members.zip(offsets) {
        // Writing to a string does not fail.
        let _ = match offset {
            Some(offset) => write!(text, " {} {offset}", member.name),
            None => write!(text, " {} -", member.name),
        };
    }
    text
}

fn line(out: &mut String, depth: usize, text: &str) {
    out.push_str(&"  ".repeat(depth));
    out.push_str(text);
    out.push('\n');
}
