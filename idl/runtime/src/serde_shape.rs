//! serde for members that serde does not support: arrays of more than 32 elements, at any
//! depth. Generated fields name `Serde::<Shape>` as their `with`.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq, SerializeTuple};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::fixed::Fixed;
use crate::limits::RESERVE_BYTES_MAX;
use crate::long_double::LongDouble;
use crate::primitive::Primitive;
use crate::shape::{
    Array, Boxed, ByteArray, ByteSequence, Delimited, Enumerated, Enumeration, Limited, Map,
    MapKey, Optional, OrDefault, PrimitiveArray, PrimitiveSequence, Ranged, Sequence, Shape, Text,
    Trim, Trimmable, WideText,
};

/// A shape whose values can be serialized by serde.
pub trait SerdeShape: Shape {
    /// As [`Serialize::serialize`].
    ///
    /// # Errors
    /// The serializer's.
    fn serialize<Z: Serializer>(value: &Self::Owned, serializer: Z) -> Result<Z::Ok, Z::Error>;

    /// As [`Deserialize::deserialize`].
    ///
    /// # Errors
    /// The deserializer's.
    fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self::Owned, D::Error>;
}

/// For `#[serde(with = "Serde::<Shape>")]`.
#[derive(Debug)]
pub struct Serde<S>(PhantomData<S>);

impl<S: SerdeShape> Serde<S> {
    /// As [`SerdeShape::serialize`].
    ///
    /// # Errors
    /// The serializer's.
    pub fn serialize<Z: Serializer>(value: &S::Owned, serializer: Z) -> Result<Z::Ok, Z::Error> {
        S::serialize(value, serializer)
    }

    /// As [`SerdeShape::deserialize`].
    ///
    /// # Errors
    /// The deserializer's.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<S::Owned, D::Error> {
        S::deserialize(deserializer)
    }
}

/// A reference to an element that is serialized.
struct Element<'v, S: Shape>(&'v S::Owned);

impl<S: SerdeShape> Serialize for Element<'_, S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        S::serialize(self.0, serializer)
    }
}

/// An element that is deserialized.
struct Seed<S>(PhantomData<S>);

impl<'de, S: SerdeShape> DeserializeSeed<'de> for Seed<S> {
    type Value = S::Owned;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Owned, D::Error> {
        S::deserialize(deserializer)
    }
}

/// Collects elements.
struct Elements<S>(PhantomData<S>);

impl<'de, S: SerdeShape> Visitor<'de> for Elements<S> {
    type Value = Vec<S::Owned>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let reserve_max = RESERVE_BYTES_MAX / size_of::<S::Owned>().max(1);
        let mut elements = Vec::with_capacity(access.size_hint().unwrap_or(0).min(reserve_max));
        while let Some(element) = access.next_element_seed(Seed::<S>(PhantomData))? {
            elements.push(element);
        }
        Ok(elements)
    }
}

impl<T: SerdeShape, const N: u32> SerdeShape for Sequence<T, N> {
    fn serialize<Z: Serializer>(value: &Self::Owned, serializer: Z) -> Result<Z::Ok, Z::Error> {
        let mut out = serializer.serialize_seq(Some(value.len()))?;
        for element in value {
            out.serialize_element(&Element::<T>(element))?;
        }
        out.end()
    }

    fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self::Owned, D::Error> {
        deserializer.deserialize_seq(Elements::<T>(PhantomData))
    }
}

impl<T: SerdeShape, const N: usize> SerdeShape for Array<T, N> {
    fn serialize<Z: Serializer>(value: &Self::Owned, serializer: Z) -> Result<Z::Ok, Z::Error> {
        let mut out = serializer.serialize_tuple(N)?;
        for element in value {
            out.serialize_element(&Element::<T>(element))?;
        }
        out.end()
    }

    fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self::Owned, D::Error> {
        let elements = deserializer.deserialize_tuple(N, Elements::<T>(PhantomData))?;
        let count = elements.len();
        elements
            .try_into()
            .map_err(|_| Error::invalid_length(count, &format!("{N} elements").as_str()))
    }
}

impl<P: Primitive + SerdeShape<Owned = P>, const N: usize> SerdeShape for PrimitiveArray<P, N> {
    fn serialize<Z: Serializer>(value: &[P; N], serializer: Z) -> Result<Z::Ok, Z::Error> {
        Array::<P, N>::serialize(value, serializer)
    }

    fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[P; N], D::Error> {
        Array::<P, N>::deserialize(deserializer)
    }
}

impl<const N: usize> SerdeShape for ByteArray<N> {
    fn serialize<Z: Serializer>(value: &[u8; N], serializer: Z) -> Result<Z::Ok, Z::Error> {
        Array::<u8, N>::serialize(value, serializer)
    }

    fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; N], D::Error> {
        Array::<u8, N>::deserialize(deserializer)
    }
}

