//! The entities of a participant that a file describes (DDS-XML 1.0 §7.3.5).

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use spindle_dds_idl_runtime::{Representation, TopicType};
use spindle_dds_qos::{
    DataReaderQos, DataWriterQos, DeclaredParticipant, DeclaredPublisher, DeclaredSubscriber,
    DeclaredTopic, TopicQos,
};
use spindle_dds_xtypes::{Consistency, DynamicType, Resolved, assignable};

use super::{DomainParticipant, factory};
use crate::choice::{ProfileQos, QosChoice};
use crate::discovery::LocalType;
use crate::dynamic::Dynamic;
use crate::error::{Error, Result};
use crate::publication::Publisher;
use crate::subscription::Subscriber;
use crate::topic::{AnyTopic, TopicBuilder};

/// Makes entities of topics of one type.
pub(super) trait EntityType: fmt::Debug + Send + Sync {
    fn topic(
        &self,
        participant: &DomainParticipant,
        name: &str,
        qos: QosChoice<TopicQos>,
    ) -> Result<AnyTopic>;

    fn writer(
        &self,
        publisher: &Publisher,
        topic: &AnyTopic,
        named: (&str, QosChoice<DataWriterQos>),
    ) -> Result<()>;

    fn reader(
        &self,
        subscriber: &Subscriber,
        topic: &AnyTopic,
        named: (&str, QosChoice<DataReaderQos>),
    ) -> Result<()>;

    /// Refuses a description from which the type cannot be read, or that cannot be read from it.
    ///
    /// # Errors
    /// BAD_PARAMETER with the first difference.
    fn check(&self, described: &DynamicType) -> Result<()>;
}

/// A type of the program.
pub(super) struct CompiledType<T>(PhantomData<fn() -> T>);

impl<T> Default for CompiledType<T> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T: TopicType> fmt::Debug for CompiledType<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::TYPE_NAME)
    }
}

/// A type that only the file describes.
#[derive(Debug)]
struct DescribedType(DynamicType);

/// What both have in common, with the `T` of their entities.
macro_rules! endpoints {
    ($of:ty) => {
        fn writer(
            &self,
            publisher: &Publisher,
            topic: &AnyTopic,
            (name, qos): (&str, QosChoice<DataWriterQos>),
        ) -> Result<()> {
            let topic = topic.downcast::<$of>().ok_or_else(foreign)?;
            publisher.writer(&topic).name(name).with(qos).create()?;
            Ok(())
        }

        fn reader(
            &self,
            subscriber: &Subscriber,
            topic: &AnyTopic,
            (name, qos): (&str, QosChoice<DataReaderQos>),
        ) -> Result<()> {
            let topic = topic.downcast::<$of>().ok_or_else(foreign)?;
            subscriber.reader(&topic).name(name).with(qos).create()?;
            Ok(())
        }
    };
}

impl<T: TopicType> EntityType for CompiledType<T> {
    fn topic(
        &self,
        participant: &DomainParticipant,
        name: &str,
        qos: QosChoice<TopicQos>,
    ) -> Result<AnyTopic> {
        let topic: TopicBuilder<'_, T> = participant.topic(name);
        Ok(topic.with(qos).create()?.as_any())
    }

    endpoints!(T);

    fn check(&self, described: &DynamicType) -> Result<()> {
        let invalid = |why: &dyn fmt::Display| {
            let name = T::TYPE_NAME;
            Error::BadParameter(format!("the description of type {name} is invalid: {why}"))
        };
        // A type that XTypes cannot describe is compared with nothing.
        let Some(own) = &T::DESCRIPTION else {
            return Ok(());
        };
        let own = LocalType::of(own).map_err(|why| invalid(&why))?.named;
        let described = Resolved {
            graph: described.graph().clone(),
            ty: described.ty().clone(),
        };
        for (reader, writer) in [(&own, &described), (&described, &own)] {
            for representation in T::REPRESENTATIONS {
                fits(reader, writer, *representation).map_err(|difference| {
                    Error::BadParameter(format!(
                        "the type {} of the program does not fit the description: {difference}",
                        T::TYPE_NAME
                    ))
                })?;
            }
        }
        Ok(())
    }
}

fn fits(
    reader: &Resolved,
    writer: &Resolved,
    representation: Representation,
) -> std::result::Result<(), spindle_dds_xtypes::Mismatch> {
    let consistency = Consistency::default();
    assignable(Some(reader), Some(writer), representation, &consistency)
}

