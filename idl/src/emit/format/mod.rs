//! Tokens as text that is laid out as rustfmt would, or nearly: items to be read.
//!
//! Generated code is long, and its syntax is known, so there is no syntax tree: `tokens`
//! puts all tokens into one list, `spacing` says what each of them is for, `parts` what they
//! make up, and `lines` breaks what does not fit into a line, from the outside in. Whatever the tokens are, the
//! text is the same tokens again, but for commas before closing brackets: what is not
//! understood is at worst not pretty.

mod lines;
mod parts;
mod spacing;
mod tokens;

#[cfg(test)]
mod tests;

use proc_macro2::TokenStream;

use lines::Lines;
use tokens::Tokens;

/// Bytes of the longest line that can be avoided.
const WIDTH: usize = 100;

/// Columns that each pair of brackets moves what is in it to the right.
const STEP: usize = 4;

/// Items in as many modules as `depth` says. Each that is no call of a macro has the text
/// `before` in front, whole lines that are not indented.
pub(super) fn format(items: TokenStream, depth: usize, before: &str) -> String {
    let mut tokens = Tokens::of(items);
    spacing::arrange(&mut tokens);
    let mut lines = Lines::new(&tokens, depth * STEP);
    lines.items(0..tokens.list.len(), depth * STEP, before);
    lines.finish()
}
