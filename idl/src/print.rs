//! The model as compact text for readers: what the compiler has understood.

use std::fmt::Write as _;

use crate::model::{
    Alias, AnnotationDecl, AnnotationParameter, Attribute, Branch, CustomAnnotation, Direction,
    Element, InterfaceDecl, InterfaceId, Item, Member, Model, Module, Operation, Range,
    Representations, Struct, TryConstruct, Type, TypeDecl, TypeId, TypeKind, Value,
};

/// A model as text, one declaration or member a line, in the order of the source.
///
/// The line of a member has key and flags, member id, name, type, default,
/// range and unit; defaults are omitted.
#[must_use]
pub fn print(model: &Model) -> String {
    let mut printer = Printer {
        model,
        out: String::new(),
    };
    for annotation in &model.annotations {
        printer.annotation_declaration(annotation);
    }
    printer.items(&model.root, 0);
    printer.out
}

struct Printer<'a> {
    model: &'a Model,
    out: String,
}

impl Printer<'_> {
    fn line(&mut self, depth: usize, text: &str) {
        for _ in 0..depth {
            self.out.push_str("  ");
        }
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn doc(&mut self, depth: usize, doc: &[String]) {
        for line in doc {
            self.line(depth, format!("/// {line}").trim_end());
        }
    }

    fn custom(&mut self, depth: usize, all: &[CustomAnnotation]) {
        for annotation in all {
            let text = self.annotation(annotation);
            self.line(depth, &text);
        }
    }

    fn annotation_declaration(&mut self, annotation: &AnnotationDecl) {
        let parameter = |parameter: &AnnotationParameter| {
            let ty = parameter.ty.as_ref();
            let ty = ty.map_or_else(|| "any".to_owned(), |ty| self.ty(ty));
            match &parameter.default {
                Some(value) => format!("{}: {ty} = {}", parameter.name, self.value(value)),
                None => format!("{}: {ty}", parameter.name),
            }
        };
        let parameters: Vec<String> = annotation.parameters.iter().map(parameter).collect();
        let text = format!("annotation {}({})", annotation.name, parameters.join(", "));
        self.line(0, &text);
    }

    fn annotation(&self, annotation: &CustomAnnotation) -> String {
        let arguments: Vec<String> = annotation
            .arguments
            .iter()
            .map(|(name, value)| format!("{name} = {}", self.value(value)))
            .collect();
        format!("@{}({})", annotation.name, arguments.join(", "))
    }

    fn items(&mut self, module: &Module, depth: usize) {
        for item in &module.items {
            self.item(item, depth);
        }
    }

    fn item(&mut self, item: &Item, depth: usize) {
        let model = self.model;
        match item {
            Item::Module(inner) => {
                self.doc(depth, &inner.doc);
                self.custom(depth, &inner.custom);
                self.line(depth, &format!("module {}", inner.name));
                self.items(inner, depth + 1);
            }
            Item::Type(id) => {
                if let Some(decl) = model.types.get(id.0) {
                    self.declared(decl, depth);
                }
            }
            Item::Interface(id) => {
                if let Some(decl) = model.interfaces.get(id.0) {
                    self.interface(decl, depth);
                }
            }
            Item::Const(id) => {
                let Some(decl) = model.constants.get(id.0) else {
                    return;
                };
                self.doc(depth, &decl.doc);
                self.custom(depth, &decl.custom);
                let (ty, value) = (self.ty(&decl.ty), self.value(&decl.value));
                self.line(depth, &format!("const {}: {ty} = {value}", decl.name));
            }
        }
    }

    fn declared(&mut self, decl: &TypeDecl, depth: usize) {
        self.doc(depth, &decl.doc);
        self.custom(depth, &decl.custom);
        for verbatim in &decl.verbatim {
            let (language, text) = (&verbatim.language, &verbatim.text);
            let text = format!("verbatim {language} {:?}: {text:?}", verbatim.placement);
            self.line(depth, &text);
        }
        let name = &decl.name;
        match &decl.kind {
            TypeKind::Alias(alias) => {
                let ty = self.ty(&alias.ty);
                let Alias {
                    default,
                    range,
                    unit,
                    ..
                } = alias;
                let values = self.values(default.as_ref(), range, unit.as_deref());
                self.line(depth, &format!("typedef {name} = {ty}{values}"));
            }
            TypeKind::Struct(structure) => self.structure(name, structure, depth),
            TypeKind::Union(union) => {
                let marks = marks(union.nested, union.representations);
                let disc = &union.discriminator;
                let mut text = format!("union {name} {:?}{marks} switch ", union.extensibility);
                for one in &disc.custom {
                    let _ = write!(text, "{} ", self.annotation(one));
                }
                text.push_str(if disc.key { "key " } else { "" });
                text.push_str(&try_construct(disc.try_construct));
                text.push_str(&self.ty(&disc.ty));
                if let Some(value) = &disc.default {
                    let _ = write!(text, " = {}", self.value(value));
                }
                self.line(depth, &text);
                for branch in &union.branches {
                    self.branch(branch, depth + 1);
                }
            }
            TypeKind::Enum(enumeration) => {
                let (bits, kind) = (enumeration.bit_bound, enumeration.extensibility);
                let loose = match enumeration.ignore_literal_names {
                    true => " ignore_literal_names",
                    false => "",
                };
                self.line(depth, &format!("enum {name} {kind:?} {bits} bits{loose}"));
                for (index, literal) in enumeration.literals.iter().enumerate() {
                    self.doc(depth + 1, &literal.doc);
                    self.custom(depth + 1, &literal.custom);
                    let default = match index == enumeration.default_literal {
                        true => " default",
                        false => "",
                    };
                    let text = format!("{} = {}{default}", literal.name, literal.value);
                    self.line(depth + 1, &text);
                }
            }
            TypeKind::Bitmask(mask) => {
                let (bits, kind) = (mask.bit_bound, mask.extensibility);
                self.line(depth, &format!("bitmask {name} {kind:?} {bits} bits"));
                for flag in &mask.flags {
                    self.doc(depth + 1, &flag.doc);
                    self.custom(depth + 1, &flag.custom);
                    let text = format!("{} = bit {}", flag.name, flag.position);
                    self.line(depth + 1, &text);
                }
            }
            TypeKind::Bitset(bitset) => {
                let base = self.base(bitset.base);
                self.line(depth, &format!("bitset {name}{base} {} bits", bitset.bits));
                for (index, field) in bitset.fields.iter().enumerate() {
                    self.doc(depth + 1, &field.doc);
                    self.custom(depth + 1, &field.custom);
                    let inherited = inherited(index, bitset.inherited);
                    let last = u16::from(field.offset) + u16::from(field.bits) - 1;
                    let ty = self.ty(&Type::Primitive(field.ty));
                    let text = format!("{inherited}{}..={last} {}: {ty}", field.offset, field.name);
                    self.line(depth + 1, &text);
                }
            }
            TypeKind::Native => self.line(depth, &format!("native {name}")),
        }
    }

    fn structure(&mut self, name: &str, structure: &Struct, depth: usize) {
        let marks = marks(structure.nested, structure.representations);
        let word = if structure.exception {
            "exception"
        } else {
            "struct"
        };
        let base = self.base(structure.base);
        let head = format!("{word} {name}{base} {:?}{marks}", structure.extensibility);
        self.line(depth, &head);
        for (index, member) in structure.members.iter().enumerate() {
            self.doc(depth + 1, &member.doc);
            self.custom(depth + 1, &member.custom);
            let inherited = inherited(index, structure.inherited);
            let member = self.member(member);
            self.line(depth + 1, &format!("{inherited}{member}"));
        }
    }

    fn base(&self, base: Option<TypeId>) -> String {
        base.map_or_else(String::new, |id| format!(": {}", self.full_name(id)))
    }

    fn branch(&mut self, branch: &Branch, depth: usize) {
        self.doc(depth, &branch.member.doc);
        self.custom(depth, &branch.member.custom);
        let mut labels: Vec<String> = branch
            .labels
            .iter()
            .map(|label| self.value(label))
            .collect();
        if branch.default {
            labels.push("default".into());
        }
        let member = self.member(&branch.member);
        self.line(depth, &format!("case {}: {member}", labels.join(", ")));
    }

    fn member(&self, member: &Member) -> String {
        let mut text = String::new();
        let marks = [
            (member.key, "key "),
            (member.optional, "optional "),
            (member.external, "external "),
            (member.boxed && !member.external, "boxed "),
            (member.must_understand && !member.key, "must_understand "),
            (member.non_serialized, "non_serialized "),
        ];
        for (_, word) in marks.iter().filter(|(holds, _)| *holds) {
            text.push_str(word);
        }
        text.push_str(&try_construct(member.try_construct));
        let ty = self.ty(&member.ty);
        let _ = write!(text, "{} {}: {ty}", member.id, member.name);
        let Member {
            default,
            range,
            unit,
            ..
        } = member;
        text.push_str(&self.values(default.as_ref(), range, unit.as_deref()));
        text
    }

    fn values(&self, default: Option<&Value>, range: &Range, unit: Option<&str>) -> String {
        let mut text = String::new();
        if let Some(value) = default {
            let _ = write!(text, " = {}", self.value(value));
        }
        if let Some(min) = &range.min {
            let _ = write!(text, " >= {}", self.value(min));
        }
        if let Some(max) = &range.max {
            let _ = write!(text, " <= {}", self.value(max));
        }
        if let Some(unit) = unit {
            let _ = write!(text, " unit {unit:?}");
        }
        text
    }

    fn interface(&mut self, decl: &InterfaceDecl, depth: usize) {
        self.doc(depth, &decl.doc);
        self.custom(depth, &decl.custom);
        let local = if decl.local { "local " } else { "" };
        let bases: Vec<String> = decl
            .bases
            .iter()
            .map(|id| self.interface_name(*id))
            .collect();
        let bases = match bases.is_empty() {
            true => String::new(),
            false => format!(": {}", bases.join(", ")),
        };
        self.line(depth, &format!("{local}interface {}{bases}", decl.name));
        for item in &decl.items {
            self.item(item, depth + 1);
        }
        for attribute in &decl.attributes {
            self.attribute(attribute, depth + 1);
        }
        for operation in &decl.operations {
            self.operation(operation, depth + 1);
        }
    }

    fn attribute(&mut self, attribute: &Attribute, depth: usize) {
        self.doc(depth, &attribute.doc);
        self.custom(depth, &attribute.custom);
        let readonly = if attribute.readonly { "readonly " } else { "" };
        let get = self.raises(" getraises", &attribute.get_raises);
        let set = self.raises(" setraises", &attribute.set_raises);
        let ty = self.ty(&attribute.ty);
        let text = format!("{readonly}attribute {}: {ty}{get}{set}", attribute.name);
        self.line(depth, &text);
    }

    fn operation(&mut self, operation: &Operation, depth: usize) {
        self.doc(depth, &operation.doc);
        self.custom(depth, &operation.custom);
        let parameters: Vec<String> = operation
            .parameters
            .iter()
            .map(|parameter| {
                let direction = match parameter.direction {
                    Direction::In => "in",
                    Direction::Out => "out",
                    Direction::InOut => "inout",
                };
                let custom = parameter
                    .custom
                    .iter()
                    .map(|one| self.annotation(one) + " ");
                let custom: String = custom.collect();
                let ty = self.ty(&parameter.ty);
                format!("{custom}{direction} {}: {ty}", parameter.name)
            })
            .collect();
        let oneway = if operation.oneway { "oneway " } else { "" };
        let returns = match &operation.returns {
            Some(ty) => format!(": {}", self.ty(ty)),
            None => String::new(),
        };
        let raises = self.raises(" raises", &operation.raises);
        let (name, parameters) = (&operation.name, parameters.join(", "));
        let text = format!("{oneway}operation {name}({parameters}){returns}{raises}");
        self.line(depth, &text);
    }

    fn raises(&self, word: &str, all: &[TypeId]) -> String {
        if all.is_empty() {
            return String::new();
        }
        let names: Vec<String> = all.iter().map(|id| self.full_name(*id)).collect();
        format!("{word} ({})", names.join(", "))
    }

    fn ty(&self, ty: &Type) -> String {
        let bound = |bound: &Option<u32>| bound.map(|n| format!(" <= {n}")).unwrap_or_default();
        match ty {
            Type::Primitive(primitive) => format!("{primitive:?}").to_lowercase(),
            Type::String { bound: most } => format!("string{}", bound(most)),
            Type::WString { bound: most } => format!("wstring{}", bound(most)),
            Type::Fixed { digits, scale } => format!("fixed({digits}, {scale})"),
            Type::Sequence {
                element,
                bound: most,
            } => format!("sequence({}{})", self.element(element), bound(most)),
            Type::Map {
                key,
                value,
                bound: most,
            } => {
                let (key, value) = (self.element(key), self.element(value));
                format!("map({key}, {value}{})", bound(most))
            }
            Type::Array {
                element,
                dimensions,
            } => format!("{}{dimensions:?}", self.element(element)),
            Type::Named(id) => self.full_name(*id),
            Type::Interface(id) => format!("object {}", self.interface_name(*id)),
        }
    }

    fn element(&self, element: &Element) -> String {
        let external = if element.external { "external " } else { "" };
        let construct = try_construct(element.try_construct);
        format!("{external}{construct}{}", self.ty(&element.ty))
    }

    fn full_name(&self, id: TypeId) -> String {
        let decl = self.model.types.get(id.0);
        decl.map_or_else(String::new, |decl| scoped(&decl.scope, &decl.name))
    }

    fn interface_name(&self, id: InterfaceId) -> String {
        let decl = self.model.interfaces.get(id.0);
        decl.map_or_else(String::new, |decl| scoped(&decl.scope, &decl.name))
    }

    fn value(&self, value: &Value) -> String {
        match value {
            Value::Integer(value) => value.to_string(),
            Value::Float(value) => format!("{value:?}"),
            Value::Float128(bits) => format!("binary128 {bits:#034x}"),
            Value::Fixed { unscaled, scale } => {
                let sign = if *unscaled < 0 { "-" } else { "" };
                let scale = usize::from(*scale);
                let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = scale + 1);
                let (whole, fraction) = digits.split_at(digits.len() - scale);
                let point = if fraction.is_empty() { "" } else { "." };
                format!("{sign}{whole}{point}{fraction}d")
            }
            Value::Boolean(value) => value.to_string(),
            Value::Char(byte) => format!("'{}'", byte.escape_ascii()),
            Value::WChar(unit) => match char::from_u32(u32::from(*unit)) {
                Some(c) => format!("L'{}'", c.escape_debug()),
                None => format!("L'\\u{unit:04x}'"),
            },
            Value::String(text) => format!("{text:?}"),
            Value::Enum(id, index) => {
                let literal = match self.model.types.get(id.0).map(|decl| &decl.kind) {
                    Some(TypeKind::Enum(of)) => of.literals.get(*index),
                    _ => None,
                };
                let name = literal.map_or("", |literal| literal.name.as_str());
                format!("{}::{name}", self.full_name(*id))
            }
        }
    }
}

fn scoped(scope: &[String], name: &str) -> String {
    let scope: String = scope.iter().map(|name| format!("{name}::")).collect();
    format!("{scope}{name}")
}

fn marks(nested: bool, representations: Representations) -> String {
    let nested = if nested { " nested" } else { "" };
    let only = match (representations.xcdr1, representations.xcdr2) {
        (true, false) => " only XCDR1",
        (false, true) => " only XCDR2",
        _ => "",
    };
    format!("{nested}{only}")
}

fn try_construct(what: TryConstruct) -> String {
    match what {
        TryConstruct::Discard => String::new(),
        TryConstruct::UseDefault => "try(use default) ".into(),
        TryConstruct::Trim => "try(trim) ".into(),
    }
}

fn inherited(index: usize, count: usize) -> &'static str {
    if index < count { "inherited " } else { "" }
}
