//! A domain's directory and record on this host, looked at and left as they are.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use serde::Serialize;
use spindle_dds_transport::shm::{DomainRegistry, DomainState, MemberEntry};

/// What is there of a domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Domain {
    /// The directory is made by the first participant.
    NoDirectory,
    /// Nobody lives there, as far as this host knows.
    Nobody,
    /// So many members.
    Members(usize),
    /// No participant can use it.
    Unusable(String),
}

impl Domain {
    pub(super) fn look(domain: u32, directory: &Path) -> Self {
        let unusable =
            |problem: String| Self::Unusable(format!("{} {problem}", directory.display()));
        let found = match std::fs::symlink_metadata(directory) {
            Ok(found) => found,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let parent = directory.parent().filter(|it| !it.as_os_str().is_empty());
                return match parent.is_none_or(Path::is_dir) {
                    true => Self::NoDirectory,
                    false => {
                        unusable("cannot be made: the directory above is not there".to_owned())
                    }
                };
            }
            Err(error) => return unusable(format!("cannot be looked at: {error}")),
        };
        let user = rustix::process::geteuid().as_raw();
        let mode = found.permissions().mode() & 0o777;
        if !found.is_dir() {
            return unusable("is no directory".to_owned());
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
        // To look takes the domain's lock, which would be made if it were not there.
        if !directory.join(format!("domain-{domain}.record")).exists() {
            return Self::Nobody;
        }
        match living(domain, directory) {
            Ok(0) => Self::Nobody,
            Ok(count) => Self::Members(count),
            Err(problem) => Self::Unusable(problem),
        }
    }
}

fn living(domain: u32, directory: &Path) -> Result<usize, String> {
    // Nobody's: it is in no view, and so it leaves none.
    let me = MemberEntry {
        id: 0,
        host: 0,
        pid: 0,
        start: 0,
        address: Vec::new(),
    };
    let looked = DomainRegistry::open(domain, Some(directory), me)
        .and_then(|register| register.living_members());
    match looked {
        Ok(DomainState::Empty) => Ok(0),
        Ok(DomainState::Present(members)) => Ok(members.len()),
        Err(error) => Err(error.to_string()),
    }
}
