//! Interfaces: IDL 4.2 §7.4.3.

use std::collections::HashSet;

use super::annotations::{Applied, argument};
use super::forwards::ForwardAnnotations;
use super::scopes::{ScopeId, Symbol};
use super::standard::AnnotationTarget;
use super::{NodeItem, Resolver, copies};
use crate::ast::{self, Export, ForwardKind, ScopedName};
use crate::limits::INTERFACE_BASES_MAX;
use crate::model::{
    Attribute, Direction, InterfaceDecl, InterfaceId, Operation, Parameter, TypeId,
};
use crate::source::Span;

/// Facts about an interface besides its declaration.
#[derive(Debug)]
pub(super) struct Known {
    /// Where it is declared.
    owner: ScopeId,
    span: Span,
    /// Its names; `None` until it is defined.
    pub(super) scope: Option<ScopeId>,
}

impl Resolver<'_> {
    /// `interface I;`
    pub(super) fn forward_interface(&mut self, scope: ScopeId, name: &ast::Ident, local: bool) {
        let existing = self.scopes.local(scope, &name.name);
        if existing.is_none_or(|entry| !matches!(entry.symbol, Symbol::Interface(_))) {
            self.reserve_interface(scope, name, local);
        }
    }

    fn reserve_interface(
        &mut self,
        scope: ScopeId,
        name: &ast::Ident,
        local: bool,
    ) -> Option<InterfaceId> {
        let id = InterfaceId(self.interfaces.len());
        if !self.declare(scope, name, Symbol::Interface(id)) {
            return None;
        }
        self.interfaces.push(InterfaceDecl {
            name: name.name.to_string(),
            scope: self.scopes.path(scope),
            doc: Vec::new(),
            custom: Vec::new(),
            local,
            bases: Vec::new(),
            items: Vec::new(),
            attributes: Vec::new(),
            operations: Vec::new(),
            file: name.span.file.0,
        });
        self.known_interfaces.push(Known {
            owner: scope,
            span: name.span,
            scope: None,
        });
        Some(id)
    }

    pub(super) fn interface(
        &mut self,
        scope: ScopeId,
        definition: &ast::Definition,
        interface: &ast::Interface,
    ) {
        let applied = self.annotate(scope, AnnotationTarget::Interface, &definition.annotations);
        self.check_nested(scope, &applied);
        self.service(scope, &applied);
        self.interface_ids(scope, &applied);
        let Some(id) = self.begin_interface(scope, interface) else {
            return;
        };
        let bases = self.interface_bases(scope, &interface.bases);
        if self.all_bases(&bases).len() > INTERFACE_BASES_MAX {
            let message = format!(
                "`{}` inherits from more than {INTERFACE_BASES_MAX} interfaces",
                interface.name.name
            );
            self.sink.error(interface.name.span, message);
            self.scopes.replace(scope, &interface.name, Symbol::Refused);
            return;
        }
        let base_scopes = bases.iter().filter_map(|base| self.interface_scope(*base));
        let base_scopes = base_scopes.collect();
        let inner = self.open_scope(scope, &interface.name, base_scopes);
        if let Some(known) = self.known_interfaces.get_mut(id.0) {
            known.scope = Some(inner);
        }
        let (mut attributes, mut operations) = (Vec::new(), Vec::new());
        for export in &interface.exports {
            match export {
                Export::Definition(definition) => self.definition(inner, definition),
                Export::Attribute(attribute) => self.attribute(inner, attribute, &mut attributes),
                Export::Operation(operation) => {
                    operations.extend(self.operation(inner, operation));
                }
            }
        }
        let items = self.items_of(inner);
        if let Some(decl) = self.interfaces.get_mut(id.0) {
            decl.doc = applied.doc(&definition.doc);
            decl.custom = applied.custom;
            decl.local = interface.local;
            decl.bases = bases;
            decl.items = items;
            decl.attributes = attributes;
            decl.operations = operations;
            decl.file = interface.name.span.file.0;
        }
        self.push_item(scope, NodeItem::Interface(id));
    }

    /// The interface that was declared forward, or a new one.
    fn begin_interface(
        &mut self,
        scope: ScopeId,
        interface: &ast::Interface,
    ) -> Option<InterfaceId> {
        let name = &interface.name;
        let existing = self.scopes.local(scope, &name.name).cloned();
        let Some((Symbol::Interface(id), entry)) = existing.map(|entry| (entry.symbol, entry))
        else {
            return self.reserve_interface(scope, name, interface.local);
        };
        let defined = self.interface_scope(id).is_some();
        if defined || *entry.spelling != *name.name {
            self.report_clash(name, &super::Clash::of(&entry));
            return None;
        }
        self.scopes.replace(scope, name, Symbol::Interface(id));
        Some(id)
    }

    pub(super) fn interface_scope(&self, id: InterfaceId) -> Option<ScopeId> {
        self.known_interfaces.get(id.0)?.scope
    }

    fn interface_bases(&mut self, scope: ScopeId, names: &[ScopedName]) -> Vec<InterfaceId> {
        let mut bases = Vec::new();
        // One more than the limit is enough to report it.
        for name in names.iter().take(INTERFACE_BASES_MAX + 1) {
            let message = match self.lookup(scope, name, "type") {
                None | Some(Symbol::Refused) => continue,
                Some(Symbol::Interface(id)) if self.interface_scope(id).is_none() => {
                    format!("`{name}` is not defined yet: nothing can inherit from it")
                }
                Some(Symbol::Interface(id)) if bases.contains(&id) => {
                    format!("`{name}` occurs twice in this list")
                }
                Some(Symbol::Interface(id)) => {
                    bases.push(id);
                    continue;
                }
                Some(other) => format!(
                    "expected an interface, but `{name}` is {}",
                    other.describe()
                ),
            };
            self.sink.error(name.span, message);
        }
        bases
    }

    /// These interfaces with all their bases, up to the limit.
    fn all_bases(&self, direct: &[InterfaceId]) -> HashSet<InterfaceId> {
        let mut all: HashSet<InterfaceId> = direct.iter().copied().collect();
        let mut open = direct.to_vec();
        while let Some(id) = open.pop()
            && all.len() <= INTERFACE_BASES_MAX
        {
            let bases = self
                .interfaces
                .get(id.0)
                .map_or(&[][..], |decl| &decl.bases);
            open.extend(bases.iter().filter(|base| all.insert(**base)));
        }
        all
    }

    /// `@service` requests remote calls of an interface, which are not supported.
    fn service(&mut self, scope: ScopeId, applied: &Applied<'_>) {
        let Some(annotation) = applied.get("service") else {
            return;
        };
        let platform = argument(annotation, "platform").or_else(|| argument(annotation, "value"));
        if let Some(expr) = platform {
            self.text_argument(scope, expr);
        }
        let message = "`@service` has no effect: there are no remote calls";
        let hint = "the interface becomes a trait, as it does without";
        self.sink.warning_hint(annotation.span, message, hint);
    }

    /// `@autoid` numbers operations for remote calls.
    fn interface_ids(&mut self, scope: ScopeId, applied: &Applied<'_>) {
        if let Some(annotation) = applied.get("autoid") {
            self.has_hash_ids(scope, applied);
            let message = "`@autoid` on an interface has no effect: there are no remote calls";
            self.sink.warning(annotation.span, message);
        }
    }

    /// Enters the name of an attribute or operation; an inherited one with the same name
    /// forbids it.
    fn feature_name(&mut self, scope: ScopeId, name: &ast::Ident) {
        let inherited = self.scopes.member(scope, &name.name);
        if self.scopes.local(scope, &name.name).is_none()
            && let Some(entry) = inherited
            && entry.symbol == Symbol::Feature
        {
            let clash = super::Clash::of(entry);
            self.report_clash(name, &clash);
        }
        self.declare(scope, name, Symbol::Feature);
    }

    fn attribute(
        &mut self,
        scope: ScopeId,
        attribute: &ast::Attribute,
        attributes: &mut Vec<Attribute>,
    ) {
        let applied = self.annotate(scope, AnnotationTarget::Attribute, &attribute.annotations);
        let ty = self.type_spec(scope, &attribute.ty);
        let get_raises = self.exceptions(scope, &attribute.get_raises);
        let set_raises = self.exceptions(scope, &attribute.set_raises);
        let bytes = copies::of_applied(&applied, &applied.doc(&attribute.doc));
        for name in &attribute.names {
            if !self.may_copy(bytes, name.span) {
                return;
            }
            self.feature_name(scope, name);
            attributes.extend(ty.clone().map(|ty| Attribute {
                name: name.name.to_string(),
                doc: applied.doc(&attribute.doc),
                custom: applied.custom.clone(),
                ty,
                readonly: attribute.readonly,
                get_raises: get_raises.clone(),
                set_raises: set_raises.clone(),
            }));
        }
    }

    fn operation(&mut self, scope: ScopeId, operation: &ast::Operation) -> Option<Operation> {
        let applied = self.annotate(scope, AnnotationTarget::Operation, &operation.annotations);
        let oneway = operation.oneway.is_some() || self.is_flagged(scope, &applied, "oneway");
        let returns = operation.returns.as_ref();
        let returns = returns.map(|spec| self.type_spec(scope, spec));
        let parameters: Vec<Option<Parameter>> = operation
            .parameters
            .iter()
            .map(|parameter| self.parameter(scope, parameter))
            .collect();
        let mut names = HashSet::new();
        for parameter in &operation.parameters {
            let name = &parameter.name.name;
            if !names.insert(name.to_ascii_lowercase()) {
                let message = format!("parameter `{name}` occurs twice in this operation");
                self.sink.error(parameter.name.span, message);
            }
        }
        let raises = self.exceptions(scope, &operation.raises);
        self.feature_name(scope, &operation.name);
        let answers = returns.is_some()
            || !operation.raises.is_empty()
            || operation
                .parameters
                .iter()
                .any(|parameter| parameter.direction != Direction::In);
        if oneway && answers {
            let message = "a oneway operation returns nothing: no value, no `out`, no exception";
            self.sink.error(operation.name.span, message);
        }
        let returns = match returns {
            Some(ty) => Some(ty?),
            None => None,
        };
        Some(Operation {
            name: operation.name.name.to_string(),
            doc: applied.doc(&operation.doc),
            custom: applied.custom,
            oneway,
            returns,
            parameters: parameters.into_iter().collect::<Option<_>>()?,
            raises,
        })
    }

    fn parameter(&mut self, scope: ScopeId, parameter: &ast::Parameter) -> Option<Parameter> {
        let applied = self.annotate(scope, AnnotationTarget::Parameter, &parameter.annotations);
        let ty = self.type_spec(scope, &parameter.ty)?;
        Some(Parameter {
            name: parameter.name.name.to_string(),
            custom: applied.custom,
            direction: parameter.direction,
            ty,
        })
    }

    fn exceptions(&mut self, scope: ScopeId, names: &[ScopedName]) -> Vec<TypeId> {
        let mut all = Vec::new();
        for name in names {
            let id = match self.lookup(scope, name, "exception") {
                None | Some(Symbol::Refused) => continue,
                Some(Symbol::Type(id)) => Some(id),
                Some(_) => None,
            };
            let exception = id.filter(|id| self.is_exception(*id));
            match exception {
                Some(id) => all.push(id),
                None => {
                    let message = format!("expected an exception, but `{name}` is not one");
                    self.sink.error(name.span, message);
                }
            }
        }
        all
    }

    /// Interfaces that were declared forward and never defined: only references to their
    /// objects are possible.
    pub(super) fn close_interfaces(&mut self) {
        for index in 0..self.known_interfaces.len() {
            let Some(known) = self.known_interfaces.get(index) else {
                return;
            };
            if known.scope.is_some() {
                continue;
            }
            let (owner, span) = (known.owner, known.span);
            if let Some(decl) = self.interfaces.get(index) {
                let message = format!(
                    "interface `{}` is declared forward and never defined",
                    decl.name
                );
                let hint = "it is read as one without operations";
                self.sink.warning_hint(span, message, hint);
            }
            self.push_item(owner, NodeItem::Interface(InterfaceId(index)));
        }
    }

    pub(super) fn forward(
        &mut self,
        scope: ScopeId,
        kind: ForwardKind,
        name: &ast::Ident,
        annotations: ForwardAnnotations,
    ) {
        match kind {
            ForwardKind::Interface { local } => self.forward_interface(scope, name, local),
            ForwardKind::Struct | ForwardKind::Union => {
                self.forward_type(scope, kind, name, annotations);
            }
        }
    }
}
