//! Keepers in groups that are founded, joined, left and lost, on disks that forget what was not synced.

mod compacted;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use super::*;
use crate::storage::log::{DiskError, LogHead};
use crate::storage::{HistoryLimits, Record};
use crate::subgroup::header::MessageKind;

/// Files in memory. A crash loses what was not synced.
#[derive(Debug, Clone, Default)]
struct TestDisk(Rc<RefCell<Files>>);

#[derive(Debug, Default)]
struct Files {
    durable: BTreeMap<String, Vec<u8>>,
    now: BTreeMap<String, Vec<u8>>,
    is_full: bool,
    fails: bool,
}

impl TestDisk {
    fn crash(&self) {
        let mut files = self.0.borrow_mut();
        files.now = files.durable.clone();
    }

    fn change<T>(&self, change: impl FnOnce(&mut Files) -> Option<T>) -> Result<T, DiskError> {
        let mut files = self.0.borrow_mut();
        if files.fails {
            return Err(DiskError::Failed("test".to_owned()));
        }
        change(&mut files).ok_or_else(|| DiskError::Failed("no such file".to_owned()))
    }
}

impl Disk for TestDisk {
    fn list(&mut self) -> Result<Vec<(String, u64)>, DiskError> {
        let files = self.0.borrow();
        let files = files.now.iter();
        Ok(files
            .map(|(name, it)| (name.clone(), it.len() as u64))
            .collect())
    }

    fn read(&mut self, file: &str, at: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        self.change(|files| {
            let bytes = files.now.get(file)?;
            let bytes = bytes.get(at as usize..).unwrap_or_default();
            let len = bytes.len().min(buffer.len());
            buffer[..len].copy_from_slice(&bytes[..len]);
            Some(len)
        })
    }

    fn create(&mut self, file: &str) -> Result<(), DiskError> {
        self.change(|files| {
            let before = files.now.insert(file.to_owned(), Vec::new());
            before.is_none().then_some(())
        })
    }

    fn write(&mut self, file: &str, at: u64, parts: &[&[u8]]) -> Result<(), DiskError> {
        if self.0.borrow().is_full {
            return Err(DiskError::Full("test".to_owned()));
        }
        self.change(|files| {
            let bytes = files.now.get_mut(file)?;
            bytes.truncate(at as usize);
            bytes.extend(parts.concat());
            Some(())
        })
    }

    fn sync(&mut self, file: &str) -> Result<(), DiskError> {
        self.change(|files| {
            let bytes = files.now.get(file)?.clone();
            files.durable.insert(file.to_owned(), bytes);
            Some(())
        })
    }

    fn sync_directory(&mut self) -> Result<(), DiskError> {
        self.change(|files| {
            let now = files.now.clone();
            files.durable.retain(|name, _| now.contains_key(name));
            for (name, bytes) in now {
                files.durable.entry(name).or_insert(bytes);
            }
            Some(())
        })
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        self.change(|files| {
            let bytes = files.now.remove(from)?;
            files.now.insert(to.to_owned(), bytes.clone());
            files.durable.remove(from);
            // The new content was synced under its old name.
            files.durable.insert(to.to_owned(), bytes);
            Some(())
        })
    }

    fn truncate(&mut self, file: &str, len: u64) -> Result<(), DiskError> {
        self.change(|files| {
            files.now.get_mut(file)?.truncate(len as usize);
            Some(())
        })
    }

    fn remove(&mut self, file: &str) -> Result<(), DiskError> {
        self.change(|files| files.now.remove(file).map(drop))
    }
}

/// A small generator, of which each seed is a run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

enum Item {
    View(LogMarker),
    Message(RecordMeta, Vec<u8>),
}

/// A computer with a log.
struct Host {
    disk: TestDisk,
    keeper: Option<LogKeeper<TestDisk, Vec<u8>>>,
    member: MemberId,
    group: usize,
    /// What is delivered and not handed to the keeper.
    inbox: VecDeque<Item>,
    end: Option<LogEnd>,
    /// The view of which its word is told, and the word.
    word: (u64, u64),
}

impl Host {
    /// Whether it has a log that is not blank.
    fn has_log(&self) -> bool {
        match &self.keeper {
            Some(keeper) => !keeper.end_now().is_blank(),
            None => {
                let opened = TopicLog::open(self.disk.clone()).expect("no log is damaged");
                let keeper = opened
                    .map(|(log, _)| LogKeeper::<TestDisk, Vec<u8>>::new(log, SyncMode::Batch));
                keeper.is_some_and(|keeper| !keeper.end_now().is_blank())
            }
        }
    }
}

/// A group, by rank.
#[derive(Default)]
struct Group {
    members: Vec<usize>,
    view: u64,
    base: u64,
    next: u64,
    logs: Option<LogGroup>,
}

