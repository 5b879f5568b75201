//! What a log has done, in numbers.

/// Counts of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogFigures {
    /// Segment files.
    pub segments: u64,
    /// Bytes of the segment files.
    pub bytes: u64,
    /// Records since the log began, those that were removed since included.
    pub records: u64,
    /// Syncs of segment files by this process.
    pub syncs: u64,
    /// Syncs of the directory and of other files by this process.
    pub syncs_of_state: u64,
    /// Bytes that this process has written to segment files.
    pub written: u64,
    /// Records that this process has appended.
    pub appended: u64,
    /// Segments that this process has written anew without records that nothing needs, or removed.
    pub compacted: u64,
}
