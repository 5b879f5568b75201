//! XTypes 1.3 at run time: how types are described on the wire, whether a reader
//! can read what a writer writes, and data of types that no program was compiled
//! with.
//!
//! ```text
//!   compiler, program ──> TypeGraph ──> describe ──> TypeObject, TypeIdentifier
//!                             ^   \
//!   TypeObjects ──> Registry ─/    \──> assignable
//!                                   \─> DynamicType ──> DynamicData
//! ```
//!
//! `object` is Annex B, byte for byte; `graph` the types as they are made of each
//! other. What comes from outside is checked: lengths and depths by the
//! [`Reader`](spindle_dds_idl_runtime::Reader), hashes and references by the
//! [`Registry`]. Nothing here panics on any input.
//!
//! `fixed` has no `TypeIdentifier` in XTypes, so neither it nor what contains it is
//! described. `@default` values are not part of a `TypeObject`.

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
pub use dynamic::{AsJson, DataError, DynamicData, DynamicType, Layout, UnionValue, Value};
pub use graph::{TypeGraph, TypeIndex};
pub use registry::{Registry, Resolved, TypeError};
pub use wire::Bounded;
