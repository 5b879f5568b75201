//! What history costs beside its payload. Its own binary, for the allocator's sake.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use spindle_dds_core::MessageKind;
use spindle_dds_core::storage::{HistoryLimits, Put, Record, RecordMeta, SampleHistory};

struct Counting;

/// Bytes that are allocated, with what the C library adds: 8 bytes, in units of 16.
static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

const fn taken(size: usize) -> usize {
    (size + 8).next_multiple_of(16)
}

// SAFETY: all is the system's; only a number is kept beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(taken(layout.size()), Ordering::Relaxed);
        // SAFETY: handed through.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(taken(layout.size()), Ordering::Relaxed);
        // SAFETY: handed through.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SAMPLES: u64 = 100_000;
const LEN: usize = 200;

/// Percent of the payload that this history takes.
fn percent(instances: u64, depth: Option<u32>) -> usize {
    let limits = HistoryLimits {
        depth,
        ..HistoryLimits::default()
    };
    let before = ALLOCATED.load(Ordering::Relaxed);
    let mut history = SampleHistory::default();
    for at in 0..SAMPLES {
        // As hashes of keys are.
        let hash = (at % instances).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let meta = RecordMeta {
            position: at,
            sequence: at + 1,
            timestamp: 0,
            writer: [1; 16],
            key: (u128::from(hash) << 64).to_be_bytes(),
            kind: MessageKind::Data,
            encapsulation: 7,
        };
        let record = Record::new(&meta, &[7; LEN]);
        assert_eq!(history.put(meta.key, record, &limits, 0), Put::Kept);
    }
    assert_eq!(history.payload_bytes(), SAMPLES as usize * LEN);
    let taken = ALLOCATED.load(Ordering::Relaxed) - before;
    taken * 100 / history.payload_bytes()
}

#[test]
fn history_takes_little_beside_its_payload() {
    let shapes = [
        (1, None),
        (100, None),
        (100, Some(1_000)),
        (10_000, Some(10)),
    ];
    for (instances, depth) in shapes {
        let percent = percent(instances, depth);
        println!("{instances} instances, depth {depth:?}: {percent} %");
        assert!(percent <= 160, "{instances} {depth:?}: {percent} %");
    }
    // Each instance has an entry of its own.
    let single = percent(SAMPLES, Some(1));
    println!("single samples: {single} %");
    assert!(single <= 240, "{single} %");
}
