//! The cache alone, with samples made by hand: a payload is a number.

use spindle_dds_core::MessageKind;
use spindle_dds_idl_runtime::{Encapsulation, KeyHash};
use spindle_dds_qos::{History, Length, ResourceLimits};

use super::room::REPLACEABLE_MAX;
use super::{Arrived, Cache, Offer, Origin, Query, Whose};
use crate::condition::{InstanceStateMask, SampleStateMask, StateMasks};
use crate::handle::{Guid, InstanceHandle};
use crate::status::RejectedReason;
use crate::subscription::{InstanceState, SampleInfo, SampleState, ViewState};

mod model;

/// The handle of a writer.
fn writer(number: u32) -> InstanceHandle {
    InstanceHandle::of_entity(Guid([number as u8; 16]))
}

struct Fixture {
    cache: Cache<u32>,
    position: u64,
    evicted: Vec<u32>,
}

fn key(instance: u8) -> KeyHash {
    KeyHash([instance; 16])
}

impl Fixture {
    fn new(history: History, limits: ResourceLimits, ordered: bool) -> Self {
        let mut cache = Cache::new(history, limits, ordered);
        (0..2).for_each(|index| assert_eq!(cache.admit(writer(index)), (index, true)));
        Self {
            cache,
            position: 0,
            evicted: Vec::new(),
        }
    }

    fn keep_all() -> Self {
        Self::new(History::keep_all(), ResourceLimits::default(), true)
    }

    fn origin(&mut self, writer: u32) -> Origin {
        self.position += 1;
        Origin {
            writer,
            writer_sequence: self.position,
            position: self.position,
            timestamp: 0,
            encapsulation: Encapsulation::CDR_LE,
        }
    }

    fn offer(&mut self, kind: MessageKind, instance: u8, writer: u32, payload: u32) -> Offer<u32> {
        let arrived = Arrived {
            kind,
            key: key(instance),
            origin: self.origin(writer),
            payload,
        };
        let evicted = &mut self.evicted;
        self.cache.offer(arrived, &mut |old| evicted.push(old))
    }

    fn write(&mut self, instance: u8, payload: u32) {
        let offered = self.offer(MessageKind::Data, instance, 0, payload);
        assert!(matches!(offered, Offer::Kept(_)), "{offered:?}");
    }

    fn query(&mut self, max: usize, masks: StateMasks, whose: Whose) -> Query {
        Query { max, masks, whose }
    }

    fn take_infos(&mut self) -> Vec<(SampleInfo, Option<u32>)> {
        let query = self.query(usize::MAX, StateMasks::ANY, Whose::Any);
        let mut out = Vec::new();
        self.cache.take(&query, &mut out);
        out
    }

    fn take(&mut self) -> Vec<Option<u32>> {
        self.take_infos()
            .into_iter()
            .map(|(_, payload)| payload)
            .collect()
    }

    fn read_of(&mut self, masks: StateMasks, whose: Whose) -> Vec<(SampleInfo, Option<u32>)> {
        let query = self.query(usize::MAX, masks, whose);
        let mut out = Vec::new();
        self.cache.read(&query, &mut out, &mut |payload| *payload);
        out
    }
}

fn limits(samples: u32, instances: u32, of_instance: u32) -> ResourceLimits {
    ResourceLimits {
        max_samples: Length::Limited(samples),
        max_instances: Length::Limited(instances),
        max_samples_per_instance: Length::Limited(of_instance),
    }
}

#[test]
fn keep_last_replaces_the_oldest_of_its_instance() {
    let mut fixture = Fixture::new(History::keep_last(2), ResourceLimits::default(), true);
    for (instance, payload) in [(1, 10), (2, 20), (1, 11), (1, 12), (1, 13)] {
        fixture.write(instance, payload);
    }
    assert_eq!(fixture.evicted, [10, 11]);
    assert_eq!(fixture.take(), [Some(20), Some(12), Some(13)]);
}

fn full(reason: RejectedReason, payload: u32) -> Offer<u32> {
    Offer::Full { reason, payload }
}

