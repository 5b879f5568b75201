//! Annotations: IDL 4.2 §8 and XTypes 1.3 §7.3.1.2.
//!
//! One table says which annotation may stand where and what becomes of it.
//! Standard ones that are not built yet are refused by name, because ignoring
//! them would change the meaning of a type; those of users are ignored with a
//! warning.

use super::Resolver;
use super::constants::Target;
use super::hints::closest;
use super::scopes::ScopeId;
use crate::ast::{Annotation, Arguments, Doc, Expr, ExprKind};
use crate::model::{Extensibility, Primitive, Value};

/// Where an annotation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Module,
    Struct,
    Member,
    Enum,
    Literal,
    Typedef,
    Const,
    /// On an element of a sequence, or behind a declared name.
    Use,
}

impl Place {
    fn describe(self) -> &'static str {
        match self {
            Self::Module => "a module",
            Self::Struct => "a struct",
            Self::Member => "a member",
            Self::Enum => "an enum",
            Self::Literal => "a literal of an enum",
            Self::Typedef => "a typedef",
            Self::Const => "a constant",
            Self::Use => "a part of a declaration",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Support {
    /// At these places.
    At(&'static [Place]),
    /// Says nothing about the type: accepted anywhere.
    Remark,
    Refused,
    /// Refused unless its value is `FALSE`.
    RefusedFlag,
}

const KNOWN: &[(&str, Support)] = &[
    ("ami", Support::Refused),
    ("appendable", Support::At(&[Place::Struct, Place::Enum])),
    ("autoid", Support::At(&[Place::Struct])),
    ("bit_bound", Support::At(&[Place::Enum])),
    ("data_representation", Support::Refused),
    ("default", Support::At(&[Place::Member])),
    ("default_literal", Support::At(&[Place::Literal])),
    ("default_nested", Support::RefusedFlag),
    ("extensibility", Support::At(&[Place::Struct, Place::Enum])),
    ("external", Support::RefusedFlag),
    ("final", Support::At(&[Place::Struct, Place::Enum])),
    ("hashid", Support::At(&[Place::Member])),
    ("id", Support::At(&[Place::Member])),
    ("ignore_literal_names", Support::RefusedFlag),
    ("key", Support::At(&[Place::Member])),
    ("max", Support::Refused),
    ("min", Support::Refused),
    ("must_understand", Support::RefusedFlag),
    ("mutable", Support::At(&[Place::Struct, Place::Enum])),
    (
        "nested",
        Support::At(&[Place::Struct, Place::Enum, Place::Typedef]),
    ),
    ("non_serialized", Support::RefusedFlag),
    ("oneway", Support::RefusedFlag),
    ("optional", Support::RefusedFlag),
    ("position", Support::Refused),
    ("range", Support::Refused),
    ("service", Support::Refused),
    ("topic", Support::At(&[Place::Struct])),
    ("try_construct", Support::Refused),
    ("unit", Support::Remark),
    ("value", Support::At(&[Place::Literal])),
    ("verbatim", Support::Remark),
];

/// The supported annotations of one declaration.
#[derive(Debug, Default)]
pub(super) struct Applied<'a> {
    all: Vec<(&'static str, &'a Annotation)>,
    /// Lines of `@verbatim(language="comment")`.
    comments: Vec<String>,
}

impl<'a> Applied<'a> {
    pub(super) fn get(&self, name: &str) -> Option<&'a Annotation> {
        self.all
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, annotation)| *annotation)
    }

    /// The comment lines of the declaration, those by annotation last.
    pub(super) fn doc(&self, doc: &Doc) -> Vec<String> {
        doc.iter()
            .flat_map(|doc| doc.iter())
            .chain(&self.comments)
            .cloned()
            .collect()
    }
}

