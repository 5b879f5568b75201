//! Links whose batches were handed over to the I/O thread, and whether that has to be woken.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::shared::{Shared, StreamLink};
use crate::fabric::peers::PEERS_MAX;

/// How long the I/O thread yields before it sends, as long as more is pushed meanwhile: each
/// system call, and each wake-up of the peer, carries more.
const GATHER_FOR: Duration = Duration::from_micros(50);

/// The same, as long as nothing is. A thread that publishes takes about one microsecond for a message,
/// and now and then some more.
const STILL_FOR: Duration = Duration::from_micros(5);

/// So many bytes are sent at once, whatever is pushed.
const GATHER_LEN: usize = 1 << 14;

/// How often the I/O thread yields in vain before it sleeps: a thread that pushes fast
/// hands the next batch over meanwhile, and wakes no thread.
const YIELDS: u32 = 2;

/// How often links are served before other events are looked for: a thread that pushes fast makes its
/// link due again each time.
const ROUNDS_MAX: usize = 16;

#[derive(Debug)]
pub(super) struct DueLinks(Mutex<Due>);

impl Default for DueLinks {
    fn default() -> Self {
        Self(Mutex::new(Due {
            links: link_numbers(),
            is_asleep: false,
        }))
    }
}

/// Room for the numbers of as many links as there are: adding one allocates nothing.
pub(super) fn link_numbers() -> Vec<u64> {
    Vec::with_capacity(PEERS_MAX)
}

#[derive(Debug)]
struct Due {
    /// Numbers of links, each at most once.
    links: Vec<u64>,
    /// The I/O thread sleeps, or is about to, and has not been woken.
    is_asleep: bool,
}

impl DueLinks {
    fn due(&self) -> MutexGuard<'_, Due> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A link has a batch that is handed over. Whether the I/O thread has to be woken.
    pub(super) fn add(&self, link: u64) -> bool {
        let mut due = self.due();
        due.links.push(link);
        core::mem::take(&mut due.is_asleep)
    }

    /// The I/O thread is about to sleep: false if there is a link to be served first.
    pub(super) fn begin_sleep(&self) -> bool {
        let mut due = self.due();
        due.is_asleep = due.links.is_empty();
        due.is_asleep
    }

    pub(super) fn end_sleep(&self) {
        self.due().is_asleep = false;
    }

    fn is_empty(&self) -> bool {
        self.due().links.is_empty()
    }

    /// Moves the numbers of all links to `into`, which is empty.
    fn take(&self, into: &mut Vec<u64>) {
        core::mem::swap(&mut self.due().links, into);
    }
}

impl Shared {
    /// Sends what was handed over, until nothing is while other threads had the processor.
    /// `links` is empty, before and after.
    pub(super) fn send_due(&self, links: &mut Vec<u64>) {
        if self.due.is_empty() {
            return;
        }
        let mut vain = 0;
        for _ in 0..ROUNDS_MAX {
            if vain == YIELDS {
                return;
            }
            // A thread that pushes and has no processor goes on; then there is more to send.
            thread::yield_now();
            self.due.take(links);
            vain = if links.is_empty() { vain + 1 } else { 0 };
            for number in links.drain(..) {
                if let Some(link) = self.link(number) {
                    gather(&link);
                    let sent = link.outgoing.send_handed_over();
                    if matches!(sent, Ok(true)) {
                        // This thread is awake.
                        self.due.add(number);
                    }
                    self.sent(&link, sent.map(|_| ()));
                }
            }
        }
    }
}

/// Yields while more is pushed to this peer, up to a limit. Where other threads want the processor,
/// one yield is long enough.
fn gather(link: &StreamLink) {
    let begun = Instant::now();
    let (mut before, mut changed) = (0, begun);
    loop {
        let (waiting, now) = (link.outgoing.waiting(), Instant::now());
        if waiting != before {
            (before, changed) = (waiting, now);
        }
        if waiting >= GATHER_LEN || now - changed >= STILL_FOR || now - begun >= GATHER_FOR {
            return;
        }
        thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_is_woken_only_where_it_sleeps() {
        let (due, mut links) = (DueLinks::default(), Vec::new());
        assert!(!due.add(7), "it is awake");
        assert!(!due.begin_sleep(), "a link is due");
        due.take(&mut links);
        assert_eq!(links, [7]);
        assert!(due.begin_sleep());
        assert!(due.add(8), "it sleeps");
        assert!(!due.add(9), "it has been woken");
        links.clear();
        due.take(&mut links);
        assert_eq!(links, [8, 9]);
        assert!(due.begin_sleep());
        due.end_sleep();
        assert!(!due.add(8), "another event has woken it");
    }
}