fn rejected(reason: RejectedReason, payload: u32) -> Offer<u32> {
    Offer::Rejected { reason, payload }
}

#[test]
fn a_sample_waits_where_a_take_makes_room() {
    use RejectedReason::{BySamplesLimit, BySamplesPerInstanceLimit};
    let keep_all = History::keep_all();
    let cases = [
        // Of both instances together.
        (keep_all, limits(2, 2, 2), BySamplesLimit),
        (keep_all, limits(3, 2, 1), BySamplesPerInstanceLimit),
    ];
    for (history, limits, reason) in cases {
        let mut fixture = Fixture::new(history, limits, true);
        fixture.write(1, 10);
        fixture.write(2, 20);
        let offered = fixture.offer(MessageKind::Data, 1, 0, 11);
        assert_eq!(offered, full(reason, 11));
        assert_eq!(fixture.take().len(), 2);
        fixture.write(1, 11);
        // A BEST_EFFORT reader rejects it.
        fixture.cache.set_holds_back(false);
        fixture.write(2, 21);
        let offered = fixture.offer(MessageKind::Data, 1, 0, 12);
        assert_eq!(offered, rejected(reason, 12));
    }
}

#[test]
fn keep_last_waits_for_the_room_that_another_instance_has() {
    let mut fixture = Fixture::new(History::keep_last(1), limits(1, 2, 1), true);
    fixture.write(1, 10);
    let reason = RejectedReason::BySamplesLimit;
    let offer = |fixture: &mut Fixture| fixture.offer(MessageKind::Data, 2, 0, 20);
    assert_eq!(offer(&mut fixture), full(reason, 20));
    // Its own instance can always replace.
    fixture.write(1, 11);
    assert_eq!(offer(&mut fixture), full(reason, 20));
    assert_eq!(fixture.take(), [Some(11)]);
    fixture.write(2, 20);
    assert_eq!(fixture.take(), [Some(20)]);
}

#[test]
fn an_instance_too_many_waits_only_where_a_take_ends_another() {
    let mut fixture = Fixture::new(History::keep_last(1), limits(4, 2, 1), true);
    fixture.write(1, 10);
    fixture.write(2, 20);
    let reason = RejectedReason::ByInstancesLimit;
    // What would end one of the two comes behind it.
    let disposals = [MessageKind::Dispose, MessageKind::DisposeUnregister];
    for kind in [MessageKind::Data].into_iter().chain(disposals) {
        let offered = fixture.offer(kind, 3, 0, 30);
        assert_eq!(offered, rejected(reason, 30), "{kind:?}");
    }
    let unchanged = Offer::State {
        changed: false,
        payload: 30,
    };
    let unregistered = fixture.offer(MessageKind::Unregister, 3, 0, 30);
    assert_eq!(unregistered, unchanged);
    fixture.write(1, 11);
    assert_eq!(fixture.evicted, [10]);
    // An instance that is disposed of gives way, once it is taken.
    let _ = fixture.offer(MessageKind::Dispose, 1, 0, 0);
    for kind in [MessageKind::Data].into_iter().chain(disposals) {
        assert_eq!(fixture.offer(kind, 3, 0, 30), full(reason, 30), "{kind:?}");
    }
    assert_eq!(fixture.take().len(), 3);
    fixture.write(3, 30);
    assert_eq!(fixture.cache.instance(key(1)), None, "its writer lives");
    let offered = fixture.offer(MessageKind::Data, 1, 0, 12);
    assert_eq!(offered, rejected(reason, 12));
    // So does one without writers.
    let _ = fixture.offer(MessageKind::Unregister, 2, 0, 0);
    let offered = fixture.offer(MessageKind::Data, 1, 0, 12);
    assert_eq!(offered, full(reason, 12));
    fixture.take();
    fixture.write(1, 12);
    assert_eq!(fixture.cache.instances.len(), 2);
}

