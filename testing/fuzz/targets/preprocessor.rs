//! Text in which every line is a directive or uses macros: a byte of the input chooses how a
//! line begins, so that most inputs get past the first `#`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spindle_dds_idl::{Options, compile_str};

const STARTS: [&str; 16] = [
    "#define A ",
    "#define B(x, y) ",
    "#undef ",
    "#if ",
    "#ifdef ",
    "#ifndef ",
    "#elif ",
    "#else ",
    "#endif ",
    "#include ",
    "#pragma ",
    "#line ",
    "A ",
    "B(",
    "const long x = ",
    "",
];

fuzz_target!(|bytes: &[u8]| {
    let mut text = Vec::with_capacity(bytes.len() * 4);
    for line in bytes.split(|byte| *byte == b'\n') {
        if let Some((choice, rest)) = line.split_first() {
            let start = STARTS[usize::from(*choice) % STARTS.len()];
            text.extend_from_slice(start.as_bytes());
            text.extend_from_slice(rest);
        }
        text.push(b'\n');
    }
    let options = Options {
        defines: vec![("OUTSIDE".to_owned(), Some("A B(1, 2)".to_owned()))],
        ..Options::default()
    };
    let compilation = compile_str("fuzz.idl", &text, &options);
    assert!(compilation.ok().is_ok() || !compilation.diagnostics.is_empty());
});
