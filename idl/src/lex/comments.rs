//! Which comments document which token.
//!
//! A block of comments documents the token that begins on the line directly after
//! its last line. A `/** comment of this form */` also documents the next token on its own
//! line. Any other comment after a token on the same line documents nothing, nor does a
//! block that a blank line separates from the next token, such as a licence.

use std::rc::Rc;

#[derive(Debug, Default)]
pub(super) struct Comments {
    lines: Vec<String>,
    /// Line on which the last comment of the block ends.
    last_line: usize,
    /// Whether it is between tokens of one line.
    between: bool,
}

impl Comments {
    /// Adds a comment with its marks; `trailing` if a token precedes it on its
    /// line.
    pub(super) fn add(&mut self, text: &str, first: usize, last: usize, trailing: bool) {
        if first > self.last_line + 1 {
            self.lines.clear();
        }
        let between = trailing && is_documentation(text);
        if trailing && !between {
            return;
        }
        if between || self.between {
            self.lines.clear();
        }
        self.between = between;
        self.last_line = last;
        if let Some(line) = text.strip_prefix("//") {
            let line = line.trim_start_matches('/').trim_start_matches('!');
            let lines = line.split("\\\n").flat_map(|line| line.split("\\\r\n"));
            let lines = lines.map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end());
            self.lines.extend(lines.map(String::from));
            return;
        }
        let body = text.strip_prefix("/*").unwrap_or(text);
        let body = body.strip_suffix("*/").unwrap_or(body);
        let body = body.strip_prefix(['*', '!']).unwrap_or(body);
        let lines = body.lines().map(|line| {
            let line = line.trim();
            let line = line.strip_prefix('*').unwrap_or(line);
            String::from(line.strip_prefix(' ').unwrap_or(line))
        });
        self.lines.extend(lines);
    }

    /// The block that belongs to a token on this line; drops all others.
    pub(super) fn take(&mut self, line: usize) -> Option<Rc<[String]>> {
        let between = std::mem::take(&mut self.between);
        let adjacent = line <= self.last_line + usize::from(!between);
        self.last_line = line;
        let mut lines = std::mem::take(&mut self.lines);
        if !adjacent {
            return None;
        }
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        let blank = lines.iter().take_while(|line| line.is_empty()).count();
        lines.drain(..blank);
        if lines.is_empty() {
            None
        } else {
            Some(lines.into())
        }
    }
}

/// `/** ... */` and `/*! ... */`, but not Doxygen's forms for the preceding item.
fn is_documentation(text: &str) -> bool {
    let body = text
        .strip_prefix("/**")
        .or_else(|| text.strip_prefix("/*!"));
    body.is_some_and(|body| !body.starts_with(['<', '/']))
}
