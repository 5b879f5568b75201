//! The protocol by which a newcomer gets into a group: which participants it asks, what it promises
//! to others, and when it founds the domain. No I/O, no clock.
//!
//! ```text
//!   record of this host: members that live here --> ask these, and no other
//!                        members of other hosts --> ask at their addresses: the participant there
//!                                                   lets this one in, or knows that they are dead
//!   contacts             ask each: a member lets this one in; a participant without a group says
//!                        so, and promises, if it may, to wait for the first contact
//!   first contact        founds, once a strict majority of the contacts waits for it
//! ```
//!
//! There is no second group, as long as hosts keep their records:
//!
//! - Only one process listens at the first contact's address, so only one founds at a time.
//!   Another one that is to listen there as well does so when that process is gone.
//! - The first contact does not found as long as its host's record, or that of a participant whose
//!   promise it needs, names a member that may live.
//! - A participant that has promised joins no other group until its connection to the founder is
//!   lost. A participant that waits for the answer of a possible member does not promise.
//! - A recorded member that has never heard of the group counts as dead once it says so: it enters
//!   no view any more by what it asked for before.
//!
//! A newcomer gives up before its timeout if all that it can ask have another secret, but not while
//! one of them has not been reached, or has not been asked.
//!
//! On a host without a record of the domain no member lives, and none has lived: see
//! ARCHITECTURE.md, Known gaps.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;

/// Between two questions to a participant of this host.
const ASK_HERE_AFTER: Duration = Duration::from_millis(2);
/// Between two questions to a participant of another host.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(20);
/// Between two attempts to connect: each may block.
const CALL_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// A participant to be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    /// A member, by the record of this host.
    Recorded(u128),
    /// The contact of this index.
    Contact(usize),
    /// The founder that this newcomer has promised to wait for: it is connected.
    Founder(u128),
}

/// A member that may live, by the record of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) id: u128,
    /// It is on this host.
    pub(super) here: bool,
    /// Its name in messages for users.
    pub(super) label: String,
}

/// The next action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Connect, then report the outcome by [`JoinProtocol::reached`].
    Connect(Target),
    /// Ask this participant, which is connected.
    Ask(u128),
    /// Found the domain: no member lives, and no other participant founds it.
    Found,
    /// Wait for an event, at most this long.
    Wait(Duration),
    /// Give up: all participants that can be asked have another secret.
    GiveUp,
}

/// The outcome of an attempt to connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reached {
    /// The participant there is connected.
    Peer(u128),
    /// The address is that of this newcomer.
    Myself,
    /// No participant was reached, and why.
    Unreachable(String),
    /// The participant there has another secret, in words.
    OtherSecret(String),
}

/// A newcomer's answer to another newcomer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NotYet {
    /// It waits for the other newcomer to found the domain.
    pub(super) promises: bool,
    /// It is no member, and enters no view by what it has asked for before.
    pub(super) is_out: bool,
    /// The reason, for users.
    pub(super) reason: String,
}

/// Timeouts of a newcomer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JoinTimeouts {
    /// How long a participant may take to answer.
    pub(super) answer: Duration,
    /// When the first contact founds without a majority: set if availability is preferred.
    pub(super) majority: Option<Duration>,
}

/// The state of a newcomer.
#[derive(Debug)]
pub(super) struct JoinProtocol {
    contacts: Vec<String>,
    timeouts: JoinTimeouts,
    known: Vec<Known>,
    /// Recorded members that are dead, or out of any view.
    dead: BTreeSet<u128>,
    tried: BTreeMap<Target, Tried>,
    asking: Option<Asking>,
    /// Participants that were asked, and may have put this newcomer into a view already.
    open: BTreeSet<u128>,
    /// Contacts that wait for this newcomer to found.
    promises: BTreeSet<u128>,
    /// The founder that this newcomer waits for.
    promised: Option<u128>,
    /// This newcomer is the first contact.
    is_first: bool,
    /// Fewest newcomers that were to be let in before this one, as far as it was told.
    ahead: Option<u32>,
}

