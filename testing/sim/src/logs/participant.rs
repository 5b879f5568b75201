//! A participant with a log.

use std::sync::Arc;

use spindle_dds_core::MessageKind;
use spindle_dds_core::membership::MemberId;
use spindle_dds_core::storage::log::{LogHead, LogState, SimDisk, TopicLog};
use spindle_dds_core::storage::{
    HistoryLimits, KeeperStatus, LogEnd, LogGroup, LogId, LogKeeper, LogMarker, Record, RecordMeta,
    SyncMode,
};

/// A record, as far as it is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) position: u64,
    pub(super) generation: u64,
    pub(super) epoch: u64,
    pub(super) value: u64,
}

/// A view, as all members of it begin it.
#[derive(Debug)]
pub(super) struct LogView {
    pub(super) view: u64,
    pub(super) base: u64,
    pub(super) members: Vec<(MemberId, usize)>,
    pub(super) ends: Vec<(MemberId, LogEnd)>,
    pub(super) logs: Option<LogGroup>,
}

/// A keeper with what its driver knows.
#[derive(Debug)]
pub(super) struct Participant {
    pub(super) member: MemberId,
    pub(super) keeper: LogKeeper<SimDisk, Vec<u8>>,
    pub(super) view: Option<Arc<LogView>>,
    delivered_to: u64,
}

pub(super) fn head() -> LogHead {
    LogHead {
        domain: 0,
        topic: "T".to_owned(),
        type_name: "T".to_owned(),
        type_information: Vec::new(),
        limits: HistoryLimits::default(),
    }
}

impl Participant {
    /// Opens the log, or creates it. An error says why it cannot be used.
    pub(super) fn start(
        member: MemberId,
        disk: &SimDisk,
        id: LogId,
        mode: SyncMode,
    ) -> Result<Self, String> {
        let opened = TopicLog::open(disk.clone()).map_err(|it| it.to_string())?;
        let log = match opened {
            Some((log, _)) => log,
            None => TopicLog::create(disk.clone(), id, &head()).map_err(|it| it.to_string())?,
        };
        Ok(Self {
            member,
            keeper: LogKeeper::new(log, mode),
            view: None,
            delivered_to: 0,
        })
    }

    pub(super) fn begin(&mut self, view: &Arc<LogView>, now_ns: u64) {
        self.delivered_to = self.delivered_to.max(view.base);
        self.view = Some(Arc::clone(view));
        let marker = LogMarker {
            view: view.view,
            base: view.base,
            me: self.member,
            group: view.logs.clone(),
        };
        self.keeper.view(marker, now_ns);
    }

    pub(super) fn deliver(&mut self, position: u64, value: u64) {
        self.delivered_to = self.delivered_to.max(position + 1);
        let meta = RecordMeta {
            position,
            sequence: value,
            timestamp: 0,
            writer: [1; 16],
            key: [0; 16],
            kind: MessageKind::Data,
            encapsulation: 0,
        };
        self.keeper.deliver(&meta, value.to_le_bytes().to_vec());
    }

    /// The word that it raises in its view.
    pub(super) fn word(&self) -> u64 {
        let base = self.view.as_ref().map_or(0, |it| it.base);
        if !self.keeper.is_ready() {
            return 0;
        }
        let unsynced = self.keeper.unsynced_from();
        unsynced.unwrap_or(self.delivered_to).max(base)
    }

    pub(super) fn is_dead(&self) -> bool {
        matches!(self.keeper.status(), KeeperStatus::Dead(_))
    }

    /// What is on the disk.
    pub(super) fn durable(&mut self) -> Vec<Kept> {
        let synced = self.keeper.log().synced();
        let mut kept = records(self.keeper.log_mut());
        kept.retain(|it| it.position < synced);
        kept
    }
}

/// All records of a log.
pub(super) fn records(log: &mut TopicLog<SimDisk>) -> Vec<Kept> {
    let (mut kept, mut from) = (Vec::new(), 0);
    loop {
        let records = log.read(from, 1 << 16).unwrap_or_default();
        let Some(last) = records.last() else {
            return kept;
        };
        from = last.record.position() + 1;
        kept.extend(records.iter().map(|it| Kept {
            position: it.record.position(),
            generation: it.generation,
            epoch: it.epoch,
            value: value_of(&it.record),
        }));
    }
}

/// What a record says; the greatest number if it does not say what was written.
fn value_of(record: &Record) -> u64 {
    let value = record.meta().sequence;
    match *record.payload() == value.to_le_bytes() {
        true => value,
        false => u64::MAX,
    }
}

/// State and records of a log that no participant uses.
pub(super) fn at_rest(disk: &SimDisk) -> Option<(LogState, Vec<Kept>)> {
    let opened = TopicLog::open_read_only(disk.copy()).ok()?;
    let (mut log, _) = opened?;
    let state = log.state().clone();
    Some((state, records(&mut log)))
}
