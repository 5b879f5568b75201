//! Network partitions of groups over several hosts. A host is a network namespace with
//! processes. Skipped where such namespaces cannot be created.

mod member;
#[path = "../../../transport-rdma/tests/namespaces/mod.rs"]
mod network;

use std::thread;
use std::time::Duration;

use member::Member;
use network::Network;

const CUT_FOR: Duration = Duration::from_secs(5);

/// All members publish, and one host is cut off for five seconds; the other members are a
/// majority. Then a new member starts on that host.
fn check_partition(hosts: &[usize], cut: usize) {
    let Some(network) = Network::new(hosts.iter().max().map_or(1, |last| last + 1)) else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let start = |host: usize, number: usize, members: usize| {
        Member::start(&network, directory.path(), host, number, members)
    };
    let numbered = hosts.iter().enumerate();
    let mut members: Vec<Member> = numbered
        .map(|(number, &host)| start(host, number, hosts.len()))
        .collect();
    members.iter_mut().for_each(|it| it.wait_for("publishing"));
    thread::sleep(Duration::from_millis(300));
    network.set_reached(cut, false);
    thread::sleep(CUT_FOR);
    network.set_reached(cut, true);
    let (mut stay, stop): (Vec<_>, Vec<_>) = members.into_iter().partition(|it| it.host != cut);
    // The new member joins the remaining group, and does not found another one.
    let mut late = start(cut, hosts.len(), stay.len() + 1);
    late.wait_for("publishing");
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
        // The samples of each remaining member arrive long after the cut.
        let own = member
            .order
            .iter()
            .filter(|(writer, _)| *writer == member.number);
        let own: Vec<u32> = own.map(|(_, number)| *number).collect();
        assert_eq!(own, (0..own.len() as u32).collect::<Vec<_>>());
        assert!(own.len() > 1000, "{} of {}", own.len(), member.number);
    }
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
