//! The pulling side of a transfer.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use spindle_dds_core::membership::View;
use spindle_dds_core::storage::{Cursor, Joiner, JoinerAsk, JoinerState, Record, RecordMeta};

use super::announcement::{Guid, Level};
use super::facts::{SourceEnd, StorageFact};
use super::matching::{Source, Transfer, Wanted};
use super::packets::{Body, Packet};

/// A transfer that a member pulls.
#[derive(Debug)]
pub(super) struct Pull {
    pub(super) transfer: Transfer,
    joiner: Joiner<Source>,
    /// What the reader has of each writer already.
    after: BTreeMap<Guid, u64>,
    /// Of each source its donors and writers, and the cursors of each part that is unread.
    sources: Vec<(Vec<Source>, Vec<Guid>)>,
    unread: Vec<VecDeque<BTreeSet<Cursor>>>,
    asked: BTreeSet<Source>,
    ended: BTreeSet<Source>,
    came: Vec<RecordMeta>,
}

impl Pull {
    /// `view` is the present view: donors that are not in it are lost.
    pub(super) fn new(wanted: &Wanted, after: BTreeMap<Guid, u64>, view: &View) -> Self {
        let unread = wanted.sources.iter().map(|_| VecDeque::new()).collect();
        let mut pull = Self {
            transfer: wanted.transfer,
            joiner: Joiner::new(wanted.sources.iter().cloned()),
            after,
            sources: wanted
                .sources
                .iter()
                .cloned()
                .zip(wanted.writers.iter().cloned())
                .collect(),
            unread,
            asked: BTreeSet::new(),
            ended: BTreeSet::new(),
            came: Vec::new(),
        };
        pull.view_begins(view);
        pull
    }

    /// Donors that are not members any more are lost.
    pub(super) fn view_begins(&mut self, view: &View) {
        let donors = self.sources.iter().flat_map(|(donors, _)| donors);
        for donor in donors {
            if view.rank(donor.0).is_none() {
                self.joiner.lost(*donor);
            }
        }
    }

    /// What is to be sent.
    pub(super) fn packets(&mut self) -> Vec<Packet> {
        let transfer = self.transfer;
        let packet = |donor: Source, body| Packet {
            from: transfer.member,
            to: donor.0,
            transfer,
            level: donor.1,
            body,
        };
        let asks = self.joiner.asks().into_iter();
        let packets = asks.map(|ask| match ask {
            JoinerAsk::Ask { donor, from, parts } => {
                self.asked.insert(donor);
                let after = self.after.clone();
                packet(donor, Body::Ask { after, from, parts })
            }
            JoinerAsk::More { donor } => packet(donor, Body::More),
        });
        packets.collect()
    }

    /// A donor answers.
    pub(super) fn receive(&mut self, donor: Source, body: Body, facts: &mut Vec<StorageFact>) {
        let transfer = self.transfer;
        match body {
            Body::Part(bytes) => match self.joiner.part(donor, &bytes) {
                Ok(()) => {
                    if let Some(parts) = self.note_part(donor, &bytes) {
                        facts.push(StorageFact::Unread { transfer, parts });
                    }
                }
                Err(error) => {
                    let why = error.to_string();
                    facts.push(StorageFact::Refused { transfer, why });
                }
            },
            Body::End(lasts) => {
                if self.joiner.donors().any(|it| it == donor) {
                    self.ended.insert(donor);
                }
                self.joiner.end(donor, lasts);
            }
            Body::Unknown { was_dropped } if self.joiner.donors().any(|it| it == donor) => {
                facts.push(StorageFact::Unknown {
                    transfer,
                    was_dropped,
                });
                self.joiner.lost(donor);
            }
            Body::Unknown { .. } | Body::Ask { .. } | Body::More => {}
        }
    }

    /// Parts of the donor's source that are unread. `None` if the donor is not asked any more.
    fn note_part(&mut self, donor: Source, mut bytes: &[u8]) -> Option<usize> {
        self.joiner.donors().find(|it| *it == donor)?;
        let at = self
            .sources
            .iter()
            .position(|(donors, _)| donors.contains(&donor))?;
        let records = core::iter::from_fn(|| Record::read(&mut bytes));
        self.unread[at].push_back(records.map(|it| it.cursor()).collect());
        Some(self.unread[at].len())
    }

    /// The next record.
    pub(super) fn next(&mut self) -> Option<Record> {
        let record = self.joiner.next_record()?;
        for parts in &mut self.unread {
            for part in parts.iter_mut() {
                part.remove(&record.cursor());
            }
            parts.retain(|part| !part.is_empty());
        }
        self.came.push(record.meta());
        Some(record)
    }

    /// What became of it, when all was handed out.
    pub(super) fn ended(&self) -> Option<StorageFact> {
        let JoinerState::Done { lost_sources } = self.joiner.state() else {
            return None;
        };
        let sources = self.sources.iter().map(|(donors, writers)| SourceEnd {
            asked: donors
                .iter()
                .copied()
                .filter(|it| self.asked.contains(it))
                .collect(),
            is_lost: lost_sources > 0 && !donors.iter().any(|it| self.ended.contains(it)),
            writers: writers.clone(),
            level: donors.first().map_or(Level::Transient, |donor| donor.1),
        });
        Some(StorageFact::Transferred {
            transfer: self.transfer,
            after: self.after.clone(),
            sources: sources.collect(),
            came: self.came.clone(),
        })
    }

    /// The last sequence number of each writer before the boundary.
    pub(super) fn lasts(&self) -> &BTreeMap<Guid, u64> {
        self.joiner.lasts()
    }
}
