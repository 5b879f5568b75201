//! Which encodings of samples are written or read.

use serde::{Deserialize, Serialize};

use crate::label::labelled_enum;

labelled_enum! {
    /// An encoding of samples (XTypes 1.3 §7.6.3.1).
    pub enum DataRepresentationId {
        /// XCDR version 1, the classic CDR.
        #[default]
        Xcdr1 = "XCDR_DATA_REPRESENTATION",
        /// XML text.
        Xml = "XML_DATA_REPRESENTATION",
        /// XCDR version 2.
        Xcdr2 = "XCDR2_DATA_REPRESENTATION",
    }
}

/// DATA_REPRESENTATION: the encodings a writer offers or a reader takes
/// (XTypes 1.3 §7.6.3.1.1). Default: the empty list, which means XCDR1 alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct DataRepresentation {
    /// The encodings, the preferred one first; a writer uses only the first.
    pub value: Vec<DataRepresentationId>,
}

impl DataRepresentation {
    /// The list with the empty one replaced by what it means.
    pub fn effective(&self) -> &[DataRepresentationId] {
        if self.value.is_empty() {
            &[DataRepresentationId::Xcdr1]
        } else {
            &self.value
        }
    }

    /// The encoding that a writer with this policy uses.
    pub fn written(&self) -> DataRepresentationId {
        self.effective().first().copied().unwrap_or_default()
    }

    /// Whether a reader with this policy takes samples encoded as `id`.
    pub fn accepts(&self, id: DataRepresentationId) -> bool {
        self.effective().contains(&id)
    }
}

impl From<DataRepresentationId> for DataRepresentation {
    fn from(id: DataRepresentationId) -> Self {
        Self { value: vec![id] }
    }
}
