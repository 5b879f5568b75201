//! The listeners of a station, and the thread (`handshake_thread`) that serves connections
//! until they become peers' or are closed.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::handshake::LocalIdentity;
use super::handshake_thread::HandshakeThread;
use super::listeners::Listeners;
use super::pending::{Shared, State};
use super::rdma::StationRdma;
use crate::fork::OwnerProcess;
use crate::library_thread::LibraryThread;
use crate::shm::error::SetupError;
use crate::sleep::eventfd::create_eventfd;
use crate::tcp;
use crate::thread_settings::ThreadSettings;

/// Handle of the listeners and their thread.
#[derive(Debug)]
pub(super) struct Acceptor {
    pub(super) shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// A child of a fork has this value, but not the thread.
    owner: OwnerProcess,
}

impl Acceptor {
    pub(super) fn open(
        me: LocalIdentity,
        listening: Listeners,
        streams: Arc<tcp::StreamTransport>,
        rdma: Option<Arc<StationRdma>>,
        settings: &ThreadSettings,
    ) -> Result<Self, SetupError> {
        let shared = Arc::new(Shared {
            me,
            streams,
            rdma,
            kick: create_eventfd().map_err(SetupError::system("making an event descriptor"))?,
            state: Mutex::new(State {
                missing: listening.missing(),
                ..State::default()
            }),
            changed: Condvar::new(),
        });
        if let Some(rdma) = &shared.rdma {
            let acceptor = Arc::downgrade(&shared);
            rdma.on_proof(move || {
                acceptor
                    .upgrade()
                    .iter()
                    .for_each(|acceptor| acceptor.kick())
            });
        }
        let handshake_thread = HandshakeThread::new(Arc::clone(&shared), listening);
        let thread = LibraryThread::named("spindle-accept")
            .spawn_with(settings, move || handshake_thread.run())
            .map_err(SetupError::system("starting the thread that listens"))?;
        Ok(Self {
            shared,
            thread: Mutex::new(Some(thread)),
            owner: OwnerProcess::this(),
        })
    }

    /// Ends the thread: accepts and calls no more. Idempotent.
    pub(super) fn close(&self) {
        if self.owner.is_inherited() {
            return;
        }
        let thread = self.thread.lock();
        let Some(thread) = thread.unwrap_or_else(PoisonError::into_inner).take() else {
            return;
        };
        self.shared.state().stopped = true;
        self.shared.kick();
        self.shared.notify();
        // A panic was reported by its hook.
        let _ = thread.join();
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.close();
    }
}
