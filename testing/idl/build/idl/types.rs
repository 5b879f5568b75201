//! Uses of types.

use super::{DeclarationKind, DeclaredType, Kind, Maker, Ty};

/// A type without bounds or dimensions.
fn leaf(text: &str, kind: Kind) -> Ty {
    Ty {
        text: text.to_owned(),
        behind: String::new(),
        kind,
        keyable: true,
        weight: 1,
    }
}

/// Bounds of collections and texts.
const BOUNDS: [u32; 4] = [1, 2, 5, 300];

/// Most values in the default of an array.
const WEIGHT_MAX: usize = 40;

impl Maker {
    /// Any type; one for keys if `key`, else with at most `depth` nested collections.
    pub(super) fn ty(&mut self, depth: usize, key: bool) -> Ty {
        match self.random.below(if depth == 0 || key { 9 } else { 14 }) {
            0..=2 => self.primitive(),
            3 => self.text(),
            4..=7 => self.named(key),
            8 => match self.once_in(3) {
                true => self.fixed(),
                false => self.text(),
            },
            9..=11 => self.sequence(depth),
            _ => self.map(depth),
        }
    }

    pub(super) fn primitive(&mut self) -> Ty {
        let int = |bits: u32, signed: bool| match signed {
            true => Kind::Integer(-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1),
            false => Kind::Integer(0, (1_i128 << bits) - 1),
        };
        let all = [
            ("boolean", Kind::Boolean),
            ("octet", int(8, false)),
            ("char", Kind::Char),
            ("wchar", Kind::WChar),
            ("int8", int(8, true)),
            ("uint8", int(8, false)),
            ("short", int(16, true)),
            ("uint16", int(16, false)),
            ("long", int(32, true)),
            ("unsigned long", int(32, false)),
            ("int64", int(64, true)),
            ("unsigned long long", int(64, false)),
            ("float", Kind::Float),
            ("double", Kind::Float),
            ("long double", Kind::LongDouble),
        ];
        // Types without a TypeIdentifier are rarer, because types with them have no type object.
        let (text, kind) = self.pick(&all);
        leaf(text, kind)
    }

    fn text(&mut self) -> Ty {
        let bound = match self.random.below(3) {
            0 => None,
            _ => Some(self.pick(&BOUNDS)),
        };
        let wide = self.once_in(3);
        let word = if wide { "wstring" } else { "string" };
        let text = match bound {
            Some(bound) => format!("{word}<{bound}>"),
            None => word.to_owned(),
        };
        match wide {
            true => leaf(&text, Kind::WideText(bound)),
            false => leaf(&text, Kind::Text(bound)),
        }
    }

    fn fixed(&mut self) -> Ty {
        let text = self.pick(&["fixed<5, 2>", "fixed<31, 0>", "fixed<4, 4>", "fixed<1, 0>"]);
        leaf(text, Kind::Fixed)
    }

    /// A suitable declared type, if there is one.
    fn named(&mut self, key: bool) -> Ty {
        if self.declared.is_empty() {
            return self.primitive();
        }
        let made = self.pick(&self.declared.clone());
        match (key && !made.ty.keyable) || made.ty.weight > WEIGHT_MAX {
            true => self.primitive(),
            false => made.ty,
        }
    }

    /// The annotations of an element, and its type.
    fn element(&mut self, depth: usize) -> Ty {
        let mut ty = self.ty(depth - 1, false);
        let construct = self.try_construct(&ty.kind);
        let external = if self.once_in(8) { "@external " } else { "" };
        ty.text = format!("{construct}{external}{}", ty.text);
        ty
    }

    fn bound(&mut self) -> (String, bool) {
        match self.random.below(4) {
            0 | 1 => (String::new(), false),
            2 => (", THREE".to_owned(), true),
            _ => (format!(", {}", self.pick(&BOUNDS)), true),
        }
    }

    fn sequence(&mut self, depth: usize) -> Ty {
        let element = self.element(depth);
        let (bound, bounded) = self.bound();
        Ty {
            text: format!("sequence<{}{bound}>", element.text),
            behind: String::new(),
            kind: Kind::Collection(bounded),
            keyable: false,
            weight: 1,
        }
    }

    fn map(&mut self, depth: usize) -> Ty {
        let key = self.map_key();
        let value = self.element(depth);
        let (bound, bounded) = self.bound();
        Ty {
            text: format!("map<{key}, {}{bound}>", value.text),
            behind: String::new(),
            kind: Kind::Collection(bounded),
            keyable: false,
            weight: 1,
        }
    }

    fn map_key(&mut self) -> String {
        let enums: Vec<DeclaredType> = self
            .declared
            .iter()
            .filter(|made| made.kind == DeclarationKind::Enum)
            .cloned()
            .collect();
        if !enums.is_empty() && self.once_in(3) {
            return self.pick(&enums).ty.text;
        }
        let keys = [
            "long",
            "octet",
            "char",
            "wchar",
            "boolean",
            "string",
            "string<3>",
            "wstring",
            "unsigned long long",
            "int8",
            "short",
        ];
        self.pick(&keys).to_owned()
    }

    /// The type, sometimes with dimensions.
    pub(super) fn with_dimensions(&mut self, mut ty: Ty) -> Ty {
        if !self.once_in(5) {
            return ty;
        }
        let dimensions: &[usize] = self.pick(&[&[1][..], &[2], &[3], &[2, 2], &[3, 1, 2]]);
        let count: usize = dimensions.iter().product();
        if count * ty.weight > WEIGHT_MAX {
            return ty;
        }
        ty.behind = dimensions.iter().map(|one| format!("[{one}]")).collect();
        ty.kind = Kind::Other;
        ty.weight *= count;
        ty
    }

    /// The annotation with a trailing space, or nothing.
    pub(super) fn try_construct(&mut self, kind: &Kind) -> &'static str {
        let bounded = matches!(
            kind,
            Kind::Text(Some(_)) | Kind::WideText(Some(_)) | Kind::Collection(true)
        );
        match self.random.below(8) {
            0 => "@try_construct(DISCARD) ",
            1 => "@try_construct(USE_DEFAULT) ",
            2 | 3 if bounded => "@try_construct(TRIM) ",
            _ => "",
        }
    }
}
