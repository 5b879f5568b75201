//! Line breaks.
//!
//! A range that fits into one line becomes one. Otherwise its outermost breakable part is
//! broken: a block into its statements, an assignment after the `=`, a chain before its
//! dots, a list after its commas.

use std::ops::Range;

use super::spacing::{Class, comma_is_free};
use super::tokens::{Bracket, Kind, Tokens};
use super::{STEP, WIDTH};

pub(super) struct Lines<'t> {
    tokens: &'t Tokens,
    text: String,
    /// Bytes in the line so far.
    column: usize,
    /// Whether the line has only indentation so far.
    fresh: bool,
}

impl<'t> Lines<'t> {
    pub(super) fn new(tokens: &'t Tokens, indent: usize) -> Self {
        let bytes = tokens.list.last().map_or(0, |last| last.width_before);
        let mut lines = Self {
            tokens,
            text: String::with_capacity(bytes * 2),
            column: indent,
            fresh: true,
        };
        lines.indent(indent);
        lines
    }

    /// The text, with its last line terminated.
    pub(super) fn finish(mut self) -> String {
        let end = self.text.trim_end_matches([' ', '\n']).len();
        self.text.truncate(end);
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text
    }

    /// Items or statements, one below the other.
    pub(super) fn items(&mut self, range: Range<usize>, indent: usize, before: &str) {
        let mut start = range.start;
        let mut is_spaced = true;
        while start < range.end {
            let end = self.tokens.item_end(start, range.end);
            let is_tall = self.tokens.is_tall(start..end);
            if start > range.start {
                if is_tall || is_spaced {
                    self.text.push('\n');
                }
                self.line(indent);
            }
            if !before.is_empty() && !self.tokens.is_macro_call(start..end) {
                self.text.push_str(before);
            }
            self.part(start..end, indent, 0);
            is_spaced = is_tall;
            start = end;
        }
    }

    fn line(&mut self, indent: usize) {
        self.text.push('\n');
        self.indent(indent);
    }

    fn indent(&mut self, indent: usize) {
        self.text.extend(std::iter::repeat_n(' ', indent));
        (self.column, self.fresh) = (indent, true);
    }

    fn push(&mut self, index: usize) {
        let token = &self.tokens.list[index];
        if token.space && !self.fresh {
            self.text.push(' ');
            self.column += 1;
        }
        self.text.push_str(self.tokens.text(token));
        self.column += token.width();
        self.fresh = false;
    }

    fn push_comma(&mut self) {
        self.text.push(',');
        self.column += 1;
    }

    fn flat(&mut self, range: Range<usize>) {
        for index in range {
            if !self.tokens.list[index].free {
                self.push(index);
            }
        }
    }

    /// Bytes in one line, without a space before.
    fn width(&self, range: &Range<usize>) -> usize {
        let list = &self.tokens.list;
        match range.clone().last() {
            Some(last) => {
                let last = &list[last];
                let own = if last.free { 0 } else { last.width() };
                last.width_before + own - list[range.start].width_before
            }
            None => 0,
        }
    }

    /// Whether a part of the range needs a line of its own.
    fn is_broken(&self, range: &Range<usize>) -> bool {
        let before = |index: usize| self.tokens.list[index].breaks_before;
        match range.clone().last() {
            Some(last) => {
                let token = &self.tokens.list[last];
                before(last) > before(range.start) || token.kind == Kind::Doc
            }
            None => false,
        }
    }

    /// Whether the range and `trailing` more bytes fit into the rest of the line.
    fn fits(&self, range: &Range<usize>, trailing: usize) -> bool {
        let space = !self.fresh && self.tokens.list[range.start].space;
        let column = self.column + usize::from(space);
        !self.is_broken(range) && column + self.width(range) + trailing <= WIDTH
    }

    // Printing of ranges.

    /// An item, a statement, or a part of a list: attributes, each on its line, and the
    /// rest. `trailing` bytes follow it.
    fn part(&mut self, range: Range<usize>, indent: usize, trailing: usize) {
        let mut start = range.start;
        let rest = self.tokens.behind_attributes(&range);
        while start < rest {
            let end = self.tokens.attribute_end(start).unwrap_or(start + 1);
            self.groups(start..end, indent, 0);
            if end < range.end {
                self.line(indent);
            }
            start = end;
        }
        match rest < range.end && self.tokens.is(range.end - 1, ";") {
            true => {
                self.run(rest..range.end - 1, indent, trailing + 1);
                self.push(range.end - 1);
            }
            false => self.run(rest..range.end, indent, trailing),
        }
    }

