//! The segments of a participant: in the memory of a host today.

/// Every entity is bound to this one.
pub(crate) type Wire = spindle_dds_transport::shm::ShmSegment;
