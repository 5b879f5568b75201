//! The type objects of each kind of type: XTypes 1.3 Annex B, in both forms.

use spindle_dds_idl_runtime::encode::Encoder;
use spindle_dds_idl_runtime::{CdrError, Extensibility, Reader};

use super::annotation::AnnotationValue;
use super::flags::{MemberFlags, TypeFlags};
use super::form::{Complete, Form, Minimal};
use super::identifier::{Equivalence, EquivalenceHash, TypeIdentifier};
use crate::wire::{Wire, put_extended, record, skip_extended};

record! {
    /// Start of a structure.
    struct StructHeader<F> (appendable) {
        /// The structure it inherits from, or none.
        base: TypeIdentifier,
        /// Its name.
        detail: F::TypeDetail,
    }

    /// The common part of a member in both forms.
    struct CommonStructMember (final) {
        /// Member id.
        id: u32,
        /// Flags.
        flags: MemberFlags,
        /// Type.
        identifier: TypeIdentifier,
    }

    /// A member of a structure.
    struct StructMember<F> (appendable) {
        /// Id, flags and type.
        common: CommonStructMember,
        /// Its name.
        detail: F::MemberDetail,
    }

    /// A structure.
    struct StructType<F> (final) {
        /// Extensibility, nested, autoid.
        flags: TypeFlags,
        /// Base and name.
        header: StructHeader<F>,
        /// Members in the order of their declaration, without those inherited.
        members: Vec<StructMember<F>>,
    }

    /// Start of a union.
    struct UnionHeader<F> (appendable) {
        /// Its name.
        detail: F::TypeDetail,
    }

    /// The common part of a discriminator in both forms.
    struct CommonDiscriminator (final) {
        /// Flags.
        flags: MemberFlags,
        /// Type.
        identifier: TypeIdentifier,
    }

    /// The discriminator of a union.
    struct DiscriminatorMember<F> (appendable) {
        /// Flags and type.
        common: CommonDiscriminator,
        /// Its annotations.
        annotations: F::TypeAnnotations,
    }

    /// The common part of a branch in both forms.
    struct CommonUnionMember (final) {
        /// Member id.
        id: u32,
        /// Flags.
        flags: MemberFlags,
        /// Type.
        identifier: TypeIdentifier,
        /// Values of the discriminator, ascending.
        labels: Vec<i32>,
    }

    /// A branch of a union.
    struct UnionMember<F> (appendable) {
        /// Id, flags, type and labels.
        common: CommonUnionMember,
        /// Its name.
        detail: F::MemberDetail,
    }

    /// A union.
    struct UnionType<F> (final) {
        /// Extensibility, nested, autoid.
        flags: TypeFlags,
        /// Name.
        header: UnionHeader<F>,
        /// The discriminator.
        discriminator: DiscriminatorMember<F>,
        /// Branches in the order of their declaration.
        members: Vec<UnionMember<F>>,
    }

    /// The common part of a parameter in both forms.
    struct CommonParameter (final) {
        /// Unused.
        flags: MemberFlags,
        /// Type.
        identifier: TypeIdentifier,
    }

    /// A parameter of an annotation.
    struct AnnotationParameter<F> (appendable) {
        /// Its type.
        common: CommonParameter,
        /// Its name.
        name: F::ParameterName,
        /// Its default.
        default: AnnotationValue,
    }

    /// Start of an annotation.
    struct AnnotationHeader<F> (appendable) {
        /// Its name.
        name: F::AnnotationName,
    }

    /// An annotation that an IDL declares.
    struct AnnotationType<F> (final) {
        /// Unused.
        flags: TypeFlags,
        /// Name.
        header: AnnotationHeader<F>,
        /// Parameters.
        members: Vec<AnnotationParameter<F>>,
    }

    /// The common part of a typedef in both forms.
    struct CommonAlias (final) {
        /// Unused.
        flags: MemberFlags,
        /// The type that it names.
        identifier: TypeIdentifier,
    }

    /// The type that a typedef names.
    struct AliasBody<F> (appendable) {
        /// The type.
        common: CommonAlias,
        /// Its annotations.
        annotations: F::MemberAnnotations,
    }

