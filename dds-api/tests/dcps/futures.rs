//! The operations that may block, as futures: pending, woken, cancelled, over.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_core::Stream;
use spindle_dds::qos::{DataWriterQos, Reliability};
use spindle_dds::{
    DataReader, DataWriter, DomainParticipant, Duration, Error, Result, StatusMask, StatusStream,
    testing,
};

use crate::acknowledgments::{narrow_reader, number, write};
use crate::flight::State;
use crate::meeting::{
    Meeting, PATIENCE, enable, reader, reliable_writer, state, take, until, wait_for_members,
    writer, writer_with,
};
use crate::streams::block_on;

/// Counts how often it is woken.
#[derive(Default)]
struct Task(AtomicUsize);

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Task {
    fn poll<F: Future + ?Sized>(self: &Arc<Self>, future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(&Waker::from(self.clone())))
    }

    fn next(self: &Arc<Self>, stream: &mut StatusStream) -> Poll<Option<StatusMask>> {
        Pin::new(stream).poll_next(&mut Context::from_waker(&Waker::from(self.clone())))
    }

    /// Polls again whenever it is woken, until the future is ready.
    fn finish<F: Future + ?Sized>(self: &Arc<Self>, mut future: Pin<&mut F>) -> F::Output {
        let mut polled = 0;
        let mut output = None;
        until("it is woken", || {
            let woken = self.0.load(Ordering::SeqCst);
            if woken > polled {
                polled = woken;
                if let Poll::Ready(ready) = self.poll(future.as_mut()) {
                    output = Some(ready);
                }
            }
            output.is_some()
        });
        output.expect("ready")
    }
}

/// The messages that a ring has room for.
const IN_RING: u32 = 16;

/// A KEEP_ALL writer with a small ring, and a reader that keeps one sample.
struct Pair {
    participants: [DomainParticipant; 2],
    writer: DataWriter<State>,
    reader: DataReader<State>,
    _meeting: Meeting,
}

impl Pair {
    fn new(max_blocking_time: Duration) -> Self {
        let meeting = Meeting::new();
        let participants: [_; 2] = meeting.participants();
        let mut qos = DataWriterQos {
            reliability: Reliability::reliable(max_blocking_time),
            ..reliable_writer()
        };
        qos.property
            .set("spindle.ring.messages", IN_RING.to_string());
        qos.property.set("spindle.ring.bytes", "4096");
        let pair = Self {
            writer: writer_with(&participants[0], "State", qos),
            reader: narrow_reader(&participants[1], "State"),
            participants,
            _meeting: meeting,
        };
        enable(&pair.participants);
        write(&pair.writer, 0..1);
        assert_eq!(take(&pair.reader, 1, number), [0]);
        pair
    }

    fn waiting(&self) -> (usize, u64) {
        let writers = testing::waiting_writers(&self.participants[0]).expect("enabled");
        (testing::waiting_futures(&self.participants[0]), writers)
    }

    /// Writes as many samples as there is ever room for: one goes into the cache, the others stay in the
    /// ring. Returns the number of the sample that there is none for.
    fn fill(&self) -> u32 {
        for next in 1..=IN_RING + 1 {
            until("there is room", || {
                block_on(self.writer.write_async(&state(1, next))).is_ok()
            });
        }
        IN_RING + 2
    }
}

fn is_send<F: Send>(future: F) -> F {
    future
}

