//! The fabric that participants meet over: the memory of one host today.

/// Every entity is bound to this one; the driver works over any.
pub(crate) type Wire = spindle_dds_transport::shm::ShmFabric;
