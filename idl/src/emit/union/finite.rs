//! The branch of the default of a union: the one that the default discriminator selects,
//! unless its member contains the union again, which would make the default infinite.

use crate::emit::Emitter;
use crate::model::{Branch, Primitive, Type, TypeId, TypeKind, Union, Value};

/// The default of a union.
pub(in crate::emit) struct Initial {
    /// `None` for no branch.
    pub(in crate::emit) branch: Option<usize>,
    /// The discriminator value that selects it.
    pub(in crate::emit) discriminator: Value,
}

impl Emitter<'_> {
    pub(in crate::emit) fn initial(&self, id: TypeId, union: &Union) -> Initial {
        let discriminator = self.default_discriminator(union);
        let branches = &union.branches;
        let selected = branches
            .iter()
            .position(|branch| branch.labels.contains(&discriminator))
            .or_else(|| branches.iter().position(|branch| branch.default));
        let plain = Initial {
            branch: selected,
            discriminator,
        };
        match selected {
            Some(index) if self.defaults_to(&branches[index].member.ty, id) => {
                self.finite(id, union).unwrap_or(plain)
            }
            _ => plain,
        }
    }

    fn default_discriminator(&self, union: &Union) -> Value {
        union.discriminator.default.clone().unwrap_or_else(|| {
            match self.resolve(&union.discriminator.ty) {
                Type::Primitive(Primitive::Boolean) => Value::Boolean(false),
                Type::Primitive(Primitive::Char) => Value::Char(0),
                Type::Primitive(Primitive::WChar) => Value::WChar(0),
                Type::Named(id) => match &self.decl(*id).kind {
                    TypeKind::Enum(inner) => Value::Enum(*id, inner.default_literal),
                    _ => Value::Integer(0),
                },
                _ => Value::Integer(0),
            }
        })
    }

    /// The first of the branches with the shallowest finite default, with a discriminator that
    /// selects it.
    fn finite(&self, id: TypeId, union: &Union) -> Option<Initial> {
        let mut ending = vec![false; self.model.types.len()];
        loop {
            let soonest = union
                .branches
                .iter()
                .enumerate()
                .find_map(|(index, branch)| {
                    let discriminator = self.label_of(branch, union)?;
                    self.ends(&branch.member.ty, &ending).then_some(Initial {
                        branch: Some(index),
                        discriminator,
                    })
                });
            if soonest.is_some() {
                return soonest;
            }
            let more: Vec<_> = (0..ending.len())
                .filter(|index| !ending[*index] && TypeId(*index) != id)
                .filter(|index| self.ends_within(TypeId(*index), &ending))
                .collect();
            if more.is_empty() {
                return None;
            }
            for index in more {
                ending[index] = true;
            }
        }
    }

    /// Whether the default of a type is finite, assuming that those of `ending` are.
    fn ends(&self, ty: &Type, ending: &[bool]) -> bool {
        match self.resolve(ty) {
            Type::Array { element, .. } => self.ends(&element.ty, ending),
            Type::Named(id) => match self.decl(*id).kind {
                TypeKind::Struct(_) | TypeKind::Union(_) => ending[id.0],
                _ => true,
            },
            _ => true,
        }
    }

    fn ends_within(&self, id: TypeId, ending: &[bool]) -> bool {
        match &self.decl(id).kind {
            TypeKind::Struct(inner) => inner
                .members
                .iter()
                .all(|member| member.optional || self.ends(&member.ty, ending)),
            TypeKind::Union(inner) => inner
                .branches
                .iter()
                .any(|branch| self.ends(&branch.member.ty, ending)),
            _ => true,
        }
    }

    /// A value that selects a branch.
    fn label_of(&self, branch: &Branch, union: &Union) -> Option<Value> {
        if let Some(label) = branch.labels.first() {
            return Some(label.clone());
        }
        // The default branch has all values without another branch.
        let numbers = 0..=union.branches.iter().map(|one| one.labels.len()).sum();
        let mut candidates: Box<dyn Iterator<Item = Value>> =
            match self.resolve(&union.discriminator.ty) {
                Type::Primitive(Primitive::Boolean) => {
                    Box::new([false, true].into_iter().map(Value::Boolean))
                }
                Type::Primitive(Primitive::Char) => {
                    Box::new(numbers.map(|number: usize| Value::Char(number as u8)))
                }
                Type::Primitive(Primitive::WChar) => {
                    Box::new(numbers.map(|number| Value::WChar(number as u16)))
                }
                Type::Named(id) => match &self.decl(*id).kind {
                    TypeKind::Enum(inner) => {
                        Box::new((0..inner.literals.len()).map(|index| Value::Enum(*id, index)))
                    }
                    _ => return None,
                },
                _ => Box::new(numbers.map(|number| Value::Integer(number as i128))),
            };
        let taken = |value: &Value| union.branches.iter().any(|one| one.labels.contains(value));
        candidates.find(|value| !taken(value))
    }

    /// Whether the default of a type contains, or may contain, the default of `id`.
    fn defaults_to(&self, ty: &Type, id: TypeId) -> bool {
        let mut seen = vec![false; self.model.types.len()];
        self.defaults_to_unseen(ty, id, &mut seen)
    }

    fn defaults_to_unseen(&self, ty: &Type, id: TypeId, seen: &mut [bool]) -> bool {
        match self.resolve(ty) {
            Type::Array { element, .. } => self.defaults_to_unseen(&element.ty, id, seen),
            Type::Named(other) if *other == id => true,
            Type::Named(other) if std::mem::replace(&mut seen[other.0], true) => false,
            Type::Named(other) => match &self.decl(*other).kind {
                TypeKind::Struct(inner) => inner
                    .members
                    .iter()
                    .filter(|member| !member.optional)
                    .any(|member| self.defaults_to_unseen(&member.ty, id, seen)),
                TypeKind::Union(inner) => inner
                    .branches
                    .iter()
                    .any(|branch| self.defaults_to_unseen(&branch.member.ty, id, seen)),
                _ => false,
            },
            _ => false,
        }
    }
}
