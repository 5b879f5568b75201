//! Random operations, with crashes between and within them.

use std::collections::BTreeSet;

use spindle_dds_transport::sim::Rng;

use super::super::layout::{RecordHead, chain};
use super::*;
use crate::storage::{Generation, Roster};

/// What the log is to contain.
#[derive(Default)]
struct Model {
    /// What was appended, or was to be.
    records: Vec<Expected>,
    /// How many of them are synced.
    synced: usize,
    /// What the log said that it has.
    appended: usize,
    /// Positions that compaction may have removed.
    superseded: BTreeSet<u64>,
    settled: u64,
    /// States of which one was recorded last.
    states: Vec<LogState>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Expected {
    position: u64,
    generation: u64,
    epoch: u64,
    chain: u32,
}

struct Life {
    rng: Rng,
    disk: SimDisk,
    log: TopicLog<SimDisk>,
    model: Model,
    is_power_cut: bool,
    compaction: Option<Compaction>,
}

impl Life {
    fn new(seed: u64) -> Self {
        let disk = SimDisk::default();
        let log = created(&disk).with_segment_bytes(1500);
        let model = Model {
            states: vec![log.state().clone()],
            ..Model::default()
        };
        Self {
            rng: Rng::new(seed),
            disk,
            log,
            model,
            is_power_cut: false,
            compaction: None,
        }
    }

    fn step(&mut self) {
        match self.rng.below(20) {
            0..=8 => self.append(),
            9..=11 => self.sync(),
            12 => self.truncate(),
            13 => self.record(),
            14 if self.compaction.is_none() => self.compact(),
            14 => self.compact_on(),
            15 => self.look(),
            16 => self.run_full(),
            17 => self.disk.fail_sync_after(self.rng.below(4) as u64),
            18 => {
                self.disk.cut_power_after(self.rng.below(9) as u64);
                self.is_power_cut = true;
            }
            _ => self.crash(),
        }
        if self.log.dead().is_some() {
            self.is_dead();
            self.crash();
        }
    }

    fn append(&mut self) {
        let model = &mut self.model;
        model.records.truncate(model.appended);
        let mut last = model.records.last().cloned();
        let base = last.as_ref().map_or((1, 1), |it| (it.generation, it.epoch));
        let generation = base.0 + self.rng.below(2) as u64;
        let epoch = base.1 + self.rng.below(2) as u64;
        let mut batch = Vec::new();
        for _ in 0..=self.rng.below(5) {
            let end = last.as_ref().map_or(0, |it| it.position + 1);
            let position = end + self.rng.below(3) as u64;
            let payload = payload(position);
            let head = RecordHead::new(generation, epoch, &meta(position), &payload);
            let before = last.as_ref().map_or(0, |it| it.chain);
            let expected = Expected {
                position,
                generation,
                epoch,
                chain: chain(before, head.crc),
            };
            last = Some(expected.clone());
            model.records.push(expected);
            batch.push((meta(position), payload));
        }
        let batch: Vec<_> = batch.iter().map(|(meta, it)| (*meta, &it[..])).collect();
        let result = self.log.append(generation, epoch, &batch);
        if result.is_ok() {
            self.model.appended = self.model.records.len();
        }
        self.note_synced();
    }

    /// The log syncs of its own accord too.
    fn note_synced(&mut self) {
        let synced = self.log.synced();
        let model = &mut self.model;
        let count = model.records.partition_point(|it| it.position < synced);
        model.synced = model.synced.max(count);
    }

    fn sync(&mut self) {
        if self.log.sync().is_ok() {
            assert_eq!(self.log.synced(), self.log.appended());
            self.model.synced = self.model.appended;
        }
    }

    fn truncate(&mut self) {
        let model = &mut self.model;
        let end = match self.rng.below(8) {
            0 => 0,
            _ => {
                let back = self.rng.below(30);
                let at = model.appended.saturating_sub(back);
                let ends = model.records[..at].last();
                ends.map_or(0, |it| it.position + 1 + self.rng.below(2) as u64)
            }
        };
        let kept = model.records.partition_point(|it| it.position < end);
        match self.log.truncate(end) {
            Ok(()) => {
                model.appended = model.appended.min(kept);
                model.records.truncate(model.appended);
                if end == 0 {
                    model.settled = 0;
                    model.superseded.clear();
                }
            }
            Err(LogError::Compacted { settled }) => {
                assert!((1..settled).contains(&end));
                assert!(settled <= model.settled);
                return;
            }
            // A crash has interrupted it.
            Err(_) if end == 0 => model
                .superseded
                .extend(model.records.iter().map(|it| it.position)),
            Err(_) => {}
        }
        self.note_synced();
        self.model.synced = self.model.synced.min(kept);
    }

    fn record(&mut self) {
        let mut state = self.log.state().clone();
        state.lineage = u128::from(self.rng.next_u64());
        state.proposed.truncate(3);
        state.proposed.push(Roster {
            generation: Generation {
                number: self.rng.next_u64(),
                ..Generation::default()
            },
            epoch: 3,
            logs: vec![LogId(1), ID],
        });
        self.model.states.push(state.clone());
        if self.log.record(state.clone()).is_ok() {
            self.model.states = vec![state];
            assert_eq!(self.log.synced(), self.log.appended());
        }
        self.note_synced();
    }

    fn compact(&mut self) {
        let synced = self.log.synced();
        let settled = self.rng.below(synced as usize + 1) as u64;
        // All but a few.
        let odd = self.rng.below(5) as u64;
        let keep = |meta: &RecordMeta| meta.position.is_multiple_of(3 + odd);
        let model = &mut self.model;
        model.settled = model.settled.max(settled);
        let below = model
            .records
            .iter()
            .map(|it| it.position)
            .filter(|it| *it < settled);
        model
            .superseded
            .extend(below.filter(|it| !keep(&meta(*it))));
        let live = model.records.iter().map(|it| it.position);
        let live = live.filter(|it| keep(&meta(*it))).collect();
        self.compaction = Some(Compaction::of_live(&self.log, settled, live));
        self.compact_on();
    }

