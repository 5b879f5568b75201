//! Annotations of types. They are not in the minimal form and do not affect
//! assignability.

use super::{Name, Type, TypeIndex};
use crate::object::{AnnotationValue, AppliedParameter, AppliedVerbatim};

/// An annotation that an IDL declares (IDL 4.2 §7.4.15).
#[derive(Debug, Clone, PartialEq)]
pub struct Annotation {
    /// Its parameters.
    pub parameters: Vec<AnnotationParameter>,
}

/// A parameter of an annotation.
#[derive(Debug, Clone, PartialEq)]
pub struct AnnotationParameter {
    /// Its name.
    pub name: Name,
    /// Its type: a primitive, a string or an enumeration.
    pub ty: Type,
    /// Its default; a parameter without one has the zero or empty value.
    pub default: AnnotationValue,
}

/// A use of an annotation that an IDL declares.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// Which annotation.
    pub annotation: TypeIndex,
    /// The values of its parameters, given or by default.
    pub parameters: Vec<AppliedParameter>,
}

/// The annotations of a type, or of the discriminator of a union.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Annotations {
    /// `@verbatim`, at most one.
    pub verbatim: Option<AppliedVerbatim>,
    /// Annotations that the IDL declares.
    pub custom: Vec<Applied>,
}
