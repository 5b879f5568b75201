//! How threads wait for data, and how they are woken.

pub(super) mod backoff;
pub(super) mod empty_reads;
pub(super) mod engine_clock;
pub(super) mod followers;
pub(super) mod future_wakers;
pub(super) mod history_waiters;
pub(super) mod notifier;
pub(super) mod poll_on_read;
pub(super) mod polling_pause;
pub(super) mod stream_wakers;
mod wait_for_data;
