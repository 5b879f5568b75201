//! Every limit of the front end, in one place.
//!
//! IDL comes from users and from strangers. A limit turns what would be a
//! stack overflow, an endless loop or an absurd type into a diagnostic.

/// Largest size of one source file, in bytes.
pub(crate) const FILE_BYTES_MAX: usize = 8 << 20;
/// Files open inside one another by `#include`.
pub(crate) const INCLUDE_DEPTH_MAX: usize = 40;
/// `#include` directives followed in one compilation.
pub(crate) const INCLUDES_MAX: usize = 10_000;
/// Tokens after preprocessing over all files, each step of a macro's expansion
/// counted.
pub(crate) const TOKENS_MAX: usize = 1 << 20;
/// Macros inside macros, and operands inside `#if` expressions.
pub(crate) const MACRO_DEPTH_MAX: usize = 32;
/// Arguments of one use of a macro.
pub(crate) const MACRO_ARGUMENTS_MAX: usize = 256;
/// Modules, template arguments and parentheses inside one another.
pub(crate) const NESTING_MAX: usize = 48;
/// Operators in one constant expression.
pub(crate) const OPERATORS_MAX: usize = 128;
/// Bytes of one string constant, pieces put together.
pub(crate) const STRING_BYTES_MAX: usize = 64 << 10;
/// Diagnostics of one compilation; the rest is counted in one last line.
pub(crate) const DIAGNOSTICS_MAX: usize = 200;
/// Characters of a source line that a diagnostic carries.
pub(crate) const SOURCE_LINE_CHARS_MAX: usize = 400;
/// Declared types inside one another, typedefs included.
pub(crate) const TYPE_DEPTH_MAX: u32 = 64;
/// Bytes that a value of one type may take without counting what strings and
/// sequences point to.
pub(crate) const TYPE_BYTES_MAX: u64 = i32::MAX as u64;
/// Largest member id (XTypes 1.3 §7.2.2.4.4.4.1: 28 bits).
pub(crate) const MEMBER_ID_MAX: u32 = 0x0FFF_FFFF;
/// Bytes that declarations may repeat of others, over all: inherited members,
/// values of constants, comments of declarations with many names.
pub(crate) const COPIED_BYTES_MAX: usize = 64 << 20;
/// Interfaces that one inherits from, over all levels.
pub(crate) const INTERFACE_BASES_MAX: usize = 256;

/// Longest text in a parameter of an annotation that a type object has a place for: bytes of
/// a `string`, units of a `wstring` (XTypes 1.3 Annex B, `ANNOTATION_STR_VALUE_MAX_LEN`).
pub(crate) const ANNOTATION_TEXT_MAX: usize = 128;

/// Longest language of a `@verbatim` in a type object, in bytes (Annex B).
pub(crate) const VERBATIM_LANGUAGE_BYTES_MAX: usize = 32;
