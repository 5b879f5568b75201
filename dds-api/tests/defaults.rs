//! Which QoS an entity has about which nothing is said. Its own binary: the factory of
//! participants is one for the process.

use std::io::Write as _;
use std::sync::Mutex;

use spindle_dds::qos::{
    DataReaderQos, DataWriterQos, DomainParticipantQos, History, Presentation, PublisherQos,
    SubscriberQos, TopicQos,
};
use spindle_dds::{DomainParticipant, DomainParticipantFactory, ParticipantBuilder};

use spindle_dds_test_types::flight::State;

const PROFILE: &str = r#"<dds><qos_library name="L"><qos_profile name="P">
  <domain_participant_qos><property><value>
    <element><name>of</name><value>profile</value></element>
  </value></property></domain_participant_qos>
  <publisher_qos><presentation><ordered_access>true</ordered_access></presentation></publisher_qos>
  <subscriber_qos><presentation><ordered_access>true</ordered_access></presentation></subscriber_qos>
  <topic_qos><history><kind>KEEP_LAST_HISTORY_QOS</kind><depth>5</depth></history></topic_qos>
  <datawriter_qos><history><kind>KEEP_LAST_HISTORY_QOS</kind><depth>6</depth></history></datawriter_qos>
  <datareader_qos><history><kind>KEEP_LAST_HISTORY_QOS</kind><depth>7</depth></history></datareader_qos>
</qos_profile></qos_library></dds>"#;

/// One test at a time: there is one factory.
static FACTORY: Mutex<()> = Mutex::new(());

/// What was set comes before the participant's profile, which comes before the standard's
/// default; the getter says the same as an entity that is made. A profile that is named for
/// a participant comes before what is set at the factory for all.
#[test]
fn what_is_set_comes_before_the_profile() {
    let _alone = FACTORY.lock();
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(PROFILE.as_bytes()).expect("written");
    let factory = DomainParticipantFactory::instance();
    let with_profile = || {
        DomainParticipant::builder(0)
            .disabled()
            .qos_profiles(file.path())
            .expect("it makes sense")
            .profile("L::P")
            .create()
            .expect("a participant")
    };
    let of = |participant: &DomainParticipant| {
        let qos = participant.qos().expect("alive");
        qos.property.get("of").map(str::to_owned)
    };

    let plain = DomainParticipant::builder(0).disabled().create();
    let plain = plain.expect("a participant");
    assert_eq!(plain.default_publisher_qos(), PublisherQos::default());
    assert_eq!(plain.default_subscriber_qos(), SubscriberQos::default());
    assert_eq!(plain.default_topic_qos(), TopicQos::default());
    let publisher = plain.publisher().create().expect("a publisher");
    assert_eq!(publisher.default_datawriter_qos(), DataWriterQos::default());
    let subscriber = plain.subscriber().create().expect("a subscriber");
    assert_eq!(
        subscriber.default_datareader_qos(),
        DataReaderQos::default()
    );

    let participant = with_profile();
    assert_eq!(of(&participant).as_deref(), Some("profile"));
    factory
        .set_default_participant_qos(DomainParticipantQos {
            property: [("of", "factory")].into_iter().collect(),
            ..DomainParticipantQos::default()
        })
        .expect("it makes sense");
    let set = factory.default_participant_qos();
    assert_eq!(set.property.get("of"), Some("factory"));
    assert_eq!(of(&with_profile()).as_deref(), Some("profile"));
    let plain = DomainParticipant::builder(0).disabled().create();
    assert_eq!(of(&plain.expect("one")).as_deref(), Some("factory"));

    let ordered = |presentation: Presentation| presentation.ordered_access;
    let publisher = || participant.publisher().create().expect("a publisher");
    let of_publisher = || ordered(publisher().qos().expect("alive").presentation);
    let default = || ordered(participant.default_publisher_qos().presentation);
    assert!(of_publisher() && default());
    let qos = PublisherQos::default();
    participant.set_default_publisher_qos(qos).expect("set");
    assert!(!of_publisher() && !default());

    let subscriber = || participant.subscriber().create().expect("a subscriber");
    let of_subscriber = || ordered(subscriber().qos().expect("alive").presentation);
    let default = || ordered(participant.default_subscriber_qos().presentation);
    assert!(of_subscriber() && default());
    let qos = SubscriberQos::default();
    participant.set_default_subscriber_qos(qos).expect("set");
    assert!(!of_subscriber() && !default());

    let set = History::keep_last(2);
    let topic = |name: &str| participant.topic::<State>(name).create().expect("a topic");
    let of_topic = |name: &str| topic(name).qos().expect("alive").history;
    let default = || participant.default_topic_qos().history;
    assert_eq!([of_topic("A"), default()], [History::keep_last(5); 2]);
    let qos = TopicQos {
        history: set,
        ..TopicQos::default()
    };
    participant.set_default_topic_qos(qos).expect("set");
    assert_eq!([of_topic("B"), default()], [set; 2]);

    let (topic, publisher, subscriber) = (topic("C"), publisher(), subscriber());
    let writer = || publisher.writer(&topic).create().expect("a writer");
    let of_writer = || writer().qos().expect("alive").history;
    let default = || publisher.default_datawriter_qos().history;
    assert_eq!([of_writer(), default()], [History::keep_last(6); 2]);
    let qos = DataWriterQos {
        history: set,
        ..DataWriterQos::default()
    };
    publisher.set_default_datawriter_qos(qos).expect("set");
    assert_eq!([of_writer(), default()], [set; 2]);

    let reader = || subscriber.reader(&topic).create().expect("a reader");
    let of_reader = || reader().qos().expect("alive").history;
    let default = || subscriber.default_datareader_qos().history;
    assert_eq!([of_reader(), default()], [History::keep_last(7); 2]);
    let qos = DataReaderQos {
        history: set,
        ..DataReaderQos::default()
    };
    subscriber.set_default_datareader_qos(qos).expect("set");
    assert_eq!([of_reader(), default()], [set; 2]);

    // What the builder itself is told comes before all.
    let writer = publisher.writer(&topic).profile("L::P").create();
    let history = writer.expect("a writer").qos().expect("alive").history;
    assert_eq!(history, History::keep_last(6));
}

