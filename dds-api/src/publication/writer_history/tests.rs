use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// The number of a write is its timestamp.
fn sample(kind: MessageKind, instance: u8, number: i64, len: usize) -> WaitingSample {
    WaitingSample {
        kind,
        instance: KeyHash([instance; 16]),
        key_hash: KeyHash([instance; 16]),
        timestamp: number,
        payload: vec![instance; len],
        is_admitted: false,
        skipped: 0,
    }
}

fn history(kept: History, samples_max: Length, samples_of_10_bytes_max: usize) -> WriterHistory {
    let bytes_max = samples_of_10_bytes_max * (NOTED_BYTES + 10);
    WriterHistory::new(kept, samples_max, bytes_max)
}

/// Pushes samples of these instances, numbered from `from`, and asserts that they fit.
fn push_all(history: &mut WriterHistory, from: i64, instances: &[u8], replaces: bool) {
    for (number, instance) in (from..).zip(instances) {
        let sample = sample(MessageKind::Data, *instance, number, 10);
        history.push(sample, replaces).expect("it fits");
    }
}

/// Numbers of what waits, and how many each announces as lost.
fn drained(history: &mut WriterHistory) -> Vec<(i64, u32)> {
    let all = history.clear();
    all.iter().map(|it| (it.timestamp, it.skipped)).collect()
}

const UNLIMITED: Length = Length::Unlimited;

#[test]
fn keep_last_replaces_the_oldest_of_its_instance() {
    let mut history = history(History::keep_last(2), UNLIMITED, 100);
    push_all(&mut history, 0, &[1, 2, 1, 1, 2, 1], true);
    assert_eq!(
        drained(&mut history),
        [(1, 1), (3, 1), (4, 0), (5, 0)],
        "0 and 2 are gone"
    );
}

#[test]
fn without_need_nothing_is_replaced() {
    let mut history = history(History::keep_last(1), UNLIMITED, 4);
    push_all(&mut history, 0, &[1, 1, 1, 2], false);
    push_all(&mut history, 4, &[1], false);
    assert_eq!(drained(&mut history), [(3, 3), (4, 0)], "it is full");
}

#[test]
fn keep_all_refuses_what_does_not_fit_and_one_sample_always_fits() {
    for (samples_max, bytes_max, full) in [
        (2.into(), 100, HistoryFull::Samples),
        (UNLIMITED, 2, HistoryFull::Bytes),
    ] {
        let mut history = history(History::keep_all(), samples_max, bytes_max);
        push_all(&mut history, 0, &[1, 1], true);
        let third = sample(MessageKind::Data, 1, 2, 10);
        assert_eq!(history.push(third.clone(), true), Err((third, full)));
        history.pop_front();
        push_all(&mut history, 2, &[1], true);
        assert_eq!(drained(&mut history), [(1, 0), (2, 0)]);
        let huge = sample(MessageKind::Data, 1, 3, 1 << 20);
        history.push(huge, true).expect("it is alone");
    }
}

#[test]
fn what_cannot_be_replaced_does_not_fit() {
    let mut history = history(History::keep_last(1), 1.into(), 100);
    push_all(&mut history, 0, &[1], true);
    let other = sample(MessageKind::Data, 2, 1, 10);
    let refused = history.push(other.clone(), true);
    assert_eq!(refused, Err((other, HistoryFull::Samples)));
    let disposal = sample(MessageKind::Dispose, 2, 2, 10);
    history.push(disposal, true).expect("it is no sample");
}

#[test]
fn a_disposal_is_not_replaced_by_data() {
    let mut history = history(History::keep_last(1), UNLIMITED, 100);
    let kinds = [
        MessageKind::Data,
        MessageKind::Dispose,
        MessageKind::Data,
        MessageKind::Data,
    ];
    for (number, kind) in (0..).zip(kinds) {
        history
            .push(sample(kind, 1, number, 10), true)
            .expect("it fits");
    }
    assert_eq!(drained(&mut history), [(1, 1), (3, 1)]);
}

#[test]
fn a_sample_that_is_given_up_is_announced_by_the_next() {
    let mut history = history(History::keep_last(1), UNLIMITED, 100);
    push_all(&mut history, 0, &[1, 2, 1], true);
    assert!(history.give_up_front().is_some());
    assert_eq!(drained(&mut history), [(2, 2)], "one was replaced before");
}

/// What a reader knows of an instance of the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Unknown,
    Alive,
    Disposed,
    NoWriters,
}

