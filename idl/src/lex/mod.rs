//! From text to tokens.
//!
//! The lexer never fails: invalid text becomes a token of kind
//! [`TokenKind::Error`] with the reason. It is reported only when it reaches the
//! parser, so that a group skipped by `#if` may contain any text.

mod comments;
mod literals;
mod token;
mod trailing;

use std::rc::Rc;

use crate::limits::TOKENS_MAX;
use crate::source::{FileId, Span};

use comments::Comments;
pub(crate) use token::{Pragma, Token, TokenKind, keyword_ignoring_case};

/// All tokens of a text, without a token for the end.
pub(crate) fn lex(file: FileId, text: &str) -> Vec<Token> {
    lex_replaced(file, text, &[])
}

/// As [`lex`], with the offsets of characters that replace bytes that were none: tokens with such
/// a character are invalid.
pub(crate) fn lex_replaced(file: FileId, text: &str, replaced: &[usize]) -> Vec<Token> {
    let mark = text.starts_with('\u{FEFF}');
    let at = if mark { '\u{FEFF}'.len_utf8() } else { 0 };
    lex_from(file, text, replaced, at)
}

/// The tokens of a text from an offset on.
fn lex_from(file: FileId, text: &str, replaced: &[usize], at: usize) -> Vec<Token> {
    let mut lexer = Lexer {
        file,
        text,
        replaced,
        at,
        line: 1,
        first_on_line: true,
        glued: false,
        comments: Comments::default(),
        trailing_annotations: Vec::new(),
        behind_line: None,
        tokens: Vec::new(),
    };
    lexer.run();
    lexer.tokens
}

struct Lexer<'a> {
    file: FileId,
    text: &'a str,
    /// Ascending offsets of characters that replace bytes that were none.
    replaced: &'a [usize],
    at: usize,
    line: usize,
    first_on_line: bool,
    glued: bool,
    comments: Comments,
    /// Annotations in the comments after the last token, and the line of the last one.
    trailing_annotations: Vec<Token>,
    behind_line: Option<usize>,
    tokens: Vec<Token>,
}

