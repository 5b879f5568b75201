//! Rows as memory files: creating, sealing, checking and mapping them.
//!
//! The owner maps its file writable and seals it only then: from that moment no process can
//! map it writable or change its length. So a reader of the same user can neither be made to
//! fault nor write to it by mistake. The file lives as long as some process maps it, so rows
//! of members that have ended stay readable.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::ProtFlags;

use super::error::SetupError;
use crate::memory::ROW_ALIGN;
use crate::memory::mapping::Mapping;
use crate::retry;

/// Longest row, in bytes: far above any use, far below where lengths overflow.
pub(super) const ROW_LEN_MAX: u64 = 1 << 40;

fn seals() -> SealFlags {
    SealFlags::SHRINK | SealFlags::GROW | SealFlags::FUTURE_WRITE | SealFlags::SEAL
}

/// The length of the file behind a row of `len` bytes.
pub(crate) fn file_len(len: usize) -> usize {
    len.max(1).next_multiple_of(ROW_ALIGN)
}

/// Creates a row of this process: zeroed, mapped writable, sealed.
pub(super) fn create_row(len: usize) -> Result<(Arc<Mapping>, OwnedFd), SetupError> {
    let refused = |hint| {
        move |errno: Errno| SetupError::Memory {
            wanted: len,
            hint,
            source: errno.into(),
        }
    };
    if len as u64 > ROW_LEN_MAX {
        return Err(refused("a row has at most 2^40 bytes")(Errno::FBIG));
    }
    let size = file_len(len);
    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
    if limit.is_some_and(|limit| limit < size as u64) {
        // Growing the file would raise SIGXFSZ.
        return Err(refused("the limit on file sizes is smaller (ulimit -f)")(
            Errno::FBIG,
        ));
    }
    let file = retry::repeat(memory_file).map_err(refused(
        "no memory file; look at the limit on open files (ulimit -n)",
    ))?;
    retry::repeat(|| rustix::fs::ftruncate(&file, size as u64))
        .map_err(refused("the memory file cannot grow"))?;
    let mapping = retry::repeat(|| Mapping::new(&file, size, true)).map_err(refused(
        "no room to map it; look at ulimit -v and vm.overcommit_memory",
    ))?;
    retry::repeat(|| rustix::fs::fcntl_add_seals(&file, seals()))
        .map_err(SetupError::system("sealing a row"))?;
    Ok((Arc::new(mapping), file))
}

/// A memory file, marked as never executable where the kernel supports it (6.3).
fn memory_file() -> Result<OwnedFd, Errno> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let create = |flags| rustix::fs::memfd_create("spindle-dds-row", flags);
    match create(flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => create(flags),
        created => created,
    }
}

/// Maps a peer's row read-only, after its length and seals were checked: the descriptor
/// comes from another process. Only a protocol violation and a mismatch are the peer's fault
/// ([`SetupError::is_local`]).
pub(super) fn open_row(
    file: &OwnedFd,
    rank: u16,
    pid: u32,
    len: usize,
) -> Result<Arc<Mapping>, SetupError> {
    let mut mapping = map_row(file, rank, pid, len)?;
    mapping.is_peers = true;
    Ok(Arc::new(mapping))
}

/// Maps a row of a peer that is never frozen.
pub(super) fn open_lasting_row(
    file: &OwnedFd,
    pid: u32,
    len: usize,
) -> Result<Arc<Mapping>, SetupError> {
    Ok(Arc::new(map_row(file, 0, pid, len)?))
}

fn map_row(file: &OwnedFd, rank: u16, pid: u32, len: usize) -> Result<Mapping, SetupError> {
    let violation = |what: &str| SetupError::ProtocolViolation {
        pid,
        what: format!("the row of member {rank} {what}"),
    };
    let looking = SetupError::system::<Errno>("looking at a row");
    let found = match retry::repeat(|| rustix::fs::fcntl_get_seals(file)) {
        Ok(found) => found,
        Err(Errno::INVAL) => return Err(violation("is no memory file")),
        Err(errno) => return Err(looking(errno)),
    };
    if !found.contains(seals()) {
        return Err(violation("is not sealed"));
    }
    let stat = retry::repeat(|| rustix::fs::fstat(file)).map_err(looking)?;
    let size = file_len(len);
    if stat.st_size as u64 != size as u64 {
        return Err(SetupError::RowMismatch {
            rank,
            ours: size as u64,
            theirs: stat.st_size as u64,
        });
    }
    let mapped = retry::repeat(|| Mapping::new(file, size, false));
    mapped.map_err(|errno| SetupError::Memory {
        wanted: len,
        hint: "no room to map a peer's row; look at ulimit -v and vm.max_map_count",
        source: errno.into(),
    })
}

