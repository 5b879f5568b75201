use std::fs;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};

use super::format;

fn formatted(text: &str) -> String {
    format(text.parse().expect("has tokens"), 0, "")
}

/// `text` and `expected` are both laid out as `expected`.
fn check(text: &str, expected: &str) {
    let expected = expected.trim_start_matches('\n');
    assert_eq!(formatted(text), expected);
    assert_eq!(formatted(expected), expected, "a second time");
}

#[test]
fn short_things_are_one_line() {
    check(
        "pub const A:u8=1;pub type B<'a,T>=Foo<'a,&'a [T;3]>;use a::{b,c,};",
        "
pub const A: u8 = 1;
pub type B<'a, T> = Foo<'a, &'a [T; 3]>;
use a::{ b, c };
",
    );
    check(
        "fn f(&self,x:&mut u8)->Option<Vec<Vec<u8>>>{*x=-1;let y=|a,b|a+b*(-2);!y(1<<3,a&&b)?.0..}",
        "
fn f(&self, x: &mut u8) -> Option<Vec<Vec<u8>>> {
    *x = -1;
    let y = |a, b| a + b * (-2);
    !y(1 << 3, a && b)?.0..
}
",
    );
}

#[test]
fn documentation_and_attributes_have_lines_of_their_own() {
    check(
        r##"#[doc=" \"A\" \\ \u{e4}."]#[derive(Debug,Clone)]pub struct A{#[doc=r#" B"#]#[serde(default)]pub b:u8,c:(u8,),}
            #[doc="/ no line"]#[doc="two\nlines"]enum E{}"##,
        r#"
/// "A" \ ä.
#[derive(Debug, Clone)]
pub struct A {
    /// B
    #[serde(default)]
    pub b: u8,
    c: (u8,),
}

#[doc = "/ no line"]
#[doc = "two\nlines"]
enum E {}
"#,
    );
}

#[test]
fn what_is_long_is_broken_from_the_outside() {
    check(
        "impl A { fn parameters_that_do_not_fit(first: ::core::option::Option<u8>, second: Another) \
         -> Result<()> { self.first.second_method(argument).third_method(another_argument).fourth_method(yet_another); \
         let variable: Type = call_of_a_function_with(one_argument_of_some_length, another_one_like_it_and_more); \
         let chain = outer(middle(inner_argument_number_one_of_two, inner_argument_number_two_of_two, three)); \
         let another = outer(middle(inner_argument_number_one_of_two, inner_argument_number_two_of_two, number_three)); \
         (0 | a(the_first_argument_of_a_call_that_is_rather_long, the_second_argument_of_it_too).unsigned(number)? | b); \
         Ok(Literal { a_field_of_some_length: 1, another_field_of_some_length: 2, a_third_field_of_it: 3 }) } }",
        "
impl A {
    fn parameters_that_do_not_fit(
        first: ::core::option::Option<u8>,
        second: Another,
    ) -> Result<()> {
        self.first
            .second_method(argument)
            .third_method(another_argument)
            .fourth_method(yet_another);
        let variable: Type =
            call_of_a_function_with(one_argument_of_some_length, another_one_like_it_and_more);
        let chain = outer(
            middle(inner_argument_number_one_of_two, inner_argument_number_two_of_two, three),
        );
        let another = outer(middle(
            inner_argument_number_one_of_two,
            inner_argument_number_two_of_two,
            number_three,
        ));
        (
            0
                | a(
                    the_first_argument_of_a_call_that_is_rather_long,
                    the_second_argument_of_it_too,
                ).unsigned(number)?
                | b
        );
        Ok(Literal {
            a_field_of_some_length: 1,
            another_field_of_some_length: 2,
            a_third_field_of_it: 3,
        })
    }
}
",
    );
}

#[test]
fn statements_that_are_blocks() {
    check(
        "fn f<T>(self)->u8 where T:A<B=C>,U:D{if a{b}else if c{d}else{e}while let Some(x)=y.next()?{match x{\
         Self::A(_)|Self::B{..}=>{1;}C=>return 2,_=>match z{}}}let v=match w{_=>0};f(|x|{g();x})}",
        "
fn f<T>(self) -> u8
where
    T: A<B = C>,
    U: D,
{
    if a {
        b
    } else if c {
        d
    } else {
        e
    }
    while let Some(x) = y.next()? {
        match x {
            Self::A(_) | Self::B { .. } => {
                1;
            }
            C => return 2,
            _ => match z {},
        }
    }
    let v = match w {
        _ => 0,
    };
    f(|x| {
        g();
        x
    })
}
",
    );
}

#[test]
fn what_a_comma_would_alter_has_none() {
    let name = "a_name_of_thirty_characters_xx";
    check(
        &format!(
            "macro_call!{{ [] {name} {name} {name} , }} fn f(x:[{name}::{name}::{name}::{name};2])->({name}::{name}::{name}::{name})\
             {{Self{{a:({name}+{name}+{name}+{name}),..{name}}}}}"
        ),
        &format!(
            "
macro_call! {{
    [] {name} {name} {name},
}}

fn f(x: [
    {name}::{name}::{name}::{name}; 2
]) -> (
    {name}::{name}::{name}::{name}
) {{
    Self {{
        a: (
            {name}
                + {name}
                + {name}
                + {name}
        ),
        ..{name}
    }}
}}
"
        ),
    );
}

#[test]
fn what_would_mean_something_else_stays_apart() {
    check(
        "const A:f32=1. .max(2.);m!{#[doc=\" B\"]struct B;}",
        "
const A: f32 = 1. .max(2.);
m! { #[doc = \" B\"] struct B; }
",
    );
}

#[test]
fn items_at_the_root_may_have_something_before() {
    let tokens = "#[doc = \" A.\"] struct A; a! { B } fn b() {}".parse();
    let text = format(tokens.expect("has tokens"), 0, "#[allow(dead_code)]\n");
    let expected =
        "#[allow(dead_code)]\n/// A.\nstruct A;\n\na! { B }\n\n#[allow(dead_code)]\nfn b() {}\n";
    assert_eq!(text, expected);
}

/// All tokens except commas before closing brackets, one per line.
fn flattened(stream: TokenStream, text: &mut String) {
    let mut trees = stream.into_iter().peekable();
    while let Some(tree) = trees.next() {
        match tree {
            TokenTree::Group(group) => {
                *text += &format!("{:?}\n", group.delimiter());
                flattened(group.stream(), text);
                *text += "end\n";
            }
            TokenTree::Punct(punct) if punct.as_char() == ',' && trees.peek().is_none() => {}
            tree => *text += &format!("{tree}\n"),
        }
    }
}

/// The source of this crate, most of it unlike generated code: the layout may be odd, but the
/// tokens are the same.
#[test]
fn no_token_is_lost() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("is a folder") {
            let path = entry.expect("is an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let source = fs::read_to_string(&path).expect("is text");
            let text = formatted(&source);
            let [mut one, mut other] = [String::new(), String::new()];
            flattened(source.parse().expect("is Rust"), &mut one);
            flattened(text.parse().expect("has tokens"), &mut other);
            assert_eq!(one, other, "{}", path.display());
            syn::parse_file(&text).expect("is Rust still");
            assert_eq!(formatted(&text), text, "a second time: {}", path.display());
            files += 1;
        }
    }
    assert!(files > 50, "{files}");
}
