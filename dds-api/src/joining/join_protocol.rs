//! Whom a newcomer asks, what it promises to others, and when it founds the domain:
//! what is decided on the way into a group, without I/O and without a clock.
//!
//! ```text
//!   record of my host: members that live here --> ask these, and nobody else
//!                      members of other hosts --> ask where they were: whoever is there
//!                                                 lets me in, or knows that they are dead
//!   contacts           ask each: a member lets me in; who is in no group says so,
//!                      and promises, if it may, to wait for the first contact
//!   first contact      founds, once a strict majority of the contacts waits for it
//! ```
//!
//! No second group, as long as hosts remember:
//!
//! - Only one process listens at the first contact, so only one founds at a time. Who is to
//!   listen there besides does so when that one is gone.
//! - It does not as long as its host's record, or that of anybody whose promise it
//!   needs, names a member that may live.
//! - Who has promised goes nowhere else, until its connection to the founder is lost;
//!   who waits for the answer of one that may be a member does not promise.
//! - A member that never heard of it counts as dead once it says so: it does not enter
//!   a view any more by what it asked for before.
//!
//! A newcomer gives up before its time if all it could ask have another secret; not while
//! one of them is not reached, or was not asked.
//!
//! On a host without a record of the domain nobody lives, and nobody has lived: see
//! ARCHITECTURE.md, Known gaps.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;

/// Between two questions to one of this host.
const ASK_HERE_AFTER: Duration = Duration::from_millis(2);
/// Between two questions to one that is elsewhere.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(20);
/// Between two calls of one that is not reached: each may block.
const CALL_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Somebody to be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    /// A member by the record of my host.
    Recorded(u128),
    /// The contact of this number.
    Contact(usize),
    /// Whom this newcomer has promised to wait for: it is connected.
    Founder(u128),
}

/// A member by the record of my host, who lives as far as the record tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) id: u128,
    /// It is on my host.
    pub(super) here: bool,
    /// What users call it.
    pub(super) label: String,
}

/// What there is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Find out who is there, then say it by [`JoinProtocol::reached`].
    Reach(Target),
    /// Ask this one, who is connected.
    Ask(u128),
    /// Nobody lives, and nobody else founds.
    Found,
    /// Nothing, for so long at most.
    Wait(Duration),
    /// Nothing any more: all that there are to be asked have another secret.
    GiveUp,
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reached {
    /// Whoever is there is connected.
    Peer(u128),
    /// It is this newcomer.
    Myself,
    /// Nobody, and why.
    Nobody(String),
    /// Somebody who has another secret, in words.
    Stranger(String),
}

/// What a newcomer says to another one that asks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NotYet {
    /// It waits for the other one to found the domain.
    pub(super) promises: bool,
    /// It is no member, and will not be one by what it has asked for before.
    pub(super) is_out: bool,
    /// Why, for users.
    pub(super) reason: String,
}

/// How patient a newcomer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Patience {
    /// How long one that is asked may take.
    pub(super) answer: Duration,
    /// After so long the first contact founds without a majority: set by those who prefer
    /// availability.
    pub(super) majority: Option<Duration>,
}

/// A newcomer on its way.
#[derive(Debug)]
pub(super) struct JoinProtocol {
    contacts: Vec<String>,
    patience: Patience,
    known: Vec<Known>,
    /// Of those that the record takes for living: dead, or out of any view.
    dead: BTreeSet<u128>,
    tried: BTreeMap<Target, Tried>,
    asking: Option<Asking>,
    /// Those by whom I may be in a view that I have not heard of.
    open: BTreeSet<u128>,
    /// Contacts that wait for me.
    promises: BTreeSet<u128>,
    /// For whom I wait.
    promised: Option<u128>,
    /// I am the first contact.
    is_first: bool,
}

#[derive(Debug, Default)]
struct Tried {
    /// Who is there, if it is connected.
    id: Option<u128>,
    /// It was reached, or not, once at least.
    once: bool,
    /// Whoever is there has another secret.
    is_strange: bool,
    /// When it is to be asked again.
    again: Duration,
    /// The last of it, for users.
    said: String,
}

#[derive(Debug, Clone, Copy)]
struct Asking {
    target: Target,
    id: u128,
    until: Duration,
}

impl JoinProtocol {
    /// With contacts as users know them.
    pub(super) fn new(contacts: Vec<String>, patience: Patience) -> Self {
        Self {
            contacts,
            patience,
            known: Vec::new(),
            dead: BTreeSet::new(),
            tried: BTreeMap::new(),
            asking: None,
            open: BTreeSet::new(),
            promises: BTreeSet::new(),
            promised: None,
            is_first: false,
        }
    }

    // What happened.

    /// Who else may live, by the record of my host.
    pub(super) fn looked(&mut self, known: Vec<Known>) {
        self.known = known;
        let ids: BTreeSet<u128> = self.known.iter().map(|it| it.id).collect();
        self.dead.retain(|id| ids.contains(id));
        let there = |target: &Target| match target {
            Target::Recorded(id) => ids.contains(id),
            Target::Contact(_) | Target::Founder(_) => true,
        };
        self.tried.retain(|target, _| there(target));
    }

