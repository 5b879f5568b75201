//! The building block Types of DDS-XML (1.0 §7.3.3) read into the types of XTypes.
//!
//! ```text
//!   types elements ──names──▶ declared types and constants
//!                                │ enumerations and bits, typedefs, then structures and unions
//!                                ▼
//!                            TypeGraph
//! ```
//!
//! A type may be used before it is declared, and in another file. Reading never fails: a type with
//! an error keeps what could be read of it, and the errors are reported.

mod aggregate;
mod bits;
mod constant;
mod expression;
mod uses;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use spindle_dds_xtypes::graph::{Definition, Extensibility, Type};
use spindle_dds_xtypes::{DynamicType, TypeGraph, TypeIndex};

use crate::diagnostic::{At, Diagnostic, Report, did_you_mean, quote};
use crate::xml::members::{self, no_text, unknown};
use crate::xml::tree::Element;

use constant::Constant;

/// A `types` element, and the file that it stands in.
#[derive(Debug, Clone)]
pub(crate) struct TypesSource {
    pub(crate) file: Arc<str>,
    pub(crate) element: Element,
}

/// The types that files declare.
#[derive(Debug, Clone, Default)]
pub(crate) struct TypeLibrary {
    graph: TypeGraph,
    types: HashMap<String, TypeIndex>,
    /// In the order of the files.
    names: Vec<String>,
    /// Any type of the graph, when one has been asked for.
    any: OnceLock<DynamicType>,
}

impl TypeLibrary {
    /// Reads all types of all files.
    pub(crate) fn of(sources: &[TypesSource]) -> (Self, Vec<Diagnostic>) {
        let mut declarer = Declarer::new(sources);
        for (source, types) in sources.iter().enumerate() {
            declarer.module(&types.element, "", source);
        }
        declarer.evaluate_constants();
        for kinds in [
            ["enum", "bitmask", "bitset"].as_slice(),
            &["typedef"],
            AGGREGATES,
        ] {
            for at in 0..declarer.declared.len() {
                if kinds.contains(&declarer.declared[at].element.name.as_str()) {
                    declarer.define(at);
                }
            }
        }
        declarer.check_typedefs();
        let declared = declarer.declared.iter();
        let types = declared.clone().map(|it| (it.name.clone(), it.index));
        let library = Self {
            types: types.collect(),
            names: declared.map(|it| it.name.clone()).collect(),
            graph: declarer.graph,
            any: OnceLock::new(),
        };
        let reports = declarer.reports.into_iter();
        (
            library,
            reports.flat_map(Report::into_diagnostics).collect(),
        )
    }

    /// The structure or union of this scoped name.
    pub(crate) fn topic_type(&self, name: &str) -> Option<DynamicType> {
        let index = self.types.get(name.strip_prefix("::").unwrap_or(name))?;
        let ty = Type::Declared(*index);
        let Type::Declared(resolved) = self.graph.resolved(&ty) else {
            return None;
        };
        let is_aggregate = matches!(
            self.graph.declaration(*resolved).definition,
            Definition::Struct(_) | Definition::Union(_)
        );
        let any = || DynamicType::new(self.graph.clone(), Type::Declared(*resolved));
        is_aggregate.then(|| {
            let any = self.any.get_or_init(any);
            any.with_type(Type::Declared(*resolved))
        })
    }

    /// Whether a file declares this scoped name.
    pub(crate) fn declares(&self, name: &str) -> bool {
        self.types.contains_key(name)
    }

    /// The names of all declared types.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }
}

/// What has members: these types may contain each other.
const AGGREGATES: &[&str] = &["struct", "valuetype", "union"];

/// A type that has a name, in the order of the files.
struct Declared<'a> {
    element: &'a Element,
    /// The scoped name.
    name: String,
    /// The module that it stands in.
    scope: String,
    source: usize,
    index: TypeIndex,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Named,
    /// Its definition is being read.
    Open,
    Defined,
}

/// Where something is read.
#[derive(Debug, Clone, Copy)]
struct Place<'s> {
    scope: &'s str,
    source: usize,
}

/// Types and constants under construction.
struct Declarer<'a> {
    reports: Vec<Report>,
    graph: TypeGraph,
    declared: Vec<Declared<'a>>,
    /// By scoped name.
    by_name: HashMap<String, usize>,
    constants: HashMap<String, Constant<'a>>,
    /// In the order of the files.
    constant_names: Vec<String>,
    /// How many structures are open, each the base of the one before.
    bases: usize,
}

