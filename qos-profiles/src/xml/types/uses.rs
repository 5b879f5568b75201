//! Uses of types: the attributes of members, typedefs and discriminators.

use spindle_dds_xtypes::graph::{Alias, Primitive, Range, Type};
use spindle_dds_xtypes::limits::DIMENSIONS_MAX;

use super::{Declarer, Place};
use crate::diagnostic::{did_you_mean, quote};
use crate::xml::tree::Element;

/// The attributes that say the type.
pub(super) const TYPE_ATTRIBUTES: &[&str] = &[
    "type",
    "nonBasicTypeName",
    "aliasTypeName",
    "stringMaxLength",
    "sequenceMaxLength",
    "arrayDimensions",
    "mapKeyType",
    "mapKeyNonBasicTypeName",
    "mapKeyAliasTypeName",
    "mapKeyStringMaxLength",
    "mapMaxLength",
];

/// The names of XTypes, then those of earlier files.
const PRIMITIVES: &[(&str, Primitive)] = &[
    ("boolean", Primitive::Boolean),
    ("byte", Primitive::Byte),
    ("int8", Primitive::Int8),
    ("uint8", Primitive::UInt8),
    ("int16", Primitive::Int16),
    ("uint16", Primitive::UInt16),
    ("int32", Primitive::Int32),
    ("uint32", Primitive::UInt32),
    ("int64", Primitive::Int64),
    ("uint64", Primitive::UInt64),
    ("float32", Primitive::Float32),
    ("float64", Primitive::Float64),
    ("float128", Primitive::Float128),
    ("char8", Primitive::Char8),
    ("char16", Primitive::Char16),
    ("octet", Primitive::Byte),
    ("short", Primitive::Int16),
    ("unsignedShort", Primitive::UInt16),
    ("long", Primitive::Int32),
    ("unsignedLong", Primitive::UInt32),
    ("longLong", Primitive::Int64),
    ("unsignedLongLong", Primitive::UInt64),
    ("float", Primitive::Float32),
    ("double", Primitive::Float64),
    ("longDouble", Primitive::Float128),
    ("char", Primitive::Char8),
    ("wchar", Primitive::Char16),
];

pub(super) fn primitive(name: &str) -> Option<Primitive> {
    let found = PRIMITIVES.iter().find(|(known, _)| *known == name);
    found.map(|(_, primitive)| *primitive)
}

/// Whether it is a string or a wide string.
pub(super) fn is_text(name: &str) -> bool {
    STRINGS.contains(&name)
}

/// Whether another attribute has the name of a declared type.
pub(super) fn is_declared(name: &str) -> bool {
    DECLARED.contains(&name)
}

const STRINGS: &[&str] = &["string", "wstring", "string8", "string16"];
const DECLARED: &[&str] = &["nonBasic", "aliasType"];

/// What stands for a type that is in error.
pub(super) fn octet() -> Alias {
    Alias {
        ty: Type::Primitive(Primitive::Byte),
        unit: None,
        range: Range::default(),
        custom: Vec::new(),
    }
}

/// The attributes of the type of a member, or of the keys of a map.
struct Names {
    ty: &'static str,
    declared: [&'static str; 2],
    string_length: &'static str,
}

const OF_MEMBER: Names = Names {
    ty: "type",
    declared: ["nonBasicTypeName", "aliasTypeName"],
    string_length: "stringMaxLength",
};

const OF_MAP_KEY: Names = Names {
    ty: "mapKeyType",
    declared: ["mapKeyNonBasicTypeName", "mapKeyAliasTypeName"],
    string_length: "mapKeyStringMaxLength",
};

impl Declarer<'_> {
    /// The type that the attributes of an element say; `None` if they are wrong. Several of them
    /// make an array of maps of sequences.
    pub(super) fn ty(&mut self, place: Place<'_>, element: &Element) -> Option<Type> {
        let mut ty = self.single(place, element, &OF_MEMBER)?;
        if element.attribute("sequenceMaxLength").is_some() {
            ty = Type::sequence(ty, self.bound(place, element, "sequenceMaxLength")?);
        }
        if element.attribute(OF_MAP_KEY.ty).is_some() {
            let key = self.single(place, element, &OF_MAP_KEY)?;
            let is_key = match self.graph.resolved(&key) {
                Type::Primitive(primitive) => !matches!(
                    primitive,
                    Primitive::Float32 | Primitive::Float64 | Primitive::Float128
                ),
                Type::String8(_) | Type::String16(_) => true,
                _ => false,
            };
            if !is_key {
                let message = "the keys of a map are integers, characters, booleans or strings";
                self.error(place.source, element.at, message);
                return None;
            }
            ty = Type::map(key, ty, self.bound(place, element, "mapMaxLength")?);
        }
        match element.attribute("arrayDimensions") {
            Some(text) => Some(Type::array(ty, self.dimensions(place, element, text)?)),
            None => Some(ty),
        }
    }

