//! The threads of a participant: all there before its group is formed.

use std::io;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// What a thread is there for.
pub(crate) type Duty = Box<dyn FnOnce() + Send>;

/// Threads that wait for their duties. Dropped before [`begin`](Self::begin),
/// they end without having done anything: what cannot be started is found out
/// before anybody is promised anything.
#[derive(Debug)]
pub(crate) struct Crew(Vec<(Sender<Duty>, JoinHandle<()>)>);

impl Crew {
    /// Starts the polling, the dispatch and the waking thread, in this order.
    pub(crate) fn muster() -> Result<Self> {
        Self::of(["spindle-poll", "spindle-dispatch", "spindle-wake"].map(named))
    }

    fn of<const N: usize>(builders: [thread::Builder; N]) -> Result<Self> {
        let started: io::Result<Vec<_>> = builders.into_iter().map(start).collect();
        started
            .map(Self)
            .map_err(|error| Error::OutOfResources(format!("no thread can be started: {error}")))
    }

    /// Each thread begins with its duty.
    pub(crate) fn begin<const N: usize>(self, duties: [Duty; N]) -> Vec<JoinHandle<()>> {
        debug_assert_eq!(self.0.len(), N);
        let threads = self.0.into_iter().zip(duties);
        let begun = threads.map(|((sender, thread), duty)| {
            // It waits for nothing else.
            let _ = sender.send(duty);
            thread
        });
        begun.collect()
    }
}

fn named(name: &str) -> thread::Builder {
    thread::Builder::new().name(name.to_owned())
}

fn start(builder: thread::Builder) -> io::Result<(Sender<Duty>, JoinHandle<()>)> {
    let (sender, duties) = mpsc::channel::<Duty>();
    let thread = builder.spawn(move || {
        if let Ok(duty) = duties.recv() {
            duty();
        }
    })?;
    Ok((sender, thread))
}

/// Waits until threads have ended, those that do within `patience`: a listener
/// may wait for the calling thread.
pub(crate) fn join(threads: Vec<JoinHandle<()>>, patience: Duration) {
    let me = thread::current().id();
    let since = Instant::now();
    let others = threads.into_iter().filter(|it| it.thread().id() != me);
    for thread in others {
        while !thread.is_finished() && since.elapsed() < patience {
            thread::sleep(Duration::from_micros(200));
        }
        if thread.is_finished() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_thread_that_fails_to_start_starts_nothing() {
        // Whoever is the last cannot be had: no machine has so much memory.
        let impossible = named("spindle-test").stack_size(usize::MAX / 4);
        let failed = Crew::of([named("spindle-test"), impossible]);
        assert!(
            matches!(&failed, Err(Error::OutOfResources(text)) if text.contains("thread")),
            "{failed:?}"
        );
    }

    #[test]
    fn each_has_one_duty_or_none() {
        let done = Arc::new(AtomicBool::new(false));
        let duty = done.clone();
        let crew = Crew::of([named("spindle-test")]).unwrap();
        let threads = crew.begin([Box::new(move || duty.store(true, Ordering::SeqCst))]);
        join(threads, Duration::MAX);
        assert!(done.load(Ordering::SeqCst));
        let (sender, thread) = start(named("spindle-test")).unwrap();
        drop(sender);
        thread.join().unwrap();
    }
}
