//! What all elements with members have in common.

use crate::diagnostic::{Report, did_you_mean, quote};
use crate::xml::tree::Element;
use crate::xml::{variables, vendor};

/// Calls `member` for each child of `element` that `known` names, at most once a
/// name unless `repeated`; reports stray text and other children.
pub(crate) fn for_each(
    element: &Element,
    known: &[&str],
    repeated: bool,
    report: &mut Report,
    mut member: impl FnMut(&Element, &mut Report),
) {
    no_text(element, report);
    let mut seen: Vec<&str> = Vec::new();
    for child in &element.children {
        let name = child.name.as_str();
        if !known.contains(&name) {
            unknown(element, child, known, report);
        } else if seen.contains(&name) && !repeated {
            let message = format!("{} is given twice in {}", quote(name), quote(&element.name));
            report.error(child.at, message);
        } else {
            if !seen.contains(&name) {
                seen.push(name);
            }
            member(child, report);
        }
    }
}

/// Reports the attributes of `element` that are not among `known`, and variables without value.
pub(crate) fn attributes(element: &Element, known: &[&str], report: &mut Report) {
    for name in &element.unset {
        report.error(
            element.at,
            format!(
                "variable {} is not set, and has no default in this file's {}",
                quote(name),
                quote(variables::DEFAULTS)
            ),
        );
    }
    for (name, _) in &element.attributes {
        if known.contains(&name.as_str()) {
            continue;
        }
        let hint = did_you_mean(name, known.iter().copied());
        let of_dialect = element.dialect.filter(|_| hint.is_empty());
        match vendor::of_attribute(name).or(of_dialect) {
            Some(vendor) => report.warning(
                element.at,
                format!(
                    "attribute {} is of {vendor}, not of DDS-XML; it is ignored",
                    quote(name)
                ),
            ),
            None => report.error(
                element.at,
                format!(
                    "{} has no attribute {}{hint}",
                    quote(&element.name),
                    quote(name),
                ),
            ),
        }
    }
}

/// The boolean attribute `name`; `default` when it is absent or wrong.
pub(crate) fn flag(element: &Element, name: &str, default: bool, report: &mut Report) -> bool {
    let Some(text) = element.attribute(name) else {
        return default;
    };
    match text {
        "true" | "1" => true,
        "false" | "0" => false,
        _ => {
            let message = format!(
                "attribute {name} is {}; it must be true or false",
                quote(text)
            );
            report.error(element.at, message);
            default
        }
    }
}

/// Reports text where only elements belong.
pub(crate) fn no_text(element: &Element, report: &mut Report) {
    if !element.text.is_empty() {
        let (text, name) = (quote(&element.text), quote(&element.name));
        report.error(
            element.text_at,
            format!("text {text} in {name}, which holds only elements"),
        );
    }
}

/// Reports children where only text belongs.
pub(crate) fn no_children(element: &Element, report: &mut Report) {
    if let Some(child) = element.children.first() {
        let (inner, name) = (quote(&child.name), quote(&element.name));
        report.error(
            child.at,
            format!("element {inner} in {name}, which holds only a value"),
        );
    }
}

/// Reports a child that its parent has no member for.
pub(crate) fn unknown(parent: &Element, child: &Element, known: &[&str], report: &mut Report) {
    if report.is_full() {
        return;
    }
    let name = quote(&child.name);
    let hint = did_you_mean(&child.name, known.iter().copied());
    // A name of the standard that is misspelt is no product's own.
    let of_dialect = child.dialect.filter(|_| hint.is_empty());
    if let Some(vendor) = vendor::of_element(&parent.name, &child.name).or(of_dialect) {
        let message = format!("{name} is of {vendor}, not of DDS-XML; it is ignored");
        return report.warning(child.at, message);
    }
    let hint = match hint {
        hint if !hint.is_empty() => hint,
        _ if known.len() <= SHORT_LIST => format!("; it has {}", known.join(", ")),
        _ => String::new(),
    };
    report.error(
        child.at,
        format!("{} has no member {name}{hint}", quote(&parent.name)),
    );
}

const SHORT_LIST: usize = 8;