impl Lexer<'_> {
    fn run(&mut self) {
        while let Some(c) = self.peek() {
            if self.tokens.len() > TOKENS_MAX {
                let start = self.at;
                self.at = self.text.len();
                self.push(
                    start,
                    error(format!("more than {TOKENS_MAX} tokens in one file")),
                );
            } else if !self.white_space(c) && !self.comment() {
                self.token(c);
            }
        }
        self.end_behind();
    }

    /// Attaches the annotations in comments to the token before them.
    fn end_behind(&mut self) {
        let trailing = std::mem::take(&mut self.trailing_annotations);
        if let Some(last) = self.tokens.last_mut().filter(|_| !trailing.is_empty()) {
            last.trailing_annotations = Some(trailing.into());
        }
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn peek_second(&self) -> Option<char> {
        self.rest().chars().nth(1)
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        self.line += usize::from(c == '\n');
        Some(c)
    }

    fn bump_while(&mut self, wanted: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&wanted) {
            self.bump();
        }
    }

    /// The text from `start` to here.
    fn since(&self, start: usize) -> &str {
        self.text.get(start..self.at).unwrap_or("")
    }

    /// Whether a backslash joins this line to the next: ISO C 2011 §5.1.1.2.
    fn joins(&self) -> bool {
        self.rest().starts_with("\\\n") || self.rest().starts_with("\\\r\n")
    }

    /// Consumes the end of a line that is joined to the next.
    fn join(&mut self) {
        self.bump_while(|c| c != '\n');
        self.bump();
    }

    /// Consumes white space, also a backslash that joins two lines.
    fn white_space(&mut self, c: char) -> bool {
        if self.joins() {
            self.join();
        } else if c.is_ascii_whitespace() || c == '\u{B}' {
            self.first_on_line |= c == '\n';
            self.bump();
        } else {
            return false;
        }
        self.glued = false;
        true
    }

    /// Consumes a comment and keeps it for the token that follows.
    fn comment(&mut self) -> bool {
        let start = self.at;
        let line = self.line;
        if self.rest().starts_with("//") {
            self.bump_while(|c| c != '\n' && c != '\\');
            while self.peek() == Some('\\') {
                match self.joins() {
                    true => self.join(),
                    false => _ = self.bump(),
                }
                self.bump_while(|c| c != '\n' && c != '\\');
            }
        } else if self.rest().starts_with("/*") {
            let length = self.rest().get(2..).and_then(|rest| rest.find("*/"));
            let Some(length) = length else {
                self.at = self.text.len();
                self.push(start, error("unterminated comment"));
                return true;
            };
            let end = self.at + length + 4;
            while self.at < end && self.bump().is_some() {}
        } else {
            return false;
        }
        self.glued = false;
        if !self.annotates(start, line) {
            let text = self.text.get(start..self.at).unwrap_or("");
            self.comments
                .add(text, line, self.line, !self.first_on_line);
        }
        true
    }

    /// Reads the comment from `start` to here as annotations if it follows a `;` on
    /// its line, or is directly below a comment that does.
    fn annotates(&mut self, start: usize, line: usize) -> bool {
        let below = self.behind_line.is_some_and(|last| last + 1 == line);
        if self.first_on_line && !below {
            return false;
        }
        if self
            .tokens
            .last()
            .is_none_or(|last| !last.kind.is_punct(';'))
        {
            return false;
        }
        let text = self.text.get(..self.at).unwrap_or("");
        let Some(found) = trailing::annotations(self.file, text, self.replaced, start) else {
            return false;
        };
        self.trailing_annotations.extend(found);
        self.behind_line = Some(line);
        true
    }

    fn token(&mut self, c: char) {
        let start = self.at;
        let kind = match c {
            'L' if self.peek_second() == Some('\'') => self.wide(Self::char_literal),
            'L' if self.peek_second() == Some('"') => self.wide(Self::text_literal),
            'a'..='z' | 'A'..='Z' | '_' => self.word(),
            '0'..='9' => self.number(),
            '.' if self.peek_second().is_some_and(|next| next.is_ascii_digit()) => self.number(),
            '\'' => self.char_literal(false),
            '"' => self.text_literal(false),
            ':' if self.peek_second() == Some(':') => {
                self.bump();
                self.bump();
                TokenKind::Scope
            }
            c if c.is_ascii_graphic() && !matches!(c, '$' | '`') => {
                self.bump();
                TokenKind::Punct(c)
            }
            _ => self.stray(),
        };
        let kind = match self.is_replaced(start) {
            true => not_utf8(kind),
            false => kind,
        };
        self.push(start, kind);
    }

    fn push(&mut self, start: usize, kind: TokenKind) {
        let span = Span {
            file: self.file,
            start,
            end: self.at,
        };
        self.end_behind();
        let doc = self.comments.take(self.line);
        let (first_on_line, glued) = (self.first_on_line, self.glued);
        self.tokens.push(Token {
            kind,
            span,
            first_on_line,
            glued,
            doc,
            trailing_annotations: None,
        });
        self.first_on_line = false;
        self.glued = true;
    }

    fn word(&mut self) -> TokenKind {
        let start = self.at;
        self.bump_while(|c| c.is_alphanumeric() || c == '_');
        let word = self.since(start);
        if !word.is_ascii() {
            return error(format!(
                "`{word}`: identifiers are made of ASCII letters and digits"
            ));
        }
        match token::keyword(word) {
            Some(keyword) => TokenKind::Keyword(keyword),
            None => TokenKind::Identifier(word.into()),
        }
    }

    /// A run of characters that begin no token.
    fn stray(&mut self) -> TokenKind {
        let start = self.at;
        self.bump();
        self.bump_while(|c| !c.is_ascii());
        let run = self.since(start);
        error(format!("unexpected `{}`", run.escape_debug()))
    }

    /// Whether the text from `start` to here has bytes that were no characters.
    fn is_replaced(&self, start: usize) -> bool {
        let next = self.replaced.partition_point(|at| *at < start);
        self.replaced.get(next).is_some_and(|at| *at < self.at)
    }

    fn wide(&mut self, literal: impl Fn(&mut Self, bool) -> TokenKind) -> TokenKind {
        self.bump();
        literal(self, true)
    }
}

/// The invalid token in place of one with bytes that are not UTF-8.
fn not_utf8(kind: TokenKind) -> TokenKind {
    error(match kind {
        TokenKind::Char(_) | TokenKind::WideChar(_) => {
            "character literal with bytes that are not UTF-8"
        }
        TokenKind::Text(_) | TokenKind::WideText(_) => {
            "string literal with bytes that are not UTF-8"
        }
        _ => "bytes that are not UTF-8",
    })
}

fn error(message: impl Into<Rc<str>>) -> TokenKind {
    TokenKind::Error(message.into())
}

#[cfg(test)]
mod tests;
