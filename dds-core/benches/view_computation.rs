//! What a change of a large view costs the thread that steps: two members with an endpoint each in
//! every one of many subgroups. One leaves, or removes all its endpoints, one by one. Prints a JSON
//! line for each: microseconds of all steps of the leader, and of the other member, from the request
//! to the end of the view. Then a hundred members with an endpoint each in every subgroup, of which
//! four write: one computation of the view without one of the others.
//!
//! `cargo bench -p spindle-dds-core --bench view_computation`

// The crate under test has no clock; the bench needs one.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use spindle_dds_core::membership::{
    Action, CONTROL_ROW_LEN, Detection, Endpoint, HostId, Member, MemberId, Membership, Notes,
    Proposal, Removal, RemovalReason, Request, Rules, SubgroupEnds, Touched, Trim, Update, View,
};
use spindle_dds_core::{DeliveryClass, RingSpec, SubgroupId, TopicKey};
use spindle_dds_transport::Rank;
use spindle_dds_transport::sim::{SimFabric, SimNetwork, SimOptions};

/// Epochs in which nothing was sent.
struct Ends(Arc<View>);

impl SubgroupEnds for Ends {
    fn wedge(&mut self, _: &Touched) -> bool {
        true
    }

    fn freeze(&mut self, which: &Touched) -> Result<Vec<Trim>, (Rank, String)> {
        let groups = self.0.subgroups.iter();
        let touched = groups.filter(|group| match which {
            Touched::All => true,
            Touched::Only(some) => some.contains(&group.subgroup),
        });
        let trim = |group: &spindle_dds_core::SubgroupSpec| Trim {
            subgroup: group.subgroup,
            counts: vec![0; group.senders.len()],
        };
        Ok(touched.map(trim).collect())
    }

    fn fence(&mut self, _: Rank) {}
}

/// So many members write; a view has no room for more senders in a thousand subgroups.
const WRITERS: u128 = 4;

fn member(id: u128, subgroups: u32) -> Member {
    let endpoint = |subgroup| Endpoint {
        subgroup: SubgroupId(subgroup),
        topic: TopicKey::of_name(&format!("topic {subgroup}")),
        ring: (id <= WRITERS).then(|| (DeliveryClass::Ordered, RingSpec::at_least(4, 256))),
        info: vec![7; 200],
        log: None,
    };
    Member {
        id: MemberId(id),
        host: HostId(1),
        address: Vec::new(),
        info: Vec::new(),
        updates: 0,
        endpoints: Arc::new(
            (0..subgroups)
                .map(|it| (u64::from(it), endpoint(it)))
                .collect(),
        ),
        notes: BTreeMap::new(),
    }
}

/// A proposal that changes nothing.
fn nothing(view: u64) -> Proposal {
    Proposal {
        view,
        removals: Vec::new(),
        joins: Vec::new(),
        updates: Vec::new(),
        refusals: Vec::new(),
        trims: Vec::new(),
        preparation: 0,
    }
}

/// The view of so many members.
fn crowd(members: u128, subgroups: u32) -> Arc<View> {
    let first = View::first(member(1, subgroups)).expect("a view");
    let joins = Proposal {
        joins: (2..=members).map(|id| member(id, subgroups)).collect(),
        ..nothing(1)
    };
    Arc::new(first.next(&joins).expect("a view"))
}

/// The view of both members.
fn both(subgroups: u32) -> Arc<View> {
    crowd(2, subgroups)
}

/// Steps both members until the view has ended at both; the time that each has taken.
fn time(view: &Arc<View>, requests: Vec<Request>) -> [Duration; 2] {
    let network = SimNetwork::new(1, 0, SimOptions::default());
    let rows: Vec<_> = (0..2)
        .map(|_| (network.add_node(), CONTROL_ROW_LEN))
        .collect();
    let control = network.open_control(&rows);
    let limit = u64::MAX / 4;
    let rules = Rules::new(Detection {
        timeout_ns: limit,
        preparation_ns: limit,
    });
    let begin = |rank| {
        let fabric = network.fabric(control, Rank(rank));
        Membership::<SimFabric>::new(fabric, view.clone(), rules, &[], Vec::new())
    };
    let mut members = [begin(0), begin(1)];
    for request in requests {
        members[1].request(request);
    }
    let mut taken = [Duration::ZERO; 2];
    let mut ended = [false; 2];
    for now in 1.. {
        network.settle();
        for (at, membership) in members.iter_mut().enumerate() {
            let mut ends = Ends(view.clone());
            let since = Instant::now();
            let action = membership.step(now, &mut ends);
            taken[at] += since.elapsed();
            match action {
                Some(Action::Prepare(preparation)) => {
                    membership.prepared(preparation.number, Ok(()));
                }
                Some(Action::Decide(_)) => drop(membership.decided(Ok(()))),
                Some(Action::Finish(_)) => ended[at] = true,
                Some(other) => panic!("{other:?}"),
                None => {}
            }
        }
        if ended == [true; 2] {
            break;
        }
    }
    taken
}

fn main() {
    for subgroups in [250, 500, 1000] {
        let view = both(subgroups);
        let remove = |endpoint| Update {
            member: MemberId(2),
            number: endpoint + 1,
            put: Vec::new(),
            remove: vec![endpoint],
            notes: Notes::default(),
        };
        let updates = (0..u64::from(subgroups)).map(remove).map(Request::Update);
        let changes = [
            ("leaves", vec![Request::Leave]),
            ("removes all, one by one", updates.collect()),
        ];
        for (change, requests) in changes {
            let [leader, other] = time(&view, requests).map(|taken| taken.as_micros());
            println!(
                "{{\"topics\": {subgroups}, \"change\": \"{change}\", \"leader_us\": {leader}, \
                 \"other_us\": {other}}}"
            );
        }
    }
    let members = 100;
    for subgroups in [250, 1000] {
        let view = crowd(members, subgroups);
        let leaves = Proposal {
            removals: vec![Removal {
                rank: 77,
                reason: RemovalReason::Left,
            }],
            ..nothing(view.id)
        };
        let since = Instant::now();
        let next = view.next(&leaves);
        let took = since.elapsed().as_micros();
        assert!(next.is_ok_and(|next| next.members.len() + 1 == members as usize));
        println!(
            "{{\"topics\": {subgroups}, \"members\": {members}, \"change\": \"leaves\", \
             \"view_us\": {took}}}"
        );
    }
}
