//! Every limit of the type system, in one place.

/// Most types that a type from outside may be made of.
pub const TYPES_MAX: usize = 4096;

/// Most types that may contain each other.
pub const COMPONENT_TYPES_MAX: i32 = 1024;

/// Deepest nesting of values, and of types in types.
pub const DEPTH_MAX: usize = 64;

/// Most dimensions of an array.
pub const DIMENSIONS_MAX: usize = 16;

/// Most values in the default of a type, whose arrays may be of any size.
pub const DEFAULT_VALUES_MAX: usize = 1 << 20;

/// Most types, members, labels and literals that are looked at to compare two types. Types
/// that somebody uses take some ten a member; each takes about a tenth of a microsecond.
pub const COMPARE_STEPS_MAX: usize = 1 << 20;
