//! The segments of a participant: shared memory on its host, streams or RDMA to other hosts.

/// The segment type of all entities.
pub(crate) type Wire = spindle_dds_transport::hybrid::HybridSegment;
