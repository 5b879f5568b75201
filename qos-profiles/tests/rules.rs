//! Consistency, changes, matching and what is not built, rule by rule.

use spindle_dds_qos::{
    DataReaderQos, DataRepresentation, DataRepresentationId, DataWriterQos, Deadline,
    DestinationOrderKind, DomainParticipantFactoryQos, DomainParticipantQos, DurabilityKind,
    DurabilityService, Duration, EntityFactory, GroupData, History, HistoryKind, Length, Lifespan,
    Liveliness, LivelinessKind, Location, OwnershipKind, OwnershipStrength, Partition, PolicyId,
    Presentation, PresentationAccessScope, Properties, PublisherQos, ReaderDataLifecycle,
    Reliability, ReliabilityKind, ResourceLimits, SubscriberQos, TopicQos, TransportPriority,
    TypeConsistencyEnforcement, TypeConsistencyKind, UserData, WriterDataLifecycle, incompatible,
};

mod consistency {
    use super::*;

    fn check(change: impl Fn(&mut DataReaderQos), expected: Option<PolicyId>) {
        let mut qos = DataReaderQos::default();
        change(&mut qos);
        let found = qos
            .check_consistency()
            .err()
            .map(|inconsistent| inconsistent.policy);
        assert_eq!(found, expected, "{qos:?}");
    }

    fn check_service(change: impl Fn(&mut DurabilityService), expected: Option<PolicyId>) {
        let mut service = DurabilityService::default();
        change(&mut service);
        let writer = DataWriterQos {
            durability_service: service,
            ..Default::default()
        };
        let topic = TopicQos {
            durability_service: service,
            ..Default::default()
        };
        let found = [writer.check_consistency(), topic.check_consistency()];
        let found = found.map(|result| result.err().map(|inconsistent| inconsistent.policy));
        assert_eq!(found, [expected, expected], "{service:?}");
    }

    #[test]
    fn history_and_resource_limits() {
        let history = Some(PolicyId::History);
        let limits = Some(PolicyId::ResourceLimits);
        check(|qos| qos.history = History::keep_last(0), history);
        check(
            |qos| {
                qos.history = History {
                    kind: HistoryKind::KeepAll,
                    depth: 0,
                }
            },
            None,
        );
        check(|qos| qos.history = History::keep_last(1000), None);
        check(
            |qos| qos.resource_limits.max_samples_per_instance = 1.into(),
            None,
        );
        check(
            |qos| {
                qos.history = History::keep_last(2);
                qos.resource_limits.max_samples_per_instance = 1.into();
            },
            history,
        );
        check(
            |qos| {
                qos.history = History::keep_all();
                qos.resource_limits.max_samples_per_instance = 1.into();
            },
            None,
        );
        check(
            |qos| {
                qos.history = History::keep_last(2);
                qos.resource_limits.max_samples = 1.into();
            },
            history,
        );
        check(
            |qos| {
                qos.history = History::keep_last(2);
                qos.resource_limits.max_samples = 2.into();
            },
            None,
        );
        check(|qos| qos.resource_limits.max_samples = 1.into(), None);
        check(|qos| qos.resource_limits.max_samples = 0.into(), limits);
        check(|qos| qos.resource_limits.max_instances = 0.into(), limits);
        check(
            |qos| {
                qos.resource_limits.max_samples = 3.into();
                qos.resource_limits.max_samples_per_instance = 4.into();
            },
            limits,
        );
        check(
            |qos| {
                qos.resource_limits.max_samples = 4.into();
                qos.resource_limits.max_samples_per_instance = 4.into();
            },
            None,
        );
    }

    #[test]
    fn deadline_and_time_based_filter() {
        let second = Duration::from_secs(1);
        let deadline = Some(PolicyId::Deadline);
        check(|qos| qos.time_based_filter = second.into(), None);
        check(
            |qos| {
                qos.time_based_filter = second.into();
                qos.deadline = second.into();
            },
            None,
        );
        check(
            |qos| {
                qos.time_based_filter = second.into();
                qos.deadline = Duration::from_millis(999).into();
            },
            deadline,
        );
    }

