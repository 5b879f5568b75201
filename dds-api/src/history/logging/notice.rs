//! What keeps logs from being written, told to all participants of a group.
//!
//! A log that is full holds up the writers of its topic, wherever they are. So a participant tells each
//! member when one of its logs is in trouble, and when it is out of it again: packet 21. That is no
//! change of the group, and begins no epoch.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use spindle_dds_core::membership::MemberId;
use spindle_dds_core::storage::KeeperStatus;
use spindle_dds_core::{SubgroupId, TopicKey};

use super::topic::LoggedTopic;

/// The kind of the packet.
pub(crate) const KIND: u8 = 21;
/// Bytes of a text.
const TEXT_MAX: usize = 1024;
/// Logs in trouble that are known at a time, those of this participant not counted.
const KNOWN_MAX: usize = 4096;

/// Why a log is not written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogTrouble {
    /// Of the log's topic.
    pub(crate) subgroup: SubgroupId,
    /// What is delivered waits for it in the rings.
    pub(crate) holds: bool,
    /// A sentence without a full stop that names the topic and the directory.
    pub(crate) text: String,
}

/// A participant tells of its log of a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogNotice {
    pub(crate) topic: TopicKey,
    /// `None`: it is written, or there is none any more.
    pub(crate) trouble: Option<LogTrouble>,
}

/// A log that is in trouble, and its member; `None` is this participant.
pub(crate) type Troubled = (Option<MemberId>, LogTrouble);

/// The logs of a group that are in trouble.
#[derive(Debug, Default)]
pub(crate) struct LogTroubles(Mutex<BTreeMap<(TopicKey, Option<MemberId>), LogTrouble>>);

/// What the log thread tells of its logs.
#[derive(Debug, Default)]
pub(super) struct Notices {
    own: BTreeMap<TopicKey, LogTrouble>,
    /// The other members of the view.
    members: BTreeSet<MemberId>,
}

impl LogTrouble {
    fn of(logged: &LoggedTopic, status: &KeeperStatus) -> Option<Self> {
        let (what, why) = match status {
            KeeperStatus::Good => return None,
            KeeperStatus::Full(why) => ("is full", why),
            KeeperStatus::Barred(why) => ("cannot take over what it lacks", why),
            KeeperStatus::Dead(why) => ("has failed and is not written any more", why),
        };
        Some(Self {
            subgroup: logged.subgroup,
            holds: matches!(status, KeeperStatus::Full(_)),
            text: text(&logged.name, &logged.path, what, why),
        })
    }
}

