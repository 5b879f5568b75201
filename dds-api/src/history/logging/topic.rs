//! The log of one topic at this participant.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use spindle_dds_core::storage::log::{LogError, LogHead, OpenReport, TopicLog};
use spindle_dds_core::storage::{LogEnd, LogId, LogKeeper, SyncMode};
use spindle_dds_core::{Held, SubgroupId, TopicKey};

use super::counters::SharedCounters;
use crate::error::{Error, Result};
use crate::history::LogDirectory;
use crate::joining::random_id;
use crate::log::LogPlace;
use crate::monitor::TopicLogFigures;
use crate::sample_type::SampleType;
use crate::wire::Wire;

/// A delivered message that stays in its ring until it is in the log.
pub(crate) struct HeldMessage(Held<Wire>);

impl HeldMessage {
    pub(crate) fn new(held: Held<Wire>) -> Self {
        Self(held)
    }
}

impl AsRef<[u8]> for HeldMessage {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

pub(super) type Keeper = LogKeeper<LogDirectory, HeldMessage>;

/// The log of a topic. Its lock is held while the disk is written.
pub(crate) struct LoggedTopic {
    pub(crate) name: String,
    pub(crate) key: TopicKey,
    pub(crate) subgroup: SubgroupId,
    /// The number of its endpoint in the group.
    pub(crate) number: u64,
    pub(super) sample_type: SampleType,
    /// Where its files are.
    pub(super) path: PathBuf,
    keeper: Mutex<Keeper>,
    /// What the log was when the thread told others of it last, or later. Its lock is held for moments.
    end: Mutex<LogEnd>,
    pub(super) counters: SharedCounters,
    /// As of the last round of the log thread: who asks does not wait for the disk.
    figures: Mutex<TopicLogFigures>,
}

impl std::fmt::Debug for LoggedTopic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoggedTopic")
            .field("name", &self.name)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

impl LoggedTopic {
    /// Opens the log of a topic below a directory, or begins one. `is_asked`: a writer asks for the limits
    /// in the head; else those of a log that is there stay.
    ///
    /// # Errors
    /// ERROR for one that is damaged; OUT_OF_RESOURCES without room.
    pub(super) fn open(
        directory: &Path,
        (head, is_asked): (&LogHead, bool),
        (subgroup, number, sample_type): (SubgroupId, u64, &SampleType),
        mode: SyncMode,
    ) -> Result<Self> {
        let place = LogPlace::new(directory, head.domain, &head.topic);
        let opened = open_log(&place.path, head, is_asked);
        let (log, report) = opened.map_err(|error| failure(&place, directory, &error))?;
        if let Some(cut) = report.and_then(|report| report.cut) {
            tracing::warn!(
                topic = head.topic,
                directory = %place.path.display(),
                ?cut,
                "the end of the log was not written in full, and is cut off"
            );
        }
        let mut keeper = LogKeeper::new(log, mode);
        let end = keeper.log_end();
        Ok(Self {
            name: head.topic.clone(),
            key: TopicKey::of_name(&head.topic),
            subgroup,
            number,
            sample_type: sample_type.clone(),
            path: place.path,
            keeper: Mutex::new(keeper),
            end: Mutex::new(end),
            counters: SharedCounters::default(),
            figures: Mutex::new(TopicLogFigures {
                topic: head.topic.clone(),
                ..TopicLogFigures::default()
            }),
        })
    }

    /// Runs something while the log thread waits for the log: for tests.
    pub(crate) fn stall<R>(&self, run: impl FnOnce() -> R) -> R {
        let _keeper = self.keeper();
        run()
    }

    /// What can be announced of the log to a group that does not know it. It does not wait for the disk.
    pub(super) fn end(&self) -> LogEnd {
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        LogEnd {
            // That was so in another group.
            follows: None,
            as_of: 0,
            ..end.clone()
        }
    }

    /// Called by the log thread before it tells others anything that rests on what the log has now.
    pub(super) fn publish_end(&self) {
        let now = self.keeper().end();
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    pub(super) fn set_figures(&self, figures: TopicLogFigures) {
        *self.figures.lock().unwrap_or_else(PoisonError::into_inner) = figures;
    }

    /// What monitors are told of it.
    pub(super) fn figures(&self) -> TopicLogFigures {
        let figures = self.figures.lock().unwrap_or_else(PoisonError::into_inner);
        figures.clone()
    }

    pub(super) fn keeper(&self) -> MutexGuard<'_, Keeper> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open_log(
    path: &Path,
    head: &LogHead,
    is_asked: bool,
) -> std::result::Result<(TopicLog<LogDirectory>, Option<OpenReport>), LogError> {
    let disk = LogDirectory::create(path);
    let disk = disk.map_err(|error| LogError::Unreadable {
        file: path.display().to_string(),
        why: error.to_string(),
    })?;
    match TopicLog::open(disk)? {
        Some((mut log, report)) => {
            let mut head = head.clone();
            if !is_asked {
                head.limits = log.head().limits;
            }
            log.set_head(&head)?;
            Ok((log, Some(report)))
        }
        None => {
            let id = LogId(random_id());
            TopicLog::create(LogDirectory::new(path), id, head).map(|log| (log, None))
        }
    }
}

fn failure(place: &LogPlace, directory: &Path, error: &LogError) -> Error {
    let (topic, path) = (&place.topic, place.path.display());
    match error {
        LogError::Full { .. } => {
            Error::OutOfResources(format!("the log of topic {topic} in {path}: {error}"))
        }
        LogError::Damaged { .. } => Error::Error(format!(
            "the log of topic {topic} in {path}: {error}; with the log of another participant, \
             `spindle log repair {} --topic {topic} --from <its directory>` mends it",
            directory.display()
        )),
        _ => Error::Error(format!("the log of topic {topic} in {path}: {error}")),
    }
}
