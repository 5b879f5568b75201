//! `$(NAME)` in texts and attributes.
//!
//! A variable is given to the reader of the file, or stands in the environment; or the file has
//! a default for it:
//!
//! ```text
//! <configuration_variables>
//!   <value><element><name>NAME</name><value>its default</value></element></value>
//! </configuration_variables>
//! ```
//!
//! A variable that has no value is an error where the text is read, and none in a part that is
//! passed over.

use std::collections::BTreeMap;

use crate::diagnostic::{Report, quote};
use crate::xml::members::{attributes, for_each};
use crate::xml::tree::Element;
use crate::xml::value::{sequence, text};

/// The element with defaults, a child of the root.
pub(crate) const DEFAULTS: &str = "configuration_variables";

/// The variables that are given for files.
#[derive(Debug, Clone, Default)]
pub(crate) struct Variables {
    pub(crate) given: BTreeMap<String, String>,
}

impl Variables {
    /// Replaces the variables in all of a document.
    pub(crate) fn expand(&self, root: &mut Element, report: &mut Report) {
        let mut expansion = Expansion {
            variables: self,
            defaults: defaults(root, report),
            bytes_left: EXPANDED_BYTES_MAX,
        };
        expansion.element(root, report);
    }

    fn get(&self, name: &str) -> Option<String> {
        let given = self.given.get(name).cloned();
        given.or_else(|| std::env::var(name).ok())
    }
}

/// The defaults of a document. What is wrong with them goes to `report`.
fn defaults(root: &Element, report: &mut Report) -> BTreeMap<String, String> {
    let mut defaults = BTreeMap::new();
    let elements = root.children.iter().filter(|child| child.name == DEFAULTS);
    for element in elements {
        attributes(element, &[], report);
        for_each(element, &["value"], false, report, |value, report| {
            attributes(value, &[], report);
            sequence(value, report, |item, report| {
                defaults.extend(default(item, report));
            });
        });
    }
    defaults
}

/// A variable and its default.
fn default(item: &Element, report: &mut Report) -> Option<(String, String)> {
    attributes(item, &[], report);
    let (mut name, mut value) = (None, None);
    for_each(item, &["name", "value"], false, report, |member, report| {
        let text = text(member, report).map(str::to_owned);
        match member.name.as_str() {
            "name" => name = text,
            _ => value = text,
        }
    });
    let (Some(name), Some(value)) = (name, value) else {
        report.error(item.at, "a variable has a 'name' and a 'value'");
        return None;
    };
    if !is_name(&name) {
        let name = quote(&name);
        let message = format!("{name} is no name of a variable: letters, digits, '_', '.', '-'");
        report.error(item.at, message);
        return None;
    }
    if value.contains("$(") {
        let (name, value) = (quote(&name), quote(&value));
        let message = format!("the default of {name} is {value}; it must not have variables in it");
        report.error(item.at, message);
        return None;
    }
    Some((name, value))
}

struct Expansion<'a> {
    variables: &'a Variables,
    defaults: BTreeMap<String, String>,
    bytes_left: usize,
}

impl Expansion<'_> {
    fn element(&mut self, element: &mut Element, report: &mut Report) {
        let mut unset = Vec::new();
        let attributes = element.attributes.iter_mut().map(|(_, value)| value);
        for text in attributes.chain([&mut element.text]) {
            if text.contains("$(") {
                *text = self.text(text, &mut unset);
            }
        }
        element.unset = unset;
        if self.bytes_left == 0 {
            let message = format!("variables make the file larger than {EXPANDED_BYTES_MAX} bytes");
            return report.error(element.at, message);
        }
        for child in &mut element.children {
            self.element(child, report);
        }
    }

    fn text(&mut self, text: &str, unset: &mut Vec<String>) -> String {
        let mut expanded = String::new();
        let mut rest = text;
        while let Some((before, reference)) = rest.split_once("$(") {
            expanded.push_str(before);
            let name = reference.split_once(')').filter(|(name, _)| is_name(name));
            let Some((name, after)) = name else {
                expanded.push_str("$(");
                rest = reference;
                continue;
            };
            rest = after;
            let value = self.variables.get(name);
            match value.or_else(|| self.defaults.get(name).cloned()) {
                Some(value) => {
                    let length = value.len().min(self.bytes_left);
                    self.bytes_left -= length;
                    if length == value.len() {
                        expanded.push_str(&value);
                    }
                }
                None => unset.push(name.to_owned()),
            }
        }
        expanded.push_str(rest);
        expanded.trim().to_owned()
    }
}

fn is_name(name: &str) -> bool {
    let letters = name
        .bytes()
        .all(|c| c.is_ascii_alphanumeric() || b"_.-".contains(&c));
    !name.is_empty() && letters
}

const EXPANDED_BYTES_MAX: usize = 4 << 20;
