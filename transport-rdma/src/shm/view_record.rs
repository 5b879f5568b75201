//! The text of a domain's record: the current view on this host.
//!
//! ```text
//! <boot id> <host of the writer>
//! <view> <digest> [<view> <digest> of those before it, the last first]
//! <member id> <its host> <pid> <start time> <address>      one line a member
//! ```
//! Numbers of 128 bits, digests and addresses are hexadecimal; `-` is an empty address.

use super::error::SetupError;
use super::process;
use super::station_name::StationName;
use crate::fabric::peers::MEMBERS_MAX;

/// Longest address of a member, in bytes.
pub(super) const ADDRESS_LEN_MAX: usize = 1024;

/// Most bytes of a text without its members.
const HEAD_LEN_MAX: usize = 512;

/// Number of earlier decisions that are remembered: a member that records one again, late,
/// is told that it is recorded.
pub(super) const REMEMBERED_MAX: usize = 8;

/// A member in the record of a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberEntry {
    /// Its id, drawn at random and never used again.
    pub id: u128,
    /// Its host. Members on the host of the record are checked for life; those of other
    /// hosts count as alive.
    pub host: u128,
    /// Its process id on its host.
    pub pid: u32,
    /// Start time of that process, in clock ticks since boot: distinguishes it from a later
    /// process with the same id.
    pub start: u64,
    /// Its station's address; at most 1024 bytes.
    pub address: Vec<u8>,
}

impl MemberEntry {
    /// An entry for a member in this process.
    pub fn here(id: u128, host: u128, address: Vec<u8>) -> Result<Self, SetupError> {
        Ok(Self {
            id,
            host,
            pid: std::process::id(),
            start: process::own_start_time()?,
            address,
        })
    }

    /// The number of the pid namespace in which `pid` counts, as `/proc/PID/ns/pid` has it; `None`
    /// if the address does not tell.
    pub fn pid_namespace(&self) -> Option<u64> {
        StationName::in_address(&self.address, self.id).map(|name| name.namespace)
    }

    /// Most bytes that it takes in a text.
    fn text_len(&self) -> usize {
        // Ids, host, pid, start, address, and what separates them.
        32 + 32 + 10 + 20 + 2 * self.address.len().max(1) + 5
    }
}

/// A view on which the members have agreed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewDecision {
    /// Number of the view; the first is 1.
    pub view: u64,
    /// A digest of the whole decision: decisions of one view with equal digests are the
    /// same. The digest of the first view is 0.
    pub digest: u64,
    /// Its members; 1 to 256. The record of a domain that all members have left has none.
    pub members: Vec<MemberEntry>,
}

/// The content of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ViewRecord {
    pub(super) boot: u128,
    /// The host on which the record lies.
    pub(super) host: u128,
    pub(super) decision: ViewDecision,
    /// View and digest of earlier decisions, the latest first.
    pub(super) before: Vec<(u64, u64)>,
}

impl ViewRecord {
    /// The first record of a domain, by a member of `host` in this process.
    pub(super) fn new(host: u128, decision: ViewDecision) -> Result<Self, SetupError> {
        Ok(Self {
            boot: process::boot()?,
            host,
            decision,
            before: Vec::new(),
        })
    }

    /// The record of `next`, which follows the decision of this one.
    pub(super) fn followed_by(&self, next: ViewDecision) -> Result<Self, SetupError> {
        let ViewDecision { view, digest, .. } = self.decision;
        let known = [(view, digest)].into_iter().chain(self.before.clone());
        let before = known.take(REMEMBERED_MAX).collect();
        let record = Self::new(self.host, next)?;
        Ok(Self { before, ..record })
    }

    /// Whether this decision was recorded, as far back as is remembered.
    pub(super) fn remembers(&self, made: &ViewDecision) -> bool {
        let ViewDecision { view, digest, .. } = self.decision;
        let key = (made.view, made.digest);
        (view, digest) == key || self.before.contains(&key)
    }

