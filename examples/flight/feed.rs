//! A feed: decodes its share of the frames and publishes the aircraft.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use adsb_deku::adsb::ME;
use spindle_dds::{StatusMask, WaitSet};

use crate::{DISPLAYS, FEEDS, Result, create_participant, flight::Aircraft, recording};

pub(crate) fn run(index: usize, rate: f64) -> Result<()> {
    let frames = recording::read()?;
    let participant = create_participant()?;
    let topic = participant.topic::<Aircraft>("Aircraft").create()?;
    let writer = participant.publisher().create()?.writer(&topic).create()?;

    // A display that is matched later would miss the first samples.
    let matched = writer.status_condition()?;
    matched.set_enabled_statuses(StatusMask::PUBLICATION_MATCHED);
    let waits = WaitSet::new();
    waits.attach(&matched);
    while writer.publication_matched_status()?.current_count < DISPLAYS as i32 {
        waits.wait(Duration::from_secs(60))?;
    }

    // By address: what is known of each aircraft, altitude and callsign.
    let (mut tracks, mut published) = (HashMap::<u32, (i32, String)>::new(), 0);
    let (started, first_at_ns) = (Instant::now(), frames[0].received_at_ns);
    for frame in frames.iter().skip(index).step_by(FEEDS) {
        let recorded_ns = frame.received_at_ns - first_at_ns;
        let due = Duration::from_secs_f64(recorded_ns.max(0) as f64 / 1e9 / rate);
        std::thread::sleep(due.saturating_sub(started.elapsed()));
        let Some(message) = frame.decode() else {
            continue;
        };
        let [a, b, c] = message.icao.0;
        let icao = u32::from_be_bytes([0, a, b, c]);
        let (altitude_ft, callsign) = tracks.entry(icao).or_default();
        match message.me {
            ME::AircraftIdentification(it) => *callsign = it.cn.trim_end().to_owned(),
            ME::AirbornePositionBaroAltitude(it) => {
                *altitude_ft = it.alt.map_or(*altitude_ft, i32::from);
            }
            _ => {}
        }

        // Built where the displays will read it.
        let mut aircraft = writer.loan()?;
        aircraft
            .set_icao(icao)
            .set_feed(index as u16)
            .set_received_at_ns(frame.received_at_ns)
            .set_altitude_ft(*altitude_ft);
        aircraft.callsign(callsign)?.publish()?;
        published += 1;
    }
    participant.close()?;
    println!("{published}");
    Ok(())
}
