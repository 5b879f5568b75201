//! A domain's directory and record on this host. They are only read.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use serde::Serialize;
use spindle_dds_transport::shm::{DomainRegistry, DomainState, MemberEntry};

/// The state of a domain on this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Domain {
    /// There is no directory yet: the first participant creates it.
    NoDirectory,
    /// The record names no live member.
    NoMembers,
    /// The record names so many members.
    Members(usize),
    /// No participant can use the directory, for this reason.
    Unusable(String),
}

impl Domain {
    pub(super) fn read(domain: u32, directory: &Path) -> Self {
        let unusable =
            |problem: String| Self::Unusable(format!("{} {problem}", directory.display()));
        let found = match std::fs::symlink_metadata(directory) {
            Ok(found) => found,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let parent = directory.parent().filter(|it| !it.as_os_str().is_empty());
                return match parent.is_none_or(Path::is_dir) {
                    true => Self::NoDirectory,
                    false => unusable(
                        "cannot be created: its parent directory does not exist".to_owned(),
                    ),
                };
            }
            Err(error) => return unusable(format!("cannot be read: {error}")),
        };
        let user = rustix::process::geteuid().as_raw();
        let mode = found.permissions().mode() & 0o777;
        if !found.is_dir() {
            return unusable("is not a directory".to_owned());
        }
        if found.uid() != user {
            let owner = found.uid();
            return unusable(format!("belongs to user {owner}, not to user {user}"));
        }
        if mode & 0o077 != 0 {
            return unusable(format!(
                "has mode {mode:03o}; others must have no access: chmod 700"
            ));
        }
        // Reading the record takes the domain's lock, which would create the lock's file.
        if !directory.join(format!("domain-{domain}.record")).exists() {
            return Self::NoMembers;
        }
        match living_members(domain, directory) {
            Ok(members) if members.is_empty() => Self::NoMembers,
            Ok(members) => Self::Members(members.len()),
            Err(problem) => Self::Unusable(problem),
        }
    }
}

/// The members in the record. To be called if there is a record.
pub(super) fn living_members(domain: u32, directory: &Path) -> Result<Vec<MemberEntry>, String> {
    // The entry of no member: it is in no view, so nothing is left behind.
    let me = MemberEntry {
        id: 0,
        host: 0,
        pid: 0,
        start: 0,
        address: Vec::new(),
    };
    let state = DomainRegistry::open(domain, Some(directory), me)
        .and_then(|register| register.living_members());
    match state {
        Ok(DomainState::Empty) => Ok(Vec::new()),
        Ok(DomainState::Present(members)) => Ok(members),
        Err(error) => Err(error.to_string()),
    }
}
