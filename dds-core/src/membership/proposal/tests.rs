//! Requests, and what a proposal makes of them.

use super::*;
use crate::ids::TopicKey;
use crate::limits::NOTES_LEN_MAX;
use crate::membership::ViewError;
use crate::membership::merge::{Asked, Merge};

const ME: MemberId = MemberId(1);

fn endpoint(subgroup: u32, topic: u128) -> Endpoint {
    Endpoint {
        subgroup: SubgroupId(subgroup),
        topic: TopicKey(topic),
        ring: None,
        info: Vec::new(),
        log: None,
    }
}

fn member(id: u128, endpoints: &[Endpoint]) -> Member {
    Member::test(id, endpoints.iter().cloned())
}

fn update(number: u64, put: Endpoint) -> ReadRequest {
    ReadRequest::Whole(Request::Update(Update {
        member: ME,
        number,
        put: vec![(number, put)],
        remove: Vec::new(),
        notes: Notes::default(),
    }))
}

/// The proposal that the first member's requests become: the same whether they are added at once or
/// one by one.
fn merge(view: &View, asking: &[ReadRequest]) -> Proposal {
    let asked: Vec<Asked> = asking.iter().map(|it| (Rank(0), it.clone())).collect();
    let (mut at_once, mut one_by_one) = (Merge::new(view), Merge::new(view));
    assert_eq!(at_once.add(&asked), Ok(()));
    for asked in asked {
        assert_eq!(one_by_one.add(&[asked]), Ok(()));
    }
    let (at_once, one_by_one) = (at_once.into_proposal(), one_by_one.into_proposal());
    assert_eq!(at_once, one_by_one);
    at_once
}

/// Adds requests to a proposal for a view of one member with a topic in subgroup 0.
fn ask_all(asking: &[ReadRequest]) -> (Proposal, View) {
    let view = View::first(member(1, &[endpoint(0, 7)])).expect("a view");
    let proposal = merge(&view, asking);
    let next = view.next(&proposal).expect("a view");
    (proposal, next)
}

fn reasons(proposal: &Proposal) -> Vec<&str> {
    let refusals = proposal.refusals.iter();
    refusals.map(|refusal| &*refusal.reason).collect()
}

#[test]
fn updates_after_a_refused_one_are_applied() {
    let clash = endpoint(0, 7 | 1 << 100);
    let too_long = ReadRequest::TooLong(RequestId::Update {
        member: ME,
        number: 4,
    });
    let beyond = endpoint(9999, 3);
    let (proposal, next) = ask_all(&[
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
    // A request that is repeated is already settled.
    let again = merge(&next, &[update(2, endpoint(1, 1))]);
    assert_eq!(again, Proposal::empty(next.id));
}

#[test]
fn newcomers_that_fit_no_view_are_refused_once() {
    let join = ReadRequest::Whole(Request::Join(member(2, &[endpoint(0, 7 | 1 << 90)])));
    let (proposal, next) = ask_all(&[join.clone(), join, update(1, endpoint(1, 1))]);
    assert_eq!((next.members.len(), next.members[0].updates), (1, 1));
    assert_eq!(proposal.refusals.len(), 1);
}

fn noted(number: u64, notes: &[(u64, &[u8])], forget: &[u64]) -> ReadRequest {
    let notes = notes.iter().map(|(number, note)| (*number, (*note).into()));
    ReadRequest::Whole(Request::Update(Update {
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

/// Notes are removed or replaced by their own member.
#[test]
fn notes_are_kept_and_touch_no_subgroup() {
    let (proposal, next) = ask_all(&[
        noted(1, &[(1, b"one"), (2, b"two")], &[]),
        noted(2, &[(3, b"one"), (2, b"other")], &[1, 9]),
    ]);
    let notes = &next.members[0].notes;
    let said: Vec<(u64, &[u8])> = notes.iter().map(|(it, note)| (*it, &**note)).collect();
    assert_eq!(said, [(2, &b"other"[..]), (3, &b"one"[..])]);
    assert_eq!(next.subgroups[0].epoch, 1, "its epoch goes on");
    let view = View::first(member(1, &[endpoint(0, 7)])).expect("a view");
    assert_eq!(proposal.touched(&view), Touched::Only(BTreeSet::new()));
    assert_eq!(View::from_bytes(&next.to_bytes()), Ok(next.clone()));
    assert_eq!(
        Proposal::read(&proposal.to_text(), &view),
        Some((proposal, next))
    );
}

/// Many members may have equal notes.
#[test]
fn equal_notes_count_and_travel_once() {
    // Bytes that no compression makes shorter.
    let scattered = |at: u32| at.wrapping_mul(2_654_435_761).rotate_left(at % 13) as u8;
    let note: Vec<u8> = (0..1 << 15).map(scattered).collect();
    let notes: Vec<(u64, &[u8])> = (0..2).map(|number| (number, &note[..])).collect();
    let (_, next) = ask_all(&[noted(1, &notes[..1], &[]), noted(2, &notes[1..], &[])]);
    let one = |view: &View| {
        let notes = &view.members[0].notes;
        Arc::ptr_eq(&notes[&0], &notes[&1])
    };
    assert!(one(&next));
    let bytes = next.to_bytes();
    assert!(bytes.len() < note.len() * 3 / 2, "{} bytes", bytes.len());
    assert!(one(&View::from_bytes(&bytes).expect("a view")));
}

#[test]
fn more_notes_than_a_newcomer_can_be_told_are_refused() {
    let view = View::first(member(1, &[])).expect("a view");
    // Four notes of the largest size, one of them twice.
    let quarter = |number: u8| vec![number; NOTES_LEN_MAX / 4];
    let mut full = Proposal::empty(1);
    for (number, note) in [(1, 1), (2, 2), (3, 3), (4, 4), (5, 2)] {
        let ReadRequest::Whole(Request::Update(update)) =
            noted(number, &[(number, &quarter(note))], &[])
        else {
            unreachable!("it is an update");
        };
        full.updates.push(update);
    }
    let view = view.next(&full).expect("a view");
    assert_eq!(
        reasons(&merge(&view, &[noted(6, &[(6, b"")], &[])])),
        ["the notes of all members together take more than 8388608 bytes"]
    );
}

/// Notes of members, and references to notes, that do not exist.
#[test]
fn a_view_with_notes_of_unknown_members_is_invalid() {
    let (_, next) = ask_all(&[noted(1, &[(1, b"one")], &[])]);
    let bytes = decompress(&next.to_bytes(), CHANGES_LEN_MAX).expect("a view");
    let [rank, _, place] = bytes.last_chunk().copied().expect("a note");
    assert_eq!((rank, place), (0, 0));
    for at in [bytes.len() - 3, bytes.len() - 1] {
        let mut altered = bytes.clone();
        altered[at] = 1;
        let altered = compress(&altered);
        assert_eq!(View::from_bytes(&altered), Err(ViewError::Unreadable));
    }
}

#[test]
fn impossible_requests_violate_the_protocol() {
    let view = View::first(member(1, &[])).expect("a view");
    let check = |asking: ReadRequest| {
        assert_eq!(Merge::new(&view).add(&[(Rank(0), asking)]), Err(Rank(0)));
    };
    check(update(2, endpoint(0, 1)));
    check(ReadRequest::TooLong(RequestId::Update {
        member: MemberId(2),
        number: 1,
    }));
}
