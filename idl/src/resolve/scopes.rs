//! Scopes and the names in them: IDL 4.2 §7.5.
//!
//! Names that differ in case only are the same name, but must be written as
//! they were declared.

use std::collections::HashMap;
use std::rc::Rc;

use crate::ast::Ident;
use crate::model::{ConstId, InterfaceId, TypeId};
use crate::source::Span;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScopeId(pub(super) usize);

impl ScopeId {
    pub(super) const ROOT: Self = Self(0);
}

/// The meaning of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Symbol {
    Module(ScopeId),
    Type(TypeId),
    /// A struct or union that is declared forward, by index.
    Forward(usize),
    Interface(InterfaceId),
    /// An attribute or an operation.
    Feature,
    /// A declared annotation, by index.
    Annotation(usize),
    Const(ConstId),
    /// A literal of an enum, by index.
    Literal(TypeId, usize),
    /// The literals of several enums.
    Literals,
    /// A declaration whose fault was reported; its uses are not reported.
    Refused,
}

impl Symbol {
    /// Its kind in "expected ..., but ... is ...".
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Module(_) => "a module",
            Self::Type(_) | Self::Forward(_) => "a type",
            Self::Interface(_) => "an interface",
            Self::Feature => "an attribute or an operation",
            Self::Annotation(_) => "an annotation",
            Self::Const(_) => "a constant",
            Self::Literal(..) => "a literal of an enum",
            Self::Literals => "a literal of several enums",
            Self::Refused => "something else",
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) spelling: Rc<str>,
    pub(super) span: Span,
    pub(super) symbol: Symbol,
}

/// The earlier declaration of the name.
#[derive(Debug)]
pub(super) struct Clash {
    pub(super) spelling: Rc<str>,
    pub(super) span: Span,
}

impl Clash {
    pub(super) fn of(entry: &Entry) -> Self {
        Self {
            spelling: Rc::clone(&entry.spelling),
            span: entry.span,
        }
    }
}

#[derive(Debug)]
struct Scope {
    parent: Option<ScopeId>,
    name: Rc<str>,
    /// Scopes from which this one inherits names.
    bases: Vec<ScopeId>,
    /// Names of enclosing scopes that were used here: in lower case, with the position.
    used: HashMap<String, Span>,
    /// By the name in lower case.
    entries: HashMap<String, Entry>,
}

/// The tree of modules.
#[derive(Debug)]
pub(super) struct Scopes {
    all: Vec<Scope>,
}

impl Default for Scopes {
    fn default() -> Self {
        Self {
            all: vec![Scope {
                parent: None,
                name: "".into(),
                bases: Vec::new(),
                used: HashMap::new(),
                entries: HashMap::new(),
            }],
        }
    }
}

impl Scopes {
    /// A new scope inside another, whose name is not yet entered.
    pub(super) fn open(&mut self, parent: ScopeId, name: &Rc<str>, bases: Vec<ScopeId>) -> ScopeId {
        let parent = Some(parent);
        self.all.push(Scope {
            parent,
            name: Rc::clone(name),
            bases,
            used: HashMap::new(),
            entries: HashMap::new(),
        });
        ScopeId(self.all.len() - 1)
    }

    /// The symbol of a name in this scope itself, ignoring case.
    pub(super) fn local(&self, scope: ScopeId, name: &str) -> Option<&Entry> {
        self.all
            .get(scope.0)?
            .entries
            .get(&name.to_ascii_lowercase())
    }

    /// The symbol of a name in this scope or in those that it inherits from.
    pub(super) fn member(&self, scope: ScopeId, name: &str) -> Option<&Entry> {
        self.meanings(scope, name).into_iter().next()
    }

