//! Pages, and frames (`frames`), of invented figures.

use std::time::Duration;

use spindle_dds::Error;
use spindle_dds::PeerPath;
use spindle_dds::monitor::{
    Counters, DeliveryClass, DeliveryWait, DetectorFigures, EpochPhase, Figures, HeartbeatFigures,
    MemberFigures, MemoryFigures, MemoryKind, ObservedMember, ParticipantFigures, RingFigures,
    SubgroupFigures, TopicFigures, Traffic, VERSION, WaitFigures,
};

use super::blocked::What;
use super::late::{LateWith, Standstills};
use super::page::page;
use super::process::Process;
use super::scene::Scene;
use super::snapshot::Snapshot;

mod frames;
mod history;
mod logs;

/// Of the processes.
const NAMES: [&str; 3] = ["writer", "display", "recorder"];
const SECOND: u64 = 1_000_000_000;
const SUBGROUP: u32 = 7;

fn member(rank: usize) -> String {
    format!("{rank:x}a11").repeat(8)
}

/// All heartbeats are in time.
fn detector(rank: usize) -> DetectorFigures {
    let others = (0..3).filter(|other| *other != rank as u16);
    let heartbeats = others.map(|member| HeartbeatFigures {
        member,
        has_begun: true,
        silent_ns: SECOND / 2,
        gap_ns: SECOND,
        is_suspected: false,
    });
    DetectorFigures {
        interval_ns: SECOND,
        timeout_ns: 3 * SECOND,
        allowed_ns: 3 * SECOND,
        own_gap_ns: SECOND,
        heartbeats: heartbeats.collect(),
    }
}

/// The recorder is not told what is resident.
fn memory(rank: usize) -> Vec<MemoryFigures> {
    let kinds = (1..).zip(MemoryKind::ALL);
    let figures = kinds.map(|(at, kind)| MemoryFigures {
        kind,
        bytes: at << 24,
        resident_bytes: (rank < 2).then_some(at << (16 + rank)),
    });
    figures.collect()
}

/// Of one of three members, after so many seconds: the first writes 1000 samples of 64 bytes
/// a second, the others read them.
fn figures(rank: usize, seconds: u64) -> ParticipantFigures {
    let writes = rank == 0;
    let count = seconds * 1000;
    let by = |here: bool, value: u64| if here { value } else { 0 };
    let traffic = |pushes: u64, bytes: u64| Traffic { pushes, bytes };
    let batches = |size: u64| vec![(size, count / size)].into();
    let counters = Counters {
        sent: by(writes, count),
        sent_bytes: by(writes, count * 64),
        nulls: by(!writes, count / 2),
        received: by(!writes, count),
        delivered: count,
        delivered_bytes: count * 64,
        upcalls: count / 10,
        data: traffic(by(writes, count * 3), count * 150),
        acks: traffic(by(!writes, count / 5), count),
        send_batches: batches(4),
        receive_batches: batches(by(!writes, 10).max(1)),
        delivery_batches: batches(10),
        ..Counters::default()
    };
    let subgroup = SubgroupFigures {
        subgroup: SUBGROUP,
        epoch: 3,
        members: vec![0, 1, 2],
        phase: EpochPhase::Open,
        unready: vec![],
        received_num: count,
        received: vec![count; 3],
        stable: count,
        delivered_num: count,
        delivered: count,
        delivered_bytes: count * 64,
        wait: None,
        rings: writes
            .then(|| RingFigures {
                class: DeliveryClass::Ordered,
                messages_max: 1024,
                bytes_max: 1 << 20,
                messages: 0,
                bytes: 0,
                sent: count,
                sent_bytes: count * 64,
                published: count,
                released: count,
                unreleased: vec![],
            })
            .into_iter()
            .collect(),
    };
    ParticipantFigures {
        version: VERSION,
        pid: 100 + rank as u32,
        member: member(rank),
        taken_at_ns: seconds * SECOND,
        view: 3,
        members: (0..3)
            .map(|rank| MemberFigures {
                member: member(rank),
                name: format!("{}/{}", NAMES[rank], 100 + rank),
                pid: 100 + rank as u32,
                host: "1".to_owned(),
                path: None,
                encrypted: false,
            })
            .collect(),
        engine: Figures {
            counters,
            writers: vec![],
            subgroups: vec![subgroup],
            detector: Some(detector(rank)),
        },
        fabric: Default::default(),
        station: Default::default(),
        streams: Default::default(),
        wake_ups: seconds * 20,
        topics: vec![TopicFigures {
            topic: "Square".to_owned(),
            subgroup: SUBGROUP,
            writers: u32::from(writes),
            readers: u32::from(!writes),
            sent: by(writes, count),
            sent_bytes: by(writes, count * 64),
            received: by(!writes, count),
            received_bytes: by(!writes, count * 64),
            ..TopicFigures::default()
        }],
        transfers: vec![],
        logs: vec![],
        waits: vec![],
        mismatches: vec![],
        unlisted_mismatches: 0,
        memory: memory(rank),
        latency_own: vec![(40_000, by(writes, count))].into(),
        latency_others: vec![(25_000, by(!writes, count)), (900_000, seconds)].into(),
    }
}

