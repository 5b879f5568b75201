//! Annotations: IDL 4.2 §8 and XTypes 1.3 §7.3.1.2.
//!
//! One table says which standard annotation may stand where. Those that the IDL
//! declares itself are checked and kept; those that nobody declares are ignored
//! with a warning.

use super::Resolver;
use super::hints::closest;
use super::scopes::ScopeId;
use super::targets::Target;
use crate::ast::{Annotation, Arguments, Doc, Expr, ExprKind};
use crate::model::{CustomAnnotation, Primitive, Value, Verbatim};

/// Where an annotation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Module,
    Struct,
    Exception,
    Member,
    Union,
    Discriminator,
    Branch,
    Enum,
    Literal,
    Bitmask,
    Flag,
    Bitset,
    BitField,
    Typedef,
    Const,
    Native,
    Interface,
    Attribute,
    Operation,
    Parameter,
    /// An element of a collection.
    Element,
    /// A use of a type, or behind a declared name.
    Use,
    /// A declaration of an annotation.
    Annotation,
}

impl Place {
    /// Whether the description of a type (XTypes 1.3 Annex B) has a place for annotations of
    /// it.
    pub(super) const fn is_described(self) -> bool {
        matches!(
            self,
            Self::Struct
                | Self::Member
                | Self::Union
                | Self::Discriminator
                | Self::Branch
                | Self::Enum
                | Self::Literal
                | Self::Bitmask
                | Self::Flag
                | Self::Bitset
                | Self::BitField
                | Self::Typedef
        )
    }

    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Module => "a module",
            Self::Struct => "a struct",
            Self::Exception => "an exception",
            Self::Member => "a member",
            Self::Union => "a union",
            Self::Discriminator => "the discriminator of a union",
            Self::Branch => "a branch of a union",
            Self::Enum => "an enum",
            Self::Literal => "a literal of an enum",
            Self::Bitmask => "a bitmask",
            Self::Flag => "a flag of a bitmask",
            Self::Bitset => "a bitset",
            Self::BitField => "a bit field",
            Self::Typedef => "a typedef",
            Self::Const => "a constant",
            Self::Native => "a native type",
            Self::Interface => "an interface",
            Self::Attribute => "an attribute",
            Self::Operation => "an operation",
            Self::Parameter => "a parameter",
            Self::Element => "an element of a collection",
            Self::Use => "a part of a declaration",
            Self::Annotation => "the declaration of an annotation",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Support {
    /// At these places.
    At(&'static [Place]),
    /// Says nothing about the type: accepted anywhere.
    Remark,
    /// Refused unless its value is `FALSE`.
    RefusedFlag,
}

const TYPES: &[Place] = &[
    Place::Struct,
    Place::Exception,
    Place::Union,
    Place::Enum,
    Place::Bitmask,
    Place::Bitset,
    Place::Typedef,
    Place::Native,
    Place::Interface,
];
const EVOLVING: &[Place] = &[
    Place::Struct,
    Place::Exception,
    Place::Union,
    Place::Enum,
    Place::Bitmask,
];
const AGGREGATES: &[Place] = &[Place::Struct, Place::Union];
const MEMBERS: &[Place] = &[Place::Member, Place::Branch];
const VALUES: &[Place] = &[Place::Member, Place::Branch, Place::Typedef];

const KNOWN: &[(&str, Support)] = &[
    ("ami", Support::RefusedFlag),
    ("appendable", Support::At(EVOLVING)),
    (
        "autoid",
        Support::At(&[
            Place::Module,
            Place::Struct,
            Place::Exception,
            Place::Union,
            Place::Interface,
        ]),
    ),
    ("bit_bound", Support::At(&[Place::Enum, Place::Bitmask])),
    (
        "data_representation",
        Support::At(&[Place::Module, Place::Struct, Place::Union]),
    ),
    (
        "default",
        Support::At(&[
            Place::Member,
            Place::Branch,
            Place::Discriminator,
            Place::Typedef,
        ]),
    ),
    ("default_literal", Support::At(&[Place::Literal])),
    ("default_nested", Support::At(&[Place::Module])),
    ("extensibility", Support::At(EVOLVING)),
    (
        "external",
        Support::At(&[Place::Member, Place::Branch, Place::Element]),
    ),
    ("final", Support::At(EVOLVING)),
    ("hashid", Support::At(MEMBERS)),
    ("id", Support::At(MEMBERS)),
    ("ignore_literal_names", Support::At(&[Place::Enum])),
    ("key", Support::At(&[Place::Member, Place::Discriminator])),
    ("max", Support::At(VALUES)),
    ("min", Support::At(VALUES)),
    ("must_understand", Support::At(MEMBERS)),
    ("mutable", Support::At(EVOLVING)),
    ("nested", Support::At(TYPES)),
    ("non_serialized", Support::At(&[Place::Member])),
    ("oneway", Support::At(&[Place::Operation])),
    ("optional", Support::At(&[Place::Member])),
    ("position", Support::At(&[Place::Flag])),
    ("range", Support::At(VALUES)),
    ("service", Support::At(&[Place::Interface])),
    ("top_level", Support::At(TYPES)),
    ("topic", Support::At(AGGREGATES)),
    (
        "try_construct",
        Support::At(&[
            Place::Member,
            Place::Branch,
            Place::Discriminator,
            Place::Element,
        ]),
    ),
    ("unit", Support::Remark),
    ("value", Support::At(&[Place::Literal])),
    ("verbatim", Support::Remark),
];

/// Names that annotations had before, or have elsewhere, without their underscores:
/// XTypes 1.0 and Connext DDS.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("alloweddatarepresentation", "data_representation"),
    ("shared", "external"),
];

/// The standard annotation that is meant by another spelling: `@MustUnderstand`.
fn other_spelling(written: &str) -> Option<&'static (&'static str, Support)> {
    let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
    let meant = plain(written);
    let other = OTHER_NAMES.iter().find(|(name, _)| *name == meant);
    let meant = other.map_or(meant, |(_, name)| plain(name));
    KNOWN.iter().find(|(name, _)| plain(name) == meant)
}

