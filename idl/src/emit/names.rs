//! Names of generated items, and their paths from other scopes.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;

use super::{EmitOptions, Scope};
use crate::mapping;
use crate::model::{
    Alias, InterfaceDecl, InterfaceId, Item, Model, Struct, Type, TypeDecl, TypeId, TypeKind,
};

/// Generated names beside a structure or union.
pub(super) struct Companions {
    pub(super) view: Ident,
    /// The view of a whole sample.
    pub(super) topic_view: Ident,
    pub(super) builder: Ident,
    pub(super) members: Ident,
}

/// Prefix of the setter of an attribute.
pub(super) const SETTER: &str = "set_";

/// The name of the runtime in modules.
const RUNTIME: &str = "__rt";

/// All names of a model.
pub(super) struct Names {
    companions: BTreeMap<TypeId, Companions>,
    /// Renamed declarations, by scope and name in IDL.
    renamed: BTreeMap<(Vec<String>, String), Ident>,
    /// Modules for the declarations inside interfaces, by their scope in IDL.
    modules: BTreeMap<Vec<String>, Ident>,
    /// Errors of the methods of interfaces, by the interface, the prefix of the method and
    /// the name in IDL.
    failures: BTreeMap<(InterfaceId, &'static str, String), Ident>,
    /// The variants of enumerations, in the order of their literals.
    literals: BTreeMap<TypeId, Vec<Ident>>,
    /// Every declared Rust name of any scope: generated code must not confuse them with
    /// names of the standard library.
    declared: BTreeSet<String>,
    extern_modules: BTreeMap<String, String>,
}

impl Names {
    pub(super) fn new(model: &Model, options: &EmitOptions) -> Self {
        let mut names = Self {
            companions: BTreeMap::new(),
            renamed: BTreeMap::new(),
            modules: BTreeMap::new(),
            failures: BTreeMap::new(),
            literals: BTreeMap::new(),
            declared: BTreeSet::new(),
            extern_modules: options.extern_modules.clone(),
        };
        names.collect(model, &[], &model.root.items);
        names
    }

    fn collect(&mut self, model: &Model, scope: &Scope, items: &[Item]) {
        let here = items.iter().map(|item| match item {
            Item::Module(inner) => (&inner.name[..], true),
            Item::Type(id) => (&model.types[id.0].name[..], may_be_type(model, *id)),
            Item::Const(id) => {
                let name = &model.constants[id.0].name[..];
                (name, !mapping::VARIABLES.contains(&name))
            }
            Item::Interface(id) => (&model.interfaces[id.0].name[..], true),
        });
        let mut taken = BTreeSet::from([RUNTIME.to_owned()]);
        let named = side_by_side(here.clone(), &mut taken);
        for ((name, _), ident) in here.zip(named) {
            if ident != name {
                self.renamed
                    .insert((scope.to_vec(), name.to_owned()), ident);
            }
        }
        self.declared.extend(taken.iter().cloned());
        for item in items {
            match item {
                Item::Module(inner) => {
                    let scope = [scope, std::slice::from_ref(&inner.name)].concat();
                    self.collect(model, &scope, &inner.items);
                }
                Item::Type(id) => self.collect_type(model, *id, &mut taken),
                Item::Interface(id) => {
                    let decl = &model.interfaces[id.0];
                    self.collect_interface(*id, decl, &mut taken);
                    let scope = [scope, std::slice::from_ref(&decl.name)].concat();
                    self.collect(model, &scope, &decl.items);
                }
                Item::Const(_) => {}
            }
        }
    }

    /// The Rust name of a declared type.
    pub(super) fn declared_type(&self, decl: &TypeDecl) -> Ident {
        self.declared(&decl.scope, &decl.name)
    }

    /// The Rust name of a declaration in a scope.
    pub(super) fn declared(&self, scope: &Scope, name: &str) -> Ident {
        let other = match self.renamed.is_empty() {
            true => None,
            false => self.renamed.get(&(scope.to_vec(), name.to_owned())),
        };
        other.map_or_else(|| ident(name), Ident::clone)
    }

