//! Uses of types, and facts about types.

use super::Resolver;
use super::scopes::{ScopeId, Symbol};
use super::standard::AnnotationTarget;
use crate::ast::{self, Expr, TypeSpec};
use crate::lex::keyword_ignoring_case;
use crate::limits::{TYPE_BYTES_MAX, TYPE_DEPTH_MAX};
use crate::model::{Element, Primitive, Type, TypeId, TypeKind};

use super::fixed::DIGITS_MAX;
use super::targets::Target;

/// Facts about a type for later checks, kept for each declared type so that no check has
/// to descend into a type of many levels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// Nesting of declared types, sequences and arrays.
    pub(super) depth: u32,
    /// Least size of a value in memory in bytes, without the contents of strings and
    /// sequences. Saturates.
    pub(super) bytes: u64,
    /// Whether each value has at least one byte in XCDR1.
    pub(super) written: bool,
    /// Whether it contains an interface or a native type, and so is not a data type.
    pub(super) object: bool,
    /// Whether it contains a type that was incomplete when it was used.
    pub(super) incomplete: bool,
}

impl Facts {
    pub(super) fn of_bytes(bytes: u64) -> Self {
        Self {
            bytes,
            written: true,
            ..Self::default()
        }
    }

    /// The facts of a type with the parts `self` and `other`.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            depth: self.depth.max(other.depth),
            bytes: self.bytes.saturating_add(other.bytes),
            written: self.written || other.written,
            object: self.object || other.object,
            incomplete: self.incomplete || other.incomplete,
        }
    }

    /// The facts of a collection of such elements.
    fn behind_a_pointer(self) -> Self {
        Self {
            depth: self.depth + 1,
            bytes: 24,
            written: true,
            ..self
        }
    }

    /// The limit that it exceeds, if any.
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
        self.facts_from(ty, &|id| self.facts.get(id.0).copied().unwrap_or_default())
    }

    /// The facts of a use of a type, from those of the declared types in it.
    pub(super) fn facts_from(&self, ty: &Type, of: &dyn Fn(TypeId) -> Facts) -> Facts {
        match ty {
            Type::Primitive(primitive) => Facts::of_bytes(primitive_bytes(*primitive)),
            Type::String { .. } | Type::WString { .. } => Facts::of_bytes(24),
            Type::Fixed { .. } => Facts::of_bytes(16),
            Type::Sequence { element, .. } => self.facts_from(&element.ty, of).behind_a_pointer(),
            Type::Map { key, value, .. } => {
                let key = self.facts_from(&key.ty, of).behind_a_pointer();
                key.and(self.facts_from(&value.ty, of).behind_a_pointer())
            }
            Type::Array {
                element,
                dimensions,
            } => {
                let inner = self.facts_from(&element.ty, of);
                let product =
                    |bytes: u64, dimension: &u32| bytes.saturating_mul(u64::from(*dimension));
                // An empty struct has no bytes, but many of them cost time.
                let bytes = dimensions.iter().fold(inner.bytes.max(1), product);
                Facts {
                    depth: inner.depth + 1,
                    bytes,
                    ..inner
                }
            }
            Type::Interface(_) => Facts {
                object: true,
                ..Facts::of_bytes(8)
            },
            Type::Named(id) => of(*id),
        }
    }

    /// A use of a type; `None` when a fault was reported.
    pub(super) fn type_spec(&mut self, scope: ScopeId, spec: &TypeSpec) -> Option<Type> {
        self.annotate(scope, AnnotationTarget::Use, &spec.annotations);
        self.type_kind(scope, spec)
    }

    /// As [`Self::type_spec`], without the annotations, which the caller evaluates.
    pub(super) fn type_kind(&mut self, scope: ScopeId, spec: &TypeSpec) -> Option<Type> {
        match &spec.kind {
            ast::TypeKind::Primitive(primitive) => Some(Type::Primitive(*primitive)),
            ast::TypeKind::String(bound) => Some(Type::String {
                bound: self.bound(scope, bound)?,
            }),
            ast::TypeKind::WString(bound) => Some(Type::WString {
                bound: self.bound(scope, bound)?,
            }),
            ast::TypeKind::Sequence(element, bound) => {
                let element = self.element(scope, element);
                let bound = self.bound(scope, bound)?;
                let sequence = Type::Sequence {
                    element: Box::new(element?),
                    bound,
                };
                Some(sequence)
            }
            ast::TypeKind::Map(parts, bound) => self.map(scope, parts, bound),
            ast::TypeKind::Fixed(Some(size)) => self.fixed(scope, &size.0, &size.1),
            ast::TypeKind::Fixed(None) => {
                let message = "`fixed` without digits and scale is for constants only";
                let hint = "write `fixed<digits, scale>`";
                self.sink.error_hint(spec.span, message, hint);
                None
            }
            ast::TypeKind::Named(name) => self.named_type(scope, name),
            ast::TypeKind::Declared(definition) => {
                self.declared_type(scope, definition).map(Type::Named)
            }
            ast::TypeKind::Refused => None,
        }
    }

    fn element(&mut self, scope: ScopeId, spec: &TypeSpec) -> Option<Element> {
        let applied = self.annotate(scope, AnnotationTarget::Element, &spec.annotations);
        let try_construct = self.try_construct(&applied);
        let external = self.is_flagged(scope, &applied, "external");
        let ty = self.type_kind(scope, spec)?;
        self.check_trim(&applied, try_construct, &ty);
        Some(Element {
            ty,
            try_construct,
            external,
        })
    }

    fn map(
        &mut self,
        scope: ScopeId,
        parts: &(TypeSpec, TypeSpec),
        bound: &Option<Expr>,
    ) -> Option<Type> {
        let key = self.element(scope, &parts.0);
        let value = self.element(scope, &parts.1);
        let bound = self.bound(scope, bound)?;
        let (key, value) = (key?, value?);
        let target = self.target(&key.ty);
        if matches!(
            target,
            None | Some(Target::Float(_) | Target::Fixed(_) | Target::Bitmask { .. } | Target::Any)
        ) {
            let message =
                "the key of a map is an integer, a character, a boolean, an enum or a string";
            self.sink.error(parts.0.span, message);
            return None;
        }
        Some(Type::Map {
            key: Box::new(key),
            value: Box::new(value),
            bound,
        })
    }

    fn fixed(&mut self, scope: ScopeId, digits: &Expr, scale: &Expr) -> Option<Type> {
        let target = Target::of_primitive(Primitive::UInt16);
        let (most, given) = (digits.span, digits);
        let digits = self.evaluate_integer(scope, given, &target);
        let scale_value = self.evaluate_integer(scope, scale, &target);
        let (digits, scale_value) = (u8::try_from(digits?), u8::try_from(scale_value?));
        match (digits, scale_value) {
            (Ok(digits @ 1..=DIGITS_MAX), Ok(scale)) if scale <= digits => {
                Some(Type::Fixed { digits, scale })
            }
            (Ok(1..=DIGITS_MAX), _) => {
                let message = "the scale of `fixed` is at most the number of its digits";
                self.sink.error(scale.span, message);
                None
            }
            _ => {
                let message = format!("`fixed` has 1 to {DIGITS_MAX} digits");
                self.sink.error(most, message);
                None
            }
        }
    }

    /// A type that is declared where it is used.
    fn declared_type(&mut self, scope: ScopeId, definition: &ast::Definition) -> Option<TypeId> {
        match &definition.kind {
            ast::DefinitionKind::Struct(one) => self.structure(scope, definition, one),
            ast::DefinitionKind::Union(one) => self.union(scope, definition, one),
            ast::DefinitionKind::Enum(one) => self.enumeration(scope, definition, one),
            ast::DefinitionKind::Bitmask(one) => self.bitmask(scope, definition, one),
            ast::DefinitionKind::Bitset(one) => self.bitset(scope, definition, one),
            _ => {
                self.definition(scope, definition);
                None
            }
        }
    }

    /// A type with the dimensions of a declarator. The dimensions are checked even if the
    /// type is faulty.
    pub(super) fn declarator(
        &mut self,
        scope: ScopeId,
        base: Option<&Type>,
        declarator: &ast::Declarator,
    ) -> Option<Type> {
        let place = match declarator.dimensions.is_empty() {
            true => AnnotationTarget::Use,
            false => AnnotationTarget::Element,
        };
        let applied = self.annotate(scope, place, &declarator.annotations);
        let try_construct = self.try_construct(&applied);
        let external = self.is_flagged(scope, &applied, "external");
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
        self.check_trim(&applied, try_construct, &base);
        Some(Type::Array {
            element: Box::new(Element {
                ty: base,
                try_construct,
                external,
            }),
            dimensions,
        })
    }

    /// `String`, as in other languages, if no declaration has this name.
    fn misspelled(&mut self, name: &ast::ScopedName) -> Option<Type> {
        let written = &*name.first.name;
        let plain = name.rest.is_empty() && !name.absolute;
        let declared = self.declared.contains_key(&written.to_ascii_lowercase());
        let keyword = keyword_ignoring_case(written).filter(|_| plain && !declared)?;
        let ty = match keyword {
            "string" => Type::String { bound: None },
            "wstring" => Type::WString { bound: None },
            "boolean" => Type::Primitive(Primitive::Boolean),
            "octet" => Type::Primitive(Primitive::Octet),
            "char" => Type::Primitive(Primitive::Char),
            "float" => Type::Primitive(Primitive::Float32),
            "double" => Type::Primitive(Primitive::Float64),
            _ => return None,
        };
        let message = format!("`{written}` is read as `{keyword}`");
        let hint = format!("write `{keyword}`");
        self.sink.warning_hint(name.span, message, hint);
        Some(ty)
    }

    fn named_type(&mut self, scope: ScopeId, name: &ast::ScopedName) -> Option<Type> {
        if let Some(ty) = self.misspelled(name) {
            return Some(ty);
        }
        let what = match self.lookup(scope, name, "type")? {
            Symbol::Type(id) if self.is_exception(id) => "an exception, which has no values",
            Symbol::Type(id) => return Some(Type::Named(id)),
            Symbol::Refused => return None,
            Symbol::Forward(index) => return self.use_forward(index, scope, name.span),
            Symbol::Interface(id) => return Some(Type::Interface(id)),
            other => other.describe(),
        };
        self.sink.error(
            name.span,
            format!("expected a type, but `{name}` is {what}"),
        );
        None
    }

    pub(super) fn is_exception(&self, id: TypeId) -> bool {
        let kind = self.types.get(id.0).map(|decl| &decl.kind);
        matches!(kind, Some(TypeKind::Struct(structure)) if structure.exception)
    }

    /// The outer `None` when a fault was reported, the inner one for no bound.
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

    /// The target for constants of this type.
    pub(super) fn target(&self, ty: &Type) -> Option<Target> {
        match self.without_aliases(ty) {
            Type::Primitive(primitive) => Some(Target::of_primitive(primitive)),
            Type::String { bound } => Some(Target::String { bound }),
            Type::WString { bound } => Some(Target::WString { bound }),
            Type::Fixed { digits, scale } => Some(Target::Fixed(Some((digits, scale)))),
            Type::Named(id) => {
                let decl = self.types.get(id.0)?;
                let name = decl.name.clone();
                match &decl.kind {
                    TypeKind::Enum(_) => Some(Target::Enum { id, name }),
                    TypeKind::Bitmask(mask) => Some(Target::Bitmask {
                        id,
                        name,
                        bits: mask.bit_bound,
                    }),
                    _ => None,
                }
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
