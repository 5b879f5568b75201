//! What a writer holds beyond what every endpoint does.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use spindle_dds_core::{DeliveryClass, RingSpec, SubgroupHandle, SubgroupId, TopicKey};
use spindle_dds_idl_runtime::{Encapsulation, Representation};
use spindle_dds_qos::{DataWriterQos, DurabilityKind, Duration, PublisherQos};

use super::erased::{WriterEvent, call};
use super::kept::Kept;
use super::limits::{Keeps, Limits};
use super::loan_pool::LoanPool;
use super::receipt::{Receipt, SentAs};
use super::registered_instances::RegisteredInstances;
use super::settings::Settings;
use super::statuses::WriterStatuses;
use super::unsent::{LOGGED, Unsent};
use super::writer_history::WriterHistory;
use super::{AnyDataWriter, PublisherCore};
use crate::driver::{Acceptor, LocalEndpoint, Session, WriterLogs, WriterPort};
use crate::endpoint::{EndpointCore, EndpointQos, Side};
use crate::error::{Error, Result};
use crate::handle::EntityKind;
use crate::history::KeptWriter;
use crate::keys::KnownKeys;
use crate::listener::{DomainParticipantListener, PublisherListener};
use crate::participant::{Defaults, Entities, ParticipantCore};
use crate::properties::{self, RingSize};
use crate::sample_type::SampleType;
use crate::time::Deadline;
use crate::wire::Wire;

pub(crate) type WriterCore = EndpointCore<WriterSide>;

/// How long a deleted writer waits at least until what it has written is sent.
const LINGER_MIN: Duration = Duration::from_millis(1000);
/// How long a deleted KEEP_ALL writer waits at most, whose max_blocking_time is longer.
const LINGER_MAX: Duration = Duration::from_millis(30_000);
/// How long a deleted writer waits for room to announce that it is deleted.
const FAREWELL_WITHIN: Duration = Duration::from_millis(100);

pub(crate) struct WriterSide {
    pub(super) settings: Settings,
    pub(crate) ring_size: RingSize,
    history_bytes: usize,
    pub(super) statuses: Mutex<WriterStatuses>,
    /// Set when its participant is enabled.
    pub(super) port: OnceLock<WriterPort>,
    pub(super) pool: LoanPool,
    /// What is sent again when the participant comes back to its group.
    pub(super) kept: Mutex<Kept>,
    /// The keys that are registered or count against limits, if key hashes are digests.
    pub(super) keys: Option<KnownKeys>,
    pub(super) registered: RegisteredInstances,
    /// Set when its participant is enabled, if RESOURCE_LIMITS limit anything.
    limits: OnceLock<Limits>,
    /// What is kept for readers that come later (TRANSIENT_LOCAL). Set when its participant is
    /// enabled.
    history: OnceLock<Arc<KeptWriter>>,
    /// Samples that are not sent yet (RELIABLE).
    pub(super) unsent: Mutex<Unsent>,
    /// Samples dropped for want of room (BEST_EFFORT), or replaced before they were sent.
    pub(super) dropped: AtomicU64,
    /// What the next write has to see to. BEST_EFFORT: so many of `dropped` no message has announced
    /// to the readers yet. RELIABLE: not 0 while samples wait in `unsent`, and of a PERSISTENT writer.
    pub(super) pending: AtomicU64,
}

impl fmt::Debug for WriterSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriterSide")
            .field("settings", &self.settings)
            .field("ring_size", &self.ring_size)
            .finish_non_exhaustive()
    }
}

impl WriterSide {
    pub(super) fn new(
        participant: &ParticipantCore,
        sample_type: &SampleType,
        qos: &DataWriterQos,
    ) -> Result<Self> {
        let config = &participant.config;
        let ring_size = properties::placed(&qos.property, &qos.origins, |it| config.ring_of(it))?;
        let history_bytes = config.history_bytes_of(&qos.property)?;
        let representations = [Representation::Xcdr1, Representation::Xcdr2];
        let encapsulations = representations.map(|it| sample_type.encapsulation(it));
        Ok(Self {
            settings: Settings::new(qos, encapsulations)?,
            ring_size,
            history_bytes,
            statuses: Mutex::default(),
            port: OnceLock::new(),
            pool: LoanPool::new(),
            kept: Mutex::default(),
            keys: sample_type.known_keys(participant.keys()),
            registered: RegisteredInstances::new(),
            limits: OnceLock::new(),
            history: OnceLock::new(),
            unsent: Mutex::new(Unsent::new(history_of(qos, history_bytes))),
            dropped: AtomicU64::new(0),
            pending: AtomicU64::new(0),
        })
    }