impl<'a> Declarer<'a> {
    fn new(sources: &'a [TypesSource]) -> Self {
        let reports = sources.iter().map(|it| Report::new(it.file.clone()));
        Self {
            reports: reports.collect(),
            graph: TypeGraph::new(),
            declared: Vec::new(),
            by_name: HashMap::new(),
            constants: HashMap::new(),
            constant_names: Vec::new(),
            bases: 0,
        }
    }

    fn report(&mut self, source: usize) -> &mut Report {
        &mut self.reports[source]
    }

    fn error(&mut self, source: usize, at: At, message: impl Into<String>) {
        self.report(source).error(at, message);
    }

    fn attributes(&mut self, source: usize, element: &Element, known: &[&str]) {
        members::attributes(element, known, self.report(source));
    }

    /// Takes in the names in a module, or in the root.
    fn module(&mut self, element: &'a Element, scope: &str, source: usize) {
        no_text(element, self.report(source));
        for child in &element.children {
            match child.name.as_str() {
                "module" => {
                    self.attributes(source, child, &["name"]);
                    if let Some(name) = self.name(child, source) {
                        self.module(child, &scoped(scope, name), source);
                    }
                }
                // The wrapper of Fast DDS.
                "type" => self.module(child, scope, source),
                "struct" | "valuetype" | "union" | "enum" | "bitmask" | "bitset" | "typedef" => {
                    self.declare(child, scope, source);
                }
                "const" => self.declare_constant(child, scope, source),
                // All types are known before any is defined.
                "forward_dcl" => self.attributes(source, child, &["name", "kind"]),
                // Read by the loader.
                "include" if scope.is_empty() => self.attributes(source, child, &["file"]),
                "include" => {
                    let message = "an 'include' stands directly in 'types', not in a 'module'";
                    self.error(source, child.at, message);
                }
                "annotations" => {}
                "annotation" | "license_definition" | "license_use" => {
                    let name = quote(&child.name);
                    let message = format!("{name} has no effect on data; it is passed over");
                    self.report(source).warning(child.at, message);
                }
                "exception" | "interface" => {
                    let name = quote(&child.name);
                    let message = format!("{name} is no type of data; it is passed over");
                    self.report(source).warning(child.at, message);
                }
                _ => unknown(element, child, IN_MODULE, self.report(source)),
            }
        }
    }

    fn declare(&mut self, element: &'a Element, scope: &str, source: usize) {
        let Some(name) = self.name(element, source) else {
            return;
        };
        let name = scoped(scope, name);
        if name.len() > NAME_BYTES_MAX {
            let message = format!("the name has more than {NAME_BYTES_MAX} bytes");
            return self.error(source, element.at, message);
        }
        let at = self.declared.len();
        if let Some(first) = self.by_name.get(&name) {
            let first = &self.declared[*first];
            let (file, line) = (self.reports[first.source].file(), first.element.at.line);
            let message = format!("{} is given twice, first in {file}:{line}", quote(&name));
            return self.error(source, element.at, message);
        }
        self.by_name.insert(name.clone(), at);
        let index = self.graph.reserve();
        if AGGREGATES.contains(&element.name.as_str()) {
            let constants = element.children.iter().filter(|it| it.name == "const");
            for constant in constants {
                self.declare_constant(constant, &name, source);
            }
        }
        self.declared.push(Declared {
            element,
            name,
            scope: scope.to_owned(),
            source,
            index,
            state: State::Named,
        });
    }