    /// Anything without attributes.
    fn run(&mut self, range: Range<usize>, indent: usize, trailing: usize) {
        if range.is_empty() {
            return;
        }
        if self.fits(&range, trailing) {
            return self.flat(range);
        }
        if let Some(body) = self.tokens.body(&range) {
            self.head(range.start..body, indent);
            return self.bracket(body, indent);
        }
        if let Some(assignment) = self.tokens.assignment(&range) {
            return self.assigned(range, assignment, indent, trailing);
        }
        let operators = self.operators(&range);
        if !operators.is_empty() {
            return self.taken_apart(range, &operators, indent, trailing);
        }
        let dots = self.dots(&range);
        if !dots.is_empty() {
            return self.taken_apart(range, &dots, indent, trailing);
        }
        self.groups(range, indent, trailing);
    }

    /// The text before a body.
    fn head(&mut self, range: Range<usize>, indent: usize) {
        let mut outermost = self.tokens.outermost(&range);
        let Some(condition) = outermost.find(|index| self.tokens.is(*index, "where")) else {
            // With ` {`.
            return self.run(range, indent, 2);
        };
        self.run(range.start..condition, indent, 0);
        self.line(indent);
        self.push(condition);
        for bound in self.tokens.parts(condition + 1..range.end, Class::List) {
            self.line(indent + STEP);
            self.run(bound, indent + STEP, 1);
            self.push_comma();
        }
        self.line(indent);
    }

    fn assigned(&mut self, range: Range<usize>, at: usize, indent: usize, trailing: usize) {
        self.groups(range.start..at + 1, indent, 0);
        let rest = at + 1..range.end;
        let inner = indent + STEP;
        let fits_below = !self.is_broken(&rest) && inner + self.width(&rest) + trailing <= WIDTH;
        let begins_here = match self.tokens.breakable(&rest) {
            Some(opening) => self.column + 1 + self.width(&(rest.start..opening + 1)) <= WIDTH,
            None => false,
        };
        match fits_below || !begins_here {
            true => {
                self.line(inner);
                self.run(rest, inner, trailing);
            }
            false => self.run(rest, indent, trailing),
        }
    }

    /// Breaks before operators between parts, if the first part fits.
    fn operators(&self, range: &Range<usize>) -> Vec<usize> {
        let operators = self.tokens.outermost(range).filter(|index| {
            let token = &self.tokens.list[*index];
            token.binary && matches!(self.tokens.text(token), "||" | "&&" | "|" | "+")
        });
        let operators: Vec<_> = operators.collect();
        match operators.first() {
            Some(first) if self.fits(&(range.start..*first), 0) => operators,
            _ => Vec::new(),
        }
    }

    /// The dots of method calls, if there are several. The first stays on the line of a short word.
    fn dots(&self, range: &Range<usize>) -> Vec<usize> {
        let is_called = |dot: usize| {
            let behind = self.tokens.after(dot + 1);
            self.tokens.is(behind, "(")
                || (self.tokens.is(behind, "::") && self.tokens.is(behind + 1, "<"))
        };
        let mut dots: Vec<_> = self
            .tokens
            .outermost(range)
            .filter(|index| {
                self.tokens.is(*index, ".") && index + 2 < range.end && is_called(*index)
            })
            .collect();
        let Some(first) = dots.first().copied() else {
            return dots;
        };
        let root = range.start..first;
        let is_chain = dots.len() > 1 || self.tokens.breakable(&root).is_some();
        if !is_chain || self.ends_tall(range) {
            return Vec::new();
        }
        if self.width(&root) <= STEP {
            dots.remove(0);
        }
        dots
    }

    /// Whether all but the contents of the last brackets fits, and the contents fit on no line.
    fn ends_tall(&self, range: &Range<usize>) -> bool {
        let outermost = self.tokens.outermost(range);
        let Some(last) = outermost.filter(|index| self.tokens.opens(*index)).last() else {
            return false;
        };
        let partner = self.tokens.list[last].partner;
        self.is_broken(&(last..partner + 1)) && self.fits(&(range.start..last + 1), 0)
    }

