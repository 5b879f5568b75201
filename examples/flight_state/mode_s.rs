//! One frame decoded: whose it is and what it says.

use adsb_deku::adsb::{AirborneVelocity, EmergencyState, ME};
use adsb_deku::deku::DekuContainerRead;
use adsb_deku::{Altitude, Capability, DF, FlightStatus, ICAO};

/// What one frame says of one aircraft.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// The aircraft's address.
    pub(crate) icao: u32,
    /// Whether the address is covered by a checksum of its own. Otherwise it is
    /// what is left over of the checksum, and right only if it is known already.
    pub(crate) certain: bool,
    pub(crate) callsign: Option<[u8; CALLSIGN_CHARS]>,
    pub(crate) altitude_ft: Option<i32>,
    /// A position, half of it: two of different parity make a whole one.
    pub(crate) position: Option<Altitude>,
    /// Ground speed in knots, track in degrees, vertical rate in feet a minute.
    pub(crate) velocity: Option<(f32, f32, i32)>,
    /// Four octal digits, one in each half octet.
    pub(crate) squawk: Option<u16>,
    pub(crate) on_ground: Option<bool>,
    pub(crate) emergency: bool,
}

/// Decodes a message of 7 or 14 bytes; nothing if it is damaged or of a kind that
/// says nothing of an aircraft.
pub(crate) fn decode(message: &[u8]) -> Option<Report> {
    // The kind says how long a message has to be: the decoder relies on it.
    let long = message.first()? & 0x80 != 0;
    if message.len() != if long { 14 } else { 7 } {
        return None;
    }
    let (_, frame) = adsb_deku::Frame::from_bytes((message, 0)).ok()?;
    let mut report = Report {
        icao: frame.crc,
        ..Report::default()
    };
    match frame.df {
        DF::ADSB(adsb) => {
            report.certain(adsb.icao, frame.crc)?;
            report.on_ground = grounded(adsb.capability);
            report.extended(&adsb.me, &message[4..11]);
        }
        DF::TisB { cf, .. } => {
            report.certain(cf.aa, frame.crc)?;
            report.extended(&cf.me, &message[4..11]);
        }
        DF::AllCallReply {
            capability, icao, ..
        } => {
            // The lowest seven bits may carry the interrogator that was answered.
            report.certain(icao, frame.crc & !0x7f)?;
            report.on_ground = grounded(capability);
        }
        DF::ShortAirAirSurveillance { altitude, .. } | DF::LongAirAir { altitude, .. } => {
            report.altitude(altitude.0);
        }
        DF::SurveillanceAltitudeReply { fs, ac, .. } => {
            report.altitude(ac.0);
            report.on_ground = status(fs);
        }
        DF::SurveillanceIdentityReply { fs, id, .. } => {
            report.squawk = Some(id.0);
            report.on_ground = status(fs);
        }
        DF::CommBAltitudeReply {
            flight_status, alt, ..
        } => {
            report.altitude(alt.0);
            report.on_ground = status(flight_status);
            report.comm_b(&message[4..11]);
        }
        DF::CommBIdentityReply { fs, id, .. } => {
            report.squawk = u16::try_from(id).ok();
            report.on_ground = status(fs);
            report.comm_b(&message[4..11]);
        }
        _ => return None,
    }
    Some(report)
}

impl Report {
    fn certain(&mut self, icao: ICAO, remainder: u32) -> Option<()> {
        let [a, b, c] = icao.0;
        self.icao = u32::from_be_bytes([0, a, b, c]);
        self.certain = true;
        (remainder == 0).then_some(())
    }

    fn altitude(&mut self, altitude_ft: u16) {
        // Zero stands for an altitude that was not given, or not understood.
        self.altitude_ft = (altitude_ft != 0).then_some(i32::from(altitude_ft));
    }

