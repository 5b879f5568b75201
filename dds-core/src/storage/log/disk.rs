//! The files of a log.

/// Why a file cannot be used. The text is of the layer that implements [`Disk`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiskError {
    /// There is no room.
    #[error("{0}")]
    Full(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

/// A flat directory of files. What was written, truncated, created, renamed or removed outlasts a
/// crash once the file or the directory is synced, not before.
pub trait Disk {
    /// Names and lengths of all files, in any order.
    fn list(&mut self) -> Result<Vec<(String, u64)>, DiskError>;

    /// Reads up to the length of the buffer, less only at the end of the file.
    fn read(&mut self, file: &str, at: u64, buffer: &mut [u8]) -> Result<usize, DiskError>;

    /// Creates an empty file. One that exists already is an error.
    fn create(&mut self, file: &str) -> Result<(), DiskError>;

    /// Appends: `at` is the length of the file so far. After an error, what stands in the file from
    /// there on is not known.
    fn write(&mut self, file: &str, at: u64, parts: &[&[u8]]) -> Result<(), DiskError>;

    /// Makes what the file contains durable.
    fn sync(&mut self, file: &str) -> Result<(), DiskError>;

    /// Makes the names in the directory durable.
    fn sync_directory(&mut self) -> Result<(), DiskError>;

    /// Renames a file, and replaces one of that name.
    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError>;

    /// Shortens a file.
    fn truncate(&mut self, file: &str, len: u64) -> Result<(), DiskError>;

    /// Removes a file.
    fn remove(&mut self, file: &str) -> Result<(), DiskError>;
}

impl<D: Disk + ?Sized> Disk for &mut D {
    fn list(&mut self) -> Result<Vec<(String, u64)>, DiskError> {
        (**self).list()
    }

    fn read(&mut self, file: &str, at: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        (**self).read(file, at, buffer)
    }

    fn create(&mut self, file: &str) -> Result<(), DiskError> {
        (**self).create(file)
    }

    fn write(&mut self, file: &str, at: u64, parts: &[&[u8]]) -> Result<(), DiskError> {
        (**self).write(file, at, parts)
    }

    fn sync(&mut self, file: &str) -> Result<(), DiskError> {
        (**self).sync(file)
    }

    fn sync_directory(&mut self) -> Result<(), DiskError> {
        (**self).sync_directory()
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        (**self).rename(from, to)
    }

    fn truncate(&mut self, file: &str, len: u64) -> Result<(), DiskError> {
        (**self).truncate(file, len)
    }

    fn remove(&mut self, file: &str) -> Result<(), DiskError> {
        (**self).remove(file)
    }
}
