//! The standard's defaults and identifiers, as tables.

use serde::Serialize;
use spindle_dds_qos::{
    DataReaderQos, DataWriterQos, DomainParticipantFactoryQos, DomainParticipantQos, PolicyId,
    PublisherQos, SubscriberQos, TopicQos,
};

fn entry<Q: Serialize + Default>(table: &mut String, name: &str) {
    let value = serde_json::to_value(Q::default()).expect("QoS is plain data");
    table.push_str(&format!("{name}\n"));
    for (member, value) in value.as_object().expect("QoS is a structure") {
        table.push_str(&format!("    {member}: {value}\n"));
    }
}

#[test]
fn defaults() {
    let mut table = String::new();
    entry::<DomainParticipantFactoryQos>(&mut table, "DomainParticipantFactoryQos");
    entry::<DomainParticipantQos>(&mut table, "DomainParticipantQos");
    entry::<TopicQos>(&mut table, "TopicQos");
    entry::<PublisherQos>(&mut table, "PublisherQos");
    entry::<SubscriberQos>(&mut table, "SubscriberQos");
    entry::<DataWriterQos>(&mut table, "DataWriterQos");
    entry::<DataReaderQos>(&mut table, "DataReaderQos");
    insta::assert_snapshot!(table);
}

#[test]
fn identifiers() {
    let lines: Vec<String> = PolicyId::ALL
        .iter()
        .map(|policy| format!("{:>3} {policy}", policy.id()))
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn the_defaults_are_consistent_and_built() {
    assert_eq!(
        DomainParticipantFactoryQos::default().check_consistency(),
        Ok(())
    );
    assert_eq!(DomainParticipantQos::default().check_consistency(), Ok(()));
    assert_eq!(TopicQos::default().check_consistency(), Ok(()));
    assert_eq!(PublisherQos::default().check_consistency(), Ok(()));
    assert_eq!(SubscriberQos::default().check_consistency(), Ok(()));
    assert_eq!(DataWriterQos::default().check_consistency(), Ok(()));
    assert_eq!(DataReaderQos::default().check_consistency(), Ok(()));
    assert_eq!(DomainParticipantFactoryQos::default().unsupported(), []);
    assert_eq!(DomainParticipantQos::default().unsupported(), []);
    assert_eq!(TopicQos::default().unsupported(), []);
    assert_eq!(PublisherQos::default().unsupported(), []);
    assert_eq!(SubscriberQos::default().unsupported(), []);
    assert_eq!(DataWriterQos::default().unsupported(), []);
    assert_eq!(DataReaderQos::default().unsupported(), []);
}

#[test]
fn qos_travels_as_json_and_an_older_announcement_gets_defaults() {
    let qos = DataWriterQos::default();
    let json = serde_json::to_string(&qos).unwrap();
    assert_eq!(serde_json::from_str::<DataWriterQos>(&json).unwrap(), qos);
    assert_eq!(serde_json::from_str::<DataWriterQos>("{}").unwrap(), qos);
}