    #[test]
    fn durability_service() {
        let service = Some(PolicyId::DurabilityService);
        check_service(|_| (), None);
        check_service(|s| s.history_depth = 0, service);
        check_service(|s| s.max_samples = 0.into(), service);
        check_service(|s| s.max_instances = 0.into(), service);
        check_service(|s| s.service_cleanup_delay = Duration::INFINITE, None);
        check_service(
            |s| (s.history_depth, s.max_samples) = (3, 2.into()),
            service,
        );
        check_service(
            |s| {
                s.history_kind = HistoryKind::KeepAll;
                (s.history_depth, s.max_samples_per_instance) = (3, 2.into());
            },
            None,
        );
        check_service(
            |s| (s.history_depth, s.max_samples_per_instance) = (3, 2.into()),
            service,
        );
        check_service(
            |s| (s.max_samples, s.max_samples_per_instance) = (1.into(), 2.into()),
            service,
        );
        check_service(
            |s| (s.max_samples, s.max_samples_per_instance) = (2.into(), 2.into()),
            None,
        );
    }

    #[test]
    fn durability_goes_with_each_reliability() {
        for &kind in DurabilityKind::ALL {
            let writer = DataWriterQos {
                durability: kind.into(),
                reliability: Reliability::best_effort(),
                ..Default::default()
            };
            let reader = DataReaderQos {
                durability: kind.into(),
                reliability: Reliability::best_effort(),
                ..Default::default()
            };
            // What is logged has an order.
            let is_consistent = kind != DurabilityKind::Persistent;
            assert_eq!(writer.check_consistency().is_ok(), is_consistent);
            assert_eq!(reader.check_consistency(), Ok(()));
            let (publisher, subscriber) = Default::default();
            assert_eq!(incompatible(&writer, &publisher, &reader, &subscriber), []);
        }
    }

    #[test]
    fn what_is_logged_is_reliable() {
        let mut writer = DataWriterQos {
            durability: DurabilityKind::Persistent.into(),
            ..Default::default()
        };
        assert_eq!(writer.check_consistency(), Ok(()));
        writer.reliability = Reliability::best_effort();
        assert_eq!(
            writer.check_consistency().unwrap_err().to_string(),
            "RELIABILITY is inconsistent: samples of a writer with PERSISTENT_DURABILITY_QOS are \
             logged in the order that all logs share, and those of a BEST_EFFORT_RELIABILITY_QOS \
             writer have none; it has to be RELIABLE_RELIABILITY_QOS"
        );
    }

    #[test]
    fn a_contradiction_names_its_place() {
        let place = Location {
            file: "a.xml".into(),
            line: 3,
            column: 7,
        };
        let mut writer = DataWriterQos {
            history: History::keep_last(9),
            ..Default::default()
        };
        writer.resource_limits.max_samples = 4.into();
        writer
            .origins
            .record(PolicyId::ResourceLimits, place.clone());
        assert_eq!(
            writer.check_consistency().unwrap_err().to_string(),
            "RESOURCE_LIMITS is inconsistent: a depth of 9 does not fit in max_samples 4; it must \
             not exceed it (set at a.xml:3:7)"
        );
        let mut qos = DataReaderQos {
            history: History::keep_last(0),
            ..Default::default()
        };
        qos.origins.record(PolicyId::History, place);
        let error = qos.check_consistency().unwrap_err();
        assert_eq!(
            error.to_string(),
            "HISTORY is inconsistent: KEEP_LAST of depth 0 keeps nothing; the least depth is 1 \
             (set at a.xml:3:7)"
        );
    }
}

mod compatibility {
    use super::*;

    type Change = fn(&mut DataWriterQos, &mut PublisherQos, &mut DataReaderQos, &mut SubscriberQos);

