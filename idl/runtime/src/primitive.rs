//! Primitive values of one to eight bytes.

use zerocopy::IntoBytes as _;

use crate::encapsulation::ByteOrder;
use crate::error::{CdrError, SamplePosition};

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// A primitive type of IDL. Encoded sequences and arrays of primitives are contiguous and
/// have no delimiter.
pub trait Primitive:
    sealed::Sealed + Copy + Default + PartialEq + std::fmt::Debug + Send + Sync + 'static
{
    /// Encoded bytes; also the alignment, up to the maximum of the representation.
    const SIZE: usize;

    /// Writes to exactly [`SIZE`](Self::SIZE) bytes.
    fn store(self, order: ByteOrder, out: &mut [u8]);

    /// Reads from exactly [`SIZE`](Self::SIZE) bytes; any bytes make a value.
    fn load(order: ByteOrder, bytes: &[u8]) -> Self;

    /// Writes values without gaps, little endian; `out` has their size.
    #[inline]
    fn store_all(values: &[Self], out: &mut [u8]) {
        for (bytes, value) in out.chunks_exact_mut(Self::SIZE).zip(values) {
            value.store(ByteOrder::Little, bytes);
        }
    }

    /// Reads values without gaps to the front of `out`, which has room for them.
    #[inline]
    fn load_all(order: ByteOrder, bytes: &[u8], out: &mut [Self]) {
        for (value, bytes) in out.iter_mut().zip(bytes.chunks_exact(Self::SIZE)) {
            *value = Self::load(order, bytes);
        }
    }

    /// Whether the bytes are values of this type; only booleans can be invalid.
    ///
    /// # Errors
    /// [`CdrError::InvalidBool`].
    #[inline]
    fn check(bytes: &[u8], offset: usize) -> Result<(), CdrError> {
        let _ = (bytes, offset);
        Ok(())
    }
}

macro_rules! number {
    ($($ty:ty),*) => {$(
        impl sealed::Sealed for $ty {}

        impl Primitive for $ty {
            const SIZE: usize = size_of::<$ty>();

            #[inline]
            fn store(self, order: ByteOrder, out: &mut [u8]) {
                out.copy_from_slice(&match order {
                    ByteOrder::Little => self.to_le_bytes(),
                    ByteOrder::Big => self.to_be_bytes(),
                });
            }

            #[inline]
            fn store_all(values: &[Self], out: &mut [u8]) {
                if cfg!(target_endian = "little") {
                    let bytes = values.as_bytes();
                    if let Some(out) = out.get_mut(..bytes.len()) {
                        out.copy_from_slice(bytes);
                    }
                } else {
                    for (bytes, value) in out.chunks_exact_mut(Self::SIZE).zip(values) {
                        value.store(ByteOrder::Little, bytes);
                    }
                }
            }

            #[inline]
            fn load_all(order: ByteOrder, bytes: &[u8], out: &mut [Self]) {
                let native = cfg!(target_endian = "little") && order == ByteOrder::Little;
                match out.as_mut_bytes().get_mut(..bytes.len()) {
                    Some(out) if native => out.copy_from_slice(bytes),
                    _ => {
                        for (value, bytes) in out.iter_mut().zip(bytes.chunks_exact(Self::SIZE)) {
                            *value = Self::load(order, bytes);
                        }
                    }
                }
            }

            #[inline]
            fn load(order: ByteOrder, bytes: &[u8]) -> Self {
                let bytes = bytes.try_into().unwrap_or_default();
                match order {
                    ByteOrder::Little => Self::from_le_bytes(bytes),
                    ByteOrder::Big => Self::from_be_bytes(bytes),
                }
            }
        }
    )*};
}

number!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);

impl sealed::Sealed for bool {}

impl Primitive for bool {
    const SIZE: usize = 1;

    #[inline]
    fn store(self, _order: ByteOrder, out: &mut [u8]) {
        out.copy_from_slice(&[u8::from(self)]);
    }

    #[inline]
    fn load(_order: ByteOrder, bytes: &[u8]) -> Self {
        bytes.first().is_some_and(|byte| *byte != 0)
    }

    #[inline]
    fn check(bytes: &[u8], offset: usize) -> Result<(), CdrError> {
        match bytes.iter().position(|byte| *byte > 1) {
            None => Ok(()),
            Some(index) => Err(CdrError::InvalidBool {
                value: bytes[index],
                place: SamplePosition::offset(offset + index),
            }),
        }
    }
}
