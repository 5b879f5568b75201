//! Members of structs and branches of unions: names, ids, and what their
//! annotations say.

use std::collections::HashMap;

use super::annotations::{Applied, argument};
use super::standard::AnnotationTarget;
use super::targets::Target;

use super::scopes::ScopeId;
use super::types::Facts;
use super::{Resolver, copies, hash};
use crate::ast::{self, ExprKind};
use crate::limits::MEMBER_ID_MAX;
use crate::model::{Alias, Member, Primitive, TryConstruct, Type, TypeKind, Value};
use crate::source::Span;

/// The members of one type while they are collected.
#[derive(Debug, Default)]
pub(super) struct Members {
    pub(super) all: Vec<Member>,
    /// Names in lower case, with the spelling.
    names: HashMap<String, String>,
    /// The member with each id.
    ids: HashMap<u32, String>,
    hash_ids: bool,
    /// The id of the next member without an annotation under `SEQUENTIAL`.
    next_id: u32,
    pub(super) facts: Facts,
}

/// The annotations that apply to all members of one declaration.
struct Marks {
    doc: Vec<String>,
    key: bool,
    optional: bool,
    external: bool,
    must_understand: bool,
    non_serialized: bool,
    try_construct: TryConstruct,
    unit: Option<String>,
}

/// The text of `@hashid`.
fn hash_id(applied: &Applied<'_>) -> Option<String> {
    let annotation = applied.get("hashid")?;
    Some(match argument(annotation, "value").map(|expr| &expr.kind) {
        Some(ExprKind::Text(text)) => text.to_string(),
        _ => String::new(),
    })
}

impl Members {
    pub(super) fn new(hash_ids: bool, next_id: u32) -> Self {
        Self {
            hash_ids,
            next_id,
            ..Self::default()
        }
    }

    /// Adds a member that was checked at its declaration.
    pub(super) fn inherit(&mut self, member: &Member) {
        let name = member.name.clone();
        self.names.insert(name.to_ascii_lowercase(), name.clone());
        self.ids.insert(member.id, name);
        self.next_id = member.id.saturating_add(1);
        self.all.push(member.clone());
    }

    /// Reserves a name, and an id if one is given.
    pub(super) fn reserve(&mut self, id: Option<u32>, name: &str) {
        self.ids.extend(id.map(|id| (id, name.to_owned())));
        self.names.insert(name.to_owned(), name.to_owned());
    }
}

