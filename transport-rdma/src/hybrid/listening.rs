//! Where a station listens. If the port that it is told is taken, it listens on another one,
//! and there too once it can: whoever has the port may go, and then nobody would be where
//! others look for this one.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use crate::shm::SetupError;

/// Between two tries to get the port: about as often as a heartbeat is due.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The listeners of a station: the first has been there from the beginning.
#[derive(Debug)]
pub(super) struct Listening {
    listeners: Vec<TcpListener>,
    at: SocketAddr,
    /// Where it is to listen too, and when it tries to.
    missing: Option<(SocketAddr, Instant)>,
}

impl Listening {
    /// Listens there; on any port if that one is taken.
    pub(super) fn open(wanted: SocketAddr) -> Result<Self, SetupError> {
        let (bound, missing) = match bind(wanted) {
            Err(error) if error.kind() == ErrorKind::AddrInUse && wanted.port() != 0 => {
                tracing::info!(%wanted, "the port is taken: listening on any other one");
                let again = Instant::now() + TRY_AGAIN_AFTER;
                (bind((wanted.ip(), 0).into()), Some((wanted, again)))
            }
            bound => (bound, None),
        };
        let ready = bound.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (at, listener) =
            ready.map_err(SetupError::system("listening for members in the network"))?;
        Ok(Self {
            listeners: vec![listener],
            at,
            missing,
        })
    }

    /// Where it has listened from the beginning.
    pub(super) fn at(&self) -> SocketAddr {
        self.at
    }

    /// Where it is to listen too, and could not yet.
    pub(super) fn missing(&self) -> Option<SocketAddr> {
        self.missing.map(|(wanted, _)| wanted)
    }

    /// When to [try again](Self::try_again).
    pub(super) fn due(&self) -> Option<Instant> {
        self.missing.map(|(_, again)| again)
    }

    /// Listens where it could not before, if it can now and it is time.
    pub(super) fn try_again(&mut self, now: Instant) {
        let Some((wanted, again)) = self.missing.filter(|(_, again)| now >= *again) else {
            return;
        };
        self.missing = match bind(wanted) {
            Ok(listener) => {
                tracing::info!(%wanted, "the port is free: listening there too");
                self.listeners.push(listener);
                None
            }
            Err(_) => Some((wanted, now.max(again) + TRY_AGAIN_AFTER)),
        };
    }

    pub(super) fn listeners(&self) -> &[TcpListener] {
        &self.listeners
    }
}

fn bind(at: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(at)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
