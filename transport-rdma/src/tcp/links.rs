//! Set-up: connected streams to all peers become a fabric.

use core::time::Duration;
use std::io;
use std::net::TcpStream;

use super::fabric::TcpFabric;
use super::incoming::Incoming;
use super::outgoing::Outgoing;
use super::streams::{Link, Streams, Wake};
use crate::mem::Region;
use crate::peers::{MEMBERS_MAX, Rank};

/// Longest row: far above any use, far below where lengths overflow.
const ROW_LEN_MAX: usize = 1 << 40;

/// How patient a fabric is with its peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpOptions {
    /// How long a peer may leave sent bytes without an acknowledgement, or a
    /// full stream full, before it has failed (`TCP_USER_TIMEOUT`; whole
    /// milliseconds, at least one).
    pub user_timeout: Duration,
    /// How many records (ranges and words, of 24 bytes each here) may wait for
    /// one peer before it has failed.
    pub waiting_max: usize,
}

impl Default for TcpOptions {
    /// Ten seconds, 65536 records.
    fn default() -> Self {
        Self {
            user_timeout: Duration::from_secs(10),
            waiting_max: 1 << 16,
        }
    }
}

/// Why links did not become a fabric.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// A view of this size is not possible.
    #[error("a view has 1 to {MEMBERS_MAX} members, not {wanted}")]
    ViewSize {
        /// Size wanted.
        wanted: usize,
    },
    /// A row of this length is not possible.
    #[error("the row of member {rank} is to have {len} bytes, at most 2^40 are possible")]
    RowLen {
        /// Whose row.
        rank: Rank,
        /// Length wanted.
        len: usize,
    },
    /// A rank that is no peer's: outside the view, or my own.
    #[error("member {rank} is no peer in a view of {members} in which I am {me}")]
    NoPeer {
        /// The rank.
        rank: Rank,
        /// My own.
        me: Rank,
        /// Size of the view.
        members: usize,
    },
    /// Streams for this peer were given before.
    #[error("member {rank} is linked already")]
    Twice {
        /// Who.
        rank: Rank,
    },
    /// A peer has no streams.
    #[error("member {rank} is not linked")]
    Missing {
        /// Who.
        rank: Rank,
    },
    /// A system call failed that should not.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

impl LinkError {
    /// For `map_err`.
    pub(super) fn system<E: Into<io::Error>>(what: &'static str) -> impl Fn(E) -> Self {
        move |source| Self::System {
            what,
            source: source.into(),
        }
    }
}

/// Streams to and from the peers of a view, connected and authenticated: who
/// connects to whom, and how they know each other, is settled before. Nothing
/// but records of the view goes through them from now on, and nothing has been
/// left unread in them.
#[derive(Debug)]
pub struct Links {
    me: Rank,
    row_lens: Vec<usize>,
    streams: Vec<Option<(TcpStream, TcpStream)>>,
}

impl Links {
    /// For the member `me` of a view whose members have rows of these lengths
    /// in bytes, by rank, the same at all of them.
    pub fn new(me: Rank, row_lens: &[usize]) -> Result<Self, LinkError> {
        let members = row_lens.len();
        if members == 0 || members > MEMBERS_MAX {
            return Err(LinkError::ViewSize { wanted: members });
        }
        if me.index() >= members {
            let rank = me;
            return Err(LinkError::NoPeer { rank, me, members });
        }
        if let Some(rank) = row_lens.iter().position(|&len| len > ROW_LEN_MAX) {
            let (len, rank) = (row_lens[rank], Rank(rank as u16));
            return Err(LinkError::RowLen { rank, len });
        }
        Ok(Self {
            me,
            row_lens: row_lens.to_vec(),
            streams: row_lens.iter().map(|_| None).collect(),
        })
    }

    /// Adds a peer: the stream that I write, and the one that it writes.
    pub fn add(
        &mut self,
        peer: Rank,
        outgoing: TcpStream,
        incoming: TcpStream,
    ) -> Result<(), LinkError> {
        let (me, members) = (self.me, self.row_lens.len());
        if peer == me || peer.index() >= members {
            return Err(LinkError::NoPeer {
                rank: peer,
                me,
                members,
            });
        }
        let place = &mut self.streams[peer.index()];
        if place.is_some() {
            return Err(LinkError::Twice { rank: peer });
        }
        *place = Some((outgoing, incoming));
        Ok(())
    }

    /// Sets the streams up and starts the thread that serves them. All peers
    /// must have been added. Rows begin zeroed. Does not wait for the others.
    pub fn build(self, options: &TcpOptions) -> Result<TcpFabric, LinkError> {
        let rows: Vec<_> = self.row_lens.iter().map(|&len| Region::heap(len)).collect();
        let missing = |&rank: &usize| rank != self.me.index() && self.streams[rank].is_none();
        if let Some(rank) = (0..rows.len()).find(missing) {
            let rank = Rank(rank as u16);
            return Err(LinkError::Missing { rank });
        }
        TcpFabric::start(self, rows, options)
    }

    pub(crate) fn me(&self) -> Rank {
        self.me
    }

    pub(crate) fn row_lens(&self) -> &[usize] {
        &self.row_lens
    }

    /// Whether streams to this peer were added.
    pub(crate) fn has(&self, peer: Rank) -> bool {
        self.streams[peer.index()].is_some()
    }

    /// Starts the data path for those who were added, over these rows, of which
    /// mine and theirs are writable. The I/O thread calls `wake`.
    pub(crate) fn start(
        self,
        rows: &[Region],
        options: &TcpOptions,
        wake: Wake,
    ) -> Result<Streams, LinkError> {
        let mine = rows[self.me.index()].clone();
        let link = |(streams, copy): (Option<(TcpStream, TcpStream)>, &Region)| {
            let Some((outgoing, incoming)) = streams else {
                return Ok(None);
            };
            prepare(&outgoing, &incoming, options)
                .map_err(LinkError::system("setting up a stream"))?;
            let outgoing = Outgoing::new(outgoing, mine.clone(), options.waiting_max);
            let incoming = Incoming::new(incoming, copy.clone());
            Ok(Some(Link::new(outgoing, incoming)))
        };
        let links = self.streams.into_iter().zip(rows).map(link);
        let links = links.collect::<Result<_, _>>()?;
        Streams::start(mine, links, options.user_timeout, wake)
    }
}

fn prepare(outgoing: &TcpStream, incoming: &TcpStream, options: &TcpOptions) -> io::Result<()> {
    outgoing.set_nonblocking(true)?;
    incoming.set_nonblocking(true)?;
    outgoing.set_nodelay(true)?;
    let millis = options.user_timeout.as_millis().max(1);
    // The kernel takes a signed number.
    let millis = i32::try_from(millis).unwrap_or(i32::MAX) as u32;
    rustix::net::sockopt::set_tcp_user_timeout(outgoing, millis)?;
    Ok(())
}
