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
    waits.attach(reader.status_condition()?);
    participant.enable()?;
    let mut writers = 1;
    while writers > 0 {
        waits.wait(Duration::INFINITE)?;
        writers = reader.subscription_matched_status()?.current_count;
        match reader.take(100) {
            Ok(samples) => {
                for sample in samples.iter().filter(|sample| sample.info().valid_data) {
                    println!("{}", sample.view()?.text());
                }
            }
            Err(error) if error.is_no_data() => {}
            Err(error) => return Err(error),
        }
    }
    participant.close()
}