#[derive(Debug, Default)]
struct Tried {
    /// The participant there, if it is connected.
    id: Option<u128>,
    /// An attempt to connect has ended.
    was_tried: bool,
    /// The participant there has another secret.
    has_other_secret: bool,
    /// When it is to be asked again, since the join began.
    again: Duration,
    /// Its last answer, for users.
    said: String,
}

#[derive(Debug, Clone, Copy)]
struct Asking {
    target: Target,
    id: u128,
    until: Duration,
}

impl JoinProtocol {
    /// With the contacts in the words of the property.
    pub(super) fn new(contacts: Vec<String>, timeouts: JoinTimeouts) -> Self {
        Self {
            contacts,
            timeouts,
            known: Vec::new(),
            dead: BTreeSet::new(),
            tried: BTreeMap::new(),
            asking: None,
            open: BTreeSet::new(),
            promises: BTreeSet::new(),
            promised: None,
            is_first: false,
            ahead: None,
        }
    }

    // What happened.

    /// The record of this host names these members as possibly living.
    pub(super) fn record_read(&mut self, known: Vec<Known>) {
        self.known = known;
        let ids: BTreeSet<u128> = self.known.iter().map(|it| it.id).collect();
        self.dead.retain(|id| ids.contains(id));
        let there = |target: &Target| match target {
            Target::Recorded(id) => ids.contains(id),
            Target::Contact(_) | Target::Founder(_) => true,
        };
        self.tried.retain(|target, _| there(target));
    }

    /// The outcome of [`Next::Connect`]. Returns the participant to ask now.
    pub(super) fn reached(&mut self, now: Duration, target: Target, what: Reached) -> Option<u128> {
        let tried = self.tried.entry(target).or_default();
        tried.was_tried = true;
        tried.has_other_secret = matches!(what, Reached::OtherSecret(_));
        match what {
            Reached::Peer(id) => {
                tried.id = Some(id);
                self.ask(now, target, id);
                return Some(id);
            }
            Reached::Myself => {
                "it is this participant".clone_into(&mut tried.said);
                self.is_first |= target == Target::Contact(0);
                // That does not change.
                tried.again = Duration::MAX;
            }
            Reached::Unreachable(reason) | Reached::OtherSecret(reason) => {
                tried.said = reason;
                tried.again = now + pause(CALL_AGAIN_AFTER, &self.known, target);
            }
        }
        None
    }

    /// Another newcomer asks to be let in, or, as the first contact, to found. `record_read` has
    /// been called with the present record before.
    pub(super) fn asked(&mut self, now: Duration, from: u128, founds: bool) -> NotYet {
        // While an answer is awaited, this newcomer may be in a view already.
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
            return refuse("it waits for another participant to found the domain");
        }
        if !is_out {
            return refuse("it waits for another participant's answer");
        }
        if self.promised.is_none() {
            self.promised = Some(from);
            let tried = Tried {
                id: Some(from),
                was_tried: true,
                has_other_secret: false,
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

    /// A participant that was asked is in no group either. It knows that these members of other
    /// hosts are dead.
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

    /// The member that was asked says that this newcomer waits for its turn, as others have asked
    /// before. It is given time for two views. Returns whether fewer are before it than ever.
    pub(super) fn waits(&mut self, now: Duration, from: u128, ahead: u32) -> bool {
        let Some(asking) = self.asking.as_mut().filter(|it| it.id == from) else {
            return false;
        };
        asking.until = now + 2 * self.timeouts.answer;
        if let Some(tried) = self.tried.get_mut(&asking.target) {
            tried.said = format!("it lets in {ahead} other newcomers first");
        }
        let is_nearer = self.ahead.is_none_or(|before| ahead < before);
        if is_nearer {
            self.ahead = Some(ahead);
        }
        is_nearer
    }

    /// Whether a view from this participant is to be entered.
    pub(super) fn is_welcome_by(&self, from: u128) -> bool {
        self.open.contains(&from) && self.promised.is_none_or(|founder| founder == from)
    }

    /// Whether some participant's answer is awaited: nothing else is to be done, then.
    pub(super) fn is_awaiting(&self, now: Duration) -> bool {
        self.asking.is_some_and(|it| now < it.until)
    }

    /// Whether an answer of this participant is awaited.
    pub(super) fn is_asking(&self, id: u128) -> bool {
        self.asking.is_some_and(|it| it.id == id)
    }

    /// The connection to a participant is lost.
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
        if self.is_hopeless(&targets) {
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
                None => Next::Connect(target),
            },
        }
    }

