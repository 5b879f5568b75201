//! The endpoints of this participant, and what the group has to be told of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use spindle_dds_core::membership::{Endpoint as GroupEndpoint, MemberId, Note, Notes, Update};
use spindle_dds_core::storage::LogEnd;
use spindle_dds_core::{DeliveryClass, RingSpec, SubgroupId};

use super::known_endpoints::KnownEndpoints;
use spindle_dds_qos::DurabilityKind;

use crate::discovery::{Endpoint, Entry, LargeTypes, ReaderEntry, WriterEntry};
use crate::driver::session::Session;
use crate::error::{Error, Result};
use crate::handle::{Guid, InstanceHandle};
use crate::history::{LogChange, LogService, LoggedTopic};
use crate::properties::ParticipantConfig;
use crate::publication::{PublisherCore, WriterCore};
use crate::subscription::{ReaderCore, SubscriberCore};
use crate::time::Deadline;
use crate::topic::TopicCore;

/// An endpoint of this participant.
#[derive(Debug, Clone)]
pub(crate) enum LocalEndpoint {
    Writer(Arc<WriterCore>),
    Reader(Arc<ReaderCore>),
}

/// All endpoints of this participant, by their numbers. Its lock is held for moments, and no other
/// lock is taken meanwhile.
pub(crate) struct LocalEndpoints {
    config: ParticipantConfig,
    logs: Arc<LogService>,
    state: Mutex<State>,
    /// Rises when an endpoint is created or deleted.
    generation: AtomicU64,
    /// Notified when a topic may exist that did not.
    topics: Condvar,
}

#[derive(Default)]
struct State {
    own: BTreeMap<u64, LocalEndpoint>,
    /// Endpoints that the group knows, or has been asked to add.
    announced: BTreeSet<u64>,
    /// Updates that the group has not been asked for yet.
    updates: Vec<Update>,
    /// Number of the last update.
    count: u64,
    /// Types noted in the view because they are too large for an announcement.
    large_types: LargeTypes,
    /// This member and its session, once it is in a group.
    group: Option<(MemberId, Weak<Session>)>,
    /// The endpoints of the view.
    known: KnownEndpoints,
    /// Rises when a topic may exist that did not.
    topics_changed: u64,
}

/// Most bytes of announcements that a participant joins with; the others follow as updates.
const FIRST_LEN_MAX: usize = 32 << 10;

impl fmt::Debug for LocalEndpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalEndpoints")
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}

impl LocalEndpoint {
    /// Its announcement, and the ring that it requests. `None` if it is deleted, or a group has
    /// refused it.
    fn announce(
        &self,
        config: &ParticipantConfig,
    ) -> Option<(Entry, Option<(DeliveryClass, RingSpec)>)> {
        Some(match self {
            Self::Writer(writer) if writer.is_refused() => return None,
            Self::Reader(reader) if reader.side.port.is_refused() => return None,
            Self::Writer(writer) => {
                let publisher = writer.factory.upgrade()?;
                let size = writer.side.ring_size;
                let ring = RingSpec::at_least(size.messages, size.bytes);
                let class = writer.class();
                let entry = writer_entry(config, &publisher, writer, class);
                (entry, Some((class, ring)))
            }
            Self::Reader(reader) => {
                let subscriber = reader.factory.upgrade()?;
                reader.settle();
                (reader_entry(config, &subscriber, reader), None)
            }
        })
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Writer(_) => "writer",
            Self::Reader(_) => "reader",
        }
    }

    /// Whether it is a writer whose samples are logged.
    pub(crate) fn is_logged(&self) -> bool {
        match self {
            Self::Writer(writer) => writer.qos().durability.kind == DurabilityKind::Persistent,
            Self::Reader(_) => false,
        }
    }

    pub(crate) fn topic(&self) -> &Arc<TopicCore> {
        match self {
            Self::Writer(writer) => &writer.topic,
            Self::Reader(reader) => &reader.topic,
        }
    }

    /// Using it returns the reason from now on.
    fn refuse(&self, reason: Error) {
        match self {
            Self::Writer(writer) => writer.refuse(reason),
            Self::Reader(reader) => reader.side.port.refuse(reason),
        }
    }

    /// Makes it usable.
    fn enable(&self, config: &ParticipantConfig, session: &Arc<Session>) {
        match self {
            Self::Writer(writer) => {
                let subgroup = SubgroupId(config.subgroup_of(&writer.topic.name));
                writer.connect(session, subgroup);
            }
            Self::Reader(reader) => reader.base.set_enabled(),
        }
    }
}

