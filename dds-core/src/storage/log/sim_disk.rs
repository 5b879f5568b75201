//! A disk in memory that fails as disks do, for tests and the simulator.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spindle_dds_transport::sim::Rng;

use super::disk::{Disk, DiskError};

/// Files in memory. Clones are the same disk.
#[derive(Debug, Clone, Default)]
pub struct SimDisk(Arc<Mutex<Files>>);

#[derive(Debug, Default)]
struct Files {
    names: BTreeMap<String, usize>,
    /// The names that a crash leaves.
    durable_names: BTreeMap<String, usize>,
    /// What became of the directory since its last sync: each a set of names that change at once.
    unsynced_names: Vec<Vec<(String, Option<usize>)>>,
    contents: Vec<File>,
    /// Bytes that all files may have.
    capacity: Option<u64>,
    syncs_to_failure: Option<u64>,
    changes_to_power_cut: Option<u64>,
    is_stalled: bool,
    syncs: u64,
}

#[derive(Debug, Clone, Default)]
struct File {
    bytes: Vec<u8>,
    /// The bytes that a crash leaves.
    durable: Vec<u8>,
    unsynced: Vec<Change>,
    has_lost: bool,
}

#[derive(Debug, Clone)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Truncate { len: usize },
}

impl SimDisk {
    /// The power fails: of what is not synced, any part is lost. Writes may be torn. Then the disk works
    /// again.
    pub fn crash(&self, rng: &mut Rng) {
        self.lose(&mut |below| rng.below(below));
    }

    /// The power fails, and all that is not synced is lost. Then the disk works again.
    pub fn lose_unsynced(&self) {
        self.lose(&mut |_| 0);
    }

    /// The process ends, and another begins. Nothing is lost but what a failed sync was to make durable.
    pub fn end_process(&self) {
        let mut files = self.files();
        for file in &mut files.contents {
            if core::mem::take(&mut file.has_lost) {
                file.bytes = file.durable.clone();
                for change in &file.unsynced {
                    change.apply(&mut file.bytes);
                }
            }
        }
        files.syncs_to_failure = None;
        files.is_stalled = false;
    }

    fn lose(&self, below: &mut dyn FnMut(usize) -> usize) {
        let mut files = self.files();
        let files = &mut *files;
        for change in files.unsynced_names.drain(..) {
            if below(2) == 1 {
                set_names(&mut files.durable_names, &change);
            }
        }
        files.names = files.durable_names.clone();
        for file in &mut files.contents {
            for change in core::mem::take(&mut file.unsynced) {
                match below(3) {
                    0 => {}
                    1 => change.apply(&mut file.durable),
                    _ => change.tear(below).apply(&mut file.durable),
                }
            }
            file.bytes = file.durable.clone();
            file.has_lost = false;
        }
        files.syncs_to_failure = None;
        files.changes_to_power_cut = None;
        files.is_stalled = false;
    }

    /// After `count` more changes and syncs nothing works until the next [`crash`](Self::crash).
    pub fn cut_power_after(&self, count: u64) {
        self.files().changes_to_power_cut = Some(count);
    }

    /// The sync after `count` others fails. What it was to make durable may be lost at the next crash, whatever
    /// later syncs say.
    pub fn fail_sync_after(&self, count: u64) {
        self.files().syncs_to_failure = Some(count);
    }

