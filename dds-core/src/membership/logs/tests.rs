//! The logs of topics in views, and where epochs begin.

use std::sync::Arc;

use spindle_dds_transport::sim::Rng;

use super::*;
use crate::membership::proposal::{Notes, Proposal, Removal, RemovalReason, Trim, Update};
use crate::membership::view::View;
use crate::spec::RingSpec;
use crate::storage::{Generation, Logger};
use crate::{DeliveryClass, SubgroupSpec};

/// The groups that a newcomer is told.
type Told = Vec<(TopicKey, LogGroup)>;

fn end_of(log: u128, end: u64) -> LogEnd {
    LogEnd {
        log: LogId(log),
        lineage: 0,
        generation: 0,
        end,
        confirmed: None,
        proposed: Vec::new(),
        follows: None,
        as_of: 0,
    }
}

fn reads(topic: u128) -> Endpoint {
    Endpoint {
        subgroup: SubgroupId(topic as u32 % 3),
        topic: TopicKey(topic),
        ring: None,
        info: Vec::new(),
        log: None,
    }
}

fn writes(topic: u128) -> Endpoint {
    let ring = RingSpec::at_least(4, 256);
    Endpoint {
        ring: Some((DeliveryClass::Ordered, ring)),
        ..reads(topic)
    }
}

fn logs(topic: u128, end: LogEnd) -> Endpoint {
    Endpoint {
        log: Some(end),
        ..reads(topic)
    }
}

/// The view after this one, in which a member puts and removes endpoints.
fn changed(view: &View, put: Vec<(u64, Endpoint)>, remove: &[u64]) -> Result<View, ViewError> {
    let mut proposal = Proposal::empty(view.id);
    proposal.updates.push(update(&view.members[0], put, remove));
    view.next(&proposal)
}

fn update(member: &Member, put: Vec<(u64, Endpoint)>, remove: &[u64]) -> Update {
    Update {
        member: member.id,
        number: member.updates + 1,
        put,
        remove: remove.to_vec(),
        notes: Notes::default(),
    }
}

fn base(view: &View, topic: u128) -> Option<(u64, u64)> {
    let subgroup = view.subgroup(reads(topic).subgroup)?;
    Some((subgroup.epoch, subgroup.base))
}

#[test]
fn an_epoch_begins_behind_all_that_its_logs_have() {
    let founder = Member::test(1, [writes(0), logs(0, end_of(7, 40)), reads(1)]);
    let first = View::first(founder).expect("a view");
    assert_eq!(
        (base(&first, 0), base(&first, 1)),
        (Some((1, 40)), Some((1, 0)))
    );
    // Topics 1 and 4 share a subgroup.
    let second = changed(&first, vec![(3, logs(4, end_of(8, 90)))], &[]).expect("a view");
    assert_eq!(base(&second, 1), Some((2, 90)));
    assert_eq!(base(&second, 0), base(&first, 0), "it goes on");
    // A new subgroup, then a log that is behind.
    let third = changed(&second, vec![(4, logs(2, end_of(9, 5)))], &[]).expect("a view");
    assert_eq!(base(&third, 2), Some((3, 5)));
    let mut proposal = Proposal::empty(third.id);
    let put = vec![(1, logs(0, end_of(7, 41)))];
    proposal.updates.push(update(&third.members[0], put, &[]));
    for (counts, begins) in [(vec![0], 41), (vec![9], 49)] {
        let subgroup = SubgroupId(0);
        proposal.trims = vec![Trim { subgroup, counts }];
        let fourth = third.next(&proposal).expect("a view");
        assert_eq!(base(&fourth, 0), Some((4, begins)));
    }
    let all = [&first, &second, &third];
    assert!(
        all.iter()
            .all(|view| View::from_bytes(&view.to_bytes()).as_ref() == Ok(*view))
    );
}

#[test]
fn a_newcomer_is_told_the_logs() {
    let founder = Member::test(1, [writes(0), logs(0, end_of(7, 40))]);
    let view = View::first(founder).expect("a view");
    let group = &view.logs[&TopicKey(0)];
    assert!(group.is_open() && view.subgroups[0].is_logged);
    // Later they do not follow from what is announced.
    let next = changed(&view, vec![(5, reads(1))], &[]).expect("a view");
    assert_eq!(&next.logs[&TopicKey(0)], group);
    assert_eq!(View::from_bytes(&next.to_bytes()), Ok(next.clone()));
    let without = changed(&next, vec![], &[1]).expect("a view");
    assert!(without.logs.is_empty() && !without.subgroups[0].is_logged);
}

