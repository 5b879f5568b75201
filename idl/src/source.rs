//! Source files, positions in them, and the line and column of a position.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::encoding::{Decoded, Encoding, Remark, decode};

/// A file of this compilation, numbered in the order of first opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FileId(pub(crate) usize);

/// A range of bytes of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) file: FileId,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Span {
    /// From the start of `self` to the end of `last`; `self` when they are in
    /// different files, as after a macro or an include.
    pub(crate) fn to(self, last: Self) -> Self {
        if self.file == last.file && last.end >= self.start {
            Self {
                end: last.end,
                ..self
            }
        } else {
            self
        }
    }

    /// The empty range directly after `self`.
    pub(crate) fn after(self) -> Self {
        Self {
            start: self.end,
            ..self
        }
    }
}

/// One file.
#[derive(Debug)]
pub(crate) struct SourceFile {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    pub(crate) remark: Option<Remark>,
    /// Offsets of those U+FFFD that replace bytes that are not UTF-8.
    pub(crate) replaced: Vec<usize>,
    line_starts: Vec<usize>,
    /// Line markers, in the order of the text.
    markers: Vec<Marker>,
}

/// `#line 3 "a.idl"`: the text from here on belongs to the lines of another file.
#[derive(Debug)]
struct Marker {
    /// The line after the marker.
    line: usize,
    /// The file and line that it stands for.
    presumed: usize,
    file: Option<PathBuf>,
}

/// All files of one compilation.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    files: Vec<SourceFile>,
    /// By absolute path, to detect a second opening.
    by_identity: HashMap<PathBuf, FileId>,
    encoding: Encoding,
}

/// A line and column, both from 1, and the text of the line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Location<'a> {
    pub(crate) line: usize,
    /// In characters, not bytes.
    pub(crate) column: usize,
    pub(crate) line_text: &'a str,
}

impl Sources {
    /// No files yet; all will be in this encoding.
    pub(crate) fn new(encoding: Encoding) -> Self {
        Self {
            encoding,
            ..Self::default()
        }
    }

    /// Adds a file; `identity` is its absolute path if it has one.
    pub(crate) fn add(&mut self, path: PathBuf, identity: Option<PathBuf>, bytes: &[u8]) -> FileId {
        let Decoded {
            text,
            remark,
            replaced,
        } = decode(bytes, self.encoding);
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let line_starts = std::iter::once(0)
            .chain(newlines.map(|(at, _)| at + 1))
            .collect();
        let file = FileId(self.files.len());
        self.files.push(SourceFile {
            path,
            text,
            remark,
            replaced,
            line_starts,
            markers: Vec::new(),
        });
        if let Some(identity) = identity {
            self.by_identity.insert(identity, file);
        }
        file
    }

    /// The file already opened under this absolute path, if any.
    pub(crate) fn find(&self, identity: &Path) -> Option<FileId> {
        self.by_identity.get(identity).copied()
    }

    pub(crate) fn get(&self, id: FileId) -> Option<&SourceFile> {
        self.files.get(id.0)
    }

    pub(crate) fn text(&self, id: FileId) -> &str {
        self.get(id).map_or("", |file| file.text.as_str())
    }

    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.files.iter().map(|file| file.path.clone()).collect()
    }

    /// Adds a line marker that ends at this position.
    pub(crate) fn mark(&mut self, id: FileId, offset: usize, presumed: usize, file: Option<&str>) {
        let line = self.line(id, offset) + 1;
        let Some(source) = self.files.get_mut(id.0) else {
            return;
        };
        // Reading a file again repeats its markers.
        if source.markers.last().is_none_or(|last| last.line < line) {
            let before = source.markers.last().and_then(|last| last.file.clone());
            source.markers.push(Marker {
                line,
                presumed,
                file: file.map(PathBuf::from).or(before),
            });
        }
    }

    /// The file and line of a byte offset, according to the line markers.
    pub(crate) fn presumed(&self, id: FileId, offset: usize) -> (PathBuf, usize) {
        let Some(source) = self.get(id) else {
            return (PathBuf::new(), 0);
        };
        let line = self.line(id, offset);
        let at = source.markers.partition_point(|marker| marker.line <= line);
        match at.checked_sub(1).and_then(|at| source.markers.get(at)) {
            Some(marker) => {
                let file = marker.file.as_ref().unwrap_or(&source.path);
                let line = marker.presumed.saturating_add(line - marker.line);
                (file.clone(), line)
            }
            None => (source.path.clone(), line),
        }
    }

    /// The line of a byte offset, from 1.
    pub(crate) fn line(&self, id: FileId, offset: usize) -> usize {
        let starts = self.get(id).map_or(&[][..], |file| &file.line_starts);
        starts.partition_point(|start| *start <= offset)
    }

    /// Line and column of a byte offset.
    pub(crate) fn locate(&self, id: FileId, offset: usize) -> Location<'_> {
        let Some(file) = self.get(id) else {
            return Location {
                line: 0,
                column: 0,
                line_text: "",
            };
        };
        let line = self.line(id, offset);
        let start = file
            .line_starts
            .get(line.saturating_sub(1))
            .copied()
            .unwrap_or(0);
        let end = file
            .line_starts
            .get(line)
            .copied()
            .unwrap_or(file.text.len());
        let line_text = file
            .text
            .get(start..end)
            .unwrap_or("")
            .trim_end_matches(['\n', '\r']);
        let before = file
            .text
            .get(start..offset.min(file.text.len()))
            .unwrap_or("");
        Location {
            line,
            column: before.chars().count() + 1,
            line_text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_count_from_one() {
        let mut sources = Sources::default();
        let file = sources.add("a.idl".into(), None, "ab\r\né x\n".as_bytes());
        let at = |offset| {
            let location = sources.locate(file, offset);
            (location.line, location.column, location.line_text)
        };
        assert_eq!(at(0), (1, 1, "ab"));
        assert_eq!(at(7), (2, 3, "é x"));
        assert_eq!(at(9), (3, 1, ""));
        assert_eq!(at(900), (3, 1, ""), "behind the end");
    }
}
