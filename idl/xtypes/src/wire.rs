//! XCDR2 of the types of Annex B.
//!
//! [`record`] defines each of them once, with the extensibility that the annex gives it.
//! Hashes are computed from these bytes, so each byte matters.

use spindle_dds_idl_runtime::encode::{Counter, Encoder, Members, Writer};
use spindle_dds_idl_runtime::shape::{Shape as _, Text};
use spindle_dds_idl_runtime::{
    CdrError, Encapsulation, Extensibility, Reader, Representation, Untrusted,
};

/// A type with an encoding.
pub(crate) trait Wire: Sized {
    /// Whether sequences of it have no delimiter.
    const PRIMITIVE: bool = false;

    /// Appends the value with the padding before it.
    fn put<E: Encoder>(&self, encoder: &mut E) -> Result<(), CdrError>;

    /// Reads a value.
    fn get(reader: &mut Reader<'_>) -> Result<Self, CdrError>;
}

/// The bytes of a value, little endian.
///
/// # Errors
/// A text is longer than the annex allows or contains NUL.
pub(crate) fn to_bytes<T: Wire>(value: &T) -> Result<Vec<u8>, CdrError> {
    let mut counter: Counter = Counter::new(Representation::Xcdr2);
    value.put(&mut counter)?;
    let mut bytes = vec![0; counter.position()];
    let mut writer: Writer<'_> = Writer::new(Representation::Xcdr2, &mut bytes);
    value.put(&mut writer)?;
    Ok(bytes)
}

/// The value of untrusted bytes, little endian. Bytes after it are ignored.
///
/// # Errors
/// The bytes are invalid.
pub(crate) fn from_bytes<T: Wire>(bytes: &[u8]) -> Result<T, CdrError> {
    let untrusted = Untrusted::new(bytes, Encapsulation::D_CDR2_LE);
    let mut reader = untrusted.reader(Extensibility::Appendable, Members::All)?;
    T::get(&mut reader)
}

macro_rules! primitives {
    ($($ty:ty),*) => {$(
        impl Wire for $ty {
            const PRIMITIVE: bool = true;

            fn put<E: Encoder>(&self, encoder: &mut E) -> Result<(), CdrError> {
                encoder.primitive(*self)
            }

            fn get(reader: &mut Reader<'_>) -> Result<Self, CdrError> {
                reader.primitive()
            }
        }
    )*};
}

primitives!(bool, u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);

impl<const N: usize> Wire for [u8; N] {
    fn put<E: Encoder>(&self, encoder: &mut E) -> Result<(), CdrError> {
        encoder.bytes(self)
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, CdrError> {
        let bytes = reader.take(N)?;
        Ok(bytes.first_chunk().copied().unwrap_or([0; N]))
    }
}

/// Without a bound.
impl Wire for String {
    fn put<E: Encoder>(&self, encoder: &mut E) -> Result<(), CdrError> {
        Text::<{ u32::MAX }>::write(self, encoder)
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, CdrError> {
        Text::<{ u32::MAX }>::read(reader)
    }
}

/// A text of at most `N` bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bounded<const N: u32>(pub String);

impl<const N: u32> Wire for Bounded<N> {
    fn put<E: Encoder>(&self, encoder: &mut E) -> Result<(), CdrError> {
        Text::<N>::write(&self.0, encoder)
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, CdrError> {
        Text::<N>::read(reader).map(Self)
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put<E: Encoder>(&self, encoder: &mut E) -> Result<(), CdrError> {
        self.is_some().put(encoder)?;
        self.as_ref().map_or(Ok(()), |value| value.put(encoder))
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, CdrError> {
        bool::get(reader)?.then(|| T::get(reader)).transpose()
    }
}

impl<T: Wire> Wire for Box<T> {
    fn put<E: Encoder>(&self, encoder: &mut E) -> Result<(), CdrError> {
        T::put(self, encoder)
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, CdrError> {
        T::get(reader).map(Self::new)
    }
}

fn put_elements<T: Wire, E: Encoder>(elements: &[T], encoder: &mut E) -> Result<(), CdrError> {
    encoder.length(elements.len())?;
    elements.iter().try_for_each(|element| element.put(encoder))
}

fn get_elements<T: Wire>(reader: &mut Reader<'_>) -> Result<Vec<T>, CdrError> {
    // Nothing in the annex is empty and an element of a sequence.
    let count = reader.count(1, u32::MAX)?;
    let mut elements = Vec::new();
    for _ in 0..count {
        reader.spend(size_of::<T>())?;
        elements.push(T::get(reader)?);
    }
    Ok(elements)
}

impl<T: Wire> Wire for Vec<T> {
    fn put<E: Encoder>(&self, encoder: &mut E) -> Result<(), CdrError> {
        if T::PRIMITIVE {
            return put_elements(self, encoder);
        }
        let open = encoder.begin_collection(|counter| put_elements(self, counter))?;
        put_elements(self, encoder)?;
        encoder.end(open)
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, CdrError> {
        if T::PRIMITIVE {
            return get_elements(reader);
        }
        let scope = reader.begin_collection()?;
        let elements = get_elements(reader)?;
        reader.end(scope);
        Ok(elements)
    }
}

/// Empty: the parts that the minimal form omits.
impl Wire for () {
    fn put<E: Encoder>(&self, _encoder: &mut E) -> Result<(), CdrError> {
        Ok(())
    }

    fn get(_reader: &mut Reader<'_>) -> Result<Self, CdrError> {
        Ok(())
    }
}

/// Reads a structure that the annex may extend, skipping its contents.
pub(crate) fn skip_extended(reader: &mut Reader<'_>) -> Result<(), CdrError> {
    let scope = reader.begin(Extensibility::Mutable)?;
    reader.end(scope);
    Ok(())
}

/// An extensible structure of the annex without members.
pub(crate) fn put_extended<E: Encoder>(encoder: &mut E) -> Result<(), CdrError> {
    let open = encoder.begin(Extensibility::Mutable)?;
    encoder.end(open)
}

/// A structure of Annex B: fields in order, and the extensibility. `<F>` after the name makes
/// it generic over the form.
macro_rules! record {
    ($(
        $(#[$meta:meta])*
        struct $name:ident $(<$form:ident>)? ($extensibility:tt) {
            $($(#[$field_meta:meta])* $field:ident: $ty:ty,)*
        }
    )*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name $(<$form: $crate::object::Form>)? {
            $($(#[$field_meta])* pub $field: $ty,)*
        }

        impl $(<$form: $crate::object::Form>)? $crate::wire::Wire for $name $(<$form>)? {
            fn put<E: ::spindle_dds_idl_runtime::encode::Encoder>(
                &self,
                encoder: &mut E,
            ) -> Result<(), ::spindle_dds_idl_runtime::CdrError> {
                let open = encoder.begin($crate::wire::extensibility!($extensibility))?;
                $($crate::wire::Wire::put(&self.$field, encoder)?;)*
                encoder.end(open)
            }

            fn get(
                reader: &mut ::spindle_dds_idl_runtime::Reader<'_>,
            ) -> Result<Self, ::spindle_dds_idl_runtime::CdrError> {
                let scope = reader.begin($crate::wire::extensibility!($extensibility))?;
                $(let $field = $crate::wire::Wire::get(reader)?;)*
                reader.end(scope);
                Ok(Self { $($field,)* })
            }
        }
    )*};
}

macro_rules! extensibility {
    (final) => {
        ::spindle_dds_idl_runtime::Extensibility::Final
    };
    (appendable) => {
        ::spindle_dds_idl_runtime::Extensibility::Appendable
    };
    ($form:ident) => {
        $form::ARRAY_EXTENSIBILITY
    };
}

pub(crate) use {extensibility, record};