#[test]
fn what_a_newcomer_is_told_of_logs_is_checked() {
    let endpoints = [logs(0, end_of(7, 40)), logs(1, end_of(8, 3)), reads(2)];
    let view = View::first(Member::test(1, endpoints)).expect("a view");
    let told: Vec<_> = view.logs.clone().into_iter().collect();
    let read = |change: &dyn Fn(&mut Told)| {
        let mut told = told.clone();
        change(&mut told);
        LogEnds::of(&view.members).read(told, view.id)
    };
    assert_eq!(read(&|_| ()), Some(view.logs.clone()));
    let stranger = Logger {
        member: MemberId(2),
        log: LogId(7),
    };
    let other_log = Logger {
        member: MemberId(1),
        log: LogId(8),
    };
    let rosters = |logs: Vec<u128>| vec![roster(logs)];
    let lies: [&dyn Fn(&mut Told); 11] = [
        &|told| told.reverse(),
        &|told| told[1] = told[0].clone(),
        &|told| told.insert(0, told[0].clone()),
        &|told| told.clear(),
        &|told| told[1].0 = TopicKey(2),
        &|told| told[0].1.loggers[0] = stranger,
        &|told| told[0].1.loggers[0] = other_log,
        &|told| told[0].1.loggers = vec![told[0].1.loggers[0]; 2],
        &|told| told[0].1.rosters = rosters(vec![9, 8]),
        &|told| told[0].1.rosters = rosters((0..300).collect()),
        &|told| told[0].1.since = 2,
    ];
    for (at, lie) in lies.iter().enumerate() {
        assert_eq!(read(lie), None, "lie {at}");
    }
    let strange = View {
        logs: BTreeMap::new(),
        ..view.clone()
    };
    let read = View::from_bytes(&strange.to_bytes());
    assert_eq!(read, Err(ViewError::Unreadable));
}

#[test]
fn logs_that_cannot_be_are_refused() {
    let view = View::first(Member::test(1, [logs(0, end_of(7, 40))])).expect("a view");
    let refused = |endpoint: Endpoint| changed(&view, vec![(5, endpoint)], &[]).expect_err("it");
    assert_eq!(
        refused(logs(0, end_of(8, 0))),
        ViewError::Logs(SubgroupId(0))
    );
    let elsewhere = Endpoint {
        subgroup: SubgroupId(2),
        ..logs(0, end_of(8, 0))
    };
    assert_eq!(refused(elsewhere), ViewError::Logs(SubgroupId(2)));
    let lies: [&dyn Fn(&mut LogEnd); 4] = [
        &|end| end.end = POSITION_MAX + 1,
        &|end| end.confirmed = Some(roster(0..257)),
        &|end| end.confirmed = Some(roster([4, 4])),
        &|end| end.proposed = vec![roster([1]); LOG_ROSTERS_MAX + 1],
    ];
    for lie in lies {
        let mut end = end_of(8, 0);
        lie(&mut end);
        assert_eq!(refused(logs(1, end)), ViewError::LogEnd(LogId(8)));
    }
}

fn roster(logs: impl IntoIterator<Item = u128>) -> Roster {
    Roster {
        generation: Generation::default(),
        epoch: 1,
        logs: logs.into_iter().map(LogId).collect(),
    }
}

/// Where nothing of a subgroup is touched, its epoch goes on, and so do the logs of its topics.
#[test]
fn logs_change_with_the_epoch_of_their_subgroup_alone() {
    let (mut touched_once, mut went_on) = (0, 0);
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let mut view = View::first(draw_member(1, &mut rng)).expect("a view");
        for _ in 0..30 {
            let mut proposal = draw_proposal(&view, &mut rng);
            proposal.trims = draw_trims(&view, &mut rng);
            let Ok(next) = view.next(&proposal) else {
                continue;
            };
            let touched = proposal.touched(&view);
            let is_kept = |topic: u128| !touched.contains(reads(topic).subgroup);
            for topic in (0..TOPICS).filter(|topic| is_kept(*topic)) {
                let topic = TopicKey(topic);
                assert_eq!(next.logs.get(&topic), view.logs.get(&topic), "seed {seed}");
                went_on += u32::from(next.logs.contains_key(&topic));
            }
            for old in &view.subgroups {
                let new = next.subgroup(old.subgroup);
                if !touched.contains(old.subgroup) {
                    assert_eq!(new.map(without_ranks), Some(without_ranks(old)));
                }
            }
            for new in &next.subgroups {
                check_subgroup(&next, new);
                let (old, at) = (view.subgroup(new.subgroup), new.subgroup.index());
                if let Some(old) = old {
                    let trim = proposal.trims.iter();
                    let mut trim = trim.filter(|trim| trim.subgroup == new.subgroup);
                    let end = trim.next().map_or(0, |trim| old.end(&trim.counts));
                    let ended = touched.contains(new.subgroup);
                    assert!(!ended || new.base >= end, "{at} in seed {seed}");
                    touched_once += u32::from(ended && new.is_logged);
                }
            }
            assert_eq!(view.next(&proposal).as_ref(), Ok(&next));
            assert_eq!(View::from_bytes(&next.to_bytes()).as_ref(), Ok(&next));
            view = next;
        }
    }
    assert!(
        touched_once > 1000 && went_on > 1000,
        "{touched_once}, {went_on}"
    );
}

