//! Which transfers begin with a view: all members compute the same.

use spindle_dds_core::SubgroupId;
use spindle_dds_core::membership::{MemberId, View};

use super::announcement::{Announced, Guid, Level, announced};

/// A donor of a transfer, and which of its histories it gives.
pub(crate) type Source = (MemberId, Level);

/// A transfer to a reader, or to a new keeper of a topic ([`KEEPER`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Transfer {
    pub(crate) subgroup: SubgroupId,
    pub(crate) member: MemberId,
    pub(crate) reader: Guid,
    /// The view in which it begins: its boundary is the base of that epoch.
    pub(crate) view: u64,
}

/// In place of a reader's GUID: the participant itself, which becomes a keeper.
pub(crate) const KEEPER: Guid = [0; 16];

/// A transfer, and where its records come from: of each source the donors, the preferred one first.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) transfer: Transfer,
    pub(crate) sources: Vec<Vec<Source>>,
    /// Of each source the writers that are known.
    pub(crate) writers: Vec<Vec<Guid>>,
}

/// A subgroup whose epoch begins with a view.
pub(crate) struct Matching {
    subgroup: SubgroupId,
    view: u64,
    before: Vec<Announced>,
    now: Vec<Announced>,
}

impl Matching {
    pub(crate) fn new(before: Option<&View>, view: &View, subgroup: SubgroupId) -> Self {
        let mut now = announced(view, subgroup);
        for it in &mut now {
            it.has_returned &= before.is_none_or(|before| before.rank(it.member).is_none());
        }
        Self {
            subgroup,
            view: view.id,
            before: before.map_or_else(Vec::new, |before| announced(before, subgroup)),
            now,
        }
    }

    /// Endpoints of a member.
    pub(crate) fn of(&self, member: MemberId) -> impl Iterator<Item = &Announced> {
        self.now.iter().filter(move |it| it.member == member)
    }

    /// Writers that a reader matches.
    pub(crate) fn writers(&self, reader: Level) -> impl Iterator<Item = &Announced> {
        let writers = self.now.iter().filter(|it| it.is_writer);
        writers.filter(move |it| it.level >= reader)
    }

    /// Writers that have left.
    pub(crate) fn gone(&self) -> impl Iterator<Item = Guid> {
        let writers = self.before.iter().filter(|it| it.is_writer);
        let is_here = |guid: Guid| self.now.iter().any(|it| it.guid == guid);
        writers
            .map(|it| it.guid)
            .filter(move |guid| !is_here(*guid))
    }

    pub(crate) fn was_there(&self, endpoint: &Announced) -> bool {
        let same = |it: &&Announced| (it.member, it.guid) == (endpoint.member, endpoint.guid);
        self.before.iter().find(same).is_some()
    }

    /// Whether a writer's participant may have a history of it.
    pub(crate) fn has_history(&self, writer: &Announced) -> bool {
        self.was_there(writer) || writer.has_returned
    }

    /// Keepers of the topic that were keepers before. Without any, those that have come back with
    /// what they had kept.
    pub(crate) fn keepers(&self) -> Vec<MemberId> {
        let old = self.keepers_if(|it| self.was_keeper(it.member));
        match old.is_empty() {
            true => self.keepers_if(|it| it.has_returned),
            false => old,
        }
    }

    /// Whether no keeper was there before that is there now: the topic's history begins anew, or
    /// with what a participant that has come back had kept.
    pub(crate) fn begins_anew(&self) -> bool {
        self.keepers_if(|it| self.was_keeper(it.member)).is_empty()
    }

    fn keepers_if(&self, may: impl Fn(&Announced) -> bool) -> Vec<MemberId> {
        let keepers = self.now.iter().filter(|it| it.level == Level::Transient);
        let mut keepers: Vec<_> = keepers.filter(|it| may(it)).map(|it| it.member).collect();
        keepers.dedup();
        keepers
    }

    fn was_keeper(&self, member: MemberId) -> bool {
        let mut before = self.before.iter();
        before.any(|it| it.member == member && it.level == Level::Transient)
    }

    /// All transfers that begin here.
    pub(crate) fn wanted(&self) -> Vec<Wanted> {
        let readers = self.now.iter().filter(|it| !it.is_writer);
        let readers = readers.map(|it| self.of_reader(it));
        let mut keepers = self.keepers_if(|it| !self.was_keeper(it.member));
        keepers.retain(|it| !self.keepers().contains(it));
        let keepers = keepers.into_iter().map(|member| {
            let donors = self.donors(member);
            self.want(member, KEEPER, vec![donors])
        });
        let wanted = readers.chain(keepers);
        wanted.filter(|it| !it.sources.is_empty()).collect()
    }

    fn want(&self, member: MemberId, reader: Guid, mut sources: Vec<Vec<Source>>) -> Wanted {
        sources.retain(|donors| !donors.is_empty());
        let (subgroup, view) = (self.subgroup, self.view);
        let writers = sources.iter().map(|donors| match donors[..] {
            [(donor, Level::TransientLocal)] => self.local_writers(donor),
            _ => Vec::new(),
        });
        Wanted {
            transfer: Transfer {
                subgroup,
                member,
                reader,
                view,
            },
            writers: writers.collect(),
            sources,
        }
    }

    /// Writers of a member that have a history of their own.
    pub(crate) fn local_writers(&self, member: MemberId) -> Vec<Guid> {
        let writers = self.writers(Level::TransientLocal);
        let local = writers.filter(|it| it.member == member && it.level == Level::TransientLocal);
        let local = local.filter(|it| self.has_history(it));
        local.map(|it| it.guid).collect()
    }

    fn of_reader(&self, reader: &Announced) -> Wanted {
        let is_new = !self.was_there(reader);
        let begins = |writer: &Announced| is_new || !self.was_there(writer);
        let local = self.writers(reader.level);
        let local = local.filter(|it| it.level == Level::TransientLocal);
        let local = local.filter(|it| self.has_history(it) && begins(it));
        let mut local: Vec<Source> = local.map(|it| (it.member, Level::TransientLocal)).collect();
        local.dedup();
        let mut sources: Vec<_> = local.into_iter().map(|it| vec![it]).collect();
        if is_new || self.begins_anew() {
            sources.push(self.donors(reader.member));
        }
        self.want(reader.member, reader.guid, sources)
    }

    /// The keepers by rank, but a participant itself first.
    fn donors(&self, to: MemberId) -> Vec<Source> {
        let mut keepers = self.keepers();
        keepers.sort_by_key(|it| *it != to);
        keepers
            .into_iter()
            .map(|it| (it, Level::Transient))
            .collect()
    }
}
