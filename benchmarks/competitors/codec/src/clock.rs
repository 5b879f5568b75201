//! Median times of two functions that run in turns, so that other load on the machine affects both
//! equally.

use std::time::Instant;

/// Turns of each function.
const ROUNDS: usize = 201;
/// Approximate duration of a turn.
const TURN_NS: u128 = 20_000;

/// Median nanoseconds per call of each function.
pub(crate) fn in_turns(one: &mut dyn FnMut(), other: &mut dyn FnMut()) -> [f64; 2] {
    let repeats = [repeat(one), repeat(other)];
    let mut times = [Vec::with_capacity(ROUNDS), Vec::with_capacity(ROUNDS)];
    for _ in 0..ROUNDS {
        times[0].push(turn(one, repeats[0]));
        times[1].push(turn(other, repeats[1]));
    }
    times.map(|mut times| median(&mut times))
}

/// The median. Sorts `times`.
pub(crate) fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// How many calls take one turn.
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

/// Nanoseconds per call.
fn turn(run: &mut dyn FnMut(), repeat: u32) -> f64 {
    let start = Instant::now();
    for _ in 0..repeat {
        run();
    }
    start.elapsed().as_nanos() as f64 / f64::from(repeat)
}
