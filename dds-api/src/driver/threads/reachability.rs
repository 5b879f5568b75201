//! Whether all members of a view can be connected to a newcomer.

use spindle_dds_core::membership::{Member, View};
use spindle_dds_transport::hybrid::{host_of, sockets_of};

use crate::discovery::ParticipantInfo;
use crate::error::{Error, Result};

/// Checks that members of different hosts both listen, and that a newcomer is on the host that its
/// address names: members of one host vouch for each other's deaths.
///
/// # Errors
/// ERROR, for the newcomer.
pub(crate) fn check(view: &View, newcomer: &Member) -> Result<()> {
    let pid = ParticipantInfo::of(newcomer)?.pid;
    if host_of(&newcomer.address) != Some(newcomer.host.0) {
        let text = format!("process {pid} says that it is on another host than its address");
        return Err(Error::Error(text));
    }
    let listens = |member: &Member| !sockets_of(&member.address).is_empty();
    let apart = |a: &Member, b: &Member| a.host != b.host && !(listens(a) && listens(b));
    let Some(member) = view.members.iter().find(|it| apart(it, newcomer)) else {
        return Ok(());
    };
    let member = ParticipantInfo::of(member)?.pid;
    Err(Error::Error(format!(
        "processes {member} and {pid} are on different hosts, or meet in different directories, \
         and not both have spindle.listen: give it to all participants of a domain on several hosts"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::Guid;
    use spindle_dds_core::membership::{HostId, MemberId};
    use spindle_dds_transport::hybrid::{NetworkOptions, Station, StationOptions};
    use spindle_dds_transport::shm;

    /// A member at a station of its own, and the directory that makes its host.
    fn member(id: u128, network: bool) -> (Member, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let mut host = shm::HostOptions::new(0, id);
        host.directory = Some(directory.path().join("domains"));
        let network = network.then(|| NetworkOptions {
            listen: (std::net::Ipv4Addr::LOCALHOST, 0).into(),
            ..NetworkOptions::default()
        });
        let station = Station::open(&StationOptions { host, network }).unwrap();
        let address = station.address();
        let info = ParticipantInfo {
            guid: Guid([7; 16]),
            name: String::new(),
            subgroups: 4,
            pid: id as u32,
            start: 1,
        };
        let member = Member {
            id: MemberId(id),
            host: HostId(host_of(&address).unwrap()),
            address,
            info: info.to_bytes().unwrap(),
            updates: 0,
            endpoints: Default::default(),
            notes: Default::default(),
        };
        (member, directory)
    }

    #[test]
    fn members_of_different_hosts_must_listen() {
        for (there, newcomer, fits) in [
            (true, true, true),
            (true, false, false),
            (false, true, false),
        ] {
            let ((there, _kept), (newcomer, _too)) = (member(11, there), member(12, newcomer));
            let checked = check(&View::first(there).unwrap(), &newcomer);
            assert_eq!(checked.is_ok(), fits, "{checked:?}");
            if let Err(why) = checked {
                let text = why.to_string();
                assert!(
                    text.contains("11 and 12") && text.contains("spindle.listen"),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn a_newcomer_whose_host_is_not_that_of_its_address_is_refused() {
        let ((there, _kept), (mut newcomer, _too)) = (member(11, true), member(12, true));
        newcomer.host = there.host;
        let error = check(&View::first(there).unwrap(), &newcomer).unwrap_err();
        assert!(error.to_string().contains("another host"), "{error}");
    }
}
