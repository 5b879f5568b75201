//! Samples as streams: what wakes them, what holds them up, and how they end.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use futures_core::Stream;
use spindle_dds::{
    DataReader, DataReaderListener, SampleStream, Samples, StateMasks, StatusMask, WaitSet, testing,
};

use crate::flight::State;
use crate::meeting::{Meeting, PATIENCE, enable, reader, state, until, wait_until, writer};

/// The smallest executor.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        thread::park();
    }
}

fn next(stream: &mut SampleStream<State>) -> Option<spindle_dds::Result<Samples<State>>> {
    block_on(poll_fn(|context| Pin::new(&mut *stream).poll_next(context)))
}

#[test]
fn a_stream_wakes_its_task_and_ends_with_the_participant() {
    const SAMPLES: u32 = 1_000;
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let writer = writer(&participants[0], "State");
    let reader = reader(&participants[1], "State");
    enable(&participants);
    let reading = thread::spawn(move || {
        let mut stream = reader.stream(64);
        let mut numbers = Vec::new();
        loop {
            let Some(samples) = next(&mut stream) else {
                return numbers;
            };
            for sample in &samples.expect("the group lives") {
                if sample.info().valid_data {
                    numbers.push(sample.view().expect("data").number());
                }
            }
            if numbers.len() == SAMPLES as usize {
                participants[1].close().expect("it leaves");
            }
        }
    });
    for number in 0..SAMPLES {
        writer.write(&state(1, number)).expect("sent");
        if number % 100 == 0 {
            thread::sleep(Duration::from_millis(1));
        }
    }
    let numbers = reading.join().expect("it ends");
    assert_eq!(numbers, (0..SAMPLES).collect::<Vec<_>>());
}

#[test]
fn a_stream_ends_with_its_reader() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let reader = reader(&participant, "State");
    enable(std::slice::from_ref(&participant));
    let subscriber = reader.subscriber().expect("alive");
    let mut stream = reader.stream(64);
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || sender.send(next(&mut stream).is_none()));
    until("the stream waits", || testing::has_waiting_stream(&reader));
    subscriber
        .delete_datareader(&reader)
        .expect("no samples out");
    assert_eq!(ended.recv_timeout(Duration::from_secs(60)), Ok(true));
}

#[test]
fn a_stream_that_is_dropped_leaves_nothing() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let reader = reader(&participant, "State");
    enable(std::slice::from_ref(&participant));
    let task = Arc::new(Unpark(thread::current()));
    let waker = Waker::from(task.clone());
    for streams in [1, 2] {
        let mut waiting: Vec<_> = (0..streams).map(|_| reader.stream(1)).collect();
        for stream in &mut waiting {
            let polled = Pin::new(stream).poll_next(&mut Context::from_waker(&waker));
            assert!(matches!(polled, Poll::Pending));
        }
        assert!(testing::has_waiting_stream(&reader));
        drop(waiting);
        assert!(!testing::has_waiting_stream(&reader));
        assert_eq!(Arc::strong_count(&task), 2, "no waker is left");
    }
}

/// A waker that says that it was called, and blocks until told to go on.
struct BlockingWaker(mpsc::Sender<()>, Mutex<mpsc::Receiver<()>>);

impl Wake for BlockingWaker {
    fn wake(self: Arc<Self>) {
        let _ = self.0.send(());
        let _ = self.1.lock().expect("no panic").recv();
    }
}

/// The waking thread never sees a reader that is created and deleted while a waker holds it up.
#[test]
fn a_stream_ends_with_its_reader_while_another_is_woken() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let writer = writer(&participant, "State");
    let first = reader(&participant, "State");
    enable(std::slice::from_ref(&participant));
    let (blocking, is_blocked) = mpsc::channel();
    let (go_on, wait) = mpsc::channel();
    let waker = Waker::from(Arc::new(BlockingWaker(blocking, Mutex::new(wait))));
    let mut stream = first.stream(1);
    let polled = Pin::new(&mut stream).poll_next(&mut Context::from_waker(&waker));
    assert!(matches!(polled, Poll::Pending));
    writer.write(&state(1, 0)).expect("sent");
    let patience = Duration::from_secs(60);
    is_blocked
        .recv_timeout(patience)
        .expect("the waker is called");
    let second = reader(&participant, "State");
    let subscriber = second.subscriber().expect("alive");
    let mut stream = second.stream(64);
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || sender.send(next(&mut stream).is_none()));
    until("the stream waits", || testing::has_waiting_stream(&second));
    subscriber
        .delete_datareader(&second)
        .expect("no samples out");
    assert_eq!(ended.recv_timeout(patience), Ok(true));
    go_on.send(()).expect("it waits");
}

