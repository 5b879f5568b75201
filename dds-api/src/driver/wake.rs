//! The waking thread: wakes streams, and tells writers who has left.
//!
//! A [`Waker`] is user code like a listener, so the polling thread does not
//! call it. But it returns at once, and a listener may block as long as it
//! likes: streams have a thread of their own, which no listener holds up. The
//! same thread does for the polling thread what takes a lock.
//! (Threads that wait on a WaitSet are woken by whoever changes something: that
//! is no user code.)

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Waker;
use std::thread;

use super::session::Session;
use crate::publication::WriterCore;
use crate::subscription::ReaderCore;
use crate::wire::Wire;

/// The endpoints of a participant.
#[derive(Debug, Default)]
pub(crate) struct Sleepers {
    pub(crate) writers: Vec<Arc<WriterCore>>,
    pub(crate) readers: Vec<Arc<ReaderCore>>,
}

impl Sleepers {
    /// Runs until the participant leaves. Allocates nothing once warm.
    pub(crate) fn run(self, session: &Session<Wire>) {
        session.bells().wakers.is_mine();
        let mut spare = Vec::new();
        while !session.is_stopping() {
            let left = self.members_left(session);
            let due = self.readers.iter().filter(|reader| reader.streams.is_due());
            let woken = due.map(|reader| wake(reader, &mut spare)).count();
            if !left && woken == 0 {
                thread::park();
            }
        }
        // Streams find out that it is over.
        self.readers
            .iter()
            .for_each(|reader| wake(reader, &mut spare));
    }

    fn members_left(&self, session: &Session<Wire>) -> bool {
        let mut any = false;
        while let Some(rank) = session.left.pop() {
            self.writers
                .iter()
                .for_each(|writer| writer.member_left(rank));
            any = true;
        }
        any
    }
}

/// Wakes the streams of a reader; `spare` saves an allocation.
fn wake(reader: &ReaderCore, spare: &mut Vec<Waker>) {
    reader.streams.take(spare);
    for waker in spare.drain(..) {
        // A waker that panics is user code that failed: the others are woken.
        if catch_unwind(AssertUnwindSafe(|| waker.wake())).is_err() {
            tracing::error!("a waker panicked");
        }
    }
}