    /// Whether the member is in the recorded view.
    pub(super) fn has(&self, id: u128) -> bool {
        self.decision.members.iter().any(|member| member.id == id)
    }

    /// The members that are alive, as far as this host can tell. `boot` is the current one;
    /// `lives` tells of a member of this host.
    pub(super) fn living(
        &self,
        boot: u128,
        lives: impl Fn(&MemberEntry) -> bool,
    ) -> Vec<MemberEntry> {
        let is_living =
            |entry: &&MemberEntry| entry.host != self.host || self.boot == boot && lives(entry);
        let members = self.decision.members.iter();
        members.filter(is_living).cloned().collect()
    }

    /// Whether another member on this host is alive. Arguments as of [`living`](Self::living).
    pub(super) fn lives_here_besides(
        &self,
        me: u128,
        boot: u128,
        lives: impl Fn(&MemberEntry) -> bool,
    ) -> bool {
        let members = self.decision.members.iter();
        let mut others = members.filter(|entry| entry.host == self.host && entry.id != me);
        self.boot == boot && others.any(lives)
    }

    /// Most bytes of the text of a record with these members.
    pub(super) fn room<'a>(members: impl IntoIterator<Item = &'a MemberEntry>) -> usize {
        let lens = members.into_iter().map(MemberEntry::text_len);
        HEAD_LEN_MAX + lens.sum::<usize>()
    }

    pub(super) fn write(&self) -> String {
        let ViewDecision {
            view,
            digest,
            members,
        } = &self.decision;
        let mut text = format!(
            "{:032x} {:032x}\n{view} {digest:016x}",
            self.boot, self.host
        );
        for (view, digest) in &self.before {
            text += &format!(" {view} {digest:016x}");
        }
        text.push('\n');
        for member in members {
            text += &format!(
                "{:032x} {:032x} {} {} {}\n",
                member.id,
                member.host,
                member.pid,
                member.start,
                hex(&member.address)
            );
        }
        text
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix('\n')?.split('\n');
        let [boot, host] = fields(lines.next()?)?;
        let ((view, digest), before) = read_decisions(lines.next()?)?;
        let members: Vec<_> = lines.map(read_entry).collect::<Option<_>>()?;
        let record = Self {
            boot: u128::from_str_radix(boot, 16).ok()?,
            host: u128::from_str_radix(host, 16).ok()?,
            decision: ViewDecision {
                view,
                digest,
                members,
            },
            before,
        };
        (record.decision.members.len() <= MEMBERS_MAX).then_some(record)
    }
}

/// The current decision, and the earlier ones.
type Decisions = ((u64, u64), Vec<(u64, u64)>);

fn read_decisions(line: &str) -> Option<Decisions> {
    let words: Vec<_> = line.split(' ').collect();
    let (pairs, odd) = words.as_chunks::<2>();
    if !odd.is_empty() || pairs.len() > 1 + REMEMBERED_MAX {
        return None;
    }
    let read = |[view, digest]: &[&str; 2]| {
        Some((view.parse().ok()?, u64::from_str_radix(digest, 16).ok()?))
    };
    let mut decisions = pairs.iter().map(read).collect::<Option<Vec<_>>>()?;
    let before = decisions.split_off(1);
    Some((decisions.pop()?, before))
}

fn read_entry(line: &str) -> Option<MemberEntry> {
    let [id, host, pid, start, address] = fields(line)?;
    Some(MemberEntry {
        id: u128::from_str_radix(id, 16).ok()?,
        host: u128::from_str_radix(host, 16).ok()?,
        pid: pid.parse().ok()?,
        start: start.parse().ok()?,
        address: unhex(address)?,
    })
}

/// Exactly `N` fields, separated by one space.
fn fields<const N: usize>(line: &str) -> Option<[&str; N]> {
    let fields: Vec<_> = line.split(' ').collect();
    fields.try_into().ok()
}

