//! The segments of a participant: in the memory of its host, and over streams to others.

/// Every entity is bound to this one.
pub(crate) type Wire = spindle_dds_transport::hybrid::HybridSegment;
