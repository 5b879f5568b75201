//! Structures: members, their ids, keys and defaults.

use std::collections::HashMap;

use super::Resolver;
use super::annotations::{Applied, Place};
use super::constants::Target;
use super::hash;
use super::scopes::{ScopeId, Symbol};
use super::types::Facts;
use crate::ast::{self, ExprKind};
use crate::limits::MEMBER_ID_MAX;
use crate::model::{
    Member, Primitive, Range, Representations, Struct, TryConstruct, Type, TypeId, TypeKind, Value,
};
use crate::source::Span;

/// The members of one struct while they are read.
#[derive(Debug, Default)]
struct Members {
    all: Vec<Member>,
    /// Names in lower case, with the spelling.
    names: HashMap<String, String>,
    /// Which member has an id.
    ids: HashMap<u32, String>,
    hash_ids: bool,
    /// The id of a member without an annotation under `SEQUENTIAL`.
    next_id: u32,
    facts: Facts,
    /// The facts of the key members only.
    key_facts: Option<Facts>,
}

impl Resolver<'_> {
    pub(super) fn structure(
        &mut self,
        scope: ScopeId,
        definition: &ast::Definition,
        structure: &ast::Struct,
    ) -> Option<TypeId> {
        let applied = self.annotate(scope, Place::Struct, &definition.annotations);
        let fresh = self.declare(scope, &structure.name, Symbol::Incomplete);
        let errors = self.sink.error_count();
        if let Some(base) = &structure.base {
            self.sink.refuse(base.span, "inheritance of structs");
        }
        let extensibility = self.extensibility(&applied);
        let nested = self.nested_flag(scope, &applied);
        let mut members = Members {
            hash_ids: self.has_hash_ids(&applied),
            ..Members::default()
        };
        let mut complete = !structure.broken;
        for member in &structure.members {
            complete &= self.members(scope, member, &mut members);
        }
        if !fresh {
            return None;
        }
        if !complete || self.sink.error_count() > errors {
            self.poison(scope, &structure.name);
            return None;
        }
        // Without key members, all of them are the key where the struct is one.
        let sequence_in_key = members.key_facts.unwrap_or(members.facts).sequence_in_key;
        let facts = Facts {
            sequence_in_key,
            ..members.facts
        };
        let doc = applied.doc(&definition.doc);
        let kind = TypeKind::Struct(Struct {
            extensibility,
            nested,
            exception: false,
            representations: Representations::ALL,
            base: None,
            members: members.all,
            inherited: 0,
        });
        self.add_type(scope, &structure.name, doc, kind, facts)
    }

    fn nested_flag(&mut self, scope: ScopeId, applied: &Applied<'_>) -> bool {
        let nested = self.is_flagged(scope, applied, "nested");
        let Some(topic) = applied.get("topic") else {
            return nested;
        };
        if !matches!(topic.arguments, ast::Arguments::None) {
            self.sink.refuse(topic.span, "`@topic` with arguments");
        } else if nested {
            self.sink
                .error(topic.span, "`@topic` contradicts `@nested`");
        }
        false
    }

    fn has_hash_ids(&mut self, applied: &Applied<'_>) -> bool {
        let Some(annotation) = applied.get("autoid") else {
            return false;
        };
        // XTypes 1.3 §7.3.1.2.1.1: HASH is the default of the annotation.
        let Some(expr) = self.argument(annotation) else {
            return true;
        };
        self.word(annotation, expr, &["SEQUENTIAL", "HASH"]) == Some("HASH")
    }

    /// One declaration of members; whether all of them are known.
    fn members(&mut self, scope: ScopeId, member: &ast::Member, members: &mut Members) -> bool {
        let applied = self.annotate(scope, Place::Member, &member.annotations);
        let doc = applied.doc(&member.doc);
        let base = self.type_spec(scope, &member.ty);
        let key = self.is_flagged(scope, &applied, "key");
        let mut complete = true;
        for declarator in &member.declarators {
            let name = &declarator.name;
            self.member_name(name, members);
            let id = self.member_id(scope, &applied, name, members);
            let Some(ty) = self.declarator(scope, base.as_ref(), declarator) else {
                complete = false;
                continue;
            };
            let default = self.member_default(scope, &applied, &ty);
            self.weigh(&applied, &ty, key, members);
            let name = name.name.to_string();
            members.all.push(Member {
                name,
                doc: doc.clone(),
                ty,
                custom: Vec::new(),
                id,
                key,
                optional: false,
                external: false,
                boxed: false,
                must_understand: key,
                non_serialized: false,
                try_construct: TryConstruct::Discard,
                default,
                range: Range::default(),
                unit: None,
            });
        }
        complete
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
            format!("member `{new}` stands twice in this struct")
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
        match self
            .argument(annotation)
            .map(|expr| (&expr.kind, expr.span))
        {
            None => hash::member_id(&name.name),
            Some((ExprKind::Text(text), _)) if text.is_empty() => hash::member_id(&name.name),
            Some((ExprKind::Text(text), _)) => hash::member_id(text),
            Some((_, span)) => {
                self.sink.error(span, "`@hashid` takes a string");
                0
            }
        }
    }

    fn member_default(
        &mut self,
        scope: ScopeId,
        applied: &Applied<'_>,
        ty: &Type,
    ) -> Option<Value> {
        let annotation = applied.get("default")?;
        let expr = self.required(annotation)?;
        let Some(target) = self.target(ty) else {
            let message = "`@default` is for members of a primitive type, a string or an enum";
            self.sink.error(annotation.span, message);
            return None;
        };
        self.evaluate(scope, expr, &target)
    }

    /// Adds a member to what is known of the struct.
    fn weigh(&mut self, applied: &Applied<'_>, ty: &Type, key: bool, members: &mut Members) {
        let facts = self.facts_of(ty);
        members.facts = members.facts.and(facts);
        if !key {
            return;
        }
        if facts.sequence_in_key
            && let Some(annotation) = applied.get("key")
        {
            self.sink.refuse(annotation.span, "a sequence in a key");
        }
        members.key_facts = Some(members.key_facts.unwrap_or_default().and(facts));
    }
}
