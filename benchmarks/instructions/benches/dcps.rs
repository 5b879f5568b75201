//! Instructions of a sample from one participant to another over shared memory, from the
//! writer's loan to the view that a reader gives back. Both participants are in this
//! process, and stepped by hand: no other thread has a part in what is counted.
//!
//! `.ci/instructions` runs it and compares; see CONTRIBUTING.md.

// What the macros make of it.
#![allow(missing_docs, unused_qualifications)]

mod pair;

use gungraun::prelude::*;

use pair::{BATCH, World};

fn quiet(size: usize) -> World {
    let world = World::new(size);
    world.settle();
    world
}

fn with_one(size: usize) -> World {
    let world = quiet(size);
    world.publish();
    world
}

fn with_batch(size: usize) -> World {
    let world = quiet(size);
    (0..BATCH).for_each(|_| world.publish());
    world
}

fn with_batch_taken(size: usize) -> World {
    let world = with_batch(size);
    world.deliver(BATCH);
    world
}

#[library_benchmark]
#[bench::bytes_8(args = (8), setup = quiet)]
#[bench::bytes_1024(args = (1024), setup = quiet)]
#[bench::bytes_10240(args = (10240), setup = quiet)]
fn publish(world: World) -> World {
    world.publish();
    world
}

#[library_benchmark]
#[bench::bytes_128(args = (128), setup = quiet)]
fn publish_64(world: World) -> World {
    (0..BATCH).for_each(|_| world.publish());
    world
}

#[library_benchmark]
#[bench::bytes_8(args = (8), setup = with_one)]
#[bench::bytes_1024(args = (1024), setup = with_one)]
#[bench::bytes_10240(args = (10240), setup = with_one)]
fn deliver(world: World) -> World {
    world.deliver(1);
    world
}

#[library_benchmark]
#[bench::bytes_128(args = (128), setup = with_batch)]
fn deliver_64(world: World) -> World {
    world.deliver(BATCH);
    world
}

// The writer's own step after a batch has been taken.
#[library_benchmark]
#[bench::bytes_128(args = (128), setup = with_batch_taken)]
fn settle_64(world: World) -> World {
    world.writing.step();
    world
}

#[library_benchmark]
#[bench::reader(args = (128), setup = quiet)]
fn idle_step(world: World) -> World {
    world.reading.step();
    world
}

/// Which routine of libc copies memory depends on the processor: here it is the same.
const HWCAPS: &str =
    "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-AVX,-AVX_Fast_Unaligned_Load,-ERMS,-FSRM,-SSSE3";

library_benchmark_group!(
    name = dcps,
    benchmarks = [
        publish, publish_64, deliver, deliver_64, settle_64, idle_step
    ]
);

main!(
    config = LibraryBenchmarkConfig::default()
        .env("GLIBC_TUNABLES", HWCAPS)
        .pass_through_env("VALGRIND_LIB");
    library_benchmark_groups = dcps
);
