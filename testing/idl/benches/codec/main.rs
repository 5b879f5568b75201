//! The cost of encoding and decoding samples, beside a copy of the same bytes and beside
//! serde with the `cdr` crate, in one run. Prints one JSON line per operation: the median
//! over rounds in which all operations alternate, and its ratios to the copy and to the `cdr`
//! crate.
//!
//! `cargo bench -p spindle-dds-idl-conformance [CASE]`

// Measurements need a clock.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

mod cases;

use std::hint::black_box;
use std::time::Instant;

/// Rounds over which the median is taken.
const ROUNDS: usize = 201;
/// Approximate duration of a turn.
const TURN_NS: u128 = 20_000;
/// Size of the memory, more than the largest sample.
const ROOM: usize = 64 * 1024;

/// An operation that is measured repeatedly.
struct Operation<'c> {
    name: &'static str,
    /// The operation of the `cdr` crate that does the same.
    rival: Option<&'static str>,
    run: Box<dyn FnMut() + 'c>,
    repeat: u32,
    times_ns: Vec<f64>,
}

/// Operations on one kind of sample.
struct Case<'c> {
    name: &'static str,
    bytes: usize,
    operations: Vec<Operation<'c>>,
}

impl<'c> Case<'c> {
    fn new(name: &'static str, bytes: usize) -> Self {
        Self {
            name,
            bytes,
            operations: Vec::new(),
        }
    }

    fn add<R>(
        &mut self,
        name: &'static str,
        rival: Option<&'static str>,
        mut run: impl FnMut() -> R + 'c,
    ) {
        self.operations.push(Operation {
            name,
            rival,
            run: Box::new(move || {
                black_box(run());
            }),
            repeat: 1,
            times_ns: Vec::with_capacity(ROUNDS),
        });
    }

    fn measure(mut self) {
        for operation in &mut self.operations {
            operation.calibrate();
        }
        for _ in 0..ROUNDS {
            for operation in &mut self.operations {
                let time = operation.turn();
                operation.times_ns.push(time);
            }
        }
        let medians: Vec<(&str, f64)> = self
            .operations
            .iter_mut()
            .map(|operation| {
                operation.times_ns.sort_by(f64::total_cmp);
                (operation.name, operation.times_ns[ROUNDS / 2])
            })
            .collect();
        let median_of = |name: &str| medians.iter().find(|one| one.0 == name).map(|one| one.1);
        for operation in &self.operations {
            let median = median_of(operation.name).expect("was measured");
            let ratio = |name: Option<&str>| {
                name.and_then(median_of)
                    .map_or_else(|| "null".to_owned(), |base| format!("{:.2}", median / base))
            };
            println!(
                "{{\"case\":\"{}\",\"bytes\":{},\"operation\":\"{}\",\"median_ns\":{median:.1},\
                 \"of_memcpy\":{},\"of_cdr\":{}}}",
                self.name,
                self.bytes,
                operation.name,
                ratio(Some("memcpy")),
                ratio(operation.rival),
            );
        }
    }
}

impl Operation<'_> {
    fn calibrate(&mut self) {
        let start = Instant::now();
        let mut count = 0_u32;
        while start.elapsed().as_nanos() < 20 * TURN_NS {
            (self.run)();
            count += 1;
        }
        let each = start.elapsed().as_nanos() / u128::from(count.max(1));
        self.repeat = u32::try_from(TURN_NS / each.max(1)).unwrap_or(1).max(1);
    }

    /// Nanoseconds of one operation.
    fn turn(&mut self) -> f64 {
        let start = Instant::now();
        for _ in 0..self.repeat {
            (self.run)();
        }
        start.elapsed().as_nanos() as f64 / f64::from(self.repeat)
    }
}

fn main() {
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    for (name, case) in cases::ALL {
        if wanted
            .as_ref()
            .is_none_or(|wanted| name.contains(&wanted[..]))
        {
            case();
        }
    }
}
