//! The two forms of a type object.

use std::fmt::Debug;

use spindle_dds_idl_runtime::Extensibility;

use super::annotation::{MemberAnnotations, TypeAnnotations};
use super::identifier::{Equivalence, NameHash};
use crate::graph::Name;
use crate::wire::{Bounded, Wire, record};

/// The types of names and annotations in one form of type objects.
#[expect(private_bounds, reason = "there are two forms, and both are here")]
pub trait Form: Debug + Clone + PartialEq + 'static {
    /// Name and annotations of a member, literal, flag or field.
    type MemberDetail: Part;
    /// Name and annotations of a type.
    type TypeDetail: Part;
    /// The same of a collection, which may have none.
    type CollectionDetail: Part;
    /// Annotations of a typedef or an element.
    type MemberAnnotations: Part;
    /// Annotations of a discriminator.
    type TypeAnnotations: Part;
    /// Name of a parameter of an annotation.
    type ParameterName: Part;
    /// Name of an annotation.
    type AnnotationName: Part;

    /// The form.
    const EQUIVALENCE: Equivalence;
    /// Whether annotations are part of it.
    const IS_ANNOTATED: bool;
    /// `CompleteArrayType` is appendable, `MinimalArrayType` final.
    const ARRAY_EXTENSIBILITY: Extensibility;

    /// The detail of a member.
    fn member(name: &Name, annotations: MemberAnnotations) -> Self::MemberDetail;
    /// The contents of the detail of a member.
    fn member_name(detail: &Self::MemberDetail) -> (Name, MemberAnnotations);
    /// The detail of a type.
    fn type_detail(name: Option<&str>, annotations: TypeAnnotations) -> Self::TypeDetail;
    /// The contents of the detail of a type.
    fn type_name(detail: &Self::TypeDetail) -> (Option<String>, TypeAnnotations);
    /// The annotations of a typedef.
    fn alias(annotations: MemberAnnotations) -> Self::MemberAnnotations;
    /// The contents of the annotations of a typedef.
    fn alias_annotations(annotations: &Self::MemberAnnotations) -> MemberAnnotations;
    /// The annotations of a discriminator.
    fn discriminator(annotations: TypeAnnotations) -> Self::TypeAnnotations;
    /// The contents of the annotations of a discriminator.
    fn discriminator_annotations(annotations: &Self::TypeAnnotations) -> TypeAnnotations;
    /// The name of a parameter.
    fn parameter_name(name: &Name) -> Self::ParameterName;
    /// The contents of the name of a parameter.
    fn name_of_parameter(name: &Self::ParameterName) -> Name;
    /// The name of an annotation.
    fn annotation_name(name: Option<&str>) -> Self::AnnotationName;
    /// The contents of the name of an annotation.
    fn name_of_annotation(name: &Self::AnnotationName) -> Option<String>;
}

/// A part of a type object that differs between the forms.
pub(crate) trait Part: Wire + Debug + Clone + PartialEq + 'static {}

impl<T: Wire + Debug + Clone + PartialEq + 'static> Part for T {}

/// The complete form, with names and annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Complete;

/// The minimal form: what assignability needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Minimal;

record! {
    /// Name and annotations of a member, in full.
    struct CompleteMemberDetail (final) {
        /// The name.
        name: Bounded<256>,
        /// Its annotations.
        annotations: MemberAnnotations,
    }

    /// Name and annotations of a type, in full.
    struct CompleteTypeDetail (final) {
        /// Its annotations.
        annotations: TypeAnnotations,
        /// Scoped name, `module::Type`.
        name: Bounded<256>,
    }
}

impl Form for Complete {
    type MemberDetail = CompleteMemberDetail;
    type TypeDetail = CompleteTypeDetail;
    type CollectionDetail = Option<CompleteTypeDetail>;
    type MemberAnnotations = MemberAnnotations;
    type TypeAnnotations = TypeAnnotations;
    type ParameterName = Bounded<256>;
    type AnnotationName = Bounded<256>;
    const EQUIVALENCE: Equivalence = Equivalence::Complete;
    const IS_ANNOTATED: bool = true;
    const ARRAY_EXTENSIBILITY: Extensibility = Extensibility::Appendable;

    fn member(name: &Name, annotations: MemberAnnotations) -> CompleteMemberDetail {
        CompleteMemberDetail {
            name: Bounded(name.to_string()),
            annotations,
        }
    }

    fn member_name(detail: &CompleteMemberDetail) -> (Name, MemberAnnotations) {
        (
            Name::Text(detail.name.0.clone()),
            detail.annotations.clone(),
        )
    }

    fn type_detail(name: Option<&str>, annotations: TypeAnnotations) -> CompleteTypeDetail {
        CompleteTypeDetail {
            annotations,
            name: Bounded(name.unwrap_or_default().to_owned()),
        }
    }

    fn type_name(detail: &CompleteTypeDetail) -> (Option<String>, TypeAnnotations) {
        (Some(detail.name.0.clone()), detail.annotations.clone())
    }

    fn alias(annotations: MemberAnnotations) -> MemberAnnotations {
        annotations
    }

    fn alias_annotations(annotations: &MemberAnnotations) -> MemberAnnotations {
        annotations.clone()
    }

    fn discriminator(annotations: TypeAnnotations) -> TypeAnnotations {
        annotations
    }

    fn discriminator_annotations(annotations: &TypeAnnotations) -> TypeAnnotations {
        annotations.clone()
    }

    fn parameter_name(name: &Name) -> Bounded<256> {
        Bounded(name.to_string())
    }

    fn name_of_parameter(name: &Bounded<256>) -> Name {
        Name::Text(name.0.clone())
    }

    fn annotation_name(name: Option<&str>) -> Bounded<256> {
        Bounded(name.unwrap_or_default().to_owned())
    }

    fn name_of_annotation(name: &Bounded<256>) -> Option<String> {
        Some(name.0.clone())
    }
}

impl Form for Minimal {
    type MemberDetail = NameHash;
    type TypeDetail = ();
    type CollectionDetail = ();
    type MemberAnnotations = ();
    type TypeAnnotations = ();
    type ParameterName = NameHash;
    type AnnotationName = ();
    const EQUIVALENCE: Equivalence = Equivalence::Minimal;
    const IS_ANNOTATED: bool = false;
    const ARRAY_EXTENSIBILITY: Extensibility = Extensibility::Final;

    fn member(name: &Name, _annotations: MemberAnnotations) -> NameHash {
        name.hash()
    }

    fn member_name(detail: &NameHash) -> (Name, MemberAnnotations) {
        (Name::Hash(*detail), MemberAnnotations::default())
    }

    fn type_detail(_name: Option<&str>, _annotations: TypeAnnotations) {}

    fn type_name(_detail: &()) -> (Option<String>, TypeAnnotations) {
        (None, TypeAnnotations::default())
    }

    fn alias(_annotations: MemberAnnotations) {}

    fn alias_annotations(_annotations: &()) -> MemberAnnotations {
        MemberAnnotations::default()
    }

    fn discriminator(_annotations: TypeAnnotations) {}

    fn discriminator_annotations(_annotations: &()) -> TypeAnnotations {
        TypeAnnotations::default()
    }

    fn parameter_name(name: &Name) -> NameHash {
        name.hash()
    }

    fn name_of_parameter(name: &NameHash) -> Name {
        Name::Hash(*name)
    }

    fn annotation_name(_name: Option<&str>) {}

    fn name_of_annotation(_name: &()) -> Option<String> {
        None
    }
}
