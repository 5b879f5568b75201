//! A reader port whose arrivals and transfers are made by hand: its payloads lie in no ring.

use std::collections::BTreeSet;
use std::sync::Weak;
use std::sync::atomic::AtomicUsize;

use spindle_dds_core::DeliveryClass;
use spindle_dds_core::MessageKind::{self, Data, Dispose, Unregister};
use spindle_dds_core::membership::MemberId;
use spindle_dds_qos::{History, Length, ResourceLimits};
use spindle_dds_transport::Rank;

use super::super::super::arrival::{Arrival, ArrivalBatch, DeliveryPoint, Departure};
use super::super::super::payload::Payload;
use super::super::super::reader_epoch::{MatchedWriter, ReaderEpoch};
use super::super::super::reader_state::Access;
use super::*;
use crate::cache::{Arrived, Cache, Origin, Query, Whose};
use crate::condition::StateMasks;
use crate::driver::{GroupStatus, Notifier, StreamWakers, WaitingFuture};
use crate::handle::{Guid, InstanceHandle};
use crate::properties::ReaderConfig;
use crate::status::StatusFlags;
use crate::subscription::InstanceState;
use crate::wire::Wire;

mod endings;
mod logged;
mod model;
mod order;
mod ring;

/// A message: kind, writer, sequence number, instance.
type Message = (MessageKind, u8, u64, u8);

/// What a reader shows: writer, sequence number of it, instance, whether there is data, the state of the
/// instance.
type Shown = (u8, u64, u8, bool, InstanceState);

const DISPOSED: InstanceState = InstanceState::NotAliveDisposed;
const NO_WRITERS: InstanceState = InstanceState::NotAliveNoWriters;
const ALIVE: InstanceState = InstanceState::Alive;

const LEFT: Departure = Departure::Left { disposes: false };

struct Fixture {
    port: ReaderPort<Wire>,
    /// The last epoch, and the view that began it.
    epoch: Arc<ReaderEpoch<Wire>>,
    view: u64,
    position: u64,
    /// How often the wake was called.
    wakes: Arc<AtomicUsize>,
    shared: Shared,
}

struct Settings {
    history: History,
    limits: ResourceLimits,
    is_reliable: bool,
    aside_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            history: History::keep_all(),
            limits: ResourceLimits::default(),
            is_reliable: true,
            aside_bytes: 1 << 20,
        }
    }
}

fn max_samples(most: u32) -> ResourceLimits {
    ResourceLimits {
        max_samples: Length::Limited(most),
        ..ResourceLimits::default()
    }
}

fn handle_of(writer: u8) -> InstanceHandle {
    InstanceHandle::of_entity(Guid([writer; 16]))
}

fn writer_of(handle: InstanceHandle) -> u8 {
    handle.guid().expect("a writer").0[0]
}

fn payload_of((_, writer, sequence, key): Message) -> Vec<u8> {
    [&[key, writer][..], &sequence.to_le_bytes()].concat()
}

/// As [`Fixture::write`], for a history.
fn record(message: Message, position: u64) -> Record {
    let (kind, writer, sequence, key) = message;
    let meta = RecordMeta {
        position,
        sequence,
        timestamp: position as i64,
        writer: [writer; 16],
        key: [key; 16],
        kind,
        encapsulation: Encapsulation::CDR_LE.0,
    };
    Record::new(&meta, &payload_of(message))
}

fn records(messages: impl IntoIterator<Item = Message>) -> VecDeque<Record> {
    messages.into_iter().map(|it| record(it, it.2)).collect()
}

fn data(writer: u8, sequences: impl IntoIterator<Item = u64>) -> Vec<Message> {
    let message = |sequence| (Data, writer, sequence, 1);
    sequences.into_iter().map(message).collect()
}

fn end_of(lasts: &[(u8, u64)]) -> HistoryEnd {
    HistoryEnd {
        lasts: lasts.iter().map(|(it, last)| ([*it; 16], *last)).collect(),
        lost_sources: 0,
    }
}

/// What a port shares with its participant.
struct Shared {
    group_status: Arc<GroupStatus>,
    notifier: Arc<Notifier>,
}

fn port<F: Fabric>(settings: &Settings) -> (ReaderPort<F>, Shared) {
    let mut cache = Cache::new(settings.history, settings.limits, true);
    cache.set_holds_back(settings.is_reliable);
    let notifier = Arc::<Notifier>::default();
    let flags = || Arc::new(StatusFlags::new(notifier.clone(), None));
    let group_status = Arc::new(GroupStatus::new(true));
    let config = ReaderConfig {
        aside_bytes: settings.aside_bytes,
        ..ReaderConfig::default()
    };
    let port = ReaderPort::new(
        ("the reader", true),
        cache,
        config,
        (Arc::new(|_, bytes, _| Ok(KeyHash([bytes[0]; 16]))), None),
        [flags(), flags()],
        Arc::new(StreamWakers::new(notifier.clone())),
        group_status.clone(),
    );
    let shared = Shared {
        group_status,
        notifier,
    };
    (port, shared)
}

