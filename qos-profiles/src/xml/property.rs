//! Properties, in both spellings that the schema of DDS-XML has.
//!
//! ```text
//! <property><value>                        <properties>
//!   <element>                                <property name="a">1</property>
//!     <name>a</name><value>1</value>       </properties>
//!   </element>
//! </value></property>
//! ```
//!
//! They merge with inherited ones by name, unless `inherit="false"`.

use crate::diagnostic::{Report, quote};
use crate::location::Origins;
use crate::policy::{Properties, Property};
use crate::policy_id::PolicyId;
use crate::xml::members::{attributes, flag, for_each, no_children};
use crate::xml::tree::Element;
use crate::xml::value::{Value, sequence, text};

/// Reads `<property>`.
pub(crate) fn read_property(
    properties: &mut Properties,
    origins: &mut Origins,
    element: &Element,
    report: &mut Report,
) {
    start(properties, origins, element, report);
    for_each(element, &["value"], false, report, |value, report| {
        attributes(value, &[], report);
        sequence(value, report, |item, report| {
            attributes(item, &[], report);
            let property = element_item(item, report);
            insert((properties, origins), property, item, report);
        });
    });
}

/// Reads `<properties>`.
pub(crate) fn read_properties(
    properties: &mut Properties,
    origins: &mut Origins,
    element: &Element,
    report: &mut Report,
) {
    start(properties, origins, element, report);
    for_each(element, &["property"], true, report, |item, report| {
        attributes(item, &["name", "propagate"], report);
        no_children(item, report);
        let property = Property {
            name: item.attribute("name").unwrap_or_default().to_owned(),
            value: item.text.clone(),
            propagate: flag(item, "propagate", false, report),
        };
        insert((properties, origins), property, item, report);
    });
}

fn start(
    properties: &mut Properties,
    origins: &mut Origins,
    element: &Element,
    report: &mut Report,
) {
    attributes(element, &["inherit"], report);
    if !flag(element, "inherit", true, report) {
        properties.clear();
        origins.forget(PolicyId::Property);
    }
}

fn element_item(item: &Element, report: &mut Report) -> Property {
    let mut property = Property {
        name: String::new(),
        value: String::new(),
        propagate: false,
    };
    let known = &["name", "value", "propagate"];
    for_each(item, known, false, report, |member, report| {
        match member.name.as_str() {
            "name" => property.name = text(member, report).unwrap_or_default().to_owned(),
            "value" => property.value = text(member, report).unwrap_or_default().to_owned(),
            _ => property.propagate.set(member, report),
        }
    });
    property
}

fn insert(
    (properties, origins): (&mut Properties, &mut Origins),
    property: Property,
    item: &Element,
    report: &mut Report,
) {
    if property.name.is_empty() {
        return report.error(item.at, "a property without a name");
    }
    if FOREIGN
        .iter()
        .any(|prefix| property.name.starts_with(prefix))
    {
        let name = quote(&property.name);
        report.warning(
            item.at,
            format!("property {name} has no effect here; ours begin with 'spindle.'"),
        );
    }
    origins.record_value(PolicyId::Property, &property.name, report.location(item.at));
    properties.insert(property);
}

/// How the names of other products' properties begin.
const FOREIGN: &[&str] = &[
    "dds.",
    "rti.",
    "com.rti.",
    "fastdds.",
    "eprosima.",
    "cyclone.",
];
