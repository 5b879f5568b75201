//! A compact text of a model, for snapshots.

use spindle_dds_idl::model::{Item, Member, Model, Module, Type, TypeId, TypeKind, Value};

pub(crate) fn model(model: &Model) -> String {
    let mut printer = Printer {
        model,
        out: String::new(),
    };
    printer.module(&model.root, 0);
    printer.out
}

struct Printer<'a> {
    model: &'a Model,
    out: String,
}

impl Printer<'_> {
    fn line(&mut self, depth: usize, text: &str) {
        self.out
            .push_str(&format!("{}{text}\n", "  ".repeat(depth)));
    }

    fn doc(&mut self, depth: usize, doc: &[String]) {
        for line in doc {
            self.line(depth, format!("/// {line}").trim_end());
        }
    }

    fn module(&mut self, module: &Module, depth: usize) {
        for item in &module.items {
            match item {
                Item::Module(inner) => {
                    self.doc(depth, &inner.doc);
                    self.line(depth, &format!("module {}", inner.name));
                    self.module(inner, depth + 1);
                }
                Item::Type(id) => self.declared(*id, depth),
                Item::Interface(id) => {
                    let name = self.model.interfaces[id.0].name.clone();
                    self.line(depth, &format!("interface {name}"));
                }
                Item::Const(id) => {
                    let decl = &self.model.constants[id.0];
                    self.doc(depth, &decl.doc);
                    let (ty, value) = (self.ty(&decl.ty), self.value(&decl.value));
                    self.line(depth, &format!("const {}: {ty} = {value}", decl.name));
                }
            }
        }
    }

    fn declared(&mut self, id: TypeId, depth: usize) {
        let decl = &self.model.types[id.0];
        self.doc(depth, &decl.doc);
        let name = &decl.name;
        match &decl.kind {
            TypeKind::Alias(alias) => {
                let ty = self.ty(&alias.ty);
                self.line(depth, &format!("typedef {name} = {ty}"));
            }
            TypeKind::Struct(structure) => {
                let nested = if structure.nested { " nested" } else { "" };
                let head = format!("struct {name} {:?}{nested}", structure.extensibility);
                self.line(depth, &head);
                for member in &structure.members {
                    self.doc(depth + 1, &member.doc);
                    let member = self.member(member);
                    self.line(depth + 1, &member);
                }
            }
            TypeKind::Enum(enumeration) => {
                let (bits, kind) = (enumeration.bit_bound, enumeration.extensibility);
                self.line(depth, &format!("enum {name} {kind:?} {bits} bits"));
                for (index, literal) in enumeration.literals.iter().enumerate() {
                    self.doc(depth + 1, &literal.doc);
                    let default = if index == enumeration.default_literal {
                        " default"
                    } else {
                        ""
                    };
                    let text = format!("{} = {}{default}", literal.name, literal.value);
                    self.line(depth + 1, &text);
                }
            }
            other => self.line(depth, &format!("{name}: {other:?}")),
        }
    }

    fn member(&self, member: &Member) -> String {
        let key = if member.key { "key " } else { "" };
        let default = member
            .default
            .as_ref()
            .map(|value| format!(" = {}", self.value(value)));
        let ty = self.ty(&member.ty);
        format!(
            "{key}{} {}: {ty}{}",
            member.id,
            member.name,
            default.unwrap_or_default()
        )
    }

    fn ty(&self, ty: &Type) -> String {
        let bound = |bound: &Option<u32>| bound.map(|n| format!(" <= {n}")).unwrap_or_default();
        match ty {
            Type::Primitive(primitive) => format!("{primitive:?}").to_lowercase(),
            Type::String { bound: most } => format!("string{}", bound(most)),
            Type::Sequence {
                element,
                bound: most,
            } => {
                format!("sequence({}{})", self.ty(&element.ty), bound(most))
            }
            Type::Array {
                element,
                dimensions,
            } => format!("{}{dimensions:?}", self.ty(&element.ty)),
            Type::Named(id) => self.full_name(*id),
            other => format!("{other:?}"),
        }
    }

    fn full_name(&self, id: TypeId) -> String {
        let decl = &self.model.types[id.0];
        let scope: String = decl.scope.iter().map(|name| format!("{name}::")).collect();
        format!("{scope}{}", decl.name)
    }

    fn value(&self, value: &Value) -> String {
        match value {
            Value::Integer(value) => value.to_string(),
            Value::Float(value) => format!("{value:?}"),
            Value::Boolean(value) => value.to_string(),
            Value::Char(byte) => format!("'{}'", byte.escape_ascii()),
            Value::String(text) => format!("{text:?}"),
            Value::Float128(_) | Value::Fixed { .. } | Value::WChar(_) => format!("{value:?}"),
            Value::Enum(id, index) => {
                let TypeKind::Enum(enumeration) = &self.model.types[id.0].kind else {
                    panic!("a literal of a type that is no enum");
                };
                format!(
                    "{}::{}",
                    self.full_name(*id),
                    enumeration.literals[*index].name
                )
            }
        }
    }
}
