//! Reading all of a log.

use super::disk::Disk;
use super::error::LogError;
use super::topic_log::TopicLog;
use super::walk::{Walked, Walker};

/// What [`TopicLog::verify`] has found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VerifyReport {
    /// Records that are as they were written.
    pub records: u64,
    /// Places where records were removed by compaction.
    pub gaps: u64,
    /// Bytes of the segments.
    pub bytes: u64,
    /// What is damaged: the first place of each segment.
    pub damaged: Vec<LogError>,
}

impl<D: Disk> TopicLog<D> {
    /// Reads all segments. `progress` is called with the bytes that were read so far, after each record.
    pub fn verify(&mut self, progress: &mut dyn FnMut(u64)) -> Result<VerifyReport, LogError> {
        let mut report = VerifyReport::default();
        for index in 0..self.segments.len() {
            let segment = &self.segments[index];
            let id = self.superblock.state.id;
            let mut walker = Walker::new(id, &segment.file, segment.len, segment.start());
            let damaged = loop {
                match walker.step(&mut self.disk)? {
                    Walked::Record(head) => {
                        report.records += 1;
                        report.gaps += u64::from(head.is_after_gap);
                        progress(report.bytes + walker.mark().offset);
                    }
                    Walked::End => {
                        break self.check_end(index, walker.mark()).err();
                    }
                    Walked::Bad(what) => {
                        let offset = walker.mark().offset;
                        break Some(LogError::damaged(&segment.file, offset, what));
                    }
                }
            };
            report.damaged.extend(damaged);
            report.bytes += segment.len;
        }
        progress(report.bytes);
        Ok(report)
    }
}
