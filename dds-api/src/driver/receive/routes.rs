//! Which readers of this participant a delivery goes to.

use std::ops::Range;
use std::sync::Arc;

use spindle_dds_core::SubgroupId;

use super::arrival::ArrivalBatch;
use super::reader_epoch::ReaderEpoch;
use super::reader_port::ReaderPort;
use crate::wire::Wire;

/// The readers of this participant by subgroup and topic. Made anew by each view.
#[derive(Default)]
pub(crate) struct Routes {
    /// Sorted by subgroup and topic.
    routes: Vec<Route>,
    /// The result of the last `find`: messages of a topic come in runs.
    last: Option<((SubgroupId, u64), Range<usize>)>,
}

/// One reader of a topic.
pub(crate) struct Route {
    subgroup: SubgroupId,
    /// Low half of the topic's key.
    topic: u64,
    pub(crate) port: Arc<ReaderPort<Wire>>,
    /// The reader's last epoch.
    pub(crate) epoch: Arc<ReaderEpoch<Wire>>,
    /// What has arrived and not been handed on.
    pub(crate) batch: ArrivalBatch<Wire>,
}

impl Routes {
    pub(crate) fn new(mut routes: Vec<Route>) -> Self {
        routes.sort_by_key(Route::key);
        Self { routes, last: None }
    }

    /// The indexes of the readers of a topic.
    #[inline]
    pub(crate) fn of(&mut self, subgroup: SubgroupId, topic: u64) -> Range<usize> {
        match &self.last {
            Some((last, found)) if *last == (subgroup, topic) => found.clone(),
            _ => self.find((subgroup, topic)),
        }
    }

    fn find(&mut self, key: (SubgroupId, u64)) -> Range<usize> {
        let begin = self.routes.partition_point(|route| route.key() < key);
        let len = self.routes[begin..].partition_point(|route| route.key() == key);
        self.last = Some((key, begin..begin + len));
        begin..begin + len
    }

    #[inline]
    pub(crate) fn route(&mut self, index: usize) -> &mut Route {
        &mut self.routes[index]
    }

    /// Hands on what has arrived by a route.
    pub(crate) fn settle(&mut self, index: usize) {
        let route = &mut self.routes[index];
        route.port.settle(&route.epoch, &mut route.batch);
        route.batch.is_touched = false;
    }

    /// The readers in a subgroup.
    pub(crate) fn at(&self, subgroup: SubgroupId) -> &[Route] {
        let begin = (self.routes).partition_point(|route| route.subgroup < subgroup);
        let rest = &self.routes[begin..];
        &rest[..rest.partition_point(|route| route.subgroup == subgroup)]
    }

    /// Whether there is a reader in a subgroup.
    pub(crate) fn has(&self, subgroup: SubgroupId) -> bool {
        match &self.last {
            Some(((last, _), readers)) if *last == subgroup && !readers.is_empty() => true,
            _ => !self.at(subgroup).is_empty(),
        }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Route> {
        self.routes.iter()
    }
}

impl Route {
    pub(crate) fn new(
        (subgroup, topic): (SubgroupId, u64),
        port: Arc<ReaderPort<Wire>>,
        epoch: Arc<ReaderEpoch<Wire>>,
    ) -> Self {
        Self {
            subgroup,
            topic,
            port,
            epoch,
            batch: ArrivalBatch::new(),
        }
    }

    fn key(&self) -> (SubgroupId, u64) {
        (self.subgroup, self.topic)
    }
}
