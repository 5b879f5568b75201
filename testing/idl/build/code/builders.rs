//! Calls of the builders of structures, member by member.

use std::fmt::{self, Write as _};

use spindle_dds_idl::mapping;
use spindle_dds_idl::model::{Extensibility, Member, Struct, Type, TypeDecl};

use super::types::Types;

impl Types<'_> {
    pub(super) fn fill_structure(
        &self,
        out: &mut String,
        decl: &TypeDecl,
        structure: &Struct,
        sent: &[&Member],
    ) -> fmt::Result {
        let (path, builder) = (self.path(decl), self.beside(decl, "Builder"));
        writeln!(
            out,
            "impl exercise::Fill for {path} {{\n\
             fn fill<R: Room>(&self, builder: {builder}<R>, random: &mut Random) \
             -> Result<{builder}<R, Ready>, R::Error> {{"
        )?;
        if structure.extensibility == Extensibility::Mutable {
            writeln!(
                out,
                "let mut builder = builder;\n\
                 for member in random.order({}) {{\nbuilder = match member {{",
                sent.len()
            )?;
            for (index, member) in sent.iter().enumerate() {
                writeln!(out, "{index} => {{")?;
                self.give(out, member)?;
                writeln!(out, "builder\n}}")?;
            }
            writeln!(out, "_ => builder,\n}};\n}}")?;
        } else {
            if self.is_fixed_struct(structure) {
                writeln!(
                    out,
                    "if random.below(4) == 0 {{\n\
                     let mut builder = builder;\nbuilder.set_all(self);\nreturn Ok(builder);\n}}"
                )?;
            }
            for member in sent {
                self.give(out, member)?;
            }
        }
        writeln!(out, "Ok(builder)\n}}\n}}")
    }

    /// Statements that pass one member of `self` to `builder`, in a random way.
    fn give(&self, out: &mut String, member: &Member) -> fmt::Result {
        let field = mapping::identifier(&member.name);
        let method = mapping::identifier_beside(&field, mapping::BUILDER_METHODS);
        let scalar = self.is_scalar(&member.ty);
        if self.is_fixed_member(member) {
            let value = match (scalar, member.boxed) {
                (true, true) => "*",
                (true, false) => "",
                (false, _) => "&",
            };
            let set = format!("builder.set_{}({value}self.{field});", member.name);
            writeln!(out, "let mut builder = builder;")?;
            if !self.is_composite(&member.ty) {
                return writeln!(out, "{set}");
            }
            let deref = if member.boxed { "*" } else { "" };
            return writeln!(
                out,
                "if random.coin() {{ {set} }} else {{\n\
                 exercise::Fill::fill(&{deref}self.{field}, builder.{method}(), random)?;\n}}"
            );
        }
        let argument = match (member.optional, member.boxed, scalar) {
            (true, true, true) => format!("self.{field}.as_deref().copied()"),
            (true, true, false) => format!("self.{field}.as_deref()"),
            (true, false, true) => format!("self.{field}"),
            (true, false, false) => match self.resolve(&member.ty) {
                Type::String { .. } | Type::WString { .. } | Type::Sequence { .. } => {
                    format!("self.{field}.as_deref()")
                }
                _ => format!("self.{field}.as_ref()"),
            },
            (false, ..) => format!("&self.{field}"),
        };
        let whole = format!("builder.{method}({argument})?");
        let value = match (member.optional, member.boxed) {
            (true, true) => format!("self.{field}.as_deref()"),
            (true, false) => format!("self.{field}.as_ref()"),
            (false, true) => format!("Some(&*self.{field})"),
            (false, false) => format!("Some(&self.{field})"),
        };
        let parts = self.in_parts(&member.ty, &format!("builder.{}", member.name), "");
        match &parts[..] {
            [] => writeln!(out, "let builder = {whole};"),
            _ => writeln!(
                out,
                "let builder = match ({value}, random.below({})) {{\n{}(_, _) => {whole},\n}};",
                parts.len() + 1,
                arms(&parts)
            ),
        }
    }

    /// The ways to build `value` in place, as expressions; `first` are the arguments before
    /// it.
    pub(super) fn in_parts(&self, ty: &Type, method: &str, first: &str) -> Vec<String> {
        let elements =
            || format!("{method}_with({first}|list| exercise::each(list, &value[..], random))");
        match self.resolve(ty) {
            Type::Sequence { element, .. } => match self.plain_primitive(&element.ty) {
                Some(primitive) if mapping::is_byte(primitive) => {
                    let copy = "value.len(), |out| out.copy_from_slice(value)";
                    vec![
                        format!("{method}_with({first}{copy})"),
                        format!("{method}_reuse_with({first}{copy})"),
                    ]
                }
                Some(_) => vec![
                    format!("{method}_with({first}value.len(), |mut out| out.copy_from(value))"),
                    format!("{method}_from({first}value.len(), |index| value[index])"),
                ],
                None => vec![elements()],
            },
            Type::Array {
                element,
                dimensions,
            } if dimensions.len() > 1 || self.plain_primitive(&element.ty).is_none() => {
                vec![elements()]
            }
            Type::Map { .. } => vec![format!(
                "{method}_with({first}|map| exercise::entries(map, value, random))"
            )],
            _ if self.is_composite(ty) => vec![format!(
                "{method}_with({first}|inner| exercise::Fill::fill(value, inner, random))"
            )],
            _ => Vec::new(),
        }
    }
}

/// The arms of a match on an optional value and a number.
pub(super) fn arms(parts: &[String]) -> String {
    let arms = parts
        .iter()
        .enumerate()
        .map(|(index, part)| format!("(Some(value), {index}) => {part}?,\n"));
    arms.collect()
}
