//! Any text: the compiler ends, says what is wrong, and what it accepts makes Rust.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spindle_dds_idl::emit::{EmitOptions, emit};
use spindle_dds_idl::{Options, compile_str};

fuzz_target!(|text: &[u8]| {
    let compilation = compile_str("fuzz.idl", text, &Options::default());
    for diagnostic in &compilation.diagnostics {
        assert!(!diagnostic.render().is_empty());
    }
    if let Ok(model) = compilation.ok() {
        emit(model, &EmitOptions::default()).expect("an accepted model makes Rust that parses");
    }
});
