//! Unions: IDL 4.2 §7.4.1.4.4.4.2, XTypes 1.3 §7.2.2.4.4.3.

use std::collections::HashMap;

use super::Resolver;
use super::members::Members;
use super::scopes::ScopeId;
use super::standard::AnnotationTarget;
use super::targets::Target;
use super::types::Facts;
use crate::ast::{self, ForwardKind};
use crate::model::{Branch, Discriminator, Extensibility, Type, TypeId, TypeKind, Union, Value};

/// The branch of each value of the discriminator, by number.
type Labels = HashMap<i128, String>;

impl Resolver<'_> {
    pub(super) fn union(
        &mut self,
        scope: ScopeId,
        definition: &ast::Definition,
        union: &ast::Union,
    ) -> Option<TypeId> {
        let applied = self.annotate(scope, AnnotationTarget::Union, &definition.annotations);
        let opened = self.open_type(scope, &union.name, ForwardKind::Union);
        let errors = self.sink.error_count();
        let extensibility = self.extensibility_or_default(&applied);
        let nested = self.nested(scope, &applied);
        let representations = self.representations(scope, &applied);
        let outer = std::mem::replace(&mut self.in_members, true);
        let discriminator = self.discriminator(scope, &union.discriminator);
        let autoid_hash = self.has_hash_ids(scope, &applied);
        let mut members = Members::new(autoid_hash, 1);
        // Where members are encoded with ids, the discriminator has id 0.
        let discriminator_id = (extensibility == Extensibility::Mutable).then_some(0);
        members.reserve(discriminator_id, "discriminator");
        let branches = self.branches(scope, union, discriminator.as_ref(), &mut members);
        self.in_members = outer;
        let opened = opened?;
        let (Some(discriminator), Some(branches)) = (discriminator, branches) else {
            return self.abandon_type(&opened, &union.name);
        };
        if union.broken || self.sink.error_count() > errors {
            return self.abandon_type(&opened, &union.name);
        }
        let sizes = branches.iter().map(|branch| match branch.member.boxed {
            true => 8,
            false => self.facts_of(&branch.member.ty).bytes,
        });
        let facts = Facts {
            bytes: sizes.max().unwrap_or(0).saturating_add(8),
            written: true,
            ..members.facts
        };
        let kind = TypeKind::Union(Union {
            extensibility,
            nested,
            autoid_hash,
            representations,
            discriminator,
            branches,
        });
        self.finish(&opened, definition, &union.name, applied, kind, facts)
    }

    fn discriminator(&mut self, scope: ScopeId, spec: &ast::TypeSpec) -> Option<Discriminator> {
        let applied = self.annotate(scope, AnnotationTarget::Discriminator, &spec.annotations);
        let ty = self.type_kind(scope, spec)?;
        let target = self.target(&ty).filter(|target| {
            matches!(
                target,
                Target::Integer { .. }
                    | Target::Boolean
                    | Target::Char
                    | Target::WChar
                    | Target::Enum { .. }
            )
        });
        let Some(target) = target else {
            let message = "a union switches on an integer, a character, a boolean or an enum";
            match self.target(&ty) {
                Some(Target::Bitmask { .. }) => {
                    let hint = "switch on an unsigned integer of as many bits as the bitmask";
                    self.sink.error_hint(spec.span, message, hint);
                }
                _ => self.sink.error(spec.span, message),
            }
            return None;
        };
        let default = applied
            .get("default")
            .and_then(|annotation| self.required(annotation))
            .and_then(|expr| self.evaluate(scope, expr, &target));
        let try_construct = self.try_construct(&applied);
        self.check_trim(&applied, try_construct, &ty);
        Some(Discriminator {
            ty,
            key: self.is_flagged(scope, &applied, "key"),
            default,
            try_construct,
            custom: applied.custom,
        })
    }

    /// All branches; `None` when some are faulty.
    fn branches(
        &mut self,
        scope: ScopeId,
        union: &ast::Union,
        discriminator: Option<&Discriminator>,
        members: &mut Members,
    ) -> Option<Vec<Branch>> {
        let target = discriminator.and_then(|discriminator| self.target(&discriminator.ty));
        let mut seen = Labels::new();
        let mut default: Option<&ast::Branch> = None;
        let mut branches = Vec::new();
        let mut complete = true;
        for branch in &union.branches {
            if let [_, second, ..] = branch.member.declarators.as_slice() {
                let message = "a branch of a union has one name";
                self.sink.error(second.name.span, message);
            }
            if let Some(span) = branch.default
                && default.replace(branch).is_some()
            {
                self.sink.error(span, "only one branch can be the default");
            }
            let labels = self.labels(scope, branch, target.as_ref(), &mut seen);
            let known = self.members(
                scope,
                (&union.name, AnnotationTarget::Branch),
                &branch.member,
                members,
            );
            let member = members.all.pop().filter(|_| known);
            let (Some(labels), Some(member)) = (labels, member) else {
                complete = false;
                continue;
            };
            branches.push(Branch {
                labels,
                default: branch.default.is_some(),
                member,
            });
        }
        // A default branch with labels has at least these.
        let bare = default.filter(|branch| branch.labels.is_empty());
        if let Some(span) = bare.and_then(|branch| branch.default)
            && let Some(discriminator) = discriminator
            && self.covers_all(&discriminator.ty, &seen)
        {
            if matches!(target, Some(Target::Enum { .. })) {
                let message = "the default is never selected: all literals are other labels";
                let hint = "a literal that a reader lacks selects no branch, but makes its \
                            `@try_construct` apply to the discriminator";
                self.sink.warning_hint(span, message, hint);
            } else {
                let message = "the default has no value left: all are labels of other branches";
                self.sink.error(span, message);
            }
        }
        if union.branches.is_empty() && !union.broken {
            let message = format!("union `{}` has no branches", union.name.name);
            self.sink.error(union.name.span, message);
        }
        complete.then_some(branches)
    }

    fn labels(
        &mut self,
        scope: ScopeId,
        branch: &ast::Branch,
        target: Option<&Target>,
        seen: &mut Labels,
    ) -> Option<Vec<Value>> {
        let name = branch.member.declarators.first();
        let name = name.map_or("", |declarator| &declarator.name.name);
        let mut values = Vec::new();
        for label in &branch.labels {
            let value = self.evaluate(scope, label, target?)?;
            if let Some(other) = seen.insert(number(&value), name.to_owned()) {
                let message = format!("`{other}` has this label already");
                self.sink.error(label.span, message);
            }
            values.push(value);
        }
        Some(values)
    }

    /// Whether every value of the discriminator has a branch.
    fn covers_all(&self, ty: &Type, seen: &Labels) -> bool {
        match self.target(ty) {
            Some(Target::Boolean) => seen.len() == 2,
            Some(Target::Char) => seen.len() == 1 << 8,
            Some(Target::WChar) => seen.len() == 1 << 16,
            Some(Target::Integer { bits, .. }) => bits < 32 && seen.len() == 1 << bits,
            Some(Target::Enum { id, .. }) => match &self.types.get(id.0).map(|decl| &decl.kind) {
                Some(TypeKind::Enum(of)) => seen.len() == of.literals.len(),
                _ => false,
            },
            _ => false,
        }
    }
}

/// A value of a discriminator as a unique number.
fn number(value: &Value) -> i128 {
    match value {
        Value::Integer(value) => *value,
        Value::Boolean(value) => i128::from(*value),
        Value::Char(byte) => i128::from(*byte),
        Value::WChar(unit) => i128::from(*unit),
        Value::Enum(_, index) => i128::try_from(*index).unwrap_or(-1),
        _ => -1,
    }
}