    /// What became of [`Next::Reach`]. Returns whom to ask now.
    pub(super) fn reached(&mut self, now: Duration, target: Target, what: Reached) -> Option<u128> {
        let tried = self.tried.entry(target).or_default();
        tried.once = true;
        tried.is_strange = matches!(what, Reached::Stranger(_));
        match what {
            Reached::Peer(id) => {
                tried.id = Some(id);
                self.ask(now, target, id);
                return Some(id);
            }
            Reached::Myself => {
                "it is this participant".clone_into(&mut tried.said);
                self.is_first |= target == Target::Contact(0);
                // It stays so.
                tried.again = Duration::MAX;
            }
            Reached::Nobody(reason) | Reached::Stranger(reason) => {
                tried.said = reason;
                tried.again = now + pause(CALL_AGAIN_AFTER, &self.known, target);
            }
        }
        None
    }

    /// Another newcomer wants to be let in, or, as the first contact, to found.
    /// [`looked`](Self::looked) has told of the record as it is now.
    pub(super) fn asked(&mut self, now: Duration, from: u128, founds: bool) -> NotYet {
        // As long as that is open, it may be in a view already.
        let is_out = self.asking.is_none_or(|it| it.id == from);
        if is_out {
            self.open.clear();
        }
        let refuse = |reason: &str| NotYet {
            promises: false,
            is_out,
            reason: reason.to_owned(),
        };
        if !founds {
            return refuse("it is in no group yet");
        }
        if self.is_first {
            return refuse(
                "it would found the domain itself: give the same contacts in the same order",
            );
        }
        if let Some(member) = self.living().next() {
            let label = &member.label;
            return refuse(&format!(
                "its host knows of a member that may live, {label}"
            ));
        }
        if self.promised.is_some_and(|it| it != from) {
            return refuse("it waits for another one to found the domain");
        }
        if !is_out {
            return refuse("it waits for another one's answer");
        }
        if self.promised.is_none() {
            self.promised = Some(from);
            let tried = Tried {
                id: Some(from),
                once: true,
                is_strange: false,
                again: now + ASK_AGAIN_AFTER,
                said: "it founds the domain when a majority of the contacts waits".to_owned(),
            };
            self.tried.insert(Target::Founder(from), tried);
        }
        NotYet {
            promises: true,
            is_out,
            reason: "it waits for this one to found the domain".to_owned(),
        }
    }

    /// One that was asked is in no group itself; of those of other hosts it knows that
    /// these are dead.
    pub(super) fn not_yet(&mut self, now: Duration, from: u128, said: NotYet, dead: &[u128]) {
        let elsewhere = self.known.iter().filter(|it| !it.here);
        let dead = elsewhere.map(|it| it.id).filter(|id| dead.contains(id));
        self.dead.extend(dead);
        if said.is_out && self.known.iter().any(|it| it.id == from) {
            self.dead.insert(from);
        }
        self.open.remove(&from);
        if said.promises && self.is_first {
            self.promises.insert(from);
        } else {
            self.promises.remove(&from);
        }
        if self.asking.is_some_and(|it| it.id == from) {
            self.answered(now, said.reason);
        }
    }

    /// Whether the view that has this newcomer is to be entered.
    pub(super) fn is_welcome_by(&self, from: u128) -> bool {
        self.open.contains(&from) && self.promised.is_none_or(|founder| founder == from)
    }

    /// Whether an answer of this one is awaited.
    pub(super) fn is_asking(&self, id: u128) -> bool {
        self.asking.is_some_and(|it| it.id == id)
    }

    /// The connection to one is lost.
    pub(super) fn lost(&mut self, now: Duration, id: u128, cause: &str) {
        self.promises.remove(&id);
        self.open.remove(&id);
        if self.is_asking(id) {
            self.answered(now, cause.to_owned());
        }
        for tried in self.tried.values_mut().filter(|it| it.id == Some(id)) {
            tried.id = None;
            cause.clone_into(&mut tried.said);
        }
        if self.promised == Some(id) {
            self.promised = None;
            self.tried.remove(&Target::Founder(id));
        }
    }

    // What to do.

    pub(super) fn next(&mut self, now: Duration) -> Next {
        if let Some(asking) = self.asking {
            if now < asking.until {
                return Next::Wait(asking.until - now);
            }
            self.answered(now, "it did not answer in time".to_owned());
        }
        if self.may_found(now) {
            return Next::Found;
        }
        let targets = self.targets();
        if self.despairs(&targets) {
            return Next::GiveUp;
        }
        let due = |target: &Target| self.tried.get(target).map_or(Duration::ZERO, |it| it.again);
        let Some(target) = targets.into_iter().min_by_key(due) else {
            return Next::Wait(ASK_AGAIN_AFTER);
        };
        match due(&target).checked_sub(now) {
            Some(left) if !left.is_zero() => Next::Wait(left),
            _ => match self.tried.get(&target).and_then(|it| it.id) {
                Some(id) => {
                    self.ask(now, target, id);
                    Next::Ask(id)
                }
                None => Next::Reach(target),
            },
        }
    }

