//! The two interfaces between generated code and the middleware: a topic type, and the
//! memory in which its samples are built.

use crate::codec;
use crate::encapsulation::{Encapsulation, Extensibility, Representation};
use crate::error::CdrError;
use crate::key::KeyHash;
use crate::shape::Shape;

/// Memory in which a sample is built. The middleware implements it over ring memory;
/// dropping a slot without `finish` withdraws the sample.
pub trait Slot {
    /// The result of publishing.
    type Receipt;
    /// The error of publishing and building.
    type Error: From<CdrError>;

    /// The memory, the same bytes on each call. It may contain an older sample: a builder
    /// writes every byte that it later declares used. Its start is the origin of all
    /// alignment.
    fn bytes(&mut self) -> &mut [u8];

    /// Publishes the first `used` bytes.
    ///
    /// # Errors
    /// Those of the middleware.
    fn finish(self, used: usize, key: KeyHash) -> Result<Self::Receipt, Self::Error>;
}

/// Plain memory: publishing returns the used bytes and the key hash. For tests, and for
/// building outside a ring.
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

/// Borrowed memory: publishing returns the number of used bytes and the key hash.
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

/// The description of a type for other participants, by which they check assignability and
/// read samples of unknown types: XTypes 1.3 §7.6.3.2. Both parts are little endian XCDR2;
/// the crate `spindle-dds-xtypes` decodes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeDescription {
    /// `TypeInformation`: the identifiers of the type and of its dependencies.
    pub information: &'static [u8],
    /// `sequence<TypeIdentifierTypeObjectPair>`: all those types in full.
    pub objects: &'static [u8],
}

/// A topic type. Generated code implements it for every structure and union that is not
/// `@nested`.
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
    /// The allowed representations, `@data_representation` of XTypes 1.3 §7.3.1.2. The first
    /// one is the default. The middleware enforces it; the functions here accept any.
    const REPRESENTATIONS: &'static [Representation] =
        &[Representation::Xcdr1, Representation::Xcdr2];
    /// The description of the type; `None` if the type is not representable in XTypes, such
    /// as one with a `fixed`.
    const DESCRIPTION: Option<TypeDescription> = None;

    /// The builder of a sample in place, in its first stage.
    type Builder<S: Slot>;
    /// The view of a sample in place.
    type View<'a>: Copy;

    /// The encapsulation id of samples in this representation.
    fn encapsulation(representation: Representation) -> Encapsulation {
        Encapsulation::of(Self::EXTENSIBILITY, representation)
    }

    /// Largest size of a sample in bytes; `None` without a bound.
    fn max_size(representation: Representation) -> Option<usize> {
        codec::max_size::<Self>(representation)
    }

    /// Starts a sample in `slot`: defaults are written, padding is zeroed.
    ///
    /// # Errors
    /// [`CdrError::Full`] if not even the fixed members fit.
    fn build<S: Slot>(
        slot: S,
        representation: Representation,
    ) -> Result<Self::Builder<S>, CdrError>;

    /// Checks that the bytes are a sample, so that [`view`](Self::view) succeeds.
    ///
    /// # Errors
    /// The bytes are invalid.
    #[inline]
    fn validate(bytes: &[u8], encapsulation: Encapsulation) -> Result<(), CdrError> {
        codec::validate::<Self>(bytes, encapsulation)
    }

    /// Validates a sample and gives access to it in place.
    ///
    /// # Errors
    /// The bytes are invalid.
    fn view(bytes: &[u8], encapsulation: Encapsulation) -> Result<Self::View<'_>, CdrError>;

    /// The owned form of a view.
    ///
    /// # Errors
    /// Only if the bytes have been altered since the view was made.
    fn view_to_owned(view: &Self::View<'_>) -> Result<Self, CdrError>;

    /// Key hash of the sample under a view; see [`key_hash`](Self::key_hash).
    fn view_key_hash(view: &Self::View<'_>) -> KeyHash;

    /// Bytes that [`encode`](Self::encode) writes. For a value that exceeds its bounds,
    /// `encode` with this much room reports that error.
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
    /// The bytes are invalid.
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

    /// Writes only the key members, for samples that dispose or unregister: with the
    /// encapsulation of a whole sample, as if the type had no other members.
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
    /// The bytes are invalid.
    fn decode_key(bytes: &[u8], encapsulation: Encapsulation) -> Result<Self, CdrError> {
        codec::decode_key(bytes, encapsulation)
    }
}
