//! Names of instances whose keys may share a key hash.
//!
//! The key hash of a type whose keys never exceed 16 bytes is the key itself. Of other types it is
//! a digest (DDSI-RTPS 2.5 §9.6.4.8), and two keys may have one. Such a key therefore has a *name*
//! in its participant: 16 bytes that no other key of the participant has. It stands for the key
//! hash in caches, limits and instance handles; message headers carry the digest.
//!
//! ```text
//!   message --its key, serialized--> KnownKeys of the endpoint --new--> KeyTable of the participant
//!                                    last, known                       digest, or digest and number
//! ```
//!
//! The first key with a digest is named by the digest. So handles of different participants are
//! equal for equal keys, except for keys that share a digest.
//!
//! Where key hashes are keys, a key hash is the name. So each instance's key can be made of its name.
//!
//! Invariants: two keys in the table have different names; a key keeps its name while any endpoint
//! of the participant knows it. Both locks are held for moments.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spindle_dds_core::MessageKind;
use spindle_dds_idl_runtime::{
    CdrError, Encapsulation, KeyBytes, KeyHash, SamplePosition, TopicType, codec,
};
use spindle_dds_transport::fork::OwnerProcess;
use spindle_dds_xtypes::{DataError, DynamicType};

/// The names of all long keys that the endpoints of a participant know.
#[derive(Debug, Default)]
pub(crate) struct KeyTable(Mutex<Names>);

#[derive(Debug, Default)]
struct Names {
    by_key: HashMap<Arc<[u8]>, Name>,
    by_name: HashMap<KeyHash, Arc<[u8]>>,
    /// The number that was used last.
    numbers: u128,
}

#[derive(Debug)]
struct Name {
    name: KeyHash,
    holders: usize,
}

/// A name, which its key keeps while this exists.
#[derive(Debug)]
struct HeldName {
    table: Arc<KeyTable>,
    key: Arc<[u8]>,
    name: KeyHash,
    /// In a child of `fork`, a thread that is not there may have the table locked.
    owner: OwnerProcess,
}

impl KeyTable {
    fn names(&self) -> MutexGuard<'_, Names> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of a key, which has it at least while the result exists.
    fn hold(self: &Arc<Self>, key: &[u8]) -> HeldName {
        let mut names = self.names();
        let known = names.by_key.get_key_value(key);
        let (key, name) = match known {
            Some((key, known)) => (key.clone(), known.name),
            None => {
                let name = names.unused(KeyHash::of_long_key(key));
                let key = Arc::<[u8]>::from(key);
                names.by_name.insert(name, key.clone());
                (key, name)
            }
        };
        let known = names.by_key.entry(key.clone());
        known.or_insert(Name { name, holders: 0 }).holders += 1;
        HeldName {
            table: self.clone(),
            key,
            name,
            owner: OwnerProcess::this(),
        }
    }

    /// The name of a key, if any endpoint knows it.
    fn find(&self, key: &[u8]) -> Option<KeyHash> {
        self.names().by_key.get(key).map(|known| known.name)
    }

    /// The key that has this name.
    fn key(&self, name: KeyHash) -> Option<Arc<[u8]>> {
        self.names().by_name.get(&name).cloned()
    }
}

impl Names {
    /// A name that no key has: the digest, or the digest and a number.
    fn unused(&mut self, digest: KeyHash) -> KeyHash {
        let mut name = digest;
        while self.by_name.contains_key(&name) {
            self.numbers += 1;
            let numbered = u128::from_be_bytes(digest.0) ^ self.numbers;
            name = KeyHash(numbered.to_be_bytes());
        }
        name
    }
}

impl Drop for HeldName {
    fn drop(&mut self) {
        if self.owner.is_inherited() {
            return;
        }
        let mut names = self.table.names();
        let Some(known) = names.by_key.get_mut(&self.key) else {
            return;
        };
        known.holders -= 1;
        if known.holders == 0 {
            names.by_key.remove(&self.key);
            names.by_name.remove(&self.name);
        }
    }
}

