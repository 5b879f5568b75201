//! Types that are named before they are complete: forward declarations, and
//! types inside their own declaration.

use super::annotations::Applied;
use super::scopes::{ScopeId, Symbol};
use super::standard::AnnotationTarget;
use super::types::Facts;
use super::{Clash, NodeItem, Resolver};
use crate::ast::{self, ForwardKind};
use crate::model::{Extensibility, Type, TypeDecl, TypeId, TypeKind};
use crate::source::Span;

/// A struct or union that was declared forward.
#[derive(Debug)]
pub(super) struct Forward {
    kind: ForwardKind,
    name: String,
    span: Span,
    /// Its index in the model, from its first use on.
    id: Option<TypeId>,
    first_use: Option<Span>,
    defined: bool,
    annotations: ForwardAnnotations,
}

/// The annotations of a forward declaration, with positions. IDL does not define their
/// meaning: here the definition must agree with them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ForwardAnnotations {
    extensibility: Option<(Extensibility, Span)>,
    nested: Option<(bool, Span)>,
}

/// A type whose declaration has begun.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) id: TypeId,
    scope: ScopeId,
    file: usize,
}

impl Resolver<'_> {
    /// Annotations before a forward declaration. Those that cannot be compared with the
    /// definition are refused.
    pub(super) fn forward_annotations(
        &mut self,
        scope: ScopeId,
        kind: ForwardKind,
        annotations: &[ast::Annotation],
    ) -> ForwardAnnotations {
        let place = match kind {
            ForwardKind::Struct => AnnotationTarget::Struct,
            ForwardKind::Union => AnnotationTarget::Union,
            ForwardKind::Interface { .. } => AnnotationTarget::Interface,
        };
        let applied = self.annotate(scope, place, annotations);
        let compared = ["final", "appendable", "mutable", "extensibility", "nested"];
        for annotation in annotations {
            let name = annotation.name.to_string();
            let known = applied.get(&name).is_some()
                || self.declared_annotation(scope, &annotation.name).is_some();
            if known && !compared.contains(&&*name) {
                let message = format!("`@{name}` has no effect on a forward declaration");
                let hint = "write it where the type is defined";
                self.sink.warning_hint(annotation.span, message, hint);
            }
        }
        let nested = applied.get("nested");
        ForwardAnnotations {
            extensibility: self
                .extensibility(&applied)
                .map(|(kind, annotation)| (kind, annotation.span)),
            nested: nested
                .and_then(|annotation| Some((self.flag(scope, annotation)?, annotation.span))),
        }
    }

    /// Compares a definition with the annotations of its forward declaration.
    fn check_forward_annotations(&mut self, opened: &Opened, kind: &TypeKind) {
        let mut forwards = self.forwards.iter();
        let Some(annotations) = forwards
            .find(|one| one.id == Some(opened.id))
            .map(|one| one.annotations)
        else {
            return;
        };
        let (extensibility, nested) = match kind {
            TypeKind::Struct(structure) => (structure.extensibility, structure.nested),
            TypeKind::Union(union) => (union.extensibility, union.nested),
            _ => return,
        };
        let broken = [
            annotations
                .extensibility
                .filter(|(promised, _)| *promised != extensibility)
                .map(|(_, span)| span),
            annotations
                .nested
                .filter(|(promised, _)| *promised != nested)
                .map(|(_, span)| span),
        ];
        for span in broken.into_iter().flatten() {
            let message = "the definition of this type says otherwise";
            let hint = "write the annotation there, and nothing here";
            self.sink.error_hint(span, message, hint);
        }
    }

    /// `struct S;` or `union U;`
    pub(super) fn forward_type(
        &mut self,
        scope: ScopeId,
        kind: ForwardKind,
        name: &ast::Ident,
        annotations: ForwardAnnotations,
    ) {
        let existing = self.scopes.local(scope, &name.name).cloned();
        let Some(entry) = existing else {
            let index = self.forwards.len();
            self.forwards.push(Forward {
                kind,
                name: name.name.to_string(),
                span: name.span,
                id: None,
                first_use: None,
                defined: false,
                annotations,
            });
            self.declare(scope, name, Symbol::Forward(index));
            return;
        };
        let again = *entry.spelling == *name.name
            && match entry.symbol {
                Symbol::Forward(index) => {
                    self.forwards.get(index).is_some_and(|one| one.kind == kind)
                }
                Symbol::Type(id) => self.is_of_kind(id, kind),
                Symbol::Refused => true,
                _ => false,
            };
        if !again {
            self.report_clash(name, &Clash::of(&entry));
        }
    }

    fn is_of_kind(&self, id: TypeId, kind: ForwardKind) -> bool {
        let decl = self.types.get(id.0).map(|decl| &decl.kind);
        matches!(
            (decl, kind),
            (Some(TypeKind::Struct(_)), ForwardKind::Struct)
                | (Some(TypeKind::Union(_)), ForwardKind::Union)
        )
    }

    /// Begins a declaration: from here on the name means the type, which is not
    /// complete yet. `None` when the name clashes.
    pub(super) fn open_type(
        &mut self,
        scope: ScopeId,
        name: &ast::Ident,
        kind: ForwardKind,
    ) -> Option<Opened> {
        let existing = self.scopes.local(scope, &name.name).cloned();
        let file = name.span.file.0;
        if let Some(entry) = &existing
            && let Symbol::Forward(index) = entry.symbol
            && *entry.spelling == *name.name
            && self.forwards.get(index).is_some_and(|one| one.kind == kind)
        {
            let id = self.reserve_forward(index, scope)?;
            if let Some(forward) = self.forwards.get_mut(index) {
                forward.defined = true;
            }
            self.scopes.replace(scope, name, Symbol::Type(id));
            if let Some(span) = self.spans.get_mut(id.0) {
                *span = name.span;
            }
            return Some(Opened { id, scope, file });
        }
        let id = TypeId(self.types.len());
        if !self.declare(scope, name, Symbol::Type(id)) {
            return None;
        }
        let id = self.reserve(scope, &name.name, name.span);
        Some(Opened { id, scope, file })
    }

    /// The type that a forward declaration stands for.
    fn reserve_forward(&mut self, index: usize, scope: ScopeId) -> Option<TypeId> {
        let forward = self.forwards.get(index)?;
        if let Some(id) = forward.id {
            return Some(id);
        }
        let (name, span) = (forward.name.clone(), forward.span);
        let id = self.reserve(scope, &name, span);
        self.forwards.get_mut(index)?.id = Some(id);
        Some(id)
    }

    /// An entry in the model for an incomplete type.
    fn reserve(&mut self, scope: ScopeId, name: &str, span: Span) -> TypeId {
        let id = TypeId(self.types.len());
        self.types.push(TypeDecl {
            name: name.to_owned(),
            scope: self.scopes.path(scope),
            doc: Vec::new(),
            verbatim: Vec::new(),
            custom: Vec::new(),
            kind: TypeKind::Native,
            file: span.file.0,
        });
        self.facts.push(Facts {
            incomplete: true,
            ..Facts::default()
        });
        self.spans.push(span);
        id
    }

    /// A use of a name that was declared forward.
    pub(super) fn use_forward(&mut self, index: usize, scope: ScopeId, span: Span) -> Option<Type> {
        let forward = self.forwards.get_mut(index)?;
        forward.first_use = forward.first_use.or(Some(span));
        self.reserve_forward(index, scope).map(Type::Named)
    }

    pub(super) fn is_complete(&self, id: TypeId) -> bool {
        self.facts
            .get(id.0)
            .is_some_and(|facts| !facts.incomplete || self.closed.contains(&id))
    }

    /// Ends a valid declaration.
    pub(super) fn close_type(
        &mut self,
        opened: &Opened,
        doc: Vec<String>,
        applied: Applied<'_>,
        kind: TypeKind,
        facts: Facts,
    ) -> Option<TypeId> {
        self.check_forward_annotations(opened, &kind);
        let decl = self.types.get_mut(opened.id.0)?;
        decl.doc = doc;
        decl.verbatim = applied.verbatim;
        decl.custom = applied.custom;
        decl.kind = kind;
        decl.file = opened.file;
        // What it contains of itself is known only once it is complete.
        if facts.incomplete {
            self.closed.insert(opened.id);
        }
        if let Some(place) = self.facts.get_mut(opened.id.0) {
            *place = Facts {
                depth: facts.depth + 1,
                ..facts
            };
        }
        self.push_item(opened.scope, NodeItem::Type(opened.id));
        Some(opened.id)
    }

    /// Ends an invalid declaration.
    pub(super) fn abandon_type(&mut self, opened: &Opened, name: &ast::Ident) -> Option<TypeId> {
        self.scopes.replace(opened.scope, name, Symbol::Refused);
        None
    }

    /// Reports types that were declared forward and never defined.
    pub(super) fn close_forwards(&mut self) {
        for forward in &self.forwards {
            if forward.defined || self.names_may_be_missing {
                continue;
            }
            let message = format!("`{}` is declared forward and never defined", forward.name);
            match forward.first_use {
                Some(span) => self.sink.error(span, message),
                None => self.sink.warning(forward.span, message),
            }
        }
    }
}
