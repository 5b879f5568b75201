//! One profile, and the QoS it gives to each kind of entity.

use std::sync::Arc;

use crate::diagnostic::Report;
use crate::entity::{
    DataReaderQos, DataWriterQos, DomainParticipantQos, PublisherQos, SubscriberQos, TopicQos,
};
use crate::fnmatch::fnmatch;
use crate::provider::Model;
use crate::provider::links::Target;
use crate::xml::entity::{EntityKind, EntityQos};

/// A QoS profile: for each kind of entity the QoS that its file gives, on top of
/// what it inherits, on top of the standard's defaults.
///
/// Where a profile has several QoS for writers, readers or topics, the first whose
/// `topic_filter` matches the topic's name is the one (as `fnmatch` has it; without
/// a filter it is for all topics). An element is applied after its `base_name`, or
/// its profile's if it has none, then the snippets of the profile, then its own.
#[derive(Debug, Clone)]
pub struct QosProfile {
    model: Arc<Model>,
    group: usize,
}

impl QosProfile {
    pub(super) fn new(model: Arc<Model>, group: usize) -> Self {
        Self { model, group }
    }

    /// The full name, `Library::Profile`.
    pub fn name(&self) -> String {
        self.model.groups[self.group].full_name()
    }

    /// The QoS for participants.
    pub fn participant_qos(&self) -> DomainParticipantQos {
        self.qos("")
    }

    /// The QoS for the topic of this name.
    pub fn topic_qos(&self, topic_name: &str) -> TopicQos {
        self.qos(topic_name)
    }

    /// The QoS for publishers.
    pub fn publisher_qos(&self) -> PublisherQos {
        self.qos("")
    }

    /// The QoS for subscribers.
    pub fn subscriber_qos(&self) -> SubscriberQos {
        self.qos("")
    }

    /// The QoS for writers of the topic of this name.
    pub fn datawriter_qos(&self, topic_name: &str) -> DataWriterQos {
        self.qos(topic_name)
    }

    /// The QoS for readers of the topic of this name.
    pub fn datareader_qos(&self, topic_name: &str) -> DataReaderQos {
        self.qos(topic_name)
    }

    /// The topic filters of the profile itself, in the order of the file.
    pub fn topic_filters(&self) -> Vec<String> {
        let entities = self.model.groups[self.group].entities.iter();
        let mut filters: Vec<String> = Vec::new();
        for filter in entities.filter_map(|entity| entity.topic_filter.as_ref()) {
            if !filters.contains(filter) {
                filters.push(filter.clone());
            }
        }
        filters
    }

    pub(super) fn qos<Q: EntityQos>(&self, topic_name: &str) -> Q {
        let mut layers = Layers::new(&self.model, Q::KIND, topic_name);
        layers.of_group(self.group);
        layers.apply()
    }
}

/// Elements in the order in which they are applied: `(group, entity)`.
pub(super) struct Layers<'a> {
    model: &'a Model,
    kind: EntityKind,
    topic_name: &'a str,
    found: Vec<(usize, usize)>,
    /// How many more steps may be taken. Only profiles whose inheritance is in error, which are
    /// read to say all that is wrong with them, take so many.
    steps_left: usize,
}

impl<'a> Layers<'a> {
    pub(super) fn new(model: &'a Model, kind: EntityKind, topic_name: &'a str) -> Self {
        Self {
            model,
            kind,
            topic_name,
            found: Vec::new(),
            steps_left: STEPS_MAX,
        }
    }

    /// Adds what a group has for the kind and topic.
    pub(super) fn of_group(&mut self, group: usize) {
        if !self.step() {
            return;
        }
        let mut entities = self.model.groups[group].entities.iter();
        let matching = entities.position(|entity| {
            let filter = entity.topic_filter.as_deref();
            entity.kind == self.kind && filter.is_none_or(|f| fnmatch(f, self.topic_name))
        });
        match matching {
            Some(entity) => self.of_entity(group, entity),
            None => {
                if let Some(base) = self.model.links.groups[group].base {
                    self.of_group(base);
                }
                self.of_snippets(&self.model.links.groups[group].snippets);
            }
        }
    }

    /// Adds what an entity inherits, then the entity.
    pub(super) fn of_entity(&mut self, group: usize, entity: usize) {
        if !self.step() {
            return;
        }
        let links = &self.model.links.groups[group];
        let own = &links.entities[entity];
        if let Some(base) = own.base.or_else(|| links.base.map(Target::Group)) {
            self.of_target(base);
        }
        self.of_snippets(&links.snippets);
        self.of_snippets(&own.snippets);
        self.found.push((group, entity));
    }

    fn step(&mut self) -> bool {
        self.steps_left = self.steps_left.saturating_sub(1);
        self.steps_left > 0
    }

    fn of_target(&mut self, target: Target) {
        match target {
            Target::Group(group) => self.of_group(group),
            Target::Entity(group, entity) => self.of_entity(group, entity),
        }
    }

    fn of_snippets(&mut self, snippets: &[Option<Target>]) {
        for &snippet in snippets.iter().flatten() {
            self.of_target(snippet);
        }
    }

    /// Whether nothing but the defaults is to be applied.
    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The defaults with all layers applied.
    pub(super) fn apply<Q: EntityQos>(&self) -> Q {
        let mut qos = Q::default();
        for &(group, entity) in &self.found {
            let group = &self.model.groups[group];
            let mut report = Report::silent(group.file.clone());
            qos.apply(&group.entities[entity].element, &mut report);
        }
        qos
    }
}

/// More than inheritance without errors takes.
pub(super) const STEPS_MAX: usize = 2048;
