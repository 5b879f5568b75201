//! The page of the mapping.

use spindle_dds_idl::mapping::{PROFILE_VERSION, table_markdown};

#[test]
fn the_page_is_the_table() {
    let page = format!(
        "# From IDL 4.2 to Rust\n\nOMG has no mapping to Rust yet. This is profile {PROFILE_VERSION} \
         of ours: what is planned is\nrefused, or says in a warning that it has no effect, until it \
         is done. Written by the compiler\n(`idl/src/mapping.rs`), with `SPINDLE_BLESS=1 cargo test \
         -p spindle-dds-idl --test mapping`.\n\n{}",
        table_markdown()
    );
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/idl-mapping.md");
    if std::env::var_os("SPINDLE_BLESS").is_some() {
        std::fs::write(path, &page).expect("the file can be written");
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == page,
        "run with SPINDLE_BLESS=1 to write {path} anew"
    );
}
