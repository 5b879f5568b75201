//! Which readers of this participant a delivery goes to, and what is kept of it.

use std::ops::Range;
use std::sync::Arc;

use spindle_dds_core::{Delivery, DeliveryClass, MessageKind, SubgroupId};
use spindle_dds_transport::Rank;

use super::arrival::ArrivalBatch;
use super::reader_epoch::ReaderEpoch;
use super::reader_port::ReaderPort;
use crate::history::{FeedItem, HeldMessage, KeptWriter, LogItem, LoggedTopic, record_meta};
use crate::wire::Wire;

/// The readers of this participant by subgroup and topic. Made anew by each view.
#[derive(Default)]
pub(crate) struct Routes {
    /// Sorted by subgroup and topic.
    routes: Vec<Route>,
    /// Topics of which messages are kept, sorted in the same way.
    kept: Vec<KeptTopic>,
    /// The result of the last `find`: messages of a topic come in runs.
    last: Option<((SubgroupId, u64), Found)>,
}

/// The readers of a topic, and how its messages go to them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    begin: usize,
    end: usize,
    pub(crate) path: Path,
}

/// How the messages of a topic go to its readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Path {
    /// There is no reader: they are skipped.
    Unread,
    /// To one reader, directly.
    Direct,
    /// One by one: there are several readers, or messages are kept.
    Each,
}

/// A topic of which messages are kept here.
pub(crate) struct KeptTopic {
    subgroup: SubgroupId,
    /// Low half of the topic's key.
    topic: u64,
    /// The first position of the subgroup epoch.
    base: u64,
    /// The writers whose messages are kept, sorted by rank and number.
    writers: Vec<(Rank, u32, Arc<KeptWriter>)>,
    /// The log of the topic.
    log: Option<Arc<LoggedTopic>>,
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
    /// Stands for what is kept, among the indexes of routes.
    pub(crate) const KEPT: usize = usize::MAX;

    pub(crate) fn new(mut routes: Vec<Route>, mut kept: Vec<KeptTopic>) -> Self {
        routes.sort_by_key(Route::key);
        kept.sort_by_key(KeptTopic::key);
        Self {
            routes,
            kept,
            last: None,
        }
    }

    /// The readers of a topic.
    #[inline]
    pub(crate) fn of(&mut self, subgroup: SubgroupId, topic: u64) -> Found {
        match &self.last {
            Some((last, found)) if *last == (subgroup, topic) => *found,
            _ => self.find((subgroup, topic)),
        }
    }

    fn find(&mut self, key: (SubgroupId, u64)) -> Found {
        let begin = self.routes.partition_point(|route| route.key() < key);
        let len = self.routes[begin..].partition_point(|route| route.key() == key);
        let path = match (self.kept_topic(key), len) {
            (Some(_), _) | (None, 2..) => Path::Each,
            (None, 1) => Path::Direct,
            (None, 0) => Path::Unread,
        };
        let end = begin + len;
        let found = Found { begin, end, path };
        self.last = Some((key, found));
        found
    }

    fn kept_topic(&self, key: (SubgroupId, u64)) -> Option<&KeptTopic> {
        let found = self.kept.binary_search_by_key(&key, KeptTopic::key);
        found.ok().map(|at| &self.kept[at])
    }

    /// Whether messages of any topic are kept.
    pub(crate) fn keeps_any(&self) -> bool {
        !self.kept.is_empty()
    }

    /// What is to be kept of a message, which stays in its ring until then.
    pub(crate) fn keep(&self, delivery: &Delivery<'_, Wire>) -> Option<FeedItem> {
        let header = delivery.header;
        let topic = self.kept_topic((delivery.subgroup.id(), header.topic))?;
        if header.kind == MessageKind::Control {
            return None;
        }
        let writer = topic.writer(delivery.sender, header.writer)?;
        let position = match delivery.class {
            DeliveryClass::Ordered => delivery.position,
            DeliveryClass::Unordered => topic.base,
        };
        Some(FeedItem::Message {
            meta: record_meta(header, writer.guid, position),
            writer: writer.clone(),
            held: delivery.hold(),
        })
    }

    /// What is to be logged of a message that is kept, which stays in its ring until then.
    pub(crate) fn log(&self, delivery: &Delivery<'_, Wire>) -> Option<LogItem> {
        let header = delivery.header;
        let topic = self.kept_topic((delivery.subgroup.id(), header.topic))?;
        let log = topic.log.as_ref()?;
        let writer = topic.writer(delivery.sender, header.writer)?;
        if !writer.is_logged() || delivery.class != DeliveryClass::Ordered {
            return None;
        }
        Some(LogItem::Message {
            topic: log.clone(),
            meta: record_meta(header, writer.guid, delivery.position),
            held: HeldMessage::new(delivery.hold()),
        })
    }

    #[inline]
    pub(crate) fn route(&mut self, index: usize) -> &mut Route {
        &mut self.routes[index]
    }

    /// Hands on what has arrived by a route. False for what is kept.
    #[inline]
    pub(crate) fn settle(&mut self, index: usize) -> bool {
        let Some(route) = self.routes.get_mut(index) else {
            return false;
        };
        route.port.settle(&route.epoch, &mut route.batch);
        route.batch.is_touched = false;
        true
    }

    /// The readers in a subgroup.
    pub(crate) fn at(&self, subgroup: SubgroupId) -> &[Route] {
        let begin = (self.routes).partition_point(|route| route.subgroup < subgroup);
        let rest = &self.routes[begin..];
        &rest[..rest.partition_point(|route| route.subgroup == subgroup)]
    }

    /// Whether there is a reader in a subgroup, or messages are kept.
    #[inline]
    pub(crate) fn has(&self, subgroup: SubgroupId) -> bool {
        match &self.last {
            Some(((last, _), found)) if *last == subgroup && found.path != Path::Unread => true,
            _ => !(self.routes.is_empty() && self.kept.is_empty()) && self.has_at(subgroup),
        }
    }

    #[inline(never)]
    fn has_at(&self, subgroup: SubgroupId) -> bool {
        !self.at(subgroup).is_empty() || self.keeps_at(subgroup)
    }

    fn keeps_at(&self, subgroup: SubgroupId) -> bool {
        self.kept.iter().any(|topic| topic.subgroup == subgroup)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Route> {
        self.routes.iter()
    }
}

impl Found {
    /// The indexes of the readers.
    #[inline]
    pub(crate) fn readers(&self) -> Range<usize> {
        self.begin..self.end
    }
}

impl KeptTopic {
    pub(crate) fn new(
        (subgroup, topic): (SubgroupId, u64),
        base: u64,
        mut writers: Vec<(Rank, u32, Arc<KeptWriter>)>,
    ) -> Self {
        writers.sort_by_key(|(rank, number, _)| (*rank, *number));
        Self {
            subgroup,
            topic,
            base,
            writers,
            log: None,
        }
    }

    /// With the log of the topic.
    pub(crate) fn logged(mut self, log: Option<Arc<LoggedTopic>>) -> Self {
        self.log = log;
        self
    }

    fn key(&self) -> (SubgroupId, u64) {
        (self.subgroup, self.topic)
    }

    fn writer(&self, rank: Rank, number: u32) -> Option<&Arc<KeptWriter>> {
        let key = |(rank, number, _): &(Rank, u32, _)| (*rank, *number);
        let found = self.writers.binary_search_by_key(&(rank, number), key);
        found.ok().map(|at| &self.writers[at].2)
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