fn text(topic: &str, path: &Path, what: &str, why: &str) -> String {
    let path = path.display().to_string();
    // The directory is named once.
    let why = why.strip_suffix(&format!(", in {path}")).unwrap_or(why);
    let mut text = format!("the log of topic {topic} in {path} {what}: {why}");
    let mut end = text.len().min(TEXT_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

impl LogNotice {
    /// Appends the kind and what follows it.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.push(KIND);
        out.extend(self.topic.0.to_le_bytes());
        if let Some(trouble) = &self.trouble {
            out.extend(trouble.subgroup.0.to_le_bytes());
            out.push(u8::from(trouble.holds));
            out.extend(trouble.text.as_bytes());
        }
    }

    /// Reads what follows the kind. `None` if it makes no sense.
    pub(crate) fn read(rest: &[u8]) -> Option<Self> {
        let (topic, rest) = rest.split_first_chunk()?;
        let topic = TopicKey(u128::from_le_bytes(*topic));
        if rest.is_empty() {
            let trouble = None;
            return Some(Self { topic, trouble });
        }
        let (subgroup, rest) = rest.split_first_chunk()?;
        let (holds, text) = rest.split_first()?;
        let is_text = (1..=TEXT_MAX).contains(&text.len()) && *holds <= 1;
        let trouble = LogTrouble {
            subgroup: SubgroupId(u32::from_le_bytes(*subgroup)),
            holds: *holds == 1,
            text: is_text.then(|| std::str::from_utf8(text).ok())??.to_owned(),
        };
        let trouble = Some(trouble);
        Some(Self { topic, trouble })
    }
}

impl LogTroubles {
    fn known(&self) -> MutexGuard<'_, BTreeMap<(TopicKey, Option<MemberId>), LogTrouble>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of what a member says, or this participant (`None`).
    pub(crate) fn note(&self, member: Option<MemberId>, notice: LogNotice) {
        let key = (notice.topic, member);
        let mut known = self.known();
        match notice.trouble {
            None => drop(known.remove(&key)),
            // Of so many, one more says nothing new.
            Some(_) if known.len() >= KNOWN_MAX && member.is_some() => {}
            Some(trouble) => drop(known.insert(key, trouble)),
        }
    }

    /// A view with these members begins.
    pub(crate) fn keep(&self, is_there: impl Fn(MemberId) -> bool) {
        let mut known = self.known();
        known.retain(|(_, member), _| member.is_none_or(&is_there));
    }

    /// The logs of a topic.
    pub(crate) fn of_topic(&self, topic: TopicKey) -> Vec<Troubled> {
        self.select(|key, _| key == topic)
    }

    /// The logs that hold up writers of a subgroup.
    pub(crate) fn holding(&self, subgroup: SubgroupId) -> Vec<Troubled> {
        self.select(|_, trouble| trouble.holds && trouble.subgroup == subgroup)
    }

    fn select(&self, is_such: impl Fn(TopicKey, &LogTrouble) -> bool) -> Vec<Troubled> {
        let known = self.known();
        let such = known.iter().filter(|((key, _), it)| is_such(*key, it));
        such.map(|((_, member), it)| (*member, it.clone()))
            .collect()
    }
}

impl Notices {
    /// The status of a log has changed. What all members are to be told, if it is news.
    pub(super) fn changed(
        &mut self,
        logged: &LoggedTopic,
        status: &KeeperStatus,
    ) -> Option<LogNotice> {
        let trouble = LogTrouble::of(logged, status);
        let before = match &trouble {
            Some(trouble) => self.own.insert(logged.key, trouble.clone()),
            None => self.own.remove(&logged.key),
        };
        let topic = logged.key;
        (before != trouble).then_some(LogNotice { topic, trouble })
    }

    /// The other members.
    pub(super) fn members(&self) -> impl Iterator<Item = MemberId> {
        self.members.iter().copied()
    }

    /// A view begins with these other members. What is to be told to those that are new.
    pub(super) fn view_begun(
        &mut self,
        members: impl Iterator<Item = MemberId>,
    ) -> Vec<(MemberId, LogNotice)> {
        let before = std::mem::replace(&mut self.members, members.collect());
        let new = self.members.difference(&before);
        let told = new.flat_map(|member| {
            let notices = self.own.iter().map(|(topic, trouble)| LogNotice {
                topic: *topic,
                trouble: Some(trouble.clone()),
            });
            notices.map(|notice| (*member, notice))
        });
        told.collect()
    }

    /// The group is lost.
    pub(super) fn group_lost(&mut self) {
        self.members.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trouble(subgroup: u32, holds: bool) -> LogTrouble {
        LogTrouble {
            subgroup: SubgroupId(subgroup),
            holds,
            text: format!("the log of topic T{subgroup} in /logs is full"),
        }
    }

    fn notice(topic: u128, trouble: Option<LogTrouble>) -> LogNotice {
        let topic = TopicKey(topic);
        LogNotice { topic, trouble }
    }

    #[test]
    fn notices_are_read_as_they_were_written() {
        for trouble in [None, Some(trouble(3, true)), Some(trouble(7, false))] {
            let notice = notice(u128::MAX - 1, trouble);
            let mut bytes = Vec::new();
            notice.write(&mut bytes);
            assert_eq!(bytes[0], KIND);
            assert_eq!(LogNotice::read(&bytes[1..]), Some(notice.clone()));
            for len in 1..bytes.len() {
                assert_ne!(LogNotice::read(&bytes[1..len]), Some(notice.clone()));
            }
        }
        for text in [&b""[..], &[0xff; 3], &[b'x'; TEXT_MAX + 1]] {
            let bytes = [&[0; 21], text].concat();
            assert_eq!(LogNotice::read(&bytes), None);
        }
    }

    #[test]
    fn a_text_names_topic_and_directory_once_and_is_bounded() {
        let path = Path::new("/logs/domain-0/T");
        let why = "no room for superblock: No space left on device, in /logs/domain-0/T";
        assert_eq!(
            text("T", path, "is full", why),
            "the log of topic T in /logs/domain-0/T is full: no room for superblock: No space left \
             on device"
        );
        let long = text("ä", path, "is full", &"ö".repeat(TEXT_MAX));
        assert!((TEXT_MAX - 1..=TEXT_MAX).contains(&long.len()));
    }

    #[test]
    fn troubles_are_known_of_the_members_that_are_there() {
        let troubles = LogTroubles::default();
        let (one, other) = (Some(MemberId(1)), Some(MemberId(2)));
        troubles.note(one, notice(1, Some(trouble(1, true))));
        troubles.note(other, notice(1, Some(trouble(1, false))));
        troubles.note(None, notice(2, Some(trouble(1, true))));
        let members = |of: Vec<Troubled>| of.into_iter().map(|it| it.0).collect::<Vec<_>>();
        assert_eq!(members(troubles.of_topic(TopicKey(1))), [one, other]);
        assert_eq!(members(troubles.holding(SubgroupId(1))), [one, None]);
        assert_eq!(members(troubles.holding(SubgroupId(2))), []);
        troubles.note(one, notice(1, None));
        assert_eq!(members(troubles.of_topic(TopicKey(1))), [other]);
        troubles.keep(|member| member == MemberId(1));
        assert_eq!(members(troubles.of_topic(TopicKey(1))), []);
        assert_eq!(members(troubles.of_topic(TopicKey(2))), [None]);
        for topic in 0..2 * KNOWN_MAX as u128 {
            troubles.note(one, notice(topic, Some(trouble(3, true))));
        }
        assert_eq!(troubles.holding(SubgroupId(3)).len(), KNOWN_MAX - 1);
    }
}
