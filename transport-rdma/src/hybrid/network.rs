//! A station's part in a network: its acceptor, its streams, and the members it knows there.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::acceptor::Acceptor;
use super::address::Address;
use super::connecting::{ConnectError, ConnectOutcome};
use super::error::HybridError;
use super::handshake::LocalIdentity;
use super::interfaces;
use super::listeners::Listeners;
use super::options::{EncryptionUse, NetworkOptions, RdmaUse};
use super::pending::NoStation;
use super::rdma::StationRdma;
use crate::shm;
use crate::station::error::StationError;
use crate::tcp;
use crate::thread_settings::ThreadSettings;

/// How long pushes by RDMA have to land when a station closes.
const LAND_WITHIN: Duration = Duration::from_millis(500);

/// A queue pair's patience is this part of a stream's. A packet whose loss nothing reports is
/// sent again after a seventh of it, and later pushes wait meanwhile, heartbeats included. The
/// failure detector may suspect a peer after half of a stream's patience, and has to see a
/// heartbeat before that, even after several such losses in a row.
const PART_OF_PATIENCE: u32 = 3;

#[derive(Debug)]
pub(super) struct Network {
    pub(super) streams: Arc<tcp::StreamTransport>,
    pub(super) rdma: Option<Arc<StationRdma>>,
    acceptor: Acceptor,
    listening: SocketAddr,
    /// Members on other hosts that are going to call.
    expected: Mutex<BTreeSet<u128>>,
}

impl Network {
    /// Opens the network part of the station at `here`, to which it adds its sockets.
    pub(super) fn open(
        options: &NetworkOptions,
        host: &shm::Station,
        (domain, io): (u32, &ThreadSettings),
        here: &mut Address,
    ) -> Result<Self, HybridError> {
        let mut secrets = options.secret.iter().chain(&options.accepted_secret);
        if secrets.any(|secret| secret.as_bytes().is_empty()) {
            return Err(HybridError::EmptySecret);
        }
        let rdma = rdma_beside_encryption(options)?;
        let listens = Listeners::open(options.listen)?;
        let listening = listens.at();
        let ips = match listening.ip() {
            ip if ip.is_unspecified() => interfaces::addresses(ip.is_ipv6()),
            ip => vec![ip],
        };
        let socket = |ip: IpAddr| SocketAddr::new(ip, listening.port());
        here.sockets = ips.into_iter().map(socket).collect();
        let (patience, wake) = (options.streams.user_timeout, Box::new(host.waker()));
        let part = patience / PART_OF_PATIENCE;
        let rdma = StationRdma::open(rdma, listening.ip(), part, wake, io)?;
        let rdma = rdma.map(Arc::new);
        let events = Arc::clone(host.events());
        let closes = rdma.clone();
        let hooks = tcp::StreamHooks {
            wake: Box::new(host.waker()),
            landed: Box::new(host.landing()),
            lost: Box::new(move |peer| closes.iter().for_each(|rdma| rdma.lose(peer))),
            used: Box::new(host.stream_user()),
        };
        let streams = tcp::StreamTransport::open(here.id, &options.streams, events, hooks, io)?;
        let streams = Arc::new(streams);
        host.add_streams(&streams.arriving())?;
        if let Some(rdma) = &rdma {
            rdma.serve(&streams);
        }
        let me = LocalIdentity {
            domain,
            id: here.id,
            host: here.host,
            address: here.write(),
            secret: options.secret.clone(),
            accepted_secret: options.accepted_secret.clone(),
            encryption: options.encryption,
        };
        let acceptor = Acceptor::open(me, listens, Arc::clone(&streams), rdma.clone(), io)?;
        Ok(Self {
            streams,
            rdma,
            acceptor,
            listening,
            expected: Mutex::default(),
        })
    }

    /// Whether all that goes to a member is encrypted.
    pub(super) fn is_encrypted(&self, id: u128) -> bool {
        self.streams.is_encrypted(id) && !self.is_by_rdma(id)
    }

    pub(super) fn listening(&self) -> SocketAddr {
        self.listening
    }

    /// The configured address, while its port is taken.
    pub(super) fn missing(&self) -> Option<SocketAddr> {
        self.acceptor.shared.state().missing
    }

    fn expected(&self) -> MutexGuard<'_, BTreeSet<u128>> {
        self.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn expect_peer(&self, id: u128) {
        self.expected().insert(id);
    }

    /// Whether a member is reached over the network, or is expected to be.
    pub(super) fn has(&self, id: u128) -> bool {
        self.expected().contains(&id) || self.streams.has(id)
    }

    /// Whether pushes to a member go by RDMA.
    pub(super) fn is_by_rdma(&self, id: u128) -> bool {
        self.rdma.as_ref().is_some_and(|rdma| rdma.has(id))
    }

    pub(super) fn drop_peer(&self, id: u128) {
        self.expected().remove(&id);
        self.streams.drop_peer(id);
    }

    /// Calls the station at a contact address.
    pub(super) fn call(
        &self,
        contact: SocketAddr,
        deadline: Instant,
    ) -> Result<ConnectOutcome, HybridError> {
        let called = self.acceptor.call(&[contact], None, deadline);
        called.map_err(|why| match why {
            ConnectError::Closed => StationError::Closed.into(),
            ConnectError::Myself => HybridError::ThisStation,
            ConnectError::Refused(refusal) => HybridError::Refused {
                contact,
                cause: refusal.cause(),
                reason: refusal.reason,
            },
            ConnectError::Not(NoStation { reason, kind }) => HybridError::Unreachable {
                contact,
                reason,
                kind,
            },
            ConnectError::System(error) => error.into(),
        })
    }

    /// Connects to a member on another host.
    pub(super) fn connect(&self, target: &Address, deadline: Instant) -> Result<u128, HybridError> {
        let id = target.id;
        let unreachable = |reason| StationError::Unreachable { id, reason };
        let error = match self.acceptor.call(&target.sockets, Some(id), deadline) {
            Ok(ConnectOutcome::Peer(id)) => return Ok(id),
            Ok(ConnectOutcome::OnHost(_)) => unreachable("it is on this host by now".to_owned()),
            Err(ConnectError::Closed) => StationError::Closed,
            Err(ConnectError::Myself) => return Err(HybridError::ThisStation),
            Err(ConnectError::Refused(refusal)) => StationError::Refused {
                id,
                reason: refusal.reason,
            },
            Err(ConnectError::Not(failure)) => unreachable(failure.reason),
            Err(ConnectError::System(error)) => error.into(),
        };
        Err(error.into())
    }

    /// Closes the acceptor and the streams; peers are told. Pushes by RDMA have half a second
    /// to land.
    pub(super) fn close(&self) {
        self.acceptor.close();
        if let Some(rdma) = &self.rdma {
            let end = Instant::now() + LAND_WITHIN;
            while !rdma.is_still() && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        self.streams.close();
    }
}

/// The use of RDMA: what goes by it cannot be encrypted.
fn rdma_beside_encryption(options: &NetworkOptions) -> Result<&RdmaUse, HybridError> {
    if options.encryption != EncryptionUse::Required {
        return Ok(&options.rdma);
    }
    if options.secret.is_none() {
        return Err(HybridError::NoSecret);
    }
    match &options.rdma {
        RdmaUse::Required(_) => Err(HybridError::EncryptionByRdma),
        RdmaUse::Auto(_) => {
            tracing::debug!("encryption is required: other hosts are reached by streams");
            Ok(&RdmaUse::Off)
        }
        RdmaUse::Off => Ok(&RdmaUse::Off),
    }
}