/// Reads the key of a message; see [`key_of_message`].
type KeyOfMessage = Arc<
    dyn Fn(MessageKind, &[u8], Encapsulation, &mut KeyBytes) -> Result<(), CdrError> + Send + Sync,
>;

/// The keys that an endpoint knows, with their names.
pub(crate) struct KnownKeys {
    key_of_message: KeyOfMessage,
    table: Arc<KeyTable>,
    state: Mutex<State>,
}

struct State {
    known: HashMap<Arc<[u8]>, KnownKey>,
    /// The key of the last message: the next message often has the same.
    last: Option<(Arc<[u8]>, KeyHash)>,
    key: KeyBytes,
    /// So many keys are to be known before those are forgotten that are not in use.
    sweep_at: usize,
    /// Messages that have a name, and are not counted where names are in use.
    on_their_way: usize,
}

struct KnownKey {
    name: HeldName,
    /// The application has registered its instance.
    is_registered: bool,
}

/// Keys known at least before any are forgotten.
const SWEEP_AT_MIN: usize = 64;

impl fmt::Debug for KnownKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownKeys").finish_non_exhaustive()
    }
}

impl KnownKeys {
    /// `None` for a type whose key hashes are the keys.
    pub(crate) fn of<T: TopicType>(table: &Arc<KeyTable>) -> Option<Self> {
        codec::digests_keys::<T>().then(|| Self::new(Arc::new(key_of_message::<T>), table))
    }

    /// As [`of`](Self::of), for a type that is known only at run time.
    pub(crate) fn of_dynamic(ty: &DynamicType, table: &Arc<KeyTable>) -> Option<Self> {
        let ty = ty.clone();
        ty.digests_key().then(|| {
            let key_of_message = move |kind, bytes: &[u8], encapsulation, key: &mut KeyBytes| {
                let data = match kind {
                    MessageKind::Data => ty.decode(bytes, encapsulation),
                    _ => ty.decode_key(bytes, encapsulation),
                };
                data.and_then(|data| data.key_bytes(key)).map_err(cdr_error)
            };
            Self::new(Arc::new(key_of_message), table)
        })
    }