impl EntityType for DescribedType {
    fn topic(
        &self,
        participant: &DomainParticipant,
        name: &str,
        qos: QosChoice<TopicQos>,
    ) -> Result<AnyTopic> {
        let topic = participant.dynamic_topic(name, &self.0);
        Ok(topic.with(qos).create()?.as_any())
    }

    endpoints!(Dynamic);

    fn check(&self, _: &DynamicType) -> Result<()> {
        Ok(())
    }
}

fn foreign() -> Error {
    Error::Error("the topic is of another type".to_owned())
}

fn chosen<Q: ProfileQos>(qos: Option<&Q>) -> QosChoice<Q> {
    qos.map_or(QosChoice::Default, |qos| {
        QosChoice::Given(Box::new(qos.clone()))
    })
}

/// The topics of a participant, by their names in the file.
type Topics = HashMap<String, (AnyTopic, Arc<dyn EntityType>)>;

/// Creates the entities of a participant, which is disabled.
///
/// # Errors
/// Those of creating them, with the line of the file.
pub(super) fn create_entities(
    participant: &DomainParticipant,
    declared: &DeclaredParticipant,
) -> Result<()> {
    let mut topics = Topics::new();
    for topic in &declared.topics {
        let created = create_topic(participant, topic);
        let created = created.map_err(|error| error.at(&topic.location))?;
        topics.insert(topic.name.clone(), created);
    }
    for publisher in &declared.publishers {
        create_publisher(participant, publisher, &topics)?;
    }
    for subscriber in &declared.subscribers {
        create_subscriber(participant, subscriber, &topics)?;
    }
    Ok(())
}

fn create_topic(
    participant: &DomainParticipant,
    topic: &DeclaredTopic,
) -> Result<(AnyTopic, Arc<dyn EntityType>)> {
    let names = [topic.registered_type.as_str(), topic.type_name.as_str()];
    let ty: Arc<dyn EntityType> = match (factory::registered_type(names), &topic.ty) {
        (Some(compiled), Some(described)) => {
            compiled.check(described)?;
            compiled
        }
        (Some(compiled), None) => compiled,
        (None, Some(described)) => Arc::new(DescribedType(described.clone())),
        (None, None) => {
            let (name, registered) = (&topic.type_name, &topic.registered_type);
            return Err(Error::BadParameter(format!(
                "no file describes the type {name}, and the program has registered no type \
                 {registered} or {name} with DomainParticipantFactory::register_type"
            )));
        }
    };
    let qos = chosen(topic.qos.as_ref());
    Ok((ty.topic(participant, &topic.topic_name, qos)?, ty))
}

fn create_publisher(
    participant: &DomainParticipant,
    declared: &DeclaredPublisher,
    topics: &Topics,
) -> Result<()> {
    let mut publisher = participant.publisher().with(chosen(declared.qos.as_ref()));
    if !declared.name.is_empty() {
        publisher = publisher.name(&declared.name);
    }
    let publisher = publisher.create();
    let publisher = publisher.map_err(|error| error.at(&declared.location))?;
    for writer in &declared.writers {
        // Names that are not known have been reported.
        let Some((topic, ty)) = topics.get(&writer.topic) else {
            continue;
        };
        let named = (writer.name.as_str(), chosen(writer.qos.as_ref()));
        let created = ty.writer(&publisher, topic, named);
        created.map_err(|error| error.at(&writer.location))?;
    }
    Ok(())
}

fn create_subscriber(
    participant: &DomainParticipant,
    declared: &DeclaredSubscriber,
    topics: &Topics,
) -> Result<()> {
    let mut subscriber = participant.subscriber().with(chosen(declared.qos.as_ref()));
    if !declared.name.is_empty() {
        subscriber = subscriber.name(&declared.name);
    }
    let subscriber = subscriber.create();
    let subscriber = subscriber.map_err(|error| error.at(&declared.location))?;
    for reader in &declared.readers {
        let Some((topic, ty)) = topics.get(&reader.topic) else {
            continue;
        };
        let created = match &reader.refused {
            Some(element) => {
                let message = format!("'{element}' of reader '{}'", reader.name);
                Err(Error::Unsupported(message))
            }
            None => {
                let named = (reader.name.as_str(), chosen(reader.qos.as_ref()));
                ty.reader(&subscriber, topic, named)
            }
        };
        created.map_err(|error| error.at(&reader.location))?;
    }
    Ok(())
}
