//! The sockets on which a station listens. If the configured port is taken, it listens on
//! another one, and on the configured one, too, as soon as that is free: other stations look
//! for a member of the domain there.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use crate::shm::error::SetupError;

/// Pause between two attempts to get the configured port.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The listeners of a station; the first exists from the beginning.
#[derive(Debug)]
pub(super) struct Listeners {
    listeners: Vec<TcpListener>,
    at: SocketAddr,
    /// The configured address, if its port was taken, and when to try it again.
    missing: Option<(SocketAddr, Instant)>,
}

impl Listeners {
    /// Listens at `wanted`, or on any port if that one is taken.
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

    /// The address of the first listener.
    pub(super) fn at(&self) -> SocketAddr {
        self.at
    }

    /// The configured address, while the station cannot listen there.
    pub(super) fn missing(&self) -> Option<SocketAddr> {
        self.missing.map(|(wanted, _)| wanted)
    }

    /// When to call [`try_again`](Self::try_again).
    pub(super) fn due(&self) -> Option<Instant> {
        self.missing.map(|(_, again)| again)
    }

    /// Tries to listen at the configured address, if it is time.
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