#[test]
fn a_write_without_room_is_pending_until_the_reader_takes() {
    let pair = Pair::new(PATIENCE);
    let next = pair.fill();
    assert_eq!(pair.waiting(), (0, 0), "what is written waits no more");
    let task = Arc::<Task>::default();
    let sample = state(1, next);
    let mut future = Box::pin(is_send(pair.writer.write_async(&sample)));
    assert!(task.poll(future.as_mut()).is_pending());
    assert_eq!(pair.waiting(), (1, 1));
    assert!(task.poll(future.as_mut()).is_pending());
    let first = take(&pair.reader, 4, number);
    let written = task.finish(future.as_mut()).expect("there is room");
    assert!(written.message_index().is_some());
    assert_eq!(pair.waiting(), (0, 0));
    let rest = take(&pair.reader, next as usize - 4, number);
    assert_eq!([first, rest].concat(), (1..=next).collect::<Vec<_>>());
    drop(future);
    // The other operations are written in the same way.
    let mut builder = block_on(pair.writer.loan_async()).expect("room");
    builder.set_icao(1).set_number(next + 1);
    let lent = builder.callsign("lent").expect("short").publish();
    lent.expect("sent");
    block_on(pair.writer.dispose_async(&sample)).expect("sent");
    block_on(pair.writer.unregister_instance_async(&sample)).expect("sent");
    assert_eq!(take(&pair.reader, 1, number), [next + 1]);
}

#[test]
fn a_write_that_is_cancelled_has_not_written_and_leaves_nothing() {
    let pair = Pair::new(PATIENCE);
    let next = pair.fill();
    let task = Arc::<Task>::default();
    let sample = state(1, next);
    let mut cancelled = Box::pin(pair.writer.write_async(&sample));
    let mut lost = Box::pin(pair.writer.loan_async());
    assert!(task.poll(cancelled.as_mut()).is_pending());
    assert!(task.poll(lost.as_mut()).is_pending());
    drop((cancelled, lost));
    assert_eq!(pair.waiting(), (0, 0));
    until("no waker is left", || Arc::strong_count(&task) == 1);
    let numbers = take(&pair.reader, next as usize - 1, number);
    assert_eq!(numbers, (1..next).collect::<Vec<_>>());
    block_on(pair.writer.write_async(&state(1, next + 1))).expect("there is room");
    assert_eq!(take(&pair.reader, 1, number), [next + 1]);
    pair.participants[0].close().expect("it leaves");
}

#[test]
fn a_write_without_room_ends_at_max_blocking_time_or_with_its_participant() {
    let pair = Pair::new(Duration::from_millis(5));
    let next = pair.fill();
    let sample = state(1, next);
    let Err(Error::Timeout(text)) = block_on(pair.writer.write_async(&sample)) else {
        panic!("there is no room");
    };
    assert!(text.contains("this process"), "{text}");
    assert_eq!(pair.waiting(), (0, 0));
    let pair = Pair::new(PATIENCE);
    let next = pair.fill();
    let task = Arc::<Task>::default();
    let sample = state(1, next);
    let mut future = Box::pin(pair.writer.write_async(&sample));
    assert!(task.poll(future.as_mut()).is_pending());
    pair.participants[0].close().expect("it leaves");
    let closed = task.finish(future.as_mut());
    assert!(
        matches!(closed, Err(Error::AlreadyDeleted(_))),
        "{closed:?}"
    );
}

#[test]
fn acknowledgments_are_pending_until_the_reader_has_accepted_what_came_before() {
    let pair = Pair::new(PATIENCE);
    let publisher = pair.writer.publisher().expect("alive");
    write(&pair.writer, 1..3);
    let receipt = pair.writer.write(&state(1, 3)).expect("room");
    let [task, of_publisher, of_receipt] = [0; 3].map(|_| Arc::<Task>::default());
    let mut future = Box::pin(is_send(
        pair.writer.wait_for_acknowledgments_async(PATIENCE),
    ));
    let mut all = Box::pin(is_send(publisher.wait_for_acknowledgments_async(PATIENCE)));
    let mut one = Box::pin(is_send(pair.writer.wait_for_async(&receipt, PATIENCE)));
    assert!(task.poll(future.as_mut()).is_pending());
    assert!(of_publisher.poll(all.as_mut()).is_pending());
    assert!(of_receipt.poll(one.as_mut()).is_pending());
    assert!(testing::is_accepting(&pair.participants[0]));
    write(&pair.writer, 4..6);
    assert_eq!(take(&pair.reader, 2, number), [1, 2]);
    // Number 3 is in the cache, and 4 is held back.
    assert_eq!(task.finish(future.as_mut()), Ok(()));
    assert_eq!(of_publisher.finish(all.as_mut()), Ok(()));
    assert_eq!(of_receipt.finish(one.as_mut()), Ok(()));
    drop((future, all, one));
    let short = pair
        .writer
        .wait_for_acknowledgments_async(Duration::from_millis(5));
    let over = block_on(short);
    assert!(matches!(over, Err(Error::Timeout(_))), "{over:?}");
    let mut cancelled = Box::pin(pair.writer.wait_for_acknowledgments_async(PATIENCE));
    assert!(task.poll(cancelled.as_mut()).is_pending());
    drop(cancelled);
    assert!(!testing::is_accepting(&pair.participants[0]));
    assert_eq!(pair.waiting(), (0, 0));
    until("no waker is left", || Arc::strong_count(&task) == 1);
}