    fn collect_type(&mut self, model: &Model, id: TypeId, taken: &mut BTreeSet<String>) {
        let decl = &model.types[id.0];
        let mut companion = |suffix| ident(&fresh(taken, &format!("{}{suffix}", decl.name)));
        let (members, companions) = match &decl.kind {
            TypeKind::Struct(structure) => {
                let view = companion("View");
                let companions = Companions {
                    topic_view: view.clone(),
                    view,
                    builder: companion("Builder"),
                    members: companion("Members"),
                };
                (fields(structure), companions)
            }
            TypeKind::Union(union) => {
                let companions = Companions {
                    view: companion("View"),
                    topic_view: companion("Sample"),
                    builder: companion("Builder"),
                    members: companion("Members"),
                };
                (fields(&super::union::as_structure(union)), companions)
            }
            TypeKind::Enum(enumeration) => {
                let literals = enumeration.literals.iter();
                let literals = distinct(literals.map(|literal| &literal.name[..]), &[]);
                self.literals.insert(id, literals);
                return;
            }
            _ => return,
        };
        self.declared.extend(members.iter().map(Ident::to_string));
        self.companions.insert(id, companions);
    }

    fn collect_interface(
        &mut self,
        id: InterfaceId,
        decl: &InterfaceDecl,
        taken: &mut BTreeSet<String>,
    ) {
        if !decl.items.is_empty() {
            let module = ident(&fresh(taken, &format!("{}Scope", decl.name)));
            let scope = [&decl.scope[..], std::slice::from_ref(&decl.name)].concat();
            self.modules.insert(scope, module);
        }
        let operations = decl
            .operations
            .iter()
            .filter(|operation| !operation.raises.is_empty())
            .map(|operation| ("", &operation.name));
        let getters = decl
            .attributes
            .iter()
            .filter(|attribute| !attribute.get_raises.is_empty())
            .map(|attribute| ("", &attribute.name));
        let setters = decl
            .attributes
            .iter()
            .filter(|attribute| !attribute.set_raises.is_empty())
            .map(|attribute| (SETTER, &attribute.name));
        for (prefix, name) in operations.chain(getters).chain(setters) {
            let method = format!("{prefix}{name}");
            let error = super::interface::failure_name(&decl.name, &method);
            let error = ident(&fresh(taken, &error));
            self.failures.insert((id, prefix, name.clone()), error);
        }
    }

    /// The error of a method of an interface that raises exceptions.
    pub(super) fn failure(
        &self,
        interface: InterfaceId,
        prefix: &'static str,
        name: &str,
    ) -> &Ident {
        &self.failures[&(interface, prefix, name.to_owned())]
    }

    /// The variants of an enumeration, in the order of its literals.
    pub(super) fn literals(&self, id: TypeId) -> &[Ident] {
        &self.literals[&id]
    }

    /// The Rust module of a scope of IDL.
    pub(super) fn module(&self, scope: &Scope) -> Ident {
        match (self.modules.get(scope), scope.split_last()) {
            (Some(module), _) => module.clone(),
            (None, Some((name, around))) => self.declared(around, name),
            (None, None) => ident("crate"),
        }
    }

    /// The generated names beside a structure or union.
    pub(super) fn companions(&self, id: TypeId) -> &Companions {
        &self.companions[&id]
    }