#[test]
fn disposed_instances_do_not_pile_up_while_their_writer_lives() {
    let mut fixture = Fixture::keep_all();
    let key = |number: u32| {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        KeyHash(bytes)
    };
    let max = REPLACEABLE_MAX as u32;
    let offer = |fixture: &mut Fixture, kind, number| {
        let arrived = Arrived {
            kind,
            key: key(number),
            origin: fixture.origin(0),
            payload: 0,
        };
        let _ = fixture.cache.offer(arrived, &mut |_| ());
    };
    offer(&mut fixture, MessageKind::Data, 0);
    for number in 1..3 * max {
        offer(&mut fixture, MessageKind::Data, number);
        offer(&mut fixture, MessageKind::Dispose, number);
        fixture.take();
    }
    assert_eq!(fixture.cache.instances.len(), REPLACEABLE_MAX + 1);
    assert_eq!(fixture.cache.instance(key(0)), Some(InstanceState::Alive));
    let disposed = Some(InstanceState::NotAliveDisposed);
    let known = |fixture: &Fixture, number| fixture.cache.instance(key(number));
    // The last ones are known with their generation counts, the others begin anew.
    assert_eq!(known(&fixture, 2 * max), disposed);
    assert_eq!(known(&fixture, 2 * max - 1), None);
    for (number, generation) in [(2 * max, 1), (2 * max - 1, 0)] {
        offer(&mut fixture, MessageKind::Data, number);
        let infos = fixture.take_infos();
        assert_eq!(infos[0].0.disposed_generation_count, generation);
        assert_eq!(infos[0].0.view_state, ViewState::New);
    }
    // One that came back is at the end of the line when it is disposed of again.
    offer(&mut fixture, MessageKind::Dispose, 2 * max);
    fixture.take();
    (3 * max..4 * max - 1).for_each(|number| offer(&mut fixture, MessageKind::Dispose, number));
    fixture.take();
    assert_eq!(known(&fixture, 2 * max), disposed);
    assert_eq!(known(&fixture, 3 * max - 1), None);
    // What loses its writer is forgotten.
    let origin = fixture.origin(0);
    fixture.cache.writer_gone(origin, false);
    fixture.take();
    assert_eq!(fixture.cache.instances.len(), 0);
    assert_eq!(fixture.cache.instances.oldest_replaceable(), None);
}

#[test]
fn a_writer_that_disposes_of_an_instance_has_it_registered() {
    let mut fixture = Fixture::keep_all();
    fixture.write(1, 10);
    let _ = fixture.offer(MessageKind::Dispose, 1, 1, 0);
    let _ = fixture.offer(MessageKind::Unregister, 1, 0, 0);
    fixture.take();
    let disposed = Some(InstanceState::NotAliveDisposed);
    assert_eq!(fixture.cache.instance(key(1)), disposed);
    let _ = fixture.offer(MessageKind::Data, 1, 1, 11);
    let infos = fixture.take_infos();
    assert_eq!(infos[0].0.disposed_generation_count, 1);
    let _ = fixture.offer(MessageKind::Dispose, 1, 1, 0);
    let _ = fixture.offer(MessageKind::Unregister, 1, 1, 0);
    fixture.take();
    assert_eq!(fixture.cache.instance(key(1)), None);
}