    fn new(key_of_message: KeyOfMessage, table: &Arc<KeyTable>) -> Self {
        Self {
            key_of_message,
            table: table.clone(),
            state: Mutex::new(State {
                known: HashMap::new(),
                last: None,
                key: KeyBytes::default(),
                sweep_at: SWEEP_AT_MIN,
                on_their_way: 0,
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of the key of a message. It is known from now on. Allocates only for a new key.
    ///
    /// # Errors
    /// The bytes are invalid.
    pub(crate) fn name(
        &self,
        kind: MessageKind,
        bytes: &[u8],
        encapsulation: Encapsulation,
    ) -> Result<KeyHash, CdrError> {
        let mut state = self.state();
        (self.key_of_message)(kind, bytes, encapsulation, &mut state.key)?;
        Ok(state.name(&self.table))
    }

    /// As [`name`](Self::name), for a message that is not counted anywhere until the result is
    /// dropped: its name is not forgotten before.
    pub(crate) fn name_on_its_way(
        &self,
        kind: MessageKind,
        bytes: &[u8],
        encapsulation: Encapsulation,
    ) -> Result<OnItsWay<'_>, CdrError> {
        let mut state = self.state();
        (self.key_of_message)(kind, bytes, encapsulation, &mut state.key)?;
        let name = state.name(&self.table);
        state.on_their_way += 1;
        Ok(OnItsWay { keys: self, name })
    }

    /// The name of a key that is registered by that.
    pub(crate) fn register<T: TopicType>(&self, sample: &T) -> KeyHash {
        let mut state = self.state();
        if codec::key_bytes(sample, &mut state.key).is_err() {
            return KeyHash::NONE;
        }
        state.register(&self.table)
    }

    /// The name of the key of a message, which registers it.
    ///
    /// # Errors
    /// The bytes are invalid.
    pub(crate) fn register_message(
        &self,
        kind: MessageKind,
        bytes: &[u8],
        encapsulation: Encapsulation,
    ) -> Result<KeyHash, CdrError> {
        let mut state = self.state();
        (self.key_of_message)(kind, bytes, encapsulation, &mut state.key)?;
        Ok(state.register(&self.table))
    }

    /// The key with this name is not registered any more.
    pub(crate) fn unregister(&self, name: KeyHash) {
        let Some(key) = self.key(name) else { return };
        if let Some(known) = self.state().known.get_mut(&key) {
            known.is_registered = false;
        }
    }

    /// Whether a key with this digest is registered.
    pub(crate) fn has_registered(&self, digest: KeyHash) -> bool {
        let state = self.state();
        let mut registered = state.known.iter().filter(|(_, it)| it.is_registered);
        registered.any(|(key, _)| KeyHash::of_long_key(key) == digest)
    }

    /// The key that has this name, if any endpoint of the participant knows it.
    pub(crate) fn key(&self, name: KeyHash) -> Option<Arc<[u8]>> {
        self.table.key(name)
    }

    /// The name of a key, if any endpoint of the participant knows it.
    pub(crate) fn find<T: TopicType>(&self, sample: &T) -> Option<KeyHash> {
        let mut key = KeyBytes::default();
        codec::key_bytes(sample, &mut key).ok()?;
        self.table.find(key.as_slice())
    }

    /// Whether it is time to [`forget`](Self::forget).
    pub(crate) fn has_many(&self) -> bool {
        let state = self.state();
        state.known.len() >= state.sweep_at
    }

    /// Forgets the keys whose names are not in use, unless a message is on its way.
    pub(crate) fn forget(&self, is_in_use: impl Fn(KeyHash) -> bool) {
        let mut state = self.state();
        if state.on_their_way > 0 {
            return;
        }
        state
            .known
            .retain(|_, known| known.is_registered || is_in_use(known.name.name));
        state.last = None;
        state.sweep_at = SWEEP_AT_MIN.max(2 * state.known.len());
    }
}

impl State {
    /// The name of `key`, which is known from now on.
    fn name(&mut self, table: &Arc<KeyTable>) -> KeyHash {
        let key = self.key.as_slice();
        if let Some((last, name)) = &self.last
            && **last == *key
        {
            return *name;
        }
        let (key, name) = match self.known.get_key_value(key) {
            Some((key, known)) => (key.clone(), known.name.name),
            None => {
                let held = table.hold(key);
                let (key, name) = (held.key.clone(), held.name);
                let known = KnownKey {
                    name: held,
                    is_registered: false,
                };
                self.known.insert(key.clone(), known);
                (key, name)
            }
        };
        self.last = Some((key, name));
        name
    }

    /// The name of `key`, which is registered from now on.
    fn register(&mut self, table: &Arc<KeyTable>) -> KeyHash {
        let name = self.name(table);
        if let Some(known) = self.known.get_mut(self.key.as_slice()) {
            known.is_registered = true;
        }
        name
    }
}

/// The name of a message that is counted nowhere yet; see [`KnownKeys::name_on_its_way`].
pub(crate) struct OnItsWay<'a> {
    keys: &'a KnownKeys,
    pub(crate) name: KeyHash,
}

impl Drop for OnItsWay<'_> {
    fn drop(&mut self) {
        self.keys.state().on_their_way -= 1;
    }
}

/// The name of the instance of `sample`; `None` if no endpoint of the participant knows its key.
/// `keys` are those of an endpoint, if their hashes are digests.
pub(crate) fn name_of<T: TopicType>(keys: Option<&KnownKeys>, sample: &T) -> Option<KeyHash> {
    match keys {
        Some(keys) => keys.find(sample),
        None => Some(sample.key_hash()),
    }
}

/// The key that has this name, as a value whose other members have their defaults; `None` if no
/// endpoint of the participant knows it. `keys` as for [`name_of`].
///
/// # Errors
/// The name is no key of this type: it comes from the header of a message of another process.
pub(crate) fn key_of<T: TopicType>(
    keys: Option<&KnownKeys>,
    name: KeyHash,
) -> Result<Option<T>, CdrError> {
    match keys {
        None => codec::decode_key_bytes(&name.0).map(Some),
        Some(keys) => {
            let key = keys.key(name);
            key.map(|key| codec::decode_key_bytes(&key)).transpose()
        }
    }
}

/// The error of reading, of which no path is a part.
pub(crate) fn cdr_error(error: DataError) -> CdrError {
    match error {
        DataError::Cdr(error) => error,
        DataError::NoSuchPath { .. } | DataError::WrongType { .. } => {
            CdrError::WrongDiscriminator {
                place: SamplePosition::offset(0),
            }
        }
    }
}

/// Reads the key of a message: of a sample, without building it.
fn key_of_message<T: TopicType>(
    kind: MessageKind,
    bytes: &[u8],
    encapsulation: Encapsulation,
    key: &mut KeyBytes,
) -> Result<(), CdrError> {
    match kind {
        MessageKind::Data => codec::key_bytes_of_sample::<T>(bytes, encapsulation, key),
        MessageKind::Dispose
        | MessageKind::Unregister
        | MessageKind::DisposeUnregister
        | MessageKind::Control => codec::key_bytes(&T::decode_key(bytes, encapsulation)?, key),
    }
}

#[cfg(test)]
mod tests {
    use spindle_dds_idl_runtime::encode::Encoder as _;

