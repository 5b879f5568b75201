use std::path::{Path, PathBuf};

use spindle_dds_core::membership::HostId;
use spindle_dds_transport::hybrid::StationOptions;
use spindle_dds_transport::shm::DomainState;

use super::*;
use crate::handle::Guid;
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

/// Asks to be let in, and returns the view that it is welcomed with.
fn ask(station: &Station, me: &Member, sponsor: u128) -> View {
    let ask = Packet::Ask(Ask {
        member: me.clone(),
        founds: false,
        missing: Vec::new(),
    });
    station.send(sponsor, &ask.write()).unwrap();
    loop {
        let event = station.next_event(PATIENCE).expect("it is answered");
        if let StationEvent::Message { bytes, .. } = event {
            let Ok(Packet::Welcome { last, part, .. }) = Packet::read(&bytes) else {
                panic!("it is not welcomed");
            };
            assert!(last);
            return View::from_bytes(&part).unwrap();
        }
    }
}

/// A newcomer may have to ask again: the member that admitted it may have crashed before it
/// replied.
#[test]
fn a_newcomer_that_repeats_its_request_gets_the_same_view() {
    let (_parent, directory) = directory();
    let founder = DomainParticipant::builder(0)
        .property("spindle.directory", directory.to_str().unwrap())
        // The newcomer gives no sign of life.
        .property("spindle.failure.limit_ms", "60000")
        .create()
        .unwrap();
    let (station, me) = member(&directory, 7);
    let entry = MemberEntry::here(7, me.host.0, station.address()).unwrap();
    let register = DomainRegistry::open(0, Some(&directory), entry).unwrap();
    let DomainState::Present(members) = register.living_members().unwrap() else {
        panic!("no member replied");
    };
    let sponsor = station.connect(&members[0].address, soon()).unwrap();
    let view = ask(&station, &me, sponsor);
    assert_eq!((view.id, view.rank(me.id)), (2, Some(Rank(1))));
    // While the view is prepared: the sponsor waits for this one's row.
    assert_eq!(ask(&station, &me, sponsor), view);
    let control = SegmentRequest {
        key: SegmentKey {
            epoch: view.id,
            index: CONTROL_INDEX,
        },
        members: vec![sponsor, 7],
        me: Rank(1),
        row_lens: vec![CONTROL_ROW_LEN; 2],
        control: true,
    };
    let _row = station.segment(&control, soon()).unwrap();
    while founder.discovered_participants().unwrap().is_empty() {
        thread::yield_now();
    }
    // In that view.
    assert_eq!(ask(&station, &me, sponsor), view);
}

/// A peer whose connection is lost is forgotten with the first view that is without it.
#[test]
fn a_lost_peer_is_remembered_until_a_view_excludes_it() {
    let (_parent, directory) = directory();
    let (station, me) = member(&directory, 1);
    let (peer, other) = member(&directory, 2);
    let first = View::first(me.clone()).unwrap();
    let both = {
        let mut both = first.clone();
        both.members.push(other.clone());
        Arc::new(both)
    };
    let entry = MemberEntry::here(1, me.host.0, station.address()).unwrap();
    let config = ParticipantConfig::read(&Default::default()).unwrap();
    let mut control = ControlThread {
        station: Arc::new(station),
        register: DomainRegistry::open(0, Some(&directory), entry).unwrap(),
        announcements: AnnouncementReader::new(me.id),
        me: me.id,
        subgroups: config.subgroups,
        local_endpoints: Arc::new(LocalEndpoints::new(config)),
        limit: PATIENCE,
        view: both,
        digest: 0,
        asked: BTreeSet::new(),
        lost: BTreeSet::new(),
        later: VecDeque::new(),
    };
    control.station.connect(&other.address, soon()).unwrap();
    drop(peer);
    while !matches!(
        control.station.next_event(PATIENCE),
        Some(StationEvent::Closed { .. })
    ) {}
    control.closed(2);
    // The next view has it as well, the one after that has not.
    control.drop_gone(&[]);
    assert_eq!(control.lost, [2].into());
    control.view = Arc::new(first);
    control.drop_gone(&[]);
    assert_eq!(control.lost, [].into());
    // Its place is free.
    let (_next, next) = member(&directory, 2);
    let connected = control.station.connect(&next.address, soon());
    assert_eq!(connected.unwrap(), 2);
}
