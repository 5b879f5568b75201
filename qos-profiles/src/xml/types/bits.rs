//! Enumerations, bitmasks and bitsets.

use std::collections::HashSet;

use spindle_dds_xtypes::graph::{
    Bitmask, Bitset, Definition, Enum, Extensibility, Field, Flag, Literal, Name, Primitive,
};

use super::{Declarer, Place, uses};
use crate::diagnostic::quote;
use crate::xml::members::{no_text, unknown};
use crate::xml::tree::Element;

/// Most bits of a bitmask or bitset.
const BITS_MAX: i128 = 64;

impl<'a> Declarer<'a> {
    pub(super) fn enumeration(&mut self, place: Place<'_>, element: &'a Element) -> Enum {
        let known = ["name", "bitBound", "extensibility"];
        self.attributes(place.source, element, &known);
        no_text(element, self.report(place.source));
        let bit_bound = self.bit_bound(place, element, "bitBound", 32);
        let limits = -(1 << (bit_bound - 1))..=(1 << (bit_bound - 1)) - 1;
        let mut literals: Vec<Literal> = Vec::new();
        let mut seen = HashSet::new();
        let mut default = 0;
        for child in self.parts(place, element, &["enumerator"]) {
            let known = ["name", "value", "defaultLiteral"];
            self.attributes(place.source, child, &known);
            let Some(name) = self.name(child, place.source) else {
                continue;
            };
            let value = match child.attribute("value") {
                Some(_) => match self.integer(place, child, "value", limits.clone()) {
                    Some(value) => value,
                    None => continue,
                },
                None => literals.last().map_or(0, |last| i128::from(last.value) + 1),
            };
            if !limits.contains(&value) {
                let message = format!("the value {value} of {} has too many bits", quote(name));
                self.error(place.source, child.at, message);
                continue;
            }
            if !seen.insert(value) || literals.iter().any(|it| it.name.is(name)) {
                let message = format!("the name or value of {} is given twice", quote(name));
                self.error(place.source, child.at, message);
                continue;
            }
            if self.flag(place.source, child, "defaultLiteral") {
                default = literals.len();
            }
            literals.push(Literal {
                name: Name::from(name),
                value: i32::try_from(value).unwrap_or(0),
                default: false,
                custom: Vec::new(),
            });
        }
        match literals.get_mut(default) {
            Some(literal) => literal.default = true,
            None => {
                let message = "an enumeration has at least one 'enumerator'";
                self.error(place.source, element.at, message);
            }
        }
        Enum {
            bit_bound,
            extensibility: Some(self.extensibility_of_values(place, element)),
            ignore_literal_names: false,
            literals,
        }
    }

    pub(super) fn bitmask(&mut self, place: Place<'_>, element: &'a Element) -> Bitmask {
        let known = ["name", "bitBound", "bit_bound", "extensibility"];
        self.attributes(place.source, element, &known);
        no_text(element, self.report(place.source));
        let attribute = match element.attribute("bit_bound") {
            Some(_) => "bit_bound",
            None => "bitBound",
        };
        let bit_bound = self.bit_bound(place, element, attribute, BITS_MAX);
        let mut flags: Vec<Flag> = Vec::new();
        // `bit_value` is the word of Fast DDS.
        for child in self.parts(place, element, &["flag", "bit_value"]) {
            // `value` is the word of earlier schemas.
            self.attributes(place.source, child, &["name", "position", "value"]);
            let Some(name) = self.name(child, place.source) else {
                continue;
            };
            let attribute = match child.attribute("value") {
                Some(_) => "value",
                None => "position",
            };
            let limits = 0..=i128::from(bit_bound) - 1;
            let position = match child.attribute(attribute) {
                Some(_) => match self.integer(place, child, attribute, limits) {
                    Some(position) => u16::try_from(position).unwrap_or(0),
                    None => continue,
                },
                None => flags.last().map_or(0, |last| last.position + 1),
            };
            let is_known = |flag: &Flag| flag.name.is(name) || flag.position == position;
            if position >= bit_bound || flags.iter().any(is_known) {
                let message = format!(
                    "the name or position of {} is given twice, or not below the bit bound of \
                     {bit_bound}",
                    quote(name)
                );
                self.error(place.source, child.at, message);
                continue;
            }
            flags.push(Flag {
                name: Name::from(name),
                position,
                custom: Vec::new(),
            });
        }
        Bitmask {
            bit_bound,
            extensibility: Some(self.extensibility_of_values(place, element)),
            flags,
        }
    }

