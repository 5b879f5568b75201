//! Rust for the types of a model that exercises their builders and the fields of their views:
//! implementations of the traits of the library's module `exercise`. It follows the mapping
//! from IDL to Rust, as an application does, and not the output of the compiler.

mod builders;
mod types;
mod unions;

use std::fmt::{self, Write as _};

use spindle_dds_idl::mapping;
use spindle_dds_idl::model::{Item, Model, Module, TypeDecl, TypeKind};

use types::Types;

/// The generated code.
#[derive(Debug, Default)]
pub(crate) struct Code {
    /// Implementations, for the crate of the types.
    pub(crate) implementations: String,
    /// A test for each topic type, for a module inside one with a function `every_way`.
    pub(crate) tests: String,
    /// The paths of the topic types inside `generated`.
    pub(crate) topics: Vec<String>,
}

/// Writes the code for all types of a model; `generated` is the module of the types.
///
/// # Errors
/// None: the text grows as long as there is memory.
pub(crate) fn code(model: &Model, generated: &str) -> Result<Code, fmt::Error> {
    let types = Types {
        model,
        root: format!("crate::{generated}"),
    };
    let mut code = Code::default();
    let mut declared = Vec::new();
    declarations(model, &model.root, &mut declared);
    let sizes: Vec<String> = declared
        .iter()
        .filter(|decl| matches!(decl.kind, TypeKind::Struct(_) | TypeKind::Union(_)))
        .map(|decl| {
            let path = types.path(decl);
            format!("::core::mem::size_of::<{path}>() + <{path} as Shape>::INITIAL_HEAP")
        })
        .collect();
    writeln!(
        code.implementations,
        "use ::spindle_dds_idl_conformance::random::Random;\n\
         use ::spindle_dds_idl_conformance::exercise;\n\
         use ::spindle_dds_idl_runtime::in_place::Composite;\n\
         use ::spindle_dds_idl_runtime::shape::Shape;\n\
         use ::spindle_dds_idl_runtime::{{CdrError, Ready, Entries, List, Room, Slot}};\n\
         const ELEMENT_BYTES_MAX: usize = exercise::greatest(&[{}]);",
        sizes.join(", ")
    )?;
    for decl in &declared {
        let out = &mut code.implementations;
        match &decl.kind {
            TypeKind::Struct(structure) => {
                types.structure(out, decl, structure)?;
                types.composite(out, decl, types.is_fixed_struct(structure))?;
                if !structure.nested {
                    let defaults = types.has_defaults(decl);
                    types.topic(out, decl, defaults, "*view")?;
                }
            }
            TypeKind::Union(union) => {
                types.union(out, decl, union)?;
                types.composite(out, decl, false)?;
                if !union.nested {
                    let defaults = types.has_defaults(decl);
                    types.topic(out, decl, defaults, "view.view()")?;
                }
            }
            TypeKind::Enum(of) => {
                let path = types.path(decl);
                let all = of.literals.iter().map(|literal| {
                    let name = mapping::identifier(&literal.name);
                    format!("{path}::{name}")
                });
                let all: Vec<String> = all.collect();
                writeln!(
                    out,
                    "impl exercise::Literals for {path} {{\n\
                     const ALL: &'static [Self] = &[{}];\n}}",
                    all.join(", ")
                )?;
            }
            _ => {}
        }
        let is_topic = match &decl.kind {
            TypeKind::Struct(structure) => !structure.nested,
            TypeKind::Union(union) => !union.nested,
            _ => false,
        };
        if is_topic {
            let names = decl.scope.iter().chain([&decl.name]);
            let names: Vec<String> = names.map(|name| mapping::identifier(name)).collect();
            let path = names.join("::");
            writeln!(
                code.tests,
                "#[test]\nfn {}() {{\n    super::every_way::<crate::{generated}::{path}>();\n}}",
                names.join("_").to_lowercase(),
            )?;
            code.topics.push(path);
        }
    }
    Ok(code)
}

fn declarations<'m>(model: &'m Model, module: &'m Module, found: &mut Vec<&'m TypeDecl>) {
    for item in &module.items {
        match item {
            Item::Module(inner) => declarations(model, inner, found),
            Item::Type(id) => found.push(&model.types[id.0]),
            _ => {}
        }
    }
}

impl Types<'_> {
    /// The common part of structures and unions: their builders in lists and maps.
    fn composite(&self, out: &mut String, decl: &TypeDecl, fixed: bool) -> fmt::Result {
        let path = self.path(decl);
        let add = match fixed {
            true => "1 => exercise::Fill::fill(value, list.add()?, random).map(|_| ()),",
            false => "",
        };
        writeln!(
            out,
            "impl exercise::ExerciseShape for {path} {{\n\
             fn any(random: &mut Random) -> Self {{ Self::any_(random) }}\n\
             fn same(shown: <Self as Shape>::Shown<'_>, owned: &Self) -> bool {{\n\
                 Self::same_(shown, owned)\n\
             }}\n\
             fn push<E: From<CdrError>>(list: &mut List<'_, Self, E>, value: &Self, \
                 random: &mut Random) -> Result<(), E> {{\n\
                 match random.below(3) {{\n\
                 0 => list.push(value),\n\
                 {add}\n\
                 _ => list.push_with(|inner| exercise::Fill::fill(value, inner, random)),\n\
                 }}\n\
             }}\n\
             fn insert<K: ::spindle_dds_idl_runtime::shape::MapKey, E: From<CdrError>>(\
                 entries: &mut Entries<'_, K, Self, E>, key: &K::Borrowed, value: &Self, \
                 random: &mut Random) -> Result<(), E> {{\n\
                 match random.coin() {{\n\
                 true => entries.insert(key, value),\n\
                 false => entries.insert_with(key, |inner| \
                     exercise::Fill::fill(value, inner, random)),\n\
                 }}\n\
             }}\n}}"
        )
    }

    /// A topic type; `shown` is its view in the form that other views have of it.
    fn topic(&self, out: &mut String, decl: &TypeDecl, defaults: bool, shown: &str) -> fmt::Result {
        let path = self.path(decl);
        writeln!(
            out,
            "impl exercise::Exercise for {path} {{\n\
             const DEFAULTS: bool = {defaults};\n\
             const ELEMENT_BYTES_MAX: usize = ELEMENT_BYTES_MAX;\n\
             fn is_shown(view: &<Self as ::spindle_dds_idl_runtime::TopicType>::View<'_>, \
                 value: &Self) -> bool {{\n\
                 <Self as exercise::ExerciseShape>::same({shown}, value)\n\
             }}\n\
             fn build_all<S: Slot>(&self, \
                 builder: <Self as ::spindle_dds_idl_runtime::TopicType>::Builder<S>, \
                 random: &mut Random) -> Result<S::Receipt, S::Error> {{\n\
                 exercise::Fill::fill(self, builder, random)?.publish()\n\
             }}\n}}"
        )
    }
}
