//! Lookup of names, and hints for unknown names.

use std::collections::HashMap;

use super::Resolver;
use super::scopes::{Entry, ScopeId, Symbol};
use crate::ast::{Definition, DefinitionKind, Export, Ident, ScopedName, TypeKind};
use crate::model::TypeId;
use crate::source::Span;

/// Every declared name in lower case, with its full name and place.
pub(super) type Declared = HashMap<String, (String, Span)>;

/// Collects the names that a list of definitions declares; the first of each name counts.
pub(super) fn collect(definitions: &[Definition], path: &mut String, all: &mut Declared) {
    for definition in definitions {
        let mut add = |name: &Ident| {
            let entry = (format!("{path}{}", name.name), name.span);
            all.entry(name.name.to_ascii_lowercase()).or_insert(entry);
        };
        match &definition.kind {
            DefinitionKind::Module(module) => {
                add(&module.name);
                let length = path.len();
                path.push_str(&module.name.name);
                path.push_str("::");
                collect(&module.items, path, all);
                path.truncate(length);
            }
            DefinitionKind::Struct(structure) => add(&structure.name),
            DefinitionKind::Union(union) => add(&union.name),
            DefinitionKind::Bitmask(bitmask) => add(&bitmask.name),
            DefinitionKind::Bitset(bitset) => add(&bitset.name),
            DefinitionKind::Native(name) | DefinitionKind::Forward(_, name) => add(name),
            DefinitionKind::Interface(interface) => {
                add(&interface.name);
                let length = path.len();
                path.push_str(&interface.name.name);
                path.push_str("::");
                for export in &interface.exports {
                    if let Export::Definition(definition) = export {
                        collect(std::slice::from_ref(definition), path, all);
                    }
                }
                path.truncate(length);
            }
            // Annotations have a name space of their own.
            DefinitionKind::AnnotationDeclaration(_) | DefinitionKind::Pragma(..) => {}
            DefinitionKind::Enum(enumeration) => {
                add(&enumeration.name);
                enumeration
                    .literals
                    .iter()
                    .for_each(|literal| add(&literal.name));
            }
            DefinitionKind::Typedef(typedef) => {
                typedef
                    .declarators
                    .iter()
                    .for_each(|declarator| add(&declarator.name));
                if let TypeKind::Declared(inner) = &typedef.ty.kind {
                    collect(std::slice::from_ref(inner), path, all);
                }
            }
            DefinitionKind::Const(constant) => add(&constant.name),
            DefinitionKind::Refused(name) => name.iter().for_each(add),
        }
    }
}

/// Types of other languages, and their IDL names.
const FOREIGN: &[(&str, &str)] = &[
    ("int", "long` or `int32"),
    ("bool", "boolean"),
    ("byte", "octet"),
    ("int8_t", "int8"),
    ("uint8_t", "uint8"),
    ("int16_t", "int16"),
    ("uint16_t", "uint16"),
    ("int32_t", "int32"),
    ("uint32_t", "uint32"),
    ("int64_t", "int64"),
    ("uint64_t", "uint64"),
    ("float32", "float"),
    ("float64", "double"),
    ("u8", "uint8"),
    ("u16", "uint16"),
    ("u32", "uint32"),
    ("u64", "uint64"),
    ("i8", "int8"),
    ("i16", "int16"),
    ("i32", "int32"),
    ("i64", "int64"),
    ("f32", "float"),
    ("f64", "double"),
];

const TYPE_KEYWORDS: &[&str] = &[
    "boolean", "char", "double", "fixed", "float", "int16", "int32", "int64", "int8", "long",
    "map", "octet", "sequence", "short", "string", "uint16", "uint32", "uint64", "uint8",
    "unsigned", "wchar", "wstring",
];