/// Whether this is the name of a standard annotation.
pub(super) fn is_standard(name: &str) -> bool {
    KNOWN.iter().any(|(known, _)| *known == name)
}

/// The annotations of one declaration.
#[derive(Debug, Clone, Default)]
pub(super) struct Applied<'a> {
    all: Vec<(&'static str, &'a Annotation)>,
    /// Lines of `@verbatim(language="comment")`.
    pub(super) comments: Vec<String>,
    /// `@verbatim`.
    pub(super) verbatim: Vec<Verbatim>,
    /// Those that the IDL declares itself.
    pub(super) custom: Vec<CustomAnnotation>,
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
    /// Sorts the annotations of a declaration, and reports those that cannot
    /// stand here.
    pub(super) fn annotate<'a>(
        &mut self,
        scope: ScopeId,
        place: Place,
        annotations: &'a [Annotation],
    ) -> Applied<'a> {
        let mut applied = Applied::default();
        for annotation in annotations {
            let before = applied.custom.len();
            let Some((name, support)) = self.known(scope, annotation, &mut applied) else {
                for custom in applied.custom.iter().skip(before) {
                    self.check_described(place, annotation.span, custom);
                }
                continue;
            };
            match support {
                Support::RefusedFlag => {
                    if self.flag(scope, annotation) != Some(false) {
                        let message = format!("`@{name}` is not supported");
                        let hint = "calls are made one way, or wait for their answer";
                        self.sink.error_hint(annotation.span, message, hint);
                    }
                }
                Support::Remark if name == "verbatim" => {
                    self.verbatim(scope, annotation, &mut applied);
                    let is_for_types = place != Place::Interface && TYPES.contains(&place);
                    if !is_for_types && applied.verbatim.last().is_some_and(Verbatim::is_rust) {
                        let place = place.describe();
                        let message = format!("`@verbatim` on {place} has no effect");
                        self.sink
                            .warning_hint(annotation.span, message, "it is for types");
                    }
                }
                Support::At(places) if !places.contains(&place) => {
                    let message = format!("`@{name}` cannot stand on {}", place.describe());
                    match annotation.behind {
                        true => self.sink.warning(annotation.span, message),
                        false => self.sink.error(annotation.span, message),
                    }
                }
                // Some files have it in both ways, for two tools.
                _ if applied.get(name).is_some() && annotation.behind => {}
                _ if applied.get(name).is_some() => {
                    self.sink
                        .error(annotation.span, format!("`@{name}` stands here twice"));
                }
                Support::Remark | Support::At(_) => applied.all.push((name, annotation)),
            }
        }
        applied
    }

    /// The standard annotation of this name; one of the user's goes into
    /// `applied`.
    fn known(
        &mut self,
        scope: ScopeId,
        annotation: &Annotation,
        applied: &mut Applied<'_>,
    ) -> Option<(&'static str, Support)> {
        let written = annotation.name.to_string();
        if let Some(known) = KNOWN.iter().find(|(name, _)| *name == written) {
            self.count_behind(annotation);
            return Some(*known);
        }
        if let Some(declared) = self.declared_annotation(scope, &annotation.name) {
            let custom = self.custom_annotation(scope, annotation, declared);
            applied.custom.extend(custom);
            return None;
        }
        if let Some(known) = other_spelling(&written) {
            if annotation.behind {
                self.count_behind(annotation);
                return Some(*known);
            }
            let message = format!("annotation `@{written}` is taken for `@{}`", known.0);
            let hint = format!("write `@{}`", known.0);
            self.sink.warning_hint(annotation.span, message, hint);
            return Some(*known);
        }
        if annotation.behind {
            // A comment as any other.
            return None;
        }
        let message = format!("unknown annotation `@{written}` is ignored");
        match closest(&written, KNOWN.iter().map(|(name, _)| *name)) {
            Some(name) => {
                let hint = format!("did you mean `@{name}`?");
                self.sink.warning_hint(annotation.span, message, hint);
            }
            None => self.sink.warning(annotation.span, message),
        }
        None
    }

    /// One warning for each file tells of its annotations in comments.
    fn count_behind(&mut self, annotation: &Annotation) {
        if annotation.behind {
            let file = annotation.span.file;
            let (_, count) = self.behind.entry(file).or_insert((annotation.span, 0));
            *count += 1;
        }
    }

    pub(super) fn tell_of_annotations_behind(&mut self) {
        for (span, count) in std::mem::take(&mut self.behind).into_values() {
            let message = match count {
                1 => "the annotation in this comment has its effect".into(),
                _ => format!("annotations in comments have their effect: {count} in this file"),
            };
            let hint = "write them before what they are about, as IDL 4 has it";
            self.sink.warning_hint(span, message, hint);
        }
    }

    /// The argument of this name. One that stands alone without a name is
    /// `value`. Those that are not in `names` are reported.
    pub(super) fn named_argument<'a>(
        &mut self,
        annotation: &'a Annotation,
        wanted: &str,
        names: &[&str],
    ) -> Option<&'a Expr> {
        match &annotation.arguments {
            Arguments::None => None,
            Arguments::Positional(expr) => Some(expr).filter(|_| wanted == "value"),
            Arguments::Named(named) => {
                for (name, _) in named {
                    if !names.contains(&&*name.name) && names.first() == Some(&wanted) {
                        let message = format!("`@{}` has no `{}`", annotation.name, name.name);
                        self.sink.error(name.span, message);
                    }
                }
                let found = named.iter().find(|(name, _)| &*name.name == wanted);
                found.map(|(_, expr)| expr)
            }
        }
    }

    /// The argument of an annotation that takes one, by position or as `value`.
    pub(super) fn argument<'a>(&mut self, annotation: &'a Annotation) -> Option<&'a Expr> {
        self.named_argument(annotation, "value", &["value"])
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

    /// An argument that is a string.
    pub(super) fn text_argument(&mut self, scope: ScopeId, expr: &Expr) -> Option<String> {
        match self.evaluate(scope, expr, &Target::String { bound: None })? {
            Value::String(text) => Some(text),
            _ => None,
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
