//! DDS-XML read into policies, types, domains and participants.
//!
//! ```text
//!  bytes ──tree──▶ elements ──library──▶ groups of entity QoS, by name
//!                     │                       │ links (provider)
//!                     │                       ▼
//!                     │     policies ◀──entity── elements applied in order of inheritance
//!                     ├──types──▶ declared types
//!                     └──domain, participant──▶ entities, whose names the provider links
//! ```
//!
//! The elements themselves are the patch that a profile puts on top of its base:
//! `entity` applies one element to a QoS and leaves alone what it does not mention,
//! so inheritance is applying base before child. Reading never fails: it yields
//! the readable part and a list of diagnostics.

pub(crate) mod dialect;
pub(crate) mod domain;
pub(crate) mod encoding;
pub(crate) mod entity;
pub(crate) mod library;
pub(crate) mod members;
pub(crate) mod participant;
pub(crate) mod policy;
pub(crate) mod property;
pub(crate) mod tree;
pub(crate) mod types;
pub(crate) mod value;
pub(crate) mod variables;
pub(crate) mod vendor;