fn snapshot(seconds: u64, all: Vec<ParticipantFigures>) -> Snapshot {
    let process = |it: &ParticipantFigures| {
        let process = Process {
            command: NAMES[it.pid as usize % 100 % 3].to_owned(),
            cpu_ns: seconds * SECOND / 4,
            pss_bytes: Some(u64::from(it.pid) << 16),
        };
        (it.pid, process)
    };
    Snapshot {
        domain: 0,
        at: Duration::from_secs(seconds),
        processes: all.iter().map(process).collect(),
        standstills: Standstills::default().after(Duration::from_secs(seconds), all.iter()),
        seen: all
            .into_iter()
            .map(|told| ObservedMember {
                member: told.member.clone(),
                pid: told.pid,
                is_here: true,
                figures: Ok(told),
            })
            .collect(),
    }
}

/// Looks after 2 and 4 seconds, of which the second, and perhaps the first, are altered.
fn scene(alter: impl Fn(u64, &mut [ParticipantFigures])) -> Scene {
    let at = |seconds: u64| {
        let mut all: Vec<_> = (0..3).map(|rank| figures(rank, seconds)).collect();
        alter(seconds, &mut all);
        snapshot(seconds, all)
    };
    let (before, mut now) = (at(2), at(4));
    let told = now.seen.iter().filter_map(|it| it.figures.as_ref().ok());
    now.standstills = before.standstills.after(now.at, told);
    Scene::of(&before, &now)
}

/// The writer waits for room; the recorder holds all that it was sent.
fn held_up(seconds: u64, all: &mut [ParticipantFigures]) {
    all[0].waits = vec![WaitFigures {
        subgroup: SUBGROUP,
        times: 3,
        ns: seconds * SECOND * 3 / 4,
        waiting: 1,
    }];
    let ring = &mut all[0].engine.subgroups[0].rings[0];
    (ring.messages, ring.bytes) = (1024, 65536);
    (ring.released, ring.unreleased) = (500, vec![2]);
    all[2].topics[0].full_readers = 1;
}

/// The display has sent no heartbeat for 2.5 seconds, and the writer has seen that it has received
/// nothing for longer.
fn silent(_: u64, all: &mut [ParticipantFigures]) {
    for figures in all {
        let detector = figures.engine.detector.as_mut().expect("in a view");
        let mut beats = detector.heartbeats.iter_mut();
        if let Some(display) = beats.find(|it| it.member == 1) {
            display.silent_ns = SECOND * 5 / 2;
        }
        if figures.pid == 100 {
            figures.engine.subgroups[0].received[1] = 700;
        }
    }
}

/// The display has not acknowledged what the recorder waits to deliver.
fn unacknowledged(_: u64, all: &mut [ParticipantFigures]) {
    let subgroup = &mut all[2].engine.subgroups[0];
    subgroup.delivered_num = 1500;
    subgroup.wait = Some(DeliveryWait {
        messages: 12,
        senders: vec![],
        acknowledgements: vec![1],
    });
}

#[test]
fn a_page() {
    let scene = scene(|seconds, all| {
        held_up(seconds, all);
        unacknowledged(seconds, all);
        silent(seconds, all);
    });
    insta::assert_snapshot!(page(&scene));
}

/// Those of participants with peers on other hosts only.
#[test]
fn streams_are_shown_where_there_are_some() {
    let scene = scene(|seconds, all| {
        let streams = &mut all[0].streams;
        (streams.send_calls, streams.bytes_sent) = (seconds * 50, seconds * 6_000_000);
        for (rank, encrypted) in [(1, true), (2, false)] {
            all[0].members[rank].path = Some(PeerPath::Stream);
            all[0].members[rank].encrypted = encrypted;
        }
    });
    let page = page(&scene);
    let lines = page.lines().map(str::split_whitespace);
    let lines: Vec<Vec<&str>> = lines.map(Iterator::collect).collect();
    let title = lines
        .iter()
        .position(|words| words.first() == Some(&"Streams"));
    let at = title.expect("the section");
    let row = [
        "writer/100",
        "50.0",
        "6.00",
        "20.0",
        "0",
        "0",
        "-",
        "2",
        "1",
        "0",
    ];
    assert_eq!(lines[at + 2], row, "{page}");
    assert!(lines[at + 3].is_empty(), "{page}");
}