    pub(super) fn bitset(&mut self, place: Place<'_>, element: &'a Element) -> Bitset {
        self.attributes(place.source, element, &["name", "baseType"]);
        no_text(element, self.report(place.source));
        let mut fields = self.base_fields(place, element);
        let end = fields.last().map_or(0, |last: &Field| {
            last.position.saturating_add(u16::from(last.bits))
        });
        let mut next = i128::from(end);
        for child in self.parts(place, element, &["bitfield"]) {
            let known = ["name", "type", "bitBound", "bit_bound", "bitCount"];
            self.attributes(place.source, child, &known);
            let counts = known[2..].iter();
            let mut counts = counts.filter(|name| child.attribute(name).is_some());
            let attribute = counts.next().copied().unwrap_or(known[2]);
            let Some(bits) = self.integer(place, child, attribute, 1..=BITS_MAX) else {
                if child.attribute(attribute).is_none() {
                    let message = "a 'bitfield' needs a 'bitBound', the number of its bits";
                    self.error(place.source, child.at, message);
                }
                continue;
            };
            let position = next;
            next += bits;
            if next > BITS_MAX {
                let message = format!("the bitset has more than {BITS_MAX} bits");
                self.error(place.source, child.at, message);
                break;
            }
            // Bits without a name are a gap.
            if child.attribute("name").is_none() {
                continue;
            }
            let Some(name) = self.name(child, place.source) else {
                continue;
            };
            let holder = match child.attribute("type") {
                Some(text) => self.holder(place, child, text, bits),
                None => Some(smallest_holder(bits)),
            };
            let Some(holder) = holder else { continue };
            fields.push(Field {
                name: Name::from(name),
                position: u16::try_from(position).unwrap_or(0),
                bits: u8::try_from(bits).unwrap_or(1),
                holder,
                custom: Vec::new(),
            });
        }
        Bitset { fields }
    }

    fn base_fields(&mut self, place: Place<'_>, element: &Element) -> Vec<Field> {
        let Some(base) = element.attribute("baseType") else {
            return Vec::new();
        };
        let Some(at) = self.required(place, element.at, "baseType", base) else {
            return Vec::new();
        };
        let index = self.declared[at].index;
        let is_defined = self.declared[at].state == super::State::Defined;
        match &self.graph.declaration(index).definition {
            Definition::Bitset(base) if is_defined => base.fields.clone(),
            _ => {
                let message = format!("baseType {} is no bitset before this one", quote(base));
                self.error(place.source, element.at, message);
                Vec::new()
            }
        }
    }

    fn holder(
        &mut self,
        place: Place<'_>,
        element: &Element,
        text: &str,
        bits: i128,
    ) -> Option<Primitive> {
        let holder = uses::primitive(text).filter(|primitive| {
            let is_integer = !matches!(
                primitive,
                Primitive::Float32
                    | Primitive::Float64
                    | Primitive::Float128
                    | Primitive::Char8
                    | Primitive::Char16
            );
            let size = match primitive {
                Primitive::Boolean => 1,
                other => 8 * other.size(),
            };
            is_integer && i128::try_from(size).is_ok_and(|size| size >= bits)
        });
        if holder.is_none() {
            let message = format!("type {} has no room for {bits} bits", quote(text));
            self.error(place.source, element.at, message);
        }
        holder
    }

    /// The children of these names; others are reported, but for annotations.
    pub(super) fn parts(
        &mut self,
        place: Place<'_>,
        element: &'a Element,
        known: &[&str],
    ) -> Vec<&'a Element> {
        let mut parts = Vec::new();
        for child in &element.children {
            match child.name.as_str() {
                name if known.contains(&name) => parts.push(child),
                "annotations" => {}
                _ => unknown(element, child, known, self.report(place.source)),
            }
        }
        parts
    }

    fn bit_bound(
        &mut self,
        place: Place<'_>,
        element: &Element,
        attribute: &str,
        most: i128,
    ) -> u16 {
        let bits = self.integer(place, element, attribute, 1..=most);
        bits.and_then(|bits| u16::try_from(bits).ok()).unwrap_or(32)
    }

    fn extensibility_of_values(&mut self, place: Place<'_>, element: &Element) -> Extensibility {
        match self.extensibility(place.source, element) {
            Some(Extensibility::Mutable) => {
                let message = format!("{} cannot be mutable", quote(&element.name));
                self.error(place.source, element.at, message);
                Extensibility::Appendable
            }
            given => given.unwrap_or(Extensibility::Appendable),
        }
    }
}

/// As the IDL mapping has it for bit fields without a type (IDL 4.2 §7.4.13.4.3.2).
fn smallest_holder(bits: i128) -> Primitive {
    match bits {
        1 => Primitive::Boolean,
        2..=8 => Primitive::UInt8,
        9..=16 => Primitive::UInt16,
        17..=32 => Primitive::UInt32,
        _ => Primitive::UInt64,
    }
}