    fn single(&mut self, place: Place<'_>, element: &Element, names: &Names) -> Option<Type> {
        let Some(text) = element.attribute(names.ty) else {
            let name = quote(&element.name);
            let message = format!("{name} has no attribute '{}'", names.ty);
            self.error(place.source, element.at, message);
            return None;
        };
        if let Some(primitive) = primitive(text) {
            return Some(Type::Primitive(primitive));
        }
        if is_text(text) {
            let bound = self.bound(place, element, names.string_length)?;
            return Some(match text {
                "string" | "string8" => Type::String8(bound),
                _ => Type::String16(bound),
            });
        }
        if !is_declared(text) {
            let known = PRIMITIVES.iter().map(|(name, _)| *name);
            let known = known.chain(STRINGS.iter().chain(DECLARED).copied());
            let hint = match did_you_mean(text, known) {
                hint if !hint.is_empty() => hint,
                _ => {
                    "; a declared type is 'nonBasic', and nonBasicTypeName has its name".to_owned()
                }
            };
            let message = format!("{} {} is no type of DDS-XML{hint}", names.ty, quote(text));
            self.error(place.source, element.at, message);
            return None;
        }
        let given = names.declared.iter();
        let mut given = given.filter_map(|name| Some((*name, element.attribute(name)?)));
        let Some((attribute, name)) = given.next() else {
            let message = format!("type {text} needs the attribute '{}'", names.declared[0]);
            self.error(place.source, element.at, message);
            return None;
        };
        let found = self.required(place, element.at, attribute, name)?;
        Some(Type::Declared(self.declared[found].index))
    }

    /// The bound in an attribute: `Some(None)` without one; `None` if it is wrong.
    #[allow(clippy::option_option)]
    fn bound(
        &mut self,
        place: Place<'_>,
        element: &Element,
        attribute: &str,
    ) -> Option<Option<u32>> {
        match element.attribute(attribute) {
            // As LENGTH_UNLIMITED.
            None | Some("-1" | "LENGTH_UNLIMITED") => Some(None),
            Some(_) => {
                let limits = 1..=i128::from(u32::MAX);
                let bound = self.integer(place, element, attribute, limits)?;
                Some(u32::try_from(bound).ok())
            }
        }
    }

    fn dimensions(&mut self, place: Place<'_>, element: &Element, text: &str) -> Option<Vec<u32>> {
        let mut dimensions = Vec::new();
        let mut count: u32 = 1;
        for item in text.split(',') {
            let limits = 1..=i128::from(u32::MAX);
            let item = item.trim();
            let size = self.integer_of(place, element.at, "arrayDimensions", item, limits)?;
            let size = u32::try_from(size).ok()?;
            dimensions.push(size);
            match count.checked_mul(size) {
                Some(product) if dimensions.len() <= DIMENSIONS_MAX => count = product,
                _ => {
                    let message = format!(
                        "arrayDimensions {} are too many, or of too many elements",
                        quote(text)
                    );
                    self.error(place.source, element.at, message);
                    return None;
                }
            }
        }
        Some(dimensions)
    }
}
