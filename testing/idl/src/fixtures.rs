//! Code generated from fixture IDL, compiled and exercised by the tests.
//!
//! A builder publishes when every member that varies in size has been written, in
//! the order of the declaration, and not before:
//!
//! ```
//! use spindle_dds_idl_conformance::fixtures::flight::flight::Track;
//! use spindle_dds_idl_runtime::{Representation, TopicType};
//!
//! let builder = Track::build(vec![0; 200], Representation::Xcdr1)?;
//! builder.callsign("D-ABCD")?.speed(&[])?.path(&[])?.image(&[])?.publish()?;
//! # Ok::<(), spindle_dds_idl_runtime::CdrError>(())
//! ```
//!
//! ```compile_fail,E0599
//! use spindle_dds_idl_conformance::fixtures::flight::flight::Track;
//! use spindle_dds_idl_runtime::{Representation, TopicType};
//!
//! let builder = Track::build(vec![0; 200], Representation::Xcdr1)?;
//! builder.callsign("D-ABCD")?.speed(&[])?.path(&[])?.publish()?;
//! # Ok::<(), spindle_dds_idl_runtime::CdrError>(())
//! ```
//!
//! ```compile_fail,E0599
//! use spindle_dds_idl_conformance::fixtures::flight::flight::Track;
//! use spindle_dds_idl_runtime::{Representation, TopicType};
//!
//! let builder = Track::build(vec![0; 200], Representation::Xcdr1)?;
//! builder.speed(&[])?;
//! # Ok::<(), spindle_dds_idl_runtime::CdrError>(())
//! ```
//!
//! What is nested is built by builders that are handed to closures and handed back when
//! they are complete; one that is not does not compile:
//!
//! ```
//! use spindle_dds_idl_conformance::fixtures::nested::nested::FinalPlan;
//! use spindle_dds_idl_runtime::{Representation, TopicType};
//!
//! let builder = FinalPlan::build(vec![0; 400], Representation::Xcdr1)?;
//! let builder = builder.remark_with(|remark| {
//!     let mut remark = remark.values_from(3, |index| index as f64)?;
//!     remark.set_kind(Default::default());
//!     remark.text("members of a mutable structure come in any order")
//! })?;
//! let builder = builder.last_with(|mut last| {
//!     last.set_number(7);
//!     let mut last = last.name("last")?;
//!     last.fix().at().set_x(1.0).set_y(2.0);
//!     last.outline_with(|outline| {
//!         for corner in 0..3 {
//!             outline.add()?.set_x(corner.into()).set_y(0.5);
//!         }
//!         Ok(())
//!     })
//! })?;
//! builder.remarks(&[])?.name("plan")?.publish()?;
//! # Ok::<(), spindle_dds_idl_runtime::CdrError>(())
//! ```
//!
//! ```compile_fail,E0308
//! use spindle_dds_idl_conformance::fixtures::nested::nested::FlightPlan;
//! use spindle_dds_idl_runtime::{Representation, TopicType};
//!
//! let builder = FlightPlan::build(vec![0; 200], Representation::Xcdr1)?;
//! // `outline` is missing.
//! builder.waypoints_with(|list| list.push_with(|item| item.name("half")))?;
//! # Ok::<(), spindle_dds_idl_runtime::CdrError>(())
//! ```
//!
//! Nor can an inner builder outlive its turn:
//!
//! ```compile_fail,E0521
//! use spindle_dds_idl_conformance::fixtures::nested::nested::FlightPlan;
//! use spindle_dds_idl_runtime::{Representation, TopicType};
//!
//! let builder = FlightPlan::build(vec![0; 200], Representation::Xcdr1)?;
//! let mut kept = None;
//! builder.waypoints_with(|list| {
//!     list.push_with(|item| {
//!         kept = Some(item);
//!         Err(spindle_dds_idl_runtime::CdrError::TooLong { length: 0, limit: 0 })
//!     })
//! })?;
//! # Ok::<(), spindle_dds_idl_runtime::CdrError>(())
//! ```

#![forbid(unsafe_code)]

/// A realistic topic with its included types.
pub mod flight {
    spindle_dds_idl_runtime::include_idl!("flight");
}

/// Every kind of member in every extensibility.
pub mod layouts {
    spindle_dds_idl_runtime::include_idl!("layouts");
}

/// Names that collide with Rust's, and types outside of any module.
pub mod names {
    spindle_dds_idl_runtime::include_idl!("names");
}

/// Two versions of the same types.
pub mod evolution {
    spindle_dds_idl_runtime::include_idl!("evolution");
}

/// Structures and collections inside of each other.
pub mod nested {
    spindle_dds_idl_runtime::include_idl!("nested");
}

/// What annotations say of members, and the types that few members have.
pub mod members {
    spindle_dds_idl_runtime::include_idl!("members");
}

/// Unions in every extensibility.
pub mod unions {
    spindle_dds_idl_runtime::include_idl!("unions");
}

/// Unions that contain themselves.
pub mod recursive_unions {
    spindle_dds_idl_runtime::include_idl!("recursive_unions");
}

/// Two versions of unions, one of which does not fit into the other.
pub mod union_construct {
    spindle_dds_idl_runtime::include_idl!("union_construct");
}

/// Enumerations, bitmasks and bitsets of every width.
pub mod bits {
    spindle_dds_idl_runtime::include_idl!("bits");
}

/// Each extensibility with what layouts differ by.
pub mod golden {
    spindle_dds_idl_runtime::include_idl!("golden");
}

/// Interfaces, exceptions and native types.
pub mod interfaces {
    spindle_dds_idl_runtime::include_idl!("interfaces");
}

/// Structures that lie in samples as in memory, and such as do not.
pub mod plain {
    spindle_dds_idl_runtime::include_idl!("plain");
}

/// Arrays of structures of fixed size, and pointers to such.
pub mod arrays {
    spindle_dds_idl_runtime::include_idl!("arrays");
}

/// What the bench measures.
pub mod bench {
    spindle_dds_idl_runtime::include_idl!("bench");
}

/// Stands for `spindle-dds`, through which applications see the runtime.
pub mod middleware {
    pub use spindle_dds_idl_runtime as idl;
}

/// Takes a module from elsewhere, and the runtime through another crate.
pub mod borrower {
    spindle_dds_idl_runtime::include_idl!("borrower");
}

/// Without serde.
pub mod bare {
    spindle_dds_idl_runtime::include_idl!("bare");
}
