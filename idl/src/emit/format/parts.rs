//! The parts of a range of tokens: items, statements, arms, elements of lists.

use std::ops::Range;

use super::spacing::Class;
use super::tokens::{Bracket, Kind, Tokens};

impl Tokens {
    pub(super) fn is(&self, index: usize, text: &str) -> bool {
        self.text_at(index) == text
    }

    /// Whether brackets with something in them open.
    pub(super) fn opens(&self, index: usize) -> bool {
        let token = &self.list[index];
        matches!(token.kind, Kind::Open(_)) && token.partner > index + 1
    }

    /// The first possible line break: after an opening bracket, except angle brackets.
    pub(super) fn breakable(&self, range: &Range<usize>) -> Option<usize> {
        let angle = Kind::Open(Bracket::Angle);
        let mut outermost = self.outermost(range);
        outermost.find(|index| self.opens(*index) && self.list[*index].kind != angle)
    }

    /// The first word, after `pub` if present.
    pub(super) fn first_word(&self, start: usize) -> usize {
        match (self.is(start, "pub"), self.is(start + 1, "(")) {
            (true, true) => self.after(start + 1),
            (true, false) => start + 1,
            _ => start,
        }
    }

    /// The position after documentation and attributes.
    pub(super) fn behind_attributes(&self, range: &Range<usize>) -> usize {
        let mut start = range.start;
        while start < range.end {
            match self.attribute_end(start) {
                Some(end) => start = end,
                None if self.list[start].kind == Kind::Doc => start += 1,
                None => break,
            }
        }
        start
    }

    /// The position after the attribute that starts here.
    pub(super) fn attribute_end(&self, start: usize) -> Option<usize> {
        if !self.is(start, "#") {
            return None;
        }
        let opening = start + 1 + usize::from(self.is(start + 1, "!"));
        self.is(opening, "[").then(|| self.after(opening))
    }

    /// The end of the item or statement that starts here.
    pub(super) fn item_end(&self, start: usize, end: usize) -> usize {
        let start = self.behind_attributes(&(start..end));
        let first = self.first_word(start);
        let ends_in_semicolon = match self.text_at(first) {
            "let" | "use" | "static" | "type" | "return" | "break" => true,
            "const" => !matches!(self.text_at(first + 1), "fn" | "unsafe" | "async" | "{"),
            _ => false,
        };
        for index in self.outermost(&(start..end)) {
            let token = &self.list[index];
            if self.is(index, ";") {
                return index + 1;
            }
            let is_last = token.kind == Kind::Open(Bracket::Curly)
                && !ends_in_semicolon
                && token.class != Class::List;
            let next = self.after(index);
            if is_last && !matches!(self.text_at(next), ";" | "." | "?" | "else") {
                return next;
            }
        }
        end
    }

    /// Whether it is an item with a body, which gets blank lines around it.
    pub(super) fn is_tall(&self, range: Range<usize>) -> bool {
        let first = self.first_word(self.behind_attributes(&range));
        match self.text_at(first) {
            "fn" | "impl" | "trait" | "mod" | "struct" | "enum" => true,
            "const" | "unsafe" | "async" | "extern" => {
                matches!(self.text_at(first + 1), "fn" | "unsafe" | "impl" | "extern")
            }
            _ => false,
        }
    }

    pub(super) fn is_macro_call(&self, range: Range<usize>) -> bool {
        let start = self.behind_attributes(&range);
        let mut outermost = self.outermost(&(start..range.end));
        outermost.any(|index| self.opens(index) && self.is_macro(index))
    }

    /// The braces that end a range, unless they are a list.
    pub(super) fn body(&self, range: &Range<usize>) -> Option<usize> {
        let last = &self.list[range.end - 1];
        let opening = last.partner;
        let is_body = last.kind == Kind::Close(Bracket::Curly)
            && opening >= range.start
            && self.list[opening].class.is_broken();
        is_body.then_some(opening)
    }

    /// The `=` or `=>` with operands on both sides.
    pub(super) fn assignment(&self, range: &Range<usize>) -> Option<usize> {
        if matches!(self.text_at(range.start), "if" | "while") {
            return None;
        }
        let mut outermost = self.outermost(range);
        let found = outermost.find(|index| matches!(self.text_at(*index), "=" | "=>"))?;
        (found + 1 < range.end).then_some(found)
    }

    /// Whether a candidate is an arm whose body is not a block.
    pub(super) fn arm_has_comma(&self, part: &Range<usize>) -> bool {
        let mut outermost = self.outermost(part);
        let arrow = outermost.find(|index| self.is(*index, "=>"));
        arrow.is_some_and(|arrow| self.body(part) != Some(arrow + 1))
    }

    /// The parts between commas, and in `match` also between arms that are blocks.
    pub(super) fn parts(&self, range: Range<usize>, class: Class) -> Vec<Range<usize>> {
        let mut parts = Vec::new();
        let mut start = range.start;
        for index in self.outermost(&range) {
            let next = self.after(index);
            if self.list[index].separates {
                if start < index {
                    parts.push(start..index);
                }
                start = index + 1;
            } else if class == Class::Arms
                && self.list[index].class == Class::Block
                && index > 0
                && self.is(index - 1, "=>")
                && !matches!(self.text_at(next), "." | "?")
            {
                parts.push(start..next);
                start = next;
            }
        }
        if start < range.end {
            parts.push(start..range.end);
        }
        parts
    }
}
