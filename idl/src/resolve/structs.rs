//! Structures and exceptions.

use super::annotations::Applied;
use super::forwards::Opened;
use super::members::Members;
use super::scopes::{ScopeId, Symbol};
use super::standard::AnnotationTarget;
use super::types::Facts;
use super::{Resolver, copies};
use crate::ast::{self, ForwardKind, ScopedName};
use crate::model::{Extensibility, Member, Struct, Type, TypeId, TypeKind};

impl Resolver<'_> {
    pub(super) fn structure(
        &mut self,
        scope: ScopeId,
        definition: &ast::Definition,
        structure: &ast::Struct,
    ) -> Option<TypeId> {
        let place = match structure.exception {
            true => AnnotationTarget::Exception,
            false => AnnotationTarget::Struct,
        };
        let applied = self.annotate(scope, place, &definition.annotations);
        let opened = self.open_type(scope, &structure.name, ForwardKind::Struct);
        let errors = self.sink.error_count();
        let autoid_hash = self.has_hash_ids(scope, &applied);
        let mut members = Members::new(autoid_hash, 0);
        let mut complete = !structure.broken;
        let base = match &structure.base {
            Some(name) if structure.exception => {
                self.sink.error(name.span, "an exception has no base");
                None
            }
            Some(name) => self.struct_base(scope, name, &mut members),
            None => None,
        };
        let extensibility = self.derived_extensibility(&applied, base);
        let nested = self.nested(scope, &applied) || structure.exception;
        let representations = self.representations(scope, &applied);
        let inherited = members.all.len();
        let outer = std::mem::replace(&mut self.in_members, true);
        for member in &structure.members {
            complete &= self.members(
                scope,
                (&structure.name, AnnotationTarget::Member),
                member,
                &mut members,
            );
        }
        self.in_members = outer;
        let opened = opened?;
        if !complete || self.sink.error_count() > errors {
            return self.abandon_type(&opened, &structure.name);
        }
        let facts = Facts {
            // A parameter list ends with a sentinel.
            written: members.facts.written || extensibility == Extensibility::Mutable,
            ..members.facts
        };
        if extensibility != Extensibility::Mutable && representations.xcdr1 {
            self.warn_of_empty_optionals(&structure.name, members.all.get(inherited..));
        }
        let kind = TypeKind::Struct(Struct {
            extensibility,
            nested,
            exception: structure.exception,
            autoid_hash,
            representations,
            base,
            members: members.all,
            inherited,
        });
        self.finish(&opened, definition, &structure.name, applied, kind, facts)
    }

    /// XCDR1 encodes an absent optional member as length 0 (XTypes 1.3 §7.4.1.1.5.3), which
    /// is also the length of a value without bytes.
    fn warn_of_empty_optionals(&mut self, name: &ast::Ident, members: Option<&[Member]>) {
        for member in members.unwrap_or_default() {
            let facts = self.facts_of(&member.ty);
            if !member.optional || facts.written || facts.incomplete {
                continue;
            }
            let message = format!(
                "optional member `{}` of `{}` takes no bytes: in XCDR1 it always reads as absent",
                member.name, name.name
            );
            let hint =
                "make the struct @mutable, or allow it XCDR2 only: @data_representation(XCDR2)";
            self.sink.warning_hint(name.span, message, hint);
        }
    }

    /// Ends the declaration of a struct or union.
    pub(super) fn finish(
        &mut self,
        opened: &Opened,
        definition: &ast::Definition,
        name: &ast::Ident,
        applied: Applied<'_>,
        kind: TypeKind,
        facts: Facts,
    ) -> Option<TypeId> {
        if let Err(message) = facts.within_limits() {
            self.sink
                .error(name.span, format!("`{}` {message}", name.name));
            return self.abandon_type(opened, name);
        }
        self.close_type(opened, applied.doc(&definition.doc), applied, kind, facts)
    }

    /// The base struct, after adding its members.
    fn struct_base(
        &mut self,
        scope: ScopeId,
        name: &ScopedName,
        members: &mut Members,
    ) -> Option<TypeId> {
        let id = self.base_type(scope, name, "a struct")?;
        let facts = self.facts_of(&Type::Named(id));
        let bytes = match self.types.get(id.0).map(|decl| &decl.kind) {
            Some(TypeKind::Struct(base)) => base.members.iter().map(copies::of_member).sum(),
            _ => 0,
        };
        if !self.may_copy(bytes, name.span) {
            return None;
        }
        let Some(TypeKind::Struct(base)) = self.types.get(id.0).map(|decl| &decl.kind) else {
            self.sink.error(
                name.span,
                format!("expected a struct, but `{name}` is not one"),
            );
            return None;
        };
        if base.exception {
            self.sink
                .error(name.span, format!("`{name}` is an exception"));
            return None;
        }
        for member in &base.members {
            members.inherit(member);
        }
        members.facts = facts;
        Some(id)
    }

    /// The base that a name means, behind typedefs.
    pub(super) fn base_type(
        &mut self,
        scope: ScopeId,
        name: &ScopedName,
        wanted: &str,
    ) -> Option<TypeId> {
        let what = match self.lookup(scope, name, "type")? {
            Symbol::Type(id) => match self.without_aliases(&Type::Named(id)) {
                Type::Named(id) if self.is_complete(id) => return Some(id),
                Type::Named(_) => {
                    let message =
                        format!("`{name}` is not defined yet: nothing can inherit from it");
                    self.sink.error(name.span, message);
                    return None;
                }
                _ => "another type",
            },
            Symbol::Forward(_) => {
                let message = format!("`{name}` is not defined yet: nothing can inherit from it");
                self.sink.error(name.span, message);
                return None;
            }
            Symbol::Refused => return None,
            other => other.describe(),
        };
        self.sink.error(
            name.span,
            format!("expected {wanted}, but `{name}` is {what}"),
        );
        None
    }

    /// XTypes 1.3 §7.2.2.4.5: a struct and its base have the same extensibility.
    fn derived_extensibility(
        &mut self,
        applied: &Applied<'_>,
        base: Option<TypeId>,
    ) -> Extensibility {
        let given = self.extensibility(applied);
        let base = base.and_then(|id| self.types.get(id.0));
        let Some((name, TypeKind::Struct(base))) = base.map(|decl| (&decl.name, &decl.kind)) else {
            return given.map_or(Extensibility::Appendable, |(kind, _)| kind);
        };
        if let Some((kind, annotation)) = given
            && kind != base.extensibility
        {
            let message = format!("the base `{name}` has another extensibility");
            self.sink.error(annotation.span, message);
        }
        base.extensibility
    }
}
