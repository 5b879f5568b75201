//! Random IDL: declarations of every kind that use each other, of a size that compiles
//! quickly. The same seed always gives the same text.

mod declarations;
mod members;
mod types;

use crate::random::Random;

/// The module of all declarations.
const MODULE: &str = "random";

/// The text of a file with `count` types, all in the module `random`.
pub(crate) fn idl(seed: u64, count: usize) -> String {
    let mut maker = Maker {
        random: Random::new(seed),
        text: format!(
            "// Seed {seed}.\nmodule {MODULE} {{\n\
             const unsigned long THREE = 3;\nconst long double QUAD = 0.5;\n"
        ),
        declared: Vec::new(),
        names: 0,
    };
    for number in 0..count {
        // The last ones are always topic types.
        maker.declaration(number + 3 >= count);
    }
    maker.text.push_str("};\n");
    maker.text
}

/// The generator of declarations.
struct Maker {
    random: Random,
    text: String,
    declared: Vec<DeclaredType>,
    /// Names given to members and the like.
    names: usize,
}

/// A type that has been declared.
#[derive(Debug, Clone)]
struct DeclaredType {
    name: String,
    kind: DeclarationKind,
    /// Its properties for types that use it.
    ty: Ty,
}

/// Kinds of declarations, with what those that build on them need to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeclarationKind {
    Enum,
    Bitmask,
    /// With the number of bits.
    Bitset(usize),
    Alias,
    /// With the greatest member id; none where ids are hashes.
    Struct(Option<u32>),
    Union,
}

/// A use of a type.
#[derive(Debug, Clone)]
struct Ty {
    /// The text before the name of a member.
    text: String,
    /// The text after it: the dimensions.
    behind: String,
    kind: Kind,
    /// Whether it can be part of a key.
    keyable: bool,
    /// Approximate number of values in its default; 0 if it takes no bytes.
    weight: usize,
}

/// The kind of a type, which decides its annotations.
#[derive(Debug, Clone, PartialEq)]
enum Kind {
    /// An integer, with its least and greatest value.
    Integer(i128, i128),
    Float,
    LongDouble,
    Fixed,
    Boolean,
    Char,
    WChar,
    /// With its bound.
    Text(Option<u32>),
    WideText(Option<u32>),
    /// Literals of an enumeration.
    Enum(Vec<String>),
    /// Flags of a bitmask.
    Bitmask(Vec<String>),
    /// Whether there is a bound.
    Collection(bool),
    Other,
}

impl Maker {
    /// A random element.
    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.random.below(from.len())].clone()
    }

    /// True once in `times` calls on average.
    fn once_in(&mut self, times: usize) -> bool {
        self.random.below(times) == 0
    }

    fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    /// The name by which other declarations use a type.
    fn path(name: &str) -> String {
        format!("::{MODULE}::{name}")
    }
}