impl Fixture {
    fn new(settings: Settings) -> Self {
        let (port, shared) = port(&settings);
        let wakes = Arc::<AtomicUsize>::default();
        let counted = wakes.clone();
        port.set_history_wake(Arc::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
        }));
        Self {
            epoch: port.last_epoch(),
            port,
            view: 0,
            position: 0,
            wakes,
            shared,
        }
    }

    fn durable() -> Self {
        Self::new(Settings::default())
    }

    /// A view begins, in which these writers match. Writers that do not stay depart.
    fn begin(&mut self, writers: &[u8], departure: Departure, awaits: Option<u64>) {
        let stays = |handle| writers.contains(&writer_of(handle));
        self.epoch.end(Some(self.position), stays, |_| departure);
        self.view += 1;
        let matched = writers.iter().map(|writer| MatchedWriter {
            rank: Rank((*writer).into()),
            number: (*writer).into(),
            member: MemberId((*writer).into()),
            class: DeliveryClass::Ordered,
            handle: handle_of(*writer),
            autodispose: false,
            is_rekeyed: false,
        });
        let place = (self.view, Weak::new());
        let awaits = awaits.map(TransferId);
        let next = self
            .epoch
            .follow_in(place, matched.collect(), Vec::new(), &[2000], awaits);
        self.go_on_with(next);
    }

    fn lose_group(&mut self) {
        let failed = |_: &MatchedWriter| Departure::Failed;
        self.epoch.end(Some(self.position), |_| false, failed);
        self.go_on_with(self.epoch.follow_without_group(|_| false));
    }

    fn go_on_with(&mut self, next: ReaderEpoch<Wire>) {
        let next = Arc::new(next);
        self.epoch.set_next(next.clone());
        self.epoch = next;
        self.port.enter_next_epoch();
    }

    /// What comes of a writer in the present epoch, if it is matched there.
    fn arrival(&mut self, (kind, writer, sequence, key): Message) -> Option<Arrival<Wire>> {
        let (index, _) = self.epoch.writer(Rank(writer.into()), writer.into())?;
        self.position += 1;
        Some(Arrival::Message(Arrived {
            kind,
            key: KeyHash([key; 16]),
            origin: Origin {
                writer: index,
                writer_sequence: sequence,
                position: self.position,
                timestamp: 0,
                encapsulation: Encapsulation::CDR_LE,
            },
            payload: Payload::Copy(payload_of((kind, writer, sequence, key))),
        }))
    }

    /// Messages are delivered, in one batch.
    fn deliver(&mut self, messages: impl IntoIterator<Item = Message>) {
        let mut batch = ArrivalBatch::new();
        for message in messages {
            if let Some(arrival) = self.arrival(message) {
                batch.push(arrival);
            }
        }
        self.port.settle(&self.epoch, &mut batch);
        assert!(batch.is_empty());
    }

    /// A writer is deleted.
    fn delete_writer(&mut self, writer: u8) {
        let at = DeliveryPoint {
            position: self.position,
            timestamp: 0,
        };
        let departed = self
            .epoch
            .depart(Rank(writer.into()), writer.into(), at, false);
        let mut batch = ArrivalBatch::new();
        batch.push(departed.expect("it is matched"));
        self.port.settle(&self.epoch, &mut batch);
    }

    fn take(&self, max: usize) -> Vec<Shown> {
        let query = Query {
            max,
            masks: StateMasks::ANY,
            whose: Whose::Any,
        };
        let items = self.port.select(Access::Take, &query);
        let shown = items.iter().map(|(info, payload)| {
            let key = info.instance_handle.key_hash().expect("an instance").0[0];
            if let Some(payload) = payload {
                let message = (
                    Data,
                    writer_of(info.publication_handle),
                    info.writer_sequence,
                    key,
                );
                assert_eq!(payload.bytes(), payload_of(message));
            }
            (
                writer_of(info.publication_handle),
                info.writer_sequence,
                key,
                info.valid_data,
                info.instance_state,
            )
        });
        let shown = shown.collect();
        if !items.is_empty() {
            self.port.return_loan(items);
        }
        shown
    }

    /// Writers and sequence numbers of the samples that are taken.
    fn take_samples(&self) -> Vec<(u8, u64)> {
        let shown = self.take(usize::MAX).into_iter();
        let samples = shown.filter(|it| it.3).map(|it| (it.0, it.1));
        samples.collect()
    }

    fn offer(&self, transfer: u64, records: &mut VecDeque<Record>) -> HistoryOffer {
        self.port.offer_history(TransferId(transfer), records)
    }

    /// All of a transfer, which the reader takes.
    fn transfer(&self, transfer: u64, messages: Vec<Message>, lasts: &[(u8, u64)]) {
        let mut records = records(messages);
        assert_eq!(self.offer(transfer, &mut records), HistoryOffer::Taken);
        let end = end_of(lasts);
        assert!(self.port.end_history(TransferId(transfer), &end));
    }

    fn lasts(&self, transfer: u64) -> Option<Vec<(u8, u64)>> {
        let lasts = self.port.begin_history(TransferId(transfer))?;
        Some(lasts.iter().map(|(guid, last)| (guid[0], *last)).collect())
    }

    fn wakes(&self) -> usize {
        self.wakes.swap(0, Ordering::Relaxed)
    }

    fn lost(&self) -> i32 {
        self.port.with_statuses(|it| it.lost.read().0)
    }

    fn matched(&self) -> BTreeSet<u8> {
        let writers = self.port.with_statuses(|it| it.writers.clone());
        writers.into_iter().map(writer_of).collect()
    }

    fn is_awaiting(&self) -> bool {
        self.port.historical_data().is_awaiting
    }
}

fn of(writer: u8, sequences: impl IntoIterator<Item = u64>) -> Vec<(u8, u64)> {
    sequences.into_iter().map(|it| (writer, it)).collect()
}
