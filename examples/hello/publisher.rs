//! Publishes ten greetings to `hello_sub`; either may be started first. The optional argument is a
//! file of QoS profiles, such as `qos/two_hosts.xml`.
#![forbid(unsafe_code)]

use spindle_dds::{DomainParticipant, Duration, StatusMask, WaitSet};

spindle_dds::include_idl!("hello");

fn main() -> Result<(), spindle_dds::Error> {
    let qos = concat!(env!("CARGO_MANIFEST_DIR"), "/qos/hello.xml").to_owned();
    let participant = DomainParticipant::builder(0)
        .qos_profiles(std::env::args().nth(1).unwrap_or(qos))?
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
