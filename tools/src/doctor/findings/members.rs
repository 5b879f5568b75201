//! Findings about the domain's members on this host.

use super::super::domain::Domain;
use super::{Finding, Found, ok, warning};

/// From this version on, the kernel tells by a socket whether the process that made it lives.
const PEER_PIDFD: (u32, u32) = (6, 5);

impl Found<'_> {
    pub(super) fn domain(&self) -> Finding {
        let check = "domain";
        let members = match self.domain {
            Domain::Members(count) => *count as u64,
            _ => 0,
        };
        let what = match self.domain {
            Domain::NoDirectory => "no participants yet: the directory does not exist".to_owned(),
            Domain::NoMembers => "no participants known on this host".to_owned(),
            Domain::Members(1) => "1 member in the record".to_owned(),
            Domain::Members(count) => format!("{count} members in the record"),
            Domain::Unusable(_) => "unknown: the directory cannot be used".to_owned(),
        };
        ok(check, what).with([("members", Some(members))])
    }

    /// Members in other namespaces than this command, and what they lack for that.
    pub(super) fn namespaces(&self) -> Vec<Finding> {
        let check = "namespaces";
        let members = self.members;
        let mut findings = Vec::new();
        for kind in ["pid", "mnt", "net", "user"] {
            let there = members.processes.iter();
            let there = there.filter(|process| process.other_namespaces.contains(&kind));
            let pids: Vec<_> = there.map(|process| process.pid.to_string()).collect();
            if !pids.is_empty() {
                let what = format!(
                    "processes {} are in another {kind} namespace",
                    pids.join(", ")
                );
                let finding = self.of_namespace(kind, what);
                findings.push(finding.with([("processes", Some(pids.len() as u64))]));
            }
        }
        let processes = members.processes.iter();
        let visible = processes
            .filter(|it| it.other_namespaces.contains(&"pid"))
            .count();
        let hidden = members.foreign.saturating_sub(visible as u64);
        if hidden > 0 {
            let what = format!(
                "{hidden} processes of members are in a pid namespace that is not seen here"
            );
            findings.push(
                self.of_namespace("pid", what)
                    .with([("processes", Some(hidden))]),
            );
        }
        match findings.is_empty() {
            true => vec![ok(
                check,
                "all members are in those of this command".to_owned(),
            )],
            false => findings,
        }
    }

    fn of_namespace(&self, kind: &str, what: String) -> Finding {
        let check = "namespaces";
        match kind {
            "pid" => match self.machine.kernel_version() {
                Some(version) if version >= PEER_PIDFD => ok(
                    check,
                    format!("{what}: they are asked by their sockets whether they live"),
                ),
                _ => warning(
                    check,
                    format!(
                        "{what}, and this kernel is older than 6.5: a killed member there counts as \
                         alive while a child that it has forked holds its socket"
                    ),
                    "run them in one pid namespace (docker run --pid), or a newer kernel",
                ),
            },
            "net" => warning(
                check,
                format!(
                    "{what}: if the directory is removed, newcomers there do not see the members"
                ),
                "keep the directory where nothing removes it, or run them in one network namespace",
            ),
            "mnt" => warning(
                check,
                format!(
                    "{what}: if the directory is removed, members there may not find a new one"
                ),
                "mount the directory's parent, not the directory itself, in each container",
            ),
            _ => warning(
                check,
                format!("{what}: if it maps user ids differently, participants there are refused"),
                "map the participants' user to the same id",
            ),
        }
    }
}
