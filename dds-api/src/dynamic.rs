//! Topics whose type is known only at run time.

use std::borrow::Cow;
use std::fmt;

use spindle_dds_core::MessageKind;
use spindle_dds_idl_runtime::Representation;
use spindle_dds_qos::TopicQos;
use spindle_dds_xtypes::{DataError, DynamicData, DynamicType, Resolved};

use crate::cache::Whose;
use crate::choice::{ListenerChoice, QosChoice, builder_setters};
use crate::condition::StateMasks;
use crate::discovery::LocalType;
use crate::driver::{Access, Item};
use crate::error::{Error, Result};
use crate::listener::TopicListener;
use crate::participant::DomainParticipant;
use crate::publication::{DataWriter, Receipt};
use crate::sample_type::SampleType;
use crate::stamps::source_timestamp;
use crate::subscription::{DataReader, Sample, Samples};
use crate::topic::{Topic, TopicBuilder, TopicOf};
use crate::wire::Wire;

/// The `T` of a [`Topic`], [`DataWriter`] or [`DataReader`] whose type is known only at run time:
/// its samples are [`DynamicData`].
///
/// ```
/// use spindle_dds::qos::QosProvider;
/// use spindle_dds::{DomainParticipant, Dynamic};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path().join("domains").display().to_string();
///
/// let text = "<types><struct name='Reading'>
///   <member name='sensor' type='int32' key='true'/>
///   <member name='value' type='float64'/>
/// </struct></types>";
/// let files = QosProvider::from_str(text, "types.xml")?;
/// let ty = files.topic_type("Reading").ok_or("no such type")?;
/// let participant = DomainParticipant::builder(0)
///     # .property("spindle.directory", &directory)
///     .create()?;
/// let topic = participant.dynamic_topic("Readings", &ty).create()?;
/// let writer = participant.publisher().create()?.writer(&topic).create()?;
/// let mut reading = ty.default_data()?;
/// reading.set("sensor", 7.into())?;
/// reading.set("value", 0.5.into())?;
/// writer.write(&reading)?;
/// # participant.close()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub enum Dynamic {}

/// Makes a [`Topic`] whose type is known only at run time.
#[must_use = "a builder does nothing until `create`"]
pub struct DynamicTopicBuilder<'a> {
    participant: &'a DomainParticipant,
    name: String,
    ty: DynamicType,
    qos: QosChoice<TopicQos>,
    listener: ListenerChoice<dyn TopicListener>,
}

impl fmt::Debug for DynamicTopicBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamicTopicBuilder")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl<'a> DynamicTopicBuilder<'a> {
    pub(crate) fn new(participant: &'a DomainParticipant, name: &str, ty: &DynamicType) -> Self {
        Self {
            participant,
            name: name.to_owned(),
            ty: ty.clone(),
            qos: QosChoice::Default,
            listener: None,
        }
    }

    pub(crate) fn with(mut self, qos: QosChoice<TopicQos>) -> Self {
        self.qos = qos;
        self
    }

    builder_setters!(
        TopicQos,
        TopicListener,
        "With the QoS that the profile `Library::Profile` has for it.",
        |listener| listener
    );

    /// Creates the topic. Its type is known to others by its scoped name.
    ///
    /// # Errors
    /// BAD_PARAMETER for an empty name, an unknown profile, or a type that is no structure or union,
    /// or that cannot be described; PRECONDITION_NOT_MET when the participant has a topic of this
    /// name; INCONSISTENT_POLICY, UNSUPPORTED.
    pub fn create(self) -> Result<Topic<Dynamic>> {
        let ty = self.ty;
        let described = LocalType::of_resolved(Resolved {
            graph: ty.graph().clone(),
            ty: ty.ty().clone(),
        });
        let builder = TopicBuilder::new(self.participant, &self.name).with(self.qos);
        builder.with_listener(self.listener).create_of(TopicOf {
            type_name: Cow::Owned(ty.name().unwrap_or_default().to_owned()),
            has_key: ty.has_key(),
            representations: &[Representation::Xcdr1, Representation::Xcdr2],
            sample_type: SampleType::Dynamic(ty),
            described: described.map(Some),
        })
    }
}

impl Topic<Dynamic> {
    /// The type of its samples.
    pub fn dynamic_type(&self) -> &DynamicType {
        self.core.sample_type.dynamic()
    }
}

impl DataWriter<Dynamic> {
    /// The type of its samples.
    pub fn dynamic_type(&self) -> &DynamicType {
        self.core.topic.sample_type.dynamic()
    }

    /// Writes a sample, as [`DataWriter::write`] does one of a compiled type; it allocates.
    ///
    /// # Errors
    /// BAD_PARAMETER when it is of another type or breaks a bound; else those of a writer of a
    /// compiled type.
    pub fn write(&self, sample: &DynamicData) -> Result<Receipt> {
        self.write_w_timestamp(sample, source_timestamp())
    }

