//! Structures that lie in samples as in memory.
//!
//! XCDR1 puts a primitive at the next multiple of its size, counted from the start of
//! the sample, and nothing behind the last; `repr(C)` puts a structure at multiples of
//! its largest alignment, and its size is one. A structure is plain if that makes no
//! difference when it starts at a multiple of its alignment, and if any bytes are a
//! value of each of its members.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::structure::Subject;
use super::{Emitter, names};
use crate::model::{Extensibility, Member, Primitive, Type, TypeId, TypeKind};

/// How a plain structure lies, in bytes.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    size: usize,
    align: usize,
    /// Alignment of the first primitive.
    first: usize,
    offsets: Vec<usize>,
    /// Whether there is no padding.
    dense: bool,
    /// Structures and collections inside of each other.
    depth: u8,
}

impl Emitter<'_> {
    /// The layout of a structure, if it is plain.
    pub(super) fn plain(&self, id: TypeId) -> Option<Layout> {
        let decl = self.decl(id);
        let TypeKind::Struct(structure) = &decl.kind else {
            return None;
        };
        let is_extern = (1..=decl.scope.len()).any(|length| {
            let module = decl.scope[..length].join("::");
            self.options.extern_modules.contains_key(&module)
        });
        let excluded = structure.extensibility == Extensibility::Mutable || structure.exception;
        if is_extern || excluded {
            return None;
        }
        let mut layout = Layout {
            size: 0,
            align: 1,
            first: 1,
            offsets: Vec::new(),
            dense: true,
            depth: 1,
        };
        for member in &structure.members {
            let part = self.plain_member(member)?;
            let offset = layout.size.checked_next_multiple_of(part.first)?;
            if !offset.is_multiple_of(part.align) {
                return None;
            }
            if layout.offsets.is_empty() {
                layout.first = part.first;
            }
            layout.dense &= part.dense && offset == layout.size;
            layout.align = layout.align.max(part.align);
            layout.depth = layout.depth.max(part.depth.checked_add(1)?);
            layout.size = offset.checked_add(part.size)?;
            layout.offsets.push(offset);
        }
        let whole = layout.size.is_multiple_of(layout.align);
        (whole && layout.size > 0).then_some(layout)
    }

    fn plain_member(&self, member: &Member) -> Option<Layout> {
        let wrapped = member.optional || member.boxed || member.non_serialized;
        if wrapped || !member.range.is_empty() {
            return None;
        }
        self.plain_type(&member.ty)
    }

    fn plain_type(&self, ty: &Type) -> Option<Layout> {
        match ty {
            Type::Primitive(primitive) => {
                let size = plain_size(*primitive)?;
                Some(Layout {
                    size,
                    align: size,
                    first: size,
                    offsets: Vec::new(),
                    dense: true,
                    depth: 0,
                })
            }
            Type::Array {
                element,
                dimensions,
            } => {
                let mut layout = self.plain_type(&element.ty)?;
                let is_primitive = self.as_primitive(&element.ty).is_some();
                for dimension in dimensions {
                    let count = usize::try_from(*dimension).ok()?;
                    layout.size = layout.size.checked_mul(count)?;
                }
                // Arrays of others count as deep as structures do.
                layout.depth = layout.depth.checked_add(u8::from(!is_primitive))?;
                Some(layout)
            }
            Type::Named(id) => match &self.decl(*id).kind {
                TypeKind::Alias(alias) if alias.range.is_empty() => self.plain_type(&alias.ty),
                TypeKind::Struct(_) => self.plain(*id),
                _ => None,
            },
            _ => None,
        }
    }

    /// The attributes of the owned type.
    pub(super) fn plain_attributes(&self, subject: &Subject<'_>) -> Option<TokenStream> {
        let layout = self.plain(subject.id)?;
        let rt = &subject.rt;
        let path = format!("{}::zerocopy", self.options.runtime_path);
        let dense = layout
            .dense
            .then(|| quote!(#[derive(#rt::zerocopy::IntoBytes)]));
        Some(quote! {
            #[derive(
                #rt::zerocopy::FromBytes, #rt::zerocopy::Immutable, #rt::zerocopy::KnownLayout,
            )]
            #dense
            #[zerocopy(crate = #path)]
            #[repr(C)]
        })
    }

    /// What says that the structure is plain, and makes sure of it.
    pub(super) fn plain_impl(&self, subject: &Subject<'_>) -> Option<TokenStream> {
        let layout = self.plain(subject.id)?;
        let Subject { name, rt, .. } = subject;
        let [u8, usize] = ["u8", "usize"].map(|name| self.names.primitive(name));
        let number = |number: &usize| Literal::usize_unsuffixed(*number);
        let (size, align) = (number(&layout.size), number(&layout.align));
        let (first, depth) = (number(&layout.first), Literal::u8_unsuffixed(layout.depth));
        let fields = subject.fields.iter().map(|field| &field.name);
        let offsets = layout.offsets.iter().map(number);
        let dense = layout.dense.then(|| quote!(impl #rt::Dense for #name {}));
        Some(quote! {
            // In memory as in XCDR1.
            const _: () = {
                assert!(::core::mem::size_of::<#name>() == #size);
                assert!(::core::mem::align_of::<#name>() == #align);
                #(assert!(::core::mem::offset_of!(#name, #fields) == #offsets);)*
            };

            impl #rt::Plain for #name {
                const ALIGN_FIRST: #usize = #first;
                const DEPTH: #u8 = #depth;
            }

            #dense
        })
    }

    /// What its shape does with many values at once.
    pub(super) fn plain_shape(&self, subject: &Subject<'_>) -> Option<TokenStream> {
        let layout = self.plain(subject.id)?;
        let rt = &subject.rt;
        let (encoder, usize) = (self.names.parameter("E"), self.names.primitive("usize"));
        let bool = self.names.primitive("bool");
        let vec = names::path("::std::vec::Vec");
        let write_all = layout.dense.then(|| {
            quote! {
                fn write_all<#encoder: #rt::encode::Encoder>(
                    values: &[Self],
                    encoder: &mut #encoder,
                ) -> #rt::Result<()> {
                    if encoder.whole(values)? {
                        return ::core::result::Result::Ok(());
                    }
                    values.iter().try_for_each(|value| Self::write(value, encoder))
                }
            }
        });
        Some(quote! {
            #write_all

            fn read_whole(
                reader: &mut #rt::Reader<'_>,
                count: #usize,
            ) -> ::core::option::Option<#vec<Self>> {
                reader.read_plain::<Self>(count)
            }

            fn pass_whole(reader: &mut #rt::Reader<'_>, count: #usize) -> #bool {
                reader.pass_plain::<Self>(count)
            }
        })
    }

    /// Writes one value as a whole, if it can be.
    pub(super) fn plain_write(&self, subject: &Subject<'_>) -> Option<TokenStream> {
        self.plain(subject.id)
            .filter(|layout| layout.dense)
            .map(|_| {
                quote! {
                    if encoder.whole(::core::slice::from_ref(value))? {
                        return ::core::result::Result::Ok(());
                    }
                }
            })
    }

    /// Reads one value as a whole, if it can be.
    pub(super) fn plain_read(&self, subject: &Subject<'_>) -> Option<TokenStream> {
        self.plain(subject.id).map(|_| {
            quote! {
                if let ::core::option::Option::Some(value) = reader.read_plain_one::<Self>() {
                    return ::core::result::Result::Ok(value);
                }
            }
        })
    }

    /// Passes one value as a whole, if it can be.
    pub(super) fn plain_check(&self, subject: &Subject<'_>) -> Option<TokenStream> {
        self.plain(subject.id).map(|_| {
            quote! {
                if reader.pass_plain::<Self>(1) {
                    return ::core::result::Result::Ok(());
                }
            }
        })
    }

    /// Lends a value, if it can be.
    pub(super) fn plain_view(&self, subject: &Subject<'_>) -> Option<TokenStream> {
        self.plain(subject.id)?;
        let Subject { name, .. } = subject;
        Some(quote! {
            /// The structure as it lies, without a copy, where that is as in memory: in
            /// a little endian sample in XCDR1, at an address that suits it. It is that of
            /// whoever wrote the sample, who is trusted not to alter it.
            pub fn as_struct(&self) -> ::core::option::Option<&'a #name> {
                self.reader.lend_one::<#name>()
            }
        })
    }
}

/// Bytes of a primitive any bytes of which are a value.
fn plain_size(primitive: Primitive) -> Option<usize> {
    match primitive {
        Primitive::Boolean | Primitive::Float128 => None,
        Primitive::Octet | Primitive::Char | Primitive::Int8 | Primitive::UInt8 => Some(1),
        Primitive::WChar | Primitive::Int16 | Primitive::UInt16 => Some(2),
        Primitive::Int32 | Primitive::UInt32 | Primitive::Float32 => Some(4),
        Primitive::Int64 | Primitive::UInt64 | Primitive::Float64 => Some(8),
    }
}
