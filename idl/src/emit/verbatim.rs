//! `@verbatim`: text of the user in the generated code, which must be Rust.
//!
//! Text inside a declaration goes into its first braces: those of a structure, union,
//! enumeration or bitset, or those of the constants of a bitmask.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::quote;

use super::structure::type_name;
use super::{EmitError, Emitter};
use crate::model::{Placement, TypeDecl, TypeId, TypeKind, Verbatim};

impl Emitter<'_> {
    /// Checks all texts, and returns those at the beginning and at the end of the file.
    pub(super) fn check_verbatim(&self) -> Result<(String, String), EmitError> {
        let (mut begin, mut end) = (String::new(), String::new());
        for (index, decl) in self.model.types.iter().enumerate() {
            if rust(decl).next().is_none() || self.is_elsewhere(&decl.scope) {
                continue;
            }
            for verbatim in rust(decl) {
                let error = |message: String| EmitError::Verbatim {
                    name: type_name(decl),
                    message,
                };
                let tokens = verbatim.text.parse::<TokenStream>();
                tokens.map_err(|error_of_text| error(error_of_text.to_string()))?;
                let text = verbatim.text.trim();
                match verbatim.placement {
                    Placement::BeginFile => begin.push_str(&format!("{text}\n\n")),
                    Placement::EndFile => end.push_str(&format!("\n{text}\n")),
                    Placement::BeginDeclaration | Placement::EndDeclaration
                        if matches!(decl.kind, TypeKind::Alias(_) | TypeKind::Native) =>
                    {
                        return Err(error("a type alias contains no names".to_owned()));
                    }
                    _ => {}
                }
            }
            // The texts may be invalid only together, or only at this place.
            syn::parse2::<syn::File>(self.type_decl(TypeId(index))).map_err(|error| {
                EmitError::Verbatim {
                    name: type_name(decl),
                    message: format!("the declaration with it is not valid Rust: {error}"),
                }
            })?;
        }
        for text in [&begin, &end] {
            syn::parse_file(text).map_err(|error| EmitError::Verbatim {
                name: "the file".to_owned(),
                message: error.to_string(),
            })?;
        }
        Ok((begin, end))
    }
}

/// The texts for Rust.
fn rust(decl: &TypeDecl) -> impl Iterator<Item = &Verbatim> {
    decl.verbatim.iter().filter(|verbatim| verbatim.is_rust())
}

/// A declaration with its texts around and inside it.
pub(super) fn around(decl: &TypeDecl, items: TokenStream) -> TokenStream {
    let text = |placement: Placement| -> TokenStream {
        rust(decl)
            .filter(|verbatim| verbatim.placement == placement)
            .filter_map(|verbatim| verbatim.text.parse::<TokenStream>().ok())
            .collect()
    };
    if rust(decl).next().is_none() {
        return items;
    }
    let before = text(Placement::BeforeDeclaration);
    let begin = text(Placement::BeginDeclaration);
    let end = text(Placement::EndDeclaration);
    let after = text(Placement::AfterDeclaration);
    let items = inside(items, &begin, &end);
    quote!(#before #items #after)
}

/// With text at both ends of the first braces.
fn inside(items: TokenStream, begin: &TokenStream, end: &TokenStream) -> TokenStream {
    if begin.is_empty() && end.is_empty() {
        return items;
    }
    let mut done = false;
    items
        .into_iter()
        .map(|token| match token {
            TokenTree::Group(group) if !done && group.delimiter() == Delimiter::Brace => {
                done = true;
                let stream = group.stream();
                TokenTree::Group(Group::new(Delimiter::Brace, quote!(#begin #stream #end)))
            }
            token => token,
        })
        .collect()
}
