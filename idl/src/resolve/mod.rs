//! From the tree of declarations to the checked model.
//!
//! One walk in the order of the text, because IDL wants every name declared
//! before it is used. What is wrong is reported where it stands; its name then
//! counts as [`Symbol::Refused`], so that uses of it are not reported as well.

mod annotations;
mod constants;
mod enums;
mod hash;
mod hints;
mod scopes;
mod structs;
mod types;

use std::collections::{HashMap, HashSet};

use crate::ast;
use crate::diag::Sink;
use crate::model::{
    Alias, ConstDecl, ConstId, Item, Model, Module, Range, Type, TypeDecl, TypeId, TypeKind,
};
use crate::source::{FileId, Sources, Span};

use annotations::Place;
use hints::Declared;
use scopes::{Clash, ScopeId, Scopes, Symbol};
use types::Facts;

/// Resolves all root files of a compilation. With `names_may_be_missing`, after
/// a file that was not found, unknown names are not reported.
pub(crate) fn resolve(
    roots: &[Vec<ast::Definition>],
    sources: &Sources,
    sink: &mut Sink,
    names_may_be_missing: bool,
) -> Model {
    let mut declared = HashMap::new();
    for root in roots {
        hints::collect(root, &mut String::new(), &mut declared);
    }
    let mut resolver = Resolver {
        sources,
        sink,
        names_may_be_missing,
        declared,
        scopes: Scopes::default(),
        nodes: vec![Node::default()],
        types: Vec::new(),
        facts: Vec::new(),
        constants: Vec::new(),
        literals: HashMap::new(),
        included_twice: HashSet::new(),
    };
    for root in roots {
        resolver.definitions(ScopeId::ROOT, root);
    }
    let Resolver {
        nodes,
        types,
        constants,
        ..
    } = resolver;
    Model {
        files: sources.paths(),
        root: tree(&nodes, ScopeId::ROOT),
        types,
        constants,
        interfaces: Vec::new(),
    }
}

struct Resolver<'a> {
    sources: &'a Sources,
    sink: &'a mut Sink,
    names_may_be_missing: bool,
    /// Everything that is declared anywhere, for hints.
    declared: Declared,
    scopes: Scopes,
    /// Modules by scope.
    nodes: Vec<Node>,
    types: Vec<TypeDecl>,
    /// What is known of each type of `types`.
    facts: Vec<Facts>,
    constants: Vec<ConstDecl>,
    /// Index of each literal in its enum, by name.
    literals: HashMap<TypeId, HashMap<String, usize>>,
    /// Files that were reported as included twice.
    included_twice: HashSet<FileId>,
}

/// A module of the model before the tree is put together.
#[derive(Debug, Default)]
struct Node {
    name: String,
    doc: Vec<String>,
    items: Vec<NodeItem>,
}

#[derive(Debug)]
enum NodeItem {
    Module(ScopeId),
    Type(TypeId),
    Const(ConstId),
}

/// As deep as modules are nested, which the parser limits.
fn tree(nodes: &[Node], scope: ScopeId) -> Module {
    let Some(node) = nodes.get(scope.0) else {
        return Module::default();
    };
    let item = |item: &NodeItem| match item {
        NodeItem::Module(scope) => Item::Module(tree(nodes, *scope)),
        NodeItem::Type(id) => Item::Type(*id),
        NodeItem::Const(id) => Item::Const(*id),
    };
    let items = node.items.iter().map(item).collect();
    Module {
        name: node.name.clone(),
        doc: node.doc.clone(),
        items,
    }
}

