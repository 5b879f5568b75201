//! Declarations of types.

use super::members::Around;
use super::{DeclarationKind, DeclaredType, Kind, Maker, Ty};

/// Most values in the default of a structure.
const WEIGHT_MAX: usize = 120;

impl Maker {
    pub(super) fn declaration(&mut self, topic: bool) {
        match self.random.below(20) {
            _ if topic => self.structure(true),
            0..=1 => self.enumeration(),
            2 => self.bitmask(),
            3 => self.bitset(),
            4..=5 => self.alias(),
            6..=8 => self.union(),
            _ => {
                let topic = self.random.coin();
                self.structure(topic);
            }
        }
    }

    /// Records a written declaration, which may be used from here on.
    fn add(
        &mut self,
        name: String,
        declared_as: DeclarationKind,
        kind: Kind,
        keyable: bool,
        weight: usize,
    ) {
        let ty = Ty {
            text: Self::path(&name),
            behind: String::new(),
            kind,
            keyable,
            weight,
        };
        self.declared.push(DeclaredType {
            name,
            kind: declared_as,
            ty,
        });
    }

    fn write(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn enumeration(&mut self) {
        let name = self.name("E");
        let bits = self.pick(&["", "@bit_bound(8) ", "@bit_bound(16) ", "@bit_bound(7) "]);
        let extensibility = self.pick(&["", "@final ", "@appendable "]);
        let count = 1 + self.random.below(4);
        let default = self.random.below(2 * count);
        let mut literals = Vec::new();
        let mut text = String::new();
        for index in 0..count {
            let literal = format!("{name}_L{index}");
            if index == default {
                text.push_str("@default_literal ");
            }
            if self.once_in(3) {
                text.push_str(&format!("@value({}) ", index * 10));
            }
            text.push_str(&format!("{literal}, "));
            literals.push(format!("{}::{literal}", Self::path(&name)));
        }
        let text = text.trim_end_matches(", ");
        self.write(&format!("{bits}{extensibility}enum {name} {{ {text} }};"));
        self.add(name, DeclarationKind::Enum, Kind::Enum(literals), true, 1);
    }

    fn bitmask(&mut self) {
        let name = self.name("M");
        let bits = self.pick(&[4, 8, 13, 16, 32, 64]);
        let extensibility = self.pick(&["", "@final ", "@appendable "]);
        let top = format!("{name}_TOP");
        let flags = ["A", "B"].map(|flag| format!("{name}_{flag}"));
        self.write(&format!(
            "@bit_bound({bits}) {extensibility}bitmask {name} {{ {}, {}, @position({}) {top} }};",
            flags[0],
            flags[1],
            bits - 1
        ));
        let all = [&flags[0], &flags[1], &top].map(|flag| format!("{}::{flag}", Self::path(&name)));
        self.add(
            name,
            DeclarationKind::Bitmask,
            Kind::Bitmask(all.to_vec()),
            true,
            1,
        );
    }

    fn bitset(&mut self) {
        let name = self.name("B");
        let bases: Vec<(String, usize)> = self
            .declared
            .iter()
            .filter_map(|made| match made.kind {
                DeclarationKind::Bitset(bits) if bits < 40 => Some((made.name.clone(), bits)),
                _ => None,
            })
            .collect();
        let (base, mut bits) = match bases.is_empty() || self.random.coin() {
            true => (String::new(), 0),
            false => {
                let (base, bits) = self.pick(&bases);
                (format!(": {base} "), bits)
            }
        };
        let mut text = String::new();
        for _ in 0..1 + self.random.below(3) {
            let (width, of) = self.pick(&[
                (1, ""),
                (3, ""),
                (9, ", short"),
                (7, ", octet"),
                (12, ", long"),
                (1, ", boolean"),
                (5, ", int8"),
            ]);
            if bits + width > 60 {
                break;
            }
            bits += width;
            let field = if self.once_in(5) {
                String::new()
            } else {
                self.name(" f")
            };
            let of = if field.is_empty() { "" } else { of };
            text.push_str(&format!("bitfield<{width}{of}>{field}; "));
        }
        let last = self.name("f");
        self.write(&format!(
            "bitset {name} {base}{{ {text}bitfield<2> {last}; }};"
        ));
        self.add(
            name,
            DeclarationKind::Bitset(bits + 2),
            Kind::Other,
            true,
            1,
        );
    }

    fn alias(&mut self) {
        let name = self.name("A");
        let ty = self.ty(2, false);
        let range = match &ty.kind {
            Kind::Integer(min, max) if self.random.coin() => {
                let (min, max) = ((*min).max(-100), (*max).min(50));
                Some((min, max))
            }
            _ => None,
        };
        let ty = match range {
            Some(_) => ty,
            None => self.with_dimensions(ty),
        };
        let (annotation, kind) = match range {
            Some((min, max)) => (
                format!("@range(min = {min}, max = {max}) "),
                Kind::Integer(min, max),
            ),
            None => (String::new(), ty.kind),
        };
        self.write(&format!(
            "{annotation}typedef {} {name}{};",
            ty.text, ty.behind
        ));
        self.add(name, DeclarationKind::Alias, kind, ty.keyable, ty.weight);
    }

    /// The annotations before `struct` or `union`.
    fn annotations(&mut self, topic: bool, hash: bool, extensible: bool) -> String {
        let nested = if topic { "" } else { "@nested " };
        let hash = if hash { "@autoid(HASH) " } else { "" };
        let extensibility = match extensible {
            true => self.pick(&[
                "",
                "@final ",
                "@appendable ",
                "@mutable ",
                "@final ",
                "@mutable ",
            ]),
            false => "",
        };
        format!("{nested}{hash}{extensibility}")
    }

    fn structure(&mut self, topic: bool) {
        let name = self.name("S");
        let bases: Vec<DeclaredType> = self
            .declared
            .iter()
            .filter(|made| matches!(made.kind, DeclarationKind::Struct(_)) && made.ty.weight < 60)
            .cloned()
            .collect();
        let base = match bases.is_empty() || !self.once_in(5) {
            true => None,
            false => Some(self.pick(&bases)),
        };
        let hash = base.is_none() && self.once_in(8);
        let annotations = self.annotations(topic, hash, base.is_none());
        let mut last_id = match base.as_ref().map(|base| base.kind) {
            Some(DeclarationKind::Struct(last)) => last,
            _ if hash => None,
            // One less than the first.
            _ => Some(u32::MAX),
        };
        let inherits = base
            .as_ref()
            .map_or(String::new(), |base| format!(" : {}", base.ty.text));
        let mut weight = base.as_ref().map_or(0, |base| base.ty.weight);
        let mut keyable = base.as_ref().is_none_or(|base| base.ty.keyable);
        let mut key_found = false;
        let mut body = String::new();
        for _ in 0..self.random.below(7) {
            let around = Around {
                keys: base.is_none(),
                branch: false,
                last_id,
            };
            let member = self.member(&around);
            if weight + member.weight > WEIGHT_MAX {
                continue;
            }
            weight += member.weight;
            if member.key && !key_found {
                (key_found, keyable) = (true, true);
            }
            if member.key == key_found {
                keyable &= member.keyable;
            }
            last_id = member.id;
            body.push_str(&format!("  {}\n", member.text));
        }
        if self.once_in(6) {
            let oneself = Self::path(&name);
            let member = self.name("m");
            let ty = self.pick(&[
                "sequence<SELF>",
                "@optional @external SELF",
                "@optional SELF",
                "map<short, SELF, 3>",
            ]);
            let ty = ty.replace("SELF", &oneself);
            body.push_str(&format!("  {ty} {member};\n"));
            last_id = last_id.map(|last| last.wrapping_add(1));
            keyable &= key_found;
            weight += 1;
            self.write(&format!("struct {name};"));
        }
        self.write(&format!(
            "{annotations}struct {name}{inherits} {{\n{body}}};"
        ));
        self.add(
            name,
            DeclarationKind::Struct(last_id),
            Kind::Other,
            keyable,
            weight,
        );
    }

    /// The type of a discriminator, and labels that it can have.
    fn switch(&mut self) -> (String, Vec<String>) {
        let numbers = |from: i32| (from..from + 6).map(|one| one.to_string()).collect();
        let letters = |prefix: &str| ('a'..='f').map(|one| format!("{prefix}'{one}'")).collect();
        let enums: Vec<Ty> = self
            .declared
            .iter()
            .filter(|made| made.kind == DeclarationKind::Enum)
            .map(|made| made.ty.clone())
            .collect();
        match self.random.below(10) {
            0 => ("boolean".into(), vec!["TRUE".into(), "FALSE".into()]),
            1 => ("char".into(), letters("")),
            2 => ("wchar".into(), letters("L")),
            3 => ("octet".into(), numbers(0)),
            4 => ("int8".into(), numbers(-3)),
            5 => ("unsigned long long".into(), numbers(0)),
            6 => ("short".into(), numbers(-3)),
            7 | 8 if !enums.is_empty() => {
                let ty = self.pick(&enums);
                match ty.kind {
                    Kind::Enum(literals) => (ty.text, literals),
                    _ => (ty.text, Vec::new()),
                }
            }
            _ => ("long".into(), numbers(-1)),
        }
    }

    fn union(&mut self) {
        let name = self.name("U");
        let topic = self.random.coin();
        let hash = self.once_in(8);
        let annotations = self.annotations(topic, hash, true);
        let (switch, mut labels) = self.switch();
        let counted = labels.len() == 6;
        let key = self.once_in(4);
        let mark = if key { "@key " } else { "" };
        let mut last_id = (!hash).then_some(0);
        let (mut keyable, mut weight) = (true, 1);
        let mut body = String::new();
        let count = 1 + self.random.below(3);
        for index in 0..count {
            let mut cases = String::new();
            for _ in 0..1 + usize::from(self.once_in(3)) {
                // The last label of an enumeration is left for a newer version.
                if labels.len() > 1 || (index == 0 && cases.is_empty()) {
                    cases.push_str(&format!("case {}: ", labels.remove(0)));
                }
            }
            if index + 1 == count && !labels.is_empty() && index > 0 && self.random.coin() {
                cases.push_str("default: ");
            }
            if cases.is_empty() {
                break;
            }
            let around = Around {
                keys: false,
                branch: true,
                last_id,
            };
            let member = self.member(&around);
            last_id = member.id;
            keyable &= member.keyable;
            weight = weight.max(member.weight);
            body.push_str(&format!("  {cases}{}\n", member.text));
        }
        if counted && self.once_in(3) {
            let ty = self.pick(&["sequence<SELF, 2>", "@external SELF", "map<char, SELF>"]);
            let ty = ty.replace("SELF", &Self::path(&name));
            let member = self.name("m");
            if let Some(label) = labels.pop() {
                body.push_str(&format!("  case {label}: {ty} {member};\n"));
                keyable = false;
                self.write(&format!("union {name};"));
            }
        }
        self.write(&format!(
            "{annotations}union {name} switch ({mark}{switch}) {{\n{body}}};"
        ));
        self.add(
            name,
            DeclarationKind::Union,
            Kind::Other,
            key || keyable,
            weight,
        );
    }
}
