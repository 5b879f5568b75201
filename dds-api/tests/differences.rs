//! What is logged of types that do not go together. Its own binary: warnings come from
//! threads of the participants.

mod warnings;

use std::time::{Duration, Instant};

use spindle_dds::DomainParticipant;
use spindle_dds::qos::DataReaderQos;
use warnings::Warnings;

use spindle_dds_test_types::{newer, older};

#[test]
fn both_sides_are_warned_with_the_member_that_differs() {
    let warnings = Warnings::default();
    tracing::subscriber::set_global_default(warnings.clone()).expect("the first one");
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path().join("domains");
    let participants = [0; 2].map(|_| {
        DomainParticipant::builder(0)
            .property("spindle.directory", directory.to_str().expect("UTF-8"))
            .create()
            .expect("a participant")
    });
    let topic = participants[0].topic::<newer::Text>("Topic").create();
    let publisher = participants[0].publisher().create().expect("a publisher");
    let writer = publisher.writer(&topic.expect("a topic")).create();
    let topic = participants[1].topic::<older::Text>("Topic").create();
    let mut qos = DataReaderQos::default();
    qos.type_consistency.ignore_string_bounds = false;
    let subscriber = participants[1].subscriber().create().expect("a subscriber");
    let reader = subscriber
        .reader(&topic.expect("a topic"))
        .qos(qos)
        .create();
    let end = Instant::now() + Duration::from_secs(60);
    let said = loop {
        let said = warnings.0.lock().expect("no panic").clone();
        if said.len() == 2 {
            break said;
        }
        assert!(said.len() < 2 && Instant::now() < end, "{said:?}");
        std::thread::sleep(Duration::from_millis(1));
    };
    for text in &said {
        let why = "Text.text: string bound 4 is less than 8";
        assert!(
            text.contains("writer and reader do not match") && text.contains(why),
            "{text}"
        );
    }
    drop((writer, reader));
}