    /// Whether this is the first contact, and would found now if the others waited.
    pub(super) fn founds(&self) -> bool {
        self.is_first && self.living().next().is_none()
    }

    /// Whether an attempt to connect has ended.
    pub(super) fn has_tried(&self, target: Target) -> bool {
        self.tried.get(&target).is_some_and(|it| it.was_tried)
    }

    /// Whether a strict majority of the contacts waits for this newcomer, itself included.
    pub(super) fn has_majority(&self) -> bool {
        // Contacts at which the same process listens count once.
        let contacts = (0..self.contacts.len()).map(Target::Contact);
        let there = contacts.filter_map(|it| self.tried.get(&it)?.id);
        let there: BTreeSet<u128> = there.filter(|id| self.promises.contains(id)).collect();
        2 * (1 + there.len()) > self.contacts.len()
    }

    /// Members of other hosts that may live: other participants may know whether they are dead.
    pub(super) fn missing(&self) -> BTreeSet<u128> {
        let living = self.living().filter(|it| !it.here);
        living.map(|it| it.id).collect()
    }

    /// Recorded members that are dead, or out of any view.
    pub(super) fn dead(&self) -> &BTreeSet<u128> {
        &self.dead
    }

    /// The participants that were asked, and their answers.
    pub(super) fn report(&self) -> String {
        let mut text = String::new();
        // There may be hundreds of them: they are counted.
        let is_unasked =
            |it: &Target| matches!(it, Target::Recorded(_)) && !self.tried.contains_key(it);
        let (unasked, targets): (Vec<_>, Vec<_>) = self.targets().into_iter().partition(is_unasked);
        for target in targets {
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
                text += ": the domain is not founded until it runs";
            }
        }
        if !unasked.is_empty() {
            let separator = if text.is_empty() { "" } else { "; " };
            let _ = write!(
                text,
                "{separator}{} recorded members: not asked yet",
                unasked.len()
            );
        }
        if self.is_first && !self.has_majority() {
            text += "; it founds the domain when a majority of the contacts waits for it";
        }
        if text.is_empty() {
            text += "no participant was asked";
        }
        text
    }

    fn ask(&mut self, now: Duration, target: Target, id: u128) {
        let until = now + self.timeouts.answer;
        self.asking = Some(Asking { target, id, until });
        self.open.insert(id);
    }

    /// The question is answered, or will not be.
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

    /// The participants to ask, in order.
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

    /// Whether all of these, except this newcomer itself, have another secret: joining cannot
    /// succeed until a user changes something.
    fn is_hopeless(&self, targets: &[Target]) -> bool {
        let tried = || targets.iter().map(|target| self.tried.get(target));
        let founds_alone = self.is_first && self.timeouts.majority.is_some();
        let is_own = |it: &Tried| it.was_tried && it.again == Duration::MAX;
        let strange = |it: Option<&Tried>| it.is_some_and(|it| it.has_other_secret);
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
        let is_late = self.timeouts.majority.is_some_and(|after| now >= after);
        self.is_first
            && contacts.all(|target| self.has_tried(target))
            && (self.has_majority() || is_late)
    }
}

/// How long to wait before a target is tried again.
fn pause(elsewhere: Duration, known: &[Known], target: Target) -> Duration {
    let here = known
        .iter()
        .any(|it| it.here && Target::Recorded(it.id) == target);
    if here { ASK_HERE_AFTER } else { elsewhere }
}

#[cfg(test)]
mod tests;
