//! The threads of a participant: all there before it joins a group.

use std::io;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use spindle_dds_transport::library_thread::LibraryThread;
use spindle_dds_transport::thread_settings::ThreadSettings;

use super::control::ControlThread;
use super::dispatch::Dispatcher;
use super::polling;
use super::waking::StreamWaker;
use crate::condition::DataWaiter;
use crate::driver::session::Session;
use crate::error::{Error, Result};
use crate::properties::ThreadsConfig;

/// The name of the thread that calls listeners.
pub(crate) const DISPATCH_THREAD: &str = "spindle-dispatch";

/// What a thread does.
type Task = Box<dyn FnOnce() + Send>;

/// Threads that wait for their tasks. All are started before the participant joins: a shortage of
/// threads refuses the join, before any other member is promised anything. Dropped before
/// [`begin`](Self::begin), they end without having done anything.
#[derive(Debug)]
pub(crate) struct Threads(Vec<(Sender<Task>, JoinHandle<()>)>);

impl Threads {
    /// Starts the polling, the control, the dispatch and the waking thread, in this
    /// order, with their settings. They begin with what [`begin`](Self::begin) gives them.
    ///
    /// # Errors
    /// OUT_OF_RESOURCES without threads; ERROR when the system refuses a setting.
    pub(crate) fn spawn(config: &ThreadsConfig) -> Result<Self> {
        Self::of(
            [
                ("spindle-poll", config.poll),
                ("spindle-control", config.control),
                (DISPATCH_THREAD, config.dispatch),
                ("spindle-wake", config.wake),
            ]
            .map(|(name, settings)| (LibraryThread::named(name), settings)),
        )
    }

    fn of<const N: usize>(threads: [(LibraryThread, ThreadSettings); N]) -> Result<Self> {
        let started = threads
            .into_iter()
            .map(|(thread, settings)| start(thread, &settings));
        let started: io::Result<Vec<_>> = started.collect();
        started.map(Self).map_err(|error| match error.kind() {
            // The settings are refused; the text says which, and why.
            io::ErrorKind::Other => Error::Error(error.to_string()),
            _ => Error::OutOfResources(format!("no thread can be started: {error}")),
        })
    }

    /// Each thread begins with what it does for this session.
    pub(crate) fn begin(
        self,
        session: &Arc<Session>,
        control: ControlThread,
        dispatcher: Dispatcher,
        stream_waker: StreamWaker,
    ) {
        let [polling, controlling, dispatching, waking] = [0; 4].map(|_| session.clone());
        let data_waiter: Weak<dyn DataWaiter> =
            Arc::downgrade(&(session.clone() as Arc<dyn DataWaiter>));
        session.notifier().set_data_waiter(data_waiter);
        let threads = self.run([
            Box::new(move || polling::run(&polling)),
            Box::new(move || control.run(&controlling)),
            Box::new(move || dispatcher.run(&dispatching)),
            Box::new(move || stream_waker.run(&waking)),
        ]);
        session.threads().extend(threads);
    }

    /// The waking thread does `task` before what it begins with. `task` is given the threads.
    pub(crate) fn run_first(self, task: impl FnOnce(Self) + Send + 'static) {
        let Some(sender) = self.0.last().map(|(sender, _)| sender.clone()) else {
            return;
        };
        // The thread waits for nothing else.
        let _ = sender.send(Box::new(move || task(self)));
    }

    fn run<const N: usize>(self, tasks: [Task; N]) -> Vec<JoinHandle<()>> {
        debug_assert_eq!(self.0.len(), N);
        let threads = self.0.into_iter().zip(tasks);
        let running = threads.map(|((sender, thread), task)| {
            // The thread waits for nothing else.
            let _ = sender.send(task);
            thread
        });
        running.collect()
    }
}

fn start(
    thread: LibraryThread,
    settings: &ThreadSettings,
) -> io::Result<(Sender<Task>, JoinHandle<()>)> {
    let (sender, tasks) = mpsc::channel::<Task>();
    let thread = thread.spawn_with(settings, move || {
        while let Ok(task) = tasks.recv() {
            task();
        }
    })?;
    Ok((sender, thread))
}

#[cfg(test)]
mod tests {
    use super::super::join::join;
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    fn thread() -> LibraryThread {
        LibraryThread::named("spindle-test")
    }

    #[test]
    fn a_thread_that_fails_to_start_starts_nothing() {
        // The last one cannot be started: no machine has so much memory.
        let impossible = thread().stack_size(usize::MAX / 4);
        let settings = ThreadSettings::default();
        let failed = Threads::of([(thread(), settings), (impossible, settings)]);
        assert!(
            matches!(&failed, Err(Error::OutOfResources(text)) if text.contains("thread")),
            "{failed:?}"
        );
    }

    #[test]
    fn the_last_thread_does_another_task_first_and_ends_with_the_threads() {
        let (sender, done) = mpsc::channel();
        let threads = Threads::of([(thread(), ThreadSettings::default())]).unwrap();
        let first = sender.clone();
        threads.run_first(move |threads| {
            first.send(1).expect("the test listens");
            threads.run([Box::new(move || sender.send(2).expect("it listens"))]);
        });
        assert_eq!(
            done.iter().collect::<Vec<_>>(),
            [1, 2],
            "then nothing is left"
        );
    }

    #[test]
    fn each_thread_does_its_task_or_ends_without_one() {
        let done = Arc::new(AtomicBool::new(false));
        let task = done.clone();
        let threads = Threads::of([(thread(), ThreadSettings::default())]).unwrap();
        let threads = threads.run([Box::new(move || task.store(true, Ordering::SeqCst))]);
        join(threads, Duration::MAX);
        assert!(done.load(Ordering::SeqCst));
        let (sender, thread) = start(thread(), &ThreadSettings::default()).unwrap();
        drop(sender);
        thread.join().unwrap();
    }
}