impl Resolver<'_> {
    /// The symbol of a scoped name; `None` when a fault was reported. `wanted` names the
    /// expected kind in the report of an unknown name.
    pub(super) fn lookup(
        &mut self,
        scope: ScopeId,
        name: &ScopedName,
        wanted: &str,
    ) -> Option<Symbol> {
        let start = if name.absolute { ScopeId::ROOT } else { scope };
        let mut around = Some(start);
        let mut found = None;
        for part in name.parts() {
            let entry = match (found, around) {
                (None, Some(scope)) => {
                    let entry = self.scopes.visible(scope, &part.name).cloned();
                    if entry.is_some() && !name.absolute && !self.in_members {
                        self.scopes.use_name(scope, part);
                    }
                    entry
                }
                (Some(Symbol::Refused), _) => return Some(Symbol::Refused),
                (Some(Symbol::Module(inner)), _) => {
                    around = Some(inner);
                    self.scopes.local(inner, &part.name).cloned()
                }
                (Some(Symbol::Interface(id)), _) => {
                    around = self.interface_scope(id);
                    around
                        .and_then(|inner| self.scopes.member(inner, &part.name))
                        .cloned()
                }
                (Some(Symbol::Type(id)), _) => {
                    around = None;
                    if let Some(index) = self.literal(id, &part.name) {
                        found = Some(Symbol::Literal(id, index));
                        continue;
                    }
                    None
                }
                _ => {
                    around = None;
                    None
                }
            };
            let Some(entry) = entry else {
                self.unknown(start, name, part, found.is_some().then_some(around), wanted);
                return None;
            };
            self.check_one_meaning(around.unwrap_or(start), part, &entry);
            if *entry.spelling != *part.name && entry.symbol != Symbol::Refused {
                let message = format!("`{}` is declared as `{}`", part.name, entry.spelling);
                let hint = "in IDL a name is written everywhere as it was declared";
                self.sink.error_hint(part.span, message, hint);
            }
            found = Some(entry.symbol);
        }
        found
    }

    /// §7.5.2: a name in several bases is ambiguous, unless all mean the same symbol.
    fn check_one_meaning(&mut self, scope: ScopeId, part: &Ident, entry: &Entry) {
        let mut scopes = self.scopes.outward(scope);
        // Nearer names in another case were skipped.
        let own = scopes.find(|scope| {
            let found = self.scopes.member(*scope, &part.name);
            found.is_some_and(|found| found.symbol == entry.symbol)
        });
        let meanings = own.map_or_else(Vec::new, |scope| self.scopes.meanings(scope, &part.name));
        let other = meanings.iter().find(|other| other.symbol != entry.symbol);
        if let Some(other) = other {
            let places = format!("{} and {}", self.place(entry.span), self.place(other.span));
            let message = format!("`{}` is ambiguous: several bases have one", part.name);
            let hint = format!("in {places}; write the base and `::` in front");
            self.sink.error_hint(part.span, message, hint);
        }
    }

    /// The index of a literal of an enum.
    pub(super) fn literal(&self, id: TypeId, name: &str) -> Option<usize> {
        self.literals.get(&id)?.get(name).copied()
    }

    /// Reports an unknown name. `inside` is the scope in which a part after `::` was
    /// looked up, or none if the part before has no names.
    fn unknown(
        &mut self,
        scope: ScopeId,
        name: &ScopedName,
        part: &Ident,
        inside: Option<Option<ScopeId>>,
        wanted: &str,
    ) {
        if self.names_may_be_missing {
            return;
        }
        let message = match inside {
            None if name.rest.is_empty() => format!("unknown {wanted} `{name}`"),
            None => format!("unknown name `{}` in `{name}`", part.name),
            Some(_) => format!("`{name}`: it has no `{}`", part.name),
        };
        let hint = match inside {
            _ if self.sink.is_full() => None,
            None => self.hint(scope, part, wanted),
            Some(Some(scope)) => self.similar([scope], part, wanted).map(did_you_mean),
            Some(None) => None,
        };
        match hint {
            Some(hint) => self.sink.error_hint(part.span, message, hint),
            None => self.sink.error(part.span, message),
        }
    }

    fn hint(&self, scope: ScopeId, part: &Ident, wanted: &str) -> Option<String> {
        let foreign = FOREIGN.iter().find(|(foreign, _)| *foreign == &*part.name);
        if let Some((_, ours)) = foreign.filter(|_| wanted == "type") {
            return Some(format!("IDL calls it `{ours}`"));
        }
        if let Some((full, span)) = self.declared.get(&part.name.to_ascii_lowercase()) {
            if self.is_known(full) {
                return Some(did_you_mean(full.clone()));
            }
            let place = self.place(*span);
            return Some(format!(
                "`{full}` is declared in {place}; IDL requires it before its use"
            ));
        }
        let scopes: Vec<ScopeId> = self.scopes.outward(scope).collect();
        self.similar(scopes, part, wanted).map(did_you_mean)
    }

    /// Whether this full name is declared before the current position.
    fn is_known(&self, full: &str) -> bool {
        let mut scope = ScopeId::ROOT;
        for part in full.split("::") {
            match self.scopes.local(scope, part).map(|entry| entry.symbol) {
                Some(Symbol::Module(inner)) => scope = inner,
                Some(Symbol::Interface(id)) => match self.interface_scope(id) {
                    Some(inner) => scope = inner,
                    None => return true,
                },
                Some(_) => return true,
                None => return false,
            }
        }
        true
    }

    /// The name in these scopes that is most similar to this one.
    fn similar(
        &self,
        scopes: impl IntoIterator<Item = ScopeId>,
        part: &Ident,
        wanted: &str,
    ) -> Option<String> {
        let types = wanted == "type";
        let fits = |symbol: Symbol| match symbol {
            Symbol::Module(_) => true,
            Symbol::Type(_) | Symbol::Forward(_) | Symbol::Interface(_) => types,
            Symbol::Const(_) | Symbol::Literal(..) | Symbol::Literals => !types,
            Symbol::Feature | Symbol::Annotation(_) | Symbol::Refused => false,
        };
        let entries = scopes
            .into_iter()
            .flat_map(|scope| self.scopes.entries(scope));
        let names = entries
            .filter(|entry| fits(entry.symbol))
            .map(|entry| &*entry.spelling);
        let keywords = TYPE_KEYWORDS.iter().copied().filter(|_| types);
        closest(&part.name, names.chain(keywords)).map(String::from)
    }
}