    fn check(change: Change, expected: &[PolicyId]) {
        let mut writer = DataWriterQos::default();
        let mut publisher = PublisherQos::default();
        let mut reader = DataReaderQos::default();
        let mut subscriber = SubscriberQos::default();
        change(&mut writer, &mut publisher, &mut reader, &mut subscriber);
        let found = incompatible(&writer, &publisher, &reader, &subscriber);
        let found: Vec<PolicyId> = found.into_iter().map(|short| short.policy).collect();
        assert_eq!(
            found, expected,
            "{writer:?}\n{publisher:?}\n{reader:?}\n{subscriber:?}"
        );
    }

    #[test]
    fn ordered_kinds() {
        check(|_, _, _, _| (), &[]);
        for &offered in DurabilityKind::ALL {
            for &requested in DurabilityKind::ALL {
                let writer = DataWriterQos {
                    durability: offered.into(),
                    ..Default::default()
                };
                let reader = DataReaderQos {
                    durability: requested.into(),
                    ..Default::default()
                };
                let found = incompatible(
                    &writer,
                    &PublisherQos::default(),
                    &reader,
                    &SubscriberQos::default(),
                );
                assert_eq!(
                    found.is_empty(),
                    offered >= requested,
                    "{offered} {requested}"
                );
            }
        }
        check(|w, _, _, _| w.reliability = Reliability::best_effort(), &[]);
        check(
            |_, _, r, _| r.reliability.kind = ReliabilityKind::Reliable,
            &[],
        );
        check(
            |w, _, r, _| {
                w.reliability = Reliability::best_effort();
                r.reliability.kind = ReliabilityKind::Reliable;
            },
            &[PolicyId::Reliability],
        );
        check(
            |_, _, r, _| r.reliability.max_blocking_time = Duration::ZERO,
            &[],
        );
        check(
            |w, _, _, _| w.destination_order = DestinationOrderKind::BySourceTimestamp.into(),
            &[],
        );
        check(
            |_, _, r, _| r.destination_order = DestinationOrderKind::BySourceTimestamp.into(),
            &[PolicyId::DestinationOrder],
        );
    }

    #[test]
    fn spans_of_time() {
        let deadline: &[PolicyId] = &[PolicyId::Deadline];
        check(|w, _, _, _| w.deadline = Duration::from_secs(1).into(), &[]);
        check(
            |_, _, r, _| r.deadline = Duration::from_secs(1).into(),
            deadline,
        );
        check(
            |w, _, r, _| {
                w.deadline = Duration::from_secs(2).into();
                r.deadline = Duration::from_secs(1).into();
            },
            deadline,
        );
        check(
            |_, _, r, _| r.latency_budget = Duration::from_secs(1).into(),
            &[],
        );
        check(
            |w, _, _, _| w.latency_budget = Duration::from_secs(1).into(),
            &[PolicyId::LatencyBudget],
        );
    }

    #[test]
    fn ownership_must_be_equal() {
        let exclusive = OwnershipKind::Exclusive;
        check(
            |w, _, _, _| w.ownership = OwnershipKind::Exclusive.into(),
            &[PolicyId::Ownership],
        );
        check(
            |_, _, r, _| r.ownership = OwnershipKind::Exclusive.into(),
            &[PolicyId::Ownership],
        );
        let writer = DataWriterQos {
            ownership: exclusive.into(),
            ..Default::default()
        };
        let reader = DataReaderQos {
            ownership: exclusive.into(),
            ..Default::default()
        };
        let (publisher, subscriber) = Default::default();
        assert_eq!(incompatible(&writer, &publisher, &reader, &subscriber), []);
    }

    #[test]
    fn liveliness() {
        let liveliness: &[PolicyId] = &[PolicyId::Liveliness];
        check(
            |w, _, _, _| w.liveliness.kind = LivelinessKind::ManualByTopic,
            &[],
        );
        check(
            |_, _, r, _| r.liveliness.kind = LivelinessKind::ManualByParticipant,
            liveliness,
        );
        check(
            |w, _, _, _| w.liveliness.lease_duration = Duration::from_secs(1),
            &[],
        );
        check(
            |_, _, r, _| r.liveliness.lease_duration = Duration::from_secs(1),
            liveliness,
        );
    }

