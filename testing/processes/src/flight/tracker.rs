//! What a feed knows of the traffic: a state for each aircraft, updated frame by frame, and the
//! alerts that follow from it.

use std::collections::BTreeMap;

use adsb_deku::{Altitude, CPRFormat, cpr};

use super::mode_s::{self, Report};
use super::recording::Frame;
use super::samples::StateSample;
use crate::traffic::{
    AlertKind, KNOWN_ALTITUDE, KNOWN_CALLSIGN, KNOWN_POSITION, KNOWN_SQUAWK, KNOWN_VELOCITY,
};

/// The traffic as one feed sees it.
#[derive(Debug)]
pub(super) struct Tracker {
    feed: u16,
    aircraft: BTreeMap<u32, Aircraft>,
    alerts: Vec<RaisedAlert>,
    /// When aircraft without signal were last searched for.
    checked_signals_at_ns: i64,
}

/// An alert that is to be published.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RaisedAlert {
    pub(super) icao: u32,
    pub(super) kind: AlertKind,
    pub(super) raised_at_ns: i64,
    pub(super) text: String,
}

#[derive(Debug, Default)]
struct Aircraft {
    state: StateSample,
    /// The last even half of a position, and when it was received.
    even: Option<(i64, Altitude)>,
    /// The last odd half.
    odd: Option<(i64, Altitude)>,
    located_at_ns: i64,
    is_lost: bool,
    in_emergency: bool,
    is_diving: bool,
}

impl Tracker {
    pub(super) fn new(feed: u16) -> Self {
        Self {
            feed,
            aircraft: BTreeMap::new(),
            alerts: Vec::new(),
            checked_signals_at_ns: i64::MIN,
        }
    }

    /// Processes one frame. The state of its aircraft, if the frame is of one.
    pub(super) fn handle_frame(&mut self, frame: &Frame) -> Option<&StateSample> {
        let now_ns = frame.received_at_ns;
        self.check_signals(now_ns);
        let report = mode_s::decode(frame.message())?;
        if !report.is_address_certain && !self.aircraft.contains_key(&report.icao) {
            return None;
        }
        let alerts = &mut self.alerts;
        let aircraft = self.aircraft.entry(report.icao).or_default();
        let mut raise = |kind, text: String| {
            alerts.push(RaisedAlert {
                icao: report.icao,
                kind,
                raised_at_ns: now_ns,
                text,
            });
        };
        if aircraft.state.frames == 0 {
            aircraft.state.icao = report.icao;
            aircraft.state.feed = self.feed;
            raise(AlertKind::FIRST_CONTACT, "first contact".to_owned());
        }
        aircraft.update(now_ns, &report, &mut raise);
        Some(&aircraft.state)
    }

    /// The alerts that were raised since the last call.
    pub(super) fn poll_alerts(&mut self) -> impl Iterator<Item = RaisedAlert> {
        self.alerts.drain(..)
    }

    fn check_signals(&mut self, now_ns: i64) {
        if now_ns.saturating_sub(self.checked_signals_at_ns) < CHECK_SIGNALS_EVERY_NS {
            return;
        }
        self.checked_signals_at_ns = now_ns;
        for (icao, aircraft) in &mut self.aircraft {
            let silent_ns = now_ns - aircraft.state.received_at_ns;
            if !aircraft.is_lost && silent_ns >= LOST_AFTER_NS {
                aircraft.is_lost = true;
                self.alerts.push(RaisedAlert {
                    icao: *icao,
                    kind: AlertKind::SIGNAL_LOST,
                    raised_at_ns: now_ns,
                    text: format!("no frame for {} s", silent_ns / SECOND_NS),
                });
            }
        }
    }
}

impl Aircraft {
    fn update(&mut self, now_ns: i64, report: &Report, raise: &mut impl FnMut(AlertKind, String)) {
        if std::mem::take(&mut self.is_lost) {
            let silent_s = (now_ns - self.state.received_at_ns) / SECOND_NS;
            raise(
                AlertKind::SIGNAL_REGAINED,
                format!("back after {silent_s} s"),
            );
        }
        self.state.received_at_ns = now_ns;
        self.state.frames += 1;
        if let Some(altitude_ft) = report.altitude_ft {
            self.state.altitude_ft = altitude_ft;
            self.state.known |= KNOWN_ALTITUDE;
        }
        self.update_callsign(report, raise);
        self.update_velocity(report, raise);
        self.update_ground(report, raise);
        self.update_squawk(report, raise);
        if let Some(position) = &report.position {
            self.update_position(now_ns, position);
        }
    }

    fn update_callsign(&mut self, report: &Report, raise: &mut impl FnMut(AlertKind, String)) {
        let Some(callsign) = report.callsign else {
            return;
        };
        if !self.state.knows(KNOWN_CALLSIGN) || self.state.callsign != callsign {
            self.state.callsign = callsign;
            self.state.known |= KNOWN_CALLSIGN;
            let text = format!("this is {}", self.state.callsign());
            raise(AlertKind::IDENTIFIED, text);
        }
    }

