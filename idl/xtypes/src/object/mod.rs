//! `TypeObject`s: XTypes 1.3 §7.3.4 and Annex B.
//!
//! Each type object exists in two forms: [`Complete`] with all names, and [`Minimal`] with
//! what assignability needs, with hashes instead of names. The annex defines everything
//! twice; here the types are generic over the [`Form`], which determines names and
//! annotations.

mod annotation;
mod flags;
mod form;
mod identifier;
mod information;
mod types;

pub use annotation::{
    AnnotationValue, AppliedAnnotation, AppliedParameter, AppliedVerbatim, MemberAnnotations,
    MemberBuiltins, TypeAnnotations, TypeBuiltins,
};
pub use flags::{MemberFlags, TypeFlags};
pub use form::{Complete, CompleteMemberDetail, CompleteTypeDetail, Form, Minimal};
pub use identifier::{
    ComponentId, Equivalence, EquivalenceHash, NameHash, PlainElement, TypeIdentifier,
};
pub use information::{
    IdentifiedObject, SizedIdentifier, TypeInformation, TypeObjects, WithDependencies,
};
pub use types::{
    AliasBody, AliasHeader, AliasType, AnnotationHeader, AnnotationParameter, AnnotationType,
    ArrayHeader, ArrayType, Bitfield, Bitflag, BitmaskType, BitsetHeader, BitsetType,
    CollectionElement, CollectionHeader, CommonAlias, CommonBitfield, CommonBitflag,
    CommonDiscriminator, CommonElement, CommonLiteral, CommonParameter, CommonStructMember,
    CommonUnionMember, DiscriminatorMember, EnumeratedHeader, EnumeratedLiteral, EnumeratedType,
    MapType, SequenceType, StructHeader, StructMember, StructType, TypeDefinition, TypeObject,
    UnionHeader, UnionMember, UnionType,
};
