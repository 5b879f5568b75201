//! In place means in place.

use std::sync::mpsc;

use spindle_dds::idl::{Representation, Slot, TopicType};
use spindle_dds::{DataReader, DataReaderListener, Loan, StatusMask, testing};

use crate::flight::State;
use crate::meeting::{Meeting, enable, keep_all_reader, state, take_some, writer};

struct Addresses(mpsc::Sender<usize>);

impl DataReaderListener<State> for Addresses {
    fn on_data_available(&mut self, reader: &DataReader<State>) {
        while let Ok(samples) = reader.take(16) {
            for sample in &samples {
                sample.view().expect("it makes sense");
                let bytes = sample.bytes().expect("data");
                self.0
                    .send(bytes.as_ptr().addr())
                    .expect("the test listens");
            }
        }
    }
}

#[test]
fn the_sample_is_read_where_it_was_built() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let writer = writer(&participants[0], "State");
    let mut qos = keep_all_reader();
    qos.property.set("spindle.reader.storage", "ring");
    let (sender, addresses) = mpsc::channel();
    let topic = participants[1]
        .topic::<State>("State")
        .create()
        .expect("a topic");
    let subscriber = participants[1].subscriber().create().expect("a subscriber");
    let _reader = subscriber
        .reader(&topic)
        .qos(qos)
        .listener(StatusMask::DATA_AVAILABLE, Addresses(sender))
        .create()
        .expect("a reader");
    enable(&participants);
    // Ranks are given by order of arrival: find the writer's row on each side.
    let rows = participants
        .each_ref()
        .map(|participant| testing::rows(participant).expect("up"));
    let within = |(base, len): (usize, usize), address: usize| {
        (base..base + len)
            .contains(&address)
            .then(|| address - base)
    };
    // From now on the group takes messages: what was built before was not built in the ring.
    writer.write(&state(1, 0)).expect("sent");
    addresses.recv().expect("the listener sees it");
    for number in 0..100 {
        let sample = state(1, number);
        let size = sample.size(Representation::Xcdr1);
        // What a generated builder writes to.
        let mut loan: Loan<State> = testing::loan(&writer, 64).expect("room");
        let built = loan.bytes().as_ptr().addr();
        sample
            .encode(Representation::Xcdr1, loan.bytes())
            .expect("it fits");
        loan.finish(size, sample.key_hash()).expect("sent");
        let read = addresses.recv().expect("the listener sees it");
        let places: Vec<_> = (0..2)
            .filter_map(|rank| Some((within(rows[0][rank], built)?, within(rows[1][rank], read)?)))
            .collect();
        assert_eq!(places.len(), 1, "both lie in one member's row");
        assert_eq!(places[0].0, places[0].1, "at the same place of it");
    }
}

#[test]
fn copies_lie_elsewhere() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let writer = writer(&participant, "State");
    let reader = crate::meeting::reader(&participant, "State");
    enable(std::slice::from_ref(&participant));
    writer.write(&state(1, 1)).expect("sent");
    let samples = take_some(&reader, 1);
    let address = samples
        .get(0)
        .expect("one")
        .bytes()
        .expect("data")
        .as_ptr()
        .addr();
    let rows = testing::rows(&participant).expect("up");
    assert!(
        rows.iter()
            .all(|(base, len)| !(*base..base + len).contains(&address))
    );
}
