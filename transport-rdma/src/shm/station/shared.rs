//! State shared by a station's handle, its I/O thread and its segments.

use core::sync::atomic::{AtomicBool, Ordering};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::address::Address;
use super::doorbell_row::DOORBELL_ROW_LEN;
use super::options::HostOptions;
use super::packet::Packet;
use super::row_prefault::prefault;
use super::sleep_state::SleepState;
use super::state::State;
use crate::fabric::peers::Rank;
use crate::memory::mapping::{Mapping, Populated};
use crate::shm::descriptor;
use crate::shm::domain::{Domain, LOCK_WITHIN, StationSocket};
use crate::shm::error::SetupError;
use crate::shm::memory;
use crate::shm::socket::{self, Deadline};
use crate::sleep::eventfd::signal_eventfd;
use crate::station::event::EventQueue;
use crate::station::event_slots::EventSlots;
use crate::station::segment::SegmentKey;

/// Most connections that wait to be accepted.
const BACKLOG: i32 = 512;

/// How long to wait for the domain's lock in the I/O thread, which peers wait for.
const LOCK_SHORTLY_WITHIN: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) address: Address,
    pub(super) domain: Arc<Domain>,
    pub(super) sleep: SleepState,
    /// Wakes the I/O thread.
    socket: Arc<StationSocket>,
    /// Rows are prefaulted.
    prefault: bool,
    /// Sent with a hello: my doorbell row, my event descriptor, a pidfd.
    row: Arc<OwnedFd>,
    event: Arc<OwnedFd>,
    pidfd: Arc<OwnedFd>,
    /// Replaces the pidfd for stations of this process, for which a pidfd of their own
    /// process is useless.
    pub(super) local_lifeline: Arc<OwnedFd>,
    /// The same queue as in `state`; reachable without its lock.
    events: Arc<EventQueue>,
    state: Mutex<State>,
    changed: Condvar,
}

/// Listens at the station's socket, and removes the sockets of processes that have ended:
/// under the lock, so that no other station removes this new one.
fn listen(
    domain: &Arc<Domain>,
    address: &Address,
    deadline: Deadline,
) -> Result<OwnedFd, SetupError> {
    let locked = domain.lock(deadline)?;
    locked.sweep_stations()?;
    let at = locked.files().file_path(&address.file());
    socket::listen(&at.path, BACKLOG).map_err(|errno| {
        SetupError::record(
            domain.path(),
            &domain.file_name(&address.file()),
            "listened at",
            errno,
        )
    })
}

impl Shared {
    /// Also returns the socket on which it listens.
    pub(super) fn open(
        domain: Arc<Domain>,
        options: &HostOptions,
        futexes: bool,
    ) -> Result<(Arc<Self>, OwnedFd), SetupError> {
        let (own, row) = memory::create_row(DOORBELL_ROW_LEN)?;
        if options.prefault {
            let refused =
                SetupError::system("prefaulting (spindle.prefault), which needs Linux 5.14");
            own.populate(&mut Populated::default(), || true)
                .map_err(refused)?;
        }
        let event = Arc::new(descriptor::event()?);
        let slots = EventSlots::open(Arc::clone(&event))?;
        let (kick, local_lifeline) = (descriptor::event()?, Arc::new(descriptor::event()?));
        let pidfd = Arc::new(descriptor::own_pidfd()?);
        let address = Address::here(options.id)?;
        let listener = listen(&domain, &address, Deadline::after(LOCK_WITHIN))?;
        let socket = Arc::new(StationSocket {
            file: address.file(),
            kick,
            is_missing: AtomicBool::new(false),
        });
        domain.watch(&socket);
        let state = State::new();
        let shared = Self {
            address,
            domain,
            sleep: SleepState::new(own.region(), slots, futexes),
            socket,
            prefault: options.prefault,
            row: Arc::new(row),
            event,
            pidfd,
            local_lifeline,
            events: Arc::clone(&state.events),
            state: Mutex::new(state),
            changed: Condvar::new(),
        };
        Ok((Arc::new(shared), listener))
    }

    pub(super) fn id(&self) -> u128 {
        self.address.id
    }

    /// A new listening socket, if the file of the present one was removed.
    pub(super) fn listen_again(&self) -> Result<Option<OwnedFd>, SetupError> {
        if self.domain.has_at_path(&self.address.file()) {
            return Ok(None);
        }
        let deadline = Deadline::after(LOCK_SHORTLY_WITHIN);
        listen(&self.domain, &self.address, deadline).map(Some)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn events(&self) -> &Arc<EventQueue> {
        &self.events
    }

    /// Whether memory is allocated when it is mapped.
    pub(super) fn prefaults(&self) -> bool {
        self.prefault
    }

    /// Prefaults a row, if that is requested; blocks until `deadline` at most.
    pub(super) fn prefault(&self, row: &Arc<Mapping>, rank: Rank, deadline: Instant) {
        if self.prefault {
            prefault(row, rank, deadline);
        }
    }

    /// Wakes the I/O thread.
    pub(super) fn kick(&self) {
        // A full event descriptor is readable already.
        let _ = signal_eventfd(&self.socket.kick);
    }

    pub(super) fn kicked(&self) -> &OwnedFd {
        &self.socket.kick
    }

    /// Whether the station's socket was found missing since the last call.
    pub(super) fn is_socket_missing(&self) -> bool {
        self.socket.is_missing.swap(false, Ordering::AcqRel)
    }

    /// Wakes threads that wait for a change of the state.
    pub(super) fn notify(&self) {
        self.changed.notify_all();
    }

    /// Waits for a change, at most until `deadline`; false at the deadline.
    pub(super) fn wait<'a>(
        &self,
        state: MutexGuard<'a, State>,
        deadline: Instant,
    ) -> (MutexGuard<'a, State>, bool) {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return (state, false);
        }
        let waited = self.changed.wait_timeout(state, left);
        (waited.unwrap_or_else(PoisonError::into_inner).0, true)
    }

    /// My hello to a process, with the doorbell that it gets, and its descriptors.
    pub(super) fn hello(&self, pid: u32, doorbell: u16) -> (Vec<u8>, Vec<Arc<OwnedFd>>) {
        let id = self.id();
        let lifeline = if pid == std::process::id() {
            &self.local_lifeline
        } else {
            &self.pidfd
        };
        let fds = [&self.row, &self.event, lifeline].map(Arc::clone);
        (Packet::Hello { id, doorbell }.write(), fds.into())
    }

    pub(super) fn forget(&self, key: SegmentKey) {
        self.state().forget(key);
    }
}
