//! Decodes one frame: the aircraft, and what it reports.

use adsb_deku::adsb::{AirborneVelocity, EmergencyState, ME};
use adsb_deku::deku::DekuContainerRead;
use adsb_deku::{Altitude, Capability, DF, FlightStatus, ICAO};

/// What one frame reports of one aircraft.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// The 24-bit address.
    pub(super) icao: u32,
    /// Whether the frame holds the address and a checksum. In other frames the address is
    /// combined with the checksum, and only an address that is known already can be trusted.
    pub(super) is_address_certain: bool,
    pub(super) callsign: Option<[u8; CALLSIGN_CHARS]>,
    pub(super) altitude_ft: Option<i32>,
    /// One half of a position: an even and an odd half give the whole.
    pub(super) position: Option<Altitude>,
    /// Ground speed in knots, track in degrees, vertical rate in feet per minute.
    pub(super) velocity: Option<(f32, f32, i32)>,
    /// Four octal digits, one in each half octet.
    pub(super) squawk: Option<u16>,
    pub(super) on_ground: Option<bool>,
    pub(super) emergency: bool,
}

/// Decodes a message of 7 or 14 bytes. `None` if it is damaged, or of a kind that reports
/// nothing of an aircraft.
pub(super) fn decode(message: &[u8]) -> Option<Report> {
    // The first bit says how long a message is, and the decoder relies on it.
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
            report.set_certain_address(adsb.icao, frame.crc)?;
            report.on_ground = is_on_ground(adsb.capability);
            report.add_squitter(&adsb.me, &message[4..11]);
        }
        DF::TisB { cf, .. } => {
            report.set_certain_address(cf.aa, frame.crc)?;
            report.add_squitter(&cf.me, &message[4..11]);
        }
        DF::AllCallReply {
            capability, icao, ..
        } => {
            // The lowest seven bits may identify the interrogator that was answered.
            report.set_certain_address(icao, frame.crc & !0x7f)?;
            report.on_ground = is_on_ground(capability);
        }
        DF::ShortAirAirSurveillance { altitude, .. } | DF::LongAirAir { altitude, .. } => {
            report.set_altitude(altitude.0);
        }
        DF::SurveillanceAltitudeReply { fs, ac, .. } => {
            report.set_altitude(ac.0);
            report.on_ground = is_on_ground_by_status(fs);
        }
        DF::SurveillanceIdentityReply { fs, id, .. } => {
            report.squawk = Some(id.0);
            report.on_ground = is_on_ground_by_status(fs);
        }
        DF::CommBAltitudeReply {
            flight_status, alt, ..
        } => {
            report.set_altitude(alt.0);
            report.on_ground = is_on_ground_by_status(flight_status);
            report.add_comm_b(&message[4..11]);
        }
        DF::CommBIdentityReply { fs, id, .. } => {
            report.squawk = u16::try_from(id).ok();
            report.on_ground = is_on_ground_by_status(fs);
            report.add_comm_b(&message[4..11]);
        }
        _ => return None,
    }
    Some(report)
}

impl Report {
    fn set_certain_address(&mut self, icao: ICAO, remainder: u32) -> Option<()> {
        let [a, b, c] = icao.0;
        self.icao = u32::from_be_bytes([0, a, b, c]);
        self.is_address_certain = true;
        (remainder == 0).then_some(())
    }

    fn set_altitude(&mut self, altitude_ft: u16) {
        // Zero stands for an altitude that is absent or could not be decoded.
        self.altitude_ft = (altitude_ft != 0).then_some(i32::from(altitude_ft));
    }

    /// The content of an extended squitter; `bytes` are the seven bytes that it was decoded from.
    fn add_squitter(&mut self, me: &ME, bytes: &[u8]) {
        match me {
            ME::AircraftIdentification(_) => self.callsign = callsign(&bytes[1..]),
            ME::SurfacePosition(_) => self.on_ground = Some(true),
            ME::AirbornePositionBaroAltitude(position)
            | ME::AirbornePositionGNSSAltitude(position) => {
                self.on_ground = Some(false);
                self.altitude_ft = position.alt.map(i32::from);
                self.position = Some(*position);
            }
            ME::AirborneVelocity(velocity) => self.velocity = velocity_of(velocity),
            ME::AircraftStatus(status) => {
                self.squawk = u16::try_from(status.squawk)
                    .ok()
                    .filter(|squawk| *squawk != 0);
                self.emergency = status.emergency_state != EmergencyState::None;
            }
            _ => {}
        }
    }

    /// A Comm-B reply holds a register without its number; the register of the callsign (2,0) is
    /// recognized by its first byte.
    fn add_comm_b(&mut self, bytes: &[u8]) {
        if bytes[0] == 0x20 {
            self.callsign = callsign(&bytes[1..]);
        }
    }
}

/// Eight characters of six bits each. (The library decodes only seven of them.)
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

fn velocity_of(velocity: &AirborneVelocity) -> Option<(f32, f32, i32)> {
    let (track_deg, ground_speed_kt, vertical_rate_fpm) = velocity.calculate()?;
    Some((
        ground_speed_kt as f32,
        track_deg,
        i32::from(vertical_rate_fpm),
    ))
}

fn is_on_ground(capability: Capability) -> Option<bool> {
    match capability {
        Capability::AG_GROUND => Some(true),
        Capability::AG_AIRBORNE => Some(false),
        _ => None,
    }
}

fn is_on_ground_by_status(status: FlightStatus) -> Option<bool> {
    match status {
        FlightStatus::NoAlertNoSPIOnGround | FlightStatus::AlertNoSPIOnGround => Some(true),
        FlightStatus::NoAlertNoSPIAirborne | FlightStatus::AlertNoSPIAirborne => Some(false),
        _ => None,
    }
}

pub(super) const CALLSIGN_CHARS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn check(hex: &str) -> Option<Report> {
        let bytes: Vec<u8> = (0..hex.len() / 2)
            .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("hexadecimal"))
            .collect();
        decode(&bytes)
    }

    // Messages and values from Junzi Sun, "The 1090 Megahertz Riddle", 2nd edition.

    #[test]
    fn an_identification_holds_the_callsign() {
        let report = check("8D4840D6202CC371C32CE0576098").expect("valid");
        assert_eq!(report.icao, 0x4840d6);
        assert_eq!(
            report.callsign.as_ref().map(|c| &c[..]),
            Some(&b"KLM1023 "[..])
        );
    }

    #[test]
    fn a_velocity_is_decoded() {
        let report = check("8D485020994409940838175B284F").expect("valid");
        let (speed, track, rate) = report.velocity.expect("velocity");
        assert!((speed - 159.20).abs() < 0.01 && (track - 182.88).abs() < 0.01);
        assert_eq!(rate, -832);
    }

    #[test]
    fn a_position_holds_the_altitude() {
        let report = check("8D40621D58C382D690C8AC2863A7").expect("valid");
        assert_eq!(report.altitude_ft, Some(38_000));
        assert!(report.position.is_some());
    }

    #[test]
    fn a_comm_b_reply_may_hold_the_callsign() {
        let report = check("A000083E202CC371C31DE0AA1CCF").expect("valid");
        assert!(!report.is_address_certain);
        assert_eq!(
            report.callsign.as_ref().map(|c| &c[..]),
            Some(&b"KLM1017 "[..])
        );
    }

    #[test]
    fn damaged_messages_are_refused() {
        assert!(check("8D4840D6202CC371C32CE0576099").is_none());
        assert!(check("8D4840D6202CC3").is_none());
        assert!(check("").is_none());
    }
}
