//! What is said about a file, and where.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::location::Location;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The file cannot be used as it is.
    Error,
    /// The file can be used, but part of it has no effect or will be refused.
    Warning,
}

/// One remark about a file. Shown as `file:line:column: error: message`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Where.
    #[serde(flatten)]
    pub location: Location,
    /// How bad.
    pub severity: Severity,
    /// What is wrong and, where it is known, what would be right.
    pub message: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{}: {severity}: {}", self.location, self.message)
    }
}

/// A line and column of the file that is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct At {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// The remarks about one file, in the making.
#[derive(Debug)]
pub(crate) struct Report {
    file: Arc<str>,
    diagnostics: Vec<Diagnostic>,
    silent: bool,
}

impl Report {
    pub(crate) fn new(file: Arc<str>) -> Self {
        Self {
            file,
            diagnostics: Vec::new(),
            silent: false,
        }
    }

    /// A report that drops what it is told, for reading again what was checked before.
    pub(crate) fn silent(file: Arc<str>) -> Self {
        Self {
            silent: true,
            ..Self::new(file)
        }
    }

    pub(crate) fn error(&mut self, at: At, message: impl Into<String>) {
        self.add(at, Severity::Error, message.into());
    }

    pub(crate) fn warning(&mut self, at: At, message: impl Into<String>) {
        self.add(at, Severity::Warning, message.into());
    }

    /// Whether further remarks are dropped.
    pub(crate) fn is_full(&self) -> bool {
        self.silent || self.diagnostics.len() > DIAGNOSTICS_MAX
    }

    pub(crate) fn file(&self) -> &Arc<str> {
        &self.file
    }

    pub(crate) fn location(&self, at: At) -> Location {
        Location {
            file: self.file.clone(),
            line: at.line,
            column: at.column,
        }
    }

    pub(crate) fn into_diagnostics(self) -> Vec<Diagnostic> {
        self.diagnostics
    }

    fn add(&mut self, at: At, severity: Severity, message: String) {
        if self.is_full() {
            return;
        }
        let location = self.location(at);
        if self.diagnostics.len() == DIAGNOSTICS_MAX {
            let message = "more remarks than this are not shown".to_owned();
            self.diagnostics.push(Diagnostic {
                location,
                severity: Severity::Error,
                message,
            });
            return;
        }
        self.diagnostics.push(Diagnostic {
            location,
            severity,
            message,
        });
    }
}

/// Text of a file as a message shows it: quoted, on one line, and not too long.
pub(crate) fn quote(text: &str) -> String {
    let mut shown: String = text.chars().take(QUOTED_CHARS_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("'{}'", shown.escape_debug())
}

/// The one of `known` that `word` was probably meant to be, as the end of a message.
pub(crate) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    if word.len() > QUOTED_CHARS_MAX {
        return String::new();
    }
    let limit = 1 + word.len() / 4;
    let nearest = known
        .into_iter()
        .filter(|candidate| candidate.len() <= QUOTED_CHARS_MAX)
        .map(|candidate| (edit_distance(word, candidate), candidate))
        .min_by_key(|(distance, _)| *distance);
    match nearest {
        Some((distance, candidate)) if distance <= limit => {
            format!("; did you mean {}?", quote(candidate))
        }
        _ => String::new(),
    }
}

/// How many letters must be put in, taken out or changed, whatever their case.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.to_ascii_lowercase(), b.to_ascii_lowercase());
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, cb) in b.chars().enumerate() {
            let changed = diagonal + usize::from(ca != cb);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.chars().count()]
}

const DIAGNOSTICS_MAX: usize = 200;
const QUOTED_CHARS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_the_nearest() {
        let known = ["reliability", "durability", "history"];
        assert_eq!(
            did_you_mean("relaibility", known),
            "; did you mean 'reliability'?"
        );
        assert_eq!(did_you_mean("History", known), "; did you mean 'history'?");
        assert_eq!(did_you_mean("zebra", known), "");
    }

    #[test]
    fn quotes_stay_short_and_on_one_line() {
        assert_eq!(quote("a\nb"), r"'a\nb'");
        assert!(quote(&"é".repeat(1000)).chars().count() < 80);
    }
}
