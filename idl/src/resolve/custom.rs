//! Annotations that the IDL declares itself: IDL 4.2 §7.4.15.
//!
//! Their names are in the same scopes as all others; `Scopes` distinguishes them by the
//! leading `@`. Declarations inside an annotation are in a scope of its own and belong
//! to no module.

use std::collections::{HashMap, HashSet};

use super::scopes::{ScopeId, Symbol};
use super::standard::{AnnotationTarget, is_standard};
use super::targets::Target;
use super::{Resolver, copies};
use crate::ast::{self, Arguments, Ident, ScopedName};
use crate::limits::ANNOTATION_TEXT_MAX;
use crate::model::{
    AnnotationDecl, AnnotationId, AnnotationParameter, CustomAnnotation, Type, Value,
};
use crate::source::Span;

/// A declared annotation.
#[derive(Debug)]
pub(super) struct Declared {
    /// Its scoped name.
    name: String,
    /// The scope in which names in its values are looked up first.
    scope: ScopeId,
    parameters: Vec<Parameter>,
    /// Some of the parameters could not be read and were reported.
    broken: bool,
}

#[derive(Debug)]
struct Parameter {
    name: String,
    /// `None` for `any`, and when a fault was reported.
    ty: Option<Type>,
    /// `None` when a fault was reported.
    target: Option<Target>,
    default: Option<Value>,
}

impl From<Declared> for AnnotationDecl {
    fn from(declared: Declared) -> Self {
        let parameters = declared.parameters.into_iter();
        let parameters = parameters.map(|parameter| AnnotationParameter {
            name: parameter.name,
            ty: parameter.ty,
            default: parameter.default,
        });
        Self {
            name: declared.name,
            parameters: parameters.collect(),
        }
    }
}

/// Why a type object cannot contain a parameter, or a value of it: XTypes 1.3 Annex B,
/// `AnnotationParameterValue`.
fn fault(target: Option<&Target>, value: Option<&Value>) -> Option<String> {
    let (len, what) = match (target?, value) {
        (Target::Fixed(_) | Target::Bitmask { .. } | Target::Any, _) => {
            return Some("is of a type that they have no constants of".to_owned());
        }
        (Target::String { .. }, Some(Value::String(text))) => (text.len(), "bytes"),
        (Target::WString { .. }, Some(Value::String(text))) => {
            (text.encode_utf16().count(), "UTF-16 units")
        }
        _ => return None,
    };
    let long = || format!("has more than {ANNOTATION_TEXT_MAX} {what}");
    (len > ANNOTATION_TEXT_MAX).then(long)
}

