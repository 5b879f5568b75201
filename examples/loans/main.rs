//! In-ring loans: a sample is built in the ring of its writer, and read there.
//!
//! With `spindle.reader.storage` = `ring` the samples that a reader takes are no copies. They take
//! room in the ring until they are given back, and a RELIABLE writer without room waits.
#![forbid(unsafe_code)]

use std::time::Duration;

use loans::Image;
use spindle_dds::qos::{DataReaderQos, DataWriterQos, History, Reliability};
use spindle_dds::{DataReader, DataWriter, DomainParticipant, Error, Samples, StatusMask, WaitSet};

spindle_dds::include_idl!("loans");

const PIXELS: usize = 40_000;

fn main() -> Result<(), Error> {
    let participant = DomainParticipant::builder(0)
        .property("spindle.ring.messages", "4")
        .property("spindle.reader.storage", "ring")
        .disabled()
        .create()?;
    let topic = participant.topic::<Image>("Image").create()?;
    let publisher = participant.publisher().create()?;
    let subscriber = participant.subscriber().create()?;
    let reliability = Reliability::reliable(Duration::from_secs(1).into());
    let reader_qos = DataReaderQos {
        reliability,
        history: History::keep_all(),
        ..DataReaderQos::default()
    };
    let reader = subscriber.reader(&topic).qos(reader_qos).create()?;
    let writer_qos = DataWriterQos {
        reliability,
        history: History::keep_all(),
        ..DataWriterQos::default()
    };
    let writer = publisher.writer(&topic).qos(writer_qos).create()?;
    // Writer and reader enter the group together: no image is published before they match.
    participant.enable()?;

    publish(&writer, 1)?;
    let first = take(&reader)?;
    let published = (2..).take_while(|number| publish(&writer, *number).is_ok());
    println!(
        "while image 1 is held, there is room for {}",
        published.count()
    );
    println!("image 1 is as it was: {}", first_pixel(&first)?);

    drop(first);
    publish(&writer, 100)?;
    println!("there is room again once it is given back");
    participant.close()
}

/// Builds an image in the ring. Fails with TIMEOUT if there is no room in time.
fn publish(writer: &DataWriter<Image>, number: u32) -> Result<(), Error> {
    let mut image = writer.loan_with(PIXELS + 64)?;
    image.set_number(number);
    let image = image.pixels_with(PIXELS, |pixels| pixels.fill(number as u8))?;
    image.publish()?;
    Ok(())
}

/// The next sample. Dropped, it is given back.
fn take(reader: &DataReader<Image>) -> Result<Samples<Image>, Error> {
    let available = reader.status_condition()?;
    available.set_enabled_statuses(StatusMask::DATA_AVAILABLE);
    let waits = WaitSet::new();
    waits.attach(&available);
    waits.wait(Duration::from_secs(10))?;
    reader.take(1)
}

fn first_pixel(images: &Samples<Image>) -> Result<u8, Error> {
    let image = images.iter().next().expect("there is at least one");
    // A slice of the ring's memory.
    Ok(image.view()?.pixels()[0])
}
