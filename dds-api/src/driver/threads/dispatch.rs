//! The dispatch thread: calls listeners, one after the other.
//!
//! If a listener may be told of data, it waits for data as a thread in a WaitSet does (see
//! [`waiting`](crate::driver::waiting)): data wakes it directly, and not the polling thread first.

use std::io::{self, Write as _};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::driver::endpoints::local_endpoints::{LocalEndpoint, LocalEndpoints};
use crate::driver::session::Session;
use crate::driver::threads::join::join;
use crate::driver::waiting::poll_on_read::this_thread_calls_back;
use crate::entity::EntityBase;
use crate::listener::DomainParticipantListener;
use crate::participant::{DomainParticipant, ParticipantCore};
use crate::status::StatusMask;
use crate::topic::TopicCore;

/// Calls the listeners of a participant's entities.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    participant: Weak<ParticipantCore>,
    local_endpoints: Arc<LocalEndpoints>,
    /// Threads of the session before: listeners are called by one thread at a time.
    before: Vec<JoinHandle<()>>,
}

/// An endpoint, and the bits of it and its topic in the notifier.
struct DispatchTarget {
    bits: u64,
    endpoint: LocalEndpoint,
}

impl DispatchTarget {
    fn new(endpoint: LocalEndpoint) -> Self {
        let (base, topic) = parts(&endpoint);
        let bits = base.status_flags().sign() | topic.base.status_flags().sign();
        Self { bits, endpoint }
    }
}

fn parts(endpoint: &LocalEndpoint) -> (&EntityBase, &Arc<TopicCore>) {
    match endpoint {
        LocalEndpoint::Reader(reader) => (&reader.base, &reader.topic),
        LocalEndpoint::Writer(writer) => (&writer.base, &writer.topic),
    }
}

impl Dispatcher {
    pub(crate) fn new(
        participant: Weak<ParticipantCore>,
        local_endpoints: Arc<LocalEndpoints>,
        before: Vec<JoinHandle<()>>,
    ) -> Self {
        Self {
            participant,
            local_endpoints,
            before,
        }
    }

    /// Runs until the participant leaves. Allocates only when endpoints are created or deleted.
    pub(crate) fn run(mut self, session: &Session) {
        join(std::mem::take(&mut self.before), Duration::MAX);
        let notifier = session.notifier();
        let bell = &notifier.dispatching;
        bell.begin(notifier.data_waiter());
        this_thread_calls_back();
        let mut has_told = false;
        let mut own = Vec::new();
        let mut generation = None;
        loop {
            bell.signal().reset();
            // A listener may have forked, and this be the child's only thread.
            if session.is_stopping() || session.is_inherited() {
                break;
            }
            let mut pending = notifier.take_called();
            let now = Some(self.local_endpoints.generation());
            if generation != now {
                generation = now;
                own = self
                    .local_endpoints
                    .all()
                    .into_iter()
                    .map(DispatchTarget::new)
                    .collect();
                // New endpoints may have notified before they were listed here.
                pending = u64::MAX;
            }
            let mut any = false;
            if !has_told && let Some(reason) = session.group_status().failure() {
                has_told = true;
                any = true;
                self.failed(reason);
            }
            if session.group_status().take_news() {
                any = true;
                self.membership_changed(session);
            }
            any |= self.statuses(&own, pending);
            if any || generation != Some(self.local_endpoints.generation()) {
                continue;
            }
            session.wait_in_thread(
                bell.signal(),
                notifier.has_listener_for(StatusMask::DATA_AVAILABLE),
                None,
            );
        }
        bell.end();
        // Wait-sets do not wait for listeners that are not called.
        for DispatchTarget { endpoint, .. } in &own {
            let (base, topic) = parts(endpoint);
            base.status_flags().observers().notify();
            topic.base.status_flags().observers().notify();
            if let LocalEndpoint::Reader(reader) = endpoint {
                reader.side.port.subscriber().observers().notify();
            }
        }
    }

    fn failed(&self, reason: &str) {
        tracing::error!("{reason}");
        if let Some(core) = self.participant.upgrade()
            && core.config.reports_failure
        {
            // Without stderr there is no one to tell.
            let _ = writeln!(
                io::stderr(),
                "spindle-dds: domain {}: {reason}",
                core.domain_id
            );
        }
        self.tell(|listener, participant| listener.on_failed(participant, reason));
    }

    /// Calls the participant's listener, whatever its mask is.
    fn tell(&self, call: impl FnOnce(&mut dyn DomainParticipantListener, &DomainParticipant)) {
        if let Some(core) = self.participant.upgrade() {
            let participant = DomainParticipant::of(core);
            let listener = &participant.core.listener;
            listener.call(StatusMask::NONE, |listener| call(listener, &participant));
        }
    }

    fn membership_changed(&self, session: &Session) {
        self.tell(|listener, participant| {
            let status = session.group_status().membership();
            listener.on_membership_changed(participant, &status);
        });
    }

    /// Calls the listeners of endpoints and topics that have one of these bits.
    fn statuses(&self, own: &[DispatchTarget], pending: u64) -> bool {
        let mut any = false;
        for DispatchTarget { endpoint, .. } in own.iter().filter(|it| it.bits & pending != 0) {
            let (base, topic) = parts(endpoint);
            let statuses = base.status_flags().begin_calls();
            if !statuses.is_empty() {
                any = true;
                match endpoint {
                    _ if base.is_deleted() => {}
                    LocalEndpoint::Reader(reader) => reader.dispatch(statuses),
                    LocalEndpoint::Writer(writer) => writer.dispatch(statuses),
                }
                base.status_flags().end_calls();
            }
            any |= self.topic(topic);
        }
        any
    }

    /// Only topics with endpoints have statuses to report.
    fn topic(&self, topic: &Arc<TopicCore>) -> bool {
        let status_flags = topic.base.status_flags();
        if status_flags.begin_calls().is_empty() {
            return false;
        }
        if let Some(core) = self.participant.upgrade() {
            topic.dispatch(&DomainParticipant::of(core));
        }
        status_flags.end_calls();
        true
    }
}
