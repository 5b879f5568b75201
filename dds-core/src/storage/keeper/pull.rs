//! How a log gets what it lacks of another one.
//!
//! The chain values at the end of the learner's records show whether the donor has the same ones. If not, the
//! learner goes back by 1, 2, 4, .. records. Records may be gone from both, by compaction. A donor without the
//! record at the place that was asked for says which one it has before it, and the learner goes
//! back to that one. It goes back no further than its own compaction went: a log is not cut off there. If it
//! has no record there that the donor has too, it begins anew, and takes all that the donor has left.

use super::{KeeperStatus, LogKeeper, LogPacket, LoggedRecord, next_state};
use crate::membership::MemberId;
use crate::storage::log::{Disk, LogError};
use crate::storage::roster::LogGroup;

/// Records that are asked for.
#[derive(Debug)]
pub(super) struct Pull {
    donor: MemberId,
    /// The place that is asked for; the log is cut off there when records come.
    after: u64,
    /// Records by which the place goes back at the next mismatch.
    step: u64,
    is_asked: bool,
    /// When it was asked for last, or when the donor was found to have no more.
    at_ns: u64,
}

/// Bytes that are asked for at a time.
const PART_LEN: u32 = 512 << 10;
/// When a question without an answer is asked of the next logger.
const ASK_AGAIN_NS: u64 = 1_000_000_000;
/// When a logger that had no more is asked for more.
const ASK_ON_NS: u64 = 10_000_000;

impl Pull {
    pub(super) fn due(&self) -> u64 {
        let wait = if self.is_asked {
            ASK_AGAIN_NS
        } else {
            ASK_ON_NS
        };
        self.at_ns.saturating_add(wait)
    }
}

impl<D: Disk, H: AsRef<[u8]>> LogKeeper<D, H> {
    /// A keeper of the topic says this.
    pub fn handle(&mut self, from: MemberId, packet: LogPacket, now_ns: u64) {
        if self.is_dead() {
            if matches!(packet, LogPacket::Ask { .. }) {
                self.packets.push((from, LogPacket::Refused));
            }
            return;
        }
        match packet {
            LogPacket::Ask {
                lineage,
                after,
                chain,
                bytes_max,
            } => {
                let answer = self.answer(lineage, (after, chain), bytes_max);
                let answer = answer.unwrap_or_else(|error| {
                    self.note(Err(error), now_ns);
                    LogPacket::Refused
                });
                self.packets.push((from, answer));
            }
            LogPacket::Part {
                after,
                records,
                complete,
                is_end,
            } => {
                if self.is_answer(from, Some(after)) {
                    let taken = self.take_part(after, &records);
                    self.part_taken(taken, (complete, is_end), now_ns);
                }
            }
            LogPacket::Mismatch { after, before } => {
                if self.is_answer(from, Some(after)) {
                    self.go_back(after, before, now_ns);
                }
            }
            LogPacket::Refused => {
                if self.is_answer(from, None) {
                    self.ask_next(now_ns, false);
                }
            }
        }
    }

    fn is_answer(&self, from: MemberId, after: Option<u64>) -> bool {
        self.pull.as_ref().is_some_and(|pull| {
            pull.is_asked && pull.donor == from && after.is_none_or(|it| it == pull.after)
        })
    }

    fn answer(
        &mut self,
        lineage: u128,
        (after, chain): (u64, u32),
        bytes_max: u32,
    ) -> Result<LogPacket, LogError> {
        let is_related = |group: &LogGroup| lineage == 0 || lineage == group.lineage;
        if !self.is_whole() || !self.group().is_some_and(is_related) {
            return Ok(LogPacket::Refused);
        }
        if after > self.log.appended() && !self.live.is_empty() {
            // It may ask for what waits here for room.
            return Ok(LogPacket::Refused);
        }
        if after > 0 {
            let found = self.log.chain_before(after)?;
            if found != (after, chain) {
                let before = found.0;
                return Ok(LogPacket::Mismatch { after, before });
            }
        }
        let synced = self.log.synced();
        let mut bytes = Vec::new();
        let mut end = after;
        if after < synced {
            for record in self.log.read(after, bytes_max.min(PART_LEN) as usize)? {
                let position = record.record.position();
                if position >= synced {
                    break;
                }
                end = position + 1;
                bytes.extend_from_slice(&record.bytes());
            }
        }
        Ok(LogPacket::Part {
            after,
            records: bytes,
            complete: self.unsynced_from().unwrap_or(self.delivered_to),
            is_end: end >= synced,
        })
    }