impl LocalEndpoints {
    pub(crate) fn new(config: ParticipantConfig, logs: Arc<LogService>) -> Self {
        Self {
            config,
            logs,
            state: Mutex::default(),
            generation: AtomicU64::new(0),
            topics: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes when an endpoint is created or deleted.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    fn changed(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// The subgroup of a topic.
    pub(crate) fn subgroup_of(&self, topic: &str) -> u32 {
        self.config.subgroup_of(topic)
    }

    /// All endpoints.
    pub(crate) fn all(&self) -> Vec<LocalEndpoint> {
        self.state().own.values().cloned().collect()
    }

    /// The same with their numbers.
    pub(crate) fn numbered(&self) -> BTreeMap<u64, LocalEndpoint> {
        self.state().own.clone()
    }

    /// Adds an endpoint. In a group, it is usable at once, and announced.
    ///
    /// # Errors
    /// ERROR when the others have its topic in another subgroup; OUT_OF_RESOURCES
    /// when too much would have to be announced, in a group or not.
    pub(crate) fn add(&self, number: u32, own: LocalEndpoint) -> Result<()> {
        let number = u64::from(number);
        let mut state = self.state();
        let session = state.session();
        match (&session, own.announce(&self.config)) {
            (Some(_), Some((entry, ring))) => {
                state.check(&entry)?;
                state.put(number, &entry, ring)?;
            }
            (None, Some((entry, ring))) => {
                entry.to_group(ring, None)?;
            }
            (_, None) => {}
        }
        if let Some(session) = &session {
            own.enable(&self.config, session);
        }
        let reader = match &own {
            LocalEndpoint::Reader(reader) => Some(reader.clone()),
            LocalEndpoint::Writer(_) => None,
        };
        state.own.insert(number, own);
        drop(state);
        self.changed();
        if let Some(session) = session {
            // A group that fails from now on finds the reader here.
            if let Some(reader) = reader
                && session.group_status().failure().is_some()
            {
                reader.side.port.group_failed();
            }
            session.control_queue().wake();
            session.notifier().dispatching.notify();
            session.notifier().waking.notify();
        }
        Ok(())
    }

    /// Removes a deleted endpoint.
    pub(crate) fn remove(&self, number: u32) {
        let number = u64::from(number);
        let mut state = self.state();
        let removed = state.own.remove(&number);
        let session = state.session();
        if removed.is_some() && session.is_some() {
            state.remove(number);
        }
        drop(state);
        drop(removed);
        self.changed();
        if let Some(session) = session {
            session.control_queue().wake();
            session.notifier().dispatching.notify();
            session.notifier().waking.notify();
        }
    }

    /// The announcements that this participant joins with: as many as fit in its sponsor's request.
    /// Endpoints with noted types follow later, as do those that cannot be announced.
    pub(crate) fn first(&self) -> BTreeMap<u64, GroupEndpoint> {
        let logs = self.logs.ends();
        let mut state = self.state();
        state.begin_anew();
        let mut first = BTreeMap::new();
        let mut len = 0;
        for (number, own) in &state.own {
            let Some((entry, ring)) = own.announce(&self.config) else {
                continue;
            };
            if entry.noted_type().is_some() {
                continue;
            }
            let Ok(endpoint) = entry.to_group(ring, None) else {
                continue;
            };
            len += endpoint.info.len() + 64;
            if len > FIRST_LEN_MAX {
                break;
            }
            first.insert(*number, endpoint);
        }
        first.extend(logs.into_iter().map(log_endpoint));
        state.announced = first.keys().copied().collect();
        first
    }

    /// The participant is in a group: announces what has changed since [`first`](Self::first), and
    /// makes all endpoints usable. Using one that cannot be announced returns the reason.
    pub(crate) fn enter(&self, me: MemberId, session: &Arc<Session>) {
        let mut state = self.state();
        // What was announced meanwhile was told to a group that it has lost.
        state.begin_anew();
        state.group = Some((me, Arc::downgrade(session)));
        let logs: BTreeSet<u64> = self.logs.topics().iter().map(|it| it.number).collect();
        let is_there = |it: &u64| state.own.contains_key(it) || logs.contains(it);
        let gone = state.announced.iter().filter(|it| !is_there(it));
        let gone: Vec<u64> = gone.copied().collect();
        gone.into_iter().for_each(|number| state.remove(number));
        let new = state
            .own
            .iter()
            .filter(|(it, _)| !state.announced.contains(it));
        let new: Vec<(u64, LocalEndpoint)> = new.map(|(it, own)| (*it, own.clone())).collect();
        let mut unannounced = Vec::new();
        for (number, own) in new {
            if let Some((entry, ring)) = own.announce(&self.config)
                && let Err(why) = state.put(number, &entry, ring)
            {
                unannounced.push((own, why));
            }
        }
        let all = state.own.values();
        all.for_each(|own| own.enable(&self.config, session));
        drop(state);
        for (own, why) in unannounced {
            tracing::warn!(topic = own.topic().name, %why, "an endpoint cannot be announced");
            own.refuse(why);
        }
        self.changed();
    }

    /// The participant leaves: nothing is announced any more.
    pub(crate) fn leave(&self) {
        let mut state = self.state();
        state.group = None;
        state.updates.clear();
        state.large_types = LargeTypes::default();
        let own = std::mem::take(&mut state.own);
        drop(state);
        drop(own);
        self.changed();
    }

    /// The updates to request from the group, in order.
    pub(crate) fn take_updates(&self) -> Vec<Update> {
        let mut state = self.state();
        if state.group.is_some() {
            for change in self.logs.take_changes() {
                match change {
                    LogChange::Put(log, end) => {
                        let put = log_endpoint((log, end));
                        state.tell(|update| update.put.push(put));
                    }
                    LogChange::Removed(log) => state.remove(log.number),
                }
            }
        }
        std::mem::take(&mut state.updates)
    }

    /// The group has refused these endpoints, or the notes of their types, for good: they match no
    /// other endpoint, and using them returns the reason.
    pub(crate) fn refused(&self, update: &Update, why: &Error) {
        let mut state = self.state();
        let notes = update.notes.put.iter().map(|(note, _)| *note);
        let without: BTreeSet<u64> = notes.flat_map(|it| state.large_types.users(it)).collect();
        // Without its notes, no member can read an endpoint's type.
        without.iter().for_each(|number| state.remove(*number));
        drop(state);
        let put = update.put.iter().map(|(number, _)| *number);
        for number in put.chain(without) {
            // It may have been deleted meanwhile.
            let Some(own) = self.state().own.get(&number).cloned() else {
                continue;
            };
            let topic = &own.topic().name;
            let text = |why: &str| {
                let kind = own.kind();
                format!("the group refuses the {kind} on topic {topic}: {why}")
            };
            let refusal = match why {
                Error::OutOfResources(why) => Error::OutOfResources(text(why)),
                why => Error::Error(text(&why.to_string())),
            };
            tracing::warn!(topic, number, %why, "the group refuses an endpoint");
            own.refuse(refusal);
        }
    }

    /// A view has begun, with these endpoints.
    pub(super) fn set_known(&self, known: KnownEndpoints) {
        let mut state = self.state();
        let before = std::mem::replace(&mut state.known, known);
        state.topics_changed += 1;
        drop(state);
        self.topics.notify_all();
        drop(before);
    }

    /// A topic has been created, or the participant is closed.
    pub(crate) fn note_topics(&self) {
        self.state().topics_changed += 1;
        self.topics.notify_all();
    }

    /// How often topics may have come so far.
    pub(crate) fn topics_changed(&self) -> u64 {
        self.state().topics_changed
    }

    /// Blocks until this has changed. False when `deadline` comes first.
    pub(crate) fn wait_for_topics(&self, seen: u64, deadline: Deadline) -> bool {
        let mut state = self.state();
        while state.topics_changed == seen {
            state = match deadline.left() {
                None => return false,
                Some(None) => {
                    let woken = self.topics.wait(state);
                    woken.unwrap_or_else(PoisonError::into_inner)
                }
                Some(Some(left)) => {
                    let woken = self.topics.wait_timeout(state, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        true
    }

    /// Whether a participant of the view writes or reads a topic of this name.
    pub(crate) fn is_announced(&self, topic: &str) -> bool {
        self.state().known.subgroup_of(topic).is_some()
    }

    /// The announcement of an endpoint of the view.
    pub(crate) fn entry(&self, handle: InstanceHandle) -> Option<Arc<Entry>> {
        self.state().known.find(handle.guid()?).cloned()
    }

    /// Whether an endpoint's topic is in the subgroup in which the view has that topic.
    ///
    /// # Errors
    /// ERROR, and why not.
    pub(crate) fn check(&self, entry: &Entry) -> Result<()> {
        self.state().check(entry)
    }
}

impl State {
    /// The participant is about to be a new member, of which the group has no update yet.
    fn begin_anew(&mut self) {
        self.updates.clear();
        self.count = 0;
        self.large_types = LargeTypes::default();
    }

    fn session(&self) -> Option<Arc<Session>> {
        self.group.as_ref()?.1.upgrade()
    }

    /// Announces an endpoint; notes its type first if it is large.
    fn put(
        &mut self,
        number: u64,
        entry: &Entry,
        ring: Option<(DeliveryClass, RingSpec)>,
    ) -> Result<()> {
        let noted = entry.noted_type().map(|ty| {
            let (noted, notes) = self.large_types.put(number, ty);
            notes.into_iter().for_each(|note| self.note(note));
            noted
        });
        let endpoint = entry.to_group(ring, noted);
        let endpoint = endpoint.inspect_err(|_| self.remove(number))?;
        self.tell(|update| update.put.push((number, endpoint)));
        Ok(())
    }

    /// Each note is a request of its own: the group takes as many at once as a row has room for.
    fn note(&mut self, note: (u64, Note)) {
        self.tell(|update| update.notes.put.push(note));
    }

    fn remove(&mut self, number: u64) {
        let forget = self.large_types.remove(number);
        self.tell(|update| {
            update.remove.push(number);
            update.notes.remove = forget;
        });
    }

    fn tell(&mut self, say: impl FnOnce(&mut Update)) {
        let Some((member, _)) = self.group else {
            return;
        };
        self.count += 1;
        let mut update = Update {
            member,
            number: self.count,
            put: Vec::new(),
            remove: Vec::new(),
            notes: Notes::default(),
        };
        say(&mut update);
        self.updates.push(update);
    }

    fn check(&self, entry: &Entry) -> Result<()> {
        let endpoint = entry.endpoint();
        match self.known.subgroup_of(&endpoint.topic) {
            Some((subgroup, pid)) if subgroup != endpoint.subgroup => Err(Error::Error(format!(
                "topic {topic} is in subgroup {subgroup} at process {pid} and would be in {}: pin \
                 it to the same with spindle.topic.{topic}.subgroup",
                endpoint.subgroup,
                topic = endpoint.topic,
            ))),
            _ => Ok(()),
        }
    }
}

/// A log as an endpoint of the group.
fn log_endpoint((log, end): (Arc<LoggedTopic>, LogEnd)) -> (u64, GroupEndpoint) {
    let endpoint = GroupEndpoint {
        subgroup: log.subgroup,
        topic: log.key,
        ring: None,
        info: Vec::new(),
        log: Some(end),
    };
    (log.number, endpoint)
}

fn writer_entry(
    config: &ParticipantConfig,
    publisher: &PublisherCore,
    writer: &WriterCore,
    class: DeliveryClass,
) -> Entry {
    Entry::Writer(WriterEntry {
        endpoint: endpoint(config, writer.base.guid(), &writer.topic),
        number: writer.number,
        is_ordered: class == DeliveryClass::Ordered,
        returns: writer.returns(),
        qos: writer.qos().clone(),
        publisher: publisher.qos().clone(),
    })
}

fn reader_entry(
    config: &ParticipantConfig,
    subscriber: &SubscriberCore,
    reader: &ReaderCore,
) -> Entry {
    Entry::Reader(ReaderEntry {
        endpoint: endpoint(config, reader.base.guid(), &reader.topic),
        qos: reader.qos().clone(),
        subscriber: subscriber.qos().clone(),
    })
}

fn endpoint(config: &ParticipantConfig, guid: Guid, topic: &TopicCore) -> Endpoint {
    Endpoint {
        guid,
        topic: topic.name.clone(),
        type_name: topic.type_name.clone().into_owned(),
        has_key: topic.has_key,
        subgroup: config.subgroup_of(&topic.name),
        ty: topic.ty.as_ref().map(|ty| ty.announced.clone()),
    }
}
