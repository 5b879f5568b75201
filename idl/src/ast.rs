//! The syntax tree: what the text says, before names mean anything.
//!
//! Constructs that the parser knows by name only are in the tree as
//! [`DefinitionKind::Refused`] and [`TypeKind::Refused`], already reported, so
//! that uses of their names are not reported once more.

use std::rc::Rc;

use crate::model::Primitive;
use crate::source::Span;

/// A name at the place where it is written, without an escaping underscore.
#[derive(Debug, Clone)]
pub(crate) struct Ident {
    pub(crate) name: Rc<str>,
    pub(crate) span: Span,
}

/// `A::B` or `::A::B`; never empty.
#[derive(Debug, Clone)]
pub(crate) struct ScopedName {
    pub(crate) absolute: bool,
    pub(crate) first: Ident,
    pub(crate) rest: Vec<Ident>,
    pub(crate) span: Span,
}

impl ScopedName {
    pub(crate) fn parts(&self) -> impl Iterator<Item = &Ident> {
        std::iter::once(&self.first).chain(&self.rest)
    }
}

impl std::fmt::Display for ScopedName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.absolute { "::" } else { "" })?;
        f.write_str(&self.first.name)?;
        self.rest
            .iter()
            .try_for_each(|part| write!(f, "::{}", part.name))
    }
}

/// Comment lines before a declaration.
pub(crate) type Doc = Option<Rc<[String]>>;

#[derive(Debug, Clone)]
pub(crate) struct Annotation {
    pub(crate) name: ScopedName,
    pub(crate) arguments: Arguments,
    pub(crate) span: Span,
}

#[derive(Debug, Clone)]
pub(crate) enum Arguments {
    None,
    Positional(Expr),
    Named(Vec<(Ident, Expr)>),
}

#[derive(Debug, Clone)]
pub(crate) struct Definition {
    pub(crate) doc: Doc,
    pub(crate) annotations: Vec<Annotation>,
    pub(crate) kind: DefinitionKind,
}

#[derive(Debug, Clone)]
pub(crate) enum DefinitionKind {
    Module(Module),
    Struct(Struct),
    Enum(Enum),
    Typedef(Typedef),
    Const(Const),
    /// Reported and skipped; the name if it declared one.
    Refused(Option<Ident>),
}

#[derive(Debug, Clone)]
pub(crate) struct Module {
    pub(crate) name: Ident,
    pub(crate) items: Vec<Definition>,
}

#[derive(Debug, Clone)]
pub(crate) struct Struct {
    pub(crate) name: Ident,
    pub(crate) base: Option<ScopedName>,
    pub(crate) members: Vec<Member>,
    /// A part of the body could not be understood and was reported.
    pub(crate) broken: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) doc: Doc,
    pub(crate) annotations: Vec<Annotation>,
    pub(crate) ty: TypeSpec,
    pub(crate) declarators: Vec<Declarator>,
}

/// `name[d0][d1]`
#[derive(Debug, Clone)]
pub(crate) struct Declarator {
    pub(crate) name: Ident,
    pub(crate) dimensions: Vec<Expr>,
    /// Those between the name and the dimensions.
    pub(crate) annotations: Vec<Annotation>,
}

#[derive(Debug, Clone)]
pub(crate) struct Enum {
    pub(crate) name: Ident,
    pub(crate) literals: Vec<Literal>,
    pub(crate) broken: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Literal {
    pub(crate) doc: Doc,
    pub(crate) annotations: Vec<Annotation>,
    pub(crate) name: Ident,
}

#[derive(Debug, Clone)]
pub(crate) struct Typedef {
    pub(crate) ty: TypeSpec,
    pub(crate) declarators: Vec<Declarator>,
}

#[derive(Debug, Clone)]
pub(crate) struct Const {
    pub(crate) name: Ident,
    pub(crate) ty: TypeSpec,
    pub(crate) value: Expr,
}

#[derive(Debug, Clone)]
pub(crate) struct TypeSpec {
    pub(crate) annotations: Vec<Annotation>,
    pub(crate) kind: TypeKind,
    pub(crate) span: Span,
}

#[derive(Debug, Clone)]
pub(crate) enum TypeKind {
    Primitive(Primitive),
    /// With the bound.
    String(Option<Expr>),
    /// With the bound.
    Sequence(Box<TypeSpec>, Option<Expr>),
    Named(ScopedName),
    /// `typedef struct S { ... } T;`
    Declared(Box<Definition>),
    /// Reported.
    Refused,
}

#[derive(Debug, Clone)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) span: Span,
}

#[derive(Debug, Clone)]
pub(crate) enum ExprKind {
    Integer(u64),
    Float(f64),
    Boolean(bool),
    Char(char),
    Text(Rc<str>),
    /// A literal of a type that is not supported; reported where it is used.
    Unsupported(&'static str),
    Name(ScopedName),
    Unary(char, Box<Expr>),
    /// `<` and `>` stand for the shifts.
    Binary(char, Box<Expr>, Box<Expr>),
}
