//! The file of a domain's record: written in place, in room that it has already.
//!
//! ```text
//!   page 0     "spindle-dds-domain 4", boot id, host id     written once
//!   page 1     slot A, first page     header: number, length, kind, checksum; then text
//!   page 2     slot B, first page
//!   page 3     slot A, second page    ...
//! ```
//! Invariants:
//! - Writing takes the slot that is not current, so the current one stays whole: a slot whose
//!   checksum does not match was not written to its end, and the other one counts.
//! - [`reserve`](RecordFile::reserve) allocates the pages of both slots before they are
//!   needed: writing a text that fits allocates nothing. The slots alternate page by page, so
//!   both grow without moving.
//! - All access is under the domain's lock, which is a lock of this file.
//! - A call that fails is repeated for a while, whatever its error says: a disk that fails once
//!   is no reason to leave a group.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{FallocateFlags, IFlags};
use rustix::io::Errno;

use crate::retry;

const PAGE: usize = 4096;

/// Length of a slot's header.
const SLOT_HEADER_LEN: usize = 24;

/// Longest text: more than the largest group with the longest addresses has.
pub(super) const TEXT_LEN_MAX: usize = 1 << 20;

const MAGIC: &str = "spindle-dds-domain ";

/// Version of the format. Versions up to 3 were text that was replaced as a whole.
pub(super) const VERSION: u32 = 4;

/// What the first page says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Head {
    /// The file is new.
    Blank,
    /// Written by this version.
    Present { boot: u128, host: u128 },
    /// Written by another version.
    OtherVersion(u32),
    /// Not a record.
    Foreign,
}

/// What the current slot says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    /// Nothing was written yet.
    Nothing,
    Text(String),
    /// The file was removed, and the record is in the file that has its name now.
    Moved,
    /// Both slots are damaged.
    Damaged,
}

#[derive(Debug)]
pub(super) struct RecordFile {
    file: OwnedFd,
}

/// The header of a slot.
#[derive(Debug, Clone, Copy)]
struct SlotHeader {
    /// The later text has the higher number; 0 if the slot was never written.
    number: u64,
    len: u32,
    kind: u32,
    checksum: u64,
}

impl RecordFile {
    pub(super) fn new(file: OwnedFd) -> Self {
        Self { file }
    }

    pub(super) fn fd(&self) -> &OwnedFd {
        &self.file
    }

    pub(super) fn head(&self) -> io::Result<Head> {
        let mut page = vec![0; PAGE];
        let len = retry::repeat_always(|| read_at(&self.file, &mut page, 0))?;
        let page = &page[..len];
        if page.iter().all(|byte| *byte == 0) {
            return Ok(Head::Blank);
        }
        Ok(read_head(page).unwrap_or(Head::Foreign))
    }

    /// Begins a new record, without text. `reserve` comes first.
    pub(super) fn begin(&self, boot: u128, host: u128) -> io::Result<()> {
        let head = format!("{MAGIC}{VERSION}\n{boot:032x} {host:032x}\n");
        retry::repeat_always(|| write_at(&self.file, head.as_bytes(), 0))
    }

    /// Empties the file: what it holds is of no living process.
    pub(super) fn clear(&self) -> io::Result<()> {
        Ok(rustix::fs::ftruncate(&self.file, 0)?)
    }

    pub(super) fn read(&self) -> io::Result<Content> {
        Ok(retry::repeat_always(|| self.current())?.1)
    }

    /// The number of the slot that counts, which slot that is, and what it says.
    fn current(&self) -> io::Result<((u64, usize), Content)> {
        let slots = self.slots()?;
        let headers = [0, 1].map(|slot| SlotHeader::read(&slots[slot]));
        let later = usize::from(headers[1].number > headers[0].number);
        for slot in [later, 1 - later] {
            if let Some(content) = headers[slot].content(&slots[slot]) {
                return Ok(((headers[slot].number, slot), content));
            }
        }
        // The first text was not written to its end: nothing was decided.
        let content = match headers.iter().any(|header| header.number == 0) {
            true => Content::Nothing,
            false => Content::Damaged,
        };
        Ok(((0, 1), content))
    }

    /// Writes a text. After an error the record is what it was before.
    pub(super) fn write(&self, text: &str) -> io::Result<()> {
        self.put(1, text.as_bytes())
    }

    /// Says that the record is in another file now.
    pub(super) fn mark_moved(&self) -> io::Result<()> {
        self.put(2, &[])
    }

    fn put(&self, kind: u32, text: &[u8]) -> io::Result<()> {
        let expected = match kind {
            1 => Content::Text(String::from_utf8_lossy(text).into_owned()),
            _ => Content::Moved,
        };
        retry::repeat_always(|| {
            let written = self.try_put(kind, text);
            // What reads as written counts as written, for this member as for all others.
            match self.current() {
                Ok((_, content)) if content == expected => Ok(()),
                _ => written,
            }
        })
    }

