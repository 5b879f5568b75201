//! A reader with a storage level: shows history first, then what was kept aside, then what is live.

use std::collections::{BTreeMap, VecDeque};

use spindle_dds_core::membership::View;
use spindle_dds_core::storage::{Handover, RecordMeta};
use spindle_dds_transport::sim::Rng;

use super::announcement::{Guid, Level};
use super::facts::StorageFact;
use super::keeper::Arrival;
use super::matching::{Transfer, Wanted};
use super::packets::Packet;
use super::transfer::Pull;

/// What a reader may keep aside: a few messages.
const ASIDE_BYTES: usize = 200;

/// What comes to a reader, in order.
#[derive(Debug)]
pub(super) enum Incoming {
    Message(Arrival),
    /// An epoch begins, of which it awaits history.
    Await(Wanted),
}

/// The same, kept aside: copied out of the rings.
#[derive(Debug)]
enum Aside {
    Message(RecordMeta),
    Await(Wanted),
}

#[derive(Debug)]
pub(super) struct Reader {
    pub(super) guid: Guid,
    pub(super) level: Level,
    /// The last sequence number that it has shown of each writer.
    known: BTreeMap<Guid, u64>,
    pub(super) inbox: VecDeque<Incoming>,
    handover: Handover<Aside>,
    /// The transfer that it awaits.
    pub(super) pull: Option<Pull>,
}

impl Reader {
    pub(super) fn new(guid: Guid, level: Level) -> Self {
        Self {
            guid,
            level,
            known: BTreeMap::new(),
            inbox: VecDeque::new(),
            handover: Handover::new(ASIDE_BYTES),
            pull: None,
        }
    }

    /// Its participant has lost its group: what it knows stays.
    pub(super) fn lose_group(&mut self) {
        self.inbox.clear();
        self.handover.clear();
        self.pull = None;
    }

    /// The application reads a little.
    pub(super) fn act(
        &mut self,
        view: &View,
        rng: &mut Rng,
        facts: &mut Vec<StorageFact>,
    ) -> Vec<Packet> {
        for _ in 0..1 + rng.below(6) {
            if !self.read(view, facts) {
                break;
            }
        }
        self.take_in(view, facts);
        self.pull.iter_mut().flat_map(Pull::packets).collect()
    }

    /// Shows the next message. Returns false if there is none.
    fn read(&mut self, view: &View, facts: &mut Vec<StorageFact>) -> bool {
        if let Some(pull) = &mut self.pull
            && let Some(record) = pull.next()
        {
            let transfer = Some(pull.transfer);
            self.show(record.meta(), transfer, facts);
            return true;
        }
        if let Some(fact) = self.pull.as_ref().and_then(Pull::ended) {
            facts.push(fact);
            self.pull = None;
            self.handover.end();
        }
        match self.handover.pop() {
            Some(Aside::Message(meta)) => self.show(meta, None, facts),
            Some(Aside::Await(wanted)) => self.await_history(&wanted, view),
            None => return false,
        }
        true
    }

    /// Takes what is live, or keeps it aside. What finds no room stays in its ring.
    fn take_in(&mut self, view: &View, facts: &mut Vec<StorageFact>) {
        while let Some(incoming) = self.inbox.pop_front() {
            if self.handover.is_live() {
                match incoming {
                    Incoming::Message(arrival) => self.show(arrival.meta, None, facts),
                    Incoming::Await(wanted) => self.await_history(&wanted, view),
                }
                continue;
            }
            let (aside, bytes) = match &incoming {
                Incoming::Message(arrival) => {
                    (Aside::Message(arrival.meta), arrival.held.bytes().len() + 1)
                }
                Incoming::Await(wanted) => (Aside::Await(wanted.clone()), 0),
            };
            if self.handover.offer(aside, bytes).is_err() {
                return self.inbox.push_front(incoming);
            }
            facts.push(StorageFact::Aside {
                reader: self.guid,
                items: self.handover.len(),
                bytes: self.handover.bytes(),
                bytes_max: ASIDE_BYTES,
            });
        }
    }

    fn await_history(&mut self, wanted: &Wanted, view: &View) {
        self.handover.begin();
        self.pull = Some(Pull::new(wanted, self.known.clone(), view));
    }

    fn show(
        &mut self,
        message: RecordMeta,
        transfer: Option<Transfer>,
        facts: &mut Vec<StorageFact>,
    ) {
        let known = self.known.entry(message.writer).or_default();
        *known = (*known).max(message.sequence);
        facts.push(StorageFact::Shown {
            reader: self.guid,
            transfer,
            message,
        });
    }

    pub(super) fn is_awaiting(&self) -> bool {
        self.handover.is_awaiting()
    }

    pub(super) fn aside_bytes(&self) -> usize {
        self.handover.bytes()
    }

    pub(super) fn is_at_rest(&self) -> bool {
        self.inbox.is_empty() && self.handover.is_live() && self.pull.is_none()
    }
}