    /// As [`write`](Self::write), with a source timestamp in nanoseconds since 1970.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn write_w_timestamp(&self, sample: &DynamicData, timestamp: i64) -> Result<Receipt> {
        let sample = self.own(sample)?;
        let bytes = sample.encode(self.core.side.representation())?;
        self.write_bytes(&bytes, MessageKind::Data, &sample, timestamp)
    }

    /// Disposes of the instance of `key`, of which only the key members count.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn dispose(&self, key: &DynamicData) -> Result<Receipt> {
        self.write_key(key, MessageKind::Dispose)
    }

    /// Unregisters the instance of `key`, of which only the key members count, and disposes of
    /// it if `autodispose_unregistered_instances` says so.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn unregister_instance(&self, key: &DynamicData) -> Result<Receipt> {
        let kind = match self.core.autodisposes() {
            true => MessageKind::DisposeUnregister,
            false => MessageKind::Unregister,
        };
        self.write_key(key, kind)
    }

    fn write_key(&self, key: &DynamicData, kind: MessageKind) -> Result<Receipt> {
        let key = self.own(key)?;
        let bytes = key.encode_key(self.core.side.representation())?;
        self.write_bytes(&bytes, kind, &key, source_timestamp())
    }

    /// A sample as one of the writer's type.
    fn own<'s>(&self, sample: &'s DynamicData) -> Result<Cow<'s, DynamicData>> {
        let own = self.dynamic_type();
        if own.is_same(sample.ty()) {
            return Ok(Cow::Borrowed(sample));
        }
        let data = own.data(sample.value().clone());
        data.map(Cow::Owned).map_err(|_| {
            let name = |ty: &DynamicType| ty.name().unwrap_or("without a name").to_owned();
            let (theirs, own) = (name(sample.ty()), name(own));
            Error::BadParameter(format!(
                "the sample is of type {theirs}, the topic of type {own}"
            ))
        })
    }

    fn write_bytes(
        &self,
        bytes: &[u8],
        kind: MessageKind,
        sample: &DynamicData,
        timestamp: i64,
    ) -> Result<Receipt> {
        let copy = |room: &mut [u8]| match room.get_mut(..bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                Ok(bytes.len())
            }
            None => Err(Error::OutOfResources(format!(
                "the sample has {} bytes, the room {}",
                bytes.len(),
                room.len()
            ))),
        };
        self.core
            .write(bytes.len(), copy, kind, sample.key_hash(), timestamp)
    }
}

impl DataReader<Dynamic> {
    /// The type of its samples.
    pub fn dynamic_type(&self) -> &DynamicType {
        self.core.topic.sample_type.dynamic()
    }

    /// Takes at most `max` samples in any state.
    ///
    /// # Errors
    /// NO_DATA, NOT_ENABLED, ALREADY_DELETED; ERROR when the group failed.
    pub fn take(&self, max: usize) -> Result<Samples<Dynamic>> {
        self.take_states(max, StateMasks::ANY)
    }

    /// Reads at most `max` samples in any state.
    ///
    /// # Errors
    /// As for [`take`](Self::take).
    pub fn read(&self, max: usize) -> Result<Samples<Dynamic>> {
        self.read_states(max, StateMasks::ANY)
    }

    /// Takes at most `max` samples in these states.
    ///
    /// # Errors
    /// As for [`take`](Self::take).
    pub fn take_states(&self, max: usize, masks: StateMasks) -> Result<Samples<Dynamic>> {
        let is_valid = |item: &Item<Wire>| self.is_valid(item);
        self.select_valid(Access::Take, max, masks, Whose::Any, is_valid)
    }

    /// Reads at most `max` samples in these states.
    ///
    /// # Errors
    /// As for [`take`](Self::take).
    pub fn read_states(&self, max: usize, masks: StateMasks) -> Result<Samples<Dynamic>> {
        let is_valid = |item: &Item<Wire>| self.is_valid(item);
        self.select_valid(Access::Read, max, masks, Whose::Any, is_valid)
    }

    /// The data of a sample of this reader.
    ///
    /// # Errors
    /// NO_DATA when the sample only tells of a state; BAD_PARAMETER when its bytes were changed
    /// since they were checked.
    pub fn data_of(&self, sample: Sample<'_, Dynamic>) -> Result<DynamicData> {
        let encapsulation = sample.info().encapsulation();
        Ok(self.dynamic_type().decode(sample.bytes()?, encapsulation)?)
    }

    fn is_valid(&self, (info, payload): &Item<Wire>) -> bool {
        let ty = self.dynamic_type();
        let is_sample = |bytes: &[u8]| ty.decode(bytes, info.encapsulation()).is_ok();
        payload
            .as_ref()
            .is_none_or(|payload| is_sample(payload.bytes()))
    }
}

impl From<DataError> for Error {
    #[cold]
    fn from(error: DataError) -> Self {
        match error {
            DataError::Cdr(error) => error.into(),
            DataError::NoSuchPath { .. } | DataError::WrongType { .. } => {
                Self::BadParameter(error.to_string())
            }
        }
    }
}
