//! Measurement of memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
    static HELD: Cell<isize> = const { Cell::new(0) };
    static HELD_MOST: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator with counters per thread. A test that needs figures declares it as
/// its `#[global_allocator]`.
#[derive(Debug)]
pub struct Counting;

fn count(calls: usize, bytes: isize) {
    CALLS.with(|all| all.set(all.get() + calls));
    let held = HELD.with(|held| {
        held.set(held.get() + bytes);
        held.get()
    });
    HELD_MOST.with(|most| most.set(most.get().max(held)));
}

// SAFETY: every call is forwarded to the system allocator with unchanged arguments; the
// counters are cells that need no allocation and no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size().cast_signed());
        // SAFETY: the caller's promises about `layout` are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, -layout.size().cast_signed());
        // SAFETY: `pointer` came from `alloc` above, that is from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Calls of the allocator on this thread while `run` runs.
pub fn allocations(run: impl FnOnce()) -> usize {
    let before = CALLS.with(Cell::get);
    run();
    CALLS.with(Cell::get) - before
}

/// The peak of bytes that this thread holds while `run` runs, beyond those held before.
pub fn most_held<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.with(Cell::get);
    HELD_MOST.with(|most| most.set(before));
    let result = run();
    let most = HELD_MOST.with(Cell::get) - before;
    (result, most.unsigned_abs())
}
