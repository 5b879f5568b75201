//! Network partitions of groups over several hosts. A host is a network namespace with
//! processes. Skipped where such namespaces cannot be created.

mod member;
#[path = "../../../transport-rdma/tests/namespaces/mod.rs"]
mod network;

use std::thread;
use std::time::Duration;

use std::collections::BTreeMap;

use member::{Ended, Member};
use network::Network;

const CUT_FOR: Duration = Duration::from_secs(5);

/// Members on these hosts, which publish, and one host that is cut off for five seconds; the other
/// members are a majority.
struct Partition {
    network: Network,
    directory: tempfile::TempDir,
    members: Vec<Member>,
}

impl Partition {
    /// `None` where it cannot be made. `rejoin` is what becomes of those that are cut off.
    fn make(hosts: &[usize], cut: usize, rejoin: &str) -> Option<Self> {
        let mut partition = Self {
            network: Network::new(hosts.iter().max().map_or(1, |last| last + 1))?,
            directory: tempfile::tempdir().expect("a directory"),
            members: Vec::new(),
        };
        for (number, &host) in hosts.iter().enumerate() {
            let member = partition.start(host, number, hosts.len(), rejoin);
            partition.members.push(member);
        }
        let members = &mut partition.members;
        members.iter_mut().for_each(Member::wait_until_it_hears_all);
        partition.network.set_reached(cut, false);
        thread::sleep(CUT_FOR);
        partition.network.set_reached(cut, true);
        Some(partition)
    }

    fn start(&self, host: usize, number: usize, members: usize, rejoin: &str) -> Member {
        let directory = self.directory.path();
        Member::start(&self.network, directory, host, number, members, rejoin)
    }
}

/// Those on the host that was cut off stop, and a new member starts there.
fn check_partition(hosts: &[usize], cut: usize) {
    let Some(mut partition) = Partition::make(hosts, cut, "off") else {
        return;
    };
    let members = std::mem::take(&mut partition.members);
    let (mut stay, stop): (Vec<_>, Vec<_>) = members.into_iter().partition(|it| it.host != cut);
    // The new member joins the remaining group, and does not found another one.
    let mut late = partition.start(cut, hosts.len(), stay.len() + 1, "off");
    late.wait_until_it_hears_all();
    let all = stay.iter_mut().chain([&mut late]);
    all.for_each(Member::tell_to_leave);
    let ended = stay.into_iter().map(Member::finish);
    let ended: Vec<_> = ended.collect();
    let late = late.finish();
    assert_eq!(late.failed, None);
    assert!(ended[0].order.ends_with(&late.order) && !late.order.is_empty());
    for stopped in stop.into_iter().map(Member::finish) {
        let reason = stopped.failed.as_deref().unwrap_or("it did not stop");
        assert!(reason.contains("no majority"), "{reason}");
        let whole = &ended[0].order;
        assert!(whole.len() > stopped.order.len(), "the others went on");
        assert_eq!(
            stopped.order,
            whole[..stopped.order.len()],
            "its order is a prefix of the others'"
        );
    }
    for member in &ended {
        assert_eq!(member.failed, None);
        assert_eq!(member.order, ended[0].order);
        let own = check_all_of(member.number, &member.order);
        // They arrive long after the cut.
        assert!(own > 1000, "{own} of {}", member.number);
    }
}

/// All samples of a member are there, in order. Returns how many.
fn check_all_of(number: u32, order: &[(u32, u32)]) -> u64 {
    let own = order.iter().filter(|(writer, _)| *writer == number);
    let own: Vec<u32> = own.map(|(_, number)| *number).collect();
    assert_eq!(
        own,
        (0..own.len() as u32).collect::<Vec<_>>(),
        "of {number}"
    );
    own.len() as u64
}

/// Those on the host that was cut off come back by themselves: they lose nothing that they wrote, and
/// have the common order but for what they count as lost.
fn check_return(hosts: &[usize], cut: usize) {
    let Some(mut partition) = Partition::make(hosts, cut, "auto") else {
        return;
    };
    let members = &mut partition.members;
    for away in members.iter_mut().filter(|it| it.host == cut) {
        away.wait_for("out");
        away.wait_for("back");
    }
    thread::sleep(Duration::from_millis(300));
    members.iter_mut().for_each(Member::tell_to_leave);
    let members = std::mem::take(members).into_iter();
    let ended: Vec<Ended> = members.map(Member::finish).collect();
    let (stayed, returned): (Vec<&Ended>, Vec<&Ended>) = ended
        .iter()
        .partition(|it| hosts[it.number as usize] != cut);
    let whole = &stayed[0].order;
    for member in &ended {
        assert_eq!(member.failed, None);
        // Also what was written while its host was cut off.
        let own = check_all_of(member.number, whole);
        assert_eq!(own, member.written, "of member {}", member.number);
        assert_eq!(member.gone, 0, "of member {}", member.number);
    }
    for member in stayed {
        assert_eq!(
            (member.outages, member.lost),
            (0, 0),
            "of member {}",
            member.number
        );
        assert_eq!(member.order, *whole);
    }
    for member in returned {
        assert_eq!(member.outages, 1, "of member {}", member.number);
        check_gap(whole, member);
    }
}

/// What a member has that was out once: the common order with a gap, whose samples it counts as lost.
fn check_gap(whole: &[(u32, u32)], member: &Ended) {
    let own = &member.order;
    let first = own
        .iter()
        .zip(whole)
        .take_while(|(own, it)| own == it)
        .count();
    let rest = &own[first..];
    assert!(
        first > 0 && !rest.is_empty(),
        "{first} samples before the gap: {:?}, not {:?}",
        own.iter().take(8).collect::<Vec<_>>(),
        whole.iter().take(8).collect::<Vec<_>>()
    );
    assert!(whole.ends_with(rest), "it has all from its return on");
    assert!(first + rest.len() <= whole.len(), "nothing comes twice");
    // The last sample that each writer sent is not logged, and not missed.
    let mut last: BTreeMap<u32, u32> = BTreeMap::new();
    let jumps = own.iter().map(|&(writer, number)| {
        let before = last.insert(writer, number);
        u64::from(before.map_or(0, |before| number - before - 1))
    });
    let missed: u64 = jumps.sum();
    assert_eq!(member.lost, missed);
    assert_eq!(missed, (whole.len() - own.len()) as u64);
    assert!(missed > 0, "the others went on");
}

#[test]
fn one_of_three_hosts_is_cut_off_and_comes_back_by_itself() {
    check_return(&[0, 1, 2], 2);
}

#[test]
fn the_host_of_the_founder_is_cut_off_and_comes_back_by_itself() {
    check_return(&[0, 1, 2], 0);
}

#[test]
fn one_of_three_hosts_is_cut_off() {
    check_partition(&[0, 1, 2], 2);
}

#[test]
fn one_member_is_cut_off_from_two_on_one_host() {
    check_partition(&[0, 0, 1], 1);
}

#[test]
fn the_founder_is_cut_off() {
    check_partition(&[0, 1, 1], 0);
}
