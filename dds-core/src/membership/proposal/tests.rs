//! Requests, and what a proposal makes of them.

use super::*;
use crate::ids::TopicKey;
use crate::limits::NOTES_LEN_MAX;
use crate::membership::ViewError;

const ME: MemberId = MemberId(1);

fn endpoint(subgroup: u32, topic: u128) -> Endpoint {
    Endpoint {
        subgroup: SubgroupId(subgroup),
        topic: TopicKey(topic),
        ring: None,
        info: Vec::new(),
    }
}

fn member(id: u128, endpoints: &[Endpoint]) -> Member {
    Member::test(id, endpoints.iter().cloned())
}

fn update(number: u64, put: Endpoint) -> Asking {
    Asking::Plainly(Request::Update(Update {
        member: ME,
        number,
        put: vec![(number, put)],
        remove: Vec::new(),
        notes: Notes::default(),
    }))
}

/// What a view of one member, with a topic in subgroup 0, makes of requests.
fn asked(asking: &[Asking]) -> (Proposal, View) {
    let view = View::first(member(1, &[endpoint(0, 7)])).expect("a view");
    let mut proposal = Proposal::empty(1);
    for asking in asking {
        let added = proposal.add(&view, Rank(0), asking, None);
        assert_eq!(added, Ok(Added::Settled), "{asking:?}");
    }
    let next = view.next(&proposal).expect("a view");
    (proposal, next)
}

fn reasons(proposal: &Proposal) -> Vec<&str> {
    let refusals = proposal.refusals.iter();
    refusals.map(|refusal| &*refusal.why).collect()
}

#[test]
fn updates_after_one_that_is_refused_are_done() {
    let clash = endpoint(0, 7 | 1 << 100);
    let too_long = Asking::TooLong(Asked::Update {
        member: ME,
        number: 4,
    });
    let beyond = endpoint(9999, 3);
    let (proposal, next) = asked(&[
        update(1, endpoint(1, 1)),
        update(2, clash),
        update(3, endpoint(2, 2)),
        too_long,
        update(5, beyond),
    ]);
    let known: Vec<u64> = next.members[0].endpoints.keys().copied().collect();
    assert_eq!((known, next.members[0].updates), (vec![0, 1, 3], 5));
    assert_eq!(
        reasons(&proposal),
        [
            "subgroup 0: two topics have the same key; rename one of them",
            "it takes more than 65536 bytes",
            "subgroup 9999 does not exist: there are 4096",
        ]
    );
    // What is asked for again, by then, has been settled.
    let again = proposal
        .clone()
        .add(&next, Rank(0), &update(2, endpoint(1, 1)), None);
    assert_eq!(again, Ok(Added::Settled));
}

#[test]
fn newcomers_that_no_view_can_have_are_refused_once() {
    let join = Asking::Plainly(Request::Join(member(2, &[endpoint(0, 7 | 1 << 90)])));
    let (proposal, next) = asked(&[join.clone(), join, update(1, endpoint(1, 1))]);
    assert_eq!((next.members.len(), next.members[0].updates), (1, 1));
    assert_eq!(proposal.refusals.len(), 1);
}

fn noted(number: u64, notes: &[(u64, &[u8])], forget: &[u64]) -> Asking {
    let notes = notes.iter().map(|(number, note)| (*number, (*note).into()));
    Asking::Plainly(Request::Update(Update {
        member: ME,
        number,
        put: Vec::new(),
        remove: Vec::new(),
        notes: Notes {
            put: notes.collect(),
            remove: forget.to_vec(),
        },
    }))
}

