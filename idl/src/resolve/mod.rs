//! From the tree of declarations to the checked model.
//!
//! One pass in the order of the text, because IDL requires every name to be declared
//! before its use. The name of a faulty declaration becomes [`Symbol::Refused`], so
//! that its uses are not reported as well.

mod annotations;
mod bits;
mod constants;
mod copies;
mod custom;
mod cycles;
mod declarations;
mod enums;
mod fixed;
mod forwards;
mod hash;
mod hints;
mod interfaces;
mod keys;
mod members;
mod pragmas;
mod ranges;
mod real;
mod recursion;
mod scopes;
mod standard;
mod structs;
mod targets;
mod type_annotations;
mod types;
mod unions;

use std::collections::{HashMap, HashSet};

use crate::ast;
use crate::diag::Sink;
use crate::model::{
    ConstDecl, ConstId, CustomAnnotation, InterfaceDecl, InterfaceId, Item, Model, Module, Type,
    TypeDecl, TypeId, TypeKind,
};
use crate::source::{FileId, Sources, Span};

use annotations::Applied;
use hints::Declared;
use scopes::{Clash, ScopeId, Scopes, Symbol};

use type_annotations::Inherited;
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
        spans: Vec::new(),
        closed: HashSet::new(),
        forwards: Vec::new(),
        keys: Vec::new(),
        pragmas: Vec::new(),
        pragma_keys: HashSet::new(),
        constants: Vec::new(),
        interfaces: Vec::new(),
        known_interfaces: Vec::new(),
        annotations: Vec::new(),
        literals: HashMap::new(),
        included_twice: HashSet::new(),
        in_comments: HashMap::new(),
        in_members: false,
        copied: 0,
    };
    for root in roots {
        resolver.definitions(ScopeId::ROOT, root);
    }
    resolver.close_forwards();
    resolver.close_interfaces();
    resolver.apply_pragmas();
    resolver.check_keys();
    resolver.close_recursion();
    resolver.report_annotations_in_comments();
    let Resolver {
        nodes,
        types,
        constants,
        interfaces,
        annotations,
        ..
    } = resolver;
    Model {
        files: sources.paths(),
        root: tree(&nodes, ScopeId::ROOT),
        types,
        constants,
        interfaces,
        annotations: annotations.into_iter().map(Into::into).collect(),
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
    /// Facts about each type of `types`.
    facts: Vec<Facts>,
    /// The position of the declaration of each type of `types`.
    spans: Vec<Span>,
    /// Completely declared types with parts that are still incomplete.
    closed: HashSet<TypeId>,
    forwards: Vec<forwards::Forward>,
    /// The types of all key members, and where they are made keys.
    keys: Vec<(Type, Span)>,
    pragmas: Vec<pragmas::Placed>,
    /// Types whose key a pragma declares.
    pragma_keys: HashSet<TypeId>,
    constants: Vec<ConstDecl>,
    interfaces: Vec<InterfaceDecl>,
    /// Facts about each interface of `interfaces`.
    known_interfaces: Vec<interfaces::Known>,
    annotations: Vec<custom::Declared>,
    /// Index of each literal in its enum, by name.
    literals: HashMap<TypeId, HashMap<String, usize>>,
    /// Files that were reported as included twice.
    included_twice: HashSet<FileId>,
    /// The first annotation in a comment of each file, and how many there are.
    in_comments: HashMap<FileId, (Span, usize)>,
    /// Whether the position is inside a struct or union. That is a scope of its own: a name
    /// used there is not used in the enclosing scope.
    in_members: bool,
    /// Bytes that declarations have copied from others so far.
    copied: usize,
}

/// A module before the tree of the model is assembled.
#[derive(Debug, Default)]
struct Node {
    name: String,
    doc: Vec<String>,
    /// Annotations that the IDL declares itself, of all openings.
    custom: Vec<CustomAnnotation>,
    items: Vec<NodeItem>,
    /// Defaults for the types in it, as of its last opening.
    inherited: Inherited,
}

#[derive(Debug)]
enum NodeItem {
    Module(ScopeId),
    Type(TypeId),
    Const(ConstId),
    Interface(InterfaceId),
}

/// Recursive; the parser limits the nesting of modules.
fn tree(nodes: &[Node], scope: ScopeId) -> Module {
    let Some(node) = nodes.get(scope.0) else {
        return Module::default();
    };
    Module {
        name: node.name.clone(),
        doc: node.doc.clone(),
        custom: node.custom.clone(),
        items: items(nodes, node),
    }
}