impl Resolver<'_> {
    /// Sorts the annotations of a declaration, and reports those that are not
    /// supported here.
    pub(super) fn annotate<'a>(
        &mut self,
        scope: ScopeId,
        place: Place,
        annotations: &'a [Annotation],
    ) -> Applied<'a> {
        let mut applied = Applied::default();
        for annotation in annotations {
            let Some((name, support)) = self.known(annotation) else {
                continue;
            };
            match support {
                Support::Refused => self.refuse_annotation(annotation, name),
                Support::RefusedFlag => {
                    if self.flag(scope, annotation) != Some(false) {
                        self.refuse_annotation(annotation, name);
                    }
                }
                Support::Remark if name == "verbatim" => {
                    self.verbatim(annotation, &mut applied.comments);
                }
                Support::Remark => {}
                Support::At(places) if !places.contains(&place) => {
                    let message = format!("`@{name}` cannot stand on {}", place.describe());
                    self.sink.error(annotation.span, message);
                }
                Support::At(_) if applied.get(name).is_some() => {
                    self.sink
                        .error(annotation.span, format!("`@{name}` stands here twice"));
                }
                Support::At(_) => applied.all.push((name, annotation)),
            }
        }
        applied
    }

    fn refuse_annotation(&mut self, annotation: &Annotation, name: &str) {
        self.sink
            .refuse(annotation.span, &format!("annotation `@{name}`"));
    }

    fn known(&mut self, annotation: &Annotation) -> Option<(&'static str, Support)> {
        let written = annotation.name.to_string();
        let found = KNOWN
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(&written))
            .copied();
        match found {
            Some((name, _)) if name != written => {
                let message = format!("annotation `@{written}` is taken for `@{name}`");
                self.sink
                    .warning_hint(annotation.span, message, format!("write `@{name}`"));
            }
            None => {
                let message = format!("unknown annotation `@{written}` is ignored");
                match closest(&written, KNOWN.iter().map(|(name, _)| *name)) {
                    Some(name) => {
                        let hint = format!("did you mean `@{name}`?");
                        self.sink.warning_hint(annotation.span, message, hint);
                    }
                    None => self.sink.warning(annotation.span, message),
                }
            }
            Some(_) => {}
        }
        found
    }

    /// The argument of an annotation that takes one, by position or as `value`.
    pub(super) fn argument<'a>(&mut self, annotation: &'a Annotation) -> Option<&'a Expr> {
        match &annotation.arguments {
            Arguments::None => None,
            Arguments::Positional(expr) => Some(expr),
            Arguments::Named(named) => {
                for (name, _) in named.iter().filter(|(name, _)| &*name.name != "value") {
                    let message = format!("`@{}` has no `{}`", annotation.name, name.name);
                    self.sink.error(name.span, message);
                }
                named
                    .iter()
                    .find(|(name, _)| &*name.name == "value")
                    .map(|(_, expr)| expr)
            }
        }
    }

    /// The argument of an annotation that must have one.
    pub(super) fn required<'a>(&mut self, annotation: &'a Annotation) -> Option<&'a Expr> {
        let argument = self.argument(annotation);
        if argument.is_none() {
            let message = format!("`@{}` wants a value", annotation.name);
            let hint = format!("write `@{}(...)`", annotation.name);
            self.sink.error_hint(annotation.span, message, hint);
        }
        argument
    }

    /// A boolean argument, `TRUE` when absent; `None` when it was reported.
    pub(super) fn flag(&mut self, scope: ScopeId, annotation: &Annotation) -> Option<bool> {
        let Some(expr) = self.argument(annotation) else {
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

    /// An argument that is one of a few words.
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

    /// `@final`, `@appendable`, `@mutable` or `@extensibility(...)`.
    pub(super) fn extensibility(&mut self, applied: &Applied<'_>) -> Extensibility {
        let mut given = None;
        for name in ["final", "appendable", "mutable", "extensibility"] {
            let Some(annotation) = applied.get(name) else {
                continue;
            };
            let word = if name == "extensibility" {
                let words = ["FINAL", "APPENDABLE", "MUTABLE"];
                self.required(annotation)
                    .and_then(|expr| self.word(annotation, expr, &words))
            } else {
                Some(name)
            };
            let kind = match word {
                Some("final" | "FINAL") => Extensibility::Final,
                Some("mutable" | "MUTABLE") => Extensibility::Mutable,
                _ => Extensibility::Appendable,
            };
            if given.is_some_and(|given| given != kind) {
                let message = format!("`@{name}` contradicts another extensibility of this type");
                self.sink.error(annotation.span, message);
            }
            given = Some(kind);
        }
        given.unwrap_or(Extensibility::Appendable)
    }

    /// Comments by annotation, as other tools write them; code is refused.
    fn verbatim(&mut self, annotation: &Annotation, comments: &mut Vec<String>) {
        let text = |wanted: &str| match &annotation.arguments {
            Arguments::Named(named) => {
                let found = named.iter().find(|(name, _)| &*name.name == wanted);
                match found.map(|(_, expr)| &expr.kind) {
                    Some(ExprKind::Text(text)) => Some(text),
                    _ => None,
                }
            }
            _ => None,
        };
        match (text("language"), text("text")) {
            (Some(language), Some(text)) if &**language == "comment" => {
                comments.extend(text.lines().map(String::from));
            }
            (Some(language), _) => {
                let construct = format!("`@verbatim` for language \"{language}\"");
                self.sink.refuse(annotation.span, &construct);
            }
            (None, _) => self
                .sink
                .refuse(annotation.span, "`@verbatim` without a language"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_unique() {
        assert!(KNOWN.is_sorted_by(|left, right| left.0 < right.0));
    }
}
