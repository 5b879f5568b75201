//! Where the log of a topic is.
//!
//! ```text
//!   <spindle.log.directory>/domain-<id>/<topic>/
//! ```
//!
//! Of the name of a topic, the bytes of letters, digits, `_` and `-` of ASCII stand for themselves, each
//! other byte is `%` and two hexadecimal digits. A name that takes more than [`PART_LEN_MAX`] bytes
//! goes on in a directory below; each part but the last ends with `~`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Most bytes of a part of a name: a file system takes 255.
const PART_LEN_MAX: usize = 240;

/// What a part ends with that is not the last.
const GOES_ON: char = '~';

const DOMAIN: &str = "domain-";

/// The directory of the log of a topic.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPlace {
    /// The domain.
    pub domain: u32,
    /// The topic.
    pub topic: String,
    /// The directory.
    pub path: PathBuf,
}

impl LogPlace {
    /// The place of the log of a topic below `spindle.log.directory`.
    pub fn new(directory: &Path, domain: u32, topic: &str) -> Self {
        Self {
            domain,
            topic: topic.to_owned(),
            path: directory
                .join(format!("{DOMAIN}{domain}"))
                .join(escaped(topic)),
        }
    }

    /// The directory with the logs of its domain: one process at a time writes these.
    pub fn domain_directory(&self) -> &Path {
        let parts = escaped(&self.topic).components().count();
        self.path.ancestors().nth(parts).unwrap_or(&self.path)
    }
}

/// The logs below `spindle.log.directory`, by domain and topic.
///
/// # Errors
/// A directory cannot be read.
pub fn log_places(directory: &Path) -> io::Result<Vec<LogPlace>> {
    let mut found = Vec::new();
    for (name, path) in directories(directory)? {
        let domain = name.strip_prefix(DOMAIN).and_then(|id| id.parse().ok());
        if let Some(domain) = domain {
            find(domain, &path, "", &mut found)?;
        }
    }
    found.sort();
    Ok(found)
}

fn find(domain: u32, below: &Path, begin: &str, found: &mut Vec<LogPlace>) -> io::Result<()> {
    for (name, path) in directories(below)? {
        if let Some(part) = name.strip_suffix(GOES_ON) {
            find(domain, &path, &format!("{begin}{part}"), found)?;
        } else if let Some(topic) = unescaped(&format!("{begin}{name}")) {
            found.push(LogPlace {
                domain,
                topic,
                path,
            });
        }
    }
    Ok(())
}

/// The directories in a directory whose names are text.
fn directories(of: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(of)? {
        let entry = entry?;
        if let Ok(name) = entry.file_name().into_string()
            && entry.file_type()?.is_dir()
        {
            found.push((name, entry.path()));
        }
    }
    Ok(found)
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// A topic as a path.
fn escaped(topic: &str) -> PathBuf {
    let mut path = PathBuf::new();
    let mut part = String::new();
    for byte in topic.bytes() {
        let sign = match is_plain(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        };
        if part.len() + sign.len() > PART_LEN_MAX {
            part.push(GOES_ON);
            path.push(std::mem::take(&mut part));
        }
        part += &sign;
    }
    path.push(part);
    path
}

/// The topic of a name; `None` for what no topic is written as.
fn unescaped(name: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = name.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        bytes.push(match first {
            b'%' => {
                let (digits, after) = rest.split_first_chunk::<2>()?;
                rest = after;
                let byte = u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?;
                (!is_plain(byte) && !digits.iter().any(u8::is_ascii_lowercase)).then_some(byte)?
            }
            plain => is_plain(*plain).then_some(*plain)?,
        });
    }
    String::from_utf8(bytes)
        .ok()
        .filter(|topic| !topic.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_found_under_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let long = "ü/".repeat(64);
        let topics = [
            "Track",
            "rt/chatter.v1",
            "..",
            "~",
            "a b",
            "%41",
            "Ü",
            &long,
        ];
        let mut expected = Vec::new();
        for topic in topics {
            for domain in [0, 17] {
                let place = LogPlace::new(folder.path(), domain, topic);
                let above = folder.path().join(format!("domain-{domain}"));
                assert_eq!(place.domain_directory(), above);
                fs::create_dir_all(&place.path).unwrap();
                expected.push(place);
            }
        }
        expected.sort();
        // None of these is of a log.
        for other in [
            "set-aside/x",
            "domain-x/Track",
            "domain-0/Track.old",
            "domain-0/%4",
            "domain-0/%61",
        ] {
            fs::create_dir_all(folder.path().join(other)).unwrap();
        }
        fs::write(folder.path().join("lock"), "").unwrap();
        assert_eq!(log_places(folder.path()).unwrap(), expected);
    }

    #[test]
    fn names_are_escaped() {
        let path = |topic| LogPlace::new(Path::new("logs"), 3, topic).path;
        assert_eq!(path("a/b.C_-1"), Path::new("logs/domain-3/a%2Fb%2EC_-1"));
        let long = path(&"x".repeat(256));
        let parts: Vec<_> = long.iter().map(|part| part.len()).collect();
        assert_eq!(parts, [4, 8, PART_LEN_MAX + 1, 256 - PART_LEN_MAX]);
    }
}
