//! The streams of one member to some of the others: pushing, receiving, failing.
//!
//! It neither owns rows nor knows how a member sleeps: a view in which some
//! peers are reached by other means has one of these for the rest.

use core::time::Duration;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::incoming::Incoming;
use super::io::IoThread;
use super::links::LinkError;
use super::outgoing::Outgoing;
use super::queue::{Full, Push};
use super::record::RecordError;
use crate::counters::{PushCounters, SleepCounters};
use crate::fabric::{FABRIC_AREA, FabricCounters, Failure, FailureCause, Ring};
use crate::failures::Failures;
use crate::mem::Region;
use crate::peers::{PeerSet, Rank};

/// Why a link is one no more.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("it ended its stream")]
    Ended,
    #[error("its stream ended inside a record")]
    EndedInside,
    #[error("its stream broke: {0}")]
    Broken(io::Error),
    #[error("it sent a record {0}")]
    NoRecord(RecordError),
    #[error("it takes too little: {waiting} records wait for it already")]
    Full { waiting: usize },
    #[error("the thread that serves the streams has ended: {0}")]
    NoThread(io::Error),
}

/// How far a link has come. For tests and tools: it takes the link's locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkState {
    /// Pushes to the peer are sent: it has not failed and is not fenced.
    pub sending: bool,
    /// What the peer pushes is received.
    pub receiving: bool,
    /// Bytes of stream that wait to be sent.
    pub waiting: usize,
    /// Bytes of stream that were sent.
    pub sent: u64,
    /// Bytes of the peer's stream that were received and applied, and their
    /// rings answered.
    pub received: u64,
}

/// The two streams between me and a peer.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) outgoing: Outgoing,
    pub(super) incoming: Incoming,
    /// Its failure was told, or need not be as it is fenced.
    told: AtomicBool,
}

impl Link {
    pub(super) fn new(outgoing: Outgoing, incoming: Incoming) -> Self {
        Self {
            outgoing,
            incoming,
            told: AtomicBool::new(false),
        }
    }
}

/// Wakes the sleeper of this process, if it wants to know; whether it did.
pub(crate) type Wake = Box<dyn Fn(Ring) -> bool + Send + Sync>;

/// What the I/O thread needs too.
pub(super) struct Shared {
    /// By rank; none for myself and for those who are reached otherwise.
    pub(super) links: Vec<Option<Link>>,
    /// How long a peer's stream may go on after mine to it has ended.
    pub(super) patience: Duration,
    wake: Wake,
    failures: Failures,
    pushes: PushCounters,
    sleep: SleepCounters,
}

impl core::fmt::Debug for Shared {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Shared")
            .field("links", &self.links)
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// The peer has failed: told once. What of its stream is still on its way
    /// may land.
    pub(super) fn fail(&self, peer: Rank, fault: &Fault) {
        let Some(link) = &self.links[peer.index()] else {
            return;
        };
        link.outgoing.close();
        if !link.told.swap(true, Ordering::AcqRel) {
            let cause = FailureCause::Unreachable(fault.to_string());
            self.failures.put(Failure { peer, cause });
            (self.wake)(Ring::Data);
        }
    }

    /// Takes what has come from a peer.
    pub(super) fn receive(&self, peer: Rank, link: &Link, buffer: &mut [u8]) {
        let answer = |ring| {
            if (self.wake)(ring) {
                self.sleep.rings.fetch_add(1, Ordering::Relaxed);
            }
        };
        if let Err(fault) = link.incoming.receive(buffer, answer) {
            self.fail(peer, &fault);
        }
    }

    /// What came of sending.
    fn sent(&self, peer: Rank, link: &Link, sent: io::Result<()>) {
        match sent {
            Ok(()) => {}
            // The I/O thread is told so too, and waits for its last words.
            Err(error) if is_end(&error) => link.outgoing.close(),
            Err(error) => self.fail(peer, &Fault::Broken(error)),
        }
    }

    /// The stream to a peer takes bytes again, or has ended. If it has, the
    /// peer's own ends soon, and its last words are still in it: whether that
    /// is to be waited for, and no failure was told.
    pub(super) fn go_on(&self, peer: Rank, link: &Link, ended: bool) -> bool {
        match link.outgoing.stream.take_error() {
            Ok(Some(error)) if !is_end(&error) => self.fail(peer, &Fault::Broken(error)),
            Ok(None) if !ended => self.sent(peer, link, link.outgoing.send_again()),
            Ok(_) => {
                link.outgoing.close();
                return !link.incoming.is_closed() && !link.told.load(Ordering::Acquire);
            }
            Err(error) => self.fail(peer, &Fault::Broken(error)),
        }
        false
    }
}