struct World {
    random: Random,
    hosts: Vec<Host>,
    groups: [Group; 2],
    members: u128,
    values: u64,
    /// All messages that were sent, by their values.
    sent: BTreeMap<u64, RecordMeta>,
    /// What the logs say that is kept for readers.
    limits: HistoryLimits,
    /// What a strict majority of the loggers had on their disks.
    acknowledged: Vec<u64>,
    packets: Vec<(usize, MemberId, LogPacket)>,
    now_ns: u64,
    opened: usize,
    /// Segments that were written anew, or removed.
    compacted: u64,
}

/// Of a host that is in no group.
const OUT: usize = usize::MAX;

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let host = |_| Host {
            disk: TestDisk::default(),
            keeper: None,
            member: MemberId(0),
            group: OUT,
            inbox: VecDeque::new(),
            end: None,
            word: (0, 0),
        };
        let hosts = (0..1 + random.below(5)).map(host).collect();
        let limits = compacted::limits(&mut random);
        Self {
            hosts,
            groups: Default::default(),
            random,
            members: 0,
            values: 0,
            sent: BTreeMap::new(),
            limits,
            acknowledged: Vec::new(),
            packets: Vec::new(),
            now_ns: 1,
            opened: 0,
            compacted: 0,
        }
    }

    fn see(&self, what: impl FnOnce() -> String) {
        if std::env::var_os("SPINDLE_TRACE").is_some() {
            eprintln!("{}", what());
        }
    }

    /// A group of the two to start in: mostly the first.
    fn start(&mut self, at: usize, group: usize) {
        let (disk, id) = (self.hosts[at].disk.clone(), LogId(at as u128 + 1));
        let head = LogHead {
            domain: 0,
            topic: "T".to_owned(),
            type_name: "T".to_owned(),
            type_information: Vec::new(),
            limits: self.limits,
        };
        let opened = TopicLog::open(disk.clone()).expect("no log is damaged");
        let log = match opened {
            Some((log, _)) => log,
            None => TopicLog::create(disk, id, &head).expect("there is room"),
        };
        let log = log.with_segment_bytes(compacted::SEGMENT_BYTES);
        let mode = [
            SyncMode::Each,
            SyncMode::Batch,
            SyncMode::Interval { ns: 3 },
        ];
        let mode = mode[self.random.below(3)];
        let mut keeper = LogKeeper::new(log, mode);
        self.members += 1;
        let end = keeper.log_end();
        // A log without records that is alone begins another lineage: that is not what is tried here.
        let has_log = |group: &Group| {
            let mut members = group.members.iter();
            members.any(|at| self.hosts[*at].has_log())
        };
        let group = if end.is_blank() { 0 } else { group };
        if end.is_blank() && !has_log(&self.groups[group]) && self.hosts.iter().any(Host::has_log) {
            return;
        }
        self.see(|| format!("start {at} in {group}: {end:?}"));
        let host = &mut self.hosts[at];
        host.end = Some(end);
        host.keeper = Some(keeper);
        host.member = MemberId(self.members);
        host.group = group;
        host.inbox.clear();
        self.groups[group].members.push(at);
        self.change_view(group);
    }

    fn crash(&mut self, at: usize) {
        self.see(|| format!("crash {at}"));
        let group = self.hosts[at].group;
        self.forget(at);
        self.groups[group].members.retain(|it| *it != at);
        self.change_view(group);
    }

    fn crash_all(&mut self, group: usize) {
        self.see(|| format!("crash all of {group}"));
        for at in std::mem::take(&mut self.groups[group].members) {
            self.forget(at);
        }
        self.groups[group] = Group::default();
    }

    fn forget(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        host.disk.crash();
        host.keeper = None;
        host.group = OUT;
        host.end = None;
        host.inbox.clear();
    }

    fn change_view(&mut self, group: usize) {
        let it = &self.groups[group];
        if it.members.is_empty() {
            self.groups[group] = Group::default();
            return;
        }
        let view = it.view + 1;
        let members = it.members.clone();
        let ends: Vec<(MemberId, LogEnd)> = members
            .iter()
            .map(|at| (self.hosts[*at].member, self.hosts[*at].end.clone().unwrap()))
            .collect();
        let ends: Vec<(MemberId, &LogEnd)> = ends.iter().map(|(id, end)| (*id, end)).collect();
        let logs = LogGroup::next(it.logs.as_ref(), view, &ends);
        let base = ends
            .iter()
            .map(|(_, end)| end.end)
            .chain([it.next, 1])
            .max()
            .unwrap();
        self.see(|| format!("view {view} of {group}: base {base}, {logs:?}"));
        for at in &members {
            let host = &mut self.hosts[*at];
            host.inbox.push_back(Item::View(LogMarker {
                view,
                base,
                me: host.member,
                group: logs.clone(),
            }));
        }
        self.groups[group] = Group {
            members,
            view,
            base,
            next: base,
            logs,
        };
    }

    /// Whether samples are sent: all loggers have told their words of this view.
    fn takes_samples(&self, group: usize) -> bool {
        let Some(it) = self.groups.get(group) else {
            return false;
        };
        it.logs.as_ref().is_some_and(|logs| {
            logs.is_open()
                && logs.loggers.iter().all(|logger| {
                    let host = self.hosts.iter().find(|host| host.member == logger.member);
                    host.is_some_and(|host| host.word.0 == it.view && host.word.1 >= it.base)
                })
        })
    }

    fn publish(&mut self, group: usize) {
        if !self.takes_samples(group) {
            return;
        }
        let count = 1 + self.random.below(3);
        for _ in 0..count {
            self.values += 1;
            let skipped = self.random.below(2) as u64;
            let it = &mut self.groups[group];
            let position = it.next + skipped;
            it.next = position + 1;
            let meta = RecordMeta {
                position,
                sequence: self.values,
                timestamp: 0,
                writer: [1; 16],
                key: [self.random.below(3) as u8; 16],
                kind: compacted::kind(&mut self.random),
                encapsulation: 0,
            };
            self.sent.insert(self.values, meta);
            let payload = self.values.to_le_bytes().to_vec();
            for at in it.members.clone() {
                let item = Item::Message(meta, payload.clone());
                self.hosts[at].inbox.push_back(item);
            }
            let value = self.values;
            self.see(|| format!("publish {value} at {position} in {group}"));
        }
    }

    /// Hands some of what is delivered to the keeper, and takes what it says.
    fn work(&mut self, at: usize) {
        let count = self.random.below(4);
        let flushes = self.random.below(3) > 0;
        self.now_ns += 1 + if self.random.one_in(4) {
            2_000_000_000
        } else {
            0
        };
        let now = self.now_ns;
        let takes = self.takes_samples(self.hosts[at].group);
        let host = &mut self.hosts[at];
        let Some(keeper) = &mut host.keeper else {
            return;
        };
        for _ in 0..count {
            match host.inbox.pop_front() {
                Some(Item::View(marker)) => {
                    host.word = (marker.view, 0);
                    keeper.view(marker, now);
                }
                Some(Item::Message(meta, payload)) => keeper.deliver(&meta, payload),
                None => break,
            }
        }
        if flushes {
            keeper.flush(now);
        }
        let view = host.word.0;
        if takes && self.groups[host.group].view == view {
            keeper.loggers_ready(view, now);
        }
        if keeper.is_ready() {
            let base = keeper.marker.as_ref().unwrap().base;
            let delivered = keeper.delivered_to;
            let word = keeper.unsynced_from().unwrap_or(delivered).max(base);
            host.word.1 = host.word.1.max(word);
        }
        if std::env::var_os("SPINDLE_TRACE").is_some() {
            let values = values(keeper);
            eprintln!(
                "  {at}: status {:?} whole {:?} ready {:?} live {:?} near {:?} log {values:?} synced {} {:?}",
                keeper.status,
                keeper.whole.map(|it| it.number),
                keeper.ready,
                keeper.live.len(),
                keeper.near,
                keeper.log.synced(),
                keeper.pull
            );
        }
        let from = host.member;
        let packets = keeper.take_packets();
        let announcement = keeper.announcement();
        let group = host.group;
        for (to, packet) in packets {
            let to = self.hosts.iter().position(|it| it.member == to);
            self.packets.extend(to.map(|to| (to, from, packet)));
        }
        if let Some(end) = announcement {
            self.see(|| format!("{at} announces {end:?}"));
            self.hosts[at].end = Some(end);
            self.change_view(group);
        }
        self.acknowledge();
    }

    /// What a strict majority of the loggers has on its disk is acknowledged: by the words, as a writer
    /// sees them.
    fn acknowledge(&mut self) {
        for group in 0..2 {
            if !self.takes_samples(group) {
                continue;
            }
            let it = &self.groups[group];
            let loggers = &it.logs.as_ref().unwrap().loggers;
            let mut words: Vec<u64> = loggers
                .iter()
                .map(|logger| {
                    let host = self.hosts.iter().find(|host| host.member == logger.member);
                    host.unwrap().word.1
                })
                .collect();
            words.sort_unstable();
            // More than half are at least there.
            let word = words[(words.len() - 1) / 2];
            let loggers: Vec<MemberId> = loggers.iter().map(|it| it.member).collect();
            for member in loggers {
                let host = self
                    .hosts
                    .iter_mut()
                    .find(|host| host.member == member)
                    .unwrap();
                if host.word.1 < word {
                    continue;
                }
                for (position, value) in values(host.keeper.as_mut().unwrap()) {
                    if position < word && self.acknowledged.last().is_none_or(|it| *it < value) {
                        self.acknowledged.push(value);
                    }
                }
            }
        }
    }

    fn deliver_packet(&mut self) {
        if self.packets.is_empty() {
            return;
        }
        let at = self.random.below(self.packets.len());
        let (to, from, packet) = self.packets.swap_remove(at);
        let now = self.now_ns;
        if let Some(keeper) = &mut self.hosts[to].keeper
            && self.random.below(8) > 0
        {
            keeper.handle(from, packet, now);
        }
    }

    fn check(&mut self) {
        let mut open = 0;
        for group in 0..2 {
            if !self.takes_samples(group) {
                continue;
            }
            open += 1;
            self.opened += 1;
            let loggers = self.groups[group].logs.as_ref().unwrap().loggers.clone();
            let mut all: Vec<compacted::Known> = Vec::new();
            for logger in loggers {
                let host = self
                    .hosts
                    .iter_mut()
                    .find(|it| it.member == logger.member)
                    .unwrap();
                all.push(compacted::Known::of(host));
            }
            self.check_logs(&all);
        }
        assert!(open < 2, "two groups take samples");
    }

    fn step(&mut self) {
        let at = self.random.below(self.hosts.len());
        let group = self.hosts[at].group;
        match self.random.below(100) {
            0..4 if group == OUT => {
                let group = usize::from(self.random.one_in(8));
                self.start(at, group);
            }
            4 if group != OUT => self.crash(at),
            5 if group != OUT && self.random.one_in(4) => self.crash_all(group),
            6..8 if group != OUT => self.change_view(group),
            8 => {
                let full = self.random.one_in(4);
                self.hosts[at].disk.0.borrow_mut().is_full = full && group != OUT;
            }
            10..40 => self.deliver_packet(),
            40..50 => {
                let group = self.random.below(2);
                self.publish(group);
            }
            50..60 if group != OUT => self.compact(at),
            50.. => self.work(at),
            _ => {}
        }
        self.check();
    }

    /// All disks are well and all logs are there: the topic opens.
    fn end(&mut self) {
        for group in 0..2 {
            self.crash_all(group);
        }
        for at in 0..self.hosts.len() {
            self.hosts[at].disk.0.borrow_mut().is_full = false;
            self.start(at, 0);
        }
        for _ in 0..2000 {
            let at = self.random.below(self.hosts.len());
            if self.hosts[at].group == OUT {
                self.start(at, 0);
            }
            self.work(at);
            self.deliver_packet();
            self.check();
            let loggers = self.groups[0]
                .logs
                .as_ref()
                .map_or(0, |it| it.loggers.len());
            if self.takes_samples(0) && loggers == self.hosts.len() {
                return;
            }
        }
        let states: Vec<_> = self.hosts.iter().map(|it| it.keeper.as_ref()).collect();
        panic!("it does not open: {:?} {states:#?}", self.groups[0].logs);
    }
}

