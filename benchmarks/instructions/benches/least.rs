//! The least time that a sample takes its writer's thread, and its reader's: of thousands of
//! batches the one that was disturbed least, which other load hardly changes. Printed, not
//! judged: one line for each size, of nanoseconds a sample, and one of a look in vain.
//!
//!     cargo bench -p spindle-dds-instructions --bench least

mod pair;

use std::time::Instant;

use pair::{BATCH, World};

const ROUNDS: usize = 5000;
const SIZES: [usize; 3] = [8, 128, 1024];

/// Nanoseconds that `work` takes.
fn time(work: impl FnOnce()) -> u128 {
    let begun = Instant::now();
    work();
    begun.elapsed().as_nanos()
}

fn main() {
    for size in SIZES {
        let world = World::new(size);
        let (mut publish, mut deliver) = (u128::MAX, u128::MAX);
        for _ in 0..ROUNDS {
            world.settle();
            publish = publish.min(time(|| (0..BATCH).for_each(|_| world.publish())));
            deliver = deliver.min(time(|| world.deliver(BATCH)));
        }
        let each = |batch: u128| batch as f64 / BATCH as f64;
        println!(
            "{{\"bytes\": {size}, \"publish_ns_min\": {:.1}, \"deliver_ns_min\": {:.1}}}",
            each(publish),
            each(deliver)
        );
    }
    look_in_vain(World::new(SIZES[0]));
}

/// A polling thread that finds nothing. No other thread steps the reader's engine.
fn look_in_vain(world: World) {
    let World {
        reading, reader, ..
    } = world;
    drop(reading);
    let mut look = u128::MAX;
    for _ in 0..ROUNDS {
        look = look.min(time(|| {
            for _ in 0..BATCH {
                assert!(reader.take(1).is_err());
            }
        }));
    }
    println!(
        "{{\"look_in_vain_ns_min\": {:.1}}}",
        look as f64 / BATCH as f64
    );
}
