//! Definitions: modules, typedefs, constants, and the dispatch to all other kinds.

use std::rc::Rc;

use super::annotations::Applied;
use super::scopes::{Clash, ScopeId, Symbol};
use super::standard::AnnotationTarget;
use super::targets::Target;
use super::types::Facts;
use super::{NodeItem, Resolver, copies, fixed};
use crate::ast;
use crate::model::{Alias, ConstDecl, ConstId, Type, TypeKind, Value};

impl Resolver<'_> {
    pub(super) fn definitions(&mut self, scope: ScopeId, definitions: &[ast::Definition]) {
        for definition in definitions {
            self.definition(scope, definition);
        }
    }

    pub(super) fn definition(&mut self, scope: ScopeId, definition: &ast::Definition) {
        match &definition.kind {
            ast::DefinitionKind::Module(module) => self.module(scope, definition, module),
            ast::DefinitionKind::Struct(structure) => {
                self.structure(scope, definition, structure);
            }
            ast::DefinitionKind::Enum(enumeration) => {
                self.enumeration(scope, definition, enumeration);
            }
            ast::DefinitionKind::Union(union) => {
                self.union(scope, definition, union);
            }
            ast::DefinitionKind::Bitmask(bitmask) => {
                self.bitmask(scope, definition, bitmask);
            }
            ast::DefinitionKind::Bitset(bitset) => {
                self.bitset(scope, definition, bitset);
            }
            ast::DefinitionKind::Interface(interface) => {
                self.interface(scope, definition, interface);
            }
            ast::DefinitionKind::Forward(kind, name) => {
                let annotations = self.forward_annotations(scope, *kind, &definition.annotations);
                self.forward(scope, *kind, name, annotations);
            }
            ast::DefinitionKind::Native(name) => self.native(scope, definition, name),
            ast::DefinitionKind::AnnotationDeclaration(declaration) => {
                self.annotation_declaration(scope, definition, declaration);
            }
            ast::DefinitionKind::Typedef(typedef) => self.typedef(scope, definition, typedef),
            ast::DefinitionKind::Const(constant) => self.constant(scope, definition, constant),
            ast::DefinitionKind::Pragma(pragma, span) => {
                self.pragmas.push((scope, Rc::clone(pragma), *span));
            }
            ast::DefinitionKind::Refused(name) => {
                if let Some(name) = name {
                    self.poison(scope, name);
                }
            }
        }
    }

    fn module(&mut self, scope: ScopeId, definition: &ast::Definition, module: &ast::Module) {
        let applied = self.annotate(scope, AnnotationTarget::Module, &definition.annotations);
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
                let inner = self.open_scope(scope, &module.name, Vec::new());
                if let Some(node) = self.nodes.get_mut(inner.0) {
                    node.doc = applied.doc(&definition.doc);
                }
                if self.declare(scope, &module.name, Symbol::Module(inner)) {
                    self.push_item(scope, NodeItem::Module(inner));
                }
                inner
            }
        };
        self.module_annotations(scope, inner, &applied);
        self.definitions(inner, &module.items);
    }

    /// Defaults for the types in a module: from this opening, or else from the enclosing
    /// modules.
    fn module_annotations(&mut self, scope: ScopeId, inner: ScopeId, applied: &Applied<'_>) {
        let mut inherited = self.inherited(scope);
        inherited.hash_ids = self.has_hash_ids(scope, applied);
        if applied.get("default_nested").is_some() {
            inherited.nested = self.is_flagged(scope, applied, "default_nested");
        }
        let representations = self.given_representations(applied);
        inherited.representations = representations.or(inherited.representations);
        if let Some(node) = self.nodes.get_mut(inner.0) {
            node.inherited = inherited;
            node.custom.extend(applied.custom.iter().cloned());
        }
    }

    fn native(&mut self, scope: ScopeId, definition: &ast::Definition, name: &ast::Ident) {
        let applied = self.annotate(scope, AnnotationTarget::Native, &definition.annotations);
        let doc = applied.doc(&definition.doc);
        let facts = Facts {
            object: true,
            ..Facts::default()
        };
        self.add_type(scope, name, doc, applied, TypeKind::Native, facts);
    }

    fn typedef(&mut self, scope: ScopeId, definition: &ast::Definition, typedef: &ast::Typedef) {
        let applied = self.annotate(scope, AnnotationTarget::Typedef, &definition.annotations);
        self.check_nested(scope, &applied);
        let unit = self.unit(scope, &applied);
        let doc = applied.doc(&definition.doc);
        let base = self.type_spec(scope, &typedef.ty);
        let bytes = copies::of_applied(&applied, &doc);
        for declarator in &typedef.declarators {
            if !self.may_copy(bytes, declarator.name.span) {
                return;
            }
            let ty = self.declarator(scope, base.as_ref(), declarator);
            let Some(ty) = ty else {
                self.poison(scope, &declarator.name);
                continue;
            };
            if self.is_same_alias(scope, &declarator.name, &ty) {
                continue;
            }
            let facts = self.facts_of(&ty);
            let range = self.member_range(scope, &applied, &ty);
            let unit = unit.clone().or_else(|| self.alias_unit(&ty));
            let default = self.member_default(scope, &applied, &ty);
            self.check_default(&applied, default.as_ref(), &range);
            let texts = copies::of_default(default.as_ref(), unit.as_deref());
            if !self.may_copy(texts, declarator.name.span) {
                return;
            }
            let kind = TypeKind::Alias(Alias {
                ty,
                range,
                unit,
                default,
            });
            let applied = applied.clone();
            self.add_type(scope, &declarator.name, doc.clone(), applied, kind, facts);
        }
    }

    /// Whether a typedef repeats an earlier one. That is not valid IDL, but the
    /// interfaces of ROS 2 services do it.
    fn is_same_alias(&mut self, scope: ScopeId, name: &ast::Ident, ty: &Type) -> bool {
        let Some(entry) = self.scopes.local(scope, &name.name) else {
            return false;
        };
        let Symbol::Type(id) = entry.symbol else {
            return false;
        };
        let old = self.types.get(id.0).map(|decl| &decl.kind);
        // `typedef struct S { ... } S;` is C style.
        let itself = *ty == Type::Named(id);
        let same = *entry.spelling == *name.name
            && entry.span != name.span
            && (itself || matches!(old, Some(TypeKind::Alias(alias)) if alias.ty == *ty));
        if same {
            let message = format!("`{}` already means that", name.name);
            self.sink
                .warning_hint(name.span, message, "one declaration is enough");
        }
        same
    }

    fn constant(&mut self, scope: ScopeId, definition: &ast::Definition, constant: &ast::Const) {
        let applied = self.annotate(scope, AnnotationTarget::Const, &definition.annotations);
        let (ty, value) = self.constant_value(scope, constant);
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
                custom: applied.custom,
                ty,
                value,
            });
            self.push_item(scope, NodeItem::Const(id));
        }
    }

    fn constant_value(
        &mut self,
        scope: ScopeId,
        constant: &ast::Const,
    ) -> (Option<Type>, Option<Value>) {
        // A fixed-point constant has the digits and the scale of its value.
        if matches!(constant.ty.kind, ast::TypeKind::Fixed(None)) {
            let value = self.evaluate(scope, &constant.value, &Target::Fixed(None));
            let size = value.as_ref().and_then(fixed::size);
            let ty = size.map(|(digits, scale)| Type::Fixed { digits, scale });
            return (ty, value);
        }
        let ty = self.type_spec(scope, &constant.ty);
        let ty = ty.map(|ty| self.without_aliases(&ty));
        let value = ty.as_ref().and_then(|ty| {
            let target = self.target(ty);
            if target.is_none() {
                let message =
                    "a constant is of a primitive type, a string, `fixed`, an enum or a bitmask";
                self.sink.error(constant.ty.span, message);
            }
            self.evaluate(scope, &constant.value, &target?)
        });
        (ty, value)
    }
}
