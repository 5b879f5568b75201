//! A view that begins at once: for tests and benches of what happens within one view.
//!
//! It uses the product's own calls, [`Engine::enter`] and [`Engine::install`], over
//! any fabric. Nothing ends it but a failure: its heartbeat timeout never passes. As in the
//! product, ordered rings have room once all members have stepped and are ready.

use std::collections::BTreeMap;
use std::sync::Arc;

use spindle_dds_core::membership::{Detection, HostId, Member, MemberId, Rules, View};
use spindle_dds_core::{Engine, EpochMemory, PreparedSubgroup, PreparedView, Sink, SubgroupSpec};
use spindle_dds_transport::{Fabric, Rank};

/// A view of members of one host, with these subgroups, ascending by id.
pub(crate) fn view_of(members: usize, subgroups: Vec<SubgroupSpec>) -> Arc<View> {
    let member = |rank| Member {
        id: member_id(rank),
        host: HostId(1),
        address: Vec::new(),
        info: Vec::new(),
        updates: 0,
        endpoints: Default::default(),
        notes: BTreeMap::new(),
    };
    Arc::new(View {
        id: 1,
        members: (0..members as u16).map(Rank).map(member).collect(),
        subgroups,
        logs: BTreeMap::new(),
    })
}

fn member_id(rank: Rank) -> MemberId {
    MemberId(u128::from(rank.0) + 1)
}

/// Installs the view in an engine. `control` is its end of the view's control segment, whose rows
/// have [`CONTROL_ROW_LEN`](spindle_dds_core::membership::CONTROL_ROW_LEN) bytes; `segments` are
/// its ends of its subgroups' segments, in the order of the view.
pub(crate) fn begin_view<F: Fabric, S: Sink<F>>(
    engine: &Engine<F, S>,
    view: &Arc<View>,
    control: F,
    segments: impl IntoIterator<Item = F>,
) {
    let me = control.me();
    let never = u64::MAX / 4;
    let rules = Rules::new(Detection {
        timeout_ns: never,
        preparation_ns: never,
    });
    engine.enter(member_id(me), view.clone(), rules);
    let prepared = |(spec, segment): (&SubgroupSpec, F)| PreparedSubgroup {
        subgroup: spec.subgroup,
        memory: EpochMemory::new(spec, segment.me()).expect("memory"),
        segment,
    };
    let mine = view
        .subgroups
        .iter()
        .filter(|spec| spec.members.contains(&me));
    let prepared = PreparedView {
        view: view.clone(),
        control,
        subgroups: mine.zip(segments).map(prepared).collect(),
    };
    engine.install(prepared).expect("the view begins");
}
