//! XTypes 1.3 at run time: type objects, assignability, and dynamic types and data.
//!
//! ```text
//!   compiler, program ──> TypeGraph ──> describe ──> TypeObject, TypeIdentifier
//!                             ^   \
//!   TypeObjects ──> Registry ─/    \──> assignable
//!                                   \─> DynamicType ──> DynamicData
//! ```
//!
//! `object` is Annex B, byte for byte; `graph` has declared types that refer to each
//! other. Untrusted input is checked: lengths and depths by the
//! [`Reader`](spindle_dds_idl_runtime::Reader), hashes and references by the
//! [`Registry`]. No input causes a panic.
//!
//! `fixed` has no `TypeIdentifier` in XTypes, so neither it nor a type that contains it is
//! representable. `@default` values are not part of a `TypeObject`.

#![forbid(unsafe_code)]

mod assign;
mod describe;
mod dynamic;
pub mod graph;
pub mod limits;
pub mod object;
mod registry;
mod wire;

pub use assign::{Consistency, Difference, Mismatch, assignable};
pub use describe::{Described, Descriptions, describe};
pub use dynamic::{AsJson, DataError, DynamicData, DynamicType, SampleLayout, UnionValue, Value};
pub use graph::{TypeGraph, TypeIndex};
pub use registry::{Registry, Resolved, TypeError};
pub use wire::Bounded;
