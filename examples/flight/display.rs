//! A display: takes every sample and digests what it took.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use serde_json::json;
use spindle_dds::WaitSet;

use crate::{FEEDS, Result, create_participant, flight::Aircraft};

pub(crate) fn run() -> Result<()> {
    let participant = create_participant()?;
    let topic = participant.topic::<Aircraft>("Aircraft").create()?;
    let reader = participant.subscriber().create()?.reader(&topic).create()?;
    let waits = WaitSet::new();
    waits.attach(reader.status_condition()?);

    let (mut delivered, mut switches, mut last_feed) = (0, 0, None);
    let mut digest = DefaultHasher::new();
    let mut have_feeds_left = false;
    while !have_feeds_left {
        waits.wait(Duration::from_secs(60))?;
        // The status first, then the samples: a feed leaves after its last sample.
        let feeds = reader.subscription_matched_status()?;
        have_feeds_left = feeds.total_count >= FEEDS as i32 && feeds.current_count == 0;
        let samples = match reader.take(usize::MAX) {
            Ok(samples) => samples,
            Err(error) if error.is_no_data() => continue,
            Err(error) => return Err(error.into()),
        };
        for sample in samples.iter().filter(|sample| sample.info().valid_data) {
            let aircraft = sample.view()?;
            (aircraft.icao(), aircraft.feed(), aircraft.received_at_ns()).hash(&mut digest);
            (aircraft.altitude_ft(), aircraft.callsign()).hash(&mut digest);
            delivered += 1;
            switches += u64::from(last_feed.is_some_and(|last| last != aircraft.feed()));
            last_feed = Some(aircraft.feed());
        }
    }
    participant.close()?;
    let digest = format!("{:016x}", digest.finish());
    let shown = json!({ "delivered": delivered, "digest": digest, "switches": switches });
    println!("{shown}");
    Ok(())
}