    #[test]
    fn presentation() {
        let presentation: &[PolicyId] = &[PolicyId::Presentation];
        check(
            |_, p, _, _| p.presentation.access_scope = PresentationAccessScope::Group,
            &[],
        );
        check(
            |_, _, _, s| s.presentation.access_scope = PresentationAccessScope::Topic,
            presentation,
        );
        check(|_, p, _, _| p.presentation.ordered_access = true, &[]);
        check(
            |_, _, _, s| s.presentation.ordered_access = true,
            presentation,
        );
        check(
            |_, _, _, s| s.presentation.coherent_access = true,
            presentation,
        );
        check(
            |_, p, _, s| {
                p.presentation.coherent_access = true;
                s.presentation.coherent_access = true;
            },
            &[],
        );
    }

    #[test]
    fn representation() {
        let representation: &[PolicyId] = &[PolicyId::DataRepresentation];
        check(
            |w, _, _, _| w.representation = DataRepresentationId::Xcdr1.into(),
            &[],
        );
        check(
            |w, _, _, _| w.representation = DataRepresentationId::Xcdr2.into(),
            representation,
        );
        check(
            |_, _, r, _| r.representation = DataRepresentationId::Xcdr2.into(),
            representation,
        );
        check(
            |w, _, r, _| {
                let (one, two) = (DataRepresentationId::Xcdr1, DataRepresentationId::Xcdr2);
                w.representation = DataRepresentation {
                    value: vec![two, one],
                };
                r.representation = DataRepresentation {
                    value: vec![one, two],
                };
            },
            &[],
        );
    }

    #[test]
    fn the_rest_does_not_matter() {
        check(
            |w, p, r, s| {
                w.history = History::keep_all();
                w.resource_limits.max_samples = 1.into();
                w.lifespan = Lifespan {
                    duration: Duration::ZERO,
                };
                w.ownership_strength.value = 3;
                r.time_based_filter = Duration::from_secs(1).into();
                r.user_data = UserData { value: vec![1] };
                p.partition = Partition::new(["north"]);
                s.partition = Partition::new(["south"]);
                p.group_data = GroupData { value: vec![1] };
            },
            &[],
        );
    }

    #[test]
    fn all_at_once_is_all_listed_with_both_values() {
        let writer = DataWriterQos {
            reliability: Reliability::best_effort(),
            representation: DataRepresentationId::Xcdr2.into(),
            ..Default::default()
        };
        let reader = DataReaderQos {
            durability: DurabilityKind::TransientLocal.into(),
            deadline: Duration::from_millis(1500).into(),
            liveliness: Liveliness {
                kind: LivelinessKind::ManualByTopic,
                lease_duration: Duration::from_secs(3),
            },
            ownership: OwnershipKind::Exclusive.into(),
            reliability: Reliability::reliable(Duration::ZERO),
            destination_order: DestinationOrderKind::BySourceTimestamp.into(),
            ..Default::default()
        };
        let subscriber = SubscriberQos {
            presentation: Presentation {
                ordered_access: true,
                ..Default::default()
            },
            ..Default::default()
        };
        let found = incompatible(&writer, &PublisherQos::default(), &reader, &subscriber);
        let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }
}

mod mutability {
    use super::*;

    macro_rules! check {
        ($($entity:ident: $member:ident = $value:expr => $expected:expr;)+) => { $(
            let old = $entity::default();
            let new = $entity { $member: $value, ..Default::default() };
            assert_ne!(old, new);
            let expected: Option<PolicyId> = $expected;
            assert_eq!(old.check_mutable(&new).err().map(|error| error.policy), expected);
            assert_eq!(new.check_mutable(&new), Ok(()));
        )+ };
    }