#[test]
fn a_page_says_what_is_blocked() {
    let text = page(&scene(held_up));
    assert!(text.contains("writer/100 waits for room (Square): recorder/102 does not take"));
    assert!(text.lines().all(|line| line.len() == line.trim_end().len()));
}

/// Participants that do not answer, or are on another host, are shown too.
#[test]
fn a_page_of_participants_that_do_not_answer() {
    let mut now = snapshot(4, vec![figures(0, 4)]);
    let silent = |rank: usize, is_here: bool, why: &str| ObservedMember {
        member: member(rank),
        pid: 100 + rank as u32,
        is_here,
        figures: Err(Error::Timeout(why.to_owned())),
    };
    now.seen.push(silent(1, true, "it does not answer in time"));
    now.seen.push(silent(2, false, "it is on another host"));
    let before = snapshot(2, vec![]);
    let scene = Scene::of(&before, &now);
    insta::assert_snapshot!(page(&scene));
    insta::assert_snapshot!(page(&Scene::of(&snapshot(1, vec![]), &snapshot(2, vec![]))));
}

#[test]
fn participants_that_make_progress_are_not_blocked() {
    assert_eq!(scene(|_, _| {}).blocked, []);
    // It waited before, and no longer waits.
    let waited = scene(|seconds, all| {
        held_up(seconds, all);
        (all[0].waits[0].waiting, all[0].waits[0].ns) = (0, SECOND);
    });
    assert_eq!(waited.blocked, []);
    // Samples waited before, or wait since a moment ago.
    let passing = scene(|seconds, all| {
        all[0].topics[0].waiting = u64::from(seconds == 4);
    });
    assert_eq!(passing.blocked, []);
    // It makes progress.
    let goes_on = scene(|seconds, all| {
        unacknowledged(seconds, all);
        all[2].engine.subgroups[0].delivered_num = seconds;
    });
    assert_eq!(goes_on.blocked, []);
}

#[test]
fn a_blocked_participant_is_shown_with_the_blocker_and_the_reason() {
    let check = |scene: Scene, what: What, by: &str, why: &str| {
        let [blocked] = &scene.blocked[..] else {
            panic!("{:?}", scene.blocked)
        };
        assert_eq!(
            (blocked.what, &blocked.by[..]),
            (what, &[by.to_owned()][..])
        );
        assert!(blocked.why.contains(why), "{}", blocked.why);
    };
    check(
        scene(held_up),
        What::Room,
        "recorder/102",
        "reader of Square",
    );
    let behind = scene(|seconds, all| {
        held_up(seconds, all);
        all[2].topics[0].full_readers = 0;
    });
    check(behind, What::Room, "recorder/102", "has not released");
    let loans = scene(|seconds, all| {
        held_up(seconds, all);
        all[0].engine.subgroups[0].rings[0].unreleased.clear();
    });
    check(loans, What::Room, "writer/100", "loans");
    let unready = scene(|seconds, all| {
        held_up(seconds, all);
        all[0].engine.subgroups[0].unready = vec![1];
    });
    check(unready, What::Room, "display/101", "not ready");
    check(
        scene(unacknowledged),
        What::Delivery,
        "display/101",
        "acknowledged",
    );
    let silent = scene(|seconds, all| {
        unacknowledged(seconds, all);
        let wait = all[2].engine.subgroups[0].wait.as_mut().expect("it waits");
        (wait.senders, wait.acknowledgements) = (vec![0], vec![]);
    });
    check(silent, What::Delivery, "writer/100", "next message");
    let history = scene(|seconds, all| {
        held_up(seconds, all);
        all[0].waits.clear();
        all[0].topics[0].waiting = 7;
    });
    let text = page(&history);
    let waits = "writer/100 has 7 samples that wait to be sent (Square): recorder/102 does not";
    assert!(text.contains(waits), "{text}");
    let json = serde_json::to_value(&history).expect("JSON");
    assert_eq!(json["blocked"][0]["what"], "history");
    assert_eq!(json["blocked"][0]["samples"], 7);
    let samples = What::History { samples: 7 };
    check(history, samples, "recorder/102", "reader of Square");
    let changing = scene(|seconds, all| {
        held_up(seconds, all);
        all[0].engine.subgroups[0].phase = EpochPhase::Wedged;
    });
    check(changing, What::Room, "writer/100", "the view is changing");
    // Ranks that do not exist.
    let wild = scene(|seconds, all| {
        held_up(seconds, all);
        all[0].engine.subgroups[0].rings[0].unreleased = vec![999];
    });
    check(wild, What::Room, "member 999", "has not released");
}