    /// The name of an element, if it is one of IDL.
    fn name(&mut self, element: &'a Element, source: usize) -> Option<&'a str> {
        let Some(name) = element.attribute("name") else {
            let message = format!("{} has no attribute 'name'", quote(&element.name));
            self.error(source, element.at, message);
            return None;
        };
        if !is_identifier(name) {
            let message = format!(
                "{} is no name: letters, digits and '_', the first no digit",
                quote(name)
            );
            self.error(source, element.at, message);
            return None;
        }
        Some(name)
    }

    /// Reads the definition of a type that has a name. What it inherits from is defined before.
    fn define(&mut self, at: usize) {
        let declared = &mut self.declared[at];
        if declared.state != State::Named {
            return;
        }
        declared.state = State::Open;
        let (element, source, index) = (declared.element, declared.source, declared.index);
        let (name, scope) = (declared.name.clone(), declared.scope.clone());
        // Constants of a type are found in the type.
        let place = Place {
            scope: match AGGREGATES.contains(&element.name.as_str()) {
                true => &name,
                false => &scope,
            },
            source,
        };
        let definition = match element.name.as_str() {
            "enum" => Definition::Enum(self.enumeration(place, element)),
            "bitmask" => Definition::Bitmask(self.bitmask(place, element)),
            "bitset" => Definition::Bitset(self.bitset(place, element)),
            "typedef" => Definition::Alias(self.typedef(place, element)),
            "union" => Definition::Union(self.union(place, element)),
            _ => Definition::Struct(self.structure(place, element)),
        };
        self.graph.define(index, Some(&name), definition);
        self.declared[at].state = State::Defined;
    }

    /// The declared type that a name means in a scope.
    fn find(&self, scope: &str, name: &str) -> Option<usize> {
        let mut candidates = candidates(scope, name);
        candidates.find_map(|name| self.by_name.get(&name).copied())
    }

    /// As [`find`](Self::find); reports an unknown name, which stands in this attribute.
    fn required(&mut self, place: Place<'_>, at: At, attribute: &str, name: &str) -> Option<usize> {
        let found = self.find(place.scope, name);
        if found.is_none() && !self.report(place.source).is_full() {
            let known = self.by_name.keys().take(HINTED_NAMES_MAX);
            let hint = did_you_mean(name, known.map(String::as_str));
            let message = format!("{attribute} {} is no known type{hint}", quote(name));
            self.error(place.source, at, message);
        }
        found
    }

    /// A typedef that stands for itself is an error, and one for `octet` instead.
    fn check_typedefs(&mut self) {
        for at in 0..self.declared.len() {
            let declared = &self.declared[at];
            let (index, source, place) = (declared.index, declared.source, declared.element.at);
            let ty = Type::Declared(index);
            let Type::Declared(resolved) = self.graph.resolved(&ty) else {
                continue;
            };
            if matches!(
                self.graph.declaration(*resolved).definition,
                Definition::Alias(_)
            ) {
                let name = declared.name.clone();
                let message = "the typedef stands for itself, or for too many others";
                self.error(source, place, message);
                let alias = Definition::Alias(uses::octet());
                self.graph.define(index, Some(&name), alias);
            }
        }
    }

    /// The extensibility of a type.
    fn extensibility(&mut self, source: usize, element: &Element) -> Option<Extensibility> {
        let text = element.attribute("extensibility")?;
        match text {
            "final" => Some(Extensibility::Final),
            // The word of earlier schemas, and that of the draft of 1.1.
            "appendable" | "extensible" | "append" => Some(Extensibility::Appendable),
            "mutable" => Some(Extensibility::Mutable),
            _ => {
                let message = format!(
                    "extensibility is {}; it must be final, appendable or mutable",
                    quote(text)
                );
                self.error(source, element.at, message);
                None
            }
        }
    }

    /// A boolean attribute, which is false if it is not given.
    fn flag(&mut self, source: usize, element: &Element, name: &str) -> bool {
        members::flag(element, name, false, self.report(source))
    }
}

/// `name` in a scope.
fn scoped(scope: &str, name: &str) -> String {
    match scope {
        "" => name.to_owned(),
        scope => format!("{scope}::{name}"),
    }
}

/// What a name in a scope may be in full, the nearest first.
fn candidates<'n>(scope: &'n str, name: &'n str) -> impl Iterator<Item = String> + use<'n> {
    let (scope, name) = match name.strip_prefix("::") {
        Some(global) => ("", global),
        None => (scope, name),
    };
    let mut next = Some(scope);
    std::iter::from_fn(move || {
        let scope = next?;
        next = match scope.rsplit_once("::") {
            Some((outer, _)) => Some(outer),
            None if scope.is_empty() => None,
            None => Some(""),
        };
        Some(scoped(scope, name))
    })
}

fn is_identifier(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let first = name.chars().next();
    first.is_some_and(|c| !c.is_ascii_digit()) && name.chars().all(is_part)
}

/// The longest name in a TypeObject, in bytes: XTypes 1.3 Annex B.
const NAME_BYTES_MAX: usize = 256;
const HINTED_NAMES_MAX: usize = 256;

const IN_MODULE: &[&str] = &[
    "module",
    "struct",
    "union",
    "enum",
    "bitmask",
    "bitset",
    "typedef",
    "const",
    "include",
    "forward_dcl",
    "annotations",
    "annotation",
    "exception",
    "interface",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_looked_for_from_the_inside_out() {
        let found: Vec<String> = candidates("a::b", "c").collect();
        assert_eq!(found, ["a::b::c", "a::c", "c"]);
        let found: Vec<String> = candidates("a::b", "::c::d").collect();
        assert_eq!(found, ["c::d"]);
        assert!(is_identifier("_a1") && !is_identifier("1a") && !is_identifier(""));
    }
}