    fn take_part(&mut self, after: u64, mut bytes: &[u8]) -> Result<bool, LogError> {
        let mut records = Vec::new();
        while !bytes.is_empty() {
            let Some(record) = LoggedRecord::read(&mut bytes) else {
                return Ok(false);
            };
            records.push(record);
        }
        self.adopt_rosters()?;
        if after < self.log.last().end {
            match self.log.truncate(after) {
                // It has to begin anew.
                Err(LogError::Compacted { .. }) => self.log.truncate(0)?,
                done => done?,
            }
            if self.log.last().end != after {
                return Ok(true);
            }
        }
        match self.log.append_logged(&records) {
            Err(LogError::Chain { .. } | LogError::Order { .. }) => Ok(false),
            done => done.map(|()| true),
        }
    }

    /// Records what the group's records descend from, and its rosters, before the first of its records: with these
    /// it has to know which logs may have others.
    fn adopt_rosters(&mut self) -> Result<(), LogError> {
        let next = self.group().and_then(|it| next_state(self.log.state(), it));
        match next {
            Some(next) if next != *self.log.state() => self.log.record(next),
            _ => Ok(()),
        }
    }

    fn part_taken(
        &mut self,
        taken: Result<bool, LogError>,
        (complete, is_end): (u64, bool),
        now_ns: u64,
    ) {
        match taken {
            Ok(true) => {}
            Ok(false) => {
                // Another logger has the same records, or this log is not what its chain says.
                let donor = self.pull.take().map_or(MemberId(0), |pull| pull.donor);
                self.status = KeeperStatus::Barred(format!(
                    "the records of member {donor} do not follow those of log {}",
                    self.log_id()
                ));
                return;
            }
            Err(error) => {
                self.note(Err(error), now_ns);
                if let Some(pull) = &mut self.pull {
                    (pull.is_asked, pull.at_ns) = (false, now_ns);
                }
                return;
            }
        }
        self.note(Ok(()), now_ns);
        let end = self.log.last().end;
        let mut has_more = !is_end;
        if let Some(pull) = &mut self.pull {
            has_more |= end < pull.after;
            (pull.after, pull.step) = (end, 0);
            (pull.is_asked, pull.at_ns) = (false, now_ns);
        }
        if has_more {
            self.ask(now_ns);
            return;
        }
        // From here on what is delivered is kept.
        let near = *self.near.get_or_insert(self.delivered_to);
        if complete >= near {
            self.meet(now_ns);
        }
    }

    /// What was pulled and what was delivered meet.
    fn meet(&mut self, now_ns: u64) {
        let end = self.log.last().end;
        while self.live.front().is_some_and(|it| it.meta.position < end) {
            self.live.pop_front();
        }
        self.pull = None;
        self.near = None;
        self.whole = self.group().map(|group| group.generation);
        self.append_live(now_ns);
        self.sync_if_good(now_ns);
        self.make_ready(now_ns);
    }

    /// The logs part before this place, or the donor has nothing from `before` to it.
    fn go_back(&mut self, after: u64, before: u64, now_ns: u64) {
        let Some(step) = self.pull.as_ref().map(|pull| pull.step) else {
            return;
        };
        match self.place_back(after, before, step) {
            Ok((place, step)) => {
                if let Some(pull) = &mut self.pull {
                    (pull.after, pull.step) = (place, step);
                }
                self.ask(now_ns);
            }
            Err(error) => {
                self.note(Err(error), now_ns);
            }
        }
    }