    /// All symbols of a name in this scope, or else in those that it inherits from.
    pub(super) fn meanings(&self, scope: ScopeId, name: &str) -> Vec<&Entry> {
        let mut seen: Vec<ScopeId> = Vec::new();
        let mut found: Vec<&Entry> = Vec::new();
        let mut open = vec![scope];
        while let Some(scope) = open.pop() {
            if seen.contains(&scope) {
                continue;
            }
            seen.push(scope);
            match (self.local(scope, name), self.all.get(scope.0)) {
                (Some(entry), _) => found.push(entry),
                (None, Some(scope)) => open.extend(scope.bases.iter().rev()),
                (None, None) => {}
            }
        }
        found
    }

    /// Records the use of a name of an enclosing scope.
    pub(super) fn use_name(&mut self, scope: ScopeId, name: &Ident) {
        if self.local(scope, &name.name).is_some() {
            return;
        }
        if let Some(scope) = self.all.get_mut(scope.0) {
            let key = name.name.to_ascii_lowercase();
            scope.used.entry(key).or_insert(name.span);
        }
    }

    /// The position of an earlier use of a name of an enclosing scope.
    pub(super) fn used(&self, scope: ScopeId, name: &str) -> Option<Span> {
        let used = &self.all.get(scope.0)?.used;
        used.get(&name.to_ascii_lowercase()).copied()
    }

    /// The name of a scope, empty for the root.
    pub(super) fn name(&self, scope: ScopeId) -> &str {
        self.all.get(scope.0).map_or("", |scope| &scope.name)
    }

    /// The symbol of a name in this scope or an enclosing one. An exact spelling takes
    /// precedence over an inner name in another case.
    pub(super) fn visible(&self, scope: ScopeId, name: &str) -> Option<&Entry> {
        let found = self
            .outward(scope)
            .filter_map(|scope| self.member(scope, name));
        let mut inner = None;
        for entry in found {
            if *entry.spelling == *name {
                return Some(entry);
            }
            inner = inner.or(Some(entry));
        }
        inner
    }

    /// Enters a name; it replaces a refused declaration.
    pub(super) fn declare(
        &mut self,
        scope: ScopeId,
        name: &Ident,
        symbol: Symbol,
    ) -> Result<(), Clash> {
        let Some(scope) = self.all.get_mut(scope.0) else {
            return Ok(());
        };
        let entry = Entry {
            spelling: Rc::clone(&name.name),
            span: name.span,
            symbol,
        };
        match scope.entries.entry(name.name.to_ascii_lowercase()) {
            std::collections::hash_map::Entry::Vacant(vacant) => {
                vacant.insert(entry);
                Ok(())
            }
            std::collections::hash_map::Entry::Occupied(mut occupied) => {
                if occupied.get().symbol == Symbol::Refused {
                    occupied.insert(entry);
                    return Ok(());
                }
                Err(Clash::of(occupied.get()))
            }
        }
    }

    /// Changes the meaning of a declared name.
    pub(super) fn replace(&mut self, scope: ScopeId, name: &Ident, symbol: Symbol) {
        let scope = self.all.get_mut(scope.0);
        let key = name.name.to_ascii_lowercase();
        if let Some(entry) = scope.and_then(|scope| scope.entries.get_mut(&key)) {
            entry.symbol = symbol;
            entry.span = name.span;
        }
    }

    /// Names of the enclosing modules from the outside in, including this one.
    pub(super) fn path(&self, scope: ScopeId) -> Vec<String> {
        let names = self
            .outward(scope)
            .filter_map(|scope| self.all.get(scope.0));
        let mut path: Vec<String> = names.map(|scope| scope.name.to_string()).collect();
        path.pop();
        path.reverse();
        path
    }

    /// All names of one scope, in any order.
    pub(super) fn entries(&self, scope: ScopeId) -> impl Iterator<Item = &Entry> {
        self.all
            .get(scope.0)
            .into_iter()
            .flat_map(|scope| scope.entries.values())
    }

    /// This scope and the enclosing ones.
    pub(super) fn outward(&self, scope: ScopeId) -> impl Iterator<Item = ScopeId> {
        let parent = |scope: &ScopeId| self.all.get(scope.0).and_then(|scope| scope.parent);
        std::iter::successors(Some(scope), parent)
    }
}
