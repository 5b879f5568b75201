//! Interfaces: IDL 4.2 §7.4.3.

use super::{CustomAnnotation, InterfaceId, Item, Type, TypeId};

/// An interface: IDL 4.2 §7.4.3.
#[derive(Debug, Clone, PartialEq)]
pub struct InterfaceDecl {
    /// IDL identifier, unescaped.
    pub name: String,
    /// Enclosing modules from the outside in.
    pub scope: Vec<String>,
    /// Comment lines that stand before it.
    pub doc: Vec<String>,
    /// Annotations that the IDL declares itself.
    pub custom: Vec<CustomAnnotation>,
    /// `local interface`.
    pub local: bool,
    /// Interfaces that it inherits from.
    pub bases: Vec<InterfaceId>,
    /// Types, exceptions and constants declared inside; the name of the interface is
    /// the last part of their scope.
    pub items: Vec<Item>,
    /// Attributes in the order of declaration, without those inherited.
    pub attributes: Vec<Attribute>,
    /// Operations in the order of declaration, without those inherited.
    pub operations: Vec<Operation>,
    /// The file it was defined in (index into [`Model::files`](super::Model::files)).
    pub file: usize,
}

/// An attribute of an interface.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    /// IDL identifier, unescaped.
    pub name: String,
    /// Comment lines that stand before it.
    pub doc: Vec<String>,
    /// Annotations that the IDL declares itself.
    pub custom: Vec<CustomAnnotation>,
    /// Its type.
    pub ty: Type,
    /// `readonly`.
    pub readonly: bool,
    /// Exceptions that reading it may raise.
    pub get_raises: Vec<TypeId>,
    /// Exceptions that setting it may raise.
    pub set_raises: Vec<TypeId>,
}

/// An operation of an interface.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// IDL identifier, unescaped.
    pub name: String,
    /// Comment lines that stand before it.
    pub doc: Vec<String>,
    /// Annotations that the IDL declares itself.
    pub custom: Vec<CustomAnnotation>,
    /// `oneway`, by keyword or annotation.
    pub oneway: bool,
    /// Its return type, `None` for `void`.
    pub returns: Option<Type>,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// Exceptions that it may raise.
    pub raises: Vec<TypeId>,
}

/// A parameter of an operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// IDL identifier, unescaped.
    pub name: String,
    /// Annotations that the IDL declares itself.
    pub custom: Vec<CustomAnnotation>,
    /// Its direction.
    pub direction: Direction,
    /// Its type.
    pub ty: Type,
}

/// The direction of a parameter, from the view of the callee.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// `in`.
    In,
    /// `out`.
    Out,
    /// `inout`.
    InOut,
}
