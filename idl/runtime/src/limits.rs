//! Every limit of the codec, in one place.

/// Deepest nesting of structures and collections that is read, and therefore written; the
/// top level counts 1.
pub const DEPTH_MAX: usize = 64;

/// Longest sample in bytes; offsets inside a sample are 32 bits.
pub const SAMPLE_BYTES_MAX: usize = (u32::MAX - 1) as usize;

/// Most elements of a sequence whose elements are encoded in 0 bytes.
pub const EMPTY_ELEMENTS_MAX: usize = 65_536;

/// Most bytes of memory reserved for a sequence before its elements are read; beyond it
/// the vector grows with the elements that are found.
pub const RESERVE_BYTES_MAX: usize = 64 * 1024;

/// Most bytes of memory that the elements of all sequences of a sample take, for
/// each byte of the sample.
pub const MEMORY_PER_BYTE_MAX: usize = 64;

/// Bytes of memory that the elements of all sequences may take in any case.
pub const MEMORY_BASE_MAX: usize = 16 * 1024 * 1024;

/// Most bytes of memory that the elements of all sequences of a sample of `length`
/// bytes take.
pub(crate) const fn memory_max(length: usize) -> usize {
    MEMORY_BASE_MAX.saturating_add(length.saturating_mul(MEMORY_PER_BYTE_MAX))
}
