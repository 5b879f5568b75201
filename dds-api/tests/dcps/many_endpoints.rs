//! Endpoints that programs create one after the other join the group together.

use spindle_dds::{DataReader, DataWriter, DomainParticipant};

use crate::flight::State;
use crate::meeting::{Meeting, enable, until};

/// Topics on which each participant creates a writer and a reader.
const TOPICS: usize = 100;

struct Endpoints {
    writers: Vec<DataWriter<State>>,
    readers: Vec<DataReader<State>>,
}

impl Endpoints {
    /// Creates them one after the other, and waits for nothing.
    fn create(participant: &DomainParticipant) -> Self {
        let publisher = participant.publisher().create().expect("a publisher");
        let subscriber = participant.subscriber().create().expect("a subscriber");
        let (mut writers, mut readers) = (Vec::new(), Vec::new());
        for number in 0..TOPICS {
            let topic = participant.topic::<State>(&format!("State {number}"));
            let topic = topic.create().expect("a topic");
            writers.push(publisher.writer(&topic).create().expect("a writer"));
            readers.push(subscriber.reader(&topic).create().expect("a reader"));
        }
        Self { writers, readers }
    }

    fn wait_until_matched(&self, participants: usize) {
        let all = participants as i32;
        for (writer, reader) in self.writers.iter().zip(&self.readers) {
            until("the writer matches all", || {
                let status = writer.publication_matched_status();
                status.expect("a status").current_count == all
            });
            until("the reader matches all", || {
                let status = reader.subscription_matched_status();
                status.expect("a status").current_count == all
            });
        }
    }
}

/// Views that the group needs while this many participants create their endpoints at the same time.
fn views(creators: usize) -> u64 {
    let meeting = Meeting::new();
    let participants: [DomainParticipant; 3] = meeting.participants();
    enable(&participants);
    let view = || participants[0].counters().expect("counters").view;
    let before = view();
    let endpoints: Vec<Endpoints> = std::thread::scope(|scope| {
        let creators = participants[..creators].iter();
        let threads: Vec<_> = creators
            .map(|it| scope.spawn(|| Endpoints::create(it)))
            .collect();
        let ended = threads.into_iter().map(|it| it.join());
        ended.map(|it| it.expect("no panic")).collect()
    });
    endpoints
        .iter()
        .for_each(|it| it.wait_until_matched(creators));
    view() - before
}

#[test]
fn endpoints_that_are_created_one_after_the_other_join_in_few_views() {
    let endpoints = 2 * TOPICS as u64;
    let views = views(1);
    println!("{endpoints} endpoints: {views} views");
    assert!(views < endpoints / 4, "{views} views");
}

/// Then there are as many views as for one of them, and not as many times more.
#[test]
fn endpoints_of_several_participants_join_in_the_same_views() {
    let endpoints = 3 * 2 * TOPICS as u64;
    let views = views(3);
    println!("{endpoints} endpoints: {views} views");
    assert!(views < endpoints / 8, "{views} views");
}
