//! Diagnostics of files, with positions.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::location::Location;
use crate::policy_id::PolicyId;

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The file cannot be used as it is.
    Error,
    /// The file can be used, but part of it has no effect or will be refused.
    Warning,
}

/// One diagnostic about a file. Shown as `file:line:column: error: message`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// The position.
    #[serde(flatten)]
    pub location: Location,
    /// The severity.
    pub severity: Severity,
    /// The fault and, if known, the correction.
    pub message: String,
    /// The policy, if this says that a value of it is not supported yet: creating an entity with
    /// it would be refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsupported: Option<PolicyId>,
}

impl Diagnostic {
    /// All of them by file and line, each once.
    pub fn sorted(all: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut seen = HashSet::new();
        let mut all: Vec<Self> = all.into_iter().collect();
        all.sort_by(|a, b| a.location.cmp(&b.location));
        all.retain(|remark| seen.insert((remark.location.clone(), remark.message.clone())));
        all
    }
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

/// The diagnostics about one file so far.
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

    /// A report that drops its input, for reading checked text again.
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

    /// Whether further diagnostics are dropped.
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
                unsupported: None,
            });
            return;
        }
        self.diagnostics.push(Diagnostic {
            location,
            severity,
            message,
            unsupported: None,
        });
    }
}

/// Text of a file for a message: quoted, on one line, and truncated.
pub(crate) fn quote(text: &str) -> String {
    let mut shown: String = text.chars().take(QUOTED_CHARS_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("'{}'", shown.escape_debug())
}

/// The end of a message that suggests the element of `known` most similar to `word`; empty if
/// none is similar.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    if word.len() > QUOTED_CHARS_MAX {
        return String::new();
    }
    let limit = 1 + word.len() / 4;
    let nearest = known
        .into_iter()
        .filter(|candidate| candidate.len() <= QUOTED_CHARS_MAX)
        .map(|candidate| (edit_distance(word, candidate), candidate))
        // Of equally similar ones the first by name: the order of `known` may be that of a hash map.
        .min();
    match nearest {
        Some((distance, candidate)) if distance <= limit => {
            format!("; did you mean {}?", quote(candidate))
        }
        _ => String::new(),
    }
}

/// Levenshtein's distance, ignoring case.
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