/// Profiles of the factory are those of all participants, together with those of their builders.
#[test]
fn profiles_of_the_factory() {
    let _alone = FACTORY.lock();
    let factory = DomainParticipantFactory::instance();
    let text = PROFILE.replace("'L'", "'F'").replace("\"L\"", "\"F\"");
    factory.qos_profiles_str(&text).expect("it makes sense");
    let refused = factory.qos_profiles_str("<dds><nonsense/></dds>");
    assert!(refused.is_err());
    let participant = |profile: &str| {
        let builder = DomainParticipant::builder(0).disabled();
        let builder = builder.qos_profiles_str(
            "<dds><qos_library name='B'><qos_profile name='P' \
             base_name='F::P'/></qos_library></dds>",
        );
        builder?.profile(profile).create()
    };
    for profile in ["F::P", "B::P"] {
        let participant = participant(profile).expect("a participant");
        assert_eq!(
            participant.default_topic_qos().history,
            History::keep_last(5)
        );
    }
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(PROFILE.as_bytes()).expect("written");
    factory.qos_profiles(file.path()).expect("it makes sense");
    assert!(participant("L::P").is_ok());
    factory.unload_qos_profiles();
    let refused = participant("F::P").expect_err("it is unloaded");
    assert!(refused.to_string().contains("F::P"), "{refused}");
}

/// Where no file is given, the default files are read. The test runs itself again, in a folder with
/// such a file.
#[test]
fn default_files() {
    const CHILD: &str = "SPINDLE_TEST_CHILD";
    let of = |builder: ParticipantBuilder| {
        let participant = builder.disabled().create().expect("a participant");
        let qos = participant.qos().expect("alive");
        qos.property.get("of").map(str::to_owned)
    };
    if std::env::var_os(CHILD).is_some() {
        let text = PROFILE.replace("\"L\"", "\"M\"");
        let builder = || DomainParticipant::builder(0);
        assert_eq!(of(builder()).as_deref(), Some("profile"), "by default");
        assert_eq!(of(builder().profile("L::P")).as_deref(), Some("profile"));
        assert_eq!(of(builder().ignore_default_qos_files()), None);
        let given = builder().qos_profiles_str(&text).expect("it makes sense");
        assert_eq!(of(given), None, "files that are given are all there are");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let text = PROFILE.replace("name=\"P\"", "name=\"P\" is_default_qos=\"true\"");
    std::fs::write(folder.path().join("USER_QOS_PROFILES.xml"), text).expect("written");
    let child = std::process::Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "default_files"])
        .current_dir(folder.path())
        .env(CHILD, "1")
        .env_remove("SPINDLE_QOS_PROFILES")
        .env_remove("NDDS_QOS_PROFILES")
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{said}");
}
