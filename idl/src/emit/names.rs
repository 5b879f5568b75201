//! Which names generated items have, and how one scope says them in another.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};

use super::{EmitOptions, Scope};
use crate::mapping;
use crate::model::{Item, Model, Module, Struct, TypeId, TypeKind};

/// Generated names beside a structure.
pub(super) struct Companions {
    pub(super) view: Ident,
    pub(super) builder: Ident,
    pub(super) members: Ident,
}

/// All names of a model.
pub(super) struct Names {
    companions: BTreeMap<TypeId, Companions>,
    /// Every declared Rust name, in any scope: what generated code must not take
    /// for the standard library's.
    declared: BTreeSet<String>,
    extern_modules: BTreeMap<String, String>,
}

impl Names {
    pub(super) fn new(model: &Model, options: &EmitOptions) -> Self {
        let mut names = Self {
            companions: BTreeMap::new(),
            declared: BTreeSet::new(),
            extern_modules: options.extern_modules.clone(),
        };
        names.collect(model, &model.root);
        names
    }

    fn collect(&mut self, model: &Model, module: &Module) {
        let mut taken: BTreeSet<String> = module
            .items
            .iter()
            .map(|item| match item {
                Item::Module(inner) => mapping::identifier(&inner.name),
                Item::Type(id) => mapping::identifier(&model.types[id.0].name),
                Item::Const(id) => mapping::identifier(&model.constants[id.0].name),
                Item::Interface(id) => mapping::identifier(&model.interfaces[id.0].name),
            })
            .collect();
        self.declared.extend(taken.iter().cloned());
        for item in &module.items {
            match item {
                Item::Module(inner) => self.collect(model, inner),
                Item::Type(id) if matches!(model.types[id.0].kind, TypeKind::Struct(_)) => {
                    let name = &model.types[id.0].name;
                    let mut companion =
                        |suffix| ident(&fresh(&mut taken, &format!("{name}{suffix}")));
                    let (view, builder, members) = (
                        companion("View"),
                        companion("Builder"),
                        companion("Members"),
                    );
                    self.companions.insert(
                        *id,
                        Companions {
                            view,
                            builder,
                            members,
                        },
                    );
                    if let TypeKind::Struct(structure) = &model.types[id.0].kind {
                        self.declared
                            .extend(fields(structure).iter().map(Ident::to_string));
                    }
                }
                Item::Type(_) | Item::Const(_) | Item::Interface(_) => {}
            }
        }
    }

    /// The generated names beside a structure.
    pub(super) fn companions(&self, id: TypeId) -> &Companions {
        &self.companions[&id]
    }

    /// A primitive, so that a typedef of its name does no harm.
    pub(super) fn primitive(&self, name: &str) -> TokenStream {
        let ident = ident(name);
        if self.declared.contains(name) {
            quote!(::core::primitive::#ident)
        } else {
            quote!(#ident)
        }
    }

    /// A name of the prelude, by its path only where the IDL has the same name.
    pub(super) fn prelude(&self, name: &str, path: &str) -> TokenStream {
        let ident = ident(name);
        let path = self::path(path);
        if self.declared.contains(name) {
            quote!(#path::#ident)
        } else {
            quote!(#ident)
        }
    }

    /// A type parameter that no declared type is named as.
    pub(super) fn parameter(&self, name: &str) -> Ident {
        let mut name = name.to_owned();
        while self.declared.contains(&name) {
            name.push('_');
        }
        ident(&name)
    }

    /// How `from` says `item` of `scope`.
    pub(super) fn path(&self, from: &Scope, scope: &Scope, item: &Ident) -> TokenStream {
        for length in (1..=scope.len()).rev() {
            if let Some(path) = self.extern_modules.get(&scope[..length].join("::")) {
                let path = self::path(path);
                let rest = scope[length..]
                    .iter()
                    .map(|name| ident(&mapping::identifier(name)));
                return quote!(#path #(::#rest)* ::#item);
            }
        }
        if from == scope {
            return quote!(#item);
        }
        let shared = from.iter().zip(scope).take_while(|(a, b)| a == b).count();
        let up = from[shared..].iter().map(|_| quote!(super::));
        let down = scope[shared..]
            .iter()
            .map(|name| ident(&mapping::identifier(name)));
        let here = (from.len() == shared).then(|| quote!(self::));
        quote!(#here #(#up)* #(#down::)* #item)
    }
}

/// `name`, or with as many underscores as it takes to be new.
pub(super) fn fresh(taken: &mut BTreeSet<String>, name: &str) -> String {
    let mut name = name.to_owned();
    while !taken.insert(name.clone()) {
        name.push('_');
    }
    name
}

/// An identifier that is known to be one.
pub(super) fn ident(name: &str) -> Ident {
    Ident::new(name, Span::call_site())
}

/// A path that has been checked.
pub(super) fn path(path: &str) -> TokenStream {
    path.parse().unwrap_or_default()
}

/// Field names of a structure: distinct, and no keywords.
pub(super) fn fields(structure: &Struct) -> Vec<Ident> {
    let mut taken = BTreeSet::new();
    let plain = |name: &str| mapping::identifier(name) == name;
    for member in structure
        .members
        .iter()
        .filter(|member| plain(&member.name))
    {
        taken.insert(member.name.clone());
    }
    let field = |name: &String| match plain(name) {
        true => format_ident!("{name}"),
        false => ident(&fresh(&mut taken, &mapping::identifier(name))),
    };
    structure
        .members
        .iter()
        .map(|member| &member.name)
        .map(field)
        .collect()
}
