//! `const`.

use proc_macro2::TokenStream;
use quote::quote;

use super::{Emitter, docs};
use crate::model::{ConstDecl, Type};

impl Emitter<'_> {
    pub(super) fn constant(&self, decl: &ConstDecl) -> TokenStream {
        let docs = docs(&decl.doc);
        let name = self.names.declared(&decl.scope, &decl.name);
        let ty = match self.resolve(&decl.ty) {
            Type::String { .. } | Type::WString { .. } => {
                let str = self.names.primitive("str");
                quote!(&#str)
            }
            _ => self.owned(&decl.ty, &decl.scope),
        };
        let value = self.value(&decl.value, &decl.ty, &decl.scope);
        quote!(#docs pub const #name: #ty = #value;)
    }
}
