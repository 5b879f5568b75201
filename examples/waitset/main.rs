//! A WaitSet and its conditions: one thread waits for samples, for changes of the matched writers,
//! and for a request to stop, all at once.
#![forbid(unsafe_code)]

use std::time::Duration;

use spindle_dds::qos::{DataReaderQos, History, Reliability};
use spindle_dds::{
    Condition, DomainParticipant, Error, GuardCondition, StateMasks, StatusMask, WaitSet,
};
use waitset::Reading;

spindle_dds::include_idl!("waitset");

fn main() -> Result<(), Error> {
    let participant = DomainParticipant::builder(0).create()?;
    let topic = participant.topic::<Reading>("Reading").create()?;
    let qos = DataReaderQos {
        reliability: Reliability::reliable(Duration::ZERO.into()),
        history: History::keep_all(),
        ..DataReaderQos::default()
    };
    let subscriber = participant.subscriber().create()?;
    let reader = subscriber.reader(&topic).qos(qos).create()?;

    // Triggered by samples that were not read yet, ...
    let unread = reader.read_condition(StateMasks::NOT_READ)?;
    // ... by a status that has changed, until the status is read, ...
    let matched = reader.status_condition()?;
    matched.set_enabled_statuses(StatusMask::SUBSCRIPTION_MATCHED);
    // ... and by the application, from any thread.
    let stop = GuardCondition::new();
    let waits = WaitSet::new();
    waits.attach(&unread);
    waits.attach(&matched);
    waits.attach(&stop);

    let sensor = std::thread::spawn({
        let stop = stop.clone();
        move || sense().map(|()| stop.set_trigger_value(true))
    });
    loop {
        let triggered = waits.wait(Duration::from_secs(10))?;
        if triggered.contains(&Condition::from(&matched)) {
            let writers = reader.subscription_matched_status()?.current_count;
            println!("matched with {writers} writers");
        }
        if triggered.contains(&Condition::from(&unread)) {
            let samples = reader.take(usize::MAX)?;
            // Others only tell of a change of their instance's state.
            for sample in samples.iter().filter(|sample| sample.info().valid_data) {
                let reading = sample.view()?;
                println!("reading {}: {}", reading.number(), reading.degrees());
            }
        }
        if triggered.contains(&Condition::from(&stop)) {
            println!("asked to stop");
            break;
        }
    }
    sensor.join().expect("the sensor does not panic")?;
    participant.close()
}

/// A participant of its own, that sends three readings and leaves.
fn sense() -> Result<(), Error> {
    let participant = DomainParticipant::builder(0).create()?;
    let topic = participant.topic::<Reading>("Reading").create()?;
    let writer = participant.publisher().create()?.writer(&topic).create()?;
    let matched = writer.status_condition()?;
    matched.set_enabled_statuses(StatusMask::PUBLICATION_MATCHED);
    let waits = WaitSet::new();
    waits.attach(&matched);
    waits.wait(Duration::from_secs(10))?;
    for number in 1..=3 {
        let degrees = 20.0 + f64::from(number) / 2.0;
        writer.write(&Reading { number, degrees })?;
    }
    participant.close()
}
