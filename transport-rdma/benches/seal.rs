//! The cost of encrypting a connection: a frame is sealed, copied as the network would, and opened
//! again, beside the copy alone.
//!
//! ```text
//! cargo bench -p spindle-dds-transport --bench seal
//! cargo bench -p spindle-dds-transport --bench seal -- 65519 1000     # one length: to count instructions
//! ```
//! One line a length: bytes, nanoseconds a frame, of which copying, and nanoseconds a byte.

use std::time::Instant;

use spindle_dds_transport::hybrid::testing::EncryptedFrame;

const LENS: [usize; 5] = [16, 256, 1024, 16_384, 65_519];

fn main() {
    let numbers = std::env::args().skip(1).filter_map(|it| it.parse().ok());
    let numbers: Vec<usize> = numbers.collect();
    match numbers[..] {
        [len, times] => {
            let ns = run(len, times, true);
            println!("{len} bytes, {times} times: {ns:.0} ns a frame");
        }
        _ => LENS.into_iter().for_each(report),
    }
}

fn report(len: usize) {
    let times = 200_000_000 / (len + 2_000);
    // Once before, to warm up.
    run(len, times / 10, true);
    let (all, copies) = (run(len, times, true), run(len, times, false));
    let a_byte = (all - copies) / len as f64;
    println!("{len:6} bytes: {all:9.1} ns, copying {copies:8.1} ns, {a_byte:6.3} ns a byte");
}

/// Nanoseconds for a frame of so many bytes.
fn run(len: usize, times: usize, seals: bool) -> f64 {
    let mut sealed = EncryptedFrame::new(len);
    let start = Instant::now();
    for _ in 0..times {
        match seals {
            true => sealed.round(),
            false => sealed.copy(),
        }
    }
    start.elapsed().as_nanos() as f64 / times as f64
}
