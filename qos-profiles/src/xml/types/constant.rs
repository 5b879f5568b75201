//! Constants, and values of members and labels.

use spindle_dds_xtypes::Value;
use spindle_dds_xtypes::graph::{Definition, Primitive, Range, Type};
use spindle_dds_xtypes::object::AnnotationValue;

use super::{Declarer, Place, candidates, expression, scoped};
use crate::diagnostic::{At, quote};
use crate::xml::members::no_text;
use crate::xml::tree::Element;

/// A constant.
pub(super) struct Constant<'a> {
    element: &'a Element,
    scope: String,
    source: usize,
    state: State,
}

#[derive(Clone)]
enum State {
    Named,
    Open,
    Evaluated(Option<Evaluated>),
}

/// The value of a constant.
#[derive(Debug, Clone)]
pub(super) enum Evaluated {
    Integer(i128),
    Real(f64),
    Boolean(bool),
    Text(String),
}

impl<'a> Declarer<'a> {
    pub(super) fn declare_constant(&mut self, element: &'a Element, scope: &str, source: usize) {
        let known = ["name", "type", "nonBasicTypeName", "value", "unit", "units"];
        self.attributes(
            source,
            element,
            &[&known[..], &["stringMaxLength"]].concat(),
        );
        no_text(element, self.report(source));
        let Some(name) = self.name(element, source) else {
            return;
        };
        let name = scoped(scope, name);
        if self.constants.contains_key(&name) {
            let message = format!("constant {} is given twice", quote(&name));
            return self.error(source, element.at, message);
        }
        self.constant_names.push(name.clone());
        self.constants.insert(
            name,
            Constant {
                element,
                scope: scope.to_owned(),
                source,
                state: State::Named,
            },
        );
    }

    /// Evaluates all constants, so that each is checked.
    pub(super) fn evaluate_constants(&mut self) {
        for name in std::mem::take(&mut self.constant_names) {
            self.constant(&name, 0);
        }
    }

    /// The value of the constant of this scoped name.
    fn constant(&mut self, name: &str, depth: usize) -> Option<Evaluated> {
        let constant = self.constants.get_mut(name)?;
        let (element, source) = (constant.element, constant.source);
        match &constant.state {
            State::Evaluated(value) => return value.clone(),
            State::Open => {
                let message = format!("constant {} refers to itself", quote(name));
                self.error(source, element.at, message);
                return None;
            }
            State::Named => constant.state = State::Open,
        }
        let scope = constant.scope.clone();
        let place = Place {
            scope: &scope,
            source,
        };
        let value = match depth > DEPTH_MAX {
            true => {
                let message = format!("constants refer to each other over {DEPTH_MAX} steps");
                self.error(source, element.at, message);
                None
            }
            false => self.evaluate_constant(place, element, depth),
        };
        if let Some(constant) = self.constants.get_mut(name) {
            constant.state = State::Evaluated(value.clone());
        }
        value
    }

    fn evaluate_constant(
        &mut self,
        place: Place<'_>,
        element: &Element,
        depth: usize,
    ) -> Option<Evaluated> {
        let Some(text) = element.attribute("value") else {
            self.error(place.source, element.at, "'const' has no attribute 'value'");
            return None;
        };
        let Some(ty) = element.attribute("type") else {
            self.error(place.source, element.at, "'const' has no attribute 'type'");
            return None;
        };
        let right = match super::uses::primitive(ty) {
            Some(Primitive::Boolean) => match boolean(text) {
                Some(value) => return Some(Evaluated::Boolean(value)),
                None => "true or false",
            },
            Some(Primitive::Float32 | Primitive::Float64 | Primitive::Float128) => {
                if let Ok(value) = text.parse() {
                    return Some(Evaluated::Real(value));
                }
                let value = self.expression(place, text, depth);
                return self.evaluated(place, element.at, "value", text, value);
            }
            Some(Primitive::Char8 | Primitive::Char16) => match character(text) {
                Some(value) => return Some(Evaluated::Integer(value)),
                None => "one character",
            },
            Some(primitive) => {
                let value = self.expression(place, text, depth);
                let value = value.and_then(|value| in_range(primitive, value));
                return self.evaluated(place, element.at, "value", text, value);
            }
            None if super::uses::is_text(ty) => return Some(Evaluated::Text(unquoted(text))),
            None if super::uses::is_declared(ty) => {
                return Some(match self.expression(place, text, depth) {
                    Ok(value) => Evaluated::Integer(value),
                    Err(_) => text
                        .parse()
                        .map_or_else(|_| Evaluated::Text(unquoted(text)), Evaluated::Real),
                });
            }
            None => {
                let message = format!("type {} is no type of DDS-XML", quote(ty));
                self.error(place.source, element.at, message);
                return None;
            }
        };
        let message = format!("value is {}; it must be {right}", quote(text));
        self.error(place.source, element.at, message);
        None
    }