/// Says that it was called, and blocks until told to go on.
struct Blocker(mpsc::Sender<()>, mpsc::Receiver<()>);

impl DataReaderListener<State> for Blocker {
    fn on_data_available(&mut self, _: &DataReader<State>) {
        let _ = self.0.send(());
        let _ = self.1.recv();
    }
}

/// While a listener blocks, the streams, conditions and statuses of its own
/// participant go on.
#[test]
fn a_blocked_listener_holds_up_listeners_only() {
    const SAMPLES: u32 = 200;
    let meeting = Meeting::new();
    let [mine, others, leaver]: [_; 3] = meeting.participants();
    let blocks = writer(&others, "Blocked");
    let flows = writer(&others, "State");
    let watched = writer(&mine, "Watched");
    let _watcher = reader(&leaver, "Watched");
    let blocked = reader(&mine, "Blocked");
    let (streamed, awaited) = (reader(&mine, "State"), reader(&mine, "State"));
    let (blocking, is_blocked) = mpsc::channel();
    let (go_on, wait) = mpsc::channel();
    let listener = Box::new(Blocker(blocking, wait));
    let mask = StatusMask::DATA_AVAILABLE;
    blocked.set_listener(mask, Some(listener)).expect("alive");
    enable(&[mine.clone(), others.clone(), leaver.clone()]);
    blocks.write(&state(1, 0)).expect("sent");
    is_blocked.recv().expect("it is called");

    let mut stream = streamed.stream(64);
    let streaming = thread::spawn(move || {
        let mut count = 0;
        while count < SAMPLES as usize {
            count += next(&mut stream).expect("it goes on").expect("data").len();
        }
    });
    let waiting = thread::spawn(move || {
        let waits = WaitSet::new();
        waits.attach(awaited.read_condition(StateMasks::ANY).expect("alive"));
        let mut count = 0;
        while count < SAMPLES as usize {
            waits.wait(PATIENCE).expect("it goes on");
            count += awaited.take(64).map_or(0, |samples| samples.len());
        }
    });
    for number in 0..SAMPLES {
        flows.write(&state(1, number)).expect("sent");
        thread::sleep(Duration::from_micros(200));
    }
    // Neither is told to give up: a stream that is held up never ends.
    let since = std::time::Instant::now();
    while !(streaming.is_finished() && waiting.is_finished()) {
        assert!(since.elapsed() < Duration::from_secs(60), "held up");
        thread::sleep(Duration::from_millis(1));
    }
    streaming.join().expect("it ends");
    waiting.join().expect("it ends");
    leaver.close().expect("it leaves");
    wait_until(watched.status_condition().expect("alive"), || {
        let status = watched.publication_matched_status().expect("alive");
        status.current_count == 0
    });
    drop(go_on);
}

struct Panics(mpsc::Sender<u32>);

impl DataReaderListener<State> for Panics {
    fn on_data_available(&mut self, reader: &DataReader<State>) {
        let samples = reader.take(1).expect("it is told of data");
        let number = samples.get(0).expect("one").data().expect("data").number;
        self.0.send(number).expect("the test listens");
        assert!(number != 1, "as the test wants it");
    }
}

#[test]
fn a_listener_that_panics_does_not_stop_others() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let writers = ["State", "Other"].map(|topic| writer(&participant, topic));
    let readers = ["State", "Other"].map(|topic| reader(&participant, topic));
    let (sender, told) = mpsc::channel();
    for reader in &readers {
        let listener = Box::new(Panics(sender.clone()));
        let mask = StatusMask::DATA_AVAILABLE;
        reader.set_listener(mask, Some(listener)).expect("alive");
    }
    enable(std::slice::from_ref(&participant));
    // The first of each number panics: this listener and the others go on.
    for (number, at) in [(1, 0), (2, 1), (3, 0)] {
        writers[at].write(&state(1, number)).expect("sent");
        assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok(number));
    }
    participant.close().expect("it leaves");
}
