//! Annotations that the IDL declares, and their uses, in the form of XTypes (Annex B).
//!
//! Annotations with parameters of `any`, `fixed` or bitmask type, and texts of more than
//! 128 bytes, have no form there. They are left out; the resolver has warned of them.

use spindle_dds_xtypes::Bounded;
use spindle_dds_xtypes::graph::{self, Annotation, Applied};
use spindle_dds_xtypes::object::{AnnotationValue, AppliedParameter, AppliedVerbatim, NameHash};

use super::NAME_BYTES_MAX;
use super::convert::{Converter, limit};
use crate::limits::{ANNOTATION_TEXT_MAX, VERBATIM_LANGUAGE_BYTES_MAX};
use crate::model::{
    AnnotationDecl, AnnotationParameter, CustomAnnotation, Primitive, Type, TypeDecl, TypeKind,
    Value, Verbatim,
};

impl Converter<'_> {
    /// An annotation; `None` for one that has no form in XTypes.
    pub(super) fn annotation(&self, declared: &AnnotationDecl) -> Option<Annotation> {
        if declared.name.len() > NAME_BYTES_MAX {
            return None;
        }
        let parameter = |parameter: &AnnotationParameter| {
            let ty = parameter.ty.as_ref()?;
            let default = match &parameter.default {
                Some(value) => self.value(ty, value)?,
                None => self.nothing(ty)?,
            };
            let name = parameter.name.as_str();
            (name.len() <= NAME_BYTES_MAX).then_some(graph::AnnotationParameter {
                name: name.into(),
                ty: self.ty(ty)?,
                default,
            })
        };
        let parameters = declared.parameters.iter().map(parameter);
        Some(Annotation {
            parameters: parameters.collect::<Option<_>>()?,
        })
    }

    /// Uses of annotations that have a form in XTypes.
    pub(super) fn applied(&self, all: &[CustomAnnotation]) -> Vec<Applied> {
        all.iter().filter_map(|one| self.applied_one(one)).collect()
    }

    fn applied_one(&self, custom: &CustomAnnotation) -> Option<Applied> {
        let at = custom.declaration.0;
        let declared = self.model.annotations.get(at)?;
        let value = |(name, value): &(String, Value)| {
            let mut parameters = declared.parameters.iter();
            let parameter = parameters.find(|parameter| parameter.name == *name)?;
            Some(AppliedParameter {
                name_hash: NameHash::of(name),
                value: self.value(parameter.ty.as_ref()?, value)?,
            })
        };
        let values = custom.arguments.iter().map(value);
        Some(Applied {
            annotation: self.annotations.get(at).copied().flatten()?,
            parameters: values.collect::<Option<_>>()?,
        })
    }

    /// The annotations of a type, and the first `@verbatim`: a type object can contain only
    /// one.
    pub(super) fn annotations(&self, decl: &TypeDecl) -> graph::Annotations {
        let mut fit = (decl.verbatim.iter())
            .filter(|verbatim| verbatim.language.len() <= VERBATIM_LANGUAGE_BYTES_MAX);
        graph::Annotations {
            verbatim: fit.next().map(verbatim),
            custom: self.applied(&decl.custom),
        }
    }

    /// A value of a type that a constant can have.
    fn value(&self, ty: &Type, value: &Value) -> Option<AnnotationValue> {
        match (self.without_aliases(ty)?, value) {
            (Type::Primitive(primitive), value) => limit(*primitive, value),
            (Type::String { .. }, Value::String(text)) => {
                let fits = text.len() <= ANNOTATION_TEXT_MAX;
                fits.then(|| AnnotationValue::String8(Bounded(text.clone())))
            }
            (Type::WString { .. }, Value::String(text)) => {
                let units: Vec<u16> = text.encode_utf16().collect();
                (units.len() <= ANNOTATION_TEXT_MAX).then_some(AnnotationValue::String16(units))
            }
            (Type::Named(_), Value::Enum(id, index)) => match &self.model.types.get(id.0)?.kind {
                TypeKind::Enum(inner) => inner.literals.get(*index),
                _ => None,
            }
            .map(|literal| AnnotationValue::Enum(literal.value)),
            _ => None,
        }
    }

    /// The default of a parameter without one: Annex B cannot express its absence.
    fn nothing(&self, ty: &Type) -> Option<AnnotationValue> {
        let zero = match self.without_aliases(ty)? {
            Type::Primitive(primitive) => match primitive {
                Primitive::Boolean => Value::Boolean(false),
                Primitive::Char => Value::Char(0),
                Primitive::WChar => Value::WChar(0),
                Primitive::Float32 | Primitive::Float64 => Value::Float(0.0),
                Primitive::Float128 => Value::Float128(0),
                _ => Value::Integer(0),
            },
            Type::String { .. } | Type::WString { .. } => Value::String(String::new()),
            Type::Named(id) => match &self.model.types.get(id.0)?.kind {
                TypeKind::Enum(inner) => Value::Enum(*id, inner.default_literal),
                _ => return None,
            },
            _ => return None,
        };
        self.value(ty, &zero)
    }

    /// The type behind all typedefs.
    fn without_aliases<'t>(&'t self, ty: &'t Type) -> Option<&'t Type> {
        let mut ty = ty;
        while let Type::Named(id) = ty
            && let TypeKind::Alias(alias) = &self.model.types.get(id.0)?.kind
        {
            ty = &alias.ty;
        }
        Some(ty)
    }
}

fn verbatim(verbatim: &Verbatim) -> AppliedVerbatim {
    let placement = verbatim.placement.type_object_word();
    AppliedVerbatim {
        placement: Bounded(placement.to_owned()),
        language: Bounded(verbatim.language.clone()),
        text: verbatim.text.clone(),
    }
}
