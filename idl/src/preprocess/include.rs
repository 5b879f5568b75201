//! `#include`, and how files are found.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::{Preprocessor, standard};
use crate::lex::{Token, TokenKind};
use crate::limits::{FILE_BYTES_MAX, INCLUDE_DEPTH_MAX, INCLUDES_MAX};
use crate::source::{FileId, Sources, Span};

/// The origin of an included file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Disk<'a> {
    /// In quotes: the directory of the including file is searched first.
    pub(crate) beside: bool,
    /// These directories are searched next, in order.
    pub(crate) include_dirs: &'a [PathBuf],
}

/// Reads a file unless it was read before; the error says why not.
pub(crate) fn open(sources: &mut Sources, path: &Path) -> Result<FileId, String> {
    let identity = path.canonicalize().map_err(|error| error.to_string())?;
    if let Some(file) = sources.find(&identity) {
        return Ok(file);
    }
    let file = File::open(&identity).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let most = FILE_BYTES_MAX as u64;
    file.take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.len() > FILE_BYTES_MAX {
        return Err(format!("the file has more than {FILE_BYTES_MAX} bytes"));
    }
    Ok(sources.add(path.to_path_buf(), Some(identity), &bytes))
}

impl Preprocessor<'_> {
    pub(super) fn include(&mut self, directive: Span, arguments: &[Token]) {
        let span = directive.to(arguments.last().map_or(directive, |token| token.span));
        let raw = match arguments.first().and_then(|token| token.kind.word()) {
            Some(_) => self.computed(arguments),
            None => self.rest_of_line(directive),
        };
        let Some((name, quoted)) = included_name(&raw) else {
            self.include_missing = true;
            self.sink
                .error(span, "`#include` expects \"file\" or <file>");
            return;
        };
        let candidates = self.candidates(span.file, name, quoted);
        let Some(path) = candidates.iter().find(|path| path.is_file()) else {
            if let Some(file) = self.built_in(name) {
                self.enter(span, file);
                return;
            }
            self.include_missing = true;
            let looked: Vec<_> = candidates
                .iter()
                .map(|path| format!("`{}`", path.display()))
                .collect();
            let hint = if looked.is_empty() {
                String::from("no directory was given to look for it")
            } else {
                format!("looked for {}", looked.join(", "))
            };
            self.sink
                .error_hint(span, format!("cannot find included file `{name}`"), hint);
            return;
        };
        match open(self.sources, path) {
            Ok(file) => self.enter(span, file),
            Err(reason) => {
                self.include_missing = true;
                let message = format!("cannot read included file `{}`: {reason}", path.display());
                self.sink.error(span, message);
            }
        }
    }

    /// The operand of `__has_include`: whether the file can be included, and the length of the
    /// operand.
    pub(super) fn has_include(&mut self, tokens: &[Token]) -> Option<(bool, usize)> {
        tokens.first().filter(|token| token.kind.is_punct('('))?;
        let first = tokens.get(1)?;
        let ends = |wanted| {
            tokens
                .iter()
                .position(|token: &Token| token.kind.is_punct(wanted))
        };
        let (raw, close) = match &first.kind {
            TokenKind::Text(_) => (self.raw(tokens.get(1..2)?).to_owned(), 2),
            TokenKind::Punct('<') => {
                let last = ends('>')?;
                (self.raw(tokens.get(1..=last)?).to_owned(), last + 1)
            }
            _ => {
                let close = ends(')')?;
                (self.computed(tokens.get(1..close)?), close)
            }
        };
        tokens.get(close).filter(|token| token.kind.is_punct(')'))?;
        let (name, quoted) = included_name(&raw)?;
        let candidates = self.candidates(first.span.file, name, quoted);
        let is_there =
            candidates.iter().any(|path| path.is_file()) || standard::text(name).is_some();
        Some((is_there, close + 1))
    }

    /// The built-in text of a library file that was not found on the disk.
    fn built_in(&mut self, name: &str) -> Option<FileId> {
        let path = Path::new(standard::PREFIX).join(name);
        if let Some(file) = self.sources.find(&path) {
            return Some(file);
        }
        let text = standard::text(name)?;
        let file = self.sources.add(path.clone(), Some(path), text.as_bytes());
        Some(file)
    }

    /// The file name that the macros of a computed `#include` expand to.
    fn computed(&mut self, arguments: &[Token]) -> String {
        let mut tokens = Vec::new();
        let mut at = 0;
        while at < arguments.len() {
            at += self.expand(arguments.get(at..).unwrap_or(&[]), &mut tokens);
        }
        match tokens.as_slice() {
            [one] => match &one.kind {
                TokenKind::Text(name) => format!("\"{name}\""),
                other => other.spelled(),
            },
            tokens => tokens.iter().map(|token| token.kind.spelled()).collect(),
        }
    }

    fn enter(&mut self, span: Span, file: FileId) {
        if self.once.contains(&file) {
            return;
        }
        self.includes += 1;
        if self.includes > INCLUDES_MAX {
            self.exhaust(span, format!("more than {INCLUDES_MAX} files included"));
            return;
        }
        if self.include_depth >= INCLUDE_DEPTH_MAX {
            let message = format!("more than {INCLUDE_DEPTH_MAX} files include one another");
            if !self.exhausted {
                let hint =
                    "does the file include itself without `#pragma once` or an include guard?";
                self.sink.error_hint(span, message, hint);
            }
            self.exhausted = true;
            return;
        }
        self.include_depth += 1;
        self.file(file);
        self.include_depth -= 1;
    }

    /// Paths to try, in order.
    fn candidates(&self, from: FileId, name: &str, quoted: bool) -> Vec<PathBuf> {
        let parent = self.sources.get(from).and_then(|file| file.path.parent());
        // Text that is not from a file has no directory.
        let beside = if self.disk.beside || from.0 > 0 {
            parent
        } else {
            None
        };
        let mut all: Vec<PathBuf> = self
            .disk
            .include_dirs
            .iter()
            .map(|dir| dir.join(name))
            .collect();
        match beside.map(|dir| dir.join(name)) {
            Some(path) if quoted => all.insert(0, path),
            Some(path) => all.push(path),
            None => {}
        }
        all
    }

    /// The text after a directive's name up to the end of its line.
    fn rest_of_line(&self, directive: Span) -> String {
        let text = self
            .sources
            .text(directive.file)
            .get(directive.end..)
            .unwrap_or("");
        text.lines().next().unwrap_or("").trim().to_owned()
    }
}

/// The name between the marks, and whether they were quotes.
fn included_name(raw: &str) -> Option<(&str, bool)> {
    let (close, quoted) = match raw.chars().next()? {
        '"' => ('"', true),
        '<' => ('>', false),
        _ => return None,
    };
    let (name, _) = raw.get(1..)?.split_once(close)?;
    if name.is_empty() || name.contains('\0') {
        None
    } else {
        Some((name, quoted))
    }
}