    /// The writer is about to be enabled: from now on its QoS stays.
    fn settle(&self, qos: &DataWriterQos) {
        self.settings.set(qos);
        let in_flight_max = self.ring_size.messages.next_power_of_two();
        if let Some(limits) = Limits::of(qos.resource_limits, in_flight_max, Keeps::of(qos)) {
            let _ = self.limits.set(limits);
        }
        let unsent = self.unsent.lock();
        *unsent.unwrap_or_else(PoisonError::into_inner) =
            Unsent::new(history_of(qos, self.history_bytes));
    }

    /// What is kept of the writer for readers that come later (TRANSIENT_LOCAL).
    pub(crate) fn history(&self) -> Option<&Arc<KeptWriter>> {
        self.history.get()
    }

    /// `None` if RESOURCE_LIMITS limit nothing.
    pub(super) fn limits(&self) -> Option<&Limits> {
        self.limits.get()
    }

    pub(super) fn class(&self) -> DeliveryClass {
        self.settings.class()
    }

    pub(crate) fn representation(&self) -> Representation {
        self.settings.representation()
    }

    pub(super) fn encapsulation(&self) -> Encapsulation {
        self.settings.encapsulation()
    }

    pub(super) fn max_blocking_time(&self) -> Duration {
        self.settings.max_blocking_time()
    }

    /// Whether it waits for readers to make room (RELIABLE, KEEP_ALL).
    pub(super) fn waits_for_room(&self) -> bool {
        self.settings.waits_for_room()
    }
}

fn history_of(qos: &DataWriterQos, history_bytes: usize) -> WriterHistory {
    WriterHistory::new(qos.history, qos.resource_limits.max_samples, history_bytes)
}

impl Side for WriterSide {
    const ENDPOINT: &'static str = "writer";
    const ENDPOINT_KIND: EntityKind = EntityKind::Writer;
    const FACTORY: &'static str = "publisher";
    const FACTORY_KIND: EntityKind = EntityKind::Publisher;

    type EndpointQos = DataWriterQos;
    type FactoryQos = PublisherQos;
    type FactoryListener = dyn PublisherListener;
    type AnyEndpoint = AnyDataWriter;
    type Event = WriterEvent;

    fn default_factory_qos(defaults: &Defaults) -> Option<PublisherQos> {
        defaults.publisher.clone()
    }

    fn factories(entities: &mut Entities) -> &mut Vec<Arc<PublisherCore>> {
        &mut entities.publishers
    }

    fn own(writer: Arc<WriterCore>) -> LocalEndpoint {
        LocalEndpoint::Writer(writer)
    }

    fn call_factory_listener(
        listener: &mut (dyn PublisherListener + 'static),
        writer: &AnyDataWriter,
        event: &WriterEvent,
    ) {
        call!(listener, writer, event);
    }

    fn call_participant_listener(
        listener: &mut dyn DomainParticipantListener,
        writer: &AnyDataWriter,
        event: &WriterEvent,
    ) {
        call!(listener, writer, event);
    }

    fn check_deletable(writer: &WriterCore) -> Result<()> {
        match writer.side.pool.loans() {
            0 => Ok(()),
            loans => Err(Error::PreconditionNotMet(format!(
                "{} has {loans} loans that are neither published nor dropped",
                writer.base.what()
            ))),
        }
    }

    fn check_contains_nothing(_: &WriterCore) -> Result<()> {
        Ok(())
    }

    fn stop(writer: &WriterCore, since: Instant) {
        // Readers lose the writer at this position of the order; what becomes of its instances,
        // WRITER_DATA_LIFECYCLE says.
        if let Some(port) = writer.side.port.get() {
            // A participant that is deleted does not come back to its group.
            let participant = writer.participant.upgrade();
            let comes_back = participant.is_some_and(|it| !it.base.is_deleted());
            let deadline = Deadline::of(since, writer.linger());
            // What stays unsent is told below.
            let _ = writer.wait_until_sent(deadline, comes_back);
            let deadline = Deadline::after(FAREWELL_WITHIN);
            port.writer_deleted(writer.number, writer.autodisposes(), deadline);
            port.close();
            writer.give_up_unsent();
        }
        writer.side.pool.close();
    }
}

impl WriterCore {
    /// How long its samples have to be sent when it is deleted. A KEEP_ALL writer may block for
    /// max_blocking_time in each write, so it may in this operation.
    fn linger(&self) -> Duration {
        if self.side.waits_for_room() {
            self.side.max_blocking_time().clamp(LINGER_MIN, LINGER_MAX)
        } else {
            LINGER_MIN
        }
    }

