//! Runs of members with constant relative offsets, and plain structures, whose layout in
//! samples is that in memory.
//!
//! XCDR1 aligns a primitive to its size, counted from the start of the sample, without
//! padding after the last. If all parts of a structure have fixed sizes and it starts at a
//! multiple of its largest alignment, its members are at constant offsets and are read
//! together. In other structures this holds for a run of members of fixed size whose first
//! one has the strictest alignment of the run. `repr(C)` aligns a structure to its largest
//! alignment and makes its size a multiple of that. A structure is plain if both rules give
//! the same layout, and if any bytes are a valid value of each of its members.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::structure::Subject;
use super::{Emitter, names};
use crate::model::{
    Bitmask, Enum, Extensibility, Member, Primitive, TryConstruct, Type, TypeId, TypeKind,
};

/// The layout of members in XCDR1 if they start at a multiple of their alignment, in bytes.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    size: usize,
    align: usize,
    /// Alignment of the first primitive.
    first: usize,
    offsets: Vec<usize>,
    /// Whether there is no padding.
    dense: bool,
    /// Whether the layout in memory is the same, and any bytes are a valid value.
    plain: bool,
    /// Whether XCDR2 has a delimiter inside.
    delimited: bool,
    /// Nesting of structures and collections.
    depth: u8,
}

impl Layout {
    /// The layout of a structure before its members are added.
    pub(super) const EMPTY: Self = Self {
        size: 0,
        align: 1,
        first: 1,
        offsets: Vec::new(),
        dense: true,
        plain: true,
        delimited: false,
        depth: 1,
    };

    /// The layout of a primitive of this size and alignment.
    fn of(size: usize, align: usize, plain: bool) -> Self {
        Self {
            size,
            align,
            first: align,
            plain,
            depth: 0,
            ..Self::EMPTY
        }
    }

    /// The layout with one more member, if its offset is constant.
    pub(super) fn with(mut self, part: &Self) -> Option<Self> {
        let offset = self.size.checked_next_multiple_of(part.first)?;
        if !offset.is_multiple_of(part.align) {
            return None;
        }
        if self.offsets.is_empty() {
            self.first = part.first;
        }
        self.plain &= part.plain;
        self.dense &= part.dense && offset == self.size;
        self.delimited |= part.delimited;
        self.align = self.align.max(part.align);
        self.depth = self.depth.max(part.depth.checked_add(1)?);
        self.size = offset.checked_add(part.size)?;
        self.offsets.push(offset);
        Some(self)
    }

    /// Whether the first member has the strictest alignment, so that the relative offsets hold
    /// wherever it starts.
    pub(super) fn starts_aligned(&self) -> bool {
        self.first == self.align
    }

    pub(super) fn is_plain(&self) -> bool {
        self.plain
    }

    /// The expression of the runtime's type.
    pub(super) fn tokens(&self, rt: &TokenStream) -> TokenStream {
        let [size, first, align] =
            [self.size, self.first, self.align].map(Literal::usize_unsuffixed);
        let depth = Literal::u8_unsuffixed(self.depth - 1);
        // XCDR2 aligns to at most 4: without padding the offsets are the same.
        let both = self.dense && !self.delimited;
        quote! {
            #rt::BlockLayout { size: #size, first: #first, align: #align, depth: #depth, both: #both }
        }
    }
}