    /// With a new line before each of `places`.
    fn taken_apart(
        &mut self,
        range: Range<usize>,
        places: &[usize],
        indent: usize,
        trailing: usize,
    ) {
        let inner = indent + STEP;
        let (mut start, mut column) = (range.start, indent);
        for place in places {
            self.groups(start..*place, column, 0);
            self.line(inner);
            (start, column) = (*place, inner);
        }
        self.groups(start..range.end, column, trailing);
    }

    /// Prints from left to right, and breaks brackets that do not fit.
    fn groups(&mut self, range: Range<usize>, indent: usize, trailing: usize) {
        let mut index = range.start;
        while index < range.end {
            let next = self.tokens.after(index);
            if !self.tokens.opens(index) {
                self.push(index);
                if self.tokens.list[index].kind == Kind::Doc && next < range.end {
                    self.line(indent);
                }
                index += 1;
                continue;
            }
            let rest = next..range.end;
            let behind = match self.tokens.breakable(&rest) {
                Some(opening) => self.width(&(rest.start..opening + 1)),
                None => self.width(&rest) + trailing,
            };
            let space = rest.start < rest.end && self.tokens.list[rest.start].space;
            match self.fits(&(index..next), behind + usize::from(space)) {
                true => self.flat(index..next),
                false => self.bracket(index, indent),
            }
            index = next;
        }
    }

    /// Prints brackets with their contents on lines of their own.
    fn bracket(&mut self, opening: usize, indent: usize) {
        let token = &self.tokens.list[opening];
        let (class, inside) = (token.class, opening + 1..token.partner);
        if inside.is_empty() {
            return self.flat(opening..inside.end + 1);
        }
        let closing = inside.end;
        match self.hugged(opening, indent) {
            Some(inner) => {
                self.flat(opening..inner);
                self.bracket(inner, indent);
                return self.push(closing);
            }
            None => self.push(opening),
        }
        self.line(indent + STEP);
        match class {
            Class::Block => self.items(inside, indent + STEP, ""),
            _ => self.list(opening, inside, indent + STEP),
        }
        self.line(indent);
        self.push(closing);
    }

    /// Prints one part per line.
    fn list(&mut self, opening: usize, inside: Range<usize>, indent: usize) {
        let class = self.tokens.list[opening].class;
        let has_comma = self.tokens.list[inside.end - 1].separates;
        let parts = self.tokens.parts(inside, class);
        let count = parts.len();
        for (index, part) in parts.into_iter().enumerate() {
            if index > 0 {
                self.line(indent);
            }
            let comma = match class == Class::Arms {
                true => self.tokens.arm_has_comma(&part),
                false => {
                    // `..base` has none.
                    let is_base = self.tokens.text_at(part.start).starts_with("..");
                    let is_free = !is_base && comma_is_free(self.tokens, opening, count);
                    index + 1 < count || has_comma || is_free
                }
            };
            self.part(part, indent, usize::from(comma));
            if comma {
                self.push_comma();
            }
        }
    }

    /// The brackets that end the only part of a list, or the block that ends its last part,
    /// if breaking these is better.
    fn hugged(&self, opening: usize, indent: usize) -> Option<usize> {
        let token = &self.tokens.list[opening];
        let is_attribute = self.tokens.is_attribute(opening);
        if token.kind != Kind::Open(Bracket::Round) && !is_attribute {
            return None;
        }
        let inside = opening + 1..token.partner;
        let mut closing = inside.end - 1;
        if self.tokens.list[closing].free {
            closing -= 1;
        }
        let Kind::Close(bracket) = self.tokens.list[closing].kind else {
            return None;
        };
        let inner = self.tokens.list[closing].partner;
        if bracket == Bracket::Angle
            || !self.tokens.opens(inner)
            || !self.fits(&(opening..inner + 1), 0)
        {
            return None;
        }
        let mut outermost = self.tokens.outermost(&(inside.start..closing + 1));
        let is_better = match outermost.any(|index| self.tokens.list[index].separates) {
            true => self.tokens.list[inner].class.is_broken(),
            false if bracket == Bracket::Curly || is_attribute => true,
            false => {
                let fits_below = indent + STEP + self.width(&inside) < WIDTH;
                let is_tall = self.is_broken(&inside) || !fits_below;
                is_tall && self.dots(&inside).is_empty()
            }
        };
        is_better.then_some(inner)
    }
}