    /// Where to go back to, and by how many records at least.
    fn place_back(&mut self, after: u64, before: u64, step: u64) -> Result<(u64, u64), LogError> {
        let own = self.log.chain_before(before.min(after))?.0;
        let more = (step * 2).max(1);
        let (place, step) = if before >= after {
            (self.log.step_back(after, more)?, more)
        } else if own == before {
            (own, step)
        } else {
            // Logs that have removed others of their records meet in few steps, or not at all.
            (self.log.step_back(own, more - 1)?, more)
        };
        let settled = self.log.settled();
        let least = self.log.chain_before(settled)?.0;
        let place = match place < least {
            true if after > least => least,
            true => 0,
            false => place,
        };
        Ok((place, step))
    }

    /// Goes on to pull, where that is needed.
    pub(super) fn pull_on(&mut self, now_ns: u64) {
        let is_barred = matches!(self.status, KeeperStatus::Barred(_));
        // A log of a later opening has nothing to learn of a group that is shut.
        let own = self.end_now();
        let has_loggers = self.group().is_some_and(|group| {
            let is_older = !own.knows_other_than(&group.generation);
            !group.loggers.is_empty() && (group.is_open() || is_older)
        });
        if !has_loggers {
            self.pull = None;
        }
        if self.is_whole() || is_barred || !has_loggers || self.is_dead() {
            return;
        }
        let donor = self.pull.as_ref().map(|pull| pull.donor);
        let is_there = |donor| self.group().is_some_and(|it| it.log_of(donor).is_some());
        match &self.pull {
            Some(pull) if donor.is_some_and(is_there) => {
                if now_ns < pull.due() {
                    return;
                }
                match pull.is_asked {
                    true => self.ask_next(now_ns, true),
                    false => self.ask(now_ns),
                }
            }
            _ => self.ask_next(now_ns, true),
        }
    }

    /// Asks the next logger; after a refusal in a while.
    fn ask_next(&mut self, now_ns: u64, is_prompt: bool) {
        let (Some(group), Some(me)) = (self.group(), self.me()) else {
            return;
        };
        let source = group.source.map(|source| source.logger.member);
        let others = group.loggers.iter().map(|it| it.member);
        let mut others: Vec<MemberId> = others.filter(|it| *it != me.member).collect();
        // First the one that the generation began with.
        others.sort_by_key(|it| Some(*it) != source);
        let before = self.pull.as_ref().map(|pull| pull.donor);
        let at = others.iter().position(|it| Some(*it) == before);
        let next = at.map_or(0, |at| (at + 1) % others.len());
        let Some(donor) = others.get(next).copied() else {
            self.pull = None;
            return;
        };
        let stranger = self.stranger_to(group);
        // Whole logs have the same records: what one has said of a place holds for the next.
        let place = self.pull.take();
        let (after, step) =
            place.map_or_else(|| (self.log.last().end, 0), |it| (it.after, it.step));
        self.pull = Some(Pull {
            donor,
            after,
            step,
            is_asked: false,
            at_ns: now_ns,
        });
        if let Some(reason) = stranger {
            self.pull = None;
            self.status = KeeperStatus::Barred(reason);
        } else if is_prompt {
            self.ask(now_ns);
        }
    }

    /// Why this log cannot take records of the group.
    fn stranger_to(&self, group: &LogGroup) -> Option<String> {
        let own = self.end_now();
        (!own.is_blank() && own.lineage != group.lineage).then(|| {
            format!(
                "log {} descends from {:032x}, and the loggers of the topic from {:032x}",
                own.log, own.lineage, group.lineage
            )
        })
    }

    fn ask(&mut self, now_ns: u64) {
        let Some(pull) = &mut self.pull else {
            return;
        };
        let own = match self.log.chain_before(pull.after) {
            Ok((end, chain)) if end == pull.after => (end, chain),
            Ok(_) => (0, 0),
            Err(error) => {
                self.note(Err(error), now_ns);
                return;
            }
        };
        pull.after = own.0;
        (pull.is_asked, pull.at_ns) = (true, now_ns);
        let donor = pull.donor;
        let end = self.end_now();
        let ask = LogPacket::Ask {
            lineage: if end.is_blank() { 0 } else { end.lineage },
            after: own.0,
            chain: own.1,
            bytes_max: PART_LEN,
        };
        self.packets.push((donor, ask));
    }
}