impl Resolver<'_> {
    fn definitions(&mut self, scope: ScopeId, definitions: &[ast::Definition]) {
        for definition in definitions {
            self.definition(scope, definition);
        }
    }

    fn definition(&mut self, scope: ScopeId, definition: &ast::Definition) {
        match &definition.kind {
            ast::DefinitionKind::Module(module) => self.module(scope, definition, module),
            ast::DefinitionKind::Struct(structure) => {
                self.structure(scope, definition, structure);
            }
            ast::DefinitionKind::Enum(enumeration) => {
                self.enumeration(scope, definition, enumeration);
            }
            ast::DefinitionKind::Typedef(typedef) => self.typedef(scope, definition, typedef),
            ast::DefinitionKind::Const(constant) => self.constant(scope, definition, constant),
            ast::DefinitionKind::Refused(name) => {
                if let Some(name) = name {
                    self.poison(scope, name);
                }
            }
        }
    }

    fn module(&mut self, scope: ScopeId, definition: &ast::Definition, module: &ast::Module) {
        let applied = self.annotate(scope, Place::Module, &definition.annotations);
        let existing = self.scopes.local(scope, &module.name.name).cloned();
        let inner = match existing {
            Some(entry) if matches!(entry.symbol, Symbol::Module(_)) => {
                if *entry.spelling != *module.name.name {
                    self.report_clash(&module.name, &Clash::of(&entry));
                }
                let Symbol::Module(inner) = entry.symbol else {
                    return;
                };
                inner
            }
            _ => {
                let inner = self.scopes.open(scope, &module.name.name);
                self.nodes.push(Node {
                    name: module.name.name.to_string(),
                    doc: applied.doc(&definition.doc),
                    items: Vec::new(),
                });
                if self.declare(scope, &module.name, Symbol::Module(inner)) {
                    self.push_item(scope, NodeItem::Module(inner));
                }
                inner
            }
        };
        self.definitions(inner, &module.items);
    }

    fn typedef(&mut self, scope: ScopeId, definition: &ast::Definition, typedef: &ast::Typedef) {
        let applied = self.annotate(scope, Place::Typedef, &definition.annotations);
        let doc = applied.doc(&definition.doc);
        let base = self.type_spec(scope, &typedef.ty);
        for declarator in &typedef.declarators {
            let ty = self.declarator(scope, base.as_ref(), declarator);
            let Some(ty) = ty else {
                self.poison(scope, &declarator.name);
                continue;
            };
            let facts = self.facts_of(&ty);
            self.add_type(
                scope,
                &declarator.name,
                doc.clone(),
                TypeKind::Alias(Alias {
                    ty,
                    range: Range::default(),
                    unit: None,
                }),
                facts,
            );
        }
    }

    fn constant(&mut self, scope: ScopeId, definition: &ast::Definition, constant: &ast::Const) {
        let applied = self.annotate(scope, Place::Const, &definition.annotations);
        let ty = self
            .type_spec(scope, &constant.ty)
            .map(|ty| self.without_aliases(&ty));
        let value = ty.as_ref().and_then(|ty| {
            let target = self.target(ty);
            if target.is_none() {
                let message = "a constant is of a primitive type, a string or an enum";
                self.sink.error(constant.ty.span, message);
            }
            self.evaluate(scope, &constant.value, &target?)
        });
        let (Some(ty), Some(value)) = (ty, value) else {
            self.poison(scope, &constant.name);
            return;
        };
        let id = ConstId(self.constants.len());
        if self.declare(scope, &constant.name, Symbol::Const(id)) {
            let name = constant.name.name.to_string();
            let doc = applied.doc(&definition.doc);
            let scope_path = self.scopes.path(scope);
            self.constants.push(ConstDecl {
                name,
                scope: scope_path,
                doc,
                ty,
                value,
            });
            self.push_item(scope, NodeItem::Const(id));
        }
    }

    /// Adds a checked type to the model, unless its name clashes or it nests too
    /// deep or grows too large.
    fn add_type(
        &mut self,
        scope: ScopeId,
        name: &ast::Ident,
        doc: Vec<String>,
        kind: TypeKind,
        facts: Facts,
    ) -> Option<TypeId> {
        let id = TypeId(self.types.len());
        if let Err(message) = facts.within_limits() {
            self.sink
                .error(name.span, format!("`{}` {message}", name.name));
            self.poison(scope, name);
            return None;
        }
        if !self.declare(scope, name, Symbol::Type(id)) {
            return None;
        }
        let (scope_path, file) = (self.scopes.path(scope), name.span.file.0);
        let name = name.name.to_string();
        self.types.push(TypeDecl {
            name,
            scope: scope_path,
            doc,
            verbatim: Vec::new(),
            custom: Vec::new(),
            kind,
            file,
        });
        self.facts.push(Facts {
            depth: facts.depth + 1,
            ..facts
        });
        self.push_item(scope, NodeItem::Type(id));
        Some(id)
    }

    fn push_item(&mut self, scope: ScopeId, item: NodeItem) {
        if let Some(node) = self.nodes.get_mut(scope.0) {
            node.items.push(item);
        }
    }

    /// Enters a name; a clash is reported and leaves the first meaning.
    fn declare(&mut self, scope: ScopeId, name: &ast::Ident, symbol: Symbol) -> bool {
        match self.scopes.declare(scope, name, symbol) {
            Ok(()) => true,
            Err(clash) => {
                self.report_clash(name, &clash);
                false
            }
        }
    }

    /// Enters a name of something that was reported.
    fn poison(&mut self, scope: ScopeId, name: &ast::Ident) {
        // A clash adds nothing to what was said.
        let _: Result<(), Clash> = self.scopes.declare(scope, name, Symbol::Refused);
    }

    fn report_clash(&mut self, name: &ast::Ident, clash: &Clash) {
        if clash.span == name.span {
            // The very same text: one report for the file is enough.
            if self.included_twice.insert(name.span.file) {
                let message = format!(
                    "`{}` is declared twice: this file is included twice",
                    name.name
                );
                let hint = "put `#pragma once` or an include guard into it";
                self.sink.error_hint(name.span, message, hint);
            }
            return;
        }
        let message = if *clash.spelling == *name.name {
            format!("`{}` is declared twice", name.name)
        } else {
            let (new, old) = (&name.name, &clash.spelling);
            format!("`{new}` clashes with `{old}`: in IDL they are the same name")
        };
        let hint = format!("the first one stands in {}", self.place(clash.span));
        self.sink.error_hint(name.span, message, hint);
    }

    /// `line 3`, or `line 3 of b.idl`, for hints.
    fn place(&self, span: Span) -> String {
        let line = self.sources.line(span.file, span.start);
        let file = self
            .sources
            .get(span.file)
            .and_then(|file| file.path.file_name());
        match file {
            Some(file) => format!("line {line} of {}", file.to_string_lossy()),
            None => format!("line {line}"),
        }
    }

    /// The meaning of a type's name behind all typedefs.
    fn without_aliases(&self, ty: &Type) -> Type {
        let mut ty = ty;
        while let Type::Named(id) = ty
            && let Some(TypeKind::Alias(alias)) = self.types.get(id.0).map(|decl| &decl.kind)
        {
            ty = &alias.ty;
        }
        ty.clone()
    }
}