    /// Bytes that all files together may have; `None`: any number.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.files().capacity = bytes;
    }

    /// Bytes of all files.
    pub fn used(&self) -> u64 {
        self.files().used()
    }

    /// Changes a bit of a file, for good. Gives whether there is such a bit.
    pub fn flip(&self, file: &str, byte: u64, bit: u32) -> bool {
        let mut files = self.files();
        let Ok(file) = files.file(file) else {
            return false;
        };
        let mut has_changed = false;
        for bytes in [&mut file.bytes, &mut file.durable] {
            if let Some(byte) = usize::try_from(byte).ok().and_then(|it| bytes.get_mut(it)) {
                *byte ^= 1 << (bit % 8);
                has_changed = true;
            }
        }
        has_changed
    }

    /// The disk takes long. The caller does not use it meanwhile: see [`is_stalled`](Self::is_stalled).
    pub fn set_stalled(&self, is_stalled: bool) {
        self.files().is_stalled = is_stalled;
    }

    /// Whether the thread that uses the disk would wait.
    pub fn is_stalled(&self) -> bool {
        self.files().is_stalled
    }

    /// Syncs of files and of the directory.
    pub fn syncs(&self) -> u64 {
        self.files().syncs
    }

    /// A disk of its own with the files as they are now, all durable.
    #[must_use]
    pub fn copy(&self) -> Self {
        let copy = Self::default();
        for (name, bytes) in self.contents() {
            copy.put(&name, bytes);
        }
        copy
    }

    /// A disk of its own with the files as a power cut would leave them that loses all that is not synced.
    #[must_use]
    pub fn copy_of_durable(&self) -> Self {
        let copy = Self::default();
        let files = self.files();
        for (name, file) in &files.durable_names {
            copy.put(name, files.contents[*file].durable.clone());
        }
        drop(files);
        copy
    }

    /// All files as they are now.
    pub fn contents(&self) -> BTreeMap<String, Vec<u8>> {
        let files = self.files();
        let names = files.names.iter();
        names
            .map(|(name, file)| (name.clone(), files.contents[*file].bytes.clone()))
            .collect()
    }

    /// Replaces a file, durably.
    pub fn put(&self, file: &str, bytes: Vec<u8>) {
        let mut files = self.files();
        let index = files.contents.len();
        files.contents.push(File {
            durable: bytes.clone(),
            bytes,
            unsynced: Vec::new(),
            has_lost: false,
        });
        files.names.insert(file.to_owned(), index);
        files.durable_names.insert(file.to_owned(), index);
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Files {
    fn file(&mut self, name: &str) -> Result<&mut File, DiskError> {
        let missing = || DiskError::Failed(format!("there is no file {name}"));
        let file = *self.names.get(name).ok_or_else(missing)?;
        Ok(&mut self.contents[file])
    }

    fn used(&self) -> u64 {
        let files = self.names.values();
        files
            .map(|file| self.contents[*file].bytes.len() as u64)
            .sum()
    }

    fn change_names(&mut self, change: Vec<(String, Option<usize>)>) {
        set_names(&mut self.names, &change);
        self.unsynced_names.push(change);
    }

    /// Whether there is power for one more change.
    fn change(&mut self) -> Result<(), DiskError> {
        if self.changes_to_power_cut == Some(0) {
            return Err(DiskError::Failed("no power".to_owned()));
        }
        self.changes_to_power_cut = self.changes_to_power_cut.map(|it| it - 1);
        Ok(())
    }

    fn fails_to_sync(&mut self) -> bool {
        self.syncs += 1;
        let fails = self.syncs_to_failure == Some(0);
        self.syncs_to_failure = self.syncs_to_failure.and_then(|it| it.checked_sub(1));
        fails
    }
}

impl Change {
    fn apply(&self, file: &mut Vec<u8>) {
        match self {
            Self::Write { at, bytes } => {
                let end = at + bytes.len();
                file.resize(file.len().max(end), 0);
                file[*at..end].copy_from_slice(bytes);
            }
            Self::Truncate { len } => file.truncate(*len),
        }
    }

    /// A part of it, from its beginning or to its end.
    fn tear(self, below: &mut dyn FnMut(usize) -> usize) -> Self {
        let Self::Write { at, mut bytes } = self else {
            return self;
        };
        let place = below(bytes.len() + 1);
        if below(2) == 0 {
            bytes.truncate(place);
            return Self::Write { at, bytes };
        }
        let bytes = bytes.split_off(place);
        Self::Write {
            at: at + place,
            bytes,
        }
    }
}

fn set_names(names: &mut BTreeMap<String, usize>, change: &[(String, Option<usize>)]) {
    for (name, file) in change {
        match file {
            Some(file) => {
                names.insert(name.clone(), *file);
            }
            None => {
                names.remove(name);
            }
        }
    }
}

impl Disk for SimDisk {
    fn list(&mut self) -> Result<Vec<(String, u64)>, DiskError> {
        let files = self.files();
        let len = |file: &usize| files.contents[*file].bytes.len() as u64;
        Ok(files
            .names
            .iter()
            .map(|(name, file)| (name.clone(), len(file)))
            .collect())
    }

    fn read(&mut self, file: &str, at: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        let mut files = self.files();
        let bytes = &files.file(file)?.bytes;
        let at = usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
        let len = buffer.len().min(bytes.len() - at);
        buffer[..len].copy_from_slice(&bytes[at..at + len]);
        Ok(len)
    }

    fn create(&mut self, file: &str) -> Result<(), DiskError> {
        let mut files = self.files();
        files.change()?;
        if files.names.contains_key(file) {
            return Err(DiskError::Failed(format!("{file} exists")));
        }
        let index = files.contents.len();
        files.contents.push(File::default());
        files.change_names(vec![(file.to_owned(), Some(index))]);
        Ok(())
    }

    fn write(&mut self, file: &str, at: u64, parts: &[&[u8]]) -> Result<(), DiskError> {
        let mut files = self.files();
        let mut bytes = parts.concat();
        let power = files.change();
        let room = files
            .capacity
            .map_or(u64::MAX, |it| it.saturating_sub(files.used()));
        let file = files.file(file)?;
        if at != file.bytes.len() as u64 {
            return Err(DiskError::Failed(format!("byte {at} is not the end")));
        }
        let is_full = bytes.len() as u64 > room;
        if is_full {
            bytes.truncate(room as usize);
        }
        let at = file.bytes.len();
        let change = Change::Write { at, bytes };
        change.apply(&mut file.bytes);
        file.unsynced.push(change);
        power?;
        match is_full {
            true => Err(DiskError::Full("no space left".to_owned())),
            false => Ok(()),
        }
    }

    fn sync(&mut self, file: &str) -> Result<(), DiskError> {
        let mut files = self.files();
        files.change()?;
        let fails = files.fails_to_sync();
        let file = files.file(file)?;
        let unsynced = core::mem::take(&mut file.unsynced);
        if fails {
            // The kernel says so once, and holds the pages for clean from now on.
            file.has_lost = true;
            return Err(DiskError::Failed("input/output error".to_owned()));
        }
        for change in unsynced {
            change.apply(&mut file.durable);
        }
        Ok(())
    }

    fn sync_directory(&mut self) -> Result<(), DiskError> {
        let mut files = self.files();
        files.change()?;
        if files.fails_to_sync() {
            files.unsynced_names.clear();
            return Err(DiskError::Failed("input/output error".to_owned()));
        }
        files.unsynced_names.clear();
        files.durable_names = files.names.clone();
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        let mut files = self.files();
        files.change()?;
        files.file(from)?;
        let file = files.names.get(from).copied();
        files.change_names(vec![(from.to_owned(), None), (to.to_owned(), file)]);
        Ok(())
    }

    fn truncate(&mut self, file: &str, len: u64) -> Result<(), DiskError> {
        let mut files = self.files();
        files.change()?;
        let file = files.file(file)?;
        let change = Change::Truncate { len: len as usize };
        change.apply(&mut file.bytes);
        file.unsynced.push(change);
        Ok(())
    }

    fn remove(&mut self, file: &str) -> Result<(), DiskError> {
        let mut files = self.files();
        files.change()?;
        files.file(file)?;
        files.change_names(vec![(file.to_owned(), None)]);
        Ok(())
    }
}
