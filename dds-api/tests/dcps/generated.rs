//! The committed types are what the compiler makes of the committed IDL.

use spindle_dds_idl::Builder;

#[test]
fn the_types_are_those_of_the_idl() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/idl");
    for name in ["flight", "evolution", "large"] {
        let builder = Builder::new()
            .file(format!("{folder}/{name}.idl"))
            .serde(false);
        let (generated, _) = builder.generate_string().expect("the IDL is right");
        let path = format!("{folder}/{name}.rs");
        if std::env::var_os("SPINDLE_BLESS").is_some() {
            std::fs::write(&path, &generated).expect("the file can be written");
        }
        let committed = std::fs::read_to_string(&path).expect("the file is there");
        assert!(
            committed == generated,
            "run with SPINDLE_BLESS=1 to write {path} anew"
        );
    }
}
