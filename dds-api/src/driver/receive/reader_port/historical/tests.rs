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

mod model;

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
    group_status: Arc<GroupStatus>,
    notifier: Arc<Notifier>,
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

impl Fixture {
    fn new(settings: Settings) -> Self {
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
            group_status,
            notifier,
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

#[test]
fn history_comes_first_then_what_came_meanwhile_then_what_comes() {
    let mut it = Fixture::durable();
    it.begin(&[1], LEFT, None);
    it.deliver(data(1, 1..3));
    it.begin(&[1, 2], LEFT, Some(7));
    assert_eq!(it.wakes(), 1);
    assert_eq!(it.lasts(8), None, "another transfer");
    assert_eq!(it.lasts(7), Some(vec![(1, 2)]));
    it.deliver(data(2, 6..8));
    it.deliver(data(1, 3..5));
    assert_eq!(it.take_samples(), of(1, 1..3), "it came before");
    let mut history = records(data(2, [1, 2, 5]));
    assert_eq!(it.offer(7, &mut history), HistoryOffer::Taken);
    assert!(history.is_empty());
    assert_eq!(it.take_samples(), of(2, [1, 2, 5]));
    assert!(it.is_awaiting() && it.port.has_historical_data().is_none());
    let progress = HistoryProgress {
        samples: 3,
        bytes: 222,
        donors: 1,
    };
    it.port.note_history(TransferId(7), progress);
    let status = it.port.historical_data();
    assert_eq!((status.samples, status.bytes, status.donors), (3, 222, 1));
    assert!(it.port.end_history(TransferId(7), &end_of(&[(2, 5)])));
    assert!(
        !it.port.end_history(TransferId(7), &end_of(&[])),
        "it is over"
    );
    assert_eq!(it.offer(7, &mut history), HistoryOffer::Closed);
    assert_eq!(it.lasts(7), Some(Vec::new()));
    assert!(!it.is_awaiting());
    assert_eq!(it.port.has_historical_data(), Some(Ok(())));
    it.deliver(data(2, 8..9));
    assert_eq!(
        it.take_samples(),
        [of(2, 6..8), of(1, 3..5), of(2, 8..9)].concat()
    );
    assert_eq!(it.lost(), 0, "what is not in a history was replaced");
    it.deliver(data(2, 11..12));
    assert_eq!(it.lost(), 2);
}

#[test]
fn what_does_not_fit_aside_waits_in_its_place() {
    let mut it = Fixture::new(Settings {
        aside_bytes: 1000,
        ..Settings::default()
    });
    it.begin(&[1], LEFT, Some(1));
    it.deliver(data(1, 11..13));
    assert!(!it.port.is_full());
    it.deliver(data(1, 13..100));
    assert!(it.port.is_full(), "the rest holds back its writer");
    // Nothing that comes later passes it, and epochs are held off.
    it.begin(&[1, 2], LEFT, None);
    it.deliver(data(2, 1..3));
    it.begin(&[1, 2, 3], LEFT, None);
    assert!(it.port.is_ready(&it.epoch));
    it.begin(&[1, 2], LEFT, None);
    assert!(!it.port.is_ready(&it.epoch), "three epochs are behind");
    it.deliver(data(1, 100..102));
    assert_eq!(it.take_samples(), []);
    it.transfer(1, data(1, 1..11), &[(1, 10)]);
    assert!(it.port.is_ready(&it.epoch) && !it.port.is_full());
    let all = [of(1, 1..100), of(2, 1..3), of(1, 100..102)].concat();
    assert_eq!(it.take_samples(), all);
    assert_eq!(it.lost(), 0);
}

#[test]
fn epochs_pass_while_history_is_awaited_if_what_comes_fits_aside() {
    let mut it = Fixture::durable();
    it.begin(&[1], LEFT, Some(1));
    for number in 0..10 {
        it.deliver(data(1, [2 * number + 11, 2 * number + 12]));
        it.begin(&[1, 2], LEFT, None);
        assert!(it.port.is_ready(&it.epoch), "no ring is held");
    }
    assert_eq!(
        it.matched(),
        [1].into(),
        "writers are matched in their place"
    );
    it.transfer(1, data(1, 1..11), &[(1, 10)]);
    assert_eq!(it.matched(), [1, 2].into());
    assert_eq!(it.take_samples(), of(1, 1..31));
}

#[test]
fn a_full_cache_takes_the_next_records_when_a_take_has_made_room() {
    let mut it = Fixture::new(Settings {
        limits: max_samples(3),
        ..Settings::default()
    });
    it.begin(&[1], LEFT, Some(1));
    it.deliver(data(1, 9..11));
    it.wakes();
    let mut history = records(data(1, 1..9));
    assert_eq!(it.offer(1, &mut history), HistoryOffer::Full);
    assert_eq!((history.len(), it.wakes()), (5, 0));
    it.deliver(data(1, 11..12));
    assert_eq!(it.offer(1, &mut history), HistoryOffer::Full);
    assert_eq!(it.wakes(), 0, "what comes makes no room");
    assert_eq!(it.take(1).len(), 1);
    assert_eq!(it.wakes(), 1);
    assert_eq!(it.take(1).len(), 1);
    assert_eq!(it.wakes(), 0, "it knows");
    assert_eq!(it.offer(1, &mut history), HistoryOffer::Full);
    assert_eq!(history.len(), 3);
    assert_eq!(it.take_samples(), of(1, 3..6));
    assert_eq!(it.offer(1, &mut history), HistoryOffer::Taken);
    assert!(it.port.end_history(TransferId(1), &end_of(&[(1, 8)])));
    assert!(it.port.is_full(), "what was kept aside waits for room");
    assert_eq!(it.port.has_historical_data(), Some(Ok(())));
    for expected in [6..9, 9..12] {
        assert_eq!(it.take_samples(), of(1, expected));
    }
    let rejected = it.port.with_statuses(|it| it.rejected.read().0);
    assert_eq!((rejected, it.lost()), (3, 0), "each once");
}

#[test]
fn a_best_effort_reader_rejects_what_does_not_fit() {
    let mut it = Fixture::new(Settings {
        limits: max_samples(3),
        is_reliable: false,
        ..Settings::default()
    });
    it.begin(&[1], LEFT, Some(1));
    it.transfer(1, data(1, 1..9), &[(1, 8)]);
    assert_eq!(it.take_samples(), of(1, 1..4));
    assert_eq!(it.port.with_statuses(|it| it.rejected.read().0), 5);
    it.deliver(data(1, 9..10));
    assert_eq!(it.take_samples(), of(1, 9..10));
    assert_eq!(it.lost(), 0);
}

#[test]
fn a_writer_departs_in_its_place() {
    let mut it = Fixture::durable();
    it.begin(&[1, 2], LEFT, Some(1));
    it.deliver(data(1, 3..5));
    it.delete_writer(1);
    it.deliver(data(2, 1..2).into_iter().map(|it| (it.0, it.1, it.2, 2)));
    it.begin(&[], Departure::Failed, None);
    assert_eq!(it.matched(), [1, 2].into());
    it.transfer(1, data(1, 1..3), &[(1, 2)]);
    assert!(it.matched().is_empty());
    let shown = it.take(usize::MAX);
    let expected = [
        (1, 1, 1, true, NO_WRITERS),
        (1, 2, 1, true, NO_WRITERS),
        (1, 3, 1, true, NO_WRITERS),
        (1, 4, 1, true, NO_WRITERS),
        (1, 0, 1, false, NO_WRITERS),
        (2, 1, 2, true, NO_WRITERS),
        (2, 0, 2, false, NO_WRITERS),
    ];
    assert_eq!(shown, expected);
}

#[test]
fn two_transfers_come_one_after_the_other() {
    let mut it = Fixture::durable();
    it.begin(&[1], LEFT, Some(1));
    it.deliver(data(1, 3..5));
    it.begin(&[1, 2], LEFT, Some(2));
    it.deliver(data(2, 4..5));
    it.deliver(data(1, 5..6));
    assert_eq!(it.lasts(2), None);
    let mut early = records(data(2, 1..4));
    assert_eq!(it.offer(2, &mut early), HistoryOffer::NotYet);
    assert!(!it.port.end_history(TransferId(2), &end_of(&[])));
    it.wakes();
    it.transfer(1, data(1, 1..3), &[(1, 2)]);
    assert_eq!(it.take_samples(), of(1, 1..5));
    assert_eq!(it.wakes(), 1, "the second can begin");
    assert!(it.is_awaiting() && it.port.has_historical_data().is_none());
    assert_eq!(it.lasts(2), Some(vec![(1, 4)]));
    it.transfer(2, data(2, 1..4), &[(2, 3)]);
    assert_eq!(it.take_samples(), [of(2, 1..5), of(1, 5..6)].concat());
    assert!(!it.is_awaiting());
}

#[test]
fn nothing_comes_twice_after_a_return() {
    let mut it = Fixture::durable();
    it.begin(&[1], LEFT, Some(1));
    it.transfer(1, data(1, 1..4), &[(1, 3)]);
    it.deliver(data(1, 4..6));
    it.lose_group();
    assert!(it.port.has_historical_data().is_none(), "it is in no view");
    it.begin(&[1], LEFT, Some(2));
    it.deliver(data(1, 9..10));
    assert_eq!(it.lasts(2), Some(vec![(1, 5)]));
    // Also if the donor did not look at what was asked for.
    it.transfer(2, data(1, 2..9), &[(1, 8)]);
    let shown = it.take(usize::MAX).into_iter();
    let shown: Vec<_> = shown.map(|it| (it.1, it.3)).collect();
    let before = (1..6).map(|it| (it, true)).chain([(0, false)]);
    assert_eq!(
        shown,
        Vec::from_iter(before.chain((6..10).map(|it| (it, true))))
    );
    assert_eq!(it.lost(), 0);
}

#[test]
fn writers_that_are_gone_leave_their_samples_without_writers() {
    let mut it = Fixture::durable();
    it.begin(&[1], LEFT, Some(1));
    let of_two = [(Data, 2, 1, 5), (Data, 2, 2, 6), (Data, 1, 1, 6)];
    it.transfer(1, of_two.to_vec(), &[(1, 1), (2, 2)]);
    assert_eq!(it.matched(), [1].into(), "it is not matched");
    let shown = it.take(usize::MAX);
    let expected = [
        (2, 1, 5, true, NO_WRITERS),
        (2, 2, 6, true, ALIVE),
        (1, 1, 6, true, ALIVE),
        (2, 0, 5, false, NO_WRITERS),
    ];
    assert_eq!(shown, expected);
    // The next transfer does not bring them again; nor those of one that was deleted here.
    it.deliver([(Data, 1, 2, 6)]);
    it.delete_writer(1);
    it.begin(&[3], LEFT, Some(2));
    assert_eq!(it.lasts(2), Some(vec![(1, 2), (2, 2)]));
    let all = [
        (Data, 2, 2, 6),
        (Data, 1, 1, 6),
        (Data, 1, 2, 6),
        (Data, 3, 1, 7),
    ];
    it.transfer(2, all.to_vec(), &[(1, 2), (2, 2), (3, 1)]);
    assert_eq!(it.take_samples(), [(1, 2), (3, 1)]);
    // One that comes back goes on.
    it.begin(&[2, 3], LEFT, None);
    it.deliver([(Data, 2, 4, 5)]);
    assert_eq!(it.lost(), 1);
}

#[test]
fn disposals_are_part_of_a_history() {
    let mut it = Fixture::durable();
    it.begin(&[1, 2], LEFT, Some(1));
    let history = vec![
        (Data, 1, 1, 5),
        (Dispose, 1, 2, 5),
        (Data, 2, 1, 6),
        (Unregister, 2, 2, 6),
        (Dispose, 1, 3, 7),
        (Data, 2, 3, 7),
    ];
    it.transfer(1, history, &[(1, 3), (2, 3)]);
    let shown = it.take(usize::MAX);
    let expected = [
        (1, 1, 5, true, DISPOSED),
        (1, 2, 5, false, DISPOSED),
        (2, 1, 6, true, NO_WRITERS),
        (2, 2, 6, false, NO_WRITERS),
        (1, 3, 7, false, ALIVE),
        (2, 3, 7, true, ALIVE),
    ];
    assert_eq!(shown, expected);
}

#[test]
fn where_the_group_is_lost_a_prefix_is_shown_and_the_rest_comes_again() {
    for is_bounded in [false, true] {
        let mut it = Fixture::new(Settings {
            aside_bytes: if is_bounded { 400 } else { 1 << 20 },
            ..Settings::default()
        });
        it.begin(&[1], LEFT, None);
        it.deliver(data(1, 1..3));
        it.begin(&[1, 2], LEFT, Some(1));
        assert_eq!(it.take_samples(), of(1, 1..3));
        it.deliver(data(2, 9..12));
        it.deliver(data(1, 3..5));
        let mut history = records(data(2, 1..4));
        assert_eq!(it.offer(1, &mut history), HistoryOffer::Taken);
        // A third writer is new, and known from its beginning.
        it.begin(&[1, 2, 3], LEFT, None);
        it.deliver(data(3, 1..3));
        it.begin(&[1, 2, 3, 4], LEFT, Some(2));
        it.deliver(data(4, 4..6));
        it.wakes();
        it.lose_group();
        assert!(it.wakes() > 0, "what brings history is to look");
        assert_eq!(it.offer(1, &mut history), HistoryOffer::Closed);
        assert_eq!(it.offer(2, &mut history), HistoryOffer::Closed);
        let prefixes = [of(2, 1..4), of(1, 3..5), of(3, 1..3)].concat();
        assert_eq!(it.take_samples(), prefixes, "{is_bounded}");
        assert!(it.matched().is_empty() && !it.is_awaiting());
        it.begin(&[1, 2, 3, 4], LEFT, Some(3));
        it.deliver(data(2, 12..13));
        assert_eq!(it.lasts(3), Some(vec![(1, 4), (2, 3), (3, 2)]));
        it.transfer(
            3,
            [data(4, 1..6), data(2, 4..12)].concat(),
            &[(4, 5), (2, 11)],
        );
        assert_eq!(it.take_samples(), [of(4, 1..6), of(2, 4..13)].concat());
        assert_eq!(it.lost(), 0);
    }
}

#[test]
fn a_reader_that_is_behind_gives_up_transfers_of_a_group_that_is_lost() {
    let mut it = Fixture::new(Settings {
        limits: max_samples(2),
        ..Settings::default()
    });
    it.begin(&[1], LEFT, None);
    it.deliver(data(1, 1..6));
    it.begin(&[1, 2], LEFT, Some(1));
    it.deliver(data(2, 4..6));
    it.lose_group();
    it.begin(&[1, 2], LEFT, Some(2));
    it.deliver(data(2, 8..9));
    assert_eq!(it.lasts(2), None);
    let mut shown = it.take_samples();
    shown.extend(it.take_samples());
    shown.extend(it.take_samples());
    assert_eq!(shown, of(1, 1..6));
    assert_eq!(
        it.offer(1, &mut records(data(2, 1..4))),
        HistoryOffer::Closed
    );
    assert_eq!(it.lasts(2), Some(vec![(1, 5)]));
    let mut history = records(data(2, 1..8));
    while it.offer(2, &mut history) == HistoryOffer::Full {
        shown.extend(it.take_samples());
    }
    assert!(it.port.end_history(TransferId(2), &end_of(&[(2, 7)])));
    shown.extend(it.take_samples());
    shown.extend(it.take_samples());
    assert_eq!(shown, [of(1, 1..6), of(2, 1..9)].concat());
}

#[test]
fn a_source_that_is_lost_is_told_and_what_came_meanwhile_is_shown() {
    let mut it = Fixture::durable();
    it.begin(&[1], LEFT, Some(1));
    it.deliver(data(1, 7..9));
    assert_eq!(
        it.offer(1, &mut records(data(1, 1..3))),
        HistoryOffer::Taken
    );
    it.begin(&[], Departure::Failed, None);
    let end = HistoryEnd {
        lasts: Vec::new(),
        lost_sources: 1,
    };
    assert!(it.port.end_history(TransferId(1), &end));
    assert_eq!(it.take_samples(), of(1, [1, 2, 7, 8]));
    assert_eq!(it.port.historical_data().lost_sources, 1);
    it.begin(&[1], LEFT, Some(2));
    assert_eq!(it.port.historical_data().lost_sources, 0);
    assert_eq!(it.lasts(2), Some(vec![(1, 8)]));
}

#[test]
fn arrivals_while_another_thread_has_the_reader_keep_their_order() {
    let mut it = Fixture::durable();
    it.begin(&[1], LEFT, Some(1));
    it.deliver(data(1, 3..5));
    let arrivals = data(1, 5..8).into_iter();
    let arrivals: Vec<_> = arrivals.filter_map(|message| it.arrival(message)).collect();
    it.port.with(|_| {
        let mut batch = ArrivalBatch::new();
        arrivals.into_iter().for_each(|arrival| batch.push(arrival));
        it.port.settle(&it.epoch, &mut batch);
    });
    it.deliver(data(1, 8..9));
    assert!(it.port.end_history(TransferId(1), &end_of(&[(1, 2)])));
    assert_eq!(it.take_samples(), of(1, 3..9));
}

#[test]
fn a_reader_that_is_deleted_takes_nothing_more() {
    let mut it = Fixture::durable();
    it.begin(&[1], LEFT, Some(1));
    it.deliver(data(1, 3..5));
    it.wakes();
    it.port.close();
    assert_eq!(it.wakes(), 1);
    assert_eq!(it.lasts(1), Some(Vec::new()));
    assert_eq!(
        it.offer(1, &mut records(data(1, 1..3))),
        HistoryOffer::Closed
    );
    assert!(!it.port.end_history(TransferId(1), &end_of(&[])));
    let over = it.port.has_historical_data();
    assert!(
        matches!(over, Some(Err(Error::AlreadyDeleted(_)))),
        "{over:?}"
    );
    it.deliver(data(1, 5..6));
    assert!(!it.is_awaiting() && it.take_samples().is_empty());
}

#[test]
fn what_waits_for_historical_data_is_told_when_it_has_come_or_will_not() {
    let mut it = Fixture::durable();
    let notifier = it.notifier.clone();
    let future = WaitingFuture::new(&notifier, None);
    let wait = it.port.wait_for_history(future.marker());
    let is_told = || future.marker().take_mark();
    assert!(!is_told() && it.port.has_historical_data().is_none());
    drop(wait);
    it.begin(&[1], LEFT, Some(1));
    assert!(!is_told(), "it does not wait any more");
    let wait = it.port.wait_for_history(future.marker());
    assert!(it.port.has_historical_data().is_none());
    let end = end_of(&[]);
    assert!(it.port.end_history(TransferId(1), &end) && is_told());
    assert_eq!(it.port.has_historical_data(), Some(Ok(())));
    it.group_status.close();
    it.port.group_failed();
    assert!(is_told());
    assert!(matches!(it.port.has_historical_data(), Some(Err(_))));
    drop(wait);
}
