//! The waking thread: wakes streams.
//!
//! A [`Waker`] is user code like a listener, so the polling thread does not
//! call it. But it returns at once, and a listener may block as long as it
//! likes: streams have a thread of their own, which no listener holds up.
//! Where streams wait for data, it looks for that itself, as a thread in a WaitSet does (see
//! [`super::seat`]). (Threads that wait on a WaitSet are woken by whoever changes something: that
//! is no user code.)

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Waker;

use super::glance::this_thread_calls_back;
use super::session::Session;
use crate::discovery::{Own, Roll};
use crate::subscription::ReaderCore;

/// The readers of a participant.
#[derive(Debug)]
pub(crate) struct Sleepers {
    roll: Arc<Roll>,
}

impl Sleepers {
    pub(crate) fn new(roll: Arc<Roll>) -> Self {
        Self { roll }
    }

    /// Runs until the participant leaves. Allocates only when endpoints came or went.
    pub(crate) fn run(self, session: &Session) {
        let bells = session.bells();
        let bell = &bells.wakers;
        bell.begin(bells.couch());
        this_thread_calls_back();
        let mut spare = Vec::new();
        let mut readers = Vec::new();
        let mut generation = None;
        loop {
            bell.signal().reset();
            if session.is_stopping() {
                break;
            }
            // Before the look: the last word of a reader that goes is said by then.
            let now = Some(self.roll.generation());
            let due = readers
                .iter()
                .filter(|reader: &&Arc<ReaderCore>| reader.side.streams.is_due());
            let woken = due.map(|reader| wake(reader, &mut spare)).count();
            if generation != now {
                generation = now;
                readers = self.readers();
            } else if woken == 0 {
                session.wait_as(bell.signal(), bells.are_streamed());
            }
        }
        bell.end();
        // Streams find out that it is over.
        readers.iter().for_each(|reader| wake(reader, &mut spare));
    }

    fn readers(&self) -> Vec<Arc<ReaderCore>> {
        let own = self.roll.all().into_iter();
        let readers = own.filter_map(|own| match own {
            Own::Reader(reader) => Some(reader),
            Own::Writer(_) => None,
        });
        readers.collect()
    }
}

/// Wakes the streams of a reader; `spare` saves an allocation.
fn wake(reader: &ReaderCore, spare: &mut Vec<Waker>) {
    reader.side.streams.take(spare);
    for waker in spare.drain(..) {
        // A waker that panics is user code that failed: the others are woken.
        if catch_unwind(AssertUnwindSafe(|| waker.wake())).is_err() {
            tracing::error!("a waker panicked");
        }
    }
}
