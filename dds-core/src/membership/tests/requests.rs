//! Requests in rows, at the limits of their lengths, and in a proposal.

use spindle_dds_transport::sim::{Rng, SimFabric};
use spindle_dds_transport::{MEMBERS_MAX, Rank};

use super::world::{World, endpoint, member};
use crate::limits::{REASON_LEN_MAX, REQUEST_LEN_MAX, REQUESTS_LEN_MAX};
use crate::membership::merge::Merge;
use crate::membership::proposal::ReadRequest;
use crate::membership::protocol::shortened;
use crate::membership::row::Text;
use crate::membership::*;

const ID: MemberId = MemberId(1);
/// The length of a pack, and how it is written.
const HEAD_LEN: usize = 4;

fn update(number: u64, info: usize) -> Update {
    let mut large = endpoint(&mut Rng::new(0));
    // Bytes that no compression makes shorter.
    let mut bytes = Rng::new(number);
    large.info = (0..info).map(|_| bytes.below(256) as u8).collect();
    Update {
        member: ID,
        number,
        put: vec![(1, large)],
        remove: Vec::new(),
        notes: Notes::default(),
    }
}

/// An update that takes this many bytes in a row: from 300 to 16,400, so that the length of its
/// information is two bytes, or more than 20,000, so that it is three.
fn update_of(number: u64, len: usize) -> Request {
    let encoded = |info: usize| {
        let request = Request::Update(update(number, info));
        // A byte says how the request is written.
        postcard::to_allocvec(&request).unwrap().len() + 1
    };
    let info = if len > 20_000 { 1 << 14 } else { 200 };
    let request = Request::Update(update(number, info + len - encoded(info)));
    assert_eq!(postcard::to_allocvec(&request).unwrap().len() + 1, len);
    request
}

/// A lonely member that has published these requests.
fn publishing(requests: Vec<Request>) -> Membership<SimFabric> {
    let mut world = World::of(vec![member(ID.0, &mut Rng::new(0))]);
    let mut membership = world.nodes.remove(0).membership;
    requests.into_iter().for_each(|it| membership.request(it));
    membership.publish_requests();
    membership
}

/// Number of requests in its row, and their length.
fn published(requests: Vec<Request>) -> (usize, u64) {
    let membership = publishing(requests);
    let len = membership.rows.len(membership.me(), Text::Request);
    (membership.requests_published, len)
}

#[test]
fn a_request_is_published_whole_up_to_the_longest() {
    let (count, len) = published(vec![update_of(1, REQUEST_LEN_MAX)]);
    assert_eq!((count, len), (1, (REQUEST_LEN_MAX + HEAD_LEN) as u64));
    let (count, len) = published(vec![update_of(1, REQUEST_LEN_MAX + 1)]);
    assert!(count == 1 && len < 100, "{len}");
}

#[test]
fn requests_are_published_as_long_as_there_is_room_in_the_row() {
    let rest = REQUESTS_LEN_MAX - HEAD_LEN - REQUEST_LEN_MAX - 1000;
    let three = |rest| {
        let lengths = [REQUEST_LEN_MAX, 1000, rest];
        let updates = (1..).zip(lengths).map(|(at, len)| update_of(at, len));
        published(updates.collect())
    };
    assert_eq!(three(rest), (3, REQUESTS_LEN_MAX as u64));
    let two = REQUEST_LEN_MAX + HEAD_LEN + 1000 + HEAD_LEN - 1;
    assert_eq!(three(rest + 1), (2, two as u64));
    let several = (1..=9).map(|number| update_of(number, 1000)).collect();
    let (count, len) = published(several);
    assert!(
        count == 9 && len < 9000 + HEAD_LEN as u64,
        "{count} in {len}"
    );
}

/// Endpoints that are alike, as most are, take little room.
#[test]
fn thousands_of_endpoints_that_are_alike_are_published_at_once() {
    let alike = |number| {
        let mut update = update(number, 0);
        let name = format!("topic {number}").into_bytes();
        update.put[0].1.info = [name, vec![8; 500]].concat();
        Request::Update(update)
    };
    let (count, len) = published((1..=2000).map(alike).collect());
    assert!(count == 2000 && len < 1 << 16, "{count} in {len}");
    let (count, _) = published((1..=20_000).map(alike).collect());
    assert!(
        (2000..20_000).contains(&count),
        "{count}: what is read is bounded"
    );
}

/// A view has the first `updates` updates of its member.
fn view(updates: u64) -> View {
    let member = Member {
        updates,
        ..member(ID.0, &mut Rng::new(0))
    };
    View::first(member).unwrap()
}

/// Numbers of the updates that a proposal takes, of these that are requested.
fn taken(view: &View, requested: &[u64]) -> Result<Vec<u64>, Rank> {
    let mut merge = Merge::new(view);
    for number in requested {
        let request = Request::Update(update(*number, 1));
        merge.add(&[(Rank(0), ReadRequest::Whole(request))])?;
    }
    let updates = merge.into_proposal().updates;
    Ok(updates.iter().map(|update| update.number).collect())
}

#[test]
fn an_update_is_taken_once_and_in_its_turn() {
    let view = view(3);
    assert_eq!(taken(&view, &[3, 4, 4, 5]), Ok(vec![4, 5]));
    assert_eq!(taken(&view, &[5]), Err(Rank(0)));
    assert_eq!(taken(&view, &[4, 6]), Err(Rank(0)));
}

/// A view of as many members as there can be, but for these many.
fn full_but_for(free: usize) -> View {
    let mut others = Proposal::empty(1);
    let newcomers = 2..=(MEMBERS_MAX - free) as u128;
    others.joins = newcomers.map(|id| member(id, &mut Rng::new(0))).collect();
    view(0).next(&others).unwrap()
}

#[test]
fn a_group_that_is_full_refuses_newcomers_for_now_and_lets_in_as_many_as_have_room() {
    let join = |id| {
        let newcomer = member(id, &mut Rng::new(0));
        (Rank(7), ReadRequest::Whole(Request::Join(newcomer)))
    };
    let asked: Vec<_> = (1000..1005).map(join).collect();
    let leave = (Rank(9), ReadRequest::Whole(Request::Leave));
    let judged = |free: usize, asked: &[(Rank, ReadRequest)]| {
        let view = full_but_for(free);
        let mut merge = Merge::new(&view);
        merge.add(asked).unwrap();
        let proposal = merge.into_proposal();
        let next = view.next(&proposal).unwrap();
        assert_eq!(proposal.joins.len() + proposal.refusals.len(), 5);
        for refusal in &proposal.refusals {
            assert!(refusal.is_lack && refusal.reason.contains("1 to 256 participants"));
        }
        (proposal.joins.len(), next.members.len())
    };
    assert_eq!(judged(0, &asked), (0, MEMBERS_MAX));
    assert_eq!(judged(2, &asked), (2, MEMBERS_MAX));
    assert_eq!(judged(5, &asked), (5, MEMBERS_MAX));
    let with_leave = [&[leave][..], &asked].concat();
    assert_eq!(judged(0, &with_leave), (1, MEMBERS_MAX));
}

#[test]
fn a_cause_is_cut_where_a_character_ends() {
    let short = "é".repeat(REASON_LEN_MAX / 2);
    assert_eq!(shortened(&short), short);
    let long = format!("a{short}");
    assert_eq!(shortened(&long), long[..REASON_LEN_MAX - 1]);
}
