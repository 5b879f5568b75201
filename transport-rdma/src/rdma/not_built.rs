//! Replaces `verbs` where that feature is not built: these types have no values.

use core::convert::Infallible;
use core::time::Duration;
use std::net::IpAddr;

use crate::fabric::peers::{PeerSet, Rank};
use crate::fabric::{FabricCounters, WakeReason};
use crate::memory::Region;
use crate::rdma::{RdmaCounters, RdmaOptions};
use crate::station::error::StationError;
use crate::station::segment::{SegmentKey, SegmentRequest};
use crate::tcp;
use crate::thread_settings::ThreadSettings;

#[path = "../verbs/error.rs"]
mod error;

pub use error::RdmaError;

pub(crate) struct Hooks {
    pub(crate) wake: tcp::WakeHook,
    pub(crate) failed: Box<dyn Fn(u128, String) + Send + Sync>,
    pub(crate) proved: Box<dyn Fn(u128) + Send + Sync>,
    pub(crate) io: ThreadSettings,
}

#[derive(Debug)]
pub(crate) struct RdmaTransport(Infallible);

impl RdmaTransport {
    pub(crate) fn open(
        _: &RdmaOptions,
        _: IpAddr,
        _: Duration,
        hooks: Hooks,
    ) -> Result<Self, RdmaError> {
        drop((hooks.wake, hooks.failed, hooks.proved, hooks.io));
        Err(RdmaError::NotBuilt)
    }

    pub(crate) fn device(&self) -> String {
        match self.0 {}
    }

    pub(crate) fn offer(&self, _: u128) -> Result<Vec<u8>, String> {
        match self.0 {}
    }

    pub(crate) fn answer(&self, _: u128, _: &[u8]) -> Result<Vec<u8>, String> {
        match self.0 {}
    }

    pub(crate) fn accept(&self, _: u128, _: &[u8]) -> Result<(), String> {
        match self.0 {}
    }

    pub(crate) fn is_proved(&self, _: u128) -> bool {
        match self.0 {}
    }

    pub(crate) fn close(&self, _: u128) {
        match self.0 {}
    }

    pub(crate) fn segment(
        &self,
        _: &SegmentRequest,
        _: &PeerSet,
        _: &Region,
    ) -> Result<RdmaSegment, StationError> {
        match self.0 {}
    }

    pub(crate) fn forget(&self, _: SegmentKey) {
        match self.0 {}
    }

    pub(crate) fn announce_sleep(&self, _: u64) {
        match self.0 {}
    }

    pub(crate) fn announce_awake(&self) {
        match self.0 {}
    }

    pub(crate) fn poll(&self) {
        match self.0 {}
    }

    pub(crate) fn counters(&self, _: u128) -> Option<RdmaCounters> {
        match self.0 {}
    }

    pub(crate) fn is_still(&self, _: u128) -> bool {
        match self.0 {}
    }
}

#[derive(Debug)]
pub(crate) struct RdmaSegment(Infallible);

impl RdmaSegment {
    pub(crate) fn copies(&self) -> &[(Rank, Region)] {
        match self.0 {}
    }

    pub(crate) fn push(&self, _: usize, _: usize, _: &PeerSet) {
        match self.0 {}
    }

    pub(crate) fn push_word(&self, _: usize, _: u64, _: &PeerSet) {
        match self.0 {}
    }

    pub(crate) fn wake(&self, _: &PeerSet, _: WakeReason) {
        match self.0 {}
    }

    pub(crate) fn fence(&self, _: Rank) {
        match self.0 {}
    }

    pub(crate) fn counters(&self) -> FabricCounters {
        match self.0 {}
    }
}
