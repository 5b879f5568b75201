//! What is said of broken files: one snapshot for each file in `data/broken`.

use std::fs;
use std::path::Path;

use spindle_dds_qos::{LoadError, QosProvider, Severity};

/// All that is said of one file, a remark a line.
fn remarks(name: &str, bytes: &[u8]) -> String {
    let remarks = match QosProvider::from_sources([(name, bytes)]) {
        Ok(provider) => provider.check(),
        Err(LoadError::Invalid { diagnostics }) => diagnostics,
        Err(other) => panic!("{other}"),
    };
    remarks
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn broken_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/broken");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    assert!(paths.len() > 10);
    for path in paths {
        let name = path.file_name().unwrap().to_str().unwrap();
        insta::assert_snapshot!(name, remarks(name, &fs::read(&path).unwrap()));
    }
}

#[test]
fn the_omg_qos_example_by_itself_lacks_six_names() {
    let bytes = include_bytes!("data/omg/dds-xml_qos_example.xml");
    insta::assert_snapshot!(remarks("dds-xml_qos_example.xml", bytes));
}

/// The examples show the syntax of a draft, and refer to much that they do not contain.
#[test]
fn the_other_omg_examples() {
    for part in [
        "type",
        "domain",
        "domainparticipant",
        "application",
        "deployment",
    ] {
        let name = format!("dds-xml_{part}_example.xml");
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/omg");
        let bytes = fs::read(folder.join(&name)).unwrap();
        insta::assert_snapshot!(name.clone(), remarks(&name, &bytes));
    }
}

#[test]
fn the_earlier_schema_is_read_with_warnings() {
    let bytes = include_bytes!("data/earlier_schema.xml");
    insta::assert_snapshot!(remarks("earlier_schema.xml", bytes));
}

#[test]
fn any_namespace_and_prefix_will_do() {
    let text = "<d:dds xmlns:d='urn:x' d:version='1'><d:qos_library name='L'>\
                <d:qos_profile name='P'><d:topic_qos/></d:qos_profile></d:qos_library></d:dds>";
    assert_eq!(remarks("prefix.xml", text.as_bytes()), "");
}

#[test]
fn a_chain_of_a_thousand_profiles_is_refused() {
    for rising in [true, false] {
        let profile = |n: u32| {
            let base = if rising { n + 1 } else { n.wrapping_sub(1) };
            let base = if base < 1000 {
                format!("base_name='P{base}'")
            } else {
                String::new()
            };
            format!("<qos_profile name='P{n}' {base}/>")
        };
        let profiles: String = (0..1000).map(profile).collect();
        let text = format!("<dds><qos_library name='L'>{profiles}</qos_library></dds>");
        assert!(remarks("chain.xml", text.as_bytes()).contains("inheritance goes over more than"));
    }
}

#[test]
fn snippets_that_double_at_each_step_are_refused() {
    let snippet = |n: u32| {
        let next = format!("<snippet snippet_ref='S{}'/>", n + 1);
        format!("<qos_snippet name='S{n}'><qos_snippets>{next}{next}</qos_snippets></qos_snippet>")
    };
    let snippets: String = (0..60).map(snippet).collect();
    // Also if there is nothing at their end.
    for last in ["<topic_qos/>", ""] {
        let last = format!("<qos_snippet name='S60'>{last}</qos_snippet>");
        let text = format!("<dds><qos_library name='L'>{snippets}{last}</qos_library></dds>");
        assert!(remarks("double.xml", text.as_bytes()).contains("inheritance goes over more than"));
    }
}

#[test]
fn remarks_come_to_an_end() {
    let text = format!("<dds>{}</dds>", "<nonsense/>".repeat(45_000));
    assert!(remarks("many.xml", text.as_bytes()).lines().count() < 300);
}

#[test]
fn remarks_serialize_flat() {
    let error = QosProvider::from_str("<x/>", "x.xml").unwrap_err();
    let LoadError::Invalid { diagnostics } = error else {
        panic!("{error}")
    };
    assert_eq!(diagnostics[0].severity, Severity::Error);
    insta::assert_snapshot!(
        serde_json::to_string(&diagnostics[0]).unwrap(),
        @r#"{"file":"x.xml","line":1,"column":1,"severity":"error","message":"'x' is no root of DDS-XML; it must be 'dds', 'qos_library' or another library of it, or 'types'"}"#
    );
}
