//! Prints what `hello_pub` says, until it has left.
#![forbid(unsafe_code)]

use spindle_dds::{DomainParticipant, Duration, WaitSet};

spindle_dds::include_idl!("hello");

fn main() -> Result<(), spindle_dds::Error> {
    let participant = DomainParticipant::builder(0)
        .qos_profiles(concat!(env!("CARGO_MANIFEST_DIR"), "/qos/hello.xml"))?
        .profile("Hello::Reliable")
        .disabled()
        .create()?;
    let topic = participant.topic::<hello::Greeting>("Greeting").create()?;
    let reader = participant.subscriber().create()?.reader(&topic).create()?;
    let waits = WaitSet::new();
    waits.attach(&reader.status_condition());
    participant.enable()?;
    while reader.subscription_matched_status()?.current_count > 0 {
        waits.wait(Duration::INFINITE)?;
        for sample in &reader.take(100)? {
            let greeting = sample.view()?;
            println!("{}: {}", greeting.number(), greeting.text());
        }
    }
    participant.close()
}
