//! Tokens as text, laid out almost as rustfmt would, for readers of generated code.
//!
//! Generated code is long and of known syntax, so there is no syntax tree: `tokens` puts
//! all tokens into one list, `spacing` finds the role of each, `parts` groups them, and
//! `lines` breaks ranges that do not fit into a line, from the outside in. For any input
//! the text consists of the same tokens, except for commas before closing brackets:
//! unknown syntax is at worst laid out badly.

mod lines;
mod parts;
mod spacing;
mod tokens;

#[cfg(test)]
mod tests;

use proc_macro2::TokenStream;

use lines::Lines;
use tokens::Tokens;

/// Longest line in bytes, unless it cannot be broken.
const WIDTH: usize = 100;

/// Columns of indentation per level.
const STEP: usize = 4;

/// Items inside `depth` modules. Each item that is not a macro call is preceded by the text
/// `before`, whole lines without indentation.
pub(super) fn format(items: TokenStream, depth: usize, before: &str) -> String {
    let mut tokens = Tokens::of(items);
    spacing::arrange(&mut tokens);
    let mut lines = Lines::new(&tokens, depth * STEP);
    lines.items(0..tokens.list.len(), depth * STEP, before);
    lines.finish()
}
