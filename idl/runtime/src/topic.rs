//! The two faces between generated code and the middleware: a topic type, and
//! the memory that its samples are built in.

use crate::codec;
use crate::encapsulation::{Encapsulation, Extensibility, Representation};
use crate::error::CdrError;
use crate::key::KeyHash;
use crate::shape::Shape;

/// Memory that a sample is built in. The middleware implements it over ring
/// memory; dropping a slot without `finish` withdraws it.
pub trait Slot {
    /// What publishing hands back.
    type Receipt;
    /// Why publishing, or building, failed.
    type Error: From<CdrError>;

    /// The memory, the same bytes on each call. It may hold an older sample:
    /// whoever builds writes every byte of what it then declares used. The
    /// start is the origin of all alignment.
    fn bytes(&mut self) -> &mut [u8];

    /// Publishes the first `used` bytes.
    ///
    /// # Errors
    /// Whatever the middleware finds.
    fn finish(self, used: usize, key: KeyHash) -> Result<Self::Receipt, Self::Error>;
}

/// Plain memory: what has been built is handed back as the bytes used and the
/// key hash. For tests, and for building outside of a ring.
impl Slot for Vec<u8> {
    type Receipt = (Self, KeyHash);
    type Error = CdrError;

    fn bytes(&mut self) -> &mut [u8] {
        self
    }

    fn finish(mut self, used: usize, key: KeyHash) -> Result<Self::Receipt, CdrError> {
        self.truncate(used);
        Ok((self, key))
    }
}

/// Borrowed memory: what is handed back is the number of bytes used and the key hash.
impl Slot for &mut [u8] {
    type Receipt = (usize, KeyHash);
    type Error = CdrError;

    fn bytes(&mut self) -> &mut [u8] {
        self
    }

    fn finish(self, used: usize, key: KeyHash) -> Result<Self::Receipt, CdrError> {
        Ok((used, key))
    }
}

/// What other participants are told of a type, so that they can tell whether they
/// understand its samples, and read them without having been compiled with it: XTypes
/// 1.3 §7.6.3.2. Both are little endian XCDR2; the crate `spindle-dds-xtypes` knows
/// what they say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeDescription {
    /// `TypeInformation`: the identifiers of the type and of all that it is made of.
    pub information: &'static [u8],
    /// `sequence<TypeIdentifierTypeObjectPair>`: all those types in full.
    pub objects: &'static [u8],
}

/// A type that a topic can have: implemented by generated code for every
/// structure that is not `@nested`.
///
/// Samples are written little endian and read in either byte order. All byte
/// slices are bodies without the encapsulation header; their start is the origin
/// of alignment, whatever its address. Nothing here blocks; only `decode`,
/// `decode_key` and `view_to_owned` allocate.
pub trait TopicType: Shape<Owned = Self, Borrowed = Self> + Sized + Send + Sync {
    /// Scoped IDL name, `module::Type`.
    const TYPE_NAME: &'static str;
    /// Whether any member is a `@key`.
    const HAS_KEY: bool;
    /// Extensibility of the structure.
    const EXTENSIBILITY: Extensibility;
    /// The representations that it may be written in, `@data_representation` of XTypes
    /// 1.3 §7.3.1.2: what is allowed first is what is written if nothing is asked for.
    /// It binds the middleware; the functions here take any.
    const REPRESENTATIONS: &'static [Representation] =
        &[Representation::Xcdr1, Representation::Xcdr2];
    /// What others are told of the type; `None` of one that XTypes has no words for,
    /// because there is a `fixed` in it, say.
    const DESCRIPTION: Option<TypeDescription> = None;

    /// Builds a sample in place; in its first stage here.
    type Builder<S: Slot>;
    /// Reads a sample in place.
    type View<'a>: Copy;

    /// The id that goes with samples written in this representation.
    fn encapsulation(representation: Representation) -> Encapsulation {
        Encapsulation::of(Self::EXTENSIBILITY, representation)
    }

    /// Most bytes that a sample can take; `None` when there is no bound.
    fn max_size(representation: Representation) -> Option<usize> {
        codec::max_size::<Self>(representation)
    }

    /// Starts a sample in `slot`: defaults are written, padding is zeroed.
    ///
    /// # Errors
    /// [`CdrError::Full`] when not even the fixed members fit.
    fn build<S: Slot>(
        slot: S,
        representation: Representation,
    ) -> Result<Self::Builder<S>, CdrError>;

    /// Finds whether the bytes are a sample, so that [`view`](Self::view) would show it.
    ///
    /// # Errors
    /// Whatever is wrong with the bytes.
    #[inline]
    fn validate(bytes: &[u8], encapsulation: Encapsulation) -> Result<(), CdrError> {
        codec::validate::<Self>(bytes, encapsulation)
    }

    /// Validates a sample and gives access to it where it lies.
    ///
    /// # Errors
    /// Whatever is wrong with the bytes.
    fn view(bytes: &[u8], encapsulation: Encapsulation) -> Result<Self::View<'_>, CdrError>;

    /// The owned form of what a view shows.
    ///
    /// # Errors
    /// Only when the bytes have been altered since the view was made.
    fn view_to_owned(view: &Self::View<'_>) -> Result<Self, CdrError>;

    /// Key hash of the sample under a view; see [`key_hash`](Self::key_hash).
    fn view_key_hash(view: &Self::View<'_>) -> KeyHash;

    /// Bytes that [`encode`](Self::encode) writes. If it cannot, because the value is
    /// out of bounds, then with this much room it says so.
    fn size(&self, representation: Representation) -> usize {
        codec::size(self, representation)
    }

    /// Writes the sample and returns the number of bytes.
    ///
    /// # Errors
    /// [`CdrError::Full`]; a bound that is exceeded; a NUL inside a string.
    fn encode(&self, representation: Representation, out: &mut [u8]) -> Result<usize, CdrError> {
        codec::encode(self, representation, out)
    }

    /// Reads a sample.
    ///
    /// # Errors
    /// Whatever is wrong with the bytes.
    #[inline]
    fn decode(bytes: &[u8], encapsulation: Encapsulation) -> Result<Self, CdrError> {
        codec::decode(bytes, encapsulation)
    }

    /// Key hash of DDSI-RTPS 2.5 §9.6.4.8 as XTypes 1.3 §7.6.8 defines it: the key
    /// members by ascending id in big endian XCDR2, as if all were final; padded
    /// with zeros if that can never exceed 16 bytes, else its MD5. All zero for
    /// a type without a key.
    fn key_hash(&self) -> KeyHash {
        codec::key_hash(self)
    }

    /// Bytes that [`encode_key`](Self::encode_key) writes.
    fn key_size(&self, representation: Representation) -> usize {
        codec::key_size(self, representation)
    }

    /// Writes the key members only, for samples that dispose or unregister: the
    /// same encapsulation as a whole sample, as if the type had no other members.
    ///
    /// # Errors
    /// As for [`encode`](Self::encode).
    fn encode_key(
        &self,
        representation: Representation,
        out: &mut [u8],
    ) -> Result<usize, CdrError> {
        codec::encode_key(self, representation, out)
    }

    /// Reads what [`encode_key`](Self::encode_key) wrote; all other members have
    /// their defaults.
    ///
    /// # Errors
    /// Whatever is wrong with the bytes.
    fn decode_key(bytes: &[u8], encapsulation: Encapsulation) -> Result<Self, CdrError> {
        codec::decode_key(bytes, encapsulation)
    }
}