    fn try_put(&self, kind: u32, text: &[u8]) -> io::Result<()> {
        let ((number, current), _) = self.current()?;
        let slot = 1 - current;
        let mut header = SlotHeader {
            number: number + 1,
            len: text.len() as u32,
            kind,
            checksum: 0,
        };
        header.checksum = header.checksum(text);
        let bytes = [&header.write()[..], text].concat();
        for (index, chunk) in bytes.chunks(PAGE).enumerate() {
            write_at(&self.file, chunk, offset(slot, index))?;
        }
        Ok(())
    }

    /// Whether a text of `len` bytes has room. The lock is not needed: while members live, room
    /// is only added.
    pub(super) fn has_room(&self, len: usize) -> bool {
        let stat = rustix::fs::fstat(&self.file);
        stat.is_ok_and(|stat| stat.st_size as u64 >= end_of_room(len))
    }

    /// Allocates room for a text of `len` bytes, in both slots.
    pub(super) fn reserve(&self, len: usize) -> io::Result<()> {
        let wanted = end_of_room(len);
        let size = rustix::fs::fstat(&self.file)?.st_size as u64;
        if size >= wanted {
            return Ok(());
        }
        check_size_limit(wanted)?;
        if size == 0 {
            // Where writing would copy otherwise, it stays in place. Not all file systems can.
            let _ = rustix::fs::ioctl_getflags(&self.file)
                .and_then(|flags| rustix::fs::ioctl_setflags(&self.file, flags | IFlags::NOCOW));
        }
        let none = FallocateFlags::empty();
        let allocate = || rustix::fs::fallocate(&self.file, none, 0, wanted);
        match rustix::io::retry_on_intr(allocate) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                let zeros = vec![0; (wanted - size) as usize];
                write_at(&self.file, &zeros, size)
            }
            done => Ok(done?),
        }
    }

    /// The bytes of both slots.
    fn slots(&self) -> io::Result<[Vec<u8>; 2]> {
        let size = rustix::fs::fstat(&self.file)?.st_size as u64;
        let most = offset(0, (SLOT_HEADER_LEN + TEXT_LEN_MAX).div_ceil(PAGE) + 1);
        let mut bytes = vec![0; size.min(most) as usize];
        let len = read_at(&self.file, &mut bytes, 0)?;
        bytes.truncate(len);
        let mut slots = [Vec::new(), Vec::new()];
        let pages = bytes.chunks(PAGE).skip(1).enumerate();
        pages.for_each(|(index, page)| slots[index % 2].extend(page));
        Ok(slots)
    }
}

/// Writing beyond the limit on file sizes would raise SIGXFSZ.
fn check_size_limit(end: u64) -> io::Result<()> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
    match limit.is_some_and(|limit| limit < end) {
        true => Err(Errno::FBIG.into()),
        false => Ok(()),
    }
}

/// Length of a file in which both slots have room for a text of `len` bytes.
fn end_of_room(len: usize) -> u64 {
    let pages = (SLOT_HEADER_LEN + len.min(TEXT_LEN_MAX)).div_ceil(PAGE);
    offset(0, pages)
}

fn offset(slot: usize, page: usize) -> u64 {
    (PAGE * (1 + 2 * page + slot)) as u64
}

fn read_head(page: &[u8]) -> Option<Head> {
    let end = page.iter().position(|byte| *byte == b'\n')?;
    let (first, rest) = page.split_at(end);
    let version = str::from_utf8(first).ok()?.strip_prefix(MAGIC)?;
    let version: u32 = version.parse().ok()?;
    if version != VERSION {
        return Some(Head::OtherVersion(version));
    }
    let words = str::from_utf8(rest.get(1..66)?).ok()?;
    let (boot, host) = words.split_once(' ')?;
    Some(Head::Present {
        boot: u128::from_str_radix(boot, 16).ok()?,
        host: u128::from_str_radix(host, 16).ok()?,
    })
}

impl SlotHeader {
    /// From the bytes of a slot; a slot that is too short was never written.
    fn read(slot: &[u8]) -> Self {
        let word = |at| {
            slot.get(at..at + 8)?
                .first_chunk()
                .copied()
                .map(u64::from_le_bytes)
        };
        let sizes = word(8).unwrap_or_default();
        Self {
            number: word(0).unwrap_or_default(),
            len: sizes as u32,
            kind: (sizes >> 32) as u32,
            checksum: word(16).unwrap_or_default(),
        }
    }

    fn write(self) -> [u8; SLOT_HEADER_LEN] {
        let words = [self.number, self.sizes(), self.checksum].map(u64::to_le_bytes);
        let mut bytes = [0; SLOT_HEADER_LEN];
        bytes.copy_from_slice(words.as_flattened());
        bytes
    }

    fn sizes(self) -> u64 {
        u64::from(self.kind) << 32 | u64::from(self.len)
    }

    /// What the slot says; `None` if it was not written to its end.
    fn content(self, slot: &[u8]) -> Option<Content> {
        let text = slot.get(SLOT_HEADER_LEN..)?.get(..self.len as usize)?;
        if self.number == 0 || self.checksum != self.checksum(text) {
            return None;
        }
        match self.kind {
            1 => Some(Content::Text(str::from_utf8(text).ok()?.to_owned())),
            2 => Some(Content::Moved),
            _ => None,
        }
    }

