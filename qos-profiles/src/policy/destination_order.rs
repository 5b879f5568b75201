//! Which time stamp orders the changes of an instance.

use serde::{Deserialize, Serialize};

use crate::label::labelled_enum;

labelled_enum! {
    /// The order among changes of several writers; the later value is the stricter.
    pub enum DestinationOrderKind {
        /// By arrival at each reader; for Spindle's ordered levels that is the one
        /// order that all readers share.
        #[default]
        ByReceptionTimestamp = "BY_RECEPTION_TIMESTAMP_DESTINATIONORDER_QOS",
        /// By the time stamp of the writer.
        BySourceTimestamp = "BY_SOURCE_TIMESTAMP_DESTINATIONORDER_QOS",
    }
}

/// DESTINATION_ORDER: how a reader orders changes of one instance (DDS 1.4
/// §2.2.3.17). Default: by reception.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct DestinationOrder {
    /// Which time stamp counts.
    pub kind: DestinationOrderKind,
}

impl From<DestinationOrderKind> for DestinationOrder {
    fn from(kind: DestinationOrderKind) -> Self {
        Self { kind }
    }
}
