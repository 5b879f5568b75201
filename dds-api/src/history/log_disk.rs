//! The files of a log in a directory.

#[cfg(test)]
mod mounted;
#[cfg(test)]
mod tests;

use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate, fdatasync, fsync};
use rustix::io::{Errno, pwritev, retry_on_intr};
use spindle_dds_core::storage::log::{Disk, DiskError};

/// Files that are kept open, more only while they are not synced.
const OPEN_MAX: usize = 8;

/// Most parts that the kernel writes at once (`IOV_MAX`).
const PARTS_MAX: usize = 1024;

/// What is appended to takes room before it is written: as much as it has, within these bounds.
const ROOM_MIN: u64 = 256 << 10;
const ROOM_MAX: u64 = 16 << 20;
/// Ends the names of files that are appended to.
const APPENDED: &str = ".segment";

/// The files of a log in a directory.
///
/// Files are read and written, never mapped: an error of the disk is an error of a call. A file that
/// an earlier process has written is read from the disk, not from what the kernel kept of it: after a
/// sync that failed, the kernel takes its pages for written.
#[derive(Debug)]
pub struct LogDirectory {
    path: PathBuf,
    /// Those used last come last.
    open: Vec<OpenFile>,
    /// The directory, open since it was synced first: to sync it takes no descriptor any more.
    directory: Option<File>,
}

#[derive(Debug)]
struct OpenFile {
    name: String,
    file: File,
    /// Why it is open to be read only.
    refused: Option<Errno>,
    /// The kernel tells an error of writing those that have the file open.
    is_unsynced: bool,
    /// Up to where room was taken.
    room: u64,
}

impl LogDirectory {
    /// The files of a directory. It need not be there until a file is used.
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            open: Vec::new(),
            directory: None,
        }
    }

    /// Creates the directory, and those above it. It is durable when this returns.
    ///
    /// # Errors
    /// A directory cannot be created or synced.
    pub fn create(path: &Path) -> Result<Self, DiskError> {
        let directory = Self::new(path);
        let missing = path
            .ancestors()
            .take_while(|it| !it.as_os_str().is_empty() && !it.is_dir());
        let missing: Vec<&Path> = missing.collect();
        for missing in missing.into_iter().rev() {
            match fs::create_dir(missing) {
                // Another process may have created it.
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(directory.failed(&error));
                }
                Ok(()) | Err(_) => {}
            }
            let above = missing.parent().filter(|it| !it.as_os_str().is_empty());
            sync_directory(above.unwrap_or_else(|| Path::new(".")))
                .map_err(|it| directory.failed(&it))?;
        }
        Ok(directory)
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn failed(&self, error: &io::Error) -> DiskError {
        let text = format!("{error}, in {}", self.path.display());
        let errno = error.raw_os_error().map(Errno::from_raw_os_error);
        match errno {
            // A file that cannot be opened for want of a descriptor is as it was, like a full disk.
            Some(Errno::NOSPC | Errno::DQUOT | Errno::MFILE | Errno::NFILE) => {
                DiskError::Full(text)
            }
            _ => DiskError::Failed(text),
        }
    }

    /// Opens a file, if it is not open.
    fn file(&mut self, name: &str) -> Result<&mut OpenFile, DiskError> {
        let found = self.open.iter().position(|it| it.name == name);
        let file = match found {
            Some(found) => self.open.remove(found),
            None => {
                let opened = open_existing(&self.path.join(name));
                let (file, refused, room) = opened.map_err(|error| self.failed(&error))?;
                OpenFile {
                    name: name.to_owned(),
                    file,
                    refused,
                    is_unsynced: false,
                    room,
                }
            }
        };
        self.keep_open(file);
        let last = self.open.last_mut();
        last.ok_or_else(|| DiskError::Failed(format!("{name} is not open")))
    }

    fn keep_open(&mut self, file: OpenFile) {
        self.open.push(file);
        let last = self.open.len() - 1;
        let is_spare = |it: &OpenFile| !it.is_unsynced;
        if let Some(spare) = self.open[..last].iter().position(is_spare)
            && last >= OPEN_MAX
        {
            self.open.remove(spare);
        }
    }
}

/// Opens a file that is there: with why it cannot be written, if so, and its length.
fn open_existing(path: &Path) -> io::Result<(File, Option<Errno>, u64)> {
    let mut options = OpenOptions::new();
    let options = options.read(true);
    let (file, refused) = match options.clone().write(true).open(path) {
        Ok(file) => (file, None),
        Err(error) => match Errno::from_io_error(&error) {
            // It may be there to be read only.
            Some(errno @ (Errno::ACCESS | Errno::PERM | Errno::ROFS)) => {
                (options.open(path)?, Some(errno))
            }
            _ => return Err(error),
        },
    };
    let len = file.metadata()?.len();
    // What cannot be written is not there: it is read from the disk. An error here is one of an earlier
    // process, of which the log can only know by what it finds.
    let _ = retry_on_intr(|| fdatasync(&file));
    let _ = fadvise(&file, 0, None, Advice::DontNeed);
    Ok((file, refused, len))
}

fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = File::open(path)?;
    Ok(retry_on_intr(|| fsync(&directory))?)
}

impl OpenFile {
    fn check_writable(&self) -> io::Result<()> {
        self.refused.map_or(Ok(()), |errno| Err(errno.into()))
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.check_writable()?;
        self.is_unsynced = true;
        self.room = len;
        self.file.set_len(len)
    }

    fn write(&mut self, at: u64, parts: &[&[u8]]) -> io::Result<()> {
        self.check_writable()?;
        let len: u64 = parts.iter().map(|it| it.len() as u64).sum();
        self.take_room(at, at + len);
        self.is_unsynced = true;
        let mut at = at;
        for parts in parts.chunks(PARTS_MAX) {
            let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|it| IoSlice::new(it)).collect();
            let mut left = &mut slices[..];
            IoSlice::advance_slices(&mut left, 0);
            while !left.is_empty() {
                match pwritev(&self.file, left, at) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(written) => {
                        at += written as u64;
                        IoSlice::advance_slices(&mut left, written);
                    }
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    /// Its length stays: it says what is written. A file system that cannot do it, or has no room for all of
    /// it, still writes.
    fn take_room(&mut self, len: u64, end: u64) {
        if end > self.room && self.name.ends_with(APPENDED) {
            let room = end + len.clamp(ROOM_MIN, ROOM_MAX);
            let from = self.room;
            let _ = fallocate(&self.file, FallocateFlags::KEEP_SIZE, from, room - from);
            self.room = room;
        }
    }
}

impl Disk for LogDirectory {
    fn list(&mut self) -> Result<Vec<(String, u64)>, DiskError> {
        let list = || {
            let mut files = Vec::new();
            for entry in fs::read_dir(&self.path)? {
                let entry = entry?;
                let Ok(name) = entry.file_name().into_string() else {
                    continue;
                };
                if entry.file_type()?.is_file() {
                    files.push((name, entry.metadata()?.len()));
                }
            }
            Ok(files)
        };
        list().map_err(|error| self.failed(&error))
    }

    fn read(&mut self, file: &str, at: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        let open = &self.file(file)?.file;
        let mut read = 0;
        while read < buffer.len() {
            match open.read_at(&mut buffer[read..], at + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(&error)),
            }
        }
        Ok(read)
    }

    fn create(&mut self, file: &str) -> Result<(), DiskError> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create_new(true);
        let created = options.open(self.path.join(file));
        let created = created.map_err(|error| self.failed(&error))?;
        self.keep_open(OpenFile {
            name: file.to_owned(),
            file: created,
            refused: None,
            is_unsynced: true,
            room: 0,
        });
        Ok(())
    }

    fn write(&mut self, file: &str, at: u64, parts: &[&[u8]]) -> Result<(), DiskError> {
        let written = self.file(file)?.write(at, parts);
        written.map_err(|error| self.failed(&error))
    }

    fn sync(&mut self, file: &str) -> Result<(), DiskError> {
        let open = self.file(file)?;
        // What a signal has interrupted has not failed.
        let synced = retry_on_intr(|| fdatasync(&open.file));
        // The error is told once: keeping the file open for it serves nothing.
        open.is_unsynced = false;
        synced.map_err(|error| self.failed(&error.into()))
    }

    fn sync_directory(&mut self) -> Result<(), DiskError> {
        let directory = match &self.directory {
            Some(directory) => directory,
            None => {
                let opened = File::open(&self.path).map_err(|error| self.failed(&error))?;
                self.directory.insert(opened)
            }
        };
        let synced = retry_on_intr(|| fsync(directory));
        synced.map_err(|error| self.failed(&error.into()))
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        let renamed = fs::rename(self.path.join(from), self.path.join(to));
        renamed.map_err(|error| self.failed(&error))?;
        self.open.retain(|it| it.name != to);
        let renamed = self.open.iter_mut().find(|it| it.name == from);
        if let Some(renamed) = renamed {
            to.clone_into(&mut renamed.name);
        }
        Ok(())
    }

    fn truncate(&mut self, file: &str, len: u64) -> Result<(), DiskError> {
        let cut = self.file(file)?.cut(len);
        cut.map_err(|error| self.failed(&error))
    }

    fn remove(&mut self, file: &str) -> Result<(), DiskError> {
        self.open.retain(|it| it.name != file);
        let removed = fs::remove_file(self.path.join(file));
        removed.map_err(|error| self.failed(&error))
    }
}
