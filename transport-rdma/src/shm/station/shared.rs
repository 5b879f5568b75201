//! What a station's handle, its background thread and its segments share.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::HostOptions;
use super::address::Address;
use super::packet::Packet;
use super::row_prefault::prefault;
use super::sleep_state::{DOORBELL_ROW_LEN, SleepState};
use super::state::State;
use crate::eventfd::signal_eventfd;
use crate::mapping::{Mapping, Populated};
use crate::peers::Rank;
use crate::segment::SegmentKey;
use crate::shm::SetupError;
use crate::shm::descriptor;
use crate::shm::domain::Domain;
use crate::shm::memory;
use crate::shm::socket::{self, Deadline};
use crate::station_event::EventQueue;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 512;

/// How long to wait for the domain's lock.
const LOCK_WITHIN: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) address: Address,
    pub(super) domain: Arc<Domain>,
    pub(super) sleep: SleepState,
    /// Wakes the background thread.
    kick: OwnedFd,
    /// Rows are to have all their memory from the start.
    prefault: bool,
    /// What peers get with a hello: my doorbell row, my event descriptor, a pidfd.
    row: Arc<OwnedFd>,
    event: Arc<OwnedFd>,
    pidfd: Arc<OwnedFd>,
    /// Takes the row of the pidfd for stations of this process, which a pidfd
    /// of themselves tells nothing.
    pub(super) last_sign: Arc<OwnedFd>,
    /// The same as in the state.
    news: Arc<EventQueue>,
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    /// With the socket on which it listens.
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
        let (kick, last_sign) = (descriptor::event()?, Arc::new(descriptor::event()?));
        let pidfd = Arc::new(descriptor::own_pidfd()?);
        let address = Address::here(options.id)?;
        // Under the lock, so that no other takes the socket for a dead one's.
        let locked = domain.lock(Deadline::after(LOCK_WITHIN))?;
        super::sweep_sockets(&domain)?;
        let listener = socket::listen(&domain.file_path(&address.file()), BACKLOG)
            .map_err(SetupError::system("listening for members"))?;
        drop(locked);
        let state = State::new();
        let shared = Self {
            address,
            domain,
            sleep: SleepState::new(own.region(), Arc::clone(&event), futexes),
            kick,
            prefault: options.prefault,
            row: Arc::new(row),
            event,
            pidfd,
            last_sign,
            news: Arc::clone(&state.news),
            state: Mutex::new(state),
            changed: Condvar::new(),
        };
        Ok((Arc::new(shared), listener))
    }

    pub(super) fn id(&self) -> u128 {
        self.address.id
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn news(&self) -> &Arc<EventQueue> {
        &self.news
    }

    /// Has a row have its memory before it is used, if that is asked for: blocks for that until
    /// `deadline`.
    pub(super) fn prefault(&self, row: &Arc<Mapping>, rank: Rank, deadline: Instant) {
        if self.prefault {
            prefault(row, rank, deadline);
        }
    }

    /// Gives the background thread something to do.
    pub(super) fn kick(&self) {
        // An event descriptor that is full wakes it already.
        let _ = signal_eventfd(&self.kick);
    }

    pub(super) fn kicked(&self) -> &OwnedFd {
        &self.kick
    }

    /// Those who wait for a change look again.
    pub(super) fn notify(&self) {
        self.changed.notify_all();
    }

    /// Waits for a change, at most until `deadline`; false when that is over.
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

    /// My hello to a process, in which it gets one of my bells, and what goes with it.
    pub(super) fn hello(&self, pid: u32, doorbell: u16) -> (Vec<u8>, Vec<Arc<OwnedFd>>) {
        let id = self.id();
        let lifeline = if pid == std::process::id() {
            &self.last_sign
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

/// Sends what can be sent at once, and does not care whether it could.
pub(super) fn say(socket: &OwnedFd, packet: &Packet<'_>) {
    let _ = socket::send_now(socket, &packet.write(), &[]);
}

pub(super) fn borrow(fds: &[Arc<OwnedFd>]) -> Vec<std::os::fd::BorrowedFd<'_>> {
    fds.iter().map(|fd| fd.as_fd()).collect()
}
