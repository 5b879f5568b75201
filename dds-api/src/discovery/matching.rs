//! Which writers and readers match (DDS 1.4 §2.2.3).

use spindle_dds_qos::{PolicyId, incompatible};

use super::announcement::{Endpoint, ReaderEntry, WriterEntry};

/// How a writer and a reader stand to each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Match {
    /// Of different topics, types or partitions: they never meet.
    Apart,
    /// The reader asks for more than the writer offers.
    Incompatible(Vec<PolicyId>),
    /// Samples flow.
    Matched,
}

impl Match {
    pub(crate) fn of(writer: &WriterEntry, reader: &ReaderEntry) -> Self {
        if !same_type(&writer.endpoint, &reader.endpoint)
            || !writer
                .publisher
                .partition
                .matches(&reader.subscriber.partition)
        {
            return Self::Apart;
        }
        let found = incompatible(
            &writer.qos,
            &writer.publisher,
            &reader.qos,
            &reader.subscriber,
        );
        if found.is_empty() {
            return Self::Matched;
        }
        Self::Incompatible(found.iter().map(|found| found.policy).collect())
    }
}

fn same_type(a: &Endpoint, b: &Endpoint) -> bool {
    let same_topic = a.topic == b.topic && a.subgroup == b.subgroup;
    same_topic && a.type_name == b.type_name && a.has_key == b.has_key
}

/// Whether two endpoints have a topic of one name and different types.
pub(crate) fn is_inconsistent(a: &Endpoint, b: &Endpoint) -> bool {
    a.topic == b.topic && !same_type(a, b)
}
