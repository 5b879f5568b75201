//! The samples of the two topics as plain values: built in the ring, read where they lie, and
//! folded into a digest.

use spindle_dds::idl::Slot;

use super::digest::Digest;
use super::mode_s::CALLSIGN_CHARS;
use crate::traffic::{
    AircraftStateBuilder, AircraftStateView, AlertBuilder, AlertKind, AlertView, KNOWN_CALLSIGN,
};

/// A sample of `AircraftState`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct StateSample {
    pub(super) icao: u32,
    pub(super) feed: u16,
    /// `KNOWN_*` bits.
    pub(super) known: u16,
    pub(super) received_at_ns: i64,
    pub(super) frames: u32,
    pub(super) altitude_ft: i32,
    pub(super) latitude_deg: f64,
    pub(super) longitude_deg: f64,
    pub(super) ground_speed_kt: f32,
    pub(super) track_deg: f32,
    pub(super) vertical_rate_fpm: i32,
    pub(super) squawk: u16,
    pub(super) on_ground: bool,
    pub(super) callsign: [u8; CALLSIGN_CHARS],
}

impl StateSample {
    /// Builds the sample in the ring and publishes it.
    pub(super) fn publish<S: Slot>(
        &self,
        mut sample: AircraftStateBuilder<S>,
    ) -> Result<S::Receipt, S::Error> {
        sample
            .set_icao(self.icao)
            .set_feed(self.feed)
            .set_known(self.known)
            .set_received_at_ns(self.received_at_ns)
            .set_frames(self.frames)
            .set_altitude_ft(self.altitude_ft)
            .set_latitude_deg(self.latitude_deg)
            .set_longitude_deg(self.longitude_deg)
            .set_ground_speed_kt(self.ground_speed_kt)
            .set_track_deg(self.track_deg)
            .set_vertical_rate_fpm(self.vertical_rate_fpm)
            .set_squawk(self.squawk)
            .set_on_ground(self.on_ground);
        sample.callsign(self.callsign())?.publish()
    }

    pub(super) fn read(sample: &AircraftStateView<'_>) -> Self {
        let mut callsign = [b' '; CALLSIGN_CHARS];
        for (to, from) in callsign.iter_mut().zip(sample.callsign().bytes()) {
            *to = from;
        }
        Self {
            icao: sample.icao(),
            feed: sample.feed(),
            known: sample.known(),
            received_at_ns: sample.received_at_ns(),
            frames: sample.frames(),
            altitude_ft: sample.altitude_ft(),
            latitude_deg: sample.latitude_deg(),
            longitude_deg: sample.longitude_deg(),
            ground_speed_kt: sample.ground_speed_kt(),
            track_deg: sample.track_deg(),
            vertical_rate_fpm: sample.vertical_rate_fpm(),
            squawk: sample.squawk(),
            on_ground: sample.on_ground(),
            callsign,
        }
    }

    pub(super) fn fold_into(&self, digest: &mut Digest) {
        digest.fold(&self.icao.to_le_bytes());
        digest.fold(&self.feed.to_le_bytes());
        digest.fold(&self.known.to_le_bytes());
        digest.fold(&self.received_at_ns.to_le_bytes());
        digest.fold(&self.frames.to_le_bytes());
        digest.fold(&self.altitude_ft.to_le_bytes());
        digest.fold(&self.latitude_deg.to_le_bytes());
        digest.fold(&self.longitude_deg.to_le_bytes());
        digest.fold(&self.ground_speed_kt.to_le_bytes());
        digest.fold(&self.track_deg.to_le_bytes());
        digest.fold(&self.vertical_rate_fpm.to_le_bytes());
        digest.fold(&self.squawk.to_le_bytes());
        digest.fold(&[u8::from(self.on_ground)]);
        digest.fold(self.callsign().as_bytes());
    }

    /// Whether all of these `KNOWN_*` bits are set.
    pub(super) fn knows(&self, bits: u16) -> bool {
        self.known & bits == bits
    }

    /// The callsign without the spaces at its end; empty while it is not known.
    pub(super) fn callsign(&self) -> &str {
        if !self.knows(KNOWN_CALLSIGN) {
            return "";
        }
        std::str::from_utf8(&self.callsign)
            .unwrap_or_default()
            .trim_end()
    }
}

/// A sample of `Alert`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct AlertSample<'a> {
    pub(super) icao: u32,
    pub(super) feed: u16,
    pub(super) kind: AlertKind,
    pub(super) raised_at_ns: i64,
    pub(super) number: u32,
    pub(super) text: &'a str,
}

impl<'a> AlertSample<'a> {
    /// Builds the sample in the ring and publishes it.
    pub(super) fn publish<S: Slot>(
        &self,
        mut sample: AlertBuilder<S>,
    ) -> Result<S::Receipt, S::Error> {
        sample
            .set_icao(self.icao)
            .set_feed(self.feed)
            .set_kind(self.kind)
            .set_raised_at_ns(self.raised_at_ns)
            .set_number(self.number);
        sample.text(self.text)?.publish()
    }

    pub(super) fn read(sample: &AlertView<'a>) -> Self {
        Self {
            icao: sample.icao(),
            feed: sample.feed(),
            kind: sample.kind(),
            raised_at_ns: sample.raised_at_ns(),
            number: sample.number(),
            text: sample.text(),
        }
    }

    pub(super) fn fold_into(&self, digest: &mut Digest) {
        digest.fold(&self.icao.to_le_bytes());
        digest.fold(&self.feed.to_le_bytes());
        digest.fold(&i32::from(self.kind).to_le_bytes());
        digest.fold(&self.raised_at_ns.to_le_bytes());
        digest.fold(&self.number.to_le_bytes());
        digest.fold(self.text.as_bytes());
    }
}
