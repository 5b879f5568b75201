//! Says hello ten times to `hello_sub`, whichever of the two is started first.
#![forbid(unsafe_code)]

use spindle_dds::{DomainParticipant, Duration, StatusMask, WaitSet};

spindle_dds::include_idl!("hello");

fn main() -> Result<(), spindle_dds::Error> {
    let participant = DomainParticipant::builder(0)
        .qos_profiles(concat!(env!("CARGO_MANIFEST_DIR"), "/qos/hello.xml"))?
        .profile("Hello::Reliable")
        .create()?;
    let topic = participant.topic::<hello::Greeting>("Greeting").create()?;
    let writer = participant.publisher().create()?.writer(&topic).create()?;
    let matched = writer.status_condition()?;
    matched.set_enabled_statuses(StatusMask::PUBLICATION_MATCHED);
    let waits = WaitSet::new();
    waits.attach(&matched);
    waits.wait(Duration::INFINITE)?;
    for number in 1..=10 {
        let mut greeting = writer.loan()?;
        greeting.set_number(number);
        greeting
            .text(&format!("hello, world {number}"))?
            .publish()?;
    }
    participant.close()
}
