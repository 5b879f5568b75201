//! `spindle perf work`: what a writer and readers do with all bytes of their samples, and
//! nothing else. Each has a sample of its own, which stays in its processor's cache, and nobody
//! waits for anybody: no middleware is faster where this is done.

use std::hint::black_box;
use std::io::{self, Write};
use std::thread;
use std::time::Instant;

use serde::Serialize;

use super::options::WorkOptions;
use super::{Failure, clock, payload};

/// What is printed.
#[derive(Debug, Serialize)]
struct Outcome {
    size: usize,
    readers: u32,
    samples: u64,
    /// Until the last of them had done with all samples.
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
        "{samples_per_s:.0} samples/s of {} B are written once and summed {readers} times, \
         {:.0} ns of processor time each",
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
    let cpu_started_ns = clock::process_cpu_ns();
    let begin = Instant::now();
    thread::scope(|scope| -> io::Result<()> {
        thread::Builder::new().spawn_scoped(scope, || writes(size, samples))?;
        (0..readers).try_for_each(|_| {
            let reader = thread::Builder::new().spawn_scoped(scope, || sums(size, samples));
            reader.map(drop)
        })
    })?;
    let seconds = begin.elapsed().as_secs_f64();
    Ok(Outcome {
        size,
        readers,
        samples,
        seconds,
        samples_per_s: samples as f64 / seconds.max(1e-9),
        cpu_seconds: (clock::process_cpu_ns() - cpu_started_ns) as f64 * 1e-9,
        lost: 0,
        per_reader: (0..readers).map(|_| OfReader { samples }).collect(),
    })
}

fn writes(size: usize, samples: u64) {
    let mut sample = vec![0; size];
    for number in 0..samples {
        payload::write(black_box(&mut sample), number, true);
    }
}

fn sums(size: usize, samples: u64) {
    let sample = vec![1; size];
    for _ in 0..samples {
        black_box(payload::sum(black_box(&sample), true));
    }
}