#[test]
fn a_status_stream_tells_of_matches_in_order_and_ends_with_its_entity() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let writer = writer(&participants[0], "State");
    let publisher = writer.publisher().expect("alive");
    let mask = StatusMask::PUBLICATION_MATCHED;
    let mut stream = writer.status_stream(mask).expect("alive");
    let mut others = publisher.status_stream(StatusMask::ALL).expect("alive");
    let task = Arc::<Task>::default();
    // No thread of the participant is there yet.
    assert!(task.next(&mut stream).is_pending());
    assert!(task.next(&mut others).is_pending());
    enable(&participants);
    let mut readers = Vec::new();
    for expected in [1, 2, 1, 0] {
        if expected > readers.len() {
            readers.push(reader(&participants[1], "State"));
        } else {
            let gone = readers.pop().expect("one is left");
            let subscriber = gone.subscriber().expect("alive");
            subscriber.delete_datareader(&gone).expect("nothing out");
        }
        assert_eq!(next(&mut stream), Some(mask));
        let status = writer.publication_matched_status().expect("alive");
        assert_eq!(status.current_count, expected as i32);
    }
    assert!(task.next(&mut stream).is_pending());
    publisher.delete_datawriter(&writer).expect("nothing out");
    assert_eq!(next(&mut stream), None);
    assert!(task.next(&mut others).is_pending());
    let before = task.0.load(Ordering::SeqCst);
    participants[0].close().expect("it leaves");
    assert!(task.0.load(Ordering::SeqCst) > before, "the end wakes it");
    assert_eq!(task.next(&mut others), Poll::Ready(None));
    drop((stream, others));
    assert_eq!(testing::waiting_futures(&participants[0]), 0);
    until("no waker is left", || Arc::strong_count(&task) == 1);
}

fn next(stream: &mut StatusStream) -> Option<StatusMask> {
    block_on(poll_fn(|context| Pin::new(&mut *stream).poll_next(context)))
}

/// Entities of a participant that is disabled can end, too.
#[test]
fn a_status_stream_ends_without_a_thread_of_the_participant() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let writer = writer(&participant, "State");
    let publisher = writer.publisher().expect("alive");
    let task = Arc::<Task>::default();
    let all = StatusMask::ALL;
    let mut of_writer = writer.status_stream(all).expect("alive");
    let mut of_publisher = publisher.status_stream(all).expect("alive");
    let mut of_participant = participant.status_stream(all).expect("alive");
    for stream in [&mut of_writer, &mut of_publisher, &mut of_participant] {
        assert!(task.next(stream).is_pending());
    }
    let woken = || task.0.load(Ordering::SeqCst);
    let delete: [&dyn Fn() -> Result<()>; 3] = [
        &|| publisher.delete_datawriter(&writer),
        &|| participant.delete_publisher(&publisher),
        &|| participant.close(),
    ];
    let streams = [&mut of_writer, &mut of_publisher, &mut of_participant];
    for (delete, stream) in delete.into_iter().zip(streams) {
        assert!(task.next(stream).is_pending());
        let before = woken();
        delete().expect("nothing is in the way");
        assert!(woken() > before);
        assert_eq!(task.next(stream), Poll::Ready(None));
    }
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().build().expect("a runtime")
}