/// Whether a write fails like this because the peer has closed the stream.
fn is_end(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
    )
}

/// The data path over streams, for the peers that have links.
#[derive(Debug)]
pub(crate) struct Streams {
    row: Region,
    shared: Arc<Shared>,
    _io: IoThread,
}

impl Streams {
    /// Over my own row; `wake` is called by the I/O thread.
    pub(super) fn start(
        row: Region,
        links: Vec<Option<Link>>,
        patience: Duration,
        wake: Wake,
    ) -> Result<Self, LinkError> {
        let shared = Arc::new(Shared {
            links,
            patience,
            wake,
            failures: Failures::default(),
            pushes: PushCounters::default(),
            sleep: SleepCounters::default(),
        });
        let io = IoThread::start(Arc::clone(&shared))?;
        Ok(Self {
            row,
            shared,
            _io: io,
        })
    }

    fn links(&self, of: &PeerSet) -> impl Iterator<Item = (Rank, &Link)> {
        of.iter()
            .filter_map(|peer| Some((peer, self.shared.links.get(peer.index())?.as_ref()?)))
    }

    /// Appends a record for each; returns for how many.
    fn post(&self, push: Push, to: &PeerSet) -> u64 {
        let mut count = 0;
        for (peer, link) in self.links(to) {
            count += 1;
            match link.outgoing.put(push) {
                Ok(false) => {}
                Ok(true) => self.shared.sent(peer, link, link.outgoing.send()),
                Err(Full { waiting }) => self.shared.fail(peer, &Fault::Full { waiting }),
            }
        }
        count
    }

    fn check(&self, at: usize, len: usize) {
        let inside = at >= FABRIC_AREA && self.row.contains(at, len);
        assert!(
            inside && at.is_multiple_of(8) && len.is_multiple_of(8),
            "push of {len} bytes at {at}: unaligned, outside the row or in the fabric's area"
        );
    }

    pub(crate) fn push(&self, at: usize, len: usize, to: &PeerSet) {
        self.check(at, len);
        if len > 0 {
            let peers = self.post(Push::Range { at, len }, to);
            self.shared.pushes.pushed(peers, len);
        }
    }

    /// Sends the value; whoever calls has stored it.
    pub(crate) fn push_word(&self, at: usize, value: u64, to: &PeerSet) {
        self.check(at, 8);
        let peers = self.post(Push::Word { at, value }, to);
        self.shared.pushes.word_pushed(peers);
    }

    /// Sends rings behind the data, and all that was held back, to anybody.
    pub(crate) fn ring(&self, data: &PeerSet, acks: &PeerSet) {
        self.post(Push::Ring(Ring::Data), data);
        self.post(Push::Ring(Ring::Acks), &acks.without(data));
        self.end_batch();
    }

    fn end_batch(&self) {
        for (rank, link) in self.shared.links.iter().enumerate() {
            if let Some(link) = link {
                let sent = link.outgoing.end_batch();
                self.shared.sent(Rank(rank as u16), link, sent);
            }
        }
    }

    pub(crate) fn poll(&self) -> Option<Failure> {
        self.shared.failures.take()
    }

    pub(crate) fn fence(&self, peer: Rank) {
        if let Some(link) = &self.shared.links[peer.index()] {
            link.told.store(true, Ordering::Release);
            link.incoming.close();
            link.outgoing.close();
        }
    }

    /// To count sleeps and nudges in.
    pub(super) fn sleep(&self) -> &SleepCounters {
        &self.shared.sleep
    }

    pub(crate) fn counters(&self) -> FabricCounters {
        self.shared.pushes.read(&self.shared.sleep)
    }

    pub(crate) fn link(&self, peer: Rank) -> Option<LinkState> {
        let link = self.shared.links.get(peer.index())?.as_ref()?;
        let (waiting, sent) = link.outgoing.progress();
        Some(LinkState {
            sending: !link.outgoing.is_closed(),
            receiving: !link.incoming.is_closed(),
            waiting,
            sent,
            received: link.incoming.received(),
        })
    }
}

impl Drop for Streams {
    /// What the streams take at once is sent, the rest is lost.
    fn drop(&mut self) {
        if self._io.is_mine() {
            self.end_batch();
        }
    }
}