#[test]
fn states_follow_the_chart_of_the_standard() {
    use InstanceState::{Alive, NotAliveDisposed, NotAliveNoWriters};
    let steps: &[(MessageKind, u32, Option<InstanceState>)] = &[
        (MessageKind::Data, 0, Some(Alive)),
        (MessageKind::Dispose, 0, Some(NotAliveDisposed)),
        (MessageKind::Data, 0, Some(Alive)),
        (MessageKind::Data, 1, Some(Alive)),
        (MessageKind::Unregister, 0, Some(Alive)),
        (MessageKind::Unregister, 1, Some(NotAliveNoWriters)),
        (MessageKind::Data, 1, Some(Alive)),
        (MessageKind::DisposeUnregister, 1, Some(NotAliveDisposed)),
        (MessageKind::Unregister, 1, Some(NotAliveDisposed)),
    ];
    let mut fixture = Fixture::keep_all();
    for (at, (kind, writer, state)) in steps.iter().enumerate() {
        let _ = fixture.offer(*kind, 1, *writer, at as u32);
        assert_eq!(
            fixture.cache.instance(key(1)),
            *state,
            "step {at}: {kind:?}"
        );
    }
    let infos = fixture.take_infos();
    let generations: Vec<_> = infos
        .iter()
        .map(|(info, _)| {
            (
                info.disposed_generation_count,
                info.no_writers_generation_count,
            )
        })
        .collect();
    assert_eq!(generations.first(), Some(&(0, 0)));
    assert_eq!(generations.last(), Some(&(1, 1)));
    let (first, last) = (&infos[0].0, &infos[infos.len() - 1].0);
    assert_eq!(
        (first.generation_rank, first.absolute_generation_rank),
        (2, 2)
    );
    assert_eq!(first.sample_rank as usize, infos.len() - 1);
    assert_eq!((last.sample_rank, last.valid_data), (0, false));
    assert_eq!(
        fixture.cache.instance(key(1)),
        None,
        "nothing is left of it"
    );
}

#[test]
fn a_change_of_state_is_one_sample_without_data() {
    let mut fixture = Fixture::keep_all();
    fixture.write(1, 10);
    fixture.take();
    let changed = |changed, payload| Offer::State { changed, payload };
    assert_eq!(
        fixture.offer(MessageKind::Dispose, 1, 0, 0),
        changed(true, 0)
    );
    assert_eq!(
        fixture.offer(MessageKind::Dispose, 1, 0, 0),
        changed(false, 0)
    );
    let infos = fixture.take_infos();
    assert_eq!(infos.len(), 1);
    let (info, payload) = infos[0];
    assert!(!info.valid_data && payload.is_none());
    assert_eq!(info.instance_state, InstanceState::NotAliveDisposed);
    assert_eq!(info.view_state, ViewState::NotNew);
    assert_eq!(
        fixture.offer(MessageKind::Unregister, 9, 0, 0),
        changed(false, 0)
    );
}

#[test]
fn a_writer_that_goes_takes_its_instances_along() {
    let mut fixture = Fixture::keep_all();
    fixture.write(1, 10);
    fixture.write(2, 20);
    let _ = fixture.offer(MessageKind::Data, 2, 1, 21);
    fixture.take();
    let origin = fixture.origin(0);
    assert!(fixture.cache.writer_gone(origin, false));
    assert_eq!(
        fixture.cache.instance(key(1)),
        Some(InstanceState::NotAliveNoWriters)
    );
    assert_eq!(fixture.cache.instance(key(2)), Some(InstanceState::Alive));
    assert_eq!(fixture.take(), [None]);
    assert_eq!(fixture.cache.instance(key(1)), None);
    assert!(!fixture.cache.writer_gone(origin, true), "it is gone once");
}

#[test]
fn a_writer_that_goes_disposes_of_what_it_had_registered() {
    let mut fixture = Fixture::keep_all();
    for instance in [1, 2, 3] {
        fixture.write(instance, u32::from(instance));
    }
    // Shared with another writer; given up before; of the other alone.
    let _ = fixture.offer(MessageKind::Data, 2, 1, 20);
    let _ = fixture.offer(MessageKind::Unregister, 3, 0, 0);
    let _ = fixture.offer(MessageKind::Data, 4, 1, 40);
    fixture.take();
    let origin = fixture.origin(0);
    assert!(fixture.cache.writer_gone(origin, true));
    let infos = fixture.take_infos();
    let told: Vec<_> = infos
        .iter()
        .map(|(info, _)| (info.instance_handle, info.instance_state, info.position()))
        .collect();
    let of = |instance| InstanceHandle::of_instance(key(instance));
    let disposed = InstanceState::NotAliveDisposed;
    assert_eq!(
        told,
        [1, 2].map(|instance| (of(instance), disposed, origin.position))
    );
    let alive = fixture.cache.instance(key(4));
    assert_eq!(alive, Some(InstanceState::Alive));
}

