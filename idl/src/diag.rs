//! Diagnostics: what is wrong, where, and what would be right.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::limits::{DIAGNOSTICS_MAX, SOURCE_LINE_CHARS_MAX};
use crate::source::{Sources, Span};

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something was ignored or is not portable; the model is usable.
    Warning,
    /// The model is not usable.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// One finding of the front end, with its position.
///
/// `Display` prints one line, `file:line:column: error: message`, which editors
/// understand; [`Diagnostic::render`] adds the source line with a caret and the
/// hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// What is wrong, without a full stop.
    pub message: String,
    /// The file, as it was opened.
    pub file: PathBuf,
    /// Line from 1, 0 when the finding is about the file as a whole.
    pub line: usize,
    /// Column from 1 in characters, 0 when the finding is about the file as a whole.
    pub column: usize,
    /// Number of characters that the finding is about, at least 1.
    pub width: usize,
    /// The source line; the start of it if it is very long.
    pub source_line: String,
    /// What would be right.
    pub hint: Option<String>,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if self.line > 0 {
            write!(f, "{}:{}:", self.line, self.column)?;
        }
        write!(f, " {}: {}", self.severity, self.message)
    }
}

impl Diagnostic {
    /// The long form: the one line of `Display`, the source line, a caret under
    /// the place, and the hint. Ends with a newline.
    #[must_use]
    pub fn render(&self) -> String {
        let mut out = format!("{self}\n");
        if self.line > 0 && self.column <= self.source_line.chars().count() + 1 {
            let number = self.line.to_string();
            let blank = " ".repeat(number.len());
            // Tabs stay tabs so that the caret stands under its character.
            let before = self.source_line.chars().take(self.column.saturating_sub(1));
            let indent: String = before.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
            let carets = "^".repeat(self.width.max(1));
            out.push_str(&format!(" {number} | {}\n", self.source_line));
            out.push_str(&format!(" {blank} | {indent}{carets}\n"));
        }
        if let Some(hint) = &self.hint {
            out.push_str(&format!("   = hint: {hint}\n"));
        }
        out
    }
}

/// Collects the findings of all stages.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    findings: Vec<Finding>,
    dropped: usize,
    errors: usize,
}

/// A diagnostic before its position is turned into a line.
#[derive(Debug)]
struct Finding {
    severity: Severity,
    place: Origin,
    message: String,
    hint: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum Origin {
    Span(Span),
    File(PathBuf),
}

impl Sink {
    pub(crate) fn error(&mut self, span: Span, message: impl Into<String>) {
        self.push(Severity::Error, Origin::Span(span), message.into(), None);
    }

    pub(crate) fn error_hint(
        &mut self,
        span: Span,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.push(
            Severity::Error,
            Origin::Span(span),
            message.into(),
            Some(hint.into()),
        );
    }

    /// A construct of IDL 4.2 that DDS data types do not use, and the building
    /// block that it belongs to.
    pub(crate) fn refuse(&mut self, span: Span, construct: &str, block: &str) {
        let instead = match block {
            "Any" => "; a union holds values of several types",
            "Value Types" => "; a struct can inherit too: `struct Derived : Base`",
            _ => "",
        };
        let hint = format!(
            "it belongs to the building block {block} of IDL, which is not one for DDS{instead}"
        );
        self.error_hint(span, format!("{construct} is not supported"), hint);
    }

    pub(crate) fn warning(&mut self, span: Span, message: impl Into<String>) {
        self.push(Severity::Warning, Origin::Span(span), message.into(), None);
    }

    pub(crate) fn warning_hint(
        &mut self,
        span: Span,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.push(
            Severity::Warning,
            Origin::Span(span),
            message.into(),
            Some(hint.into()),
        );
    }

    /// A finding about a file without text, such as an unreadable one.
    pub(crate) fn file_error(&mut self, path: &Path, message: impl Into<String>) {
        let place = Origin::File(path.to_path_buf());
        self.push(Severity::Error, place, message.into(), None);
    }

    pub(crate) fn error_count(&self) -> usize {
        self.errors
    }

    /// Whether further errors are only counted, so that computing a hint is useless.
    pub(crate) fn is_full(&self) -> bool {
        self.errors + 1 >= DIAGNOSTICS_MAX
    }