/// And each is taken back, or another one.
#[test]
fn notes_are_kept_and_touch_no_subgroup() {
    let (proposal, next) = asked(&[
        noted(1, &[(1, b"one"), (2, b"two")], &[]),
        noted(2, &[(3, b"one"), (2, b"other")], &[1, 9]),
    ]);
    let notes = &next.members[0].notes;
    let said: Vec<(u64, &[u8])> = notes.iter().map(|(it, note)| (*it, &**note)).collect();
    assert_eq!(said, [(2, &b"other"[..]), (3, &b"one"[..])]);
    assert_eq!(next.lanes[0].epoch, 1, "its lane goes on");
    let view = View::first(member(1, &[endpoint(0, 7)])).expect("a view");
    assert_eq!(proposal.touched(&view), Touched::Only(BTreeSet::new()));
    assert_eq!(View::from_bytes(&next.to_bytes()), Ok(next.clone()));
    assert_eq!(
        Proposal::read(&proposal.to_bytes(), &view),
        Some((proposal, next))
    );
}

/// So that many members may note the same.
#[test]
fn what_is_noted_twice_counts_and_travels_once() {
    let note = [7; 1 << 15];
    let notes: Vec<(u64, &[u8])> = (0..2).map(|number| (number, &note[..])).collect();
    let (_, next) = asked(&[noted(1, &notes[..1], &[]), noted(2, &notes[1..], &[])]);
    let one = |view: &View| {
        let notes = &view.members[0].notes;
        std::sync::Arc::ptr_eq(&notes[&0], &notes[&1])
    };
    assert!(one(&next));
    let bytes = next.to_bytes();
    assert!(bytes.len() < note.len() * 3 / 2, "{} bytes", bytes.len());
    assert!(one(&View::from_bytes(&bytes).expect("a view")));
}

#[test]
fn more_notes_than_a_newcomer_can_be_told_are_refused() {
    let view = View::first(member(1, &[])).expect("a view");
    let mut full = Proposal::empty(1);
    let mut add = |number: u64, note: &[u8]| {
        let asking = noted(number, &[(number, note)], &[]);
        assert_eq!(full.add(&view, Rank(0), &asking, None), Ok(Added::Settled));
        full.refusals.len()
    };
    // In four notes, as large as can be, and one that is like another.
    let quarter = |number: u8| vec![number; NOTES_LEN_MAX / 4];
    for number in [1, 2, 3, 4] {
        assert_eq!(add(u64::from(number), &quarter(number)), 0);
    }
    assert_eq!(add(5, &quarter(2)), 0);
    assert_eq!(add(6, b""), 1);
    assert_eq!(
        reasons(&full),
        ["the notes of all members together take more than 8388608 bytes"]
    );
}

/// Members that are not there, and notes that are not there.
#[test]
fn a_view_with_notes_of_nobody_is_none() {
    let (_, next) = asked(&[noted(1, &[(1, b"one")], &[])]);
    let bytes = next.to_bytes();
    let [rank, _, place] = bytes.last_chunk().copied().expect("who noted what");
    assert_eq!((rank, place), (0, 0));
    for at in [bytes.len() - 3, bytes.len() - 1] {
        let mut altered = bytes.clone();
        altered[at] = 1;
        assert_eq!(View::from_bytes(&altered), Err(ViewError::Unreadable));
    }
}

#[test]
fn what_cannot_have_been_asked_for_makes_no_sense() {
    let view = View::first(member(1, &[])).expect("a view");
    let check = |asking: Asking| {
        let mut proposal = Proposal::empty(1);
        assert_eq!(
            proposal.add(&view, Rank(0), &asking, None),
            Err(ProtocolViolation)
        );
    };
    check(update(2, endpoint(0, 1)));
    check(Asking::TooLong(Asked::Update {
        member: MemberId(2),
        number: 1,
    }));
}

#[test]
fn what_touches_more_than_was_intended_waits() {
    let view = View::first(member(1, &[])).expect("a view");
    let mut proposal = Proposal::empty(1);
    let inside = BTreeSet::from([SubgroupId(0)]);
    let mut add = |asking| proposal.add(&view, Rank(0), &asking, Some(&inside));
    assert_eq!(add(update(1, endpoint(0, 1))), Ok(Added::Settled));
    assert_eq!(add(update(2, endpoint(1, 1))), Ok(Added::Waits));
    assert_eq!((proposal.updates.len(), proposal.refusals.len()), (1, 0));
}