#[test]
fn an_instance_is_new_until_it_is_looked_at_and_again_when_reborn() {
    let mut fixture = Fixture::keep_all();
    let views = |infos: Vec<(SampleInfo, Option<u32>)>| -> Vec<ViewState> {
        infos.iter().map(|(info, _)| info.view_state).collect()
    };
    fixture.write(1, 10);
    fixture.write(1, 11);
    let infos = fixture.take_infos();
    assert_eq!(views(infos), [ViewState::New, ViewState::New]);
    fixture.write(1, 12);
    let infos = fixture.take_infos();
    assert_eq!(views(infos), [ViewState::NotNew]);
    let _ = fixture.offer(MessageKind::Dispose, 1, 0, 0);
    fixture.write(1, 13);
    let infos = fixture.take_infos();
    assert!(views(infos).contains(&ViewState::New));
}

#[test]
fn reading_marks_and_leaves() {
    let mut fixture = Fixture::keep_all();
    fixture.write(1, 10);
    assert_eq!(fixture.read_of(StateMasks::ANY, Whose::Any).len(), 1);
    assert!(fixture.read_of(StateMasks::NOT_READ, Whose::Any).is_empty());
    let read = StateMasks {
        sample: SampleStateMask::READ,
        ..StateMasks::ANY
    };
    assert!(fixture.cache.has(&read) && !fixture.cache.has(&StateMasks::NOT_READ));
    let again = fixture.read_of(read, Whose::Any);
    assert_eq!(again[0].0.sample_state, SampleState::Read);
    assert_eq!(fixture.take(), [Some(10)]);
}

#[test]
fn order_of_the_stream_or_by_instance() {
    let writes = [(2, 20), (1, 10), (2, 21), (1, 11)];
    for (ordered, expected) in [(true, [20, 10, 21, 11]), (false, [20, 21, 10, 11])] {
        let mut fixture = Fixture::new(History::keep_all(), ResourceLimits::default(), ordered);
        writes
            .iter()
            .for_each(|(instance, payload)| fixture.write(*instance, *payload));
        assert_eq!(fixture.take(), expected.map(Some));
    }
}

#[test]
fn instances_are_walked_in_the_order_of_their_handles() {
    let mut fixture = Fixture::keep_all();
    for (instance, payload) in [(3, 30), (1, 10), (2, 20), (1, 11)] {
        fixture.write(instance, payload);
    }
    let mut previous = None;
    let mut walked = Vec::new();
    loop {
        let samples = fixture.read_of(StateMasks::ANY, Whose::Next(previous));
        let Some((info, _)) = samples.first() else {
            break;
        };
        previous = info.instance_handle.key_hash();
        walked.push(
            samples
                .iter()
                .filter_map(|(_, payload)| *payload)
                .collect::<Vec<_>>(),
        );
    }
    assert_eq!(walked, [vec![10, 11], vec![20], vec![30]]);
    let of_two = fixture.read_of(StateMasks::ANY, Whose::Instance(key(2)));
    assert_eq!(of_two.len(), 1);
    assert!(
        fixture
            .read_of(StateMasks::ANY, Whose::Instance(key(9)))
            .is_empty()
    );
    let dead = StateMasks {
        instance: InstanceStateMask::NOT_ALIVE,
        ..StateMasks::ANY
    };
    assert!(fixture.read_of(dead, Whose::Any).is_empty());
}

#[test]
fn a_reference_is_good_for_one_sample_only() {
    let mut fixture = Fixture::keep_all();
    let Offer::Kept(first) = fixture.offer(MessageKind::Data, 1, 0, 10) else {
        panic!("it is kept");
    };
    assert_eq!(fixture.cache.payload_mut(first), Some(&mut 10));
    fixture.take();
    fixture.write(1, 11);
    assert_eq!(
        fixture.cache.payload_mut(first),
        None,
        "its id is used again"
    );
}

