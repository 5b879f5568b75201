//! After warm-up the path of a sample allocates nothing, on any thread: loan,
//! publish, engine, listener, take. Its own binary, for the allocator's sake.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};

use spindle_dds::qos::{
    DataReaderQos, DataWriterQos, History, Presentation, PresentationAccessScope, PublisherQos,
    Reliability, ResourceLimits, SubscriberQos,
};
use spindle_dds::{
    DataReader, DataReaderListener, DataWriter, DomainParticipant, Duration, StatusMask,
};

use spindle_dds_test_types::flight::State;

struct Counting;

static COUNTING: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

fn count() {
    if COUNTING.load(Ordering::Relaxed) {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: all is the system's; only a number is kept beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: handed through.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: handed through.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: handed through.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Takes all there is, on the dispatch thread.
struct Taker {
    taken: Arc<AtomicU64>,
}

impl DataReaderListener<State> for Taker {
    fn on_data_available(&mut self, reader: &DataReader<State>) {
        while let Ok(samples) = reader.take(32) {
            let sum: u64 = samples
                .iter()
                .map(|sample| u64::from(sample.view().map_or(0, |view| view.number())))
                .sum();
            std::hint::black_box(sum);
            self.taken
                .fetch_add(samples.len() as u64, Ordering::Release);
        }
    }
}

fn ordered() -> Presentation {
    Presentation {
        access_scope: PresentationAccessScope::Topic,
        coherent_access: false,
        ordered_access: true,
    }
}

struct Member {
    participant: DomainParticipant,
    writer: DataWriter<State>,
    reader: DataReader<State>,
    heard: Arc<AtomicU64>,
}

impl Member {
    fn new(directory: &str, storage: &str, resource_limits: ResourceLimits) -> Self {
        let participant = DomainParticipant::builder(0)
            .property("spindle.directory", directory)
            .property("spindle.reader.storage", storage)
            .disabled()
            .create()
            .expect("a participant");
        let topic = participant
            .topic::<State>("State")
            .create()
            .expect("a topic");
        let publisher = PublisherQos {
            presentation: ordered(),
            ..PublisherQos::default()
        };
        let publisher = participant
            .publisher()
            .qos(publisher)
            .create()
            .expect("a publisher");
        let qos = DataWriterQos {
            reliability: Reliability::reliable(Duration::INFINITE),
            resource_limits,
            history: History::keep_all(),
            ..DataWriterQos::default()
        };
        let writer = publisher
            .writer(&topic)
            .qos(qos)
            .create()
            .expect("a writer");
        let subscriber = SubscriberQos {
            presentation: ordered(),
            ..SubscriberQos::default()
        };
        let subscriber = participant
            .subscriber()
            .qos(subscriber)
            .create()
            .expect("a subscriber");
        let qos = DataReaderQos {
            reliability: Reliability::reliable(Duration::ZERO),
            history: History::keep_all(),
            // Bounds the cache, so that warm-up reaches its largest size.
            resource_limits: ResourceLimits {
                max_samples: 64.into(),
                ..ResourceLimits::default()
            },
            ..DataReaderQos::default()
        };
        let heard = Arc::<AtomicU64>::default();
        let taker = Taker {
            taken: heard.clone(),
        };
        subscriber
            .reader(&topic)
            .qos(qos.clone())
            .listener(StatusMask::DATA_AVAILABLE, taker)
            .create()
            .expect("a reader with a listener");
        let reader = subscriber
            .reader(&topic)
            .qos(qos)
            .create()
            .expect("a reader");
        Self {
            participant,
            writer,
            reader,
            heard,
        }
    }
}

/// Writes at both, takes at both; returns when all has been taken.
fn run(members: &[Member; 2], rounds: u32, total: &mut u64) {
    for round in 0..rounds {
        for member in members {
            for number in 0..50 {
                let mut sample = member.writer.loan().expect("room");
                sample.set_icao(number % 5).set_number(round);
                sample
                    .callsign("DLH4AB")
                    .expect("short")
                    .publish()
                    .expect("sent");
            }
        }
        *total += 100;
        for member in members {
            let mut taken = 0;
            while taken < 100 {
                match member.reader.take(16) {
                    Ok(samples) => taken += samples.len(),
                    Err(_) => std::thread::yield_now(),
                }
            }
            while member.heard.load(Ordering::Acquire) < *total {
                std::thread::yield_now();
            }
        }
    }
}

fn check(storage: &str, limits: ResourceLimits) {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path().join("domains");
    let directory = directory.to_str().expect("UTF-8");
    let members = [0, 1].map(|_| Member::new(directory, storage, limits));
    std::thread::scope(|scope| {
        for member in &members {
            scope.spawn(|| member.participant.enable().expect("the group forms"));
        }
    });
    let mut total = 0;
    run(&members, 100, &mut total);
    // A pool that is warm for one interleaving may be cold for another: what
    // counts is that it comes to an end.
    let mut counts = Vec::new();
    for _ in 0..20 {
        ALLOCATIONS.store(0, Ordering::SeqCst);
        COUNTING.store(true, Ordering::SeqCst);
        run(&members, 50, &mut total);
        COUNTING.store(false, Ordering::SeqCst);
        counts.push(ALLOCATIONS.load(Ordering::SeqCst));
        if counts.last() == Some(&0) {
            break;
        }
    }
    assert_eq!(
        counts.last(),
        Some(&0),
        "{storage}, {limits:?}: {counts:?} allocations for 5000 samples each"
    );
    members
        .iter()
        .for_each(|member| member.participant.close().expect("it leaves"));
}

#[test]
fn samples_cost_no_allocation() {
    // The control: the counter counts.
    COUNTING.store(true, Ordering::SeqCst);
    let (sender, receiver) = mpsc::channel();
    sender.send(vec![1_u8]).expect("the receiver lives");
    drop(receiver);
    COUNTING.store(false, Ordering::SeqCst);
    assert!(ALLOCATIONS.load(Ordering::SeqCst) > 0);
    // Just above what is written at a time, so that writers wait now and then.
    let limits = ResourceLimits {
        max_samples: 60.into(),
        max_instances: 5.into(),
        max_samples_per_instance: 12.into(),
    };
    for storage in ["copy", "ring"] {
        check(storage, ResourceLimits::default());
        check(storage, limits);
    }
}
