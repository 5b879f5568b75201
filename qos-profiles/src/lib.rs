//! The QoS of DDS: policy types, the rules among them, and DDS-XML read into them.
//!
//! An application controls the delivery of its data by *policies* on entities:
//! whether samples may get lost, how many are kept, which writers may write.
//! This crate has a type for each of the 22 policies of DDS 1.4 and the two of
//! DDS-XTypes 1.3, with the standard's names and defaults; a structure of them for
//! each kind of entity ([`DataWriterQos`], [`DataReaderQos`], ...); and one function
//! for each check of the standard:
//!
//! | question | answer |
//! |---|---|
//! | are the policies of an entity consistent? | `check_consistency`: INCONSISTENT_POLICY |
//! | may an enabled entity change to them? | `check_mutable`: IMMUTABLE_POLICY |
//! | does a writer's offer satisfy a reader's request? | [`incompatible`], [`Partition::matches`] |
//! | is everything that they request supported? | `unsupported`: UNSUPPORTED |
//!
//! QoS can be written in the program, or kept in files in the OMG's format DDS-XML
//! and looked up by name. A QoS from a file records where each policy was set, so
//! that an error can name the line.
//!
//! ```text
//!   fleet.xml ──┐
//!   radar.xml ──┼─▶ QosProvider ──profile("Fleet::Critical")──▶ QosProfile
//!               │        │                                          │ datawriter_qos("Track")
//!               ▼        ▼                                          ▼
//!        LoadError: all diagnostics     check(): all          DataWriterQos
//!        as file:line:column            diagnostics            ├ policies, defaults filled in
//!                                                              └ origins: policy ─▶ file, line
//! ```
//!
//! The crate knows nothing of entities, transports or the order of messages:
//! it does not act on policies. It opens only the files that it is given, or asked to find
//! ([`QosLoader::default_files`]), starts no thread, and reads no clock. Of the environment it
//! reads the variables that a file names as `$(NAME)`.
//!
//! # Example
//!
//! ```
//! use spindle_dds_qos::{Duration, QosProvider, ReliabilityKind};
//!
//! let text = r#"
//! <dds>
//!   <qos_library name="Fleet">
//!     <qos_profile name="Base">
//!       <datawriter_qos>
//!         <history><kind>KEEP_ALL_HISTORY_QOS</kind></history>
//!       </datawriter_qos>
//!     </qos_profile>
//!     <qos_profile name="Critical" base_name="Base">
//!       <datawriter_qos topic_filter="Track*">
//!         <reliability><max_blocking_time><sec>1</sec></max_blocking_time></reliability>
//!         <lifespan><duration><sec>5</sec></duration></lifespan>
//!       </datawriter_qos>
//!     </qos_profile>
//!   </qos_library>
//! </dds>"#;
//! let provider = QosProvider::from_str(text, "fleet.xml")?;
//! let qos = provider.profile("Fleet::Critical")?.datawriter_qos("Tracks");
//! assert_eq!(qos.reliability.kind, ReliabilityKind::Reliable);
//! assert_eq!(qos.reliability.max_blocking_time, Duration::from_secs(1));
//! qos.check_consistency()?;
//! assert_eq!(
//!     qos.unsupported()[0].to_string(),
//!     "LIFESPAN is not supported yet: duration 5s (set at fleet.xml:12:9)",
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is read of DDS-XML
//!
//! - `qos_library`, `qos_profile`, `qos_snippet` and the six kinds of `…_qos`, in any
//!   namespace or none; a `qos_profile` outside of a library, as earlier schemas have
//!   it, is read with a warning.
//! - `types` into the types of XTypes; `domain_library`, `domain_participant_library` and
//!   `application_library` into participants with all that they contain
//!   ([`QosProvider::participant`]). What is of the draft of DDS-XML 1.1 for DDS-RPC and for
//!   deployment is passed over with a warning.
//! - `base_name` in the same library or as `Library::Profile`, before or after its
//!   use, in any of the files; several in a list of `element`s, applied in order. The
//!   built-in profiles of RTI Connext are found by their names. Single values override
//!   member by member, sequences as a whole, properties by name unless `inherit="false"`.
//!   A duration is one value: of `sec` and `nanosec`, the one that is left out is zero.
//! - Bytes are pairs of hexadecimal digits; a list with commas, or one that begins
//!   with `0x`, is read as earlier schemas have it.
//! - `$(NAME)` in texts and attributes, with defaults in `configuration_variables`.
//! - Elements that other products add are passed over with a warning each. All other
//!   names and values outside of the format are errors, reported all in one run.

#![forbid(unsafe_code)]

mod diagnostic;
mod duration;
mod entity;
mod fnmatch;
mod label;
mod length;
mod location;
mod policy;
mod policy_id;
mod provider;
mod rules;
mod xml;

pub use diagnostic::{Diagnostic, Severity, did_you_mean};
pub use duration::{Duration, InvalidDuration};
pub use entity::{
    DataReaderQos, DataWriterQos, DomainParticipantFactoryQos, DomainParticipantQos, PublisherQos,
    SubscriberQos, TopicQos,
};
pub use fnmatch::fnmatch;
pub use length::Length;
pub use location::{Location, Origins};
pub use policy::{
    DataRepresentation, DataRepresentationId, Deadline, DestinationOrder, DestinationOrderKind,
    Durability, DurabilityKind, DurabilityService, EntityFactory, GroupData, History, HistoryKind,
    LatencyBudget, Lifespan, Liveliness, LivelinessKind, Ownership, OwnershipKind,
    OwnershipStrength, Partition, Presentation, PresentationAccessScope, Properties, Property,
    ReaderDataLifecycle, Reliability, ReliabilityKind, ResourceLimits, TimeBasedFilter, TopicData,
    TransportPriority, TypeConsistencyEnforcement, TypeConsistencyKind, UserData,
    WriterDataLifecycle,
};
pub use policy_id::PolicyId;
pub use provider::{
    DeclaredParticipant, DeclaredPublisher, DeclaredQos, DeclaredReader, DeclaredSubscriber,
    DeclaredTopic, DeclaredWriter, LoadError, QosLoader, QosProfile, QosProvider,
    UnknownParticipant, UnknownProfile,
};
pub use rules::{ImmutablePolicy, Incompatibility, Inconsistent, UnsupportedPolicy, incompatible};
pub use xml::entity::{AnyQos, QosValue};
