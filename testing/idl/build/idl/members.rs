//! Members of structures and branches of unions, with their annotations.

use super::{Kind, Maker, Ty};

/// A member, and its properties for the enclosing type.
pub(super) struct Member {
    pub(super) text: String,
    pub(super) key: bool,
    pub(super) keyable: bool,
    pub(super) weight: usize,
    pub(super) id: Option<u32>,
}

/// The context of a member.
pub(super) struct Around {
    /// Whether it may be a key member.
    pub(super) keys: bool,
    /// Whether it is a branch of a union.
    pub(super) branch: bool,
    /// The greatest id given so far; none where ids are hashes.
    pub(super) last_id: Option<u32>,
}

impl Maker {
    pub(super) fn member(&mut self, around: &Around) -> Member {
        let key = around.keys && self.once_in(4);
        let ty = self.ty(2, key);
        let ty = self.with_dimensions(ty);
        self.member_of(around, key, ty)
    }

    fn member_of(&mut self, around: &Around, key: bool, ty: Ty) -> Member {
        let name = self.name("m");
        // In XCDR1 an optional value without bytes reads as absent.
        let optional = !key && !around.branch && self.once_in(4) && ty.weight > 0;
        let hidden = !key && !around.branch && !optional && self.once_in(15);
        let mut text = String::new();
        let mut mark = |given: bool, annotation: &str| {
            if given {
                text.push_str(annotation);
                text.push(' ');
            }
        };
        mark(key, "@key");
        mark(optional, "@optional");
        mark(hidden, "@non_serialized");
        mark(self.once_in(6), "@external");
        mark(!around.branch && self.once_in(10), "@must_understand");
        let id = self.id(around, &mut text);
        text.push_str(self.try_construct(&ty.kind));
        self.values(&ty.kind, &mut text);
        text.push_str(&format!("{} {name}{};", ty.text, ty.behind));
        Member {
            text,
            key,
            keyable: ty.keyable && !optional && !hidden,
            weight: if hidden { 0 } else { ty.weight },
            id,
        }
    }

    /// The id of a member, explicit or not.
    fn id(&mut self, around: &Around, text: &mut String) -> Option<u32> {
        let Some(last) = around.last_id else {
            if self.once_in(6) {
                text.push_str("@hashid ");
            }
            return None;
        };
        if !self.once_in(5) {
            return Some(last.wrapping_add(1));
        }
        let id = last.wrapping_add(1) + self.pick(&[0, 3, 0x4000, 0x10000]);
        text.push_str(&format!("@id({id}) "));
        Some(id)
    }

    /// `@range`, `@default` and `@unit`.
    pub(super) fn values(&mut self, kind: &Kind, text: &mut String) {
        let ranged = self.once_in(5);
        let default = self.once_in(5);
        let within = match kind {
            Kind::Integer(min, max) => {
                let (least, most) = match ranged {
                    true => ((*min).max(-5), (*max).min(100)),
                    false => (*min, *max),
                };
                if ranged {
                    text.push_str(&match self.random.below(3) {
                        0 => format!("@min({least}) "),
                        1 => format!("@max({most}) "),
                        _ => format!("@range(min = {least}, max = {most}) "),
                    });
                }
                self.pick(&[least, most, 1.clamp(least, most)]).to_string()
            }
            Kind::Float | Kind::LongDouble => {
                if ranged {
                    text.push_str("@range(min = -0.5, max = 1000.25) ");
                }
                self.pick(&["0.25", "1000.25", "-0.5"]).to_owned()
            }
            Kind::Fixed => "0d".to_owned(),
            Kind::Boolean => "TRUE".to_owned(),
            Kind::Char => "'x'".to_owned(),
            Kind::WChar => "L'x'".to_owned(),
            Kind::Text(_) => "\"d\"".to_owned(),
            Kind::WideText(_) => "L\"d\"".to_owned(),
            Kind::Enum(all) | Kind::Bitmask(all) => self.pick(all),
            Kind::Collection(_) | Kind::Other => return,
        };
        if default {
            text.push_str(&format!("@default({within}) "));
        }
        if self.once_in(10) {
            text.push_str("@unit(\"m\") ");
        }
    }
}