/// A read-only row of zeros without an owner. Takes no memory.
pub(super) fn zero_row(len: usize) -> Result<Arc<Mapping>, SetupError> {
    let mapping = retry::repeat(|| Mapping::private(file_len(len), ProtFlags::READ));
    let mapping = mapping.map_err(|errno| SetupError::Memory {
        wanted: len,
        hint: "no room to map zeros; look at ulimit -v",
        source: errno.into(),
    })?;
    Ok(Arc::new(mapping))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::memory::mapping::{Populated, has_swap};

    fn pair(len: usize) -> (Arc<Mapping>, Arc<Mapping>) {
        let (own, peer, _) = pair_of_file(len);
        (own, peer)
    }

    fn pair_of_file(len: usize) -> (Arc<Mapping>, Arc<Mapping>, OwnedFd) {
        let (own, file) = create_row(len).expect("a row");
        let peer = open_row(&file, 0, 1, len).expect("its mapping");
        (own, peer, file)
    }

    fn blocks(file: &OwnedFd) -> i64 {
        rustix::fs::fstat(file).expect("its size").st_blocks * 512
    }

    fn populate(row: &Mapping) {
        let done = row.populate(&mut Populated::default(), || true);
        assert!(done.expect("memory for it"));
    }

    #[test]
    fn a_peer_reads_what_the_owner_stores() {
        let (own, peer) = pair(10_000);
        assert_eq!(peer.region().load(512), 0);
        own.region().store(512, 7);
        assert_eq!(peer.region().load(512), 7);
        assert!(own.region().is_writable() && !peer.region().is_writable());
        drop(own);
        assert_eq!(peer.region().load(512), 7, "rows of the dead stay readable");
    }

    #[test]
    fn a_populated_row_has_all_its_memory() {
        let (own, peer, file) = pair_of_file(1 << 20);
        assert_eq!(blocks(&file), 0);
        populate(&own);
        assert_eq!(blocks(&file), 1 << 20);
        populate(&peer);
        assert_eq!(peer.region().load((1 << 20) - 8), 0);
    }

    #[test]
    fn populating_stops_and_continues_on_request() {
        let (own, file) = create_row(32 << 20).expect("a row");
        let blocks = || blocks(&file);
        let mut populated = Populated::default();
        let asked = Cell::new(0);
        let thrice = || asked.replace(asked.get() + 1) < 3;
        assert_eq!(own.populate(&mut populated, thrice), Ok(false));
        assert_eq!(blocks(), 12 << 20, "it was asked about every 4 MiB");
        assert_eq!(own.populate(&mut populated, || true), Ok(true));
        assert_eq!(blocks(), 32 << 20);
    }

    /// Whether the pages are huge is up to the kernel.
    #[test]
    fn a_long_row_is_aligned_for_huge_pages() {
        const HUGE: usize = 2 << 20;
        let (own, peer) = pair(2 * HUGE + 4096 + 128);
        for row in [&own, &peer] {
            let region = row.region();
            assert!(region.address().is_multiple_of(HUGE));
            populate(row);
        }
        let last = own.region().len() - 8;
        own.region().store(last, 7);
        own.region().store(HUGE, 8);
        let seen = peer.region();
        assert_eq!((seen.load(last), seen.load(HUGE)), (7, 8));
        peer.freeze().expect("frozen");
        own.region().store(HUGE, 9);
        assert_eq!((seen.load(last), seen.load(HUGE)), (7, 8));
    }

    #[test]
    fn a_sealed_row_can_be_neither_written_nor_resized() {
        let (_own, file) = create_row(4096).expect("a row");
        assert_eq!(Mapping::new(&file, 4096, true).err(), Some(Errno::PERM));
        assert_eq!(rustix::io::pwrite(&file, b"x", 0), Err(Errno::PERM));
        assert_eq!(rustix::fs::ftruncate(&file, 0), Err(Errno::PERM));
        assert_eq!(rustix::fs::ftruncate(&file, 8192), Err(Errno::PERM));
    }

    #[test]
    fn rows_other_than_agreed_are_refused() {
        let (_own, file) = create_row(4096).expect("a row");
        let error = open_row(&file, 3, 1, 8192).expect_err("too short");
        assert!(
            matches!(error, SetupError::RowMismatch { rank: 3, .. }),
            "{error}"
        );
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("open", flags).expect("a file");
        rustix::fs::ftruncate(&file, 4096).expect("grows");
        let error = open_row(&file, 3, 1, 4096).expect_err("not sealed");
        assert!(
            matches!(error, SetupError::ProtocolViolation { .. }),
            "{error}"
        );
        assert!(!error.is_local(), "{error}");
        let file = OwnedFd::from(std::fs::File::open("/dev/null").expect("a file"));
        let error = open_row(&file, 3, 1, 1).expect_err("not a memory file");
        assert!(!error.is_local(), "{error}");
        let error = create_row(usize::MAX / 2).expect_err("too long");
        assert!(matches!(error, SetupError::Memory { .. }), "{error}");
    }

    /// After the exchange of rows neither end has a descriptor of the file.
    #[test]
    fn a_row_whose_descriptors_are_closed_is_frozen_all_the_same() {
        let (own, peer, file) = pair_of_file(1 << 20);
        drop(file);
        let (mine, held) = (own.region(), peer.region());
        mine.store(0, 1);
        peer.freeze().expect("frozen");
        // What is read of it may outlive the segment.
        drop(peer);
        mine.store(0, 2);
        mine.store(4096, 2);
        assert_eq!((held.load(0), held.load(4096)), (1, 0));
        drop((mine, own));
        assert_eq!((held.load(0), held.load(4096)), (1, 0));
    }

    #[test]
    fn a_frozen_row_does_not_change() {
        let (own, peer, file) = pair_of_file(1 << 20);
        let (mine, seen) = (own.region(), peer.region());
        mine.store(0, 1);
        mine.store((1 << 20) - 8, 2);
        peer.freeze().expect("frozen");
        assert!(
            has_swap() || blocks(&file) == 2 * 4096,
            "what was never written takes no memory"
        );
        mine.store(0, 3);
        mine.store(4096, 3);
        assert_eq!(
            (seen.load(0), seen.load(4096), seen.load((1 << 20) - 8)),
            (1, 0, 2)
        );
    }
}
