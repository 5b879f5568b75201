//! The fabric that participants of this build meet over.

use std::time::Duration;

use spindle_dds_transport::{
    Fabric, FabricCounters, Failure, Park, PeerSet, Rank, Region, Want,
};

/// The fabric of a host. There is none yet: no value of it exists.
#[derive(Debug)]
pub(crate) enum Wire {}

impl Fabric for Wire {
    fn me(&self) -> Rank {
        match *self {}
    }
    fn members(&self) -> usize {
        match *self {}
    }
    fn row(&self, _: Rank) -> &Region {
        match *self {}
    }
    fn store(&self, _: usize, _: u64) {
        match *self {}
    }
    fn push(&self, _: usize, _: usize, _: &PeerSet) {
        match *self {}
    }
    fn push_word(&self, _: usize, _: u64, _: &PeerSet) {
        match *self {}
    }
    fn ring(&self, _: &PeerSet, _: &PeerSet) {
        match *self {}
    }
    fn announce_sleep(&self, _: Want) {
        match *self {}
    }
    fn announce_awake(&self) {
        match *self {}
    }
    fn nudge(&self) {
        match *self {}
    }
    fn poll(&self) -> Option<Failure> {
        match *self {}
    }
    fn fence(&self, _: Rank) {
        match *self {}
    }
    fn counters(&self) -> FabricCounters {
        match *self {}
    }
}

impl Park for Wire {
    fn park(&self, _: Option<Duration>) -> bool {
        match *self {}
    }
}
