//! Random lives of a durable reader, against plain lists.
//!
//! What is delivered to the reader is one list of items, as are the records of each transfer. The model
//! walks the list: nothing is kept aside, no cache is full, nothing is skipped before it is due. And
//! whatever happens, each writer's samples are shown from the first on, in order, without a gap and once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use spindle_dds_transport::sim::Rng;

use super::*;

/// What is delivered, in order.
#[derive(Debug, Clone)]
enum Item {
    /// These writers match; a transfer comes first.
    Enter(BTreeSet<u8>, Option<u64>),
    Sample(u8, u64),
    Loss,
}

#[derive(Default)]
struct Model {
    items: VecDeque<Item>,
    awaited: Option<u64>,
    /// Transfers before the group is lost that is not yet in the past.
    is_cut_off: bool,
    matched: BTreeSet<u8>,
    /// Writers whose history is awaited.
    first: BTreeSet<u8>,
    shown: Vec<(u8, u64)>,
}

impl Model {
    fn has_loss(&self) -> bool {
        self.items.iter().any(|it| matches!(it, Item::Loss))
    }

    /// Walks as far as no history is awaited.
    fn walk(&mut self) {
        loop {
            if self.has_loss() && self.awaited.take().is_some() {
                self.is_cut_off = true;
            }
            if self.awaited.is_some() {
                return;
            }
            let Some(item) = self.items.pop_front() else {
                return;
            };
            match item {
                Item::Sample(writer, _) if self.is_cut_off && self.first.contains(&writer) => {}
                Item::Sample(writer, sequence) => self.shown.push((writer, sequence)),
                Item::Loss => {
                    self.is_cut_off = false;
                    self.first.clear();
                    self.matched.clear();
                }
                Item::Enter(writers, awaits) => {
                    if awaits.is_some() {
                        self.first.extend(writers.difference(&self.matched));
                    }
                    self.matched = writers;
                    let matched = &self.matched;
                    self.first.retain(|writer| matched.contains(writer));
                    self.awaited = awaits;
                }
            }
        }
    }
}

/// A transfer that is under way.
struct Transfer {
    id: u64,
    /// As it was when its epoch began.
    history: Vec<(u8, u64)>,
    /// From when it has begun.
    records: Option<VecDeque<Record>>,
}

struct Life {
    rng: Rng,
    it: Fixture,
    model: Model,
    /// How many samples each writer has written, and all of them in order.
    written: BTreeMap<u8, u64>,
    log: Vec<(u8, u64)>,
    /// Writers of the present epoch.
    matched: BTreeSet<u8>,
    is_out: bool,
    transfers: Vec<Transfer>,
    transfers_begun: u64,
    shown: Vec<(u8, u64)>,
}

const WRITERS: u8 = 4;