    #[test]
    fn what_may_change() {
        let second = Duration::from_secs(1);
        let no_autoenable = EntityFactory {
            autoenable_created_entities: false,
        };
        let user_data = UserData { value: vec![1] };
        check! {
            DomainParticipantFactoryQos: entity_factory = no_autoenable => None;
            DomainParticipantQos: entity_factory = no_autoenable => None;
            DomainParticipantQos: user_data = user_data.clone() => None;
            PublisherQos: partition = Partition::new(["a"]) => None;
            PublisherQos: group_data = GroupData { value: vec![1] } => None;
            SubscriberQos: partition = Partition::new(["a"]) => None;
            SubscriberQos: entity_factory = no_autoenable => None;
            TopicQos: deadline = second.into() => None;
            TopicQos: lifespan = second.into() => None;
            TopicQos: transport_priority = TransportPriority { value: 1 } => None;
            DataWriterQos: deadline = second.into() => None;
            DataWriterQos: latency_budget = second.into() => None;
            DataWriterQos: transport_priority = TransportPriority { value: 1 } => None;
            DataWriterQos: lifespan = second.into() => None;
            DataWriterQos: user_data = user_data.clone() => None;
            DataWriterQos: ownership_strength = OwnershipStrength { value: 1 } => None;
            DataWriterQos: writer_data_lifecycle =
                WriterDataLifecycle { autodispose_unregistered_instances: false } => None;
            DataReaderQos: deadline = second.into() => None;
            DataReaderQos: latency_budget = second.into() => None;
            DataReaderQos: user_data = user_data => None;
            DataReaderQos: time_based_filter = second.into() => None;
            DataReaderQos: reader_data_lifecycle = ReaderDataLifecycle {
                autopurge_nowriter_samples_delay: second, ..Default::default() } => None;
        }
    }

    #[test]
    fn what_may_not() {
        let ordered = Presentation {
            ordered_access: true,
            ..Default::default()
        };
        let service = DurabilityService {
            history_depth: 2,
            ..Default::default()
        };
        let lease = Liveliness {
            lease_duration: Duration::from_secs(1),
            ..Default::default()
        };
        let by_source = DestinationOrderKind::BySourceTimestamp;
        let limits = ResourceLimits {
            max_samples: 9.into(),
            ..Default::default()
        };
        let xcdr2 = DataRepresentationId::Xcdr2;
        let strict = TypeConsistencyEnforcement {
            ignore_member_names: true,
            ..Default::default()
        };
        let property: Properties = [("spindle.a", "1")].into_iter().collect();
        check! {
            DomainParticipantQos: property = property.clone() => Some(PolicyId::Property);
            PublisherQos: presentation = ordered => Some(PolicyId::Presentation);
            SubscriberQos: presentation = ordered => Some(PolicyId::Presentation);
            TopicQos: durability = DurabilityKind::Transient.into() => Some(PolicyId::Durability);
            TopicQos: durability_service = service => Some(PolicyId::DurabilityService);
            DataReaderQos: durability = DurabilityKind::TransientLocal.into()
                => Some(PolicyId::Durability);
            TopicQos: history = History::keep_all() => Some(PolicyId::History);
            DataWriterQos: durability = DurabilityKind::Transient.into()
                => Some(PolicyId::Durability);
            DataWriterQos: durability_service = service => Some(PolicyId::DurabilityService);
            DataWriterQos: liveliness = lease => Some(PolicyId::Liveliness);
            DataWriterQos: reliability = Reliability::best_effort() => Some(PolicyId::Reliability);
            DataWriterQos: destination_order = by_source.into() => Some(PolicyId::DestinationOrder);
            DataWriterQos: history = History::keep_all() => Some(PolicyId::History);
            DataWriterQos: resource_limits = limits => Some(PolicyId::ResourceLimits);
            DataWriterQos: ownership = OwnershipKind::Exclusive.into() => Some(PolicyId::Ownership);
            DataWriterQos: representation = xcdr2.into() => Some(PolicyId::DataRepresentation);
            DataWriterQos: property = property.clone() => Some(PolicyId::Property);
            DataReaderQos: reliability = Reliability::reliable(Duration::ZERO)
                => Some(PolicyId::Reliability);
            DataReaderQos: representation = xcdr2.into() => Some(PolicyId::DataRepresentation);
            DataReaderQos: type_consistency = strict => Some(PolicyId::TypeConsistencyEnforcement);
            DataReaderQos: property = property => Some(PolicyId::Property);
        }
    }
}

