//! The instances of a writer by their keys and handles (DDS 1.4 §2.2.2.4.2.5 to §2.2.2.4.2.10).

use spindle_dds_core::MessageKind;
use spindle_dds_idl_runtime::{KeyHash, TopicType};

use super::core::WriterCore;
use super::writer::DataWriter;
use crate::error::{Error, Result};
use crate::handle::InstanceHandle;
use crate::keys::{KnownKeys, key_of, name_of};

impl<T: TopicType> DataWriter<T> {
    /// As [`register_instance`](Self::register_instance). The source timestamp has no effect:
    /// readers are not told of a registration, only of what is written.
    ///
    /// # Errors
    /// As for [`register_instance`](Self::register_instance).
    pub fn register_instance_w_timestamp(&self, key: &T, timestamp: i64) -> Result<InstanceHandle> {
        let _ = timestamp;
        self.register_instance(key)
    }

    /// The handle of the instance of `key`, of which only the key members count; `None` if the
    /// writer has not registered it, by [`register_instance`](Self::register_instance) or by
    /// writing or disposing of it. (Of the instances that are only written, a writer remembers
    /// 262,144.)
    ///
    /// # Errors
    /// NOT_ENABLED, ALREADY_DELETED.
    pub fn lookup_instance(&self, key: &T) -> Result<Option<InstanceHandle>> {
        self.core.base.ready()?;
        Ok(self.registered(key).map(InstanceHandle::of_instance))
    }

    /// The key of an instance that the writer has registered, as a value whose other members
    /// have their defaults (`get_key_value`).
    ///
    /// # Errors
    /// BAD_PARAMETER for a handle that names no such instance; NOT_ENABLED, ALREADY_DELETED.
    pub fn key_value(&self, instance: InstanceHandle) -> Result<T> {
        self.core.base.ready()?;
        let side = &self.core.side;
        let name = instance
            .key_hash()
            .filter(|name| side.registered.has(*name));
        let key = name
            .map(|name| key_of(side.keys.as_ref(), name))
            .transpose()?;
        key.flatten().ok_or_else(|| unknown(instance))
    }

    /// Checks that a handle, unless it is nil, is that of the instance of `key`.
    ///
    /// # Errors
    /// BAD_PARAMETER for a handle that names no registered instance, PRECONDITION_NOT_MET for
    /// the handle of another instance; NOT_ENABLED, ALREADY_DELETED.
    pub(crate) fn check_handle(&self, key: &T, instance: InstanceHandle) -> Result<()> {
        if instance.is_nil() {
            return Ok(());
        }
        self.core.base.ready()?;
        let registered = &self.core.side.registered;
        let Some(name) = instance.key_hash() else {
            return Err(unknown(instance));
        };
        let own = name_of(self.core.side.keys.as_ref(), key);
        match registered.has(name) {
            true if own == Some(name) => Ok(()),
            true => Err(Error::PreconditionNotMet(format!(
                "{instance:?} names another instance than the sample"
            ))),
            false if registered.is_partial() && own == Some(name) => Ok(()),
            false => Err(unknown(instance)),
        }
    }

    /// The name of the instance of `key`, if it is registered.
    fn registered(&self, key: &T) -> Option<KeyHash> {
        let name = name_of(self.core.side.keys.as_ref(), key);
        name.filter(|name| self.core.side.registered.has(*name))
    }

    /// Checks that the instance of `key` can be unregistered. Returns its name, if it has one.
    ///
    /// # Errors
    /// PRECONDITION_NOT_MET when it is not registered; what ended the group or the writer.
    pub(super) fn check_registered(&self, key: &T) -> Result<Option<KeyHash>> {
        self.core.port()?.check()?;
        let side = &self.core.side;
        let registered = self.registered(key);
        // Of keys with one digest, only the first that is written may be noticed.
        let may_be = || {
            let shares_digest = |keys: &KnownKeys| keys.has_registered(key.key_hash());
            side.registered.is_partial() || side.keys.as_ref().is_some_and(shares_digest)
        };
        if registered.is_none() && !may_be() {
            return Err(Error::PreconditionNotMet(format!(
                "{} has not registered or written the instance, or has unregistered it",
                self.core.base.what()
            )));
        }
        Ok(registered)
    }
}

#[cold]
fn unknown(instance: InstanceHandle) -> Error {
    Error::BadParameter(format!(
        "{instance:?} names no instance that the writer has registered"
    ))
}

impl WriterCore {
    /// An instance is written or disposed of, perhaps for the first time: it is registered by
    /// that. Returns its name if it was not registered before.
    ///
    /// # Errors
    /// BAD_PARAMETER for an invalid message.
    #[cold]
    pub(super) fn register_written(
        &self,
        (kind, key_hash): (MessageKind, KeyHash),
        built: &[u8],
    ) -> Result<Option<KeyHash>> {
        let registered = &self.side.registered;
        let Some(keys) = &self.side.keys else {
            return Ok(registered.register_written(key_hash).then_some(key_hash));
        };
        let name = keys.register_message(kind, built, self.side.encapsulation())?;
        let is_new = registered.register_written(name);
        if !is_new && !registered.has(name) {
            keys.unregister(name);
        }
        Ok(is_new.then_some(name))
    }

    /// The instance with this name is not registered any more.
    #[cold]
    pub(super) fn unregister(&self, name: KeyHash) {
        self.side.registered.unregister(name);
        if let Some(keys) = &self.side.keys {
            keys.unregister(name);
            self.forget_keys(keys);
        }
    }
}