    /// Whether this is the first contact, and would found now if the others waited.
    pub(super) fn founds(&self) -> bool {
        self.is_first && self.living().next().is_none()
    }

    /// Whether it is known what became of a call.
    pub(super) fn has_tried(&self, target: Target) -> bool {
        self.tried.get(&target).is_some_and(|it| it.once)
    }

    /// Whether so many of the contacts wait that this one may found.
    pub(super) fn has_majority(&self) -> bool {
        // Contacts at which one and the same process is count once.
        let contacts = (0..self.contacts.len()).map(Target::Contact);
        let there = contacts.filter_map(|it| self.tried.get(&it)?.id);
        let there: BTreeSet<u128> = there.filter(|id| self.promises.contains(id)).collect();
        2 * (1 + there.len()) > self.contacts.len()
    }

    /// Those of other hosts of whom others may know whether they are dead.
    pub(super) fn missing(&self) -> BTreeSet<u128> {
        let living = self.living().filter(|it| !it.here);
        living.map(|it| it.id).collect()
    }

    /// Those whom the record takes for living, and who are not, or are out.
    pub(super) fn dead(&self) -> &BTreeSet<u128> {
        &self.dead
    }

    /// Who was asked, and what each said.
    pub(super) fn report(&self) -> String {
        let mut text = String::new();
        for target in self.targets() {
            let label = match target {
                Target::Recorded(id) => {
                    let known = self.known.iter().find(|it| it.id == id);
                    known.map_or_else(String::new, |it| it.label.clone())
                }
                Target::Contact(0) => format!("first contact {}", self.contacts[0]),
                Target::Contact(at) => format!("contact {}", self.contacts[at]),
                Target::Founder(_) => "the founder".to_owned(),
            };
            let tried = self.tried.get(&target);
            let said = tried.map_or("not asked yet", |it| it.said.as_str());
            let separator = if text.is_empty() { "" } else { "; " };
            // Writing into a string does not fail.
            let _ = write!(text, "{separator}{label}: {said}");
            if target == Target::Contact(0)
                && !self.is_first
                && tried.is_none_or(|it| it.id.is_none())
            {
                text += ": nobody founds the domain until it runs";
            }
        }
        if self.is_first && !self.has_majority() {
            text += "; it founds the domain when a majority of the contacts waits for it";
        }
        if text.is_empty() {
            text += "nobody was asked";
        }
        text
    }

    fn ask(&mut self, now: Duration, target: Target, id: u128) {
        let until = now + self.patience.answer;
        self.asking = Some(Asking { target, id, until });
        self.open.insert(id);
    }

    /// Whoever was asked has answered, or will not.
    fn answered(&mut self, now: Duration, said: String) {
        let Some(Asking { target, .. }) = self.asking.take() else {
            return;
        };
        let again = now + pause(ASK_AGAIN_AFTER, &self.known, target);
        if let Some(tried) = self.tried.get_mut(&target) {
            tried.again = again;
            tried.said = said;
        }
    }

    /// Members that may live.
    fn living(&self) -> impl Iterator<Item = &Known> {
        self.known.iter().filter(|it| !self.dead.contains(&it.id))
    }

    /// In the order in which they are asked.
    fn targets(&self) -> Vec<Target> {
        if let Some(founder) = self.promised {
            return vec![Target::Founder(founder)];
        }
        let recorded = |here: bool| {
            let known = self.living().filter(move |it| it.here == here);
            known.map(|it| Target::Recorded(it.id))
        };
        let here: Vec<Target> = recorded(true).collect();
        if !here.is_empty() {
            return here;
        }
        let contacts = (0..self.contacts.len()).map(Target::Contact);
        recorded(false).chain(contacts).collect()
    }

    /// Whether all of these, but for this newcomer itself, have another secret: whoever has
    /// said so last may have been replaced, but somebody has to change something.
    fn despairs(&self, targets: &[Target]) -> bool {
        let tried = || targets.iter().map(|target| self.tried.get(target));
        let founds_alone = self.is_first && self.patience.majority.is_some();
        let is_own = |it: &Tried| it.once && it.again == Duration::MAX;
        let strange = |it: Option<&Tried>| it.is_some_and(|it| it.is_strange);
        let all = tried().all(|it| strange(it) || it.is_some_and(is_own));
        all && tried().any(strange) && !founds_alone
    }

    fn may_found(&self, now: Duration) -> bool {
        if self.promised.is_some() || self.living().next().is_some() {
            return false;
        }
        if self.contacts.is_empty() {
            return true;
        }
        let mut contacts = (0..self.contacts.len()).map(Target::Contact);
        let is_late = self.patience.majority.is_some_and(|after| now >= after);
        self.is_first
            && contacts.all(|target| self.has_tried(target))
            && (self.has_majority() || is_late)
    }
}

/// How long to leave a target alone.
fn pause(elsewhere: Duration, known: &[Known], target: Target) -> Duration {
    let here = known
        .iter()
        .any(|it| it.here && Target::Recorded(it.id) == target);
    if here { ASK_HERE_AFTER } else { elsewhere }
}

#[cfg(test)]
mod tests;
