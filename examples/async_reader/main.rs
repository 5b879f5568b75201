//! Async: two participants in one thread of tokio wait for statuses, write, read, wait for
//! acknowledgments, and close, beside a timer. Nothing here blocks, and no thread is made for it. Any
//! other executor works as well.
#![forbid(unsafe_code)]

use chat::Message;
use spindle_dds::qos::{DataReaderQos, DataWriterQos, History, Reliability};
use spindle_dds::{DataReader, DataWriter, DomainParticipant, Duration, Error, StatusMask};
use tokio::time::interval;
use tokio_stream::StreamExt;

spindle_dds::include_idl!("chat");

const MESSAGES: u32 = 5;
const PATIENCE: Duration = Duration::from_secs(10);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let talker = DomainParticipant::builder(0).disabled().create()?;
    let mut qos = DataWriterQos::default();
    (qos.reliability, qos.history) = (Reliability::reliable(PATIENCE), History::keep_all());
    let topic = talker.topic::<Message>("Chat").create()?;
    let publisher = talker.publisher().create()?;
    let writer = publisher.writer(&topic).qos(qos).create()?;

    let listener = DomainParticipant::builder(0).disabled().create()?;
    let mut qos = DataReaderQos::default();
    (qos.reliability, qos.history) = (Reliability::reliable(PATIENCE), History::keep_all());
    let topic = listener.topic::<Message>("Chat").create()?;
    let subscriber = listener.subscriber().create()?;
    let reader = subscriber.reader(&topic).qos(qos).create()?;

    let (first, second) = tokio::join!(talker.enable_async(), listener.enable_async());
    first.and(second)?;
    let (talked, listened) = tokio::join!(talk(&writer), listen(&reader));
    talked.and(listened)?;
    talker.close_async().await?;
    listener.close_async().await
}

async fn talk(writer: &DataWriter<Message>) -> Result<(), Error> {
    let mut matches = writer.status_stream(StatusMask::PUBLICATION_MATCHED)?;
    while writer.publication_matched_status()?.current_count == 0 {
        matches.next().await;
    }
    println!("matched");
    let mut ticks = interval(std::time::Duration::from_millis(10));
    for number in 1..=MESSAGES {
        ticks.tick().await;
        let text = format!("hello, {number}");
        // Pending while there is no room, as a reader is slow.
        writer.write_async(&Message { number, text }).await?;
    }
    writer.wait_for_acknowledgments_async(PATIENCE).await?;
    println!("acknowledged");
    Ok(())
}

async fn listen(reader: &DataReader<Message>) -> Result<(), Error> {
    let mut batches = reader.stream(16);
    let mut received = 0;
    while let Some(batch) = batches.next().await {
        for sample in batch?.iter().filter(|sample| sample.info().valid_data) {
            let message = sample.view()?;
            println!("message {}: {}", message.number(), message.text());
            received += 1;
        }
        if received == MESSAGES {
            break;
        }
    }
    Ok(())
}