    /// All findings in the order of the files and of the text in them.
    pub(crate) fn finish(mut self, sources: &Sources) -> Vec<Diagnostic> {
        self.findings.sort_by_key(|finding| match &finding.place {
            Origin::Span(span) => (span.file.0, span.start),
            Origin::File(_) => (usize::MAX, 0),
        });
        let mut all: Vec<_> = self
            .findings
            .into_iter()
            .map(|finding| finding.locate(sources))
            .collect();
        if let Some(last) = all.last().filter(|_| self.dropped > 0) {
            let message = format!("{} more diagnostics are not shown", self.dropped);
            let file = last.file.clone();
            let hint = Some(String::from("correct the first ones and compile again"));
            let (line, column, width) = (0, 0, 1);
            let source_line = String::new();
            let failed = self.errors > 0;
            let severity = if failed {
                Severity::Error
            } else {
                Severity::Warning
            };
            all.push(Diagnostic {
                severity,
                message,
                file,
                line,
                column,
                width,
                source_line,
                hint,
            });
        }
        all
    }

    fn push(&mut self, severity: Severity, place: Origin, message: String, hint: Option<String>) {
        self.errors += usize::from(severity == Severity::Error);
        let same = |one: &Finding| one.place == place && one.message == message;
        if self.findings.iter().any(same) {
            return;
        }
        // One place is reserved for the diagnostic that counts the omitted ones.
        if self.findings.len() + 1 >= DIAGNOSTICS_MAX {
            self.dropped += 1;
            // A warning never displaces an error.
            let warning = |one: &Finding| one.severity == Severity::Warning;
            let last = self.findings.iter().rposition(warning);
            match last.filter(|_| severity == Severity::Error) {
                Some(last) => self.findings.swap_remove(last),
                None => return,
            };
        }
        self.findings.push(Finding {
            severity,
            place,
            message,
            hint,
        });
    }
}

impl Finding {
    fn locate(self, sources: &Sources) -> Diagnostic {
        let Self {
            severity,
            place,
            message,
            hint,
        } = self;
        let span = match place {
            Origin::Span(span) => span,
            Origin::File(file) => {
                let (line, column, width) = (0, 0, 1);
                let source_line = String::new();
                return Diagnostic {
                    severity,
                    message,
                    file,
                    line,
                    column,
                    width,
                    source_line,
                    hint,
                };
            }
        };
        let (file, line) = sources.presumed(span.file, span.start);
        let location = sources.locate(span.file, span.start);
        let source_line: String = location
            .line_text
            .chars()
            .take(SOURCE_LINE_CHARS_MAX)
            .collect();
        let covered = sources
            .text(span.file)
            .get(span.start..span.end)
            .unwrap_or("");
        let width = covered.lines().next().unwrap_or("").chars().count();
        let rest = (source_line.chars().count() + 1).saturating_sub(location.column);
        let width = width.clamp(1, rest.max(1));
        let column = location.column;
        Diagnostic {
            severity,
            message,
            file,
            line,
            column,
            width,
            source_line,
            hint,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagnostic_shows_the_line_and_a_caret() {
        let mut sources = Sources::default();
        let file = sources.add("a.idl".into(), None, b"module M {\n\tlong x;\n};\n");
        let mut sink = Sink::default();
        sink.error_hint(
            Span {
                file,
                start: 12,
                end: 16,
            },
            "no member here",
            "put it in a struct",
        );
        let all = sink.finish(&sources);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].to_string(), "a.idl:2:2: error: no member here");
        assert_eq!(
            all[0].render(),
            "a.idl:2:2: error: no member here\n 2 | \tlong x;\n   | \t^^^^\n   \
             = hint: put it in a struct\n"
        );
    }

    #[test]
    fn an_error_is_not_hidden_by_warnings() {
        let mut sources = Sources::default();
        let file = sources.add("a.idl".into(), None, b"x");
        let (start, end) = (0, 1);
        let span = Span { file, start, end };
        let mut sink = Sink::default();
        for n in 0..1000 {
            sink.warning(span, format!("warning {n}"));
        }
        sink.error(span, "the fault");
        sink.error(span, "the fault");
        let all = sink.finish(&sources);
        assert_eq!(all.len(), DIAGNOSTICS_MAX);
        let faults = all.iter().filter(|one| one.message == "the fault");
        assert_eq!(faults.count(), 1);
        let last = all.last().map(|one| one.message.as_str());
        assert_eq!(last, Some("802 more diagnostics are not shown"));
    }

    #[test]
    fn findings_are_bounded_and_the_rest_is_counted() {
        let mut sources = Sources::default();
        let file = sources.add("a.idl".into(), None, b"x");
        let mut sink = Sink::default();
        for n in 0..1000 {
            sink.warning(
                Span {
                    file,
                    start: 0,
                    end: 1,
                },
                format!("warning {n}"),
            );
        }
        let all = sink.finish(&sources);
        assert_eq!(all.len(), DIAGNOSTICS_MAX);
        assert_eq!(
            all[DIAGNOSTICS_MAX - 1].message,
            "801 more diagnostics are not shown"
        );
    }
}