const TOPICS: u128 = 6;

/// A member that leaves elsewhere moves the ranks of others.
fn without_ranks(spec: &SubgroupSpec) -> SubgroupSpec {
    SubgroupSpec {
        members: Vec::new(),
        ..spec.clone()
    }
}

fn check_subgroup(view: &View, subgroup: &SubgroupSpec) {
    let endpoints = view.members.iter().flat_map(|it| it.endpoints.values());
    let here = endpoints.filter(|it| it.subgroup == subgroup.subgroup);
    let ends = here.filter_map(|it| it.log.as_ref());
    let highest = ends.clone().map(|end| end.end).max();
    assert_eq!(subgroup.is_logged, highest.is_some());
    let has_group = |topic: &TopicKey| view.logs.contains_key(topic);
    assert_eq!(subgroup.is_logged, subgroup.topics.iter().any(has_group));
    assert!(subgroup.base >= highest.unwrap_or(0));
}

fn draw_endpoint(member: u128, rng: &mut Rng) -> (u64, Endpoint) {
    let topic = rng.below(TOPICS as usize);
    let kind = rng.below(4);
    let endpoint = match kind {
        0 => reads(topic as u128),
        1 => writes(topic as u128),
        _ => {
            let log = member * TOPICS + topic as u128;
            let mut end = end_of(log, rng.below(500) as u64);
            end.as_of = rng.below(9) as u64;
            end.follows = (kind == 3).then(|| rng.below(3) as u64);
            end.lineage = log * u128::from(rng.chance(0.2));
            logs(topic as u128, end)
        }
    };
    ((kind.min(2) * TOPICS as usize + topic) as u64, endpoint)
}

fn draw_member(id: u128, rng: &mut Rng) -> Member {
    let count = rng.below(6);
    let endpoints = (0..count).map(|_| draw_endpoint(id, rng)).collect();
    Member {
        endpoints: Arc::new(endpoints),
        ..Member::test(id, [])
    }
}

fn draw_proposal(view: &View, rng: &mut Rng) -> Proposal {
    let mut proposal = Proposal::empty(view.id);
    for (rank, member) in (0..).zip(&view.members) {
        match rng.below(12) {
            0 | 1 => {
                let put = draw_endpoint(member.id.0, rng);
                proposal.updates.push(update(member, vec![put], &[]));
            }
            2 | 3 => {
                let gone = rng.below(3 * TOPICS as usize) as u64;
                proposal.updates.push(update(member, vec![], &[gone]));
            }
            4 => proposal.removals.push(Removal {
                rank,
                reason: match rng.chance(0.3) {
                    true => RemovalReason::Failed("it is gone".to_owned()),
                    false => RemovalReason::Left,
                },
            }),
            _ => {}
        }
    }
    if view.members.len() < 5 && rng.chance(0.4) {
        let id = 100 * u128::from(view.id) + rng.below(100) as u128 + 2;
        proposal.joins.push(draw_member(id, rng));
    }
    proposal
}

/// Each touched subgroup needs a trim; of the others one changes nothing.
fn draw_trims(view: &View, rng: &mut Rng) -> Vec<Trim> {
    let trim = |subgroup: &SubgroupSpec| {
        let counts = subgroup.senders.iter().map(|_| rng.below(100) as u64);
        Trim {
            subgroup: subgroup.subgroup,
            counts: counts.collect(),
        }
    };
    view.subgroups.iter().map(trim).collect()
}
