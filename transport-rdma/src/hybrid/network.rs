//! A station's part in a network: its door, its streams, and whom it knows there.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::address::Address;
use super::calling::{Reached, Unreached};
use super::door::Door;
use super::error::HybridError;
use super::handshake::Me;
use super::interfaces;
use super::listening::Listening;
use super::options::NetworkOptions;
use super::rdma::Rdma;
use crate::shm;
use crate::station_error::StationError;
use crate::tcp;

/// How long what was pushed by RDMA has to land when a station closes.
const LAND_WITHIN: Duration = Duration::from_millis(500);

/// A queue pair has this part of a stream's patience. It waits a seventh of its own until
/// it sends again what was lost and noticed by nobody, and all that is pushed behind waits
/// with it, signs of life too. Who looks for those may take a peer for failed after half of
/// a stream's patience, and has to see one after several such losses in a row.
const PART_OF_PATIENCE: u32 = 3;

#[derive(Debug)]
pub(super) struct Network {
    pub(super) streams: Arc<tcp::Core>,
    pub(super) rdma: Option<Arc<Rdma>>,
    door: Door,
    listening: SocketAddr,
    /// Members elsewhere that are going to call.
    introduced: Mutex<BTreeSet<u128>>,
}

impl Network {
    /// For the participant that is `here`, without places in the network; what it
    /// writes down of itself is with them.
    pub(super) fn open(
        options: &NetworkOptions,
        host: &shm::Station,
        domain: u32,
        here: &mut Address,
    ) -> Result<Self, HybridError> {
        if options.secret.as_ref().is_some_and(Vec::is_empty) {
            return Err(HybridError::EmptySecret);
        }
        let listens = Listening::open(options.listen)?;
        let listening = listens.at();
        let ips = match listening.ip() {
            ip if ip.is_unspecified() => interfaces::addresses(ip.is_ipv6()),
            ip => vec![ip],
        };
        let socket = |ip: IpAddr| SocketAddr::new(ip, listening.port());
        here.sockets = ips.into_iter().map(socket).collect();
        let (patience, wake) = (options.streams.user_timeout, Box::new(host.waker()));
        let part = patience / PART_OF_PATIENCE;
        let rdma = Rdma::open(&options.rdma, listening.ip(), part, wake)?;
        let rdma = rdma.map(Arc::new);
        let (news, waker) = (Arc::clone(host.news()), Box::new(host.waker()));
        let closes = rdma.clone();
        let lost = move |peer| closes.iter().for_each(|rdma| rdma.lose(peer));
        let streams = tcp::Core::open(here.id, &options.streams, news, waker, Box::new(lost))?;
        let streams = Arc::new(streams);
        if let Some(rdma) = &rdma {
            rdma.serve(&streams);
        }
        let me = Me {
            domain,
            id: here.id,
            host: here.host,
            address: here.write(),
            secret: options.secret.clone(),
        };
        let door = Door::open(me, listens, Arc::clone(&streams), rdma.clone())?;
        Ok(Self {
            streams,
            rdma,
            door,
            listening,
            introduced: Mutex::default(),
        })
    }

    pub(super) fn listening(&self) -> SocketAddr {
        self.listening
    }

    /// Where it is to listen, and does not yet: the port is taken.
    pub(super) fn missing(&self) -> Option<SocketAddr> {
        self.door.shared.state().missing
    }

    fn introduced(&self) -> MutexGuard<'_, BTreeSet<u128>> {
        self.introduced
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn expect_peer(&self, id: u128) {
        self.introduced().insert(id);
    }

    /// Whether a member is reached by streams, or will be.
    pub(super) fn has(&self, id: u128) -> bool {
        self.introduced().contains(&id) || self.streams.has(id)
    }

    /// Whether what is pushed to a member goes by RDMA.
    pub(super) fn is_by_rdma(&self, id: u128) -> bool {
        self.rdma.as_ref().is_some_and(|rdma| rdma.has(id))
    }

    pub(super) fn drop_peer(&self, id: u128) {
        self.introduced().remove(&id);
        self.streams.drop_peer(id);
    }

    /// Whoever listens there.
    pub(super) fn call(
        &self,
        contact: SocketAddr,
        deadline: Instant,
    ) -> Result<Reached, HybridError> {
        let called = self.door.call(&[contact], None, deadline);
        called.map_err(|why| match why {
            Unreached::Closed => StationError::Closed.into(),
            Unreached::Myself => HybridError::ThisStation,
            Unreached::Refused(reason) => HybridError::Refused { contact, reason },
            Unreached::Not(reason) => HybridError::Unreachable { contact, reason },
            Unreached::System(error) => error.into(),
        })
    }

    /// A member elsewhere.
    pub(super) fn connect(&self, target: &Address, deadline: Instant) -> Result<u128, HybridError> {
        let id = target.id;
        let unreachable = |reason| StationError::Unreachable { id, reason };
        let error = match self.door.call(&target.sockets, Some(id), deadline) {
            Ok(Reached::Peer(id)) => return Ok(id),
            Ok(Reached::OnHost(_)) => unreachable("it is on this host by now".to_owned()),
            Err(Unreached::Closed) => StationError::Closed,
            Err(Unreached::Myself) => return Err(HybridError::ThisStation),
            Err(Unreached::Refused(reason)) => StationError::Refused { id, reason },
            Err(Unreached::Not(reason)) => unreachable(reason),
            Err(Unreached::System(error)) => error.into(),
        };
        Err(error.into())
    }

    /// Nobody comes in any more, and those who are there are told. What was pushed by
    /// RDMA has half a second to land.
    pub(super) fn close(&self) {
        self.door.close();
        if let Some(rdma) = &self.rdma {
            let end = Instant::now() + LAND_WITHIN;
            while !rdma.is_still() && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        self.streams.close();
    }
}