impl Resolver<'_> {
    pub(super) fn annotation_declaration(
        &mut self,
        scope: ScopeId,
        definition: &ast::Definition,
        declaration: &ast::AnnotationDeclaration,
    ) {
        self.annotate(scope, AnnotationTarget::Annotation, &definition.annotations);
        let inner = self.open_scope(scope, &declaration.name, Vec::new());
        let mut parameters: Vec<Parameter> = Vec::new();
        let mut names = HashSet::new();
        for item in &declaration.items {
            match item {
                ast::AnnotationItem::Definition(definition) => self.definition(inner, definition),
                ast::AnnotationItem::Parameter { ty, name, default } => {
                    let (ty, target) = self.parameter_type(inner, ty.as_ref());
                    let default = default.as_ref().zip(target.as_ref());
                    let default =
                        default.and_then(|(expr, target)| self.evaluate(inner, expr, target));
                    if !names.insert(name.name.to_ascii_lowercase()) {
                        let message =
                            format!("parameter `{}` occurs twice in this annotation", name.name);
                        self.sink.error(name.span, message);
                    }
                    let name = name.name.to_string();
                    parameters.push(Parameter {
                        name,
                        ty,
                        target,
                        default,
                    });
                }
            }
        }
        // A file that declares a standard annotation means that one.
        if is_standard(&declaration.name.name) {
            return;
        }
        let path = self.scopes.path(inner);
        let index = self.annotations.len();
        self.annotations.push(Declared {
            name: path.join("::"),
            scope: inner,
            parameters,
            broken: declaration.broken,
        });
        let marked = Ident {
            name: format!("@{}", declaration.name.name).into(),
            span: declaration.name.span,
        };
        self.declare(scope, &marked, Symbol::Annotation(index));
    }

    /// The type of a parameter, and the target of its values: without a type, any value.
    fn parameter_type(
        &mut self,
        scope: ScopeId,
        ty: Option<&ast::TypeSpec>,
    ) -> (Option<Type>, Option<Target>) {
        let Some(spec) = ty else {
            return (None, Some(Target::Any));
        };
        let Some(ty) = self.type_spec(scope, spec) else {
            return (None, None);
        };
        let target = self.target(&ty);
        if target.is_none() {
            let message = "a parameter of an annotation is of a type that constants have";
            self.sink.error(spec.span, message);
        }
        (Some(ty), target)
    }

    /// Warns of a use of an annotation that a type object cannot contain.
    pub(super) fn check_representable(
        &mut self,
        place: AnnotationTarget,
        span: Span,
        annotation: &CustomAnnotation,
    ) {
        let name = &annotation.name;
        if matches!(place, AnnotationTarget::Element | AnnotationTarget::Use) {
            let message = format!("`@{name}` on {} is dropped", place.describe());
            let hint = "write it before the declaration: type objects have a place for it there";
            self.sink.warning_hint(span, message, hint);
        }
        if !place.is_in_type_objects() {
            return;
        }
        let Some(declared) = self.annotations.get(annotation.declaration.0) else {
            return;
        };
        let fault_of = |parameter: &Parameter| {
            let given = annotation.arguments.iter();
            let given = given.filter(|(name, _)| *name == parameter.name);
            let values = given.map(|(_, value)| Some(value));
            let mut values = values.chain([parameter.default.as_ref()]);
            let fault = values.find_map(|value| fault(parameter.target.as_ref(), value))?;
            Some(format!("its `{}` {fault}", parameter.name))
        };
        if let Some(fault) = declared.parameters.iter().find_map(fault_of) {
            let message = format!("`@{name}` is left out of type objects: {fault}");
            self.sink.warning(span, message);
        }
    }

    /// The index of the annotation of this name.
    pub(super) fn declared_annotation(&self, scope: ScopeId, name: &ScopedName) -> Option<usize> {
        let start = if name.absolute { ScopeId::ROOT } else { scope };
        let parts: Vec<&Ident> = name.parts().collect();
        let (last, modules) = parts.split_last()?;
        let marked = format!("@{}", last.name);
        let mut around = None;
        for module in modules {
            let entry = match around {
                None => self.scopes.visible(start, &module.name),
                Some(scope) => self.scopes.local(scope, &module.name),
            };
            let Symbol::Module(inner) = entry?.symbol else {
                return None;
            };
            around = Some(inner);
        }
        let entry = match around {
            None => self.scopes.visible(start, &marked),
            Some(scope) => self.scopes.local(scope, &marked),
        };
        match entry?.symbol {
            Symbol::Annotation(index) => Some(index),
            _ => None,
        }
    }

    /// A use of a declared annotation, with checked values.
    pub(super) fn custom_annotation(
        &mut self,
        scope: ScopeId,
        annotation: &ast::Annotation,
        index: usize,
    ) -> Option<CustomAnnotation> {
        let declared = self.annotations.get(index)?;
        if declared.broken {
            return None;
        }
        let bytes = declared.parameters.iter().map(|parameter| {
            80 + parameter.name.len() + parameter.default.as_ref().map_or(0, copies::of_value)
        });
        let bytes: usize = bytes.sum();
        if !self.may_copy(bytes, annotation.span) {
            return None;
        }
        let declared = self.annotations.get(index)?;
        let (name, inner) = (declared.name.clone(), declared.scope);
        let mut values: Vec<(String, Option<Target>, Option<Value>)> = Vec::new();
        for parameter in &declared.parameters {
            let Parameter {
                name,
                target,
                default,
                ..
            } = parameter;
            values.push((name.clone(), target.clone(), default.clone()));
        }
        match &annotation.arguments {
            Arguments::None => {}
            Arguments::Positional(expr) => {
                let message = match values.as_slice() {
                    [_] => None,
                    [] => Some(format!("`@{name}` has no parameters")),
                    _ => Some(format!("the parameters of `@{name}` are given by name")),
                };
                if let Some(message) = message {
                    self.sink.error(expr.span, message);
                    return None;
                }
                let (_, target, value) = values.first_mut()?;
                *value = self.annotation_value(scope, inner, expr, target.as_ref()?);
            }
            Arguments::Named(named) => {
                let places = values.iter().enumerate();
                let places: HashMap<String, usize> =
                    places.map(|(at, (name, ..))| (name.clone(), at)).collect();
                let mut given = HashSet::new();
                for (argument, expr) in named {
                    let place = places.get(&*argument.name);
                    let Some((_, target, value)) = place.and_then(|at| values.get_mut(*at)) else {
                        let message = format!("`@{name}` has no `{}`", argument.name);
                        self.sink.error(argument.span, message);
                        continue;
                    };
                    if !given.insert(&argument.name) {
                        let message = format!("`{}` is given twice", argument.name);
                        self.sink.error(argument.span, message);
                    }
                    if let Some(target) = target {
                        *value = self.annotation_value(scope, inner, expr, target);
                    }
                }
            }
        }
        let arguments = values
            .into_iter()
            .filter_map(|(name, _, value)| Some((name, value?)))
            .collect();
        Some(CustomAnnotation {
            declaration: AnnotationId(index),
            name,
            arguments,
        })
    }

    /// Names in a value are looked up in the scope of the use, then in that of the
    /// declaration.
    fn annotation_value(
        &mut self,
        scope: ScopeId,
        inner: ScopeId,
        expr: &ast::Expr,
        target: &Target,
    ) -> Option<Value> {
        let local = match &expr.kind {
            ast::ExprKind::Name(name) => {
                !name.absolute && self.scopes.visible(scope, &name.first.name).is_none()
            }
            _ => false,
        };
        self.evaluate(if local { inner } else { scope }, expr, target)
    }
}
