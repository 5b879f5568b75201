//! Publishes ten greetings to `hello_sub`; either may be started first. The optional argument is a
//! file of QoS profiles, such as `qos/two_hosts.xml`.
#![forbid(unsafe_code)]

use spindle_dds::{DomainParticipant, Duration, StatusMask, WaitSet};

spindle_dds::include_idl!("hello");

fn main() -> Result<(), spindle_dds::Error> {
    let builder = DomainParticipant::builder(0);
    let builder = match std::env::args().nth(1) {
        Some(file) => builder.qos_profiles(file)?,
        None => builder.qos_profiles_str(include_str!("../qos/hello.xml"))?,
    };
    let participant = builder.profile("Hello::Reliable").create()?;
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
