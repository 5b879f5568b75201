//! The sending side: a writer's access to the engine, and where it waits for ring space.

pub(super) mod acceptance;
mod reasons;
pub(super) mod waiters;
pub(super) mod writer_claim;
pub(super) mod writer_logs;
pub(super) mod writer_port;
pub(super) mod writer_return;
