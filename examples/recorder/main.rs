//! Persistent samples: they are on disk when they are acknowledged, and survive `kill -9` of all.
//!
//! `recorder write DIR` writes the lines of its standard input. `recorder show [DIR]` prints all that was
//! ever written: from the log in `DIR` after every process has ended, and without `DIR` from a
//! `recorder write` that runs.
#![forbid(unsafe_code)]

use std::env;
use std::io::{BufRead, stdin};

use recorder::Entry;
use spindle_dds::{DomainParticipant, Duration, Error, Topic};

spindle_dds::include_idl!("recorder");

const PATIENCE: Duration = Duration::from_secs(30);

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let builder = DomainParticipant::builder(0)
        .qos_profiles_str(include_str!("../qos/recorder.xml"))?
        .profile("Recorder::Persistent");
    let builder = match arguments.as_slice() {
        // A participant with a directory keeps a log of each PERSISTENT topic that it writes or reads.
        [_, directory] => builder.property("spindle.log.directory", directory),
        _ => builder,
    };
    let participant = builder.create()?;
    let topic = participant.topic::<Entry>("Record").create()?;
    match arguments.as_slice() {
        ["write", _] => write(&participant, &topic)?,
        ["show"] | ["show", _] => show(&participant, &topic)?,
        _ => eprintln!("usage: recorder write DIR, or recorder show [DIR]"),
    }
    participant.close()
}

fn write(participant: &DomainParticipant, topic: &Topic<Entry>) -> Result<(), Error> {
    let writer = participant.publisher().create()?.writer(topic).create()?;
    let process = std::process::id();
    for text in stdin().lock().lines().map_while(Result::ok) {
        println!("{text}");
        writer.write(&Entry { process, text })?;
        writer.wait_for_acknowledgments(PATIENCE)?;
        println!("  is on disk");
    }
    Ok(())
}

fn show(participant: &DomainParticipant, topic: &Topic<Entry>) -> Result<(), Error> {
    let reader = participant.subscriber().create()?.reader(topic).create()?;
    reader.wait_for_historical_data(PATIENCE)?;
    loop {
        match reader.take(100) {
            Ok(samples) => {
                for sample in samples.iter().filter(|sample| sample.info().valid_data) {
                    let entry = sample.view()?;
                    println!("process {}: {}", entry.process(), entry.text());
                }
            }
            Err(error) if error.is_no_data() => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}
