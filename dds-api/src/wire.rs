//! The segments of a participant: parts of one row in the memory of a host today.

/// Every entity is bound to this one; the driver works over any.
pub(crate) type Wire = spindle_dds_transport::Part<spindle_dds_transport::shm::ShmFabric>;
