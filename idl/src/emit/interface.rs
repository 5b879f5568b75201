//! `interface`: a trait whose methods are its attributes and operations.
//!
//! `in` parameters are references, `inout` parameters mutable references, `out`
//! parameters are returned. An operation that raises exceptions returns a `Result` whose
//! error is an enum of exactly these. Declarations inside an interface are in a module
//! beside it.

use std::collections::BTreeSet;

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::{Emitter, Scope, docs, names};
use crate::model::{
    Attribute, Direction, InterfaceDecl, InterfaceId, Operation, Type, TypeId, TypeKind,
};

/// A method that may fail, with its exceptions.
struct Failure<'m> {
    error: Ident,
    /// `Interface.operation`.
    of: String,
    raises: &'m [TypeId],
}

impl Emitter<'_> {
    pub(super) fn interface(&self, id: InterfaceId) -> TokenStream {
        let decl = &self.model.interfaces[id.0];
        let name = self.names.declared(&decl.scope, &decl.name);
        let doc = docs(&decl.doc);
        let bases = decl
            .bases
            .iter()
            .map(|base| self.interface_path(*base, &decl.scope));
        let operations = decl.operations.iter().map(|one| &one.name[..]);
        let attributes = decl.attributes.iter().map(|one| &one.name[..]);
        let named = names::distinct(operations.chain(attributes), &[]);
        // The setter of an attribute gives way to names from the IDL.
        let mut taken = named.iter().map(Ident::to_string).collect();
        let (operations, getters) = named.split_at(decl.operations.len());
        let mut failures = Vec::new();
        let mut methods = Vec::new();
        for (operation, method) in decl.operations.iter().zip(operations) {
            methods.push(self.operation(id, decl, operation, method, &mut failures));
        }
        for (attribute, getter) in decl.attributes.iter().zip(getters) {
            methods.push(self.attribute(id, decl, attribute, getter, &mut taken, &mut failures));
        }
        let errors = failures
            .iter()
            .map(|failure| self.failure(failure, &decl.scope));
        quote! {
            #doc
            pub trait #name: ::core::marker::Send + ::core::marker::Sync #(+ #bases)* {
                #(#methods)*
            }

            #(#errors)*
        }
    }

    /// Path of an interface's trait.
    pub(super) fn interface_path(&self, id: InterfaceId, from: &Scope) -> TokenStream {
        let decl = &self.model.interfaces[id.0];
        let name = self.names.declared(&decl.scope, &decl.name);
        self.names.path(from, &decl.scope, &name)
    }

    fn operation<'m>(
        &self,
        id: InterfaceId,
        decl: &InterfaceDecl,
        operation: &'m Operation,
        method: &Ident,
        failures: &mut Vec<Failure<'m>>,
    ) -> TokenStream {
        let doc = docs(&operation.doc);
        let names = names::distinct(operation.parameters.iter().map(|one| &one.name[..]), &[]);
        let parameters = operation.parameters.iter().zip(&names);
        let taken = parameters.filter_map(|(parameter, name)| match parameter.direction {
            Direction::In => {
                let ty = self.lent(&parameter.ty, &decl.scope);
                Some(quote!(#name: #ty))
            }
            Direction::InOut => {
                let ty = self.owned(&parameter.ty, &decl.scope);
                Some(quote!(#name: &mut #ty))
            }
            Direction::Out => None,
        });
        let out = operation
            .parameters
            .iter()
            .filter(|one| one.direction == Direction::Out)
            .map(|one| &one.ty);
        let returned: Vec<_> = operation
            .returns
            .iter()
            .chain(out)
            .map(|ty| self.owned(ty, &decl.scope))
            .collect();
        let returned = match &returned[..] {
            [] => quote!(()),
            [one] => quote!(#one),
            several => quote!((#(#several),*)),
        };
        let failure = (!operation.raises.is_empty()).then(|| Failure {
            error: self.names.failure(id, "", &operation.name).clone(),
            of: format!("{}.{}", decl.name, operation.name),
            raises: &operation.raises,
        });
        let result = result(&returned, failure.as_ref());
        let note = failure
            .as_ref()
            .map(|failure| errors_note(failure, !operation.doc.is_empty()));
        failures.extend(failure);
        quote!(#doc #note fn #method(&self, #(#taken),*) #result;)
    }

    fn attribute<'m>(
        &self,
        id: InterfaceId,
        decl: &InterfaceDecl,
        attribute: &'m Attribute,
        get: &Ident,
        taken: &mut BTreeSet<String>,
        failures: &mut Vec<Failure<'m>>,
    ) -> TokenStream {
        let doc = docs(&attribute.doc);
        let failure = |prefix, raises: &'m [TypeId]| {
            (!raises.is_empty()).then(|| Failure {
                error: self.names.failure(id, prefix, &attribute.name).clone(),
                of: format!("{}.{}", decl.name, attribute.name),
                raises,
            })
        };
        let get_failure = failure("", &attribute.get_raises);
        let owned = self.owned(&attribute.ty, &decl.scope);
        let got = result(&owned, get_failure.as_ref());
        let documented = !attribute.doc.is_empty();
        let note = get_failure
            .as_ref()
            .map(|failure| errors_note(failure, documented));
        let getter = quote!(#doc #note fn #get(&self) #got;);
        failures.extend(get_failure);
        if attribute.readonly {
            return getter;
        }
        let set = format!("{}{}", names::SETTER, attribute.name);
        let set = names::ident(&names::fresh(taken, &set));
        let set_failure = failure(names::SETTER, &attribute.set_raises);
        let lent = self.lent(&attribute.ty, &decl.scope);
        let done = result(&quote!(()), set_failure.as_ref());
        let note = set_failure
            .as_ref()
            .map(|failure| errors_note(failure, documented));
        failures.extend(set_failure);
        quote!(#getter #doc #note fn #set(&self, value: #lent) #done;)
    }

    /// The type of an `in` parameter.
    fn lent(&self, ty: &Type, from: &Scope) -> TokenStream {
        match self.resolve(ty) {
            Type::String { .. } | Type::WString { .. } => {
                let str = self.names.primitive("str");
                quote!(&#str)
            }
            Type::Sequence { element, .. } => {
                let element = self.owned(&element.ty, from);
                quote!(&[#element])
            }
            _ if self.is_scalar(ty) => self.owned(ty, from),
            _ => {
                let owned = self.owned(ty, from);
                quote!(&#owned)
            }
        }
    }

    /// Whether a value is a number or similar, which is copied instead of borrowed.
    pub(super) fn is_scalar(&self, ty: &Type) -> bool {
        match self.resolve(ty) {
            Type::Primitive(_) | Type::Fixed { .. } => true,
            Type::Named(id) => matches!(
                self.decl(*id).kind,
                TypeKind::Enum(_) | TypeKind::Bitmask(_) | TypeKind::Bitset(_)
            ),
            _ => false,
        }
    }

    /// The error of a method: one variant per exception.
    fn failure(&self, failure: &Failure<'_>, scope: &Scope) -> TokenStream {
        let Failure { error, of, raises } = failure;
        let doc = format!(" The exceptions of `{of}`.");
        let named = raises.iter().map(|id| &self.decl(*id).name[..]);
        let exceptions = raises.iter().map(|id| self.named(*id, scope));
        let variants: Vec<_> = names::distinct(named, &[])
            .into_iter()
            .zip(exceptions)
            .collect();
        let declared = variants.iter().map(|(variant, exception)| {
            let doc = format!(" [`{exception}`].").replace(" :: ", "::");
            quote!(#[doc = #doc] #variant(#exception))
        });
        let names: Vec<_> = variants.iter().map(|(variant, _)| variant).collect();
        let conversions = variants.iter().map(|(variant, exception)| {
            quote! {
                impl ::core::convert::From<#exception> for #error {
                    fn from(exception: #exception) -> Self {
                        Self::#variant(exception)
                    }
                }
            }
        });
        quote! {
            #[doc = #doc]
            #[derive(Debug, Clone, PartialEq)]
            pub enum #error {
                #(#declared,)*
            }

            impl ::core::fmt::Display for #error {
                fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    match self {
                        #(Self::#names(exception) => ::core::fmt::Display::fmt(exception, f),)*
                    }
                }
            }

            impl ::core::error::Error for #error {}

            #(#conversions)*
        }
    }
}

fn result(value: &TokenStream, failure: Option<&Failure<'_>>) -> TokenStream {
    match failure {
        Some(Failure { error, .. }) => quote!(-> ::core::result::Result<#value, #error>),
        None if value.to_string() == "()" => TokenStream::new(),
        None => quote!(-> #value),
    }
}

fn errors_note(failure: &Failure<'_>, below: bool) -> TokenStream {
    let blank = below.then(|| quote!(#[doc = ""]));
    let text = format!(" The exceptions of [`{}`].", failure.error);
    quote!(#blank #[doc = " # Errors"] #[doc = #text])
}

/// The name of the error of a method, before it is made unique.
pub(super) fn failure_name(interface: &str, method: &str) -> String {
    let capitalized = |word: &str| {
        let mut letters = word.chars();
        let capital = letters.next().map(|first| first.to_ascii_uppercase());
        capital.into_iter().chain(letters).collect::<String>()
    };
    let method: String = method.split('_').map(capitalized).collect();
    format!("{interface}{method}Error")
}
