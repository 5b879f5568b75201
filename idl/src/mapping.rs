//! The mapping from IDL 4.2 to Rust, in one place.
//!
//! OMG has no IDL to Rust mapping yet. This file defines one as a numbered profile;
//! a change of the mapping changes the number. [`TABLE`] covers all of IDL 4.2; the
//! functions below implement the rows in force.
//!
//! Names: types, members, literals and constants keep their IDL spelling, because
//! users know them by it; generated code allows the lints that would object. A
//! Rust keyword, or a name that collides with a generated one, gets a trailing
//! underscore. If a sibling already has that name in IDL, the sibling keeps it and the
//! renamed item gets further underscores.

use crate::model::Primitive;

/// Number of this profile.
pub const PROFILE_VERSION: u32 = 1;

/// Whether a row of the [`TABLE`] is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// In force: the compiler generates it.
    Done,
    /// Decided, but not built: the front end refuses it.
    Planned,
}

/// What one construct of IDL becomes.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// IDL 4.2 building block (§7.4).
    pub block: &'static str,
    /// The construct.
    pub idl: &'static str,
    /// The Rust that it becomes.
    pub rust: &'static str,
    /// Whether it is in force.
    pub status: Status,
}

const fn done(block: &'static str, idl: &'static str, rust: &'static str) -> Row {
    Row {
        block,
        idl,
        rust,
        status: Status::Done,
    }
}

const fn planned(block: &'static str, idl: &'static str, rust: &'static str) -> Row {
    Row {
        block,
        idl,
        rust,
        status: Status::Planned,
    }
}

const CORE: &str = "Core Data Types";
const EXTENDED: &str = "Extended Data-Types";
const ANONYMOUS: &str = "Anonymous Types";
const ANY: &str = "Any";
const ANNOTATIONS: &str = "Annotations";
const INTERFACES: &str = "Interfaces - Basic";
const FIELD: &str = "Not IDL 4.2, found in existing files";
const OTHER: &str = "CORBA, CCM, value types, templates";