fn hex(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "-".into();
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if text == "-" {
        return Some(Vec::new());
    }
    let (pairs, odd) = text.as_bytes().as_chunks::<2>();
    if !odd.is_empty() || pairs.is_empty() || pairs.len() > ADDRESS_LEN_MAX {
        return None;
    }
    let byte = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    pairs.iter().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(members: usize) -> ViewRecord {
        let entry = |id: usize| MemberEntry {
            id: u128::MAX - id as u128,
            host: 1 << 100,
            pid: 7,
            start: u64::MAX,
            address: vec![255; id * 4],
        };
        let decision = ViewDecision {
            view: u64::MAX,
            digest: 1,
            members: (0..members).map(entry).collect(),
        };
        ViewRecord::new(3, decision).expect("a record")
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        for members in [0, 1, 2, MEMBERS_MAX] {
            let record = record(members);
            assert_eq!(ViewRecord::read(&record.write()), Some(record));
        }
        assert_eq!(ViewRecord::read(&record(MEMBERS_MAX + 1).write()), None);
    }

    #[test]
    fn the_last_decisions_are_remembered() {
        let decision = |view| ViewDecision {
            view,
            digest: view * 3,
            ..record(1).decision
        };
        let mut record = record(1);
        for view in 1..20 {
            record = record.followed_by(decision(view)).expect("a record");
        }
        assert_eq!(ViewRecord::read(&record.write()), Some(record.clone()));
        let remembered = (0..30).filter(|view| record.remembers(&decision(*view)));
        assert_eq!(remembered.collect::<Vec<_>>(), (11..20).collect::<Vec<_>>());
        let other = ViewDecision {
            digest: 1,
            ..decision(18)
        };
        assert!(!record.remembers(&other));
        let text = record.write();
        let too_many = text.replace("19 0000000000000039", "20 1 19 0000000000000039");
        assert_ne!(too_many, text);
        assert_eq!(ViewRecord::read(&too_many), None);
        let odd = text.replace("19 0000000000000039", "19");
        assert_eq!(ViewRecord::read(&odd), None);
    }

    #[test]
    fn part_of_a_record_is_not_a_record() {
        let text = record(2).write();
        let ends: Vec<_> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
        for end in 0..text.len() {
            // A record without its last members is valid text; records are replaced whole.
            let whole = ends[1..].contains(&end);
            assert_eq!(ViewRecord::read(&text[..end]).is_some(), whole, "{end}");
        }
        assert_eq!(ViewRecord::read(&text.replace(" 7 ", " x ")), None);
    }

    #[test]
    fn members_of_other_hosts_count_as_alive_and_of_an_earlier_boot_as_dead() {
        let mut record = record(3);
        let boot = record.boot;
        let lives = |member: &MemberEntry| member.pid != 7;
        assert_eq!(record.living(boot, lives).len(), 3, "of another host");
        assert!(!record.lives_here_besides(9, boot, lives));
        record.host = 1 << 100;
        assert_eq!(record.living(boot, lives), [], "no such process");
        let here = MemberEntry::here(9, 1 << 100, vec![]).expect("a process");
        record.decision.members.push(here.clone());
        assert_eq!(record.living(boot, lives), [here]);
        assert!(record.lives_here_besides(8, boot, lives));
        assert!(!record.lives_here_besides(9, boot, lives));
        assert_eq!(record.living(boot + 1, lives), []);
    }

    #[test]
    fn a_text_has_no_more_bytes_than_its_room() {
        for members in [0, 1, MEMBERS_MAX] {
            let mut record = record(members);
            for _ in 0..20 {
                record = record
                    .followed_by(record.decision.clone())
                    .expect("a record");
            }
            record
                .decision
                .members
                .iter_mut()
                .for_each(|it| it.pid = u32::MAX);
            let room = ViewRecord::room(&record.decision.members);
            assert!(record.write().len() <= room);
        }
    }
}
