//! The waking thread: wakes streams and futures, and does what a future of the participant needs a thread
//! for, as it may block.
//!
//! A [`Waker`] is user code like a listener, so a thread that steps does not call it. But it returns
//! at once, while a listener may block as long as it likes: streams have a thread of their own,
//! which no listener holds up. If streams wait for data, it waits for data as a thread in a WaitSet
//! does (see [`waiting`](crate::driver::waiting)). Threads in a WaitSet are woken directly by the
//! thread that changes something: that is no user code.

use std::sync::Arc;

use crate::driver::endpoints::local_endpoints::{LocalEndpoint, LocalEndpoints};
use crate::driver::session::Session;
use crate::driver::waiting::poll_on_read::this_thread_calls_back;
use crate::subscription::ReaderCore;

/// Wakes the streams of a participant's readers.
#[derive(Debug)]
pub(crate) struct StreamWaker {
    local_endpoints: Arc<LocalEndpoints>,
}

impl StreamWaker {
    pub(crate) fn new(local_endpoints: Arc<LocalEndpoints>) -> Self {
        Self { local_endpoints }
    }

    /// Runs until the participant leaves. Allocates only when endpoints are created or deleted, and to
    /// wake futures.
    pub(crate) fn run(self, session: &Session) {
        let notifier = session.notifier();
        let bell = &notifier.waking;
        bell.begin(notifier.data_waiter());
        notifier.futures.begin();
        this_thread_calls_back();
        let mut spare = Vec::new();
        let mut readers = Vec::new();
        let mut generation = None;
        loop {
            bell.signal().reset();
            // A waker may have forked, and this be the child's only thread.
            if session.is_stopping() || session.is_inherited() {
                break;
            }
            // Read before the readers: one that is created later changes it again.
            let now = Some(self.local_endpoints.generation());
            let due = readers
                .iter()
                .filter(|reader: &&Arc<ReaderCore>| reader.side.streams.is_due());
            let woken = due.map(|reader| reader.side.streams.wake(&mut spare));
            let woken = woken.count();
            let (any, deadline) = notifier.futures.wake_due();
            if generation != now {
                generation = now;
                readers = self.readers();
            } else if woken == 0 && !any && !notifier.run_tasks() {
                session.wait_in_thread(bell.signal(), notifier.has_streams(), deadline);
            }
        }
        bell.end();
        // Streams find out that it is over. Those of readers that are deleted have been woken.
        for reader in self.readers() {
            reader.side.streams.wake(&mut spare);
        }
        if !session.is_inherited() {
            notifier.futures.end();
            notifier.run_tasks();
        }
    }

    fn readers(&self) -> Vec<Arc<ReaderCore>> {
        let own = self.local_endpoints.all().into_iter();
        let readers = own.filter_map(|own| match own {
            LocalEndpoint::Reader(reader) => Some(reader),
            LocalEndpoint::Writer(_) => None,
        });
        readers.collect()
    }
}
