//! The parts of keys that are known only once all types are complete.

use super::Resolver;
use super::members::MAP_IN_KEY;
use crate::model::{Type, TypeKind};

impl Resolver<'_> {
    /// Reports keys whose types were not defined where they were used.
    pub(super) fn check_late_keys(&mut self) {
        // Types already searched, without a map in their key.
        let mut clean = vec![false; self.types.len()];
        for (ty, span) in std::mem::take(&mut self.late_keys) {
            if self.sink.is_full() {
                return;
            }
            if self.has_map_in_key(&ty, &mut clean) {
                self.sink.error(span, MAP_IN_KEY);
            }
        }
    }

    fn has_map_in_key(&self, ty: &Type, clean: &mut Vec<bool>) -> bool {
        let mut searched = clean.clone();
        let mut open = vec![ty];
        while let Some(ty) = open.pop() {
            let id = match ty {
                Type::Map { .. } => return true,
                Type::Sequence { element, .. } | Type::Array { element, .. } => {
                    open.push(&element.ty);
                    continue;
                }
                Type::Named(id) => *id,
                _ => continue,
            };
            if searched
                .get_mut(id.0)
                .is_none_or(|done| std::mem::replace(done, true))
            {
                continue;
            }
            match self.types.get(id.0).map(|decl| &decl.kind) {
                Some(TypeKind::Struct(structure)) => {
                    let keyed = structure.members.iter().any(|member| member.key);
                    let members = structure.members.iter();
                    let parts = members.filter(|member| member.key || !keyed);
                    open.extend(parts.map(|member| &member.ty));
                }
                Some(TypeKind::Union(union)) if !union.discriminator.key => {
                    open.extend(union.branches.iter().map(|branch| &branch.member.ty));
                }
                Some(TypeKind::Alias(alias)) => open.push(&alias.ty),
                _ => {}
            }
        }
        *clean = searched;
        false
    }
}
