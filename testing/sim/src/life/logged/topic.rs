//! A topic as a participant sees it: its log, if it has one, and how far all logs are.

use std::sync::Arc;

use spindle_dds_core::SubgroupHandle;
use spindle_dds_core::membership::MemberId;
use spindle_dds_core::storage::log::SimDisk;
use spindle_dds_core::storage::{KeeperStatus, LogGroup, LogKeeper, LogLevels, LogMarker};
use spindle_dds_transport::Rank;
use spindle_dds_transport::sim::SimFabric;

/// A topic in a view.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) handle: Arc<SubgroupHandle<SimFabric>>,
    pub(super) group: Option<LogGroup>,
    /// Places of the loggers in the epoch.
    pub(super) ranks: Vec<Rank>,
    /// Index of this participant's.
    pub(super) own: Option<usize>,
}

impl Place {
    pub(super) fn words(&self) -> Vec<u64> {
        let ranks = self.ranks.iter();
        ranks.map(|rank| self.handle.persisted(*rank)).collect()
    }

    /// Whether samples are sent: the logs are open, and have all that came before.
    pub(super) fn takes_samples(&self) -> bool {
        let base = self.handle.base();
        let group = self.group.as_ref().filter(|it| it.is_open());
        let has_begun = |word: u64| word > 0 && word >= base;
        group.is_some_and(|it| it.loggers.len() == self.ranks.len())
            && self.words().into_iter().all(has_begun)
    }

    fn is_other(&self, known: &Self) -> bool {
        !Arc::ptr_eq(&known.handle, &self.handle) || known.group != self.group
    }
}

pub(super) struct Topic {
    pub(super) keeper: Option<LogKeeper<SimDisk, Vec<u8>>>,
    /// As the log thread knows it.
    place: Option<Place>,
    taken_to: u64,
    is_confirmed: bool,
    /// As readers and writers know it.
    pub(super) now: Option<Place>,
    pub(super) levels: LogLevels,
}

impl Topic {
    pub(super) fn new(keeper: Option<LogKeeper<SimDisk, Vec<u8>>>) -> Self {
        Self {
            keeper,
            place: None,
            taken_to: 0,
            is_confirmed: false,
            now: None,
            levels: LogLevels::default(),
        }
    }

    /// The log thread comes to a view.
    pub(super) fn begin(&mut self, me: MemberId, place: Place, now: u64) {
        self.confirm(now);
        if self
            .place
            .as_ref()
            .is_some_and(|known| !place.is_other(known))
        {
            return;
        }
        self.is_confirmed = false;
        let (view, base) = (place.handle.epoch(), place.handle.base());
        self.taken_to = self.taken_to.max(base);
        if let Some(keeper) = &mut self.keeper {
            let group = place.group.clone();
            let marker = LogMarker {
                view,
                base,
                me,
                group,
            };
            keeper.view(marker, now);
        }
        self.place = Some(place);
    }

    pub(super) fn taken(&mut self, position: u64) {
        self.taken_to = position + 1;
    }

    /// All loggers are ready.
    pub(super) fn confirm(&mut self, now: u64) {
        let Some(place) = self.place.as_ref().filter(|it| it.own.is_some()) else {
            return;
        };
        if !self.is_confirmed && place.takes_samples() {
            self.is_confirmed = true;
            if let Some(keeper) = &mut self.keeper {
                keeper.loggers_ready(place.handle.epoch(), now);
            }
        }
    }

    /// Raises the word of the subgroup. Gives the word, and the place where it is raised.
    pub(super) fn word(&self) -> Option<(u64, &Place)> {
        let place = self.place.as_ref().filter(|it| it.own.is_some())?;
        let keeper = self.keeper.as_ref().filter(|it| it.is_ready())?;
        let word = keeper.unsynced_from().unwrap_or(self.taken_to);
        (word > 0).then(|| (word.max(place.handle.base()), place))
    }

    pub(super) fn is_dead(&self) -> bool {
        let keeper = self.keeper.as_ref();
        keeper.is_some_and(|it| matches!(it.status(), KeeperStatus::Dead(_)))
    }

    /// Readers and writers look at the words.
    pub(super) fn look(&mut self) {
        let Some(now) = &self.now else {
            return;
        };
        if now.group.as_ref().is_some_and(LogGroup::is_open) {
            self.levels.note(&now.words(), now.own);
        }
    }
}
