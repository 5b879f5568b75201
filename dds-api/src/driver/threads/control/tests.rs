use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use spindle_dds_core::membership::HostId;
use spindle_dds_transport::Rank;
use spindle_dds_transport::hybrid::StationOptions;
use spindle_dds_transport::shm::DomainState;

use super::*;
use crate::handle::Guid;
use crate::history::{HistoryService, LogService};
use crate::joining::Ask;
use crate::participant::DomainParticipant;
use crate::properties::ParticipantConfig;

/// Far beyond what anything takes.
const PATIENCE: Duration = Duration::from_secs(20);

fn soon() -> Instant {
    Instant::now() + PATIENCE
}

/// A domain's directory.
fn directory() -> (tempfile::TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("domains");
    (parent, directory)
}

/// A member's place on this host, and what it says of itself.
fn member(directory: &Path, id: u128) -> (Station, Member) {
    let mut host = shm::HostOptions::new(0, id);
    host.directory = Some(directory.into());
    let station = Station::open(&StationOptions {
        host,
        network: None,
    });
    let station = station.unwrap();
    let host = station.host_id();
    let entry = MemberEntry::here(id, host, station.address()).unwrap();
    let info = ParticipantInfo {
        guid: Guid([id as u8; 16]),
        name: String::new(),
        subgroups: ParticipantConfig::read(&Default::default())
            .unwrap()
            .subgroups,
        pid: entry.pid,
        start: entry.start,
    };
    let member = Member {
        id: MemberId(id),
        host: HostId(host),
        address: entry.address,
        info: info.to_bytes().unwrap(),
        updates: 0,
        endpoints: Default::default(),
        notes: Default::default(),
    };
    (station, member)
}

/// Asks to be let in, answers each request to prepare a view, and returns the view that it is
/// welcomed with, or why it is refused. `prepare` returns what is lacking, and no answer for `None`.
fn ask(
    station: &Station,
    me: &Member,
    sponsor: u128,
    mut prepare: impl FnMut(&View, u64) -> Option<Result<(), String>>,
) -> std::result::Result<View, String> {
    let ask = Packet::Ask(Ask {
        member: me.clone(),
        founds: false,
        was: None,
        missing: Vec::new(),
    });
    station.send(sponsor, &ask.write()).unwrap();
    loop {
        let event = station.next_event(PATIENCE).expect("it is answered");
        let StationEvent::Message { bytes, .. } = event else {
            continue;
        };
        match Packet::read(&bytes) {
            Ok(Packet::Prepare { number, last, part }) => {
                assert!(last);
                let view = View::from_bytes(&part).unwrap();
                if let Some(answer) = prepare(&view, number) {
                    let (view, lack) = (view.id, answer.err());
                    let prepared = Packet::Prepared { view, number, lack };
                    station.send(sponsor, &prepared.write()).unwrap();
                }
            }
            Ok(Packet::Welcome { last, part, .. }) => {
                assert!(last);
                return Ok(View::from_bytes(&part).unwrap());
            }
            Ok(Packet::Refused { reason, .. }) => return Err(reason),
            other => panic!("it is neither welcomed nor refused: {other:?}"),
        }
    }
}

/// A participant that has founded a domain, and the entry of the record for it.
fn founder(directory: &Path, limit_ms: &str) -> DomainParticipant {
    DomainParticipant::builder(0)
        .property("spindle.directory", directory.to_str().unwrap())
        .property("spindle.failure.limit_ms", limit_ms)
        .create()
        .unwrap()
}

/// Connects to the one member of the domain.
fn connect(station: &Station, me: &Member, directory: &Path) -> u128 {
    let entry = MemberEntry::here(me.id.0, me.host.0, station.address()).unwrap();
    let register = DomainRegistry::open(0, Some(directory), entry).unwrap();
    let DomainState::Present(members) = register.living_members().unwrap() else {
        panic!("no member replied");
    };
    station.connect(&members[0].address, soon()).unwrap()
}

/// A newcomer may have to ask again: the member that admitted it may have crashed before it
/// replied.
#[test]
fn a_newcomer_that_repeats_its_request_gets_the_same_view() {
    let (_parent, directory) = directory();
    // The newcomer gives no sign of life.
    let founder = founder(&directory, "60000");
    let (station, me) = member(&directory, 7);
    let sponsor = connect(&station, &me, &directory);
    let mut ready = None;
    let mut prepare = |view: &View, number| {
        let made = preparation::make(&station, me.id, view, number, PATIENCE, &mut || {});
        ready = Some(made.unwrap());
        Some(Ok(()))
    };
    let view = ask(&station, &me, sponsor, &mut prepare).unwrap();
    assert_eq!((view.id, view.rank(me.id)), (2, Some(Rank(1))));
    while founder.discovered_participants().unwrap().is_empty() {
        thread::yield_now();
    }
    // In that view.
    assert_eq!(ask(&station, &me, sponsor, &mut prepare), Ok(view));
    assert!(ready.is_some());
}

/// Another newcomer, which prepares what it is asked to, is let in.
fn assert_lets_in_another(directory: &Path, founder: &DomainParticipant) {
    let (station, me) = member(directory, 8);
    let sponsor = connect(&station, &me, directory);
    let mut ready = None;
    let view = ask(&station, &me, sponsor, |view, number| {
        let made = preparation::make(&station, me.id, view, number, PATIENCE, &mut || {});
        ready = Some(made.unwrap());
        Some(Ok(()))
    });
    assert_eq!(view.map(|view| view.rank(me.id)), Ok(Some(Rank(1))));
    while founder.discovered_participants().unwrap().is_empty() {
        thread::yield_now();
    }
}

