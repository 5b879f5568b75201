//! Findings about the domain's directory: whether it can be used, its file system, and what may
//! remove it, hide it, or stand beside it.

use super::super::domain::Domain;
use super::super::place::{Hazard, Refused};
use super::{Finding, Found, error, mebibytes, number, ok, warning};

/// Files that a participant makes in the directory: the record, and a socket for each.
const FILES: u64 = 2;

impl Found<'_> {
    pub(super) fn directory(&self) -> Finding {
        let (check, place) = ("directory", self.place);
        let path = place.directory.display();
        if let Domain::Unusable(problem) = self.domain {
            return error(
                check,
                problem.clone(),
                "correct it, or set spindle.directory to another directory",
            );
        }
        match place.refused {
            Some(Refused::ReadOnly) => {
                let point = place
                    .mount
                    .as_ref()
                    .map(|it| it.point.display().to_string());
                let point = point.unwrap_or_else(|| "its file system".to_owned());
                let what = format!("{path} is read-only: {point} is mounted so");
                let words = "mount it for writing, or set spindle.directory to another directory";
                error(check, what, words)
            }
            Some(Refused::NoPermission) => {
                let what = format!("{path} cannot be written to by this user");
                error(
                    check,
                    what,
                    "set spindle.directory to a directory of this user",
                )
            }
            None => match self.domain {
                Domain::NoDirectory => ok(check, format!("{path} does not exist yet")),
                _ => ok(check, format!("{path} is of this user alone")),
            },
        }
    }

    /// Whether there is room for the record of the domain, and for a socket of each participant.
    pub(super) fn directory_space(&self) -> Finding {
        let check = "directory-space";
        let Some(room) = self.place.room else {
            return ok(check, "unknown".to_owned());
        };
        let needed = self.scale.record_bytes();
        let needed_files = FILES + self.scale.missing();
        let what = format!(
            "{} and {} files free where {} is; {} and {needed_files} files needed",
            mebibytes(room.free_bytes),
            number(room.free_files),
            self.place.directory.display(),
            mebibytes(needed),
        );
        let has = |times: u64| {
            let files = room
                .free_files
                .is_none_or(|free| free >= times * needed_files);
            files && room.free_bytes >= times * needed
        };
        let words = "free some space there, or set spindle.directory to another file system: \
                     newcomers are refused without room";
        let finding = match (has(1), has(4)) {
            (false, _) => error(check, what, words),
            (true, false) => warning(check, what, words),
            (true, true) => ok(check, what),
        };
        finding.with([
            ("free", Some(room.free_bytes)),
            ("needed", Some(needed)),
            ("free_files", room.free_files),
            ("needed_files", Some(needed_files)),
        ])
    }

    /// What may remove the directory, or hide it from other participants.
    pub(super) fn directory_place(&self) -> Vec<Finding> {
        let check = "directory-place";
        let path = self.place.directory.display();
        let hazards = self.place.hazards.iter();
        let findings: Vec<_> = hazards
            .map(|hazard| match hazard {
                Hazard::Logout => warning(
                    check,
                    format!("{path} is removed when this user logs out for the last time"),
                    "leave spindle.directory at its default, or loginctl enable-linger",
                ),
                Hazard::RemoveIpc => warning(
                    check,
                    format!("{path}: systemd-logind removes it at this user's last logout"),
                    "leave spindle.directory at its default, or set RemoveIPC=no in logind.conf",
                ),
                Hazard::Cleaner { by, age } => warning(
                    check,
                    format!(
                        "{path}: files not used for {age} are removed ({})",
                        by.display()
                    ),
                    "exempt it: a line 'x /tmp/spindle-dds-*' in a file of /etc/tmpfiles.d; for \
                     tmpreaper and tmpwatch, their options",
                ),
                Hazard::PrivateTmp => warning(
                    check,
                    format!("{path} is of one service alone (PrivateTmp=yes)"),
                    "set spindle.directory to one that all participants see, for example of \
                     RuntimeDirectory=",
                ),
                Hazard::Container(what) => warning(
                    check,
                    format!("{path} is of this container alone ({what})"),
                    "participants of other containers and of the host do not see it: set \
                     spindle.directory to a shared volume",
                ),
            })
            .collect();
        match findings.is_empty() {
            true => vec![ok(
                check,
                format!("nothing is known that removes or hides {path}"),
            )],
            false => findings,
        }
    }

    /// Other directories in which processes of this user have the same domain.
    pub(super) fn second_directory(&self) -> Vec<Finding> {
        let check = "second-directory";
        let here = &self.place.directory;
        let others = self.members.elsewhere.iter();
        let findings: Vec<_> = others
            .map(|other| {
                let pids: Vec<_> = other.pids.iter().map(u32::to_string).collect();
                let (path, pids) = (other.path.display(), pids.join(", "));
                let figures = [
                    ("processes", Some(other.pids.len() as u64)),
                    ("processes_here", Some(self.members.processes.len() as u64)),
                ];
                match other.is_removed && other.path == *here {
                    true => warning(
                        check,
                        format!("the record of {path} was removed while processes {pids} use it"),
                        "they write it anew within some seconds; find out what removes it",
                    ),
                    false => warning(
                        check,
                        format!(
                            "processes {pids} have this domain in {path}, not in {}",
                            here.display()
                        ),
                        "they are another group: give all participants of a domain the same \
                         spindle.directory, or other domain ids",
                    ),
                }
                .with(figures)
            })
            .collect();
        match findings.is_empty() {
            true => vec![ok(
                check,
                "no process of this user has this domain elsewhere".to_owned(),
            )],
            false => findings,
        }
    }
}