    /// The value of an integer expression.
    fn expression(&mut self, place: Place<'_>, text: &str, depth: usize) -> Result<i128, String> {
        let mut lookup = |name: &str| {
            let mut names = candidates(place.scope, name);
            let Some(found) = names.find(|name| self.constants.contains_key(name)) else {
                return Err(format!("names {}, which is no known constant", quote(name)));
            };
            match self.constant(&found, depth + 1) {
                Some(Evaluated::Integer(value)) => Ok(value),
                Some(Evaluated::Boolean(value)) => Ok(i128::from(value)),
                Some(_) => Err(format!("names {}, which is no integer", quote(name))),
                None => Err(format!("names {}, which has no value", quote(name))),
            }
        };
        expression::evaluate(text, &mut lookup)
    }

    fn evaluated(
        &mut self,
        place: Place<'_>,
        at: At,
        attribute: &str,
        text: &str,
        value: Result<i128, String>,
    ) -> Option<Evaluated> {
        match value {
            Ok(value) => Some(Evaluated::Integer(value)),
            Err(why) => {
                let message = format!("{attribute} {} {why}", quote(text));
                self.error(place.source, at, message);
                None
            }
        }
    }

    /// The integer in an attribute, in these limits; `None` if the attribute is not given or wrong.
    pub(super) fn integer(
        &mut self,
        place: Place<'_>,
        element: &Element,
        attribute: &str,
        limits: std::ops::RangeInclusive<i128>,
    ) -> Option<i128> {
        let text = element.attribute(attribute)?;
        self.integer_of(place, element.at, attribute, text, limits)
    }

    /// As [`integer`](Self::integer), of a text.
    pub(super) fn integer_of(
        &mut self,
        place: Place<'_>,
        at: At,
        attribute: &str,
        text: &str,
        limits: std::ops::RangeInclusive<i128>,
    ) -> Option<i128> {
        let value = match self.expression(place, text, 0) {
            Ok(value) if limits.contains(&value) => Ok(value),
            Ok(value) => Err(format!(
                "is {value}; it must be from {} to {}",
                limits.start(),
                limits.end()
            )),
            Err(why) => Err(why),
        };
        match self.evaluated(place, at, attribute, text, value)? {
            Evaluated::Integer(value) => Some(value),
            _ => None,
        }
    }

    /// A label of a union, for a discriminator of this type.
    pub(super) fn label(&mut self, place: Place<'_>, at: At, ty: &Type, text: &str) -> Option<i32> {
        let value = match self.graph.resolved(ty) {
            Type::Primitive(Primitive::Boolean) => boolean(text).map(i128::from),
            Type::Primitive(Primitive::Char8 | Primitive::Char16) => character(text),
            Type::Declared(_) => self.literal(ty, text).map(i128::from),
            _ => None,
        };
        let value = match value {
            Some(value) => value,
            None => {
                let limits = i128::from(i32::MIN)..=i128::from(i32::MAX);
                self.integer_of(place, at, "value", text, limits)?
            }
        };
        i32::try_from(value).ok()
    }