fn values(keeper: &mut LogKeeper<TestDisk, Vec<u8>>) -> Vec<(u64, u64)> {
    let mut values = Vec::new();
    let mut from = 0;
    loop {
        let records = keeper.log.read(from, 1 << 16).expect("readable");
        let Some(last) = records.last() else {
            return values;
        };
        from = last.record.position() + 1;
        let of = |record: &Record| (record.position(), record.meta().sequence);
        values.extend(records.iter().map(|it| of(&it.record)));
    }
}

fn run(seed: u64) -> [usize; 3] {
    let mut world = World::new(seed);
    let steps = 100 + world.random.below(600);
    for _ in 0..steps {
        world.step();
    }
    world.end();
    let compacted = world.compacted as usize;
    [world.opened, world.acknowledged.len(), compacted]
}

#[test]
fn what_was_acknowledged_is_in_every_log_that_opens() {
    let seeds = std::env::var("SPINDLE_SEEDS").ok();
    let mut counts = [0; 3];
    let range = seeds.and_then(|it| {
        let (from, to) = it.split_once("..")?;
        Some(from.parse().ok()?..to.parse().ok()?)
    });
    for seed in range.unwrap_or(0..800) {
        let outcome = std::panic::catch_unwind(|| run(seed));
        let Ok(of_run) = outcome else {
            panic!("seed {seed}");
        };
        counts
            .iter_mut()
            .zip(of_run)
            .for_each(|(sum, it)| *sum += it);
    }
    assert!(counts.iter().all(|it| *it > 0), "{counts:?}");
    let [opened, acknowledged, compacted] = counts;
    println!("{opened} steps open, {acknowledged} acknowledged, {compacted} segments compacted");
}