#[test]
fn writers_that_are_gone_leave_their_places_to_others() {
    let mut fixture = Fixture::keep_all();
    for round in 2..100 {
        let (index, is_new) = fixture.cache.admit(writer(round));
        assert!(is_new);
        assert_eq!(fixture.cache.admit(writer(round)), (index, false));
        let offered = fixture.offer(MessageKind::Data, 1, index, round);
        assert!(matches!(offered, Offer::Kept(_)), "{offered:?}");
        let origin = fixture.origin(index);
        assert!(fixture.cache.writer_gone(origin, false));
        if round % 2 == 0 {
            // Its sample is still there, so its index is not reused.
            let (next, _) = fixture.cache.admit(writer(round + 100));
            assert_ne!(next, index);
            let origin = fixture.origin(next);
            assert!(!fixture.cache.writer_gone(origin, false));
        }
        let taken = fixture.take_infos();
        let of = taken.iter().map(|(info, _)| info.publication_handle);
        assert_eq!(of.collect::<Vec<_>>(), [writer(round); 2]);
    }
    assert!(fixture.cache.writers.len() <= 4);
}

/// The direct operations of the cache, which handle the common case, have the same results as the
/// general ones.
#[test]
fn direct_and_general_operations_have_the_same_results() {
    let histories = [
        History::keep_all(),
        History::keep_last(3),
        History::keep_last(1),
    ];
    let all = [ResourceLimits::default(), limits(5, 2, 4)];
    let (mut straight, mut again, mut oldest) = (0, 0, 0);
    for seed in 0..600_u64 {
        let pick = |of: u64, by: u64| (seed / by % of) as usize;
        let history = histories[pick(3, 1)];
        let limits = all[pick(2, 3)];
        // Of one instance in half of the runs.
        let instances = [1, 3][pick(2, 6)];
        let mut caches = [0, 1].map(|_| Fixture::new(history, limits, seed % 5 == 0));
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
        let mut next = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        for payload in 0..40 {
            let (instance, writer) = (next(instances) as u8, next(2) as u32);
            let kind = match next(6) {
                0 => MessageKind::Dispose,
                1 => MessageKind::Unregister,
                _ => MessageKind::Data,
            };
            let [plain, quick] = &mut caches;
            let left = match kind {
                MessageKind::Data => quick.cache.fill(key(instance), writer),
                _ => None,
            };
            let left = left.map_or(0, |filling| filling.left());
            let many = left.min(1 + next(3)) as u32;
            let payloads = (payload * 10..).take(many.max(1) as usize);
            let mut offer = |it: u32| plain.offer(kind, instance, writer, it);
            if many == 0 {
                let payload = payload * 10;
                assert_eq!(offer(payload), quick.offer(kind, instance, writer, payload));
            } else {
                let origins: Vec<_> = payloads.clone().map(|_| quick.origin(writer)).collect();
                let filling = quick.cache.fill(key(instance), writer);
                let mut filling = filling.expect("there was room");
                let taken = payloads.clone().zip(origins);
                let taken = taken.map(|(payload, origin)| filling.take_in(origin, payload));
                let taken: Vec<_> = taken.map(Offer::Kept).collect();
                drop(filling);
                assert_eq!(
                    payloads.map(offer).collect::<Vec<_>>(),
                    taken,
                    "seed {seed}"
                );
                straight += 1;
                again += many - 1;
            }
            if next(5) == 0 {
                let max = 1 + next(4) as usize;
                let query = plain.query(max, StateMasks::ANY, Whose::Any);
                oldest += u32::from(quick.cache.only_instance(&query).is_some());
                let outs = caches.each_mut().map(|it| {
                    let mut out = Vec::new();
                    it.cache.take(&query, &mut out);
                    out
                });
                assert_eq!(outs[0], outs[1], "seed {seed}");
            }
        }
        let [plain, quick] = &mut caches;
        if instances == 1 {
            // A query for an instance by key does not take the fast path.
            let query = plain.query(usize::MAX, StateMasks::ANY, Whose::Instance(key(0)));
            let mut out = Vec::new();
            plain.cache.take(&query, &mut out);
            assert_eq!(out, quick.take_infos(), "seed {seed}");
        }
    }
    let enough = straight > 1000 && again > 300 && oldest > 500;
    assert!(enough, "{straight} {again} {oldest}");
}
