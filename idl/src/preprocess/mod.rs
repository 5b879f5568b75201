//! The preprocessor: from files to one stream of tokens for each root file.
//!
//! IDL 4.2 §7.3 requires the preprocessor of ISO C++. This one works on tokens and
//! preserves positions: a token from the body of a macro has the position of the use,
//! one from an argument has its own. Trigraphs are not replaced.
//!
//! Every root file starts with the macros of the options only. A file that an
//! earlier root has included is processed again for its macros, but contributes no
//! tokens: `a.idl` and `b.idl` may both include `common.idl`, guarded or not, and be
//! compiled together.

mod conditions;
mod directive;
mod expand;
mod expression;
mod include;
mod macros;
mod pragma;
mod standard;

use std::collections::HashSet;
use std::rc::Rc;

use crate::Options;
use crate::diag::Sink;
use crate::encoding::Remark;
use crate::lex::{Token, TokenKind, lex_replaced};
use crate::limits::DIAGNOSTICS_MAX;
use crate::source::{FileId, Sources, Span};

use conditions::Conditions;
pub(crate) use include::{Disk, open};
use macros::Macros;
pub(crate) use standard::PREFIX as BUILT_IN;

/// State of the preprocessor over all root files of a compilation.
pub(crate) struct Preprocessor<'a> {
    pub(crate) sources: &'a mut Sources,
    pub(crate) sink: &'a mut Sink,
    disk: Disk<'a>,
    options: &'a Options,
    macros: Macros,
    /// Tokens of each file, by number; a file may be included many times.
    lexed: Vec<Option<Rc<[Token]>>>,
    /// Files whose tokens an earlier root has contributed.
    taken: HashSet<FileId>,
    /// Files with `#pragma once` that this root has read.
    once: HashSet<FileId>,
    include_depth: usize,
    includes: usize,
    tokens: usize,
    /// Macros in the arguments of macros that are being expanded.
    argument_depth: usize,
    out: Vec<Token>,
    /// A limit was exceeded and reported: nothing more is read.
    pub(crate) exhausted: bool,
    /// A file was not found, so that unknown names may be its fault.
    pub(crate) include_missing: bool,
}

impl<'a> Preprocessor<'a> {
    pub(crate) fn new(
        sources: &'a mut Sources,
        sink: &'a mut Sink,
        options: &'a Options,
        disk: Disk<'a>,
    ) -> Self {
        Self {
            sources,
            sink,
            disk,
            options,
            macros: Macros::default(),
            lexed: Vec::new(),
            taken: HashSet::new(),
            once: HashSet::new(),
            include_depth: 0,
            includes: 0,
            tokens: 0,
            argument_depth: 0,
            out: Vec::new(),
            exhausted: false,
            include_missing: false,
        }
    }

    /// All tokens of a root file and of what it includes. The last one is
    /// [`TokenKind::End`].
    pub(crate) fn root(&mut self, file: FileId) -> Vec<Token> {
        self.macros = Macros::predefined(self.options);
        self.once.clear();
        self.file(file);
        let files = (0..self.lexed.len())
            .filter(|file| self.lexed[*file].is_some())
            .map(FileId);
        self.taken.extend(files);
        let end = self.sources.text(file).len();
        let span = Span {
            file,
            start: end,
            end,
        };
        let kind = TokenKind::End;
        self.out.push(Token {
            kind,
            span,
            first_on_line: true,
            glued: false,
            doc: None,
            trailing_annotations: None,
        });
        std::mem::take(&mut self.out)
    }

    /// One opening of a file.
    fn file(&mut self, file: FileId) {
        let tokens = self.lexed_file(file);
        let silent = self.taken.contains(&file);
        let mut conditions = Conditions::default();
        let mut at = 0;
        while let Some(token) = tokens.get(at).filter(|_| !self.exhausted) {
            if token.first_on_line && token.kind.is_punct('#') {
                let body = &tokens[at + 1..];
                let length = body.iter().take_while(|token| !token.first_on_line).count();
                self.directive(token.span, &body[..length], &mut conditions, silent);
                at += 1 + length;
            } else if silent || !conditions.active() {
                at += 1;
            } else {
                at += self.text(&tokens[at..]);
            }
        }
        if let Some(span) = conditions.open() {
            self.sink.error(span, "`#if` without `#endif`");
        }
    }

    fn lexed_file(&mut self, file: FileId) -> Rc<[Token]> {
        if self.lexed.len() <= file.0 {
            self.lexed.resize(file.0 + 1, None);
        }
        if let Some(Some(tokens)) = self.lexed.get(file.0) {
            return Rc::clone(tokens);
        }
        let tokens: Rc<[Token]> = match self.sources.get(file) {
            Some(source) => lex_replaced(file, &source.text, &source.replaced).into(),
            None => Rc::default(),
        };
        self.remark_on_bytes(file);
        self.comments_like_keys(file, &tokens);
        self.lexed[file.0] = Some(Rc::clone(&tokens));
        tokens
    }

    fn remark_on_bytes(&mut self, file: FileId) {
        let Some(remark) = self.sources.get(file).and_then(|source| source.remark) else {
            return;
        };
        let span = |start| Span {
            file,
            start,
            end: start,
        };
        match remark {
            Remark::Utf16 => {
                let hint = "save the file as UTF-8";
                self.sink.error_hint(span(0), "the file is in UTF-16", hint);
            }
            Remark::TakenForLatin1(at) => {
                let message = "bytes that are not UTF-8: the file is read as ISO 8859-1";
                let hint = "save it as UTF-8, or say its encoding, by `--encoding` or \
                            `Builder::encoding`";
                self.sink.warning_hint(span(at), message, hint);
            }
            Remark::NotUtf8(at) => {
                let hint = "save the file as UTF-8; in comments such bytes do no harm";
                self.sink
                    .warning_hint(span(at), "bytes that are not UTF-8", hint);
            }
        }
    }

    /// Warns of a comment that looks like an annotation but is not read as one, because it
    /// is not after a declaration or has further text. Without the warning the topic
    /// would silently have no key.
    fn comments_like_keys(&mut self, file: FileId, tokens: &[Token]) {
        const MARK: &str = "//@key";
        let text = self.sources.text(file);
        let trailing = tokens
            .iter()
            .filter_map(|token| token.trailing_annotations.as_deref());
        let taken: HashSet<usize> = trailing.flatten().map(|token| token.span.start).collect();
        let found = text.match_indices(MARK).map(|(start, _)| start);
        let spans: Vec<Span> = found
            .filter(|start| !taken.contains(&(start + 2)))
            .take(DIAGNOSTICS_MAX)
            .map(|start| Span {
                file,
                start,
                end: start + MARK.len(),
            })
            .collect();
        for span in spans {
            let message = "`//@key` is a comment here, and makes nothing a key";
            let hint = "write `@key` before the member";
            self.sink.warning_hint(span, message, hint);
        }
    }

    /// Takes the first of these tokens, replaced if it names a macro; returns how
    /// many were consumed.
    fn text(&mut self, tokens: &[Token]) -> usize {
        let mut expanded = Vec::new();
        let consumed = self.expand(tokens, &mut expanded);
        for token in &expanded {
            if let TokenKind::Error(message) = &token.kind {
                self.sink.error(token.span, &**message);
            }
        }
        self.out.append(&mut expanded);
        consumed
    }

    /// Reports that a limit was exceeded, and stops preprocessing.
    fn exhaust(&mut self, span: Span, message: String) {
        if !self.exhausted {
            self.sink.error(span, message);
        }
        self.exhausted = true;
    }
}

#[cfg(test)]
mod tests;