    /// The path of a primitive, which a typedef of the same name does not shadow.
    pub(super) fn primitive(&self, name: &str) -> TokenStream {
        let ident = ident(name);
        if self.declared.contains(name) {
            quote!(::core::primitive::#ident)
        } else {
            quote!(#ident)
        }
    }

    /// A name of the prelude, as a path only if the IDL has the same name.
    pub(super) fn prelude(&self, name: &str, path: &str) -> TokenStream {
        let ident = ident(name);
        let path = self::path(path);
        if self.declared.contains(name) {
            quote!(#path::#ident)
        } else {
            quote!(#ident)
        }
    }

    /// A type parameter whose name no declared type has.
    pub(super) fn parameter(&self, name: &str) -> Ident {
        let mut name = name.to_owned();
        while self.declared.contains(&name) {
            name.push('_');
        }
        ident(&name)
    }

    /// The path to `item` of `scope` from `from`.
    pub(super) fn path(&self, from: &Scope, scope: &Scope, item: &Ident) -> TokenStream {
        for length in (1..=scope.len()).rev() {
            if let Some(path) = self.extern_modules.get(&scope[..length].join("::")) {
                let path = self::path(path);
                let rest = (length..scope.len()).map(|last| self.module(&scope[..=last]));
                return quote!(#path #(::#rest)* ::#item);
            }
        }
        if from == scope {
            return quote!(#item);
        }
        let shared = from.iter().zip(scope).take_while(|(a, b)| a == b).count();
        let up = from[shared..].iter().map(|_| quote!(super::));
        let down = (shared..scope.len()).map(|last| self.module(&scope[..=last]));
        // Without `self::`: derives repeat paths outside of the lints that the item allows.
        quote!(#(#up)* #(#down::)* #item)
    }
}

/// Whether a type may keep its IDL name. The derives of serde use `str`, `u8` and `u64`, and
/// mean those of Rust.
fn may_be_type(model: &Model, id: TypeId) -> bool {
    let decl = &model.types[id.0];
    let mut meant = &decl.kind;
    while let TypeKind::Alias(Alias {
        ty: Type::Named(id),
        ..
    }) = meant
    {
        meant = &model.types[id.0].kind;
    }
    let harmless = match meant {
        TypeKind::Alias(Alias {
            ty: Type::Primitive(primitive),
            ..
        }) => mapping::primitive(*primitive) == decl.name,
        _ => false,
    };
    // A bitmask is a tuple structure, whose name is also that of a function.
    let value = matches!(decl.kind, TypeKind::Bitmask(_));
    let variable = value && mapping::VARIABLES.contains(&&*decl.name);
    let derived = matches!(&*decl.name, "str" | "u8" | "u64") && !harmless;
    !variable && !derived
}

/// `name`, with as many underscores as make it unique.
pub(super) fn fresh(taken: &mut BTreeSet<String>, name: &str) -> String {
    let mut name = name.to_owned();
    while !taken.insert(name.clone()) {
        name.push('_');
    }
    name
}

/// An identifier from checked text.
pub(super) fn ident(name: &str) -> Ident {
    Ident::new(name, Span::call_site())
}

/// A path from checked text.
pub(super) fn path(path: &str) -> TokenStream {
    path.parse().unwrap_or_default()
}

/// Field names of a structure.
pub(super) fn fields(structure: &Struct) -> Vec<Ident> {
    distinct(
        structure.members.iter().map(|member| &member.name[..]),
        &[RUNTIME],
    )
}

/// Rust names for sibling names of the IDL, distinct from the `generated` ones.
pub(super) fn distinct<'n>(
    names: impl Iterator<Item = &'n str> + Clone,
    generated: &[&str],
) -> Vec<Ident> {
    let mut taken = generated.iter().map(|name| (*name).to_owned()).collect();
    side_by_side(names.map(|name| (name, true)), &mut taken)
}

/// Rust names for sibling names of the IDL, by the one rule for all names: first, each
/// name that is neither a keyword nor taken stays; then the others, in order, get as many
/// underscores as make them unique.
pub(super) fn side_by_side<'n>(
    names: impl Iterator<Item = (&'n str, bool)> + Clone,
    taken: &mut BTreeSet<String>,
) -> Vec<Ident> {
    let stay = |(name, may): (&str, bool)| {
        may && mapping::identifier(name) == name && taken.insert(name.to_owned())
    };
    let stays: Vec<bool> = names.clone().map(stay).collect();
    let named = names.zip(stays).map(|((name, _), stays)| match stays {
        true => ident(name),
        false => ident(&fresh(taken, &format!("{name}_"))),
    });
    named.collect()
}
