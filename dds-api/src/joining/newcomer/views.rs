//! Views that a newcomer may come to be in: read, and prepared.

use std::time::{Duration, Instant};

use spindle_dds_core::membership::{Member, View};
use spindle_dds_transport::shm::StationEvent;

use super::Newcomer;
use crate::driver::threads::preparation::{self, ViewSegments};
use crate::joining::packet::Packet;

/// How often to look for members that are gone while a view is prepared.
const WATCH_EVERY: Duration = Duration::from_millis(50);
impl Newcomer {
    /// Takes a part of a view; returns the view with the last part.
    pub(super) fn take_part(
        &mut self,
        from: u128,
        is_welcome: bool,
        last: bool,
        part: Vec<u8>,
    ) -> Option<View> {
        if !is_welcome {
            self.views.remove(&from);
            return None;
        }
        self.views.entry(from).or_default().extend(part);
        let bytes = last.then(|| self.views.remove(&from).unwrap_or_default())?;
        self.view(&bytes)
    }

    /// Prepares a view that this newcomer may come to be in. Returns what it lacks.
    pub(super) fn prepare(&mut self, sponsor: u128, view: &View, number: u64) -> Option<String> {
        let is_it = |it: &ViewSegments| (it.view, it.preparation) == (view.id, number);
        if self.ready.as_ref().is_some_and(is_it) {
            return None;
        }
        self.ready = None;
        let (station, limit) = (&self.station, self.limit);
        let others = view.members.iter().filter(|it| it.id != self.me.id);
        let others: Vec<Member> = others.cloned().collect();
        let mut watched_at = Instant::now();
        let later = &mut self.later;
        // Another newcomer may be gone, or a member may lack something: then the sponsor goes on.
        let mut watch = || {
            if watched_at.elapsed() > WATCH_EVERY {
                watched_at = Instant::now();
                preparation::give_up_gone(station, &self.register, &others);
            }
            while let Some(event) = station.next_event(Duration::ZERO) {
                if goes_on(&event, sponsor) {
                    preparation::stop(station, view.id, number);
                }
                later.push_back(event);
            }
        };
        let made = preparation::make_room(&self.register, view)
            .and_then(|()| preparation::make(station, self.me.id, view, number, limit, &mut watch));
        match made {
            Ok(ready) => {
                (self.ready, self.lack) = (Some(ready), None);
                None
            }
            Err(error) => Some(self.lack.insert(error).reason().to_owned()),
        }
    }

    fn view(&self, bytes: &[u8]) -> Option<View> {
        let view = View::from_bytes(bytes).ok()?;
        view.rank(self.me.id).is_some().then_some(view)
    }
}

/// Whether the sponsor says something that ends the preparation of a view.
fn goes_on(event: &StationEvent, sponsor: u128) -> bool {
    match event {
        StationEvent::Message { from, bytes } if *from == sponsor => matches!(
            Packet::read(bytes),
            Ok(Packet::Prepare { .. } | Packet::Waits { .. } | Packet::Refused { .. })
        ),
        _ => false,
    }
}
