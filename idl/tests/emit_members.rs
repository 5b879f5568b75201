//! Generated code of members of every kind, to be read by a person.

use spindle_dds_idl::emit::{EmitOptions, emit};
use spindle_dds_idl::{Options, compile_str};

fn generate(idl: &str, serde: bool) -> String {
    let compilation = compile_str("test.idl", idl.as_bytes(), &Options::default());
    let model = compilation.ok().expect("the IDL is right");
    let options = EmitOptions {
        serde,
        ..EmitOptions::default()
    };
    emit(model, &options).expect("the options are right")
}

/// The members as types, and the lines of the structure itself.
fn check(name: &str, idl: &str) {
    let text = generate(idl, true);
    let mut kept = String::new();
    for (start, end) in [
        ("pub struct S {", "\n    }"),
        ("pub mod SMembers {", "\n    }"),
    ] {
        let from = text.find(start).expect("is generated");
        let length = text[from..].find(end).expect("ends");
        kept.push_str(&text[from..from + length + end.len()]);
        kept.push('\n');
    }
    insta::assert_snapshot!(name, kept);
}

#[test]
fn annotations() {
    check(
        "annotations",
        r#"module m {
          @range(min = 0, max = 9) typedef octet Digit;
          @mutable @nested struct S {
            @optional long maybe;
            @external string far;
            @optional @external string<4> both;
            @must_understand long must;
            @non_serialized @default(3) long hidden;
            // Height.
            @unit("m") @range(min = -0.5, max = 2.0) double height;
            @try_construct(TRIM) string<3> cut;
            @try_construct(USE_DEFAULT) @default("none") string<4> kept;
            sequence<@try_construct(TRIM) string<3>, 2> words;
            sequence<Digit> digits;
          };
        };"#,
    );
}

#[test]
fn types() {
    check(
        "types",
        r#"module m {
          @nested struct S {
            @default(L'x') wchar letter;
            @default(L"wide") wstring<4> text;
            @default(0.1) long double quad;
            @default(1.25d) fixed<4, 3> price;
            map<string, sequence<octet>, 5> blobs;
            map<long, long> table;
            @optional octet large[100];
          };
        };"#,
    );
}

#[test]
fn inheritance_and_recursion() {
    let idl = "module m {
      @final struct Base { long type; };
      @final struct Node : Base { @optional Node next; };
    };";
    insta::assert_snapshot!("inheritance_and_recursion", generate(idl, false));
}
