//! Annotations: IDL 4.2 §8 and XTypes 1.3 §7.3.1.2.
//!
//! The table in `standard` says where each standard annotation may occur. Annotations
//! that the IDL declares itself are checked and kept; unknown ones are ignored with
//! a warning.

use std::collections::HashSet;

use super::Resolver;
use super::hints::closest;
use super::scopes::ScopeId;
use super::standard::{
    AnnotationTarget, KNOWN, Standard, Support, TYPES, VALUE, VALUES, contradicts, other_spelling,
};
use super::targets::Target;
use crate::ast::{Annotation, Arguments, Doc, Expr, ExprKind};
use crate::model::{CustomAnnotation, Primitive, Value, Verbatim};

/// The annotations of one declaration.
#[derive(Debug, Clone, Default)]
pub(super) struct Applied<'a> {
    all: Vec<(&'static str, &'a Annotation)>,
    /// Lines of `@verbatim(language="comment")`.
    pub(super) comments: Vec<String>,
    /// `@verbatim`.
    pub(super) verbatim: Vec<Verbatim>,
    /// Annotations that the IDL declares itself.
    pub(super) custom: Vec<CustomAnnotation>,
}

impl<'a> Applied<'a> {
    pub(super) fn get(&self, name: &str) -> Option<&'a Annotation> {
        self.all
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, annotation)| *annotation)
    }

    /// The comment lines of the declaration, those from annotations last.
    pub(super) fn doc(&self, doc: &Doc) -> Vec<String> {
        let lines = doc.iter().flat_map(|doc| doc.iter());
        let lines = lines.chain(&self.comments);
        lines.skip_while(|line| line.is_empty()).cloned().collect()
    }
}

/// The argument of this name.
pub(super) fn argument<'a>(annotation: &'a Annotation, wanted: &str) -> Option<&'a Expr> {
    match &annotation.arguments {
        Arguments::None => None,
        Arguments::Positional(expr) => Some(expr).filter(|_| wanted == VALUE),
        Arguments::Named(named) => {
            let found = named.iter().find(|(name, _)| &*name.name == wanted);
            found.map(|(_, expr)| expr)
        }
    }
}