impl Life {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let limits = match rng.chance(0.5) {
            true => max_samples(1 + rng.below(20) as u32),
            false => ResourceLimits::default(),
        };
        let aside_bytes = *rng.pick(&[1, 2000, 1 << 20]).expect("some");
        Self {
            it: Fixture::new(Settings {
                limits,
                aside_bytes,
                ..Settings::default()
            }),
            rng,
            model: Model::default(),
            written: BTreeMap::new(),
            log: Vec::new(),
            matched: BTreeSet::new(),
            is_out: false,
            transfers: Vec::new(),
            transfers_begun: 0,
            shown: Vec::new(),
        }
    }

    fn write(&mut self, writer: u8) {
        let sequence = self.written.entry(writer).or_default();
        *sequence += 1;
        let sample = (writer, *sequence);
        self.log.push(sample);
        if !self.is_out && self.matched.contains(&writer) {
            self.model.items.push_back(Item::Sample(sample.0, sample.1));
            self.it.deliver([(Data, sample.0, sample.1, writer)]);
        } else {
            self.it.position += 1;
        }
    }

    /// An epoch begins: with other writers, or some more, or less. Those that have written before are
    /// asked for it where they are new.
    fn begin(&mut self) {
        let before = std::mem::take(&mut self.matched);
        for writer in 1..=WRITERS {
            let stays = before.contains(&writer) && self.rng.chance(0.9);
            if stays || self.rng.chance(0.4) {
                self.matched.insert(writer);
            }
        }
        let new = self.matched.difference(&before);
        let asks = new.clone().any(|writer| self.written.contains_key(writer));
        // Not only for new writers, as after a return of a member.
        let awaits = (asks || self.rng.chance(0.1)).then(|| {
            self.transfers_begun += 1;
            self.transfers_begun
        });
        if let Some(id) = awaits {
            let is_kept = |sample: &&(u8, u64)| self.matched.contains(&sample.0);
            self.transfers.push(Transfer {
                id,
                history: self.log.iter().filter(is_kept).copied().collect(),
                records: None,
            });
        }
        self.model
            .items
            .push_back(Item::Enter(self.matched.clone(), awaits));
        let matched: Vec<u8> = self.matched.iter().copied().collect();
        self.it.begin(&matched, Departure::Failed, awaits);
        self.is_out = false;
    }

    fn lose_group(&mut self) {
        if self.is_out || self.model.items.is_empty() && self.matched.is_empty() {
            return;
        }
        self.model.items.push_back(Item::Loss);
        self.it.lose_group();
        self.matched.clear();
        self.is_out = true;
    }

    /// What brings the history does something.
    fn bring(&mut self) {
        let Some(transfer) = self.transfers.first_mut() else {
            return;
        };
        if transfer.records.is_none() {
            let Some(lasts) = self.it.port.begin_history(TransferId(transfer.id)) else {
                // A full cache keeps the reader behind the model.
                assert!(self.it.port.is_full() || self.model.awaited != Some(transfer.id));
                return;
            };
            let is_new =
                |(writer, sequence): &(u8, u64)| lasts.get(&[*writer; 16]) < Some(sequence);
            // Sometimes it does not look at what was asked for.
            let looks = self.rng.chance(0.8);
            let samples = transfer.history.iter().filter(|it| !looks || is_new(it));
            let history = samples.map(|(writer, sequence)| (Data, *writer, *sequence, *writer));
            transfer.records = Some(records(history));
        }
        let Some(records) = &mut transfer.records else {
            return;
        };
        let mut some: VecDeque<_> = records.drain(..self.rng.below(records.len() + 1)).collect();
        let before: Vec<_> = some.iter().map(|it| it.meta()).collect();
        let offer = self.it.offer(transfer.id, &mut some);
        if offer == HistoryOffer::Closed {
            assert_ne!(self.model.awaited, Some(transfer.id));
            self.transfers.remove(0);
            return;
        }
        assert_eq!(self.model.awaited, Some(transfer.id));
        assert_eq!(offer == HistoryOffer::Taken, some.is_empty());
        for meta in &before[..before.len() - some.len()] {
            let sample = (meta.writer[0], meta.sequence);
            if !self.model.shown.contains(&sample) {
                self.model.shown.push(sample);
            }
        }
        some.extend(records.drain(..));
        *records = some;
        if records.is_empty() && self.rng.chance(0.5) {
            let mut lasts = BTreeMap::new();
            lasts.extend(transfer.history.iter().copied());
            let end = end_of(&Vec::from_iter(lasts));
            assert!(self.it.port.end_history(TransferId(transfer.id), &end));
            self.model.awaited = None;
            self.model.first.clear();
            self.transfers.remove(0);
        }
    }

    fn take(&mut self) {
        let max = 1 + self.rng.below(30);
        let shown = self.it.take(max).into_iter();
        self.shown
            .extend(shown.filter(|it| it.3).map(|it| (it.0, it.1)));
    }

    fn step(&mut self) {
        match self.rng.below(100) {
            0..50 => {
                let writer = 1 + self.rng.below(WRITERS.into()) as u8;
                self.write(writer);
            }
            50..58 => self.begin(),
            58..61 => self.lose_group(),
            61..85 => self.bring(),
            _ => self.take(),
        }
        self.model.walk();
        self.check();
    }

    fn check(&self) {
        let model = &self.model.shown;
        assert!(model.starts_with(&self.shown), "{model:?} {:?}", self.shown);
        let mut lasts = BTreeMap::new();
        for (writer, sequence) in model {
            let last = lasts.insert(*writer, *sequence).unwrap_or(0);
            assert_eq!(*sequence, last + 1, "of {writer}: {model:?}");
        }
    }

    /// All writers match in the end, and all comes.
    fn end(&mut self) {
        while (1..=WRITERS).any(|writer| !self.matched.contains(&writer)) {
            self.begin();
            self.model.walk();
        }
        for _ in 0..5000 {
            if self.transfers.is_empty() && self.model.shown.len() == self.shown.len() {
                break;
            }
            self.bring();
            self.model.walk();
            self.take();
            self.check();
        }
        let mut all = self.log.clone();
        let mut shown = self.shown.clone();
        all.sort_unstable();
        shown.sort_unstable();
        assert_eq!(shown, all);
        assert!(self.it.port.is_ready(&self.it.epoch) && !self.it.port.is_full());
        assert_eq!(self.it.port.has_historical_data(), Some(Ok(())));
        assert_eq!(self.it.lost(), 0);
        assert_eq!(self.it.matched(), self.matched);
    }
}

#[test]
fn each_writer_is_shown_from_its_first_sample_on_whatever_happens() {
    for seed in 0..300 {
        let mut life = Life::new(seed);
        for _ in 0..300 {
            life.step();
        }
        life.end();
    }
}