    /// What an extended squitter carries; `bytes` are the same seven, undecoded.
    fn extended(&mut self, me: &ME, bytes: &[u8]) {
        match me {
            ME::AircraftIdentification(_) => self.callsign = callsign(&bytes[1..]),
            ME::SurfacePosition(_) => self.on_ground = Some(true),
            ME::AirbornePositionBaroAltitude(position)
            | ME::AirbornePositionGNSSAltitude(position) => {
                self.on_ground = Some(false);
                self.altitude_ft = position.alt.map(i32::from);
                self.position = Some(*position);
            }
            ME::AirborneVelocity(velocity) => self.velocity = speed(velocity),
            ME::AircraftStatus(status) => {
                self.squawk = u16::try_from(status.squawk)
                    .ok()
                    .filter(|squawk| *squawk != 0);
                self.emergency = status.emergency_state != EmergencyState::None;
            }
            _ => {}
        }
    }

    /// Register 2,0 in a Comm-B reply is the callsign; replies do not say which
    /// register they are, but this one names itself in its first byte.
    fn comm_b(&mut self, bytes: &[u8]) {
        if bytes[0] == 0x20 {
            self.callsign = callsign(&bytes[1..]);
        }
    }
}

/// Eight characters of six bits each. (The decoder's own reading stops after seven.)
fn callsign(bytes: &[u8]) -> Option<[u8; CALLSIGN_CHARS]> {
    let bits = bytes
        .iter()
        .fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    let mut callsign = [b' '; CALLSIGN_CHARS];
    for (index, character) in callsign.iter_mut().enumerate() {
        let code = (bits >> (42 - 6 * index)) as u8 & 0x3f;
        *character = match code {
            1..=26 => b'A' + code - 1,
            48..=57 => code,
            32 => b' ',
            _ => return None,
        };
    }
    (callsign != [b' '; CALLSIGN_CHARS]).then_some(callsign)
}

fn speed(velocity: &AirborneVelocity) -> Option<(f32, f32, i32)> {
    let (track_deg, ground_speed_kt, vertical_rate_fpm) = velocity.calculate()?;
    Some((
        ground_speed_kt as f32,
        track_deg,
        i32::from(vertical_rate_fpm),
    ))
}

fn grounded(capability: Capability) -> Option<bool> {
    match capability {
        Capability::AG_GROUND => Some(true),
        Capability::AG_AIRBORNE => Some(false),
        _ => None,
    }
}

fn status(status: FlightStatus) -> Option<bool> {
    match status {
        FlightStatus::NoAlertNoSPIOnGround | FlightStatus::AlertNoSPIOnGround => Some(true),
        FlightStatus::NoAlertNoSPIAirborne | FlightStatus::AlertNoSPIAirborne => Some(false),
        _ => None,
    }
}

pub(crate) const CALLSIGN_CHARS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn check(hex: &str) -> Option<Report> {
        let bytes: Vec<u8> = (0..hex.len() / 2)
            .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("hexadecimal"))
            .collect();
        decode(&bytes)
    }

    // Messages and values of Junzi Sun, "The 1090 Megahertz Riddle", 2nd edition.

    #[test]
    fn identification() {
        let report = check("8D4840D6202CC371C32CE0576098").expect("valid");
        assert_eq!(report.icao, 0x4840d6);
        assert_eq!(
            report.callsign.as_ref().map(|c| &c[..]),
            Some(&b"KLM1023 "[..])
        );
    }

    #[test]
    fn velocity() {
        let report = check("8D485020994409940838175B284F").expect("valid");
        let (speed, track, rate) = report.velocity.expect("velocity");
        assert!((speed - 159.20).abs() < 0.01 && (track - 182.88).abs() < 0.01);
        assert_eq!(rate, -832);
    }

    #[test]
    fn altitude_of_a_position() {
        let report = check("8D40621D58C382D690C8AC2863A7").expect("valid");
        assert_eq!(report.altitude_ft, Some(38_000));
        assert!(report.position.is_some());
    }

    #[test]
    fn callsign_of_a_comm_b_reply() {
        let report = check("A000083E202CC371C31DE0AA1CCF").expect("valid");
        assert!(!report.certain);
        assert_eq!(
            report.callsign.as_ref().map(|c| &c[..]),
            Some(&b"KLM1017 "[..])
        );
    }

    #[test]
    fn damaged() {
        assert!(check("8D4840D6202CC371C32CE0576099").is_none());
        assert!(check("8D4840D6202CC3").is_none());
        assert!(check("").is_none());
    }
}
