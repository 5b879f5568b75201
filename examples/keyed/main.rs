//! Keyed instances: the samples of a topic belong to instances, one for each value of the key.
//!
//! A reader keeps a history and a state for each instance. A writer `dispose`s an instance that
//! has ceased to exist, and unregisters one that it writes no more.
#![forbid(unsafe_code)]

use std::time::Duration;

use keyed::Track;
use spindle_dds::qos::{DataReaderQos, DataWriterQos, History, Reliability, WriterDataLifecycle};
use spindle_dds::{
    DomainParticipant, Error, InstanceHandle, InstanceStateMask, StateMasks, WaitSet,
};

spindle_dds::include_idl!("keyed");

fn main() -> Result<(), Error> {
    let participant = DomainParticipant::builder(0).create()?;
    let topic = participant.topic::<Track>("Track").create()?;
    let (publisher, subscriber) = (
        participant.publisher().create()?,
        participant.subscriber().create()?,
    );
    let reader_qos = DataReaderQos {
        reliability: Reliability::reliable(Duration::ZERO.into()),
        // Of each instance the last two samples, however many instances there are.
        history: History::keep_last(2),
        ..DataReaderQos::default()
    };
    let reader = subscriber.reader(&topic).qos(reader_qos).create()?;
    let writer_qos = DataWriterQos {
        history: History::keep_all(),
        // By default an instance that is unregistered is disposed too.
        writer_data_lifecycle: WriterDataLifecycle {
            autodispose_unregistered_instances: false,
        },
        ..DataWriterQos::default()
    };
    let writer = publisher.writer(&topic).qos(writer_qos).create()?;

    let track = |number, altitude_ft| Track {
        number,
        altitude_ft,
    };
    for altitude_ft in [1_000, 2_000, 3_000] {
        writer.write(&track(1, altitude_ft))?;
        writer.write(&track(2, altitude_ft + 20_000))?;
        writer.write(&track(3, altitude_ft + 40_000))?;
    }
    // Of these samples only the key counts. Track 1 has landed, track 2 is out of range.
    writer.dispose(&track(1, 0))?;
    writer.unregister_instance(&track(2, 0))?;
    // The reader gets samples in the order of writing: when track 2 has no writer, it has all.
    let waits = WaitSet::new();
    waits.attach(reader.read_condition(StateMasks {
        instance: InstanceStateMask::NOT_ALIVE_NO_WRITERS,
        ..StateMasks::ANY
    })?);
    waits.wait(Duration::from_secs(10))?;

    let mut previous = InstanceHandle::NIL;
    loop {
        let samples = match reader.take_next_instance(10, previous, StateMasks::ANY) {
            Ok(samples) => samples,
            Err(error) if error.is_no_data() => return participant.close(),
            Err(error) => return Err(error),
        };
        for sample in &samples {
            let info = sample.info();
            match info.valid_data {
                true => {
                    let view = sample.view()?;
                    println!("track {}: {} ft", view.number(), view.altitude_ft());
                }
                false => println!("track {}: {:?}", sample.key()?.number, info.instance_state),
            }
            previous = info.instance_handle;
        }
    }
}
