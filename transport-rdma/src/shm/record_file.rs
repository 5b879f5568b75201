//! The file of a domain's record: written in place, in room that it has already.
//!
//! ```text
//!   page 0     "spindle-dds-domain 4", boot id, host id     written once
//!   page 1     slot A, first page     header: number, length, kind, digest; then text
//!   page 2     slot B, first page
//!   page 3     slot A, second page    ...
//! ```
//! Invariants:
//! - Writing takes the slot that is not current, so the current one stays whole: a slot whose
//!   digest does not match was not written to its end, and the other one counts.
//! - [`reserve`](RecordFile::reserve) allocates the pages of both slots before they are
//!   needed: writing a text that fits allocates nothing. The slots alternate page by page, so
//!   both grow without moving.
//! - All access is under the domain's lock, which is a lock of this file.

use std::io;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use rustix::fs::{FallocateFlags, IFlags};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

const PAGE: usize = 4096;

/// Length of a slot's header.
const SLOT_HEADER_LEN: usize = 48;

/// Longest text: more than the largest group with the longest addresses has.
pub(super) const TEXT_LEN_MAX: usize = 1 << 20;

const MAGIC: &str = "spindle-dds-domain ";

/// Version of the format. Versions up to 3 were text that was replaced as a whole.
pub(super) const VERSION: u32 = 4;

/// Attempts to write before a failure is reported, and the pause between them: a system call
/// that fails once is no reason to leave a group.
const TRIES: u32 = 10;
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(10);

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

/// A slot, as it was read.
enum Slot {
    Unused,
    Torn,
    Valid { number: u64, content: Content },
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
        let len = read_at(&self.file, &mut page, 0)?;
        let page = &page[..len];
        if page.iter().all(|byte| *byte == 0) {
            return Ok(Head::Blank);
        }
        Ok(read_head(page).unwrap_or(Head::Foreign))
    }

    /// Begins a new record, without text. `reserve` comes first.
    pub(super) fn begin(&self, boot: u128, host: u128) -> io::Result<()> {
        let head = format!("{MAGIC}{VERSION}\n{boot:032x} {host:032x}\n");
        self.retry(|| write_at(&self.file, head.as_bytes(), 0))
    }

    /// Empties the file: what it holds is of no living process.
    pub(super) fn clear(&self) -> io::Result<()> {
        Ok(rustix::fs::ftruncate(&self.file, 0)?)
    }

    pub(super) fn read(&self) -> io::Result<Content> {
        let [a, b] = self.slots()?;
        Ok(match (a, b) {
            (
                Slot::Valid { number: a, content },
                Slot::Valid {
                    number: b,
                    content: other,
                },
            ) => {
                if a > b {
                    content
                } else {
                    other
                }
            }
            (Slot::Valid { content, .. }, _) | (_, Slot::Valid { content, .. }) => content,
            (Slot::Torn, Slot::Torn) => Content::Damaged,
            // The first text was not written to its end: nothing was decided.
            _ => Content::Nothing,
        })
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
        self.retry(|| {
            let written = self.try_put(kind, text);
            // What reads as written counts as written, for this member as for all others.
            match self.read() {
                Ok(content) if content == expected => Ok(()),
                _ => written,
            }
        })
    }

    fn try_put(&self, kind: u32, text: &[u8]) -> io::Result<()> {
        let [a, b] = self.slots()?;
        let number = |slot: &Slot| match slot {
            Slot::Valid { number, .. } => *number,
            Slot::Unused | Slot::Torn => 0,
        };
        let (a, b) = (number(&a), number(&b));
        let slot = usize::from(a > b);
        let number = a.max(b) + 1;
        let mut bytes = Vec::with_capacity(SLOT_HEADER_LEN + text.len());
        bytes.extend(number.to_le_bytes());
        bytes.extend((text.len() as u32).to_le_bytes());
        bytes.extend(kind.to_le_bytes());
        bytes.extend(digest(&bytes, text));
        bytes.extend(text);
        for (index, chunk) in bytes.chunks(PAGE).enumerate() {
            write_at(&self.file, chunk, offset(slot, index))?;
        }
        Ok(())
    }

    /// Allocates room for a text of `len` bytes, in both slots.
    pub(super) fn reserve(&self, len: usize) -> io::Result<()> {
        let len = len.min(TEXT_LEN_MAX);
        let pages = (SLOT_HEADER_LEN + len).div_ceil(PAGE);
        let wanted = offset(0, pages) as u64;
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

    fn slots(&self) -> io::Result<[Slot; 2]> {
        let size = rustix::fs::fstat(&self.file)?.st_size as u64;
        let most = offset(0, (SLOT_HEADER_LEN + TEXT_LEN_MAX).div_ceil(PAGE) + 1);
        let mut bytes = vec![0; size.min(most) as usize];
        let len = read_at(&self.file, &mut bytes, 0)?;
        bytes.truncate(len);
        Ok([0, 1].map(|slot| {
            let pages = (0..).map(|index| offset(slot, index) as usize);
            let pages = pages.map_while(|at| bytes.get(at..bytes.len().min(at + PAGE)));
            read_slot(
                &pages
                    .take_while(|page| !page.is_empty())
                    .collect::<Vec<_>>()
                    .concat(),
            )
        }))
    }

    fn retry(&self, mut attempt: impl FnMut() -> io::Result<()>) -> io::Result<()> {
        for _ in 1..TRIES {
            if attempt().is_ok() {
                return Ok(());
            }
            thread::sleep(TRY_AGAIN_AFTER);
        }
        attempt()
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

fn offset(slot: usize, page: usize) -> u64 {
    (PAGE * (1 + 2 * page + slot)) as u64
}

fn digest(header: &[u8], text: &[u8]) -> [u8; 32] {
    let digest = Sha256::new().chain_update(header).chain_update(text);
    digest.finalize().into()
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

fn read_slot(bytes: &[u8]) -> Slot {
    let Some((header, rest)) = bytes.split_at_checked(SLOT_HEADER_LEN) else {
        return Slot::Unused;
    };
    if header.iter().all(|byte| *byte == 0) {
        return Slot::Unused;
    }
    parse_slot(header, rest).unwrap_or(Slot::Torn)
}

fn parse_slot(header: &[u8], rest: &[u8]) -> Option<Slot> {
    let (number, after) = header.split_first_chunk()?;
    let (len, after) = after.split_first_chunk()?;
    let (kind, sum) = after.split_first_chunk()?;
    let text = rest.get(..u32::from_le_bytes(*len) as usize)?;
    if digest(&header[..SLOT_HEADER_LEN - 32], text) != sum {
        return None;
    }
    let content = match u32::from_le_bytes(*kind) {
        1 => Content::Text(str::from_utf8(text).ok()?.to_owned()),
        2 => Content::Moved,
        _ => return None,
    };
    let number = u64::from_le_bytes(*number);
    Some(Slot::Valid { number, content })
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
        for len in [0, 1, 4047, 4048, 4049, 100_000, 5, TEXT_LEN_MAX] {
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
