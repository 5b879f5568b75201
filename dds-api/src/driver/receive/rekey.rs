//! Instances of messages whose headers do not identify them: key hashes of writers whose type
//! hashes keys in another way than the reader's, and digests, which two keys may share.
//!
//! A key hash is the key itself where no key of the type can exceed 16 bytes, and else a
//! digest of it (XTypes 1.3 §7.6.8.4). A reader's key may be longer than the writer's
//! (§7.2.4.4.8), so of one and the same key the writer may send itself, and the reader's
//! type make a digest. The reader knows instances by the hash of its own type: it makes that
//! of the key that is in every message. If that is a digest, it knows them by the name of the key
//! (see [`keys`](crate::keys)).

use std::sync::Arc;

use spindle_dds_core::MessageKind;
use spindle_dds_idl_runtime::{CdrError, Encapsulation, KeyHash, TopicType};
use spindle_dds_xtypes::DynamicType;

use crate::keys::cdr_error;

/// Makes the key hash of a message anew; see [`rekey`].
pub(crate) type Rekey =
    Arc<dyn Fn(MessageKind, &[u8], Encapsulation) -> Result<KeyHash, CdrError> + Send + Sync>;

/// As [`rekey`], for a type that is known only at run time.
pub(crate) fn rekey_dynamic(ty: DynamicType) -> Rekey {
    Arc::new(move |kind, bytes, encapsulation| {
        let data = match kind {
            MessageKind::Data => ty.decode(bytes, encapsulation),
            _ => ty.decode_key(bytes, encapsulation),
        };
        Ok(data.map_err(cdr_error)?.key_hash())
    })
}

/// The key hash that `T` makes of the payload of a message. That of a sample allocates
/// nothing.
///
/// # Errors
/// What is wrong with the payload.
pub(crate) fn rekey<T: TopicType>(
    kind: MessageKind,
    bytes: &[u8],
    encapsulation: Encapsulation,
) -> Result<KeyHash, CdrError> {
    match kind {
        MessageKind::Data => Ok(T::view_key_hash(&T::view(bytes, encapsulation)?)),
        MessageKind::Dispose
        | MessageKind::Unregister
        | MessageKind::DisposeUnregister
        | MessageKind::Control => Ok(T::decode_key(bytes, encapsulation)?.key_hash()),
    }
}