    fn update_velocity(&mut self, report: &Report, raise: &mut impl FnMut(AlertKind, String)) {
        let Some((ground_speed_kt, track_deg, vertical_rate_fpm)) = report.velocity else {
            return;
        };
        self.state.ground_speed_kt = ground_speed_kt;
        self.state.track_deg = track_deg;
        self.state.vertical_rate_fpm = vertical_rate_fpm;
        self.state.known |= KNOWN_VELOCITY;
        let was_diving = self.is_diving;
        self.is_diving = match was_diving {
            true => vertical_rate_fpm < DIVE_ENDS_FPM,
            false => vertical_rate_fpm <= DIVE_FPM,
        };
        if self.is_diving && !was_diving {
            let text = format!("descends at {} ft/min", -vertical_rate_fpm);
            raise(AlertKind::RAPID_DESCENT, text);
        }
    }

    fn update_ground(&mut self, report: &Report, raise: &mut impl FnMut(AlertKind, String)) {
        let Some(on_ground) = report.on_ground else {
            return;
        };
        let before = std::mem::replace(&mut self.state.on_ground, on_ground);
        if before != on_ground && self.state.frames > 1 {
            match on_ground {
                true => raise(AlertKind::LANDING, "is on the ground".to_owned()),
                false => raise(AlertKind::TAKE_OFF, "is in the air".to_owned()),
            }
        }
    }

    fn update_squawk(&mut self, report: &Report, raise: &mut impl FnMut(AlertKind, String)) {
        if let Some(squawk) = report.squawk {
            self.state.squawk = squawk;
            self.state.known |= KNOWN_SQUAWK;
        }
        let before = self.in_emergency;
        self.in_emergency = report.emergency
            || (self.state.knows(KNOWN_SQUAWK) && EMERGENCY_SQUAWKS.contains(&self.state.squawk));
        if self.in_emergency && !before {
            let text = format!("emergency, squawk {:04x}", self.state.squawk);
            raise(AlertKind::EMERGENCY, text);
        }
    }

    /// Combines the two latest halves to a position, unless they are too far apart in time.
    fn update_position(&mut self, now_ns: i64, half: &Altitude) {
        let other = match half.odd_flag {
            CPRFormat::Even => {
                self.even = Some((now_ns, *half));
                &self.odd
            }
            CPRFormat::Odd => {
                self.odd = Some((now_ns, *half));
                &self.even
            }
        };
        let Some((at_ns, other)) = other else {
            return;
        };
        if now_ns - at_ns > PAIR_WITHIN_NS {
            return;
        }
        let Some(position) = cpr::get_position((other, half)) else {
            return;
        };
        // Halves from both sides of the border of a zone give a position far off.
        let jump_deg = (position.latitude - self.state.latitude_deg).abs()
            + (position.longitude - self.state.longitude_deg).abs();
        let is_recent = now_ns - self.located_at_ns < STILL_NEAR_NS;
        let is_valid = position.latitude.abs() <= 90.0 && position.longitude.abs() <= 180.0;
        if !is_valid || (self.state.knows(KNOWN_POSITION) && is_recent && jump_deg > JUMP_DEG) {
            return;
        }
        self.state.latitude_deg = position.latitude;
        self.state.longitude_deg = position.longitude;
        self.state.known |= KNOWN_POSITION;
        self.located_at_ns = now_ns;
    }
}

const SECOND_NS: i64 = 1_000_000_000;
const CHECK_SIGNALS_EVERY_NS: i64 = SECOND_NS;
const LOST_AFTER_NS: i64 = 60 * SECOND_NS;
/// ICAO 9871: the halves of a position are at most ten seconds apart.
const PAIR_WITHIN_NS: i64 = 10 * SECOND_NS;
const STILL_NEAR_NS: i64 = 30 * SECOND_NS;
const JUMP_DEG: f64 = 0.5;
const DIVE_FPM: i32 = -2_500;
const DIVE_ENDS_FPM: i32 = -1_500;
/// Unlawful interference, loss of radio, general emergency.
const EMERGENCY_SQUAWKS: [u16; 3] = [0x7500, 0x7600, 0x7700];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::flight::recording;

    /// The whole recording through one feed.
    #[test]
    fn the_recorded_flight_takes_off_and_climbs() {
        let path = Path::new(crate::flight::options::RECORDING);
        let frames = recording::read(path, usize::MAX).expect("the recording");
        let mut tracker = Tracker::new(0);
        let mut states = 0;
        let mut raised = Vec::new();
        for frame in &frames {
            states += usize::from(tracker.handle_frame(frame).is_some());
            raised.extend(tracker.poll_alerts());
        }
        assert!(
            frames.len() >= 30_000 && states > frames.len() / 2,
            "{states}"
        );

        let flight = &tracker.aircraft[&0x48_6257].state;
        let everything =
            KNOWN_CALLSIGN | KNOWN_ALTITUDE | KNOWN_VELOCITY | KNOWN_POSITION | KNOWN_SQUAWK;
        assert!(flight.knows(everything), "{flight:?}");
        assert!(flight.altitude_ft > 20_000, "{flight:?}");
        let count = |kind| raised.iter().filter(|alert| alert.kind == kind).count();
        assert_eq!(count(AlertKind::FIRST_CONTACT), tracker.aircraft.len());
        let took_off =
            |alert: &RaisedAlert| alert.icao == 0x48_6257 && alert.kind == AlertKind::TAKE_OFF;
        assert!(raised.iter().any(took_off), "{raised:?}");
    }
}