impl Resolver<'_> {
    /// One declaration of members of `owner`; returns whether all of them are known.
    pub(super) fn members(
        &mut self,
        scope: ScopeId,
        (owner, place): (&ast::Ident, AnnotationTarget),
        member: &ast::Member,
        members: &mut Members,
    ) -> bool {
        let applied = self.annotate(scope, place, &member.annotations);
        let base = self.type_spec(scope, &member.ty);
        let marks = self.marks(scope, member, &applied);
        let mut complete = true;
        let bytes = copies::of_applied(&applied, &marks.doc);
        for declarator in &member.declarators {
            let name = &declarator.name;
            if !self.may_copy(bytes, name.span) {
                return false;
            }
            self.check_name_of_part(name, owner);
            self.member_name(name, members);
            let id = self.member_id(scope, &applied, name, members);
            let Some(ty) = self.declarator(scope, base.as_ref(), declarator) else {
                complete = false;
                continue;
            };
            self.check_trim(&applied, marks.try_construct, &ty);
            let range = self.member_range(scope, &applied, &ty);
            let default = self.member_default(scope, &applied, &ty);
            // The default of a typedef does not apply to an optional member.
            let default = default.filter(|_| !marks.optional || applied.get("default").is_some());
            self.check_default(&applied, default.as_ref(), &range);
            self.weigh(&applied, &ty, &marks, name.span, members);
            let member = Member {
                name: name.name.to_string(),
                doc: marks.doc.clone(),
                custom: applied.custom.clone(),
                unit: marks.unit.clone().or_else(|| self.alias_unit(&ty)),
                ty,
                id,
                hash_id: hash_id(&applied),
                key: marks.key,
                optional: marks.optional,
                external: marks.external,
                boxed: marks.external,
                must_understand: marks.must_understand || marks.key,
                non_serialized: marks.non_serialized,
                try_construct: marks.try_construct,
                default,
                range,
            };
            if !self.may_copy(copies::of_texts(&member), name.span) {
                return false;
            }
            members.all.push(member);
        }
        complete
    }

    fn marks(&mut self, scope: ScopeId, member: &ast::Member, applied: &Applied<'_>) -> Marks {
        let key = self.is_flagged(scope, applied, "key");
        let optional = self.is_flagged(scope, applied, "optional");
        let non_serialized = self.is_flagged(scope, applied, "non_serialized");
        let contradiction = match (key, optional, non_serialized) {
            (true, true, _) => Some(("optional", "a member of the key cannot be optional")),
            (true, _, true) => Some(("non_serialized", "a member of the key is always sent")),
            _ => None,
        };
        if let Some((name, message)) = contradiction
            && let Some(annotation) = applied.get(name)
        {
            self.sink.error(annotation.span, message);
        }
        Marks {
            doc: applied.doc(&member.doc),
            key,
            optional,
            external: self.is_flagged(scope, applied, "external"),
            must_understand: self.is_flagged(scope, applied, "must_understand"),
            non_serialized,
            try_construct: self.try_construct(applied),
            unit: self.unit(scope, applied),
        }
    }

    /// XTypes 1.3 §7.3.1.2.1.12: the annotation without a value means the default.
    pub(super) fn try_construct(&mut self, applied: &Applied<'_>) -> TryConstruct {
        let Some(annotation) = applied.get("try_construct") else {
            return TryConstruct::Discard;
        };
        let words = ["DISCARD", "USE_DEFAULT", "TRIM"];
        let what = argument(annotation, "value");
        match what.map(|expr| self.word(annotation, expr, &words)) {
            None | Some(Some("USE_DEFAULT")) => TryConstruct::UseDefault,
            Some(Some("TRIM")) => TryConstruct::Trim,
            Some(_) => TryConstruct::Discard,
        }
    }

    /// Only a value with a bound can be cut; every other one is discarded.
    pub(super) fn check_trim(&mut self, applied: &Applied<'_>, what: TryConstruct, ty: &Type) {
        let bounded = match self.without_aliases(ty) {
            Type::String { bound } | Type::WString { bound } => bound.is_some(),
            Type::Sequence { bound, .. } | Type::Map { bound, .. } => bound.is_some(),
            // Unknown until the type is complete.
            Type::Named(id) => !self.is_complete(id),
            _ => false,
        };
        if what == TryConstruct::Trim
            && !bounded
            && let Some(annotation) = applied.get("try_construct")
        {
            let message = "only strings, sequences and maps with a bound can be trimmed";
            let hint = "a value that does not fit is discarded";
            self.sink.warning_hint(annotation.span, message, hint);
        }
    }

    fn member_name(&mut self, name: &ast::Ident, members: &mut Members) {
        let spelling = name.name.to_string();
        let Some(old) = members
            .names
            .insert(spelling.to_ascii_lowercase(), spelling)
        else {
            return;
        };
        let new = &name.name;
        let message = if old == **new {
            format!("member `{new}` occurs twice in this type")
        } else {
            format!("member `{new}` clashes with `{old}`: in IDL they are the same name")
        };
        self.sink.error(name.span, message);
    }

    fn member_id(
        &mut self,
        scope: ScopeId,
        applied: &Applied<'_>,
        name: &ast::Ident,
        members: &mut Members,
    ) -> u32 {
        let (id, span) = match (applied.get("id"), applied.get("hashid")) {
            (Some(_), Some(hashid)) => {
                self.sink.error(hashid.span, "`@hashid` contradicts `@id`");
                return members.next_id;
            }
            (Some(annotation), None) => match self.explicit_id(scope, annotation) {
                Some(id) => (id, annotation.span),
                None => return members.next_id,
            },
            (None, Some(annotation)) => (self.hashed_id(annotation, name), annotation.span),
            (None, None) if members.hash_ids => (hash::member_id(&name.name), name.span),
            (None, None) => (members.next_id, name.span),
        };
        self.enter_id(id, span, name, members);
        id
    }

    fn enter_id(&mut self, id: u32, span: Span, name: &ast::Ident, members: &mut Members) {
        members.next_id = id.saturating_add(1);
        if id > MEMBER_ID_MAX {
            let message = format!("the id {id} of `{}` is above {MEMBER_ID_MAX}", name.name);
            self.sink.error(span, message);
        }
        if let Some(other) = members.ids.insert(id, name.name.to_string()) {
            let message = format!("`{}` has the same member id as `{other}`: {id}", name.name);
            self.sink
                .error_hint(span, message, "give one of them another `@id`");
        }
    }

    fn explicit_id(&mut self, scope: ScopeId, annotation: &ast::Annotation) -> Option<u32> {
        let expr = self.required(annotation)?;
        let target = Target::of_primitive(Primitive::UInt32);
        let value = self.evaluate_integer(scope, expr, &target)?;
        u32::try_from(value).ok()
    }

    /// `@hashid` hashes the name of the member, `@hashid("x")` another one.
    fn hashed_id(&mut self, annotation: &ast::Annotation, name: &ast::Ident) -> u32 {
        match argument(annotation, "value").map(|expr| (&expr.kind, expr.span)) {
            None => hash::member_id(&name.name),
            Some((ExprKind::Text(text), _)) if text.is_empty() => hash::member_id(&name.name),
            Some((ExprKind::Text(text), _)) => hash::member_id(text),
            Some((_, span)) => {
                self.sink.error(span, "`@hashid` takes a string");
                0
            }
        }
    }

    /// `@default`, or else that of the typedef of its type.
    pub(super) fn member_default(
        &mut self,
        scope: ScopeId,
        applied: &Applied<'_>,
        ty: &Type,
    ) -> Option<Value> {
        let Some(annotation) = applied.get("default") else {
            return self.alias(ty)?.default.clone();
        };
        let expr = self.required(annotation)?;
        let Some(target) = self.target(ty) else {
            // ROS 2 writes a string that only its own tools understand.
            if let ExprKind::Text(_) = expr.kind
                && self.is_collection(ty)
            {
                let message = "the default of a sequence or an array is not used";
                let hint = "it is empty, or has the defaults of its elements";
                self.sink.warning_hint(annotation.span, message, hint);
                return None;
            }
            let message = "`@default` is for members of a type that constants have";
            self.sink.error(annotation.span, message);
            return None;
        };
        self.evaluate(scope, expr, &target)
    }

    fn is_collection(&self, ty: &Type) -> bool {
        matches!(
            self.without_aliases(ty),
            Type::Sequence { .. } | Type::Array { .. }
        )
    }

    pub(super) fn alias_unit(&self, ty: &Type) -> Option<String> {
        self.alias(ty)?.unit.clone()
    }

    fn alias(&self, ty: &Type) -> Option<&Alias> {
        let Type::Named(id) = ty else {
            return None;
        };
        match &self.types.get(id.0)?.kind {
            TypeKind::Alias(alias) => Some(alias),
            _ => None,
        }
    }

    /// Adds a member to the facts of the type.
    fn weigh(
        &mut self,
        applied: &Applied<'_>,
        ty: &Type,
        marks: &Marks,
        span: Span,
        members: &mut Members,
    ) {
        let mut facts = self.facts_of(ty);
        if facts.object {
            let message = "an interface or a native type cannot be part of data";
            self.sink.error(span, message);
        }
        if marks.external {
            facts.bytes = 8;
        }
        facts.written = match marks.non_serialized {
            true => false,
            // At least a header.
            false => facts.written || marks.optional,
        };
        members.facts = members.facts.and(facts);
        if marks.key
            && let Some(annotation) = applied.get("key")
        {
            self.keys.push((ty.clone(), annotation.span));
        }
    }
}
