//! Medians of two that take turns, so that whatever else the machine does meets both.

use std::time::Instant;

/// Turns of each.
const ROUNDS: usize = 201;
/// About as long a turn takes.
const TURN_NS: u128 = 20_000;

/// Median nanoseconds of each.
pub(crate) fn in_turns(one: &mut dyn FnMut(), other: &mut dyn FnMut()) -> [f64; 2] {
    let repeats = [repeat(one), repeat(other)];
    let mut times = [Vec::with_capacity(ROUNDS), Vec::with_capacity(ROUNDS)];
    for _ in 0..ROUNDS {
        times[0].push(turn(one, repeats[0]));
        times[1].push(turn(other, repeats[1]));
    }
    times.map(|mut times| median(&mut times))
}

/// The one in the middle; they are put in order.
pub(crate) fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// How often it is done in a turn.
fn repeat(run: &mut dyn FnMut()) -> u32 {
    let start = Instant::now();
    let mut count = 0_u32;
    while start.elapsed().as_nanos() < 20 * TURN_NS {
        run();
        count += 1;
    }
    let each = start.elapsed().as_nanos() / u128::from(count.max(1));
    u32::try_from(TURN_NS / each.max(1)).unwrap_or(1).max(1)
}

/// Nanoseconds of one.
fn turn(run: &mut dyn FnMut(), repeat: u32) -> f64 {
    let start = Instant::now();
    for _ in 0..repeat {
        run();
    }
    start.elapsed().as_nanos() as f64 / f64::from(repeat)
}
