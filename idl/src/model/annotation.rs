//! Annotations that the IDL declares, their uses, and `@verbatim`.

use super::{Type, Value};

/// Index of an annotation in [`Model::annotations`](super::Model::annotations).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AnnotationId(pub usize);

/// An annotation that was declared by `@annotation`: IDL 4.2 §7.4.15.
#[derive(Debug, Clone, PartialEq)]
pub struct AnnotationDecl {
    /// Its scoped name.
    pub name: String,
    /// Its parameters in the order of their declaration.
    pub parameters: Vec<AnnotationParameter>,
}

/// A parameter of an annotation.
#[derive(Debug, Clone, PartialEq)]
pub struct AnnotationParameter {
    /// IDL identifier, unescaped.
    pub name: String,
    /// Its type, which is one that a constant can have; `None` for `any`.
    pub ty: Option<Type>,
    /// Its default, if it has one.
    pub default: Option<Value>,
}

/// A use of an annotation that was declared by `@annotation`.
#[derive(Debug, Clone, PartialEq)]
pub struct CustomAnnotation {
    /// Which annotation.
    pub declaration: AnnotationId,
    /// Its scoped name.
    pub name: String,
    /// Its parameters in the order of their declaration, each with the given value
    /// or else its default; parameters with neither are left out.
    pub arguments: Vec<(String, Value)>,
}

/// IDL 4.2 §8.3.5.1: text for generated code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verbatim {
    /// The language that it is for, as written: `rust`, `*` for all, `comment`, ...
    pub language: String,
    /// Its place in the output.
    pub placement: Placement,
    /// The text.
    pub text: String,
}

impl Verbatim {
    /// Whether it goes into generated Rust.
    pub fn is_rust(&self) -> bool {
        self.language == "*" || self.language.eq_ignore_ascii_case("rust")
    }
}

/// The place of `@verbatim` text relative to the annotated declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// `BEGIN_FILE`.
    BeginFile,
    /// `BEFORE_DECLARATION`, the default.
    BeforeDeclaration,
    /// `BEGIN_DECLARATION`.
    BeginDeclaration,
    /// `END_DECLARATION`.
    EndDeclaration,
    /// `AFTER_DECLARATION`.
    AfterDeclaration,
    /// `END_FILE`.
    EndFile,
}

impl Placement {
    /// The word for it in a type object: XTypes 1.3 §7.5.1.2.6,
    /// `VerbatimTextDescriptor`.
    pub const fn type_object_word(self) -> &'static str {
        match self {
            Self::BeginFile => "begin-declaration-file",
            Self::BeforeDeclaration => "before-declaration",
            Self::BeginDeclaration => "begin-declaration",
            Self::EndDeclaration => "end-declaration",
            Self::AfterDeclaration => "after-declaration",
            Self::EndFile => "end-declaration-file",
        }
    }
}
