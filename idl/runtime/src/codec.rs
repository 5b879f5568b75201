//! Encoding and decoding of whole samples by shapes, for implementations of [`TopicType`].

use crate::encapsulation::{Encapsulation, Representation};
use crate::encode::{AllMembers, Counter, Encoder, KeyMembers, Members, Selection, Writer};
use crate::error::CdrError;
use crate::key::{KeyBytes, KeyHash, KeyHasher};
use crate::measure::Measure;
use crate::reader::{Reader, Untrusted};
use crate::topic::TopicType;

/// Largest size of a sample in bytes.
pub fn max_size<T: TopicType>(representation: Representation) -> Option<usize> {
    Measure::of::<T>(representation, Members::All)
}

/// For [`TopicType::size`].
pub fn size<T: TopicType>(sample: &T, representation: Representation) -> usize {
    count::<T, AllMembers>(sample, representation)
}

/// For [`TopicType::key_size`].
pub fn key_size<T: TopicType>(sample: &T, representation: Representation) -> usize {
    count::<T, KeyMembers>(sample, representation)
}

fn count<T: TopicType, M: Selection>(sample: &T, representation: Representation) -> usize {
    let mut counter = Counter::<M>::new(representation);
    // For an invalid value this is the size up to the invalid part, so that writing fails
    // there and not for lack of room.
    let _ = T::write(sample, &mut counter);
    counter.position()
}

/// For [`TopicType::encode`].
///
/// # Errors
/// [`CdrError::Full`], or the value is invalid.
pub fn encode<T: TopicType>(
    sample: &T,
    representation: Representation,
    out: &mut [u8],
) -> Result<usize, CdrError> {
    write::<T, AllMembers>(sample, representation, out)
}

/// For [`TopicType::encode_key`].
///
/// # Errors
/// [`CdrError::Full`], or the value is invalid.
pub fn encode_key<T: TopicType>(
    sample: &T,
    representation: Representation,
    out: &mut [u8],
) -> Result<usize, CdrError> {
    write::<T, KeyMembers>(sample, representation, out)
}

fn write<T: TopicType, M: Selection>(
    sample: &T,
    representation: Representation,
    out: &mut [u8],
) -> Result<usize, CdrError> {
    let mut writer = Writer::<'_, M>::new(representation, out);
    T::write(sample, &mut writer)?;
    Ok(writer.position())
}

/// For [`TopicType::decode`].
///
/// # Errors
/// The bytes are invalid.
#[inline]
pub fn decode<T: TopicType>(bytes: &[u8], encapsulation: Encapsulation) -> Result<T, CdrError> {
    T::read(&mut reader::<T>(bytes, encapsulation, Members::All)?)
}

/// For [`TopicType::validate`].
///
/// # Errors
/// The bytes are invalid.
#[inline]
pub fn validate<T: TopicType>(bytes: &[u8], encapsulation: Encapsulation) -> Result<(), CdrError> {
    T::check(&mut reader::<T>(bytes, encapsulation, Members::All)?)
}

/// For [`TopicType::decode_key`].
///
/// # Errors
/// The bytes are invalid.
pub fn decode_key<T: TopicType>(bytes: &[u8], encapsulation: Encapsulation) -> Result<T, CdrError> {
    T::read(&mut reader::<T>(bytes, encapsulation, Members::Key)?)
}

/// A reader over a whole sample, for [`TopicType::view`].
///
/// # Errors
/// The encapsulation does not match the type.
#[inline(always)]
pub fn reader<T: TopicType>(
    bytes: &[u8],
    encapsulation: Encapsulation,
    members: Members,
) -> Result<Reader<'_>, CdrError> {
    Untrusted::new(bytes, encapsulation).reader(T::EXTENSIBILITY, members)
}

/// For [`TopicType::key_hash`] and similar functions: `write` passes the key to the hasher.
pub fn hash<T: TopicType>(
    write: impl FnOnce(&mut KeyHasher) -> Result<(), CdrError>,
) -> Result<KeyHash, CdrError> {
    if !T::HAS_KEY {
        return Ok(KeyHash::NONE);
    }
    let mut hasher = KeyHasher::new(Measure::of::<T>(Representation::Xcdr2, Members::KeyHash));
    write(&mut hasher)?;
    Ok(hasher.finish())
}

/// For [`TopicType::key_hash`]: a value that cannot be encoded has no hash.
pub fn key_hash<T: TopicType>(sample: &T) -> KeyHash {
    hash::<T>(|hasher| T::write(sample, hasher)).unwrap_or(KeyHash::NONE)
}

/// Whether key hashes of the type are digests, as its keys may exceed 16 bytes: then two keys may
/// have one hash.
pub fn digests_keys<T: TopicType>() -> bool {
    let key_bytes_max = Measure::of::<T>(Representation::Xcdr2, Members::KeyHash);
    T::HAS_KEY && !matches!(key_bytes_max, Some(0..=16))
}

/// Writes the key of a value.
///
/// # Errors
/// The value is invalid.
pub fn key_bytes<T: TopicType>(sample: &T, key: &mut KeyBytes) -> Result<(), CdrError> {
    key.clear();
    T::write(sample, key)
}

/// Writes the key of an encoded sample, without building the sample.
///
/// # Errors
/// The bytes are invalid.
pub fn key_bytes_of_sample<T: TopicType>(
    bytes: &[u8],
    encapsulation: Encapsulation,
    key: &mut KeyBytes,
) -> Result<(), CdrError> {
    key.clear();
    T::transcribe_key(&mut reader::<T>(bytes, encapsulation, Members::All)?, key)
}

/// Makes a value of what [`key_bytes`] wrote, or of a key hash that is no digest; all other members
/// have their defaults.
///
/// # Errors
/// The bytes are invalid.
pub fn decode_key_bytes<T: TopicType>(key: &[u8]) -> Result<T, CdrError> {
    T::read(&mut Reader::of_key(key))
}