/// All of IDL 4.2.
pub const TABLE: &[Row] = &[
    done(CORE, "module M", "pub mod M, one tree per compilation"),
    done(CORE, "const T NAME", "pub const NAME: T"),
    done(CORE, "const string NAME", "pub const NAME: &str"),
    done(CORE, "const wstring NAME", "pub const NAME: &str"),
    done(CORE, "short, long, long long", "i16, i32, i64"),
    done(CORE, "unsigned short, long, long long", "u16, u32, u64"),
    done(CORE, "float, double", "f32, f64"),
    done(
        CORE,
        "long double",
        "runtime::LongDouble, its bits: no arithmetic",
    ),
    done(CORE, "char", "u8: one byte of any code page"),
    done(CORE, "wchar", "u16: one UTF-16 unit"),
    done(CORE, "boolean, octet", "bool, u8"),
    done(
        CORE,
        "string, string<N>",
        "String, the bound checked on writing and reading",
    ),
    done(
        CORE,
        "wstring, wstring<N>",
        "String, UTF-16 on the wire; the bound counts units",
    ),
    done(
        CORE,
        "fixed<D, S>",
        "runtime::Fixed<D, S>: no arithmetic; decimals of CDR on the wire",
    ),
    done(
        CORE,
        "sequence<T>, sequence<T, N>",
        "Vec<T>, the bound checked on writing and reading",
    ),
    done(CORE, "T name[N][M]", "[[T; M]; N]"),
    done(
        CORE,
        "struct S",
        "pub struct S with public fields, SView, SBuilder; repr(C) where that is its XCDR1 layout",
    ),
    done(
        CORE,
        "struct S : Base",
        "the fields of Base first (XTypes), and From<S> for Base",
    ),
    done(
        CORE,
        "enum E",
        "pub enum E; unless @final with a variant Unknown(bits) for numbers without a literal, \
         which are neither read nor written: @try_construct decides",
    ),
    done(
        CORE,
        "union U switch (D)",
        "pub enum U with one variant Name(T) per branch: Name(D, T) where several values of D \
         select it, Empty(D) where none is selected",
    ),
    done(CORE, "typedef T A", "pub type A = T"),
    done(
        CORE,
        "forward declarations",
        "recursion through Box, Vec and BTreeMap, to a depth of 64",
    ),
    done(CORE, "native N", "the type given by Builder::native"),
    done(
        EXTENDED,
        "int8, uint8 .. int64, uint64",
        "i8, u8 .. i64, u64",
    ),
    done(
        EXTENDED,
        "map<K, V>, map<K, V, N>",
        "BTreeMap<K, V>; a duplicate key is an error",
    ),
    done(
        EXTENDED,
        "bitset B",
        "pub struct B with one field per bit field, checked on writing",
    ),
    done(
        EXTENDED,
        "bitmask M",
        "pub struct M(bits) with constants and operators; unless @final other bits are kept",
    ),
    done(EXTENDED, "union with extended switch types", "as union"),
    done(
        ANONYMOUS,
        "sequences and arrays in members",
        "the type in place",
    ),
    planned(ANY, "any", "runtime::DynamicData"),
    done(ANNOTATIONS, "@final, @appendable, @mutable", "the encoding"),
    done(ANNOTATIONS, "@extensibility(kind)", "the encoding"),
    done(
        ANNOTATIONS,
        "@key",
        "key_hash, encode_key, decode_key; nothing in a key is optional or a map, also where all \
         members are the key",
    ),
    done(
        ANNOTATIONS,
        "@id(n), @autoid(SEQUENTIAL)",
        "member ids on the wire",
    ),
    done(
        ANNOTATIONS,
        "@autoid(HASH), @hashid",
        "member ids on the wire",
    ),
    done(
        ANNOTATIONS,
        "@default(v)",
        "Default, and the value of absent members",
    ),
    done(ANNOTATIONS, "@default_literal", "#[default]"),
    done(ANNOTATIONS, "@value(n)", "the wire form of a literal"),
    done(
        ANNOTATIONS,
        "@bit_bound(n) on enum",
        "i8, i16 or i32 on the wire and in Unknown",
    ),
    done(
        ANNOTATIONS,
        "@bit_bound(n) on bitmask",
        "u8, u16, u32 or u64 on the wire",
    ),
    done(ANNOTATIONS, "@nested", "no TopicType, no builder"),
    done(
        ANNOTATIONS,
        "@optional",
        "Option<T>; its @default applies to new values, not to absent members",
    ),
    done(ANNOTATIONS, "@external", "Box<T>"),
    done(ANNOTATIONS, "@must_understand", "the flag on the wire"),
    done(
        ANNOTATIONS,
        "@range, @min, @max",
        "checked on writing and reading; the default is the allowed number nearest to 0",
    ),
    done(
        ANNOTATIONS,
        "@unit",
        "a line of documentation, and in the TypeObject",
    ),
    done(
        ANNOTATIONS,
        "@verbatim",
        "inserted when its language is rust or *; the first one of a type is in its TypeObject",
    ),
    done(
        ANNOTATIONS,
        "@try_construct",
        "how reading treats values that are none of the type, such as unknown literals: of \
         members, elements and discriminators",
    ),
    done(
        ANNOTATIONS,
        "@non_serialized",
        "a field that is not serialized, and has its default when read",
    ),
    done(ANNOTATIONS, "@position", "bits of a bitmask"),
    done(
        ANNOTATIONS,
        "@data_representation",
        "TopicType::REPRESENTATIONS: endpoints with other ones are refused",
    ),
    done(
        ANNOTATIONS,
        "@topic, @default_nested",
        "as absence or presence of @nested",
    ),
    done(
        ANNOTATIONS,
        "@ignore_literal_names",
        "assignability of the compiled type; not announced to others",
    ),
    done(
        ANNOTATIONS,
        "@annotation declarations",
        "no code: their uses are in the TypeObjects",
    ),
    done(ANNOTATIONS, "@oneway", "as the keyword: an ordinary method"),
    done(
        ANNOTATIONS,
        "annotations elsewhere",
        "none, with a warning; an error where the construct cannot have that property",
    ),
    planned(ANNOTATIONS, "@service, @ami", "DDS-RPC"),
    done(
        INTERFACES,
        "interface I : Base",
        "pub trait I: Base, a type Arc<dyn I>; inner declarations in pub mod IScope",
    ),
    done(
        INTERFACES,
        "attribute, operation, raises",
        "methods, Result with one error enum each",
    ),
    done(
        INTERFACES,
        "exception E",
        "pub struct E with Display and Error",
    ),
    done(
        FIELD,
        "long id; //@key",
        "annotations in comments after a declaration (XTypes 1.0, Connext DDS), \
         with a warning per file",
    ),
    done(
        FIELD,
        "#pragma keylist, DCPS_DATA_KEY, DCPS_DATA_TYPE",
        "@key, @topic; an element of an array cannot be a key",
    ),
    done(
        FIELD,
        "__dds_key, @top_level(FALSE), @Shared, @MustUnderstand, T * name",
        "@key, @nested, @external, @must_understand, @external",
    ),
    done(FIELD, "A = 5 in an enum", "@value(5) A"),
    done(
        FIELD,
        "files in UTF-8",
        "as such; a file that is not is read as ISO 8859-1, with a warning, unless \
         Builder::encoding names one",
    ),
    done(
        FIELD,
        "#ident, #elifdef, __has_include, __VA_OPT__, , ## __VA_ARGS__",
        "as preprocessors of C++ have them",
    ),
    done(
        FIELD,
        "a literal of several enums",
        "each where a value of its enum is expected, or as Enum::LITERAL",
    ),
    done(
        FIELD,
        "a type inside a member",
        "a type beside the enclosing one",
    ),
    planned(
        OTHER,
        "valuetype, component, home, porttype, template modules",
        "none",
    ),
];