    /// The value of a literal of an enumeration, which may have the name of that before it.
    fn literal(&self, ty: &Type, text: &str) -> Option<i32> {
        let Type::Declared(index) = self.graph.resolved(ty) else {
            return None;
        };
        let Definition::Enum(enumeration) = &self.graph.declaration(*index).definition else {
            return None;
        };
        let text = text
            .strip_prefix('(')
            .and_then(|it| it.strip_suffix(')'))
            .unwrap_or(text);
        let name = text.trim().rsplit("::").next()?;
        let mut literals = enumeration.literals.iter();
        Some(literals.find(|literal| literal.name.is(name))?.value)
    }

    /// The default of a member.
    pub(super) fn default(
        &mut self,
        place: Place<'_>,
        element: &Element,
        ty: &Type,
    ) -> Option<Value> {
        let text = element.attribute("default")?;
        let resolved = self.graph.resolved(ty).clone();
        match &resolved {
            Type::Primitive(primitive) => {
                let value = self.number(place, element, "default", *primitive)?;
                value.to_value()
            }
            Type::String8(_) | Type::String16(_) => {
                let mut names = candidates(place.scope, text);
                let name = names.find(|name| self.constants.contains_key(name));
                Some(Value::Text(
                    match name.and_then(|name| self.constant(&name, 0)) {
                        Some(Evaluated::Text(text)) => text,
                        _ => unquoted(text),
                    },
                ))
            }
            Type::Declared(index) => match &self.graph.declaration(*index).definition {
                Definition::Enum(_) => match self.literal(ty, text) {
                    Some(value) => Some(Value::Enum(value)),
                    None => {
                        let message = format!("default {} is no literal of the type", quote(text));
                        self.error(place.source, element.at, message);
                        None
                    }
                },
                Definition::Bitmask(_) | Definition::Bitset(_) => {
                    let limits = 0..=i128::from(u64::MAX);
                    let bits = self.integer(place, element, "default", limits)?;
                    u64::try_from(bits).ok().map(Value::Bits)
                }
                _ => self.no_default(place, element),
            },
            _ => self.no_default(place, element),
        }
    }

    fn no_default(&mut self, place: Place<'_>, element: &Element) -> Option<Value> {
        let message = "only numbers, characters, strings, enumerations and bits have a default";
        self.error(place.source, element.at, message);
        None
    }

    /// `min` and `max`.
    pub(super) fn range(&mut self, place: Place<'_>, element: &Element, ty: &Type) -> Range {
        let is_given = ["min", "max"].map(|name| element.attribute(name).is_some());
        if is_given == [false, false] {
            return Range::default();
        }
        let mut ty = self.graph.resolved(ty).clone();
        // A range of a collection is that of its elements.
        while let Type::Sequence { element, .. } | Type::Array { element, .. } = &ty {
            ty = self.graph.resolved(&element.ty).clone();
        }
        let Type::Primitive(primitive) = ty else {
            let message = "only numbers have 'min' and 'max'";
            self.error(place.source, element.at, message);
            return Range::default();
        };
        Range {
            min: self.number(place, element, "min", primitive),
            max: self.number(place, element, "max", primitive),
        }
    }

