//! Compaction among the random actions, each log for itself.

use super::*;
use crate::storage::SampleHistory;
use crate::storage::log::LoggedRecord;

/// Of few records.
pub(super) const SEGMENT_BYTES: u64 = 400;

/// KEEP_ALL, which is not compacted, or KEEP_LAST.
pub(super) fn limits(random: &mut Random) -> HistoryLimits {
    let depth = [None, Some(1), Some(1), Some(2)][random.below(4)];
    HistoryLimits {
        depth,
        cleanup_delay_ns: Some(0),
        ..HistoryLimits::default()
    }
}

pub(super) fn kind(random: &mut Random) -> MessageKind {
    match random.below(10) {
        0 => MessageKind::Dispose,
        1 => MessageKind::DisposeUnregister,
        _ => MessageKind::Data,
    }
}

/// What a host knows of the messages of a topic.
pub(super) struct Known {
    logged: Vec<LoggedRecord>,
    /// Values of all, oldest first.
    values: Vec<u64>,
}

impl Known {
    pub(super) fn of(host: &mut Host) -> Self {
        let keeper = host.keeper.as_mut().unwrap();
        let logged = records(keeper);
        let mut values: Vec<u64> = logged.iter().map(|it| it.record.meta().sequence).collect();
        values.extend(keeper.live.iter().map(|it| it.meta.sequence));
        let waiting = host.inbox.iter().filter_map(|item| match item {
            Item::Message(meta, _) => Some(meta.sequence),
            Item::View(_) => None,
        });
        values.extend(waiting);
        Self { logged, values }
    }
}

impl World {
    /// Some steps of the compaction of one log.
    pub(super) fn compact(&mut self, at: usize) {
        // What is removed was acknowledged.
        self.acknowledge();
        let (now_ns, group) = (self.now_ns, self.hosts[at].group);
        let loggers = match self.takes_samples(group) {
            true => self.groups[group].logs.as_ref().unwrap().loggers.clone(),
            false => Vec::new(),
        };
        let view = self.groups[group].view;
        let is_one = |host: &Host| loggers.iter().any(|it| it.member == host.member);
        let words = self.hosts.iter().filter(|it| is_one(it));
        let words = words.map(|host| host.word.1);
        let host = &self.hosts[at];
        let settled = match is_one(host) && host.word.0 == view {
            true => words.min().unwrap_or(0),
            false => 0,
        };
        let time = CompactionTime {
            now_ns,
            wall_ns: now_ns,
        };
        let steps = self.random.below(30);
        let bytes_max = self.random.below(800) as u64;
        let Some(keeper) = &mut self.hosts[at].keeper else {
            return;
        };
        let before = keeper.log.figures();
        for _ in 0..steps {
            keeper.compact_on(settled, &|it, _| it.meta().key, time, bytes_max);
        }
        assert_eq!(keeper.compaction_failure(), None);
        let after = keeper.log.figures();
        self.compacted += after.compacted - before.compacted;
        self.see(|| format!("compact {at} below {settled}: {before:?} {after:?}"));
    }

    /// Readers that come later are given the same by all logs, and all of it that was acknowledged.
    pub(super) fn check_logs(&self, all: &[Known]) {
        for pair in all.windows(2) {
            let values = (&pair[0].values, &pair[1].values);
            assert!(are_same(&pair[0].logged, &pair[1].logged), "{values:?}");
            if self.limits.depth.is_none() {
                assert_eq!(values.0, values.1);
            }
        }
        let given = all.iter().map(|it| self.kept(&it.values));
        let given: Vec<Vec<u64>> = given.collect();
        assert!(given.windows(2).all(|it| it[0] == it[1]), "{given:?}");
        if let (Some(known), Some(given)) = (all.first(), given.first()) {
            let mut whole = [&known.values[..], &self.acknowledged].concat();
            whole.sort_unstable();
            whole.dedup();
            let text = "what was acknowledged is given";
            assert_eq!(*given, self.kept(&whole), "{text}: {whole:?}");
            if self.limits.depth.is_none() {
                assert_eq!(known.values, whole);
            }
        }
    }

    /// What a history keeps of these.
    fn kept(&self, values: &[u64]) -> Vec<u64> {
        let mut history = SampleHistory::default();
        for value in values {
            let meta = &self.sent[value];
            history.put(meta.key, Record::new(meta, &[]), &self.limits, 0);
        }
        let kept = history.snapshot();
        kept.records().iter().map(|it| it.meta().sequence).collect()
    }
}

/// Whether two logs have the same records, but for those that one of them says are gone.
fn are_same(one: &[LoggedRecord], other: &[LoggedRecord]) -> bool {
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    loop {
        let (Some(a), Some(b)) = (one.peek(), other.peek()) else {
            // One goes on where the other has not come yet.
            return true;
        };
        let is_same = match a.record.position().cmp(&b.record.position()) {
            std::cmp::Ordering::Equal => a.chain == b.chain && a.record == b.record,
            std::cmp::Ordering::Less => b.is_after_gap,
            std::cmp::Ordering::Greater => a.is_after_gap,
        };
        if !is_same {
            return false;
        }
        let (a, b) = (a.record.position(), b.record.position());
        one.next_if(|_| a <= b);
        other.next_if(|_| b <= a);
    }
}

fn records(keeper: &mut LogKeeper<TestDisk, Vec<u8>>) -> Vec<LoggedRecord> {
    let mut records: Vec<LoggedRecord> = Vec::new();
    loop {
        let from = records.last().map_or(0, LoggedRecord::end);
        let some = keeper.log.read(from, 1 << 16).expect("readable");
        if some.is_empty() {
            return records;
        }
        records.extend(some);
    }
}
