//! Uses of types, and what is known about them.

use super::scopes::{ScopeId, Symbol};
use super::{Place, Resolver};
use crate::ast::{self, Expr, TypeSpec};
use crate::limits::{TYPE_BYTES_MAX, TYPE_DEPTH_MAX};
use crate::model::{Element, Primitive, Type, TypeKind};

use super::constants::Target;

/// What later checks ask about a type. Kept for each declared type, so that no
/// check walks down a type of many levels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// Declared types, sequences and arrays inside one another.
    pub(super) depth: u32,
    /// Least size of a value in memory, without what strings and sequences
    /// point to. Saturates.
    pub(super) bytes: u64,
    /// A sequence is a part of it that would belong to the key.
    pub(super) sequence_in_key: bool,
}

impl Facts {
    /// Those of something that has `self` and `other` as parts.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            depth: self.depth.max(other.depth),
            bytes: self.bytes.saturating_add(other.bytes),
            sequence_in_key: self.sequence_in_key || other.sequence_in_key,
        }
    }

    /// Says which limit it breaks.
    pub(super) fn within_limits(self) -> Result<(), String> {
        if self.depth >= TYPE_DEPTH_MAX {
            return Err(format!(
                "nests types more than {TYPE_DEPTH_MAX} levels deep"
            ));
        }
        if self.bytes > TYPE_BYTES_MAX {
            return Err(format!("takes more than {TYPE_BYTES_MAX} bytes"));
        }
        Ok(())
    }
}

impl Resolver<'_> {
    pub(super) fn facts_of(&self, ty: &Type) -> Facts {
        match ty {
            Type::Primitive(primitive) => Facts {
                bytes: primitive_bytes(*primitive),
                ..Facts::default()
            },
            Type::String { .. } | Type::WString { .. } | Type::Map { .. } => Facts {
                bytes: 24,
                ..Facts::default()
            },
            Type::Sequence { element, .. } => {
                let depth = self.facts_of(&element.ty).depth + 1;
                Facts {
                    depth,
                    bytes: 24,
                    sequence_in_key: true,
                }
            }
            Type::Array {
                element,
                dimensions,
            } => {
                let inner = self.facts_of(&element.ty);
                let product =
                    |bytes: u64, dimension: &u32| bytes.saturating_mul(u64::from(*dimension));
                // An empty struct has no bytes, but a great number of them costs time.
                let bytes = dimensions.iter().fold(inner.bytes.max(1), product);
                Facts {
                    depth: inner.depth + 1,
                    bytes,
                    ..inner
                }
            }
            Type::Fixed { .. } | Type::Interface(_) => Facts {
                bytes: 16,
                ..Facts::default()
            },
            Type::Named(id) => self.facts.get(id.0).copied().unwrap_or_default(),
        }
    }

    /// A type as it is used; `None` when it was reported.
    pub(super) fn type_spec(&mut self, scope: ScopeId, spec: &TypeSpec) -> Option<Type> {
        self.annotate(scope, Place::Use, &spec.annotations);
        match &spec.kind {
            ast::TypeKind::Primitive(primitive) => Some(Type::Primitive(*primitive)),
            ast::TypeKind::String(bound) => Some(Type::String {
                bound: self.bound(scope, bound)?,
            }),
            ast::TypeKind::Sequence(element, bound) => {
                let element = self.type_spec(scope, element);
                let bound = self.bound(scope, bound)?;
                let sequence = Type::Sequence {
                    element: Box::new(Element::of(element?)),
                    bound,
                };
                Some(sequence)
            }
            ast::TypeKind::Named(name) => self.named_type(scope, name),
            ast::TypeKind::Declared(definition) => match &definition.kind {
                ast::DefinitionKind::Struct(structure) => self
                    .structure(scope, definition, structure)
                    .map(Type::Named),
                ast::DefinitionKind::Enum(enumeration) => self
                    .enumeration(scope, definition, enumeration)
                    .map(Type::Named),
                _ => {
                    self.definition(scope, definition);
                    None
                }
            },
            ast::TypeKind::Refused => None,
        }
    }

    /// A type with the dimensions of a declarator. They are checked even when the
    /// type was reported.
    pub(super) fn declarator(
        &mut self,
        scope: ScopeId,
        base: Option<&Type>,
        declarator: &ast::Declarator,
    ) -> Option<Type> {
        self.annotate(scope, Place::Use, &declarator.annotations);
        let dimensions: Vec<Option<u32>> = declarator
            .dimensions
            .iter()
            .map(|dimension| self.positive(scope, dimension, "a dimension of an array"))
            .collect();
        let dimensions = dimensions.into_iter().collect::<Option<Vec<u32>>>()?;
        let base = base?.clone();
        if dimensions.is_empty() {
            return Some(base);
        }
        Some(Type::Array {
            element: Box::new(Element::of(base)),
            dimensions,
        })
    }

    fn named_type(&mut self, scope: ScopeId, name: &ast::ScopedName) -> Option<Type> {
        let what = match self.lookup(scope, name, "type")? {
            Symbol::Type(id) => return Some(Type::Named(id)),
            Symbol::Refused => return None,
            Symbol::Incomplete => {
                let construct = format!("`{name}` inside its own declaration: a recursive type");
                self.sink.refuse(name.span, &construct);
                return None;
            }
            Symbol::Module(_) => "a module",
            Symbol::Const(_) => "a constant",
            Symbol::Literal(..) => "a literal of an enum",
        };
        self.sink.error(
            name.span,
            format!("expected a type, but `{name}` is {what}"),
        );
        None
    }

    /// The outer `None` when it was reported, the inner one for no bound.
    fn bound(&mut self, scope: ScopeId, bound: &Option<Expr>) -> Option<Option<u32>> {
        match bound {
            None => Some(None),
            Some(bound) => self.positive(scope, bound, "a bound").map(Some),
        }
    }

    /// A positive integer of 32 bits.
    fn positive(&mut self, scope: ScopeId, expr: &Expr, what: &str) -> Option<u32> {
        let target = Target::of_primitive(Primitive::UInt32);
        let value = self.evaluate_integer(scope, expr, &target)?;
        match u32::try_from(value) {
            Ok(value) if value > 0 => Some(value),
            _ => {
                self.sink
                    .error(expr.span, format!("{what} must be positive"));
                None
            }
        }
    }

    /// The type that a constant of this type is evaluated for.
    pub(super) fn target(&self, ty: &Type) -> Option<Target> {
        match self.without_aliases(ty) {
            Type::Primitive(primitive) => Some(Target::of_primitive(primitive)),
            Type::String { bound } => Some(Target::String { bound }),
            Type::Named(id) => {
                let decl = self.types.get(id.0)?;
                let name = decl.name.clone();
                matches!(decl.kind, TypeKind::Enum(_)).then_some(Target::Enum { id, name })
            }
            _ => None,
        }
    }
}

fn primitive_bytes(primitive: Primitive) -> u64 {
    match primitive {
        Primitive::Boolean
        | Primitive::Octet
        | Primitive::Char
        | Primitive::Int8
        | Primitive::UInt8 => 1,
        Primitive::Int16 | Primitive::UInt16 | Primitive::WChar => 2,
        Primitive::Int32 | Primitive::UInt32 | Primitive::Float32 => 4,
        Primitive::Int64 | Primitive::UInt64 | Primitive::Float64 => 8,
        Primitive::Float128 => 16,
    }
}
