//! Every limit of the front end, in one place.
//!
//! IDL text is untrusted input. A limit turns a stack overflow, an endless loop or
//! an absurd type into a diagnostic.

/// Largest size of one source file, in bytes.
pub(crate) const FILE_BYTES_MAX: usize = 8 << 20;
/// Nesting of `#include`.
pub(crate) const INCLUDE_DEPTH_MAX: usize = 40;
/// `#include` directives processed in one compilation.
pub(crate) const INCLUDES_MAX: usize = 10_000;
/// Tokens after preprocessing over all files; each step of a macro expansion
/// counts.
pub(crate) const TOKENS_MAX: usize = 1 << 20;
/// Nesting of macro expansions, and of operands in `#if` expressions.
pub(crate) const MACRO_DEPTH_MAX: usize = 32;
/// Arguments of one use of a macro.
pub(crate) const MACRO_ARGUMENTS_MAX: usize = 256;
/// Nesting of modules, template arguments and parentheses.
pub(crate) const NESTING_MAX: usize = 48;
/// Operators in one constant expression.
pub(crate) const OPERATORS_MAX: usize = 128;
/// Bytes of one string constant, all adjacent literals together.
pub(crate) const STRING_BYTES_MAX: usize = 64 << 10;
/// Diagnostics of one compilation; a last line counts the omitted ones.
pub(crate) const DIAGNOSTICS_MAX: usize = 200;
/// Characters of a source line that a diagnostic carries.
pub(crate) const SOURCE_LINE_CHARS_MAX: usize = 400;
/// Nesting of declared types, typedefs included.
pub(crate) const TYPE_DEPTH_MAX: u32 = 64;
/// Size of a value of one type in bytes, without the contents of strings and
/// sequences.
pub(crate) const TYPE_BYTES_MAX: u64 = i32::MAX as u64;
/// Largest member id (XTypes 1.3 §7.2.2.4.4.4.1: 28 bits).
pub(crate) const MEMBER_ID_MAX: u32 = 0x0FFF_FFFF;
/// Bytes that declarations may copy from others in total: inherited members,
/// values of constants, comments of declarations with many names.
pub(crate) const COPIED_BYTES_MAX: usize = 64 << 20;
/// Bases of one interface, over all levels.
pub(crate) const INTERFACE_BASES_MAX: usize = 256;

/// Longest text of an annotation parameter in a type object: bytes of
/// a `string`, units of a `wstring` (XTypes 1.3 Annex B, `ANNOTATION_STR_VALUE_MAX_LEN`).
pub(crate) const ANNOTATION_TEXT_MAX: usize = 128;

/// Longest language of a `@verbatim` in a type object, in bytes (Annex B).
pub(crate) const VERBATIM_LANGUAGE_BYTES_MAX: usize = 32;
