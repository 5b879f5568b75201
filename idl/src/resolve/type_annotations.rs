//! Annotations of a type as a whole.

use super::Resolver;
use super::annotations::{Applied, argument};
use super::scopes::ScopeId;
use crate::ast::{Annotation, Arguments, Expr, ExprKind};
use crate::limits::VERBATIM_LANGUAGE_BYTES_MAX;
use crate::model::{Extensibility, Placement, Representations, Verbatim};

/// Defaults from the enclosing modules of a type.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Inherited {
    /// `@autoid(HASH)`.
    pub(super) hash_ids: bool,
    /// `@default_nested`.
    pub(super) nested: bool,
    /// `@data_representation`.
    pub(super) representations: Option<Representations>,
}

impl Resolver<'_> {
    /// `@final`, `@appendable`, `@mutable` or `@extensibility(...)`, and its
    /// position.
    pub(super) fn extensibility<'a>(
        &mut self,
        applied: &Applied<'a>,
    ) -> Option<(Extensibility, &'a Annotation)> {
        let mut given: Option<(Extensibility, _)> = None;
        for name in ["final", "appendable", "mutable", "extensibility"] {
            let Some(annotation) = applied.get(name) else {
                continue;
            };
            let word = if name == "extensibility" {
                self.required(annotation)
                    .and_then(|expr| self.extensibility_kind(annotation, expr))
            } else {
                Some(name)
            };
            let kind = match word {
                Some("final" | "FINAL") => Extensibility::Final,
                Some("mutable" | "MUTABLE") => Extensibility::Mutable,
                _ => Extensibility::Appendable,
            };
            if given.is_some_and(|(given, _)| given != kind) {
                let message = format!("`@{name}` contradicts another extensibility of this type");
                self.sink.error(annotation.span, message);
            }
            given = Some((kind, annotation));
        }
        given
    }

    /// `FINAL`, or `FINAL_EXTENSIBILITY` as in XTypes 1.0, where `EXTENSIBLE` was the
    /// name of `APPENDABLE`.
    fn extensibility_kind(&mut self, annotation: &Annotation, expr: &Expr) -> Option<&'static str> {
        const OLD: [(&str, &str); 4] = [
            ("FINAL_EXTENSIBILITY", "FINAL"),
            ("EXTENSIBLE_EXTENSIBILITY", "APPENDABLE"),
            ("APPENDABLE_EXTENSIBILITY", "APPENDABLE"),
            ("MUTABLE_EXTENSIBILITY", "MUTABLE"),
        ];
        if let ExprKind::Name(name) = &expr.kind
            && let Some((old, new)) = OLD.iter().find(|(old, _)| *old == name.to_string())
        {
            if !annotation.is_in_comment {
                let message = format!("`{old}` is read as `{new}`");
                let hint = format!("write `@extensibility({new})`");
                self.sink.warning_hint(expr.span, message, hint);
            }
            return Some(*new);
        }
        self.word(annotation, expr, &["FINAL", "APPENDABLE", "MUTABLE"])
    }

    /// As [`Self::extensibility`], with the default of the standard.
    pub(super) fn extensibility_or_default(&mut self, applied: &Applied<'_>) -> Extensibility {
        self.extensibility(applied)
            .map_or(Extensibility::Appendable, |(kind, _)| kind)
    }

    /// As [`Self::extensibility_or_default`], for enums and bitmasks, which are final or appendable
    /// (XTypes 1.3 table 12). `what` names the type.
    pub(super) fn extensibility_of_values(
        &mut self,
        applied: &Applied<'_>,
        what: &str,
    ) -> Extensibility {
        match self.extensibility(applied) {
            None => Extensibility::Appendable,
            Some((Extensibility::Mutable, annotation)) => {
                let message = format!("{what} cannot be mutable");
                let hint = "it is @appendable, which is the default, or @final";
                self.sink.error_hint(annotation.span, message, hint);
                Extensibility::Appendable
            }
            Some((kind, _)) => kind,
        }
    }

    /// `@nested` and `@topic`, or else the default of the enclosing modules. `@top_level` is
    /// the older opposite of `@nested`.
    pub(super) fn nested(&mut self, scope: ScopeId, applied: &Applied<'_>) -> bool {
        let nested = applied
            .get("nested")
            .and_then(|annotation| self.flag(scope, annotation));
        let top_level = applied
            .get("top_level")
            .and_then(|annotation| self.flag(scope, annotation));
        let nested = nested.or_else(|| top_level.map(|top_level| !top_level));
        let Some(topic) = applied.get("topic") else {
            return nested.unwrap_or_else(|| self.inherited(scope).nested);
        };
        let platform = argument(topic, "platform");
        let platform = platform.and_then(|expr| self.text_argument(scope, expr));
        if argument(topic, "name").is_some() {
            let message = "the name that `@topic` gives is not used";
            let hint = "a topic gets its name where it is created";
            self.sink.warning_hint(topic.span, message, hint);
        }
        // §7.3.1.2.1.16: the platform for which it is a topic type.
        if platform.is_some_and(|platform| !matches!(&*platform, "*" | "DDS")) {
            return nested.unwrap_or_else(|| self.inherited(scope).nested);
        }
        if nested == Some(true) {
            self.sink
                .error(topic.span, "`@topic` contradicts `@nested`");
        }
        false
    }

    /// Refuses annotations of topic types on a type that cannot be one.
    pub(super) fn check_nested(&mut self, scope: ScopeId, applied: &Applied<'_>) {
        for name in ["nested", "top_level"] {
            self.is_flagged(scope, applied, name);
        }
    }

    /// Whether ids come from names: `@autoid`, or else the default of the enclosing modules.
    pub(super) fn has_hash_ids(&mut self, scope: ScopeId, applied: &Applied<'_>) -> bool {
        let Some(annotation) = applied.get("autoid") else {
            return self.inherited(scope).hash_ids;
        };
        // XTypes 1.3 §7.3.1.2.1.1: HASH is the default of the annotation.
        let Some(expr) = argument(annotation, "value") else {
            return true;
        };
        self.word(annotation, expr, &["SEQUENTIAL", "HASH"]) == Some("HASH")
    }

    /// `@data_representation`, or else the default of the enclosing modules.
    pub(super) fn representations(
        &mut self,
        scope: ScopeId,
        applied: &Applied<'_>,
    ) -> Representations {
        self.given_representations(applied)
            .or_else(|| self.inherited(scope).representations)
            .unwrap_or(Representations::ALL)
    }

    pub(super) fn given_representations(
        &mut self,
        applied: &Applied<'_>,
    ) -> Option<Representations> {
        let annotation = applied.get("data_representation")?;
        let kinds = argument(annotation, "allowed_kinds").or_else(|| argument(annotation, "value"));
        let Some(expr) = kinds else {
            let hint = "write `@data_representation(XCDR1 | XCDR2)` or one of these";
            let message = "`@data_representation` requires a value";
            self.sink.error_hint(annotation.span, message, hint);
            return None;
        };
        let mut given = Representations {
            xcdr1: false,
            xcdr2: false,
        };
        self.representation(annotation, expr, &mut given)?;
        if !given.xcdr1 && !given.xcdr2 {
            let message = "none of the representations of this type is supported";
            self.sink
                .error_hint(expr.span, message, "allow XCDR1 or XCDR2");
            return None;
        }
        Some(given)
    }

    /// `XCDR1 | XCDR2`. XML may be allowed too, but is not supported.
    fn representation(
        &mut self,
        annotation: &Annotation,
        expr: &Expr,
        given: &mut Representations,
    ) -> Option<()> {
        if let ExprKind::Binary('|', left, right) = &expr.kind {
            self.representation(annotation, left, given)?;
            return self.representation(annotation, right, given);
        }
        // Bits of the mask without a representation are ignored.
        if let ExprKind::Integer(bits) = &expr.kind {
            given.xcdr1 |= bits & 1 != 0;
            given.xcdr2 |= bits & 4 != 0;
            return Some(());
        }
        // The name of the first one in Connext DDS.
        if matches!(&expr.kind, ExprKind::Name(name) if name.to_string() == "XCDR") {
            given.xcdr1 = true;
            return Some(());
        }
        match self.word(annotation, expr, &["XCDR1", "XCDR2", "XML"])? {
            "XCDR1" => given.xcdr1 = true,
            "XCDR2" => given.xcdr2 = true,
            _ => {}
        }
        Some(())
    }

    /// IDL 4.2 §8.3.5.1. Comments become documentation; code for other languages is kept
    /// for the type object only.
    pub(super) fn verbatim(
        &mut self,
        scope: ScopeId,
        annotation: &Annotation,
        applied: &mut Applied<'_>,
    ) {
        if matches!(annotation.arguments, Arguments::Positional(_)) {
            return;
        }
        let language = argument(annotation, "language");
        let language = match language {
            Some(expr) => self.text_argument(scope, expr),
            None => Some("*".into()),
        };
        let Some(text) = argument(annotation, "text") else {
            let message = "`@verbatim` requires a `text`";
            self.sink.error(annotation.span, message);
            return;
        };
        let text = self.text_argument(scope, text);
        let placement = self.placement(scope, annotation);
        let (Some(language), Some(text), Some(placement)) = (language, text, placement) else {
            return;
        };
        if language.eq_ignore_ascii_case("comment") {
            applied.comments.extend(text.lines().map(String::from));
        }
        if language.len() > VERBATIM_LANGUAGE_BYTES_MAX {
            let message = format!(
                "a language of more than {VERBATIM_LANGUAGE_BYTES_MAX} bytes: this `@verbatim` \
                 is left out of type objects"
            );
            self.sink.warning(annotation.span, message);
        }
        applied.verbatim.push(Verbatim {
            language,
            placement,
            text,
        });
    }

    /// The words of IDL 4.2, or those of XTypes 1.3 §7.5.1.2.6.
    fn placement(&mut self, scope: ScopeId, annotation: &Annotation) -> Option<Placement> {
        let Some(expr) = argument(annotation, "placement") else {
            return Some(Placement::BeforeDeclaration);
        };
        let written = match &expr.kind {
            ExprKind::Name(name) => name.parts().last().map(|part| part.name.to_string()),
            _ => self.text_argument(scope, expr),
        }?;
        let known = [
            ("BEGIN_FILE", Placement::BeginFile),
            ("BEFORE_DECLARATION", Placement::BeforeDeclaration),
            ("BEGIN_DECLARATION", Placement::BeginDeclaration),
            ("END_DECLARATION", Placement::EndDeclaration),
            ("AFTER_DECLARATION", Placement::AfterDeclaration),
            ("END_FILE", Placement::EndFile),
        ];
        let alike = |(name, placement): &&(&str, Placement)| {
            *name == written || placement.type_object_word() == written
        };
        let found = known.iter().find(alike).map(|(_, placement)| *placement);
        if found.is_none() {
            let words = known.map(|(name, _)| name).join(", ");
            let message = format!("the placement of `@verbatim` is one of {words}");
            self.sink.error(expr.span, message);
        }
        found
    }

    /// `@unit`.
    pub(super) fn unit(&mut self, scope: ScopeId, applied: &Applied<'_>) -> Option<String> {
        let annotation = applied.get("unit")?;
        self.unit_text(scope, annotation)
    }

    pub(super) fn unit_text(&mut self, scope: ScopeId, annotation: &Annotation) -> Option<String> {
        let expr = self.required(annotation)?;
        self.text_argument(scope, expr)
    }
}
