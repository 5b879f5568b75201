//! Every limit of the type system, in one place.

/// Most dependencies of an untrusted type.
pub const TYPES_MAX: usize = 4096;

/// Most types of one strongly connected component.
pub const COMPONENT_TYPES_MAX: i32 = 1024;

/// Deepest nesting of values, and of types.
pub const DEPTH_MAX: usize = 64;

/// Most dimensions of an array.
pub const DIMENSIONS_MAX: usize = 16;

/// Most values in the default of a type, because arrays may have any size.
pub const DEFAULT_VALUES_MAX: usize = 1 << 20;

/// Most types, members, labels and literals visited in the comparison of two types. Ordinary
/// types take about ten steps per member, and a step about a tenth of a microsecond.
pub const COMPARE_STEPS_MAX: usize = 1 << 20;
