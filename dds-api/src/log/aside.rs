//! Puts a log aside that does not belong to those of the other participants.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use spindle_dds_core::storage::LogId;

use super::lock::LogLock;
use super::place::LogPlace;

/// Where logs are that were put aside, beside the directories of domains.
const ASIDE: &str = "set-aside";

impl LogLock {
    /// Renames the directory of a log, so that a participant does not find it and begins a new one:
    ///
    /// ```text
    ///   <directory>/domain-0/Track  -->  <directory>/set-aside/domain-0/Track.<id of the log>
    /// ```
    ///
    /// Returns the new name. To rename it back undoes it.
    ///
    /// # Errors
    /// The place is not of this directory; the log was put aside before; a directory cannot be made or
    /// renamed.
    pub fn set_aside(&self, place: &LogPlace, id: LogId) -> io::Result<PathBuf> {
        let elsewhere =
            || io::Error::new(io::ErrorKind::InvalidInput, "it is not in the directory");
        let below = place.path.strip_prefix(self.directory());
        let below = below.map_err(|_| elsewhere())?;
        let name = below.file_name().ok_or_else(elsewhere)?;
        let mut name = name.to_owned();
        name.push(format!(".{id}"));
        let domain = self.directory().file_name().ok_or_else(elsewhere)?;
        let aside = parent(self.directory())?.join(ASIDE).join(domain);
        let target = aside.join(below).with_file_name(name);
        if target.exists() {
            let text = format!("{} is there already", target.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
        let parents = [parent(&target)?, parent(&place.path)?];
        fs::create_dir_all(parents[0])?;
        fs::rename(&place.path, &target)?;
        parents.iter().try_for_each(|it| sync(it))?;
        Ok(target)
    }
}

fn parent(path: &Path) -> io::Result<&Path> {
    let none = || io::Error::new(io::ErrorKind::InvalidInput, "it is the root");
    path.parent().ok_or_else(none)
}

/// Makes the names in a directory durable.
fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::log_places;

    #[test]
    fn a_log_is_put_aside_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path();
        let topic = "x".repeat(250);
        let place = LogPlace::new(directory, 3, &topic);
        fs::create_dir_all(&place.path).unwrap();
        fs::write(place.path.join("head"), "h").unwrap();
        let lock = LogLock::acquire(place.domain_directory()).unwrap().unwrap();
        let aside = lock.set_aside(&place, LogId(7)).unwrap();
        assert_eq!(fs::read(aside.join("head")).unwrap(), b"h");
        assert!(aside.starts_with(directory.join("set-aside/domain-3")));
        assert_eq!(log_places(directory).unwrap(), []);
        // A second one of the same log is not put over it.
        fs::create_dir_all(&place.path).unwrap();
        let error = lock.set_aside(&place, LogId(7)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        lock.set_aside(&place, LogId(8)).unwrap();
        let elsewhere = LogPlace::new(Path::new("elsewhere"), 3, "y");
        assert!(lock.set_aside(&elsewhere, LogId(7)).is_err());
    }
}