    /// Start of a typedef.
    struct AliasHeader<F> (appendable) {
        /// Its name.
        detail: F::TypeDetail,
    }

    /// A typedef.
    struct AliasType<F> (final) {
        /// Unused.
        flags: TypeFlags,
        /// Name.
        header: AliasHeader<F>,
        /// The type that it names.
        body: AliasBody<F>,
    }

    /// The common part of an element in both forms.
    struct CommonElement (final) {
        /// Flags.
        flags: MemberFlags,
        /// Type.
        identifier: TypeIdentifier,
    }

    /// The element of a collection.
    struct CollectionElement<F> (appendable) {
        /// Flags and type.
        common: CommonElement,
        /// Its annotations.
        annotations: F::MemberAnnotations,
    }

    /// Start of a sequence or a map.
    struct CollectionHeader<F> (appendable) {
        /// Bound, 0 for none.
        bound: u32,
        /// Name and annotations, if any.
        detail: F::CollectionDetail,
    }

    /// A sequence with annotations; one without is described by its identifier.
    struct SequenceType<F> (final) {
        /// Unused.
        flags: TypeFlags,
        /// Bound.
        header: CollectionHeader<F>,
        /// Element.
        element: CollectionElement<F>,
    }

    /// Start of an array.
    struct ArrayHeader<F> (appendable) {
        /// Dimensions from the outside in.
        bounds: Vec<u32>,
        /// Name and annotations.
        detail: F::TypeDetail,
    }

    /// An array with annotations.
    struct ArrayType<F> (F) {
        /// Unused.
        flags: TypeFlags,
        /// Dimensions.
        header: ArrayHeader<F>,
        /// Element.
        element: CollectionElement<F>,
    }

    /// A map with annotations.
    struct MapType<F> (final) {
        /// Unused.
        flags: TypeFlags,
        /// Bound.
        header: CollectionHeader<F>,
        /// Key.
        key: CollectionElement<F>,
        /// Value.
        element: CollectionElement<F>,
    }

    /// The common part of a literal in both forms.
    struct CommonLiteral (appendable) {
        /// Its value.
        value: i32,
        /// Whether it is the default.
        flags: MemberFlags,
    }

    /// A literal of an enumeration.
    struct EnumeratedLiteral<F> (appendable) {
        /// Value and flags.
        common: CommonLiteral,
        /// Its name.
        detail: F::MemberDetail,
    }

    /// Start of an enumeration or a bitmask.
    struct EnumeratedHeader<F> (appendable) {
        /// Bits.
        bit_bound: u16,
        /// Its name.
        detail: F::TypeDetail,
    }

    /// An enumeration.
    struct EnumeratedType<F> (final) {
        /// Extensibility.
        flags: TypeFlags,
        /// Bits and name.
        header: EnumeratedHeader<F>,
        /// Literals by ascending value.
        literals: Vec<EnumeratedLiteral<F>>,
    }

    /// The common part of a bit in both forms.
    struct CommonBitflag (final) {
        /// Bit position.
        position: u16,
        /// Unused.
        flags: MemberFlags,
    }

    /// A bit of a bitmask.
    struct Bitflag<F> (appendable) {
        /// Position.
        common: CommonBitflag,
        /// Its name.
        detail: F::MemberDetail,
    }

    /// A bitmask.
    struct BitmaskType<F> (appendable) {
        /// Extensibility.
        flags: TypeFlags,
        /// Bits and name.
        header: EnumeratedHeader<F>,
        /// Bits by ascending position.
        bits: Vec<Bitflag<F>>,
    }

    /// The common part of a bit field in both forms.
    struct CommonBitfield (final) {
        /// Least significant bit.
        position: u16,
        /// Unused.
        flags: MemberFlags,
        /// Number of bits.
        bits: u8,
        /// `TypeKind` of the value.
        holder: u8,
    }

    /// A field of a bitset.
    struct Bitfield<F> (appendable) {
        /// Position, bits and type.
        common: CommonBitfield,
        /// Its name.
        detail: F::MemberDetail,
    }

    /// Start of a bitset.
    struct BitsetHeader<F> (appendable) {
        /// Its name.
        detail: F::TypeDetail,
    }