impl Resolver<'_> {
    /// Sorts the annotations of a declaration, and reports misplaced ones.
    pub(super) fn annotate<'a>(
        &mut self,
        scope: ScopeId,
        place: AnnotationTarget,
        annotations: &'a [Annotation],
    ) -> Applied<'a> {
        let mut applied = Applied::default();
        for annotation in annotations {
            let before = applied.custom.len();
            let Some((name, parameters, support)) = self.known(scope, annotation, &mut applied)
            else {
                for custom in applied.custom.iter().skip(before) {
                    self.check_representable(place, annotation.span, custom);
                }
                continue;
            };
            match support {
                Support::RefusedFlag => {
                    self.check_arguments(annotation, parameters);
                    if self.flag(scope, annotation) != Some(false) {
                        let message = format!("`@{name}` is not supported");
                        let hint = "calls are made one way, or wait for their answer";
                        self.sink.error_hint(annotation.span, message, hint);
                    }
                }
                Support::Remark if name == "verbatim" => {
                    self.check_arguments(annotation, parameters);
                    self.verbatim(scope, annotation, &mut applied);
                    let is_for_types =
                        place != AnnotationTarget::Interface && TYPES.contains(&place);
                    if !is_for_types && applied.verbatim.last().is_some_and(Verbatim::is_rust) {
                        let place = place.describe();
                        let message = format!("`@verbatim` on {place} has no effect");
                        self.sink
                            .warning_hint(annotation.span, message, "it is for types");
                    }
                }
                Support::At(places) if !places.contains(&place) => {
                    self.misplaced(annotation, name, place);
                }
                // Some files use both spellings, for two tools.
                _ if applied.get(name).is_some() && annotation.is_in_comment => {}
                _ if applied.get(name).is_some() => {
                    self.sink
                        .error(annotation.span, format!("`@{name}` occurs twice here"));
                }
                Support::Remark | Support::At(_) => {
                    self.check_arguments(annotation, parameters);
                    // It applies to members and typedefs; elsewhere it is documentation.
                    if name == "unit" && !VALUES.contains(&place) {
                        let unit = self.unit_text(scope, annotation);
                        let lines = unit.map(|unit| [String::new(), format!("Unit: {unit}.")]);
                        applied.comments.extend(lines.into_iter().flatten());
                    }
                    applied.all.push((name, annotation));
                }
            }
        }
        applied
    }

    /// Reports an annotation where it is none of the construct. IDL 4.2 §7.4.15.4.2 lets annotations
    /// precede any construct, so without effect it is no error.
    fn misplaced(&mut self, annotation: &Annotation, name: &str, place: AnnotationTarget) {
        let where_it_stands = place.describe();
        if contradicts(name, place) && !annotation.is_in_comment {
            let message = format!("`@{name}` is not allowed on {where_it_stands}");
            self.sink.error(annotation.span, message);
        } else {
            let message = format!("`@{name}` has no effect on {where_it_stands}");
            self.sink.warning(annotation.span, message);
        }
    }

    /// The standard annotation of this name; a declared one is added to `applied`.
    fn known(
        &mut self,
        scope: ScopeId,
        annotation: &Annotation,
        applied: &mut Applied<'_>,
    ) -> Option<Standard> {
        let written = annotation.name.to_string();
        // They are declared outside all modules.
        let global = written.strip_prefix("::").unwrap_or(&written);
        if let Some(known) = KNOWN.iter().find(|(name, ..)| *name == global) {
            self.count_behind(annotation);
            return Some(*known);
        }
        if let Some(declared) = self.declared_annotation(scope, &annotation.name) {
            let custom = self.custom_annotation(scope, annotation, declared);
            applied.custom.extend(custom);
            return None;
        }
        if let Some(known) = other_spelling(&written) {
            if annotation.is_in_comment {
                self.count_behind(annotation);
                return Some(*known);
            }
            let message = format!("annotation `@{written}` is read as `@{}`", known.0);
            let hint = format!("write `@{}`", known.0);
            self.sink.warning_hint(annotation.span, message, hint);
            return Some(*known);
        }
        if annotation.is_in_comment {
            // An ordinary comment.
            return None;
        }
        let message = format!("unknown annotation `@{written}` is ignored");
        match closest(&written, KNOWN.iter().map(|(name, ..)| *name)) {
            Some(name) => {
                let hint = format!("did you mean `@{name}`?");
                self.sink.warning_hint(annotation.span, message, hint);
            }
            None => self.sink.warning(annotation.span, message),
        }
        None
    }

    /// Reports the annotations in comments, with one warning per file.
    fn count_behind(&mut self, annotation: &Annotation) {
        if annotation.is_in_comment {
            let file = annotation.span.file;
            let (_, count) = self.in_comments.entry(file).or_insert((annotation.span, 0));
            *count += 1;
        }
    }

    pub(super) fn report_annotations_in_comments(&mut self) {
        for (span, count) in std::mem::take(&mut self.in_comments).into_values() {
            let message = match count {
                1 => "the annotation in this comment has its effect".into(),
                _ => format!("annotations in comments take effect: {count} in this file"),
            };
            let hint = "write them before the declaration, as IDL 4 requires";
            self.sink.warning_hint(span, message, hint);
        }
    }

    /// Reports arguments without a parameter, and second arguments of a parameter.
    fn check_arguments(&mut self, annotation: &Annotation, parameters: &[&str]) {
        let annotated = &annotation.name;
        match &annotation.arguments {
            Arguments::None => {}
            Arguments::Positional(_) if parameters.contains(&VALUE) => {}
            Arguments::Positional(expr) if parameters.is_empty() => {
                let message = format!("`@{annotated}` takes no value");
                self.sink.error(expr.span, message);
            }
            Arguments::Positional(_) => {
                let named = parameters.iter().map(|name| format!("{name} = ..."));
                let named: Vec<String> = named.collect();
                let message = format!("the arguments of `@{annotated}` have names");
                let hint = format!("write `@{annotated}({})`", named.join(", "));
                self.sink.error_hint(annotation.span, message, hint);
            }
            Arguments::Named(named) => {
                let mut given = HashSet::new();
                for (name, _) in named {
                    let message = if !parameters.contains(&&*name.name) {
                        format!("`@{annotated}` has no `{}`", name.name)
                    } else if !given.insert(&name.name) {
                        format!("`{}` is given twice", name.name)
                    } else {
                        continue;
                    };
                    self.sink.error(name.span, message);
                }
            }
        }
    }

    /// The argument of an annotation that requires one.
    pub(super) fn required<'a>(&mut self, annotation: &'a Annotation) -> Option<&'a Expr> {
        let argument = argument(annotation, VALUE);
        if argument.is_none() {
            let message = format!("`@{}` requires a value", annotation.name);
            let hint = format!("write `@{}(...)`", annotation.name);
            self.sink.error_hint(annotation.span, message, hint);
        }
        argument
    }

    /// A boolean argument, `TRUE` when absent; `None` when it was reported.
    pub(super) fn flag(&mut self, scope: ScopeId, annotation: &Annotation) -> Option<bool> {
        let Some(expr) = argument(annotation, VALUE) else {
            return Some(true);
        };
        match self.evaluate(scope, expr, &Target::of_primitive(Primitive::Boolean))? {
            Value::Boolean(value) => Some(value),
            _ => None,
        }
    }

    /// A flag of a declaration, `FALSE` when the annotation is absent.
    pub(super) fn is_flagged(&mut self, scope: ScopeId, applied: &Applied<'_>, name: &str) -> bool {
        let annotation = applied.get(name);
        annotation
            .and_then(|annotation| self.flag(scope, annotation))
            .unwrap_or(false)
    }

    /// An argument that is one of several words.
    pub(super) fn word<'a>(
        &mut self,
        annotation: &Annotation,
        expr: &Expr,
        words: &[&'a str],
    ) -> Option<&'a str> {
        let written = match &expr.kind {
            ExprKind::Name(name) => name.parts().last().map(|part| &*part.name),
            _ => None,
        };
        let found = words.iter().find(|word| written == Some(**word)).copied();
        if found.is_none() {
            let message = format!("`@{}` takes one of {}", annotation.name, words.join(", "));
            self.sink.error(expr.span, message);
        }
        found
    }

    /// An argument that is a string.
    pub(super) fn text_argument(&mut self, scope: ScopeId, expr: &Expr) -> Option<String> {
        match self.evaluate(scope, expr, &Target::String { bound: None })? {
            Value::String(text) => Some(text),
            _ => None,
        }
    }
}