impl<S: SerdeShape> SerdeShape for Optional<S> {
    fn serialize<Z: Serializer>(value: &Self::Owned, serializer: Z) -> Result<Z::Ok, Z::Error> {
        match value {
            Some(value) => serializer.serialize_some(&Element::<S>(value)),
            None => serializer.serialize_none(),
        }
    }

    fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self::Owned, D::Error> {
        deserializer.deserialize_option(Maybe::<S>(PhantomData))
    }
}

/// Deserializes a value that may be absent.
struct Maybe<S>(PhantomData<S>);

impl<'de, S: SerdeShape> Visitor<'de> for Maybe<S> {
    type Value = Option<S::Owned>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or none")
    }

    fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        S::deserialize(deserializer).map(Some)
    }
}

impl<S: SerdeShape> SerdeShape for Boxed<S>
where
    S::Owned: 'static,
{
    fn serialize<Z: Serializer>(value: &Self::Owned, serializer: Z) -> Result<Z::Ok, Z::Error> {
        S::serialize(value, serializer)
    }

    fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self::Owned, D::Error> {
        S::deserialize(deserializer).map(Box::new)
    }
}

impl<K: SerdeShape + MapKey, V: SerdeShape, const N: u32> SerdeShape for Map<K, V, N>
where
    K::Owned: 'static,
    V::Owned: 'static,
{
    fn serialize<Z: Serializer>(value: &Self::Owned, serializer: Z) -> Result<Z::Ok, Z::Error> {
        let mut out = serializer.serialize_map(Some(value.len()))?;
        for (key, value) in value {
            out.serialize_entry(&Element::<K>(key), &Element::<V>(value))?;
        }
        out.end()
    }

    fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self::Owned, D::Error> {
        deserializer.deserialize_map(Entries::<K, V>(PhantomData))
    }
}

/// Collects entries of a map.
struct Entries<K, V>(PhantomData<(K, V)>);

impl<'de, K: SerdeShape<Owned: Ord>, V: SerdeShape> Visitor<'de> for Entries<K, V> {
    type Value = BTreeMap<K::Owned, V::Owned>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut entries = BTreeMap::new();
        while let Some(key) = access.next_key_seed(Seed::<K>(PhantomData))? {
            entries.insert(key, access.next_value_seed(Seed::<V>(PhantomData))?);
        }
        Ok(entries)
    }
}

/// Implements the trait for shapes around a shape with the same values.
macro_rules! as_what_is_inside {
    ($([$($generics:tt)*] $ty:ty,)*) => {$(
        impl<$($generics)*> SerdeShape for $ty {
            fn serialize<Z: Serializer>(
                value: &Self::Owned,
                serializer: Z,
            ) -> Result<Z::Ok, Z::Error> {
                S::serialize(value, serializer)
            }

            fn deserialize<'de, D: Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Self::Owned, D::Error> {
                S::deserialize(deserializer)
            }
        }
    )*};
}

as_what_is_inside! {
    [S: SerdeShape] Delimited<S>,
    [S: SerdeShape] OrDefault<S>,
    [S: SerdeShape + Trimmable] Trim<S>,
    [
        S: SerdeShape + Limited + for<'a> Shape<Owned = S, Borrowed = S, Shown<'a> = S>,
        const MIN: i128,
        const MAX: i128
    ] Ranged<S, MIN, MAX>,
}

/// Implements the trait for types that serde supports by itself; also used by generated code.
#[doc(hidden)]
#[macro_export]
macro_rules! serde_as_it_is {
    ($([$($generics:tt)*] $ty:ty,)*) => {$(
        impl<$($generics)*> $crate::SerdeShape for $ty {
            fn serialize<Z: $crate::serde::Serializer>(
                value: &<Self as $crate::shape::Shape>::Owned,
                serializer: Z,
            ) -> ::core::result::Result<Z::Ok, Z::Error> {
                $crate::serde::Serialize::serialize(value, serializer)
            }

            fn deserialize<'de, D: $crate::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> ::core::result::Result<<Self as $crate::shape::Shape>::Owned, D::Error> {
                $crate::serde::Deserialize::deserialize(deserializer)
            }
        }
    )*};
}

serde_as_it_is! {
    [] bool, [] u8, [] i8, [] u16, [] i16, [] u32, [] i32, [] u64, [] i64, [] f32, [] f64,
    [] LongDouble,
    [const DIGITS: u8, const SCALE: u8] Fixed<DIGITS, SCALE>,
    [const N: u32] Text<N>,
    [const N: u32] WideText<N>,
    [const N: u32] ByteSequence<N>,
    [P: Primitive + Serialize + for<'d> Deserialize<'d>, const N: u32] PrimitiveSequence<P, N>,
    [T: Enumeration + Serialize + for<'d> Deserialize<'d>] Enumerated<T>,
}