/// The state of an instance after a message, and whether the writer has it registered.
fn after((state, _): (State, bool), kind: MessageKind, registered: bool) -> (State, bool) {
    match kind {
        MessageKind::Data => (State::Alive, true),
        MessageKind::Dispose => (State::Disposed, registered || state == State::Unknown),
        MessageKind::DisposeUnregister => (State::Disposed, false),
        MessageKind::Unregister if state == State::Alive => (State::NoWriters, false),
        _ => (state, false),
    }
}

/// By instance.
type States = [(State, bool); 3];

fn apply(states: &mut States, sample: &WaitingSample) {
    let state = &mut states[usize::from(sample.instance.0[0])];
    *state = after(*state, sample.kind, state.1);
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Push {
        kind: MessageKind,
        instance: u8,
        replaces: bool,
    },
    Pop,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let kind = prop_oneof![
        6 => Just(MessageKind::Data),
        2 => Just(MessageKind::Dispose),
        1 => Just(MessageKind::Unregister),
        1 => Just(MessageKind::DisposeUnregister),
    ];
    let push = (kind, 0..3_u8, any::<bool>()).prop_map(|(kind, instance, replaces)| Step::Push {
        kind,
        instance,
        replaces,
    });
    vec(prop_oneof![4 => push, 1 => Just(Step::Pop)], 0..80)
}

/// Whatever is written, and whenever there is room: see the invariants of the module.
fn check(kept: History, samples_max: u32, bytes_max: usize, steps: &[Step]) {
    let mut history = history(kept, samples_max.into(), bytes_max);
    let (mut written, mut sent) = (States::default(), States::default());
    let (mut gone_samples, mut announced) = (0, 0);
    let mut last_sent = -1;
    let mut send = |history: &mut WriterHistory| {
        let sample = history.pop_front()?;
        assert!(sample.timestamp > last_sent, "out of order");
        last_sent = sample.timestamp;
        announced += sample.skipped;
        apply(&mut sent, &sample);
        Some(())
    };
    for (number, step) in (0..).zip(steps) {
        let Step::Push {
            kind,
            instance,
            replaces,
        } = *step
        else {
            send(&mut history);
            continue;
        };
        let before: Vec<_> = history.waiting.values().cloned().collect();
        match history.push(sample(kind, instance, number, 10), replaces) {
            Err(_) => {
                let now: Vec<_> = history.waiting.values().cloned().collect();
                assert_eq!(before, now, "a refusal changes nothing");
            }
            Ok((ticket, gone)) => {
                apply(&mut written, &sample(kind, instance, number, 10));
                assert_eq!(ticket + 1, history.next());
                let gone = gone.iter().filter(|it| it.is_data());
                for gone in gone {
                    assert_eq!(kept.kind, HistoryKind::KeepLast);
                    gone_samples += 1;
                    let of_instance = history.waiting.values().filter(|it| it.is_data());
                    let mut of_instance = of_instance.filter(|it| it.instance == gone.instance);
                    assert!(of_instance.all(|it| it.timestamp > gone.timestamp));
                }
                let data = history.waiting.values().filter(|it| it.is_data());
                let of_instance = data.filter(|it| it.instance == KeyHash([instance; 16]));
                let is_data = kind == MessageKind::Data;
                if replaces && is_data && kept.kind == HistoryKind::KeepLast {
                    assert!(of_instance.count() <= kept.depth as usize);
                }
            }
        }
        let bytes: usize = history.waiting.values().map(WaitingSample::bytes).sum();
        let samples = history.waiting.values().filter(|it| it.is_data()).count();
        assert_eq!((bytes, samples as u64), (history.bytes(), history.samples));
        assert!(history.len() <= 1 || bytes <= history.bytes_max);
        assert!(history.len() <= 1 || samples <= samples_max as usize + 1);
        let known = history.instances.values().map(|it| it.tickets.len());
        assert_eq!(known.sum::<usize>(), history.len());
    }
    while send(&mut history).is_some() {}
    assert!(history.settled() == history.next() && history.len() == 0);
    assert_eq!(sent, written, "the states of instances in the end");
    assert_eq!(announced, gone_samples);
}

proptest! {
    #[test]
    fn keep_last_keeps_order_and_states(
        depth in 1..4_u32, samples in 1..8_u32, bytes in 1..12_usize, steps in steps(),
    ) {
        check(History::keep_last(depth), samples, bytes, &steps);
    }

    #[test]
    fn keep_all_keeps_all(samples in 1..8_u32, bytes in 1..12_usize, steps in steps()) {
        check(History::keep_all(), samples, bytes, &steps);
    }
}