/// What is late, with what, who sees it, for how long, and how many messages.
type Told = (String, LateWith, Vec<String>, f64, Option<u64>);

fn late(alter: impl Fn(u64, &mut [ParticipantFigures])) -> Vec<Told> {
    let told = scene(alter).late.into_iter();
    told.map(|it| (it.member, it.with, it.seen_by, it.for_s, it.messages))
        .collect()
}

#[test]
fn members_in_time_are_not_late() {
    assert_eq!(late(|_, _| {}), []);
    // Between two heartbeats, and behind by what has just been sent.
    let soon = late(|seconds, all| {
        for beat in &mut all[0]
            .engine
            .detector
            .as_mut()
            .expect("in a view")
            .heartbeats
        {
            beat.silent_ns = 2 * SECOND;
        }
        all[0].engine.subgroups[0].received[1] = seconds * 1000 - 300;
        let ring = &mut all[0].engine.subgroups[0].rings[0];
        (ring.messages, ring.released) = (1024, seconds * 1000 - 1024);
        ring.unreleased = vec![1, 2];
    });
    assert_eq!(soon, []);
    // A sample that an application keeps holds little of the ring.
    let kept = late(|_, all| {
        let ring = &mut all[0].engine.subgroups[0].rings[0];
        (ring.messages, ring.released, ring.unreleased) = (10, 700, vec![2]);
    });
    assert_eq!(kept, []);
}

#[test]
fn a_late_member_is_named_with_what_it_is_late_with_and_for_how_long() {
    let name = |rank: usize| ["writer/100", "display/101", "recorder/102"][rank].to_owned();
    let others = || vec![name(0), name(2)];
    assert_eq!(
        late(silent),
        [
            (name(1), LateWith::Heartbeat, others(), 2.5, None),
            (name(1), LateWith::Receipt, vec![name(0)], 2.0, Some(3300)),
        ]
    );
    let holds = (name(2), LateWith::Release, vec![name(0)], 2.0, Some(1024));
    assert_eq!(late(held_up), [holds]);
    // A member that tells that it was not stepped.
    let starved = late(|_, all| {
        all[1]
            .engine
            .detector
            .as_mut()
            .expect("in a view")
            .own_gap_ns = 3 * SECOND;
    });
    assert_eq!(
        starved,
        [(name(1), LateWith::Steps, vec![name(1)], 3.0, None)]
    );
    // A member whose heartbeats come again, but did not for a while.
    let was = scene(|_, all| {
        let detector = all[0].engine.detector.as_mut().expect("in a view");
        detector.heartbeats[1].gap_ns = 5 * SECOND / 2;
    });
    assert!(
        was.late[0].why.contains("up to 2.5 s apart of late"),
        "{:?}",
        was.late
    );
    // A view that a member does not begin, and ranks that do not exist.
    let wild = scene(|_, all| {
        let detector = all[0].engine.detector.as_mut().expect("in a view");
        let beat = &mut detector.heartbeats[0];
        (beat.member, beat.has_begun, beat.silent_ns) = (999, false, 4 * SECOND);
        beat.is_suspected = true;
        all[0].engine.subgroups[0].received.clear();
    });
    let [late] = &wild.late[..] else {
        panic!("{:?}", wild.late)
    };
    assert_eq!(late.member, "member 999");
    assert!(
        late.why
            .contains("has not begun the view for 4.0 s, suspected"),
        "{}",
        late.why
    );
}

#[test]
fn rates_are_of_the_time_between() {
    let json = serde_json::to_value(scene(held_up)).expect("JSON");
    let writer = &json["participants"][0];
    assert_eq!(writer["cpu_percent"], 25.0);
    let figures = &writer["figures"];
    assert_eq!(figures["sent_per_s"], 1000.0);
    assert_eq!(figures["pushes_per_s"]["data"], 3000.0);
    assert_eq!(figures["room_wait"], 0.75);
    assert_eq!(figures["batches"]["send"]["p50"], 4);
    assert_eq!(json["view"]["leader"], "writer/100");
    assert_eq!(json["topics"][0]["topic"], "Square");
    assert_eq!(json["blocked"][0]["what"], "room");
    // A participant that started meanwhile counts from its start.
    let anew = Scene::of(
        &snapshot(2, vec![]),
        &snapshot(4, vec![self::figures(0, 4)]),
    );
    let json = serde_json::to_value(anew).expect("JSON");
    assert_eq!(json["participants"][0]["figures"]["sent_per_s"], 1000.0);
    assert_eq!(
        json["participants"][0]["cpu_percent"],
        serde_json::Value::Null
    );
}