    /// Its participant is in a group, or is about to be in it again: from now on it can write.
    pub(crate) fn connect(&self, session: &Arc<Session>, subgroup: SubgroupId) {
        if let Some(port) = self.side.port.get() {
            return port.reconnect(session.clone());
        }
        // It stays locked until the writer is enabled: the QoS cannot change in between.
        let qos = self.qos();
        self.side.settle(&qos);
        if qos.durability.kind == DurabilityKind::TransientLocal
            && let Some(participant) = self.participant.upgrade()
        {
            let keys = self.topic.sample_type.known_keys(participant.keys());
            let kept = KeptWriter::new(self.base.guid().0, &qos, keys);
            let _ = self.side.history.set(Arc::new(kept));
        }
        let topic = TopicKey::of_name(&self.topic.name);
        let ring = RingSpec::at_least(self.side.ring_size.messages, self.side.ring_size.bytes);
        let class = self.side.class();
        let port = WriterPort::new(
            session.clone(),
            subgroup,
            class,
            topic,
            ring,
            self.logs(&qos),
        );
        let _ = self.side.port.set(port);
        self.base.set_enabled();
    }

    /// The logs of its topic, if it is PERSISTENT.
    fn logs(&self, qos: &DataWriterQos) -> Option<WriterLogs> {
        if qos.durability.kind != DurabilityKind::Persistent {
            return None;
        }
        self.side.pending.fetch_or(LOGGED, Ordering::Release);
        let participant = self.participant.upgrade();
        let ack = participant.map(|it| it.config.log.ack).unwrap_or_default();
        Some(WriterLogs::new(self.topic.logs.clone(), ack.into()))
    }

    /// How often its participant had lost its group, if it keeps history over that.
    pub(crate) fn returns(&self) -> u32 {
        let is_durable = self.qos().is_durable();
        let participant = self.participant.upgrade().filter(|_| is_durable);
        participant.map_or(0, |it| it.group_status.outages())
    }

    /// The subgroup of its topic, once its participant is enabled.
    pub(crate) fn subgroup(&self) -> Option<SubgroupId> {
        self.side.port.get().map(WriterPort::subgroup)
    }

    /// By its present QoS, which can change until it is enabled.
    pub(crate) fn class(&self) -> DeliveryClass {
        Settings::class_of(&self.qos())
    }

    /// The group does not accept the writer: operations fail with this reason.
    pub(crate) fn refuse(&self, reason: Error) {
        if let Some(port) = self.side.port.get() {
            port.refuse(reason);
        }
    }

    pub(crate) fn is_refused(&self) -> bool {
        self.side.port.get().is_some_and(WriterPort::is_refused)
    }

    /// A view has begun, with this epoch of the writer's subgroup, in which these members have to accept
    /// what it sends. False if it is not usable yet.
    pub(crate) fn enter_epoch(
        &self,
        epoch: Arc<SubgroupHandle<Wire>>,
        acceptors: Arc<[Acceptor]>,
    ) -> bool {
        let Some(port) = self.side.port.get() else {
            return false;
        };
        port.enter_epoch(epoch, acceptors);
        self.side.pool.epoch_begun();
        true
    }

    #[inline]
    pub(crate) fn port(&self) -> Result<&WriterPort> {
        self.base.ready()?;
        let disabled = || Error::NotEnabled(format!("{} is disabled", self.base.what()));
        self.side.port.get().ok_or_else(disabled)
    }

    pub(super) fn receipt(&self, sent: SentAs, returns: u32) -> Receipt {
        Receipt {
            sent,
            returns,
            writer: self.base.guid(),
        }
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.side.dropped.load(Ordering::Relaxed)
    }

    /// Whether instances are disposed of when they are unregistered.
    pub(crate) fn autodisposes(&self) -> bool {
        self.qos()
            .writer_data_lifecycle
            .autodispose_unregistered_instances
    }
}
