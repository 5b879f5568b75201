//! Warnings about topics that are pinned and do not exist, and about files of QoS profiles. A
//! binary of its own: `tracing` decides once for the process which subscriber gets a log line.

mod warnings;

use spindle_dds::DomainParticipant;
use tracing::subscriber::with_default;
use warnings::Warnings;

#[test]
fn a_pin_of_a_topic_that_is_not_there_is_warned_of() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path().join("domains");
    let participant = DomainParticipant::builder(0)
        .property("spindle.directory", directory.to_str().expect("UTF-8"))
        .property("spindle.topic.State.subgroup", "1")
        .property("spindle.topic.Sate.subgroup", "2")
        .disabled()
        .create()
        .expect("a participant");
    participant
        .topic::<spindle_dds_test_types::flight::State>("State")
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

#[test]
fn what_has_no_effect_in_a_file_is_warned_of() {
    let text = "<dds><qos_library name='L'>\n\
                <qos_profile name='P' base_name='BuiltinQosLib::Generic.Security'/>\n\
                </qos_library></dds>";
    let warnings = Warnings::default();
    let created = with_default(warnings.clone(), || {
        let builder = DomainParticipant::builder(0).disabled();
        builder.qos_profiles_str(text)?.create()
    });
    created.expect("a participant");
    let warnings = warnings.0.lock().expect("no panic");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("]:2:1: 'BuiltinQosLib::Generic.Security'"),
        "{warnings:?}"
    );
}