impl Emitter<'_> {
    /// The layout of a structure, if it is plain.
    pub(super) fn plain(&self, id: TypeId) -> Option<Layout> {
        self.layout(id).filter(|layout| layout.plain)
    }

    /// The layout of a structure, if it is constant.
    pub(super) fn layout(&self, id: TypeId) -> Option<Layout> {
        let decl = self.decl(id);
        let TypeKind::Struct(structure) = &decl.kind else {
            return None;
        };
        if structure.extensibility == Extensibility::Mutable {
            return None;
        }
        let is_extern = (1..=decl.scope.len()).any(|length| {
            let module = decl.scope[..length].join("::");
            self.options.extern_modules.contains_key(&module)
        });
        let mut layout = Layout {
            plain: !is_extern && !structure.exception,
            ..Layout::EMPTY
        };
        for member in &structure.members {
            layout = layout.with(&self.member_layout(member)?)?;
        }
        layout.plain &= layout.size.is_multiple_of(layout.align);
        (layout.size > 0).then_some(layout)
    }

    pub(super) fn member_layout(&self, member: &Member) -> Option<Layout> {
        let wrapped = member.optional || member.boxed || member.non_serialized;
        if wrapped || member.try_construct == TryConstruct::UseDefault {
            return None;
        }
        let mut layout = self.type_layout(&member.ty)?;
        layout.plain &= member.range.is_empty();
        Some(layout)
    }

    fn type_layout(&self, ty: &Type) -> Option<Layout> {
        match ty {
            Type::Primitive(primitive) => Some(primitive_layout(*primitive)),
            Type::Array {
                element,
                dimensions,
            } => {
                let mut layout = self.type_layout(&element.ty)?;
                if !layout.size.is_multiple_of(layout.align) {
                    return None;
                }
                let is_primitive = self.as_primitive(&element.ty).is_some();
                for dimension in dimensions {
                    let count = usize::try_from(*dimension).ok()?;
                    layout.size = layout.size.checked_mul(count)?;
                }
                // An array of other types counts as one level, as a structure does.
                layout.depth = layout.depth.checked_add(u8::from(!is_primitive))?;
                layout.delimited |= !is_primitive;
                Some(layout)
            }
            Type::Named(id) => match &self.decl(*id).kind {
                TypeKind::Alias(alias) => {
                    let mut layout = self.type_layout(&alias.ty)?;
                    layout.plain &= alias.range.is_empty();
                    Some(layout)
                }
                TypeKind::Struct(inner) => {
                    let mut layout = self.layout(*id)?;
                    layout.delimited |= inner.extensibility != Extensibility::Final;
                    Some(layout)
                }
                TypeKind::Enum(Enum { bit_bound, .. })
                | TypeKind::Bitmask(Bitmask { bit_bound, .. }) => Some(word_layout(*bit_bound)),
                TypeKind::Bitset(bitset) => Some(word_layout(bitset.bits)),
                TypeKind::Union(_) | TypeKind::Native => None,
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
                #rt::zerocopy::FromBytes, #rt::zerocopy::Immutable, #rt::zerocopy::KnownLayout
            )]
            #dense
            #[zerocopy(crate = #path)]
            #[repr(C)]
        })
    }

    /// The implementation that marks the structure as plain, with assertions of its layout.
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

    /// The methods of its shape for many values at once.
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

    /// Writes one value by a single copy, if possible.
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

    /// Borrows a value from the sample, if possible.
    pub(super) fn plain_view(&self, subject: &Subject<'_>) -> Option<TokenStream> {
        self.plain(subject.id)?;
        let Subject { name, .. } = subject;
        Some(quote! {
            /// The structure in place, without a copy, if its layout is that in memory: in a
            /// little endian sample in XCDR1, at an aligned address. The writer of the sample
            /// is trusted not to alter it.
            pub fn as_struct(&self) -> ::core::option::Option<&'a #name> {
                self.reader.lend_one::<#name>()
            }
        })
    }
}

fn primitive_layout(primitive: Primitive) -> Layout {
    let (size, any) = match primitive {
        Primitive::Boolean => (1, false),
        Primitive::Octet | Primitive::Char | Primitive::Int8 | Primitive::UInt8 => (1, true),
        Primitive::WChar | Primitive::Int16 | Primitive::UInt16 => (2, true),
        Primitive::Int32 | Primitive::UInt32 | Primitive::Float32 => (4, true),
        Primitive::Int64 | Primitive::UInt64 | Primitive::Float64 => (8, true),
        Primitive::Float128 => (16, false),
    };
    // XCDR1 aligns to at most 8.
    Layout::of(size, size.min(8), any)
}

/// The layout of an integer with this many bits, not all of whose values need be valid.
fn word_layout(bits: u8) -> Layout {
    let size = match bits {
        0..=8 => 1,
        9..=16 => 2,
        17..=32 => 4,
        _ => 8,
    };
    Layout::of(size, size, false)
}
