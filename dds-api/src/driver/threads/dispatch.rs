//! The dispatch thread: calls listeners, one after the other.
//!
//! Where a listener may be told of data, it looks for that itself as a thread in a WaitSet
//! does (see [`crate::driver::waiting::followers`]): what comes wakes it, and not the polling thread first.

use std::sync::{Arc, Weak};

use crate::driver::endpoints::local_endpoints::{LocalEndpoint, LocalEndpoints};
use crate::driver::session::Session;
use crate::driver::waiting::poll_on_read::this_thread_calls_back;
use crate::entity::EntityBase;
use crate::participant::{DomainParticipant, ParticipantCore};
use crate::status::StatusMask;
use crate::topic::TopicCore;

/// The entities of a participant that have statuses.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    participant: Weak<ParticipantCore>,
    local_endpoints: Arc<LocalEndpoints>,
}

/// An endpoint, and by which signs it or its topic calls.
struct DispatchTarget {
    signs: u64,
    endpoint: LocalEndpoint,
}

impl DispatchTarget {
    fn new(endpoint: LocalEndpoint) -> Self {
        let (base, topic) = parts(&endpoint);
        let signs = base.status_flags().sign() | topic.base.status_flags().sign();
        Self { signs, endpoint }
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
    ) -> Self {
        Self {
            participant,
            local_endpoints,
        }
    }

    /// Runs until the participant leaves. Allocates only when endpoints came or went.
    pub(crate) fn run(self, session: &Session) {
        let notifier = session.notifier();
        let bell = &notifier.listeners;
        bell.begin(notifier.data_waiter());
        this_thread_calls_back();
        let mut told = false;
        let mut own = Vec::new();
        let mut generation = None;
        loop {
            bell.signal().reset();
            if session.is_stopping() {
                break;
            }
            let mut calls = notifier.take_called();
            let now = Some(self.local_endpoints.generation());
            if generation != now {
                generation = now;
                own = self
                    .local_endpoints
                    .all()
                    .into_iter()
                    .map(DispatchTarget::new)
                    .collect();
                // Who came may have called before it was here.
                calls = u64::MAX;
            }
            let mut any = false;
            if !told && let Some(reason) = session.group_status().failure() {
                told = true;
                any = true;
                self.failed(reason);
            }
            any |= self.statuses(&own, calls);
            if any || generation != Some(self.local_endpoints.generation()) {
                continue;
            }
            session.wait_as(
                bell.signal(),
                notifier.has_listener_for(StatusMask::DATA_AVAILABLE),
            );
        }
        bell.end();
    }

    fn failed(&self, reason: &str) {
        tracing::error!("{reason}");
        if let Some(core) = self.participant.upgrade() {
            let participant = DomainParticipant::of(core);
            participant
                .core
                .listener
                .call(StatusMask::NONE, |listener| {
                    listener.on_failed(&participant, reason);
                });
        }
    }

    /// Those of endpoints that have one of these signs, or their topics do.
    fn statuses(&self, own: &[DispatchTarget], calls: u64) -> bool {
        let mut any = false;
        for DispatchTarget { endpoint, .. } in own.iter().filter(|it| it.signs & calls != 0) {
            let (base, topic) = parts(endpoint);
            let statuses = base.status_flags().take_pending();
            if !statuses.is_empty() {
                any = true;
                match endpoint {
                    _ if base.is_deleted() => {}
                    LocalEndpoint::Reader(reader) => reader.dispatch(statuses),
                    LocalEndpoint::Writer(writer) => writer.dispatch(statuses),
                }
            }
            any |= self.topic(topic);
        }
        any
    }

    /// A topic that no endpoint uses has nothing to tell.
    fn topic(&self, topic: &Arc<TopicCore>) -> bool {
        let any = !topic.base.status_flags().take_pending().is_empty();
        if any && let Some(core) = self.participant.upgrade() {
            topic.dispatch(&DomainParticipant::of(core));
        }
        any
    }
}