    /// Some steps of what was begun.
    fn compact_on(&mut self) {
        let Some(mut compaction) = self.compaction.take() else {
            return;
        };
        let bytes = self.log.figures().bytes;
        let mut is_done = false;
        for _ in 0..self.rng.below(12) {
            let bytes_max = self.rng.below(600) as u64;
            let step = compaction.step(&mut self.log, &|it, _| it.meta().key, bytes_max);
            is_done |= step != Ok(true);
        }
        assert!(self.log.figures().bytes <= bytes);
        self.compaction = Some(compaction).filter(|_| !is_done);
        self.note_synced();
    }

    /// No room for an append: nothing is lost, and it goes on when there is room.
    fn run_full(&mut self) {
        self.disk
            .set_capacity(Some(self.disk.used() + self.rng.below(300) as u64));
        let before = self.log.last();
        self.append();
        if self.log.dead().is_none() && self.model.appended < self.model.records.len() {
            assert_eq!(self.log.last(), before);
        }
        self.disk.set_capacity(None);
    }

    fn is_dead(&mut self) {
        let synced = self.log.synced();
        self.log.sync().unwrap_err();
        self.log.append(9, 9, &[(meta(1 << 40), &[])]).unwrap_err();
        self.log.truncate(0).unwrap_err();
        let state = self.log.state().clone();
        self.log.record(state).unwrap_err();
        assert_eq!(self.log.synced(), synced);
    }

    fn crash(&mut self) {
        self.compaction = None;
        // Power may be cut within what failed: then it is the power that failed.
        match self.rng.below(3) {
            0 if !self.is_power_cut => self.disk.end_process(),
            _ => self.disk.crash(&mut self.rng),
        }
        self.is_power_cut = false;
        let read_only = TopicLog::open_read_only(self.disk.clone());
        let read_only = read_only.unwrap().unwrap();
        let before = self.disk.contents();
        let (log, report) = opened(&self.disk);
        assert_eq!(report, read_only.1);
        assert_eq!(log.last(), read_only.0.last());
        if report == OpenReport::default() {
            assert_eq!(self.disk.contents(), before);
        }
        self.log = log.with_segment_bytes(1500);
        assert!(self.model.states.contains(self.log.state()));
        self.model.states = vec![self.log.state().clone()];
        self.check();
        // The disk has what was found.
        self.disk.lose_unsynced();
        let end = self.log.appended();
        let (log, report) = opened(&self.disk);
        assert_eq!(report, OpenReport::default());
        self.log = log.with_segment_bytes(1500);
        assert_eq!(self.log.appended(), end);
    }

    /// What was synced is there, and nothing that was not appended.
    fn check(&mut self) {
        let read = self.log.read(0, usize::MAX).unwrap();
        let model = &mut self.model;
        let mut expected = model.records.iter();
        for logged in &read {
            let position = logged.record.position();
            let found = expected.find(|it| {
                let is_it = it.position == position;
                assert!(
                    is_it || model.superseded.contains(&it.position),
                    "{position}"
                );
                is_it
            });
            let found = found.expect("a record that was never appended");
            assert_eq!(logged.record.payload(), payload(position));
            assert_eq!(logged.record.meta(), meta(position));
            assert_eq!(
                (logged.chain, logged.generation),
                (found.chain, found.generation)
            );
            assert_eq!(logged.epoch, found.epoch);
        }
        let end = read
            .last()
            .map_or_else(|| self.log.appended(), LoggedRecord::end);
        assert_eq!(self.log.appended(), end);
        let kept = model.records.partition_point(|it| it.position < end);
        let lost = model.records[..model.synced].iter().skip(kept);
        for lost in lost {
            assert!(
                model.superseded.contains(&lost.position),
                "{lost:?} is lost"
            );
        }
        model.records.truncate(kept);
        model.appended = kept;
        model.synced = kept;
        assert_eq!(self.log.verify(&mut |_| ()).unwrap().damaged, []);
    }

    fn look(&mut self) {
        let end = self.log.appended() as usize + 3;
        let from = self.rng.below(end) as u64;
        let all = self.log.read(0, usize::MAX).unwrap();
        let part = self.log.read(from, self.rng.below(2000)).unwrap();
        let rest: Vec<_> = all
            .iter()
            .filter(|it| it.record.position() >= from)
            .collect();
        assert!(part.iter().eq(rest.iter().take(part.len()).copied()));
        assert!(!part.is_empty() || rest.is_empty());
        if let Some(before) = all.iter().rev().find(|it| it.end() <= from) {
            assert_eq!(
                self.log.chain_before(from).unwrap(),
                (before.end(), before.chain)
            );
        }
        if let Some(at) = all.len().checked_sub(1) {
            let at = self.rng.below(at + 1);
            let steps = self.rng.below(at + 1);
            let back = self.log.step_back(all[at].end(), steps as u64).unwrap();
            assert_eq!(back, all[at - steps].end());
        }
    }
}

#[test]
fn what_was_synced_outlasts_crashes_and_nothing_else_appears() {
    let seeds = std::env::var("LOG_SEEDS").map_or(400, |seeds| seeds.parse().unwrap());
    for seed in 0..seeds {
        println!("seed {seed}");
        let mut life = Life::new(seed);
        for _ in 0..150 {
            life.step();
        }
        life.crash();
    }
}
