//! What may be part of a key. A key member of a type without key members of its own has all of
//! them in the key, through any number of types, so this is checked once all types are complete
//! and all keys are known.

use super::Resolver;
use crate::model::{Member, Type, TypeId, TypeKind};
use crate::source::Span;

/// What cannot be part of a key.
enum Unfit {
    Map,
    /// XTypes 1.3 §7.2.2.4.4.4.8.
    Optional(Place),
    NonSerialized(Place),
}

/// A member of a type.
struct Place {
    of: TypeId,
    member: String,
}

/// A member that may not be part of a key, whatever its type.
fn unfit_member(of: TypeId, member: &Member) -> Option<Unfit> {
    let place = || Place {
        of,
        member: member.name.clone(),
    };
    if member.optional {
        Some(Unfit::Optional(place()))
    } else if member.non_serialized {
        Some(Unfit::NonSerialized(place()))
    } else {
        None
    }
}

impl Resolver<'_> {
    /// Reports the keys that contain what cannot be part of one.
    pub(super) fn check_keys(&mut self) {
        // Types already searched, with nothing unfit in their key.
        let mut clean = vec![false; self.types.len()];
        for (ty, span) in std::mem::take(&mut self.keys) {
            if self.sink.is_full() {
                return;
            }
            if let Some(unfit) = self.unfit_in_key(&ty, &mut clean) {
                self.report_unfit(span, &unfit);
            }
        }
    }

    fn report_unfit(&mut self, span: Span, unfit: &Unfit) {
        let (rule, state, place) = match unfit {
            Unfit::Map => {
                let message = "a map cannot be part of a key: its entries have no order";
                self.sink.error(span, message);
                return;
            }
            Unfit::Optional(place) => ("cannot be optional", "is", place),
            Unfit::NonSerialized(place) => ("is always sent", "is not", place),
        };
        let decl = self.types.get(place.of.0);
        let name = decl.map_or("", |decl| decl.name.as_str());
        let member = &place.member;
        let message = format!("a member of the key {rule}, but `{member}` of `{name}` {state}");
        let line = self.spans.get(place.of.0).map(|span| self.place(*span));
        let hint = format!(
            "`{name}` in {} has no `@key`, so all of its members are in the key",
            line.unwrap_or_default()
        );
        self.sink.error_hint(span, message, hint);
    }

    /// The first unfit part of a key of this type. Marks all types that it has searched if there
    /// is none.
    fn unfit_in_key(&self, ty: &Type, clean: &mut [bool]) -> Option<Unfit> {
        let mut searched = Vec::new();
        let found = self.search_key(ty, clean, &mut searched);
        if found.is_some() {
            for id in searched {
                if let Some(done) = clean.get_mut(id) {
                    *done = false;
                }
            }
        }
        found
    }

    fn search_key(
        &self,
        ty: &Type,
        clean: &mut [bool],
        searched: &mut Vec<usize>,
    ) -> Option<Unfit> {
        let mut open = vec![ty];
        while let Some(ty) = open.pop() {
            let id = match ty {
                Type::Map { .. } => return Some(Unfit::Map),
                Type::Sequence { element, .. } | Type::Array { element, .. } => {
                    open.push(&element.ty);
                    continue;
                }
                Type::Named(id) => *id,
                _ => continue,
            };
            if clean
                .get_mut(id.0)
                .is_none_or(|done| std::mem::replace(done, true))
            {
                continue;
            }
            searched.push(id.0);
            match self.types.get(id.0).map(|decl| &decl.kind) {
                Some(TypeKind::Struct(structure)) => {
                    let keyed = structure.members.iter().any(|member| member.key);
                    for member in structure.members.iter().rev() {
                        if member.key {
                            // It is checked where it is declared.
                            open.push(&member.ty);
                        } else if !keyed {
                            let unfit = unfit_member(id, member);
                            if unfit.is_some() {
                                return unfit;
                            }
                            open.push(&member.ty);
                        }
                    }
                }
                Some(TypeKind::Union(union)) if !union.discriminator.key => {
                    open.extend(union.branches.iter().map(|branch| &branch.member.ty));
                }
                Some(TypeKind::Alias(alias)) => open.push(&alias.ty),
                _ => {}
            }
        }
        None
    }
}