mod not_built {
    use super::*;

    macro_rules! check {
        ($($entity:ident: $member:ident = $value:expr => $expected:expr;)+) => { $(
            let qos = $entity { $member: $value, ..Default::default() };
            let expected: &[&str] = $expected;
            let found: Vec<String> = qos.unsupported().iter().map(ToString::to_string).collect();
            assert_eq!(found, expected);
        )+ };
    }

    #[test]
    fn what_is_built_is_not_refused() {
        let topic_order = Presentation {
            access_scope: PresentationAccessScope::Topic,
            ordered_access: true,
            coherent_access: false,
        };
        let representations = vec![DataRepresentationId::Xcdr2, DataRepresentationId::Xcdr1];
        let lease = Liveliness {
            lease_duration: Duration::from_secs(1),
            ..Default::default()
        };
        let service = DurabilityService {
            service_cleanup_delay: Duration::from_secs(60),
            history_kind: HistoryKind::KeepAll,
            history_depth: 2,
            max_samples: 40.into(),
            max_instances: 4.into(),
            max_samples_per_instance: 10.into(),
        };
        let strict = TypeConsistencyEnforcement {
            kind: TypeConsistencyKind::DisallowTypeCoercion,
            ignore_sequence_bounds: false,
            ignore_string_bounds: false,
            ignore_member_names: true,
            prevent_type_widening: true,
            force_type_validation: true,
        };
        check! {
            PublisherQos: presentation = topic_order => &[];
            SubscriberQos: presentation = topic_order => &[];
            PublisherQos: partition = Partition::new([""]) => &[];
            DataWriterQos: reliability = Reliability::best_effort() => &[];
            TopicQos: durability = DurabilityKind::Persistent.into() => &[];
            DataWriterQos: durability = DurabilityKind::TransientLocal.into() => &[];
            DataWriterQos: durability = DurabilityKind::Transient.into() => &[];
            DataWriterQos: durability = DurabilityKind::Persistent.into() => &[];
            DataReaderQos: durability = DurabilityKind::Persistent.into() => &[];
            DataReaderQos: durability = DurabilityKind::TransientLocal.into() => &[];
            DataReaderQos: durability = DurabilityKind::Transient.into() => &[];
            TopicQos: durability_service = service => &[];
            DataWriterQos: durability_service = service => &[];
            DataWriterQos: history = History::keep_all() => &[];
            DataWriterQos: resource_limits =
                ResourceLimits { max_samples: Length::Limited(4), ..Default::default() } => &[];
            DataWriterQos: latency_budget = Duration::from_secs(1).into() => &[];
            DataWriterQos: liveliness = lease => &[];
            DataWriterQos: writer_data_lifecycle =
                WriterDataLifecycle { autodispose_unregistered_instances: false } => &[];
            DataReaderQos: representation =
                DataRepresentation { value: representations.clone() } => &[];
            DataReaderQos: type_consistency = strict => &[];
        }
    }