#[test]
fn a_newcomer_that_lacks_something_is_refused_with_its_reason_and_the_group_goes_on() {
    let (_parent, directory) = directory();
    // Much longer than anything here waits.
    let founder = founder(&directory, "60000");
    let (station, me) = member(&directory, 7);
    let sponsor = connect(&station, &me, &directory);
    let lacks = |_: &View, _| Some(Err("no descriptor is left".to_owned()));
    let refused = ask(&station, &me, sponsor, lacks).unwrap_err();
    assert!(refused.contains("no descriptor is left"), "{refused}");
    assert!(founder.discovered_participants().unwrap().is_empty());
    assert_lets_in_another(&directory, &founder);
}

/// It waits for the newcomer's rows, until it hears that they will not come.
#[test]
fn a_member_does_not_wait_for_a_newcomer_that_cannot_prepare() {
    let (_parent, directory) = directory();
    let sponsor = founder(&directory, "60000");
    let other = founder(&directory, "60000");
    let (station, me) = member(&directory, 7);
    let sponsors_id = connect(&station, &me, &directory);
    let lacks = |_: &View, _| Some(Err("no descriptor is left".to_owned()));
    let refused = ask(&station, &me, sponsors_id, lacks).unwrap_err();
    assert!(refused.contains("no descriptor is left"), "{refused}");
    for participant in [&sponsor, &other] {
        assert_eq!(participant.discovered_participants().unwrap().len(), 1);
    }
}

#[test]
fn a_newcomer_that_does_not_prepare_is_refused_and_the_group_goes_on() {
    let (_parent, directory) = directory();
    let founder = founder(&directory, "2000");
    let (station, me) = member(&directory, 7);
    let sponsor = connect(&station, &me, &directory);
    let refused = ask(&station, &me, sponsor, |_, _| None).unwrap_err();
    let pid = format!("process {}", std::process::id());
    assert!(refused.contains(&pid), "{refused}");
    assert_lets_in_another(&directory, &founder);
}

#[test]
fn a_newcomer_that_crashes_while_it_prepares_is_in_no_view() {
    let (_parent, directory) = directory();
    let founder = founder(&directory, "60000");
    let (station, me) = member(&directory, 7);
    let sponsor = connect(&station, &me, &directory);
    let ask = Packet::Ask(Ask {
        member: me,
        founds: false,
        was: None,
        missing: Vec::new(),
    });
    station.send(sponsor, &ask.write()).unwrap();
    while !matches!(
        station.next_event(PATIENCE),
        Some(StationEvent::Message { .. })
    ) {}
    drop(station);
    assert_lets_in_another(&directory, &founder);
}

/// The control thread of member 1 of a view with member 2, to which it is connected.
fn control_of_two(directory: &Path) -> (ControlThread, Station) {
    let (station, me) = member(directory, 1);
    let (peer, other) = member(directory, 2);
    let mut both = View::first(me.clone()).unwrap();
    both.members.push(other.clone());
    let entry = MemberEntry::here(1, me.host.0, station.address()).unwrap();
    let config = ParticipantConfig::read(&Default::default()).unwrap();
    let control = ControlThread {
        participant: Weak::new(),
        station: Arc::new(station),
        register: DomainRegistry::open(0, Some(directory), entry).unwrap(),
        announcements: AnnouncementReader::new(me.id),
        me: me.id,
        subgroups: config.subgroups,
        history: Arc::new(HistoryService::new(
            config.threads.history,
            config.failure_limit,
            Arc::default(),
        )),
        logs: Arc::new(LogService::test(&config)),
        local_endpoints: Arc::new(LocalEndpoints::test(config)),
        limit: PATIENCE,
        view: Arc::new(both),
        digest: 0,
        preparation: 0,
        ready: None,
        gave_up: BTreeMap::new(),
        asked: Vec::new(),
        were: BTreeMap::new(),
        delivered: DeliveredHistory::default(),
        lost: BTreeSet::new(),
        later: VecDeque::new(),
        memory_watch: MemoryWatch::default(),
    };
    control.station.connect(&other.address, soon()).unwrap();
    (control, peer)
}

#[test]
fn a_member_that_gives_up_is_heard_though_other_events_come_first() {
    let (_parent, directory) = directory();
    let (mut control, peer) = control_of_two(&directory);
    let said = "it cannot record a view: no space".to_owned();
    for packet in [Packet::StatusRequest, Packet::GivesUp(said.clone())] {
        peer.send(1, &packet.write()).unwrap();
    }
    drop(peer);
    let heard = loop {
        if let Some(heard) = control.reason_of(MemberId(2)) {
            break heard;
        }
        thread::yield_now();
    };
    assert_eq!(heard, said);
    let is_request = |event: &StationEvent| match event {
        StationEvent::Message { bytes, .. } => Packet::read(bytes) == Ok(Packet::StatusRequest),
        _ => false,
    };
    assert!(control.later.iter().any(is_request), "handled later");
}

/// A peer whose connection is lost is forgotten with the first view that is without it.
#[test]
fn a_lost_peer_is_remembered_until_a_view_excludes_it() {
    let (_parent, directory) = directory();
    let (mut control, peer) = control_of_two(&directory);
    drop(peer);
    while !matches!(
        control.station.next_event(PATIENCE),
        Some(StationEvent::Closed { .. })
    ) {}
    control.closed(2);
    // The next view has it as well, the one after that has not.
    control.drop_gone(&[]);
    assert_eq!(control.lost, [2].into());
    control.view = Arc::new(View::first(control.view.members[0].clone()).unwrap());
    control.drop_gone(&[]);
    assert_eq!(control.lost, [].into());
    // Its place is free.
    let (_next, next) = member(&directory, 2);
    let connected = control.station.connect(&next.address, soon());
    assert_eq!(connected.unwrap(), 2);
}
