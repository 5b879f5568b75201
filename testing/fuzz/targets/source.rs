//! Any text: the compiler ends, says what is wrong, and what it accepts makes Rust.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spindle_dds_idl::emit::{EmitError, EmitOptions, emit};
use spindle_dds_idl::model::{Model, TypeKind};
use spindle_dds_idl::{Options, compile_str, print};

fuzz_target!(|text: &[u8]| {
    let compilation = compile_str("fuzz.idl", text, &Options::default());
    for diagnostic in &compilation.diagnostics {
        assert!(!diagnostic.render().is_empty());
    }
    if let Ok(model) = compilation.ok() {
        let _ = print(model);
        match emit(model, &options(model)) {
            // Verbatim text need not be Rust.
            Ok(_) | Err(EmitError::Verbatim { .. }) => {}
            Err(error) => panic!("an accepted model does not make Rust: {error}"),
        }
    }
});

/// With a path for every `native` type.
fn options(model: &Model) -> EmitOptions {
    let mut options = EmitOptions::default();
    for decl in &model.types {
        if matches!(decl.kind, TypeKind::Native) {
            let scope: String = decl.scope.iter().map(|name| format!("{name}::")).collect();
            let name = format!("{scope}{}", decl.name);
            options
                .natives
                .insert(name, "::std::string::String".to_owned());
        }
    }
    options
}