/// Two participants, a writer and a reader in one thread: nothing in it blocks.
#[test]
fn one_thread_of_tokio_enables_writes_reads_and_closes() {
    const SAMPLES: u32 = 200;
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let mut qos = reliable_writer();
    qos.property.set("spindle.ring.messages", "16");
    let writer = writer_with(&participants[0], "State", qos);
    let reader = narrow_reader(&participants[1], "State");
    let [mine, others] = &participants;
    runtime().block_on(async {
        let (first, second) = tokio::join!(mine.enable_async(), others.enable_async());
        first.and(second).expect("they are let in");
        others.enable_async().await.expect("it is enabled");
        let writing = async {
            for number in 0..SAMPLES {
                writer.write_async(&state(1, number)).await.expect("sent");
            }
            writer.wait_for_acknowledgments_async(PATIENCE).await
        };
        let reading = async {
            let mut numbers = Vec::new();
            let mut stream = reader.stream(4);
            while numbers.len() < SAMPLES as usize {
                let next = poll_fn(|context| Pin::new(&mut stream).poll_next(context));
                let samples = next.await.expect("it goes on").expect("data");
                numbers.extend(samples.iter().map(number));
            }
            numbers
        };
        let (written, numbers) = tokio::join!(writing, reading);
        written.expect("accepted");
        assert_eq!(numbers, (0..SAMPLES).collect::<Vec<_>>());
        let (first, second) = tokio::join!(mine.close_async(), others.close_async());
        first.and(second).expect("they leave");
        let again = mine.close_async().await;
        assert!(matches!(again, Err(Error::AlreadyDeleted(_))), "{again:?}");
        let enabled = others.enable_async().await;
        assert!(
            matches!(enabled, Err(Error::AlreadyDeleted(_))),
            "{enabled:?}"
        );
    });
    assert_eq!(participants.map(|it| testing::waiting_futures(&it)), [0; 2]);
}

#[test]
fn enabling_that_is_dropped_is_called_off_and_may_be_repeated() {
    let meeting = Meeting::new();
    let [first, second]: [_; 2] = meeting.participants();
    enable(std::slice::from_ref(&first));
    // It lets in none.
    let stopped = testing::ByHand::new(&first).expect("enabled");
    let task = Arc::<Task>::default();
    let mut enabling = Box::pin(is_send(second.enable_async()));
    assert!(task.poll(enabling.as_mut()).is_pending());
    assert!(testing::is_enabling(&second));
    drop(enabling);
    let mut again = Box::pin(second.enable_async());
    // At first the join that was called off is not over.
    let _ = task.poll(again.as_mut());
    drop(stopped);
    task.finish(again.as_mut()).expect("it is let in");
    drop(again);
    wait_for_members(&[first, second], 2);
}

#[test]
fn a_participant_that_is_disabled_or_enabling_is_closed() {
    let meeting = Meeting::new();
    let [first, second]: [_; 2] = meeting.participants();
    block_on(meeting.participant().close_async()).expect("it was disabled");
    enable(std::slice::from_ref(&first));
    let stopped = testing::ByHand::new(&first).expect("enabled");
    let task = Arc::<Task>::default();
    let mut enabling = Box::pin(second.enable_async());
    assert!(task.poll(enabling.as_mut()).is_pending());
    block_on(is_send(second.close_async())).expect("it is called off");
    let called_off = task.finish(enabling.as_mut());
    assert!(
        matches!(called_off, Err(Error::AlreadyDeleted(_))),
        "{called_off:?}"
    );
    drop(stopped);
}