    /// The value of a primitive in an attribute.
    fn number(
        &mut self,
        place: Place<'_>,
        element: &Element,
        attribute: &str,
        primitive: Primitive,
    ) -> Option<AnnotationValue> {
        let text = element.attribute(attribute)?;
        let real = |declarer: &mut Self| {
            if let Ok(value) = text.parse::<f64>() {
                return Some(value);
            }
            let mut names = candidates(place.scope, text);
            let name = names.find(|name| declarer.constants.contains_key(name));
            match name.and_then(|name| declarer.constant(&name, 0)) {
                Some(Evaluated::Real(value)) => Some(value),
                _ => declarer
                    .expression(place, text, 0)
                    .ok()
                    .map(|value| value as f64),
            }
        };
        let right = match primitive {
            Primitive::Boolean => match boolean(text) {
                Some(value) => return Some(AnnotationValue::Boolean(value)),
                None => "true or false",
            },
            Primitive::Float32 => match real(self) {
                Some(value) => return Some(AnnotationValue::Float32((value as f32).to_bits())),
                None => "a number",
            },
            Primitive::Float64 => match real(self) {
                Some(value) => return Some(AnnotationValue::Float64(value.to_bits())),
                None => "a number",
            },
            Primitive::Float128 => {
                let message = format!("{attribute} of a float128 is not supported");
                self.error(place.source, element.at, message);
                return None;
            }
            Primitive::Char8 => match character(text).and_then(|it| u8::try_from(it).ok()) {
                Some(value) => return Some(AnnotationValue::Char8(value)),
                None => "one character of one byte",
            },
            Primitive::Char16 => match character(text).and_then(|it| u16::try_from(it).ok()) {
                Some(value) => return Some(AnnotationValue::Char16(value)),
                None => "one character of one UTF-16 unit",
            },
            _ => {
                let limits = limits(primitive)?;
                let value = self.integer(place, element, attribute, limits)?;
                return integer_value(primitive, value);
            }
        };
        let message = format!("{attribute} is {}; it must be {right}", quote(text));
        self.error(place.source, element.at, message);
        None
    }
}

/// The values of an integer type.
fn limits(primitive: Primitive) -> Option<std::ops::RangeInclusive<i128>> {
    let bits = 8 * u32::try_from(primitive.size()).ok()?;
    Some(match primitive {
        Primitive::Int8 | Primitive::Int16 | Primitive::Int32 | Primitive::Int64 => {
            -(1 << (bits - 1))..=(1 << (bits - 1)) - 1
        }
        Primitive::Byte
        | Primitive::UInt8
        | Primitive::UInt16
        | Primitive::UInt32
        | Primitive::UInt64 => 0..=(1 << bits) - 1,
        _ => return None,
    })
}

fn in_range(primitive: Primitive, value: i128) -> Result<i128, String> {
    match limits(primitive) {
        Some(limits) if !limits.contains(&value) => Err(format!("is no value of {primitive}")),
        _ => Ok(value),
    }
}

fn integer_value(primitive: Primitive, value: i128) -> Option<AnnotationValue> {
    Some(match primitive {
        Primitive::Byte => AnnotationValue::Byte(u8::try_from(value).ok()?),
        Primitive::Int8 => AnnotationValue::Int8(i8::try_from(value).ok()?),
        Primitive::UInt8 => AnnotationValue::UInt8(u8::try_from(value).ok()?),
        Primitive::Int16 => AnnotationValue::Int16(i16::try_from(value).ok()?),
        Primitive::UInt16 => AnnotationValue::UInt16(u16::try_from(value).ok()?),
        Primitive::Int32 => AnnotationValue::Int32(i32::try_from(value).ok()?),
        Primitive::UInt32 => AnnotationValue::UInt32(u32::try_from(value).ok()?),
        Primitive::Int64 => AnnotationValue::Int64(i64::try_from(value).ok()?),
        Primitive::UInt64 => AnnotationValue::UInt64(u64::try_from(value).ok()?),
        _ => return None,
    })
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "TRUE" | "1" => Some(true),
        "false" | "FALSE" | "0" => Some(false),
        _ => None,
    }
}

/// The code of a character, which may stand in quotes.
fn character(text: &str) -> Option<i128> {
    let quoted = text.strip_prefix('\'').and_then(|it| it.strip_suffix('\''));
    let mut characters = quoted.unwrap_or(text).chars();
    let first = characters.next()?;
    let is_one = characters.next().is_none();
    is_one.then_some(i128::from(u32::from(first)))
}

/// A text without the quotes that it may stand in.
fn unquoted(text: &str) -> String {
    let inner = text.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    inner.unwrap_or(text).to_owned()
}

const DEPTH_MAX: usize = 64;