/// The [`TABLE`] as Markdown.
pub fn table_markdown() -> String {
    let mut text = String::from("| building block | IDL | Rust | status |\n|---|---|---|---|\n");
    for Row {
        block,
        idl,
        rust,
        status,
    } in TABLE
    {
        let status = match status {
            Status::Done => "done",
            Status::Planned => "planned",
        };
        text.push_str(&format!("| {block} | `{idl}` | {rust} | {status} |\n"));
    }
    text
}

/// The Rust name of a primitive.
pub fn primitive(primitive: Primitive) -> &'static str {
    match primitive {
        Primitive::Boolean => "bool",
        Primitive::Octet | Primitive::Char | Primitive::UInt8 => "u8",
        Primitive::Int8 => "i8",
        Primitive::Int16 => "i16",
        Primitive::UInt16 | Primitive::WChar => "u16",
        Primitive::Int32 => "i32",
        Primitive::UInt32 => "u32",
        Primitive::Int64 => "i64",
        Primitive::UInt64 => "u64",
        Primitive::Float32 => "f32",
        Primitive::Float64 => "f64",
        Primitive::Float128 => "LongDouble",
    }
}

/// Whether a sequence of it is a sequence of plain bytes.
pub fn is_byte(primitive: Primitive) -> bool {
    matches!(
        primitive,
        Primitive::Octet | Primitive::Char | Primitive::UInt8
    )
}

/// The Rust type of an enumeration's wire form.
pub fn enum_bits(bit_bound: u8) -> &'static str {
    match bit_bound {
        0..=8 => "i8",
        9..=16 => "i16",
        _ => "i32",
    }
}

/// The Rust type of the wire form of a bitmask or bitset with so many bits.
pub fn unsigned_bits(bits: u8) -> &'static str {
    match bits {
        0..=8 => "u8",
        9..=16 => "u16",
        17..=32 => "u32",
        _ => "u64",
    }
}

/// The Rust identifier of an IDL one.
pub fn identifier(idl: &str) -> String {
    let mut name = idl.to_owned();
    if KEYWORDS.contains(&idl) || idl == "_" {
        name.push('_');
    }
    name
}

/// As [`identifier`], avoiding the generated names in `taken`.
pub fn identifier_beside(idl: &str, taken: &[&str]) -> String {
    let mut name = identifier(idl);
    if taken.contains(&name.as_str()) {
        name.push('_');
    }
    name
}

/// Methods of generated views, whose names members cannot have.
pub const VIEW_METHODS: &[&str] = &[
    "to_owned",
    "key_hash",
    "as_struct",
    "parse_",
    "transcribe_key_",
];

/// Methods of generated builders, whose names members cannot have.
pub const BUILDER_METHODS: &[&str] = &["publish"];

/// Variables of generated code. A constant of the same name in scope would turn the
/// binding into a pattern.
pub const VARIABLES: &[&str] = &[
    "at",
    "bits",
    "build",
    "builder",
    "bytes",
    "count",
    "cursor",
    "discriminator",
    "encapsulation",
    "encoder",
    "end",
    "exception",
    "f",
    "fill",
    "hasher",
    "inside",
    "key",
    "last",
    "len",
    "measure",
    "open",
    "other",
    "out",
    "outer",
    "reader",
    "representation",
    "room",
    "sample",
    "scope",
    "site",
    "slot",
    "value",
    "values",
    "view",
    "word",
];

/// Functions of generated bitmasks, whose names flags cannot have.
pub const BITMASK_METHODS: &[&str] = &[
    "empty",
    "all",
    "bits",
    "from_bits",
    "from_bits_truncate",
    "from_bits_retain",
    "is_empty",
    "contains",
    "intersects",
    "insert",
    "remove",
    "set",
];

/// Strict and reserved keywords of edition 2024.
const KEYWORDS: &[&str] = &[
    "Self", "abstract", "as", "async", "await", "become", "box", "break", "const", "continue",
    "crate", "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if",
    "impl", "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub",
    "ref", "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_get_an_underscore() {
        assert_eq!(identifier("type"), "type_");
        assert_eq!(identifier("Self"), "Self_");
        assert_eq!(identifier("lat"), "lat");
        assert_eq!(identifier_beside("publish", BUILDER_METHODS), "publish_");
    }

    #[test]
    fn keywords_are_sorted() {
        assert!(KEYWORDS.is_sorted());
    }
}