fn did_you_mean(name: String) -> String {
    format!("did you mean `{name}`?")
}

/// The candidate with the fewest edits, at most a third of the length; of equal ones,
/// the first in the alphabet.
pub(super) fn closest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    if name.len() > 64 {
        return None;
    }
    let most = (name.len() / 3).clamp(1, 3);
    candidates
        .filter(|candidate| candidate.len().abs_diff(name.len()) <= most)
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Levenshtein's distance, ignoring case; a swap of two neighbours counts as one edit
/// if it is the only difference.
fn distance(left: &str, right: &str) -> usize {
    let left = left.to_ascii_lowercase();
    let right = right.to_ascii_lowercase();
    if swapped(left.as_bytes(), right.as_bytes()) {
        return 1;
    }
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (at, byte) in left.bytes().enumerate() {
        let mut diagonal = at;
        let mut before = at + 1;
        for (cell, other) in row.iter_mut().skip(1).zip(right.bytes()) {
            let replaced = diagonal + usize::from(byte != other);
            diagonal = *cell;
            *cell = replaced.min(before + 1).min(diagonal + 1);
            before = *cell;
        }
        if let Some(first) = row.first_mut() {
            *first = at + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

/// Whether the only difference is a swap of two neighbours.
fn swapped(left: &[u8], right: &[u8]) -> bool {
    let pairs = || left.iter().zip(right);
    let mut wrong = pairs().enumerate().filter(|(_, (l, r))| l != r);
    match (wrong.next(), wrong.next(), wrong.next()) {
        (Some((i, (a, b))), Some((j, (c, d))), None) => {
            left.len() == right.len() && j == i + 1 && a == d && b == c
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("Abc", "abc"), 0);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kye", "key"), 1);
        assert_eq!(distance("kyes", "key"), 2);
    }

    #[test]
    fn the_closest_name_is_close_enough() {
        let names = ["Position", "Velocity", "Attitude"];
        assert_eq!(closest("Postion", names.into_iter()), Some("Position"));
        assert_eq!(closest("Speed", names.into_iter()), None);
    }
}