    /// Of all but the checksum, and the text. It tells a torn slot, not a forged one, and is
    /// cheap: newcomers read the record again and again.
    fn checksum(self, text: &[u8]) -> u64 {
        let mix = |sum: u64, word: u64| {
            let mixed = (sum ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            mixed ^ mixed >> 29
        };
        let (words, rest) = text.as_chunks::<8>();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        let words = words
            .iter()
            .chain([&last])
            .map(|word| u64::from_le_bytes(*word));
        words.fold(mix(mix(!0, self.number), self.sizes()), mix)
    }
}

/// Reads until the buffer is full or the file ends.
fn read_at(file: &OwnedFd, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < bytes.len() {
        let from = at + done as u64;
        match rustix::io::pread(file, &mut bytes[done..], from) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(done)
}

fn write_at(file: &OwnedFd, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    check_size_limit(at + bytes.len() as u64)?;
    while !bytes.is_empty() {
        match rustix::io::pwrite(file, bytes, at) {
            Ok(0) => return Err(Errno::NOSPC.into()),
            Ok(written) => {
                bytes = &bytes[written..];
                at += written as u64;
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> (tempfile::NamedTempFile, RecordFile) {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let record = RecordFile::new(file.reopen().expect("opened again").into());
        record.reserve(0).expect("room");
        record.begin(1, 2).expect("written");
        (file, record)
    }

    fn text(content: &str) -> Content {
        Content::Text(content.to_owned())
    }

    #[test]
    fn what_was_written_last_is_read() {
        let (_file, record) = file();
        assert_eq!(
            record.head().expect("read"),
            Head::Present { boot: 1, host: 2 }
        );
        assert_eq!(record.read().expect("read"), Content::Nothing);
        for len in [0, 1, 4071, 4072, 4073, 100_000, 5, TEXT_LEN_MAX] {
            let long = "x".repeat(len);
            record.reserve(len).expect("room");
            record.write(&long).expect("written");
            assert_eq!(record.read().expect("read"), text(&long));
        }
        record.mark_moved().expect("written");
        assert_eq!(record.read().expect("read"), Content::Moved);
    }

    #[test]
    fn writing_what_fits_allocates_nothing() {
        let (file, record) = file();
        record.reserve(50_000).expect("room");
        let size = || file.as_file().metadata().expect("its size").len();
        let before = size();
        for len in [50_000, 1, 49_999, 50_000] {
            record.write(&"y".repeat(len)).expect("written");
        }
        assert_eq!(size(), before);
        record.reserve(3).expect("room");
        assert_eq!(size(), before);
    }

    /// Each byte of the slot that is being written may have been the last one written.
    #[test]
    fn a_text_that_was_not_written_to_its_end_is_ignored() {
        let (file, record) = file();
        record.write("first").expect("written");
        record.write("second").expect("written");
        let before = std::fs::read(file.path()).expect("read");
        record.write("third").expect("written");
        let after = std::fs::read(file.path()).expect("read");
        let changed: Vec<_> = (0..before.len())
            .filter(|at| before[*at] != after[*at])
            .collect();
        for written in 0..changed.len() {
            let mut torn = before.clone();
            changed[..written]
                .iter()
                .for_each(|&at| torn[at] = after[at]);
            std::fs::write(file.path(), &torn).expect("written");
            let read = record.read().expect("read");
            assert_eq!(read, text("second"), "{written} of {}", changed.len());
        }
        std::fs::write(file.path(), &after).expect("written");
        assert_eq!(record.read().expect("read"), text("third"));
        // And the next text takes the slot of the torn one.
        let mut torn = before;
        torn[changed[0]] = after[changed[0]];
        std::fs::write(file.path(), &torn).expect("written");
        record.write("fourth").expect("written");
        assert_eq!(record.read().expect("read"), text("fourth"));
    }

    #[test]
    fn other_files_are_told_from_records() {
        let check = |content: &[u8], expected: Head| {
            let (file, record) = file();
            std::fs::write(file.path(), content).expect("written");
            assert_eq!(record.head().expect("read"), expected);
        };
        check(b"", Head::Blank);
        check(&[0; 5000], Head::Blank);
        check(b"spindle-dds-domain 3\n1 2 3\n", Head::OtherVersion(3));
        check(b"spindle-dds-domain 5\n", Head::OtherVersion(5));
        check(b"spindle-dds-domain 4\n", Head::Foreign);
        check(b"something else", Head::Foreign);
    }

    #[test]
    fn a_damaged_record_is_not_an_empty_one() {
        let (file, record) = file();
        record.write("first").expect("written");
        record.write("second").expect("written");
        let mut bytes = std::fs::read(file.path()).expect("read");
        bytes[PAGE + 9] ^= 1;
        bytes[2 * PAGE + 9] ^= 1;
        std::fs::write(file.path(), bytes).expect("written");
        assert_eq!(record.read().expect("read"), Content::Damaged);
    }
}