    /// A bitset.
    struct BitsetType<F> (appendable) {
        /// Unused.
        flags: TypeFlags,
        /// Name.
        header: BitsetHeader<F>,
        /// Fields by ascending position.
        fields: Vec<Bitfield<F>>,
    }
}

macro_rules! definitions {
    ($($kind:literal $name:ident $ty:ident,)*) => {
        /// `CompleteTypeObject` or `MinimalTypeObject`.
        #[derive(Debug, Clone, PartialEq)]
        pub enum TypeDefinition<F: Form> {
            $(
                #[doc = concat!("`TypeKind` ", stringify!($kind), ".")]
                $name($ty<F>),
            )*
            /// A kind that is not in version 1.3 of the annex.
            Extended(u8),
        }

        impl<F: Form> Wire for TypeDefinition<F> {
            fn put<E: Encoder>(&self, encoder: &mut E) -> Result<(), CdrError> {
                match self {
                    $(Self::$name(value) => {
                        encoder.primitive::<u8>($kind)?;
                        value.put(encoder)
                    })*
                    Self::Extended(kind) => {
                        kind.put(encoder)?;
                        put_extended(encoder)
                    }
                }
            }

            fn get(reader: &mut Reader<'_>) -> Result<Self, CdrError> {
                match u8::get(reader)? {
                    $($kind => Wire::get(reader).map(Self::$name),)*
                    kind => {
                        skip_extended(reader)?;
                        Ok(Self::Extended(kind))
                    }
                }
            }
        }
    };
}

definitions! {
    0x30 Alias AliasType,
    0x50 Annotation AnnotationType,
    0x51 Struct StructType,
    0x52 Union UnionType,
    0x53 Bitset BitsetType,
    0x60 Sequence SequenceType,
    0x61 Array ArrayType,
    0x62 Map MapType,
    0x40 Enum EnumeratedType,
    0x41 Bitmask BitmaskType,
}

/// The description of a type, which refers to other types by identifiers.
#[derive(Debug, Clone, PartialEq)]
pub enum TypeObject {
    /// The complete form.
    Complete(Box<TypeDefinition<Complete>>),
    /// The minimal form.
    Minimal(Box<TypeDefinition<Minimal>>),
}

impl TypeObject {
    /// Bytes in little endian XCDR2, from which the hash is computed.
    ///
    /// # Errors
    /// A name of more than 256 bytes or with a NUL.
    pub fn to_bytes(&self) -> Result<Vec<u8>, CdrError> {
        crate::wire::to_bytes(self)
    }

    /// From untrusted bytes.
    ///
    /// # Errors
    /// The bytes are invalid.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CdrError> {
        crate::wire::from_bytes(bytes)
    }

    /// The form.
    pub fn equivalence(&self) -> Equivalence {
        match self {
            Self::Complete(_) => Equivalence::Complete,
            Self::Minimal(_) => Equivalence::Minimal,
        }
    }

    /// The identifier of a type that does not contain itself.
    ///
    /// # Errors
    /// As [`to_bytes`](Self::to_bytes).
    pub fn identifier(&self) -> Result<TypeIdentifier, CdrError> {
        let hash = EquivalenceHash::of(&self.to_bytes()?);
        Ok(TypeIdentifier::Hash(self.equivalence(), hash))
    }
}

impl Wire for TypeObject {
    fn put<E: Encoder>(&self, encoder: &mut E) -> Result<(), CdrError> {
        let open = encoder.begin(Extensibility::Appendable)?;
        self.equivalence().put(encoder)?;
        match self {
            Self::Complete(definition) => definition.put(encoder)?,
            Self::Minimal(definition) => definition.put(encoder)?,
        }
        encoder.end(open)
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, CdrError> {
        let scope = reader.begin(Extensibility::Appendable)?;
        let place = reader.place();
        let object = match Equivalence::get(reader)? {
            Equivalence::Complete => Self::Complete(Wire::get(reader)?),
            Equivalence::Minimal => Self::Minimal(Wire::get(reader)?),
            Equivalence::Both => {
                return Err(CdrError::UnknownEnumerator {
                    value: Equivalence::Both as i32,
                    place,
                });
            }
        };
        reader.end(scope);
        Ok(object)
    }
}