    #[test]
    fn what_is_not_built_is() {
        let second = Duration::from_secs(1);
        let coherent = Presentation {
            coherent_access: true,
            ..Default::default()
        };
        let group = Presentation {
            access_scope: PresentationAccessScope::Group,
            ..Default::default()
        };
        let manual = Liveliness {
            kind: LivelinessKind::ManualByTopic,
            lease_duration: second,
        };
        let purge = ReaderDataLifecycle {
            autopurge_disposed_samples_delay: second,
            ..Default::default()
        };
        check! {
            PublisherQos: presentation = coherent
                => &["PRESENTATION is not supported yet: coherent_access true"];
            SubscriberQos: presentation = group
                => &["PRESENTATION is not supported yet: GROUP_PRESENTATION_QOS"];
            PublisherQos: partition = Partition::new(["north"])
                => &["PARTITION is not supported yet: name [\"north\"]"];
            DataWriterQos: deadline = second.into()
                => &["DEADLINE is not supported yet: period 1s"];
            DataWriterQos: lifespan = second.into()
                => &["LIFESPAN is not supported yet: duration 1s"];
            DataReaderQos: liveliness = manual
                => &["LIVELINESS is not supported yet: MANUAL_BY_TOPIC_LIVELINESS_QOS"];
            DataReaderQos: ownership = OwnershipKind::Exclusive.into()
                => &["OWNERSHIP is not supported yet: EXCLUSIVE_OWNERSHIP_QOS"];
            DataWriterQos: ownership_strength = OwnershipStrength { value: 5 }
                => &["OWNERSHIP_STRENGTH is not supported yet: value 5"];
            TopicQos: transport_priority = TransportPriority { value: -1 }
                => &["TRANSPORT_PRIORITY is not supported yet: value -1, which no transport reads \
                      yet"];
            DataWriterQos: transport_priority = TransportPriority { value: 3 }
                => &["TRANSPORT_PRIORITY is not supported yet: value 3, which no transport reads \
                      yet"];
            DataWriterQos: user_data = UserData { value: vec![1] }
                => &["USER_DATA is not supported yet: 1 bytes that no built-in topic shows yet"];
            SubscriberQos: entity_factory = EntityFactory { autoenable_created_entities: false }
                => &["ENTITY_FACTORY is not supported yet: autoenable_created_entities false"];
            DataReaderQos: time_based_filter = second.into()
                => &["TIME_BASED_FILTER is not supported yet: minimum_separation 1s"];
            DataReaderQos: destination_order = DestinationOrderKind::BySourceTimestamp.into()
                => &["DESTINATION_ORDER is not supported yet: \
                      BY_SOURCE_TIMESTAMP_DESTINATIONORDER_QOS"];
            DataReaderQos: reader_data_lifecycle = purge => &["READER_DATA_LIFECYCLE is not \
                supported yet: autopurge_disposed_samples_delay 1s"];
            DataReaderQos: representation = DataRepresentationId::Xml.into()
                => &["DATA_REPRESENTATION is not supported yet: XML_DATA_REPRESENTATION"];
        }
    }
}

mod copying {
    use super::*;

    #[test]
    fn endpoints_take_over_the_policies_of_their_topic() {
        let mut topic = TopicQos {
            durability: DurabilityKind::Transient.into(),
            durability_service: DurabilityService {
                history_depth: 5,
                ..Default::default()
            },
            deadline: Deadline {
                period: Duration::from_secs(9),
            },
            history: History::keep_all(),
            lifespan: Lifespan {
                duration: Duration::from_secs(8),
            },
            representation: DataRepresentationId::Xcdr2.into(),
            ..Default::default()
        };
        let place = Location {
            file: "a.xml".into(),
            line: 1,
            column: 2,
        };
        topic.origins.record(PolicyId::Deadline, place.clone());
        let mut writer = DataWriterQos {
            ownership_strength: OwnershipStrength { value: 7 },
            ..Default::default()
        };
        writer.origins.record(PolicyId::History, place.clone());
        writer.copy_from_topic_qos(&topic);
        let expected = DataWriterQos {
            durability: topic.durability,
            durability_service: topic.durability_service,
            deadline: topic.deadline,
            history: topic.history,
            lifespan: topic.lifespan,
            representation: topic.representation.clone(),
            reliability: topic.reliability,
            ownership_strength: OwnershipStrength { value: 7 },
            ..Default::default()
        };
        assert_eq!(writer, expected);
        assert_eq!(writer.origins.get(PolicyId::Deadline), Some(&place));
        assert_eq!(writer.origins.get(PolicyId::History), None);

        let mut reader = DataReaderQos::default();
        reader.copy_from_topic_qos(&topic);
        let expected = DataReaderQos {
            durability: topic.durability,
            deadline: topic.deadline,
            history: topic.history,
            representation: topic.representation.clone(),
            ..Default::default()
        };
        assert_eq!(reader, expected);
    }
}
