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

/// What a name means.
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
    /// Something that was reported; its uses are not.
    Refused,
}

impl Symbol {
    /// What to call it in "expected ..., but ... is ...".
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

/// The declaration that was there first.
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
    /// Scopes whose names are names of this one too.
    bases: Vec<ScopeId>,
    /// Names of scopes around that were used here: in lower case, with the place.
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
    /// A new scope inside another, not yet declared there.
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

    /// What a name means in this scope itself, in any case.
    pub(super) fn local(&self, scope: ScopeId, name: &str) -> Option<&Entry> {
        self.all
            .get(scope.0)?
            .entries
            .get(&name.to_ascii_lowercase())
    }

    /// What a name means in this scope or in those that it inherits from.
    pub(super) fn member(&self, scope: ScopeId, name: &str) -> Option<&Entry> {
        self.meanings(scope, name).into_iter().next()
    }

    /// All that a name means in this scope, or else in those that it inherits from.
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

    /// Remembers that a name of a scope around was used here.
    pub(super) fn use_name(&mut self, scope: ScopeId, name: &Ident) {
        if self.local(scope, &name.name).is_some() {
            return;
        }
        if let Some(scope) = self.all.get_mut(scope.0) {
            let key = name.name.to_ascii_lowercase();
            scope.used.entry(key).or_insert(name.span);
        }
    }

    /// Where a name of a scope around was used here, before this place.
    pub(super) fn used(&self, scope: ScopeId, name: &str) -> Option<Span> {
        let used = &self.all.get(scope.0)?.used;
        used.get(&name.to_ascii_lowercase()).copied()
    }

    /// The name of a scope, empty for the root.
    pub(super) fn name(&self, scope: ScopeId) -> &str {
        self.all.get(scope.0).map_or("", |scope| &scope.name)
    }

    /// What a name means here or in a scope around. One that is spelled so wins
    /// over an inner one in another case.
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

    /// Enters a name. A name that stands for something refused gives way.
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

    /// Gives a declared name another meaning.
    pub(super) fn replace(&mut self, scope: ScopeId, name: &Ident, symbol: Symbol) {
        let scope = self.all.get_mut(scope.0);
        let key = name.name.to_ascii_lowercase();
        if let Some(entry) = scope.and_then(|scope| scope.entries.get_mut(&key)) {
            entry.symbol = symbol;
            entry.span = name.span;
        }
    }

    /// Names of the modules around, from the outside in, this one included.
    pub(super) fn path(&self, scope: ScopeId) -> Vec<String> {
        let names = self
            .outward(scope)
            .filter_map(|scope| self.all.get(scope.0));
        let mut path: Vec<String> = names.map(|scope| scope.name.to_string()).collect();
        path.pop();
        path.reverse();
        path
    }

    /// All names of one scope, in no order.
    pub(super) fn entries(&self, scope: ScopeId) -> impl Iterator<Item = &Entry> {
        self.all
            .get(scope.0)
            .into_iter()
            .flat_map(|scope| scope.entries.values())
    }

    /// This scope and those around it.
    pub(super) fn outward(&self, scope: ScopeId) -> impl Iterator<Item = ScopeId> {
        let parent = |scope: &ScopeId| self.all.get(scope.0).and_then(|scope| scope.parent);
        std::iter::successors(Some(scope), parent)
    }
}