    use super::*;

    const KEY: &[u8] = b"a key of more than 16 bytes";

    #[test]
    fn keys_with_one_digest_have_different_names_while_they_are_known() {
        let table = Arc::<KeyTable>::default();
        let digest = KeyHash::of_long_key(KEY);
        let first = table.hold(KEY);
        assert_eq!(first.name, digest);
        // What other keys with that digest would get.
        let second = table.names().unused(digest);
        table.names().by_name.insert(second, Arc::from(KEY));
        let third = table.names().unused(digest);
        assert!(second != digest && third != digest && third != second);
        // A key has one name, however many know it, until the last has forgotten it.
        let again = table.hold(KEY);
        drop(first);
        assert_eq!(again.name, digest);
        assert_eq!(table.find(KEY), Some(digest));
        drop(again);
        assert_eq!(table.find(KEY), None);
        assert_eq!(table.names().unused(digest), digest);
        assert!(table.names().by_key.is_empty());
    }

    #[test]
    fn a_key_whose_digest_is_the_name_of_another_gets_a_name_of_its_own() {
        let table = Arc::<KeyTable>::default();
        let digest = KeyHash::of_long_key(KEY);
        table
            .names()
            .by_name
            .insert(digest, Arc::from(&b"another"[..]));
        let held = table.hold(KEY);
        assert_ne!(held.name, digest);
        assert_eq!(table.find(KEY), Some(held.name));
        assert_eq!(table.key(held.name).as_deref(), Some(KEY));
        let name = held.name;
        drop(held);
        assert_eq!(table.key(name), None);
    }

    #[test]
    fn keys_that_are_not_in_use_are_forgotten() {
        let table = Arc::<KeyTable>::default();
        let read: KeyOfMessage = Arc::new(|_, bytes, _, key: &mut KeyBytes| {
            key.clear();
            key.bytes(bytes)
        });
        let keys = KnownKeys::new(read, &table);
        let name = |number: u32| {
            let bytes = number.to_be_bytes();
            keys.name(MessageKind::Data, &bytes, Encapsulation::CDR_LE)
                .expect("any bytes are a key")
        };
        let kept = name(0);
        for number in 0..10_000 {
            let last = name(number);
            if keys.has_many() {
                keys.forget(|name| name == kept || name == last);
            }
            assert!(keys.state().known.len() <= SWEEP_AT_MIN, "{number}");
        }
        assert_eq!(name(0), kept);
        let bytes = 7_u32.to_be_bytes();
        let message = keys.name_on_its_way(MessageKind::Data, &bytes, Encapsulation::CDR_LE);
        let message = message.expect("any bytes are a key");
        keys.forget(|_| false);
        assert_eq!(table.find(&bytes), Some(message.name), "it is on its way");
        drop(message);
        keys.forget(|_| false);
        assert_eq!(table.find(&bytes), None);
        assert!(table.names().by_name.is_empty());
    }
}
