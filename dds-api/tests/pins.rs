//! What is logged of topics that are pinned and not there. Its own binary: who is told
//! of a log line is decided once for the process.

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex};

use spindle_dds::DomainParticipant;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{Subscriber, with_default};
use tracing::{Event, Level, Metadata};

/// Made of `tests/idl/flight.idl`.
mod types {
    include!("idl/flight.rs");
}

/// Keeps the warnings.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = write!(self.0, "{field}={value:?} ");
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().expect("no panic").push(text.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn a_pin_of_a_topic_that_is_not_there_is_warned_of() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path().join("domains");
    let participant = DomainParticipant::builder(0)
        .property("spindle.directory", directory.to_str().expect("UTF-8"))
        .property("spindle.group.size", "1")
        .property("spindle.topic.State.subgroup", "1")
        .property("spindle.topic.Sate.subgroup", "2")
        .disabled()
        .create()
        .expect("a participant");
    participant
        .topic::<types::flight::State>("State")
        .create()
        .expect("a topic");
    let warnings = Warnings::default();
    with_default(warnings.clone(), || participant.enable()).expect("it forms");
    let warnings = warnings.0.lock().expect("no panic");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("spindle.topic.Sate.subgroup"),
        "{warnings:?}"
    );
}
