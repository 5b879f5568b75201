//! Keys and topic types by `#pragma`, applied once all types are known.
//!
//! `a.b` makes `a` a key member, and `b` a key member of the type of `a`: therefore all
//! pragmas together must give each type exactly one key.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use super::Resolver;
use super::scopes::{ScopeId, Symbol};
use crate::lex::Pragma;
use crate::limits::NESTING_MAX;
use crate::model::{Struct, Type, TypeId, TypeKind};
use crate::source::Span;

/// A pragma, with its scope.
pub(super) type Placed = (ScopeId, Rc<Pragma>, Span);

/// Keys of nested types that result from pragmas, by the indices of members.
type InnerKeys = HashMap<TypeId, Vec<usize>>;

impl Resolver<'_> {
    pub(super) fn apply_pragmas(&mut self) {
        let mut keys: Vec<(TypeId, Vec<Vec<String>>, Span)> = Vec::new();
        let mut places: HashMap<TypeId, usize> = HashMap::new();
        for (scope, pragma, span) in std::mem::take(&mut self.pragmas) {
            let Some(id) = self.pragma_type(scope, &pragma, span) else {
                continue;
            };
            match self.types.get_mut(id.0).map(|decl| &mut decl.kind) {
                Some(TypeKind::Struct(structure)) => structure.nested = false,
                Some(TypeKind::Union(union)) => union.nested = false,
                _ => {}
            }
            let Some(paths) = &pragma.key else {
                continue;
            };
            // Some tools require one pragma per member.
            let place = *places.entry(id).or_insert(keys.len());
            match keys.get_mut(place) {
                Some((_, all, _)) => all.extend(paths.iter().cloned()),
                None => keys.push((id, paths.clone(), span)),
            }
        }
        if keys.is_empty() {
            return;
        }
        let mut inner = InnerKeys::new();
        for (id, paths, span) in keys {
            if self.has_other_key(id, &paths) {
                let message = "the type has another key by annotation, and that one counts";
                self.sink.warning(span, message);
                continue;
            }
            if let Some((message, hint)) = unfit_key(&paths) {
                self.sink.error_hint(span, message, hint);
                continue;
            }
            let paths: Vec<&[String]> = paths.iter().map(Vec::as_slice).collect();
            self.key_by_paths(id, &paths, span, &mut inner);
        }
        self.inherit_keys();
    }

    /// Whether a type has a different key by annotation. Some files declare the key in both
    /// ways, for two tools.
    fn has_other_key(&self, id: TypeId, paths: &[Vec<String>]) -> bool {
        let keys = self.annotated_key(id);
        let mut listed: Vec<&str> = paths
            .iter()
            .filter_map(|path| path.first())
            .map(String::as_str)
            .collect();
        listed.sort_unstable();
        listed.dedup();
        !keys.is_empty() && keys != listed
    }

    fn pragma_type(&mut self, scope: ScopeId, pragma: &Pragma, span: Span) -> Option<TypeId> {
        let start = if pragma.absolute {
            ScopeId::ROOT
        } else {
            scope
        };
        let mut found = None;
        for part in &pragma.ty {
            let entry = match found {
                None => self.scopes.visible(start, part),
                Some(Symbol::Module(inner)) => self.scopes.local(inner, part),
                Some(Symbol::Interface(id)) => self
                    .interface_scope(id)
                    .and_then(|inner| self.scopes.member(inner, part)),
                Some(_) => None,
            };
            found = entry
                .filter(|entry| *entry.spelling == **part)
                .map(|entry| entry.symbol);
            if found.is_none() {
                break;
            }
        }
        let id = match found {
            Some(Symbol::Refused) => return None,
            Some(Symbol::Type(id)) => match self.without_aliases(&Type::Named(id)) {
                Type::Named(id) => Some(id),
                _ => None,
            },
            _ => None,
        };
        let aggregate = id.filter(|id| {
            let kind = self.types.get(id.0).map(|decl| &decl.kind);
            matches!(kind, Some(TypeKind::Struct(_) | TypeKind::Union(_)))
        });
        if aggregate.is_none() && !self.names_may_be_missing {
            let name = pragma.ty.join("::");
            let message = format!("the pragma is about `{name}`, which is not a struct or union");
            self.sink.error(span, message);
        }
        aggregate
    }

    fn struct_of(&self, id: TypeId) -> Option<&Struct> {
        match &self.types.get(id.0)?.kind {
            TypeKind::Struct(structure) => Some(structure),
            _ => None,
        }
    }

    /// The names of the members that are keys by annotation, in order.
    fn annotated_key(&self, id: TypeId) -> Vec<&str> {
        let structure = self
            .struct_of(id)
            .filter(|_| !self.pragma_keys.contains(&id));
        let members = structure.map_or(&[][..], |structure| &structure.members);
        let keys = members.iter().filter(|member| member.key);
        let mut names: Vec<&str> = keys.map(|member| member.name.as_str()).collect();
        names.sort_unstable();
        names
    }

    /// Marks the first member of each path, and the rest of the path in its type. Recursion
    /// depth is the length of a path.
    fn key_by_paths(&mut self, id: TypeId, paths: &[&[String]], span: Span, inner: &mut InnerKeys) {
        let places = self.member_places(id);
        let mut rests: BTreeMap<usize, Vec<&[String]>> = BTreeMap::new();
        for path in paths {
            let Some((name, rest)) = path.split_first() else {
                continue;
            };
            let Some(index) = places.get(name) else {
                let message = format!("the key has `{name}`, which is not a member of the type");
                self.sink.error(span, message);
                continue;
            };
            let of_member = rests.entry(*index).or_default();
            if !rest.is_empty() {
                of_member.push(rest);
            }
        }
        if let Some(TypeKind::Struct(structure)) =
            self.types.get_mut(id.0).map(|decl| &mut decl.kind)
        {
            for index in rests.keys() {
                if let Some(member) = structure.members.get_mut(*index) {
                    member.key = true;
                    member.must_understand = true;
                    self.keys.push((member.ty.clone(), span));
                    if member.optional {
                        let message = "a member of the key cannot be optional";
                        self.sink.error(span, message);
                    } else if member.non_serialized {
                        let message = "a member of the key is always sent";
                        self.sink.error(span, message);
                    }
                }
            }
        }
        self.pragma_keys.insert(id);
        for (index, paths) in rests {
            if !paths.is_empty() {
                self.key_behind(id, index, &paths, span, inner);
            }
        }
    }

    /// The index of each member by its name.
    fn member_places(&self, id: TypeId) -> HashMap<String, usize> {
        let members = self.struct_of(id).map_or(&[][..], |one| &one.members);
        let members = members.iter().enumerate();
        members
            .map(|(at, member)| (member.name.clone(), at))
            .collect()
    }

    fn key_behind(
        &mut self,
        id: TypeId,
        index: usize,
        paths: &[&[String]],
        span: Span,
        inner: &mut InnerKeys,
    ) {
        let ty = self
            .struct_of(id)
            .and_then(|structure| structure.members.get(index))
            .map(|member| self.without_aliases(&member.ty));
        let part = match ty {
            Some(Type::Named(part)) if self.struct_of(part).is_some() => part,
            _ => {
                let message = "the key goes into a member that is not a struct";
                self.sink.error(span, message);
                return;
            }
        };
        let places = self.member_places(part);
        let first = paths.iter().filter_map(|path| path.first());
        let mut wanted: Vec<usize> = first.filter_map(|name| places.get(name).copied()).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let key = |structure: &Struct| -> Vec<usize> {
            let members = structure.members.iter().enumerate();
            members
                .filter(|(_, member)| member.key)
                .map(|(at, _)| at)
                .collect()
        };
        let present = self.struct_of(part).map_or_else(Vec::new, key);
        let agreed = present == wanted || present.is_empty();
        let other = inner.get(&part).is_some_and(|other| *other != wanted);
        if !agreed || other {
            let name = self.types.get(part.0).map_or("", |decl| decl.name.as_str());
            let message = format!("the key has other members of `{name}` than its own key");
            let hint = "a type has the same key wherever it is used";
            self.sink.error_hint(span, message, hint);
            return;
        }
        inner.insert(part, wanted);
        self.key_by_paths(part, paths, span, inner);
    }

    /// An inherited member is a key member exactly if it is one in the base.
    fn inherit_keys(&mut self) {
        for index in 0..self.types.len() {
            let mut base = self.struct_of(TypeId(index)).and_then(|one| one.base);
            while let Some(id) = base {
                let Some(structure) = self.struct_of(id) else {
                    break;
                };
                let keys: Vec<bool> = structure.members.iter().map(|member| member.key).collect();
                base = structure.base;
                if let Some(TypeKind::Struct(derived)) =
                    self.types.get_mut(index).map(|decl| &mut decl.kind)
                {
                    for (member, key) in derived.members.iter_mut().zip(keys) {
                        member.key |= key;
                        member.must_understand |= key;
                    }
                }
            }
        }
    }
}

/// The fault of a key as a whole, with a hint.
fn unfit_key(paths: &[Vec<String>]) -> Option<(String, String)> {
    if let Some(name) = paths.iter().flatten().find(|name| name.contains('[')) {
        let array = name.split('[').next().unwrap_or("");
        let message = format!("`{name}` in the key: a key has members, never elements of them");
        let hint = format!(
            "make the element a member of its own; or all of `{array}` is the key, by `@key` before it"
        );
        return Some((message, hint));
    }
    let deep = paths.iter().any(|path| path.len() > NESTING_MAX);
    deep.then(|| {
        let message = format!("the key goes more than {NESTING_MAX} types deep");
        (message, "put `@key` into the types inside".into())
    })
}
