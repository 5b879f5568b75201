//! Prints the greetings of `hello_pub` until it has left. The optional argument is a file of QoS
//! profiles, such as `qos/two_hosts.xml`.
#![forbid(unsafe_code)]

use spindle_dds::{DomainParticipant, Duration, WaitSet};

spindle_dds::include_idl!("hello");

fn main() -> Result<(), spindle_dds::Error> {
    let builder = DomainParticipant::builder(0);
    let builder = match std::env::args().nth(1) {
        Some(file) => builder.qos_profiles(file)?,
        None => builder.qos_profiles_str(include_str!("../qos/hello.xml"))?,
    };
    let participant = builder.profile("Hello::Reliable").create()?;
    let topic = participant.topic::<hello::Greeting>("Greeting").create()?;
    let reader = participant.subscriber().create()?.reader(&topic).create()?;
    let waits = WaitSet::new();
    waits.attach(reader.status_condition()?);
    let mut over = false;
    while !over {
        waits.wait(Duration::INFINITE)?;
        let writers = reader.subscription_matched_status()?;
        over = writers.total_count > 0 && writers.current_count == 0;
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
