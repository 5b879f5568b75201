//! How a log gets what it lacks of another one.
//!
//! The chain values at the end of the learner's records show whether the donor has the same ones. If not, the
//! learner goes back by 1, 2, 4, .. records; but no further than its own compaction went, as a log is not cut
//! off there. Then it begins anew.
//!
//! # Across a gap
//! What a donor has removed may have ended instances of which the learner has samples: they would live
//! again. So records after a gap are taken only by a learner that has all records before from the same
//! donor, between two compactions of it. Another one begins anew. A donor that is asked does not
//! compact its log for a while.

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
    /// All records below the place are of this donor, which had removed records so often.
    whole_of: Option<(MemberId, u64)>,
    /// When it was asked for last, or when the donor was found to have no more.
    at_ns: u64,
}

/// What became of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    Yes,
    /// They do not follow those that are there.
    No,
    /// They come after a gap.
    BeginsAnew,
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
                self.compacting.was_asked(now_ns);
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
                removals,
            } => {
                if self.is_answer(from, Some(after)) {
                    let taken = self.take_part(after, &records, (from, removals));
                    self.part_taken(taken, (complete, is_end), now_ns);
                }
            }
            LogPacket::Mismatch { after } => {
                if self.is_answer(from, Some(after)) {
                    self.go_back(after, now_ns);
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
        if after > 0 && self.log.chain_before(after)? != (after, chain) {
            return Ok(LogPacket::Mismatch { after });
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
            removals: self.log.figures().compacted,
        })
    }

    fn take_part(
        &mut self,
        after: u64,
        mut bytes: &[u8],
        donor: (MemberId, u64),
    ) -> Result<Taken, LogError> {
        let mut records = Vec::new();
        while !bytes.is_empty() {
            let Some(record) = LoggedRecord::read(&mut bytes) else {
                return Ok(Taken::No);
            };
            records.push(record);
        }
        if let Some(pull) = &mut self.pull {
            let is_whole = after == 0 || pull.whole_of == Some(donor);
            pull.whole_of = is_whole.then_some(donor);
            if !is_whole && records.iter().any(|it| it.is_after_gap) {
                return Ok(Taken::BeginsAnew);
            }
        }
        self.adopt_rosters()?;
        if after < self.log.last().end {
            match self.log.truncate(after) {
                // It has to begin anew.
                Err(LogError::Compacted { .. }) => self.log.truncate(0)?,
                done => done?,
            }
            if self.log.last().end != after {
                return Ok(Taken::Yes);
            }
        }
        match self.log.append_logged(&records) {
            Err(LogError::Chain { .. } | LogError::Order { .. }) => Ok(Taken::No),
            done => done.map(|()| Taken::Yes),
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
        taken: Result<Taken, LogError>,
        (complete, is_end): (u64, bool),
        now_ns: u64,
    ) {
        match taken {
            Ok(Taken::Yes) => {}
            Ok(Taken::BeginsAnew) => {
                if let Some(pull) = &mut self.pull {
                    (pull.after, pull.step) = (0, 0);
                }
                self.ask(now_ns);
                return;
            }
            Ok(Taken::No) => {
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

    /// The logs part before this place.
    fn go_back(&mut self, after: u64, now_ns: u64) {
        let Some(pull) = &mut self.pull else {
            return;
        };
        pull.step = (pull.step * 2).max(1);
        let step = pull.step;
        match self.place_back(after, step) {
            Ok(place) => {
                if let Some(pull) = &mut self.pull {
                    pull.after = place;
                }
                self.ask(now_ns);
            }
            Err(error) => {
                self.note(Err(error), now_ns);
            }
        }
    }

    /// The place a number of records before one. A log that was compacted is not cut off before that.
    fn place_back(&mut self, after: u64, records: u64) -> Result<u64, LogError> {
        let place = self.log.step_back(after, records)?;
        let settled = self.log.settled();
        let (least, _) = self.log.chain_before(settled)?;
        Ok(match place < least {
            true if after > least => least,
            true => 0,
            false => place,
        })
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
        let (after, step, whole_of) = match place {
            Some(place) => (place.after, place.step, place.whole_of),
            None => (self.log.last().end, 0, None),
        };
        self.pull = Some(Pull {
            donor,
            after,
            step,
            whole_of,
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
