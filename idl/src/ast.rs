//! The syntax tree: the text as parsed, before names are resolved.
//!
//! Unsupported constructs are in the tree as [`DefinitionKind::Refused`] and
//! [`TypeKind::Refused`]. The parser has reported them; keeping their names
//! prevents a second report where the names are used.

use std::rc::Rc;

use crate::lex::Pragma;
use crate::model::{Direction, Primitive};
use crate::source::Span;

/// A name and its position, without an escaping underscore.
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
    /// Written in a comment after the annotated declaration.
    pub(crate) is_in_comment: bool,
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
    /// A struct or an exception.
    Struct(Struct),
    Union(Union),
    Enum(Enum),
    Bitmask(Enum),
    Bitset(Bitset),
    Typedef(Typedef),
    Const(Const),
    Interface(Interface),
    /// `struct S;`, `union U;`, `interface I;`
    Forward(ForwardKind, Ident),
    Native(Ident),
    AnnotationDeclaration(AnnotationDeclaration),
    Pragma(Rc<Pragma>, Span),
    /// Reported and skipped; the name if it declared one.
    Refused(Option<Ident>),
}

/// The kind of a forward declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForwardKind {
    Struct,
    Union,
    Interface { local: bool },
}

#[derive(Debug, Clone)]
pub(crate) struct Module {
    pub(crate) name: Ident,
    pub(crate) items: Vec<Definition>,
}

#[derive(Debug, Clone)]
pub(crate) struct Struct {
    pub(crate) name: Ident,
    pub(crate) exception: bool,
    pub(crate) base: Option<ScopedName>,
    pub(crate) members: Vec<Member>,
    /// Part of the body could not be parsed and was reported.
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
pub(crate) struct Union {
    pub(crate) name: Ident,
    /// The discriminator after `switch`, with its annotations.
    pub(crate) discriminator: TypeSpec,
    pub(crate) branches: Vec<Branch>,
    pub(crate) broken: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Branch {
    pub(crate) labels: Vec<Expr>,
    /// Position of `default:`.
    pub(crate) default: Option<Span>,
    pub(crate) member: Member,
}

#[derive(Debug, Clone)]
pub(crate) struct Bitset {
    pub(crate) name: Ident,
    pub(crate) base: Option<ScopedName>,
    pub(crate) fields: Vec<BitField>,
    pub(crate) broken: bool,
}

/// `bitfield<bits, type> a, b;`
#[derive(Debug, Clone)]
pub(crate) struct BitField {
    pub(crate) doc: Doc,
    pub(crate) annotations: Vec<Annotation>,
    pub(crate) bits: Expr,
    pub(crate) ty: Option<TypeSpec>,
    /// None for a gap.
    pub(crate) names: Vec<Ident>,
}

/// A list of names: an enum, or a bitmask.
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
    /// The value after `=`, which other compilers accept as `@value`.
    pub(crate) value: Option<Expr>,
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
pub(crate) struct Interface {
    pub(crate) name: Ident,
    pub(crate) local: bool,
    pub(crate) bases: Vec<ScopedName>,
    pub(crate) exports: Vec<Export>,
}

/// A member of an interface.
#[derive(Debug, Clone)]
pub(crate) enum Export {
    Definition(Definition),
    Attribute(Attribute),
    Operation(Operation),
}

#[derive(Debug, Clone)]
pub(crate) struct Attribute {
    pub(crate) doc: Doc,
    pub(crate) annotations: Vec<Annotation>,
    pub(crate) readonly: bool,
    pub(crate) ty: TypeSpec,
    pub(crate) names: Vec<Ident>,
    pub(crate) get_raises: Vec<ScopedName>,
    pub(crate) set_raises: Vec<ScopedName>,
}

#[derive(Debug, Clone)]
pub(crate) struct Operation {
    pub(crate) doc: Doc,
    pub(crate) annotations: Vec<Annotation>,
    /// Position of the keyword.
    pub(crate) oneway: Option<Span>,
    /// `None` for `void`.
    pub(crate) returns: Option<TypeSpec>,
    pub(crate) name: Ident,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) raises: Vec<ScopedName>,
}

#[derive(Debug, Clone)]
pub(crate) struct Parameter {
    pub(crate) annotations: Vec<Annotation>,
    pub(crate) direction: Direction,
    pub(crate) ty: TypeSpec,
    pub(crate) name: Ident,
}

/// `@annotation Name { ... };`
#[derive(Debug, Clone)]
pub(crate) struct AnnotationDeclaration {
    pub(crate) name: Ident,
    pub(crate) items: Vec<AnnotationItem>,
    pub(crate) broken: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum AnnotationItem {
    /// A constant, a typedef or an enum.
    Definition(Definition),
    /// `type name default value;`, without a type when that is `any`.
    Parameter {
        ty: Option<TypeSpec>,
        name: Ident,
        default: Option<Expr>,
    },
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
    WString(Option<Expr>),
    /// With digits and scale, which constants may omit.
    Fixed(Option<Box<(Expr, Expr)>>),
    /// Key, value, and the bound.
    Map(Box<(TypeSpec, TypeSpec)>, Option<Expr>),
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
    /// As written.
    Float(Rc<str>),
    /// As written, without the `d`.
    Fixed(Rc<str>),
    Boolean(bool),
    Char(char),
    WideChar(char),
    Text(Rc<str>),
    WideText(Rc<str>),
    Name(ScopedName),
    Unary(char, Box<Expr>),
    /// `<` and `>` mean the shifts.
    Binary(char, Box<Expr>, Box<Expr>),
}
