//! Making what a view needs before it is agreed.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use spindle_dds_core::membership::{Member, Preparation};
use spindle_dds_transport::shm::StationEvent;

use super::ControlThread;
use super::history::hand_over;
use crate::driver::session::Session;
use crate::driver::threads::preparation;
use crate::error::{Error, Result};
use crate::joining::Packet;

impl ControlThread {
    /// Makes what a view needs before it is agreed, and answers.
    pub(super) fn prepare_ahead(&mut self, session: &Session, preparation: &Preparation) {
        // An earlier preparation is not needed any more.
        self.ready = None;
        let answer = self.make_ahead(session, preparation);
        // The member that lacks something tells of it.
        let is_stopped = session
            .control_queue()
            .is_stopped(preparation.next.id, preparation.number);
        if let (Err(error), false) = (&answer, is_stopped) {
            tracing::warn!(view = preparation.next.id, %error, "a view cannot be prepared");
        }
        let pid = std::process::id();
        let answer = answer.map_err(|error| format!("process {pid}: {}", error.reason()));
        session.engine().prepared(preparation.number, answer);
    }

    fn make_ahead(&mut self, session: &Session, preparation: &Preparation) -> Result<()> {
        let (next, number) = (&*preparation.next, preparation.number);
        let deadline = Instant::now() + preparation::time_limit(number, self.limit);
        let joins = preparation.proposal.joins.iter();
        let mine = joins.filter(|newcomer| self.asked.contains(&newcomer.id.0));
        let mine: Vec<Member> = mine.cloned().collect();
        self.tell_waiting(&mine);
        let packets = match mine.is_empty() {
            true => Vec::new(),
            false => Packet::prepare(next, number),
        };
        for newcomer in &mine {
            for packet in &packets {
                let sent = self.station.send(newcomer.id.0, packet);
                sent.map_err(|error| Error::Error(error.to_string()))?;
            }
        }
        // Leaving needs nothing.
        let stays = next.rank(self.me).is_some();
        let mut early = VecDeque::new();
        let made = stays.then(|| {
            let (station, newcomers) = (&self.station, &preparation.proposal.joins);
            let history = (&*self.history, &*self.logs);
            let mut watch = || {
                preparation::give_up_gone(station, &self.register, newcomers);
                while let Some(event) = station.next_event(Duration::ZERO) {
                    let Some(event) = hand_over(history, station, event) else {
                        continue;
                    };
                    if lacks(&event, &mine, (next.id, number)) {
                        // Its rows will not come.
                        preparation::stop(station, next.id, number);
                    }
                    early.push_back(event);
                }
            };
            watch();
            preparation::make_room(&self.register, next)?;
            preparation::make(station, self.me, next, number, self.limit, &mut watch)
        });
        let made = made.transpose();
        let until = match &made {
            Ok(_) => deadline,
            // What a newcomer lacks is why it was not reached.
            Err(_) => Instant::now(),
        };
        let lack = self.wait_for_newcomers(session, &mine, (next.id, number), &mut early, until);
        self.later.extend(early);
        if let (Ok(Some(lack)), _) | (Err(lack), Ok(_)) = (lack, &made) {
            return Err(Error::Error(lack));
        }
        self.ready = made?;
        Ok(())
    }

    /// Waits until newcomers have prepared the view, or one of them has said what it lacks, which
    /// is returned. Fails if one of them does not answer. `early` are events that have come
    /// already. Other events are handled later.
    fn wait_for_newcomers(
        &mut self,
        session: &Session,
        newcomers: &[Member],
        preparation: (u64, u64),
        early: &mut VecDeque<StationEvent>,
        deadline: Instant,
    ) -> std::result::Result<Option<String>, String> {
        let mut waiting: BTreeMap<u128, &Member> =
            newcomers.iter().map(|it| (it.id.0, it)).collect();
        let text = |newcomer: &Member, what: &str| {
            let name = preparation::name(newcomer);
            format!("{name}, which joins, {what}")
        };
        while let Some((_, newcomer)) = waiting.first_key_value() {
            if session
                .control_queue()
                .is_stopped(preparation.0, preparation.1)
            {
                return Err("the view ends without this change".to_owned());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let event = early.pop_front();
            let event = match event.or_else(|| self.station.next_event(left)) {
                Some(event) => match hand_over((&self.history, &self.logs), &self.station, event) {
                    Some(event) => event,
                    None => continue,
                },
                None if left.is_zero() => return Err(text(newcomer, "does not answer in time")),
                None => continue,
            };
            let (from, answer) = match &event {
                StationEvent::Message { from, bytes } => (*from, Packet::read(bytes).ok()),
                StationEvent::Closed { id, .. } | StationEvent::Connected { id } => (*id, None),
            };
            let Some(newcomer) = waiting.get(&from) else {
                self.later.push_back(event);
                continue;
            };
            match answer {
                Some(Packet::Prepared { view, number, lack }) => {
                    // Otherwise it is late, for an earlier preparation.
                    if (view, number) == preparation {
                        if let Some(lack) = lack {
                            return Ok(Some(text(newcomer, &format!("cannot: {lack}"))));
                        }
                        waiting.remove(&from);
                    }
                }
                _ => {
                    let lost = match &event {
                        StationEvent::Closed { cause, .. } => {
                            Some(text(newcomer, &format!("is lost: {cause}")))
                        }
                        _ => None,
                    };
                    self.later.push_back(event);
                    if let Some(lost) = lost {
                        return Err(lost);
                    }
                }
            }
        }
        Ok(None)
    }
}

/// Whether one of these newcomers says that it cannot prepare a view of this number, by this number.
fn lacks(event: &StationEvent, newcomers: &[Member], preparation: (u64, u64)) -> bool {
    let StationEvent::Message { from, bytes } = event else {
        return false;
    };
    let is_newcomer = newcomers.iter().any(|it| it.id.0 == *from);
    is_newcomer
        && matches!(
            Packet::read(bytes),
            Ok(Packet::Prepared { view, number, lack: Some(_) }) if (view, number) == preparation
        )
}
