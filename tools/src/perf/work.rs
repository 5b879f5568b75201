//! `spindle perf work`: the cost of the bytes alone. A writer and readers write and sum all bytes
//! of their samples, which move from one processor's cache to another's. Samples are handed over
//! in blocks, with as many in flight as a ring holds, and without any protocol.

use std::collections::VecDeque;
use std::hint::black_box;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{self, ScopedJoinHandle};
use std::time::Instant;

use serde::Serialize;

use super::options::{LARGE, OF_LARGE, WorkOptions};
use super::{Failure, clock, payload};

/// Samples in flight: the default of `spindle.ring.messages`.
const SAMPLES_IN_FLIGHT: usize = 4096;
/// Bytes in flight at most: the default of `spindle.ring.bytes`.
const BYTES_IN_FLIGHT: usize = 5 << 20;
/// Blocks in flight.
const BLOCKS: usize = 16;

/// Samples that are handed over together. The last block may not be full.
struct Block {
    bytes: Vec<u8>,
    samples: usize,
}

/// What is printed.
#[derive(Debug, Serialize)]
struct Outcome {
    size: usize,
    readers: u32,
    samples: u64,
    /// Until the last reader was done with all samples.
    seconds: f64,
    samples_per_s: f64,
    cpu_seconds: f64,
    lost: u64,
    per_reader: Vec<OfReader>,
}

#[derive(Debug, Serialize)]
struct OfReader {
    samples: u64,
}

pub(super) fn run(options: &WorkOptions) -> Result<(), Failure> {
    let outcome = work(options)?;
    let mut out = io::stdout().lock();
    if options.json {
        writeln!(out, "{}", serde_json::to_string(&outcome)?)?;
        return Ok(());
    }
    let Outcome {
        samples_per_s,
        readers,
        ..
    } = outcome;
    writeln!(
        out,
        "{samples_per_s:.0} samples/s of {} B, written once and summed {readers} times; {:.0} ns of \
         processor time per sample",
        options.size,
        outcome.cpu_seconds * 1e9 / options.samples as f64
    )?;
    Ok(())
}

fn work(options: &WorkOptions) -> Result<Outcome, Failure> {
    let WorkOptions {
        size,
        readers,
        samples,
        ..
    } = *options;
    let (to, from): (Vec<_>, Vec<_>) = (0..readers).map(|_| channel()).unzip();
    let blocks = blocks(size);
    let cpu_started_ns = clock::process_cpu_ns();
    let begin = Instant::now();
    let per_reader = thread::scope(|scope| -> io::Result<Vec<OfReader>> {
        let writer = thread::Builder::new();
        writer.spawn_scoped(scope, move || writes(blocks, size, samples, &to))?;
        let readers = from.into_iter().map(|from| {
            let reader = thread::Builder::new();
            reader.spawn_scoped(scope, move || sums(&from, size))
        });
        let readers = readers.collect::<io::Result<Vec<_>>>()?;
        let joined = readers.into_iter().map(ScopedJoinHandle::join);
        let summed = joined.map(|samples| samples.map(|samples| OfReader { samples }));
        let summed = summed.collect::<thread::Result<_>>();
        summed.map_err(|_| io::Error::other("a reader has panicked"))
    })?;
    let seconds = begin.elapsed().as_secs_f64();
    Ok(Outcome {
        size,
        readers,
        samples,
        seconds,
        samples_per_s: samples as f64 / seconds.max(1e-9),
        cpu_seconds: (clock::process_cpu_ns() - cpu_started_ns) as f64 * 1e-9,
        lost: per_reader.iter().map(|it| samples - it.samples).sum(),
        per_reader,
    })
}

/// All blocks in flight, of ones, so that their memory is allocated.
fn blocks(size: usize) -> VecDeque<Arc<Block>> {
    let samples = samples_in_block(size);
    let block = || Block {
        bytes: vec![1; samples * size],
        samples,
    };
    (0..BLOCKS).map(|_| Arc::new(block())).collect()
}

fn samples_in_block(size: usize) -> usize {
    let in_flight = match size {
        ..=LARGE => SAMPLES_IN_FLIGHT.min(BYTES_IN_FLIGHT / size.max(1)),
        _ => OF_LARGE as usize,
    };
    (in_flight / BLOCKS).max(1)
}

/// Writes `samples` samples in the order of the blocks, each block as soon as no reader uses it.
fn writes(mut blocks: VecDeque<Arc<Block>>, size: usize, samples: u64, to: &[Sender<Arc<Block>>]) {
    let mut number = 0;
    while number < samples
        && let Some(mut shared) = blocks.pop_front()
    {
        let block = loop {
            match Arc::get_mut(&mut shared) {
                Some(block) => break block,
                None => thread::yield_now(),
            }
        };
        block.samples = (samples - number).min(block.samples as u64) as usize;
        for at in 0..block.samples {
            payload::write(&mut block.bytes[at * size..][..size], number, true);
            number += 1;
        }
        black_box(&block.bytes);
        for reader in to {
            // A reader that is gone has panicked, which its scope reports.
            let _ = reader.send(Arc::clone(&shared));
        }
        blocks.push_back(shared);
    }
}

/// Sums all samples that arrive; returns their number.
fn sums(from: &Receiver<Arc<Block>>, size: usize) -> u64 {
    let mut samples = 0;
    loop {
        match from.try_recv() {
            Ok(block) => {
                for at in 0..block.samples {
                    black_box(payload::sum(&block.bytes[at * size..][..size], true));
                }
                samples += block.samples as u64;
            }
            Err(TryRecvError::Empty) => thread::yield_now(),
            Err(TryRecvError::Disconnected) => return samples,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reader_sums_each_sample() {
        for (size, readers, samples) in [(0, 1, 5), (100, 0, 7), (100, 3, 5000), (60_000, 2, 70)] {
            let options = WorkOptions {
                size,
                readers,
                samples,
                json: true,
            };
            let outcome = work(&options).expect("threads");
            let summed: Vec<_> = outcome.per_reader.iter().map(|it| it.samples).collect();
            assert_eq!(summed, vec![samples; readers as usize]);
        }
    }

    #[test]
    fn as_many_samples_are_in_flight_as_rings_hold() {
        assert_eq!([0, 128, 1024].map(samples_in_block), [256; 3]);
        assert_eq!(samples_in_block(10_240), 32);
        assert_eq!([1 << 20, usize::MAX].map(samples_in_block), [16; 2]);
    }
}