fn items(nodes: &[Node], node: &Node) -> Vec<Item> {
    let item = |item: &NodeItem| match item {
        NodeItem::Module(scope) => Item::Module(tree(nodes, *scope)),
        NodeItem::Type(id) => Item::Type(*id),
        NodeItem::Const(id) => Item::Const(*id),
        NodeItem::Interface(id) => Item::Interface(*id),
    };
    node.items.iter().map(item).collect()
}

impl Resolver<'_> {
    fn inherited(&self, scope: ScopeId) -> Inherited {
        self.nodes
            .get(scope.0)
            .map_or_else(Inherited::default, |node| node.inherited)
    }

    /// A new scope inside another, with an entry for its contents.
    fn open_scope(&mut self, scope: ScopeId, name: &ast::Ident, bases: Vec<ScopeId>) -> ScopeId {
        let inherited = self.inherited(scope);
        self.nodes.push(Node {
            name: name.name.to_string(),
            inherited,
            ..Node::default()
        });
        self.scopes.open(scope, &name.name, bases)
    }

    fn items_of(&self, scope: ScopeId) -> Vec<Item> {
        self.nodes
            .get(scope.0)
            .map_or_else(Vec::new, |node| items(&self.nodes, node))
    }

    /// Adds a checked type to the model, unless its name clashes, it nests too deeply
    /// or it is too large.
    fn add_type(
        &mut self,
        scope: ScopeId,
        name: &ast::Ident,
        doc: Vec<String>,
        applied: Applied<'_>,
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
        self.spans.push(name.span);
        let name = name.name.to_string();
        self.types.push(TypeDecl {
            name,
            scope: scope_path,
            doc,
            verbatim: applied.verbatim,
            custom: applied.custom,
            kind,
            file,
        });
        if facts.incomplete {
            self.closed.insert(id);
        }
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

    /// Enters a name; a clash is reported and the first meaning stays.
    fn declare(&mut self, scope: ScopeId, name: &ast::Ident, symbol: Symbol) -> bool {
        self.check_new_name(scope, name, symbol);
        match self.scopes.declare(scope, name, symbol) {
            Ok(()) => true,
            Err(clash) => {
                self.report_clash(name, &clash);
                false
            }
        }
    }

    /// IDL 4.2 §7.5.2, §7.5.3: a scope must not redeclare a name that it has used before,
    /// nor its own name.
    fn check_new_name(&mut self, scope: ScopeId, name: &ast::Ident, symbol: Symbol) {
        if self.scopes.local(scope, &name.name).is_some() {
            return;
        }
        if let Some(span) = self.scopes.used(scope, &name.name) {
            let new = &name.name;
            let message = format!("`{new}` was used in this scope before, with another meaning");
            let place = self.place(span);
            if symbol == Symbol::Feature {
                // Not ambiguous: types and operations are distinct.
                let hint = format!("in {place}; other IDL compilers refuse that");
                self.sink.warning_hint(name.span, message, hint);
            } else {
                let hint = format!("in {place}; write the other one with the names around it");
                self.sink.error_hint(name.span, message, hint);
            }
        }
        let around = self.scopes.name(scope);
        if around.eq_ignore_ascii_case(&name.name) && !matches!(symbol, Symbol::Refused) {
            let message = format!("`{}` has the name of its enclosing scope", name.name);
            let hint = "other IDL compilers refuse that";
            self.sink.warning_hint(name.span, message, hint);
        }
    }

    /// The name of a type stands in its own scope too, where other compilers report a part with
    /// that name.
    fn check_name_of_part(&mut self, part: &ast::Ident, ty: &ast::Ident) {
        if part.name.eq_ignore_ascii_case(&ty.name) {
            let (part_name, name) = (&part.name, &ty.name);
            let message = format!("`{part_name}` has the name of its enclosing type `{name}`");
            let hint = "other IDL compilers refuse that";
            self.sink.warning_hint(part.span, message, hint);
        }
    }

    /// Enters the name of a declaration whose fault was reported.
    fn poison(&mut self, scope: ScopeId, name: &ast::Ident) {
        // A clash needs no further report.
        let _: Result<(), Clash> = self.scopes.declare(scope, name, Symbol::Refused);
    }

    fn report_clash(&mut self, name: &ast::Ident, clash: &Clash) {
        if clash.span == name.span {
            // The same text twice changes nothing: ROS 2 has files without guards. One
            // warning per file is enough.
            if self.included_twice.insert(name.span.file) {
                let message = format!(
                    "`{}` is declared again: this file is included twice, and counts once",
                    name.name
                );
                let hint = "put `#pragma once` or an include guard into it";
                self.sink.warning_hint(name.span, message, hint);
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
        let (file, line) = self.sources.presumed(span.file, span.start);
        match file.file_name() {
            Some(file) => format!("line {line} of {}", file.to_string_lossy()),
            None => format!("line {line}"),
        }
    }

    /// The type behind all typedefs.
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
