//! The processes of a domain on this host, from the kernel's files.
//!
//! A participant keeps its domain's record open, by which its process is found, in any pid namespace
//! below this one and whatever directory it uses. Only processes of this user are looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use spindle_dds_transport::shm::MemberEntry;

use super::machine::{Files, Limit, line_after, number_after};

/// The processes of a domain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Members {
    /// Those that use the directory that is examined.
    pub(super) processes: Vec<MemberProcess>,
    /// Those that use other ones.
    pub(super) elsewhere: Vec<OtherDirectory>,
    /// Members of this host in the record.
    pub(super) recorded: u64,
    /// Processes of these in other pid namespaces than this command.
    pub(super) foreign: u64,
    /// Topics of the members that answer.
    pub(super) topics: u64,
}

/// A process with participants of the domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct MemberProcess {
    /// Its pid in the namespace of this command.
    pub(super) pid: u32,
    pub(super) name: String,
    /// Kinds of namespaces in which it is, and this command is not.
    pub(super) other_namespaces: Vec<&'static str>,
    pub(super) open_files: Option<u64>,
    pub(super) open_files_max: Limit,
    pub(super) mappings: Option<u64>,
    pub(super) threads: Option<u64>,
}

/// Another directory in which the domain is in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct OtherDirectory {
    /// Its path, as the processes see it.
    pub(super) path: PathBuf,
    /// Whether its record has been removed.
    pub(super) is_removed: bool,
    pub(super) pids: Vec<u32>,
}

const NAMESPACES: [&str; 5] = ["pid", "ipc", "mnt", "net", "user"];

/// What the kernel adds to the path of an open file that has no name any more.
const DELETED: &str = " (deleted)";

impl Members {
    /// The processes that hold the record of `domain`, in `directory` or elsewhere.
    pub(super) fn read(domain: u32, directory: &Path, root: &Path) -> Self {
        let files = Files(root);
        let record = format!("domain-{domain}.record");
        let identity = |path: &Path| {
            let found = std::fs::metadata(path).ok()?;
            Some((found.dev(), found.ino()))
        };
        let ours = identity(&directory.join(&record));
        let (user, me) = (rustix::process::geteuid().as_raw(), std::process::id());
        let mut processes = Vec::new();
        let mut elsewhere: BTreeMap<(PathBuf, bool), Vec<u32>> = BTreeMap::new();
        for pid in files.names("proc").iter().filter_map(|it| it.parse().ok()) {
            let of_user = std::fs::metadata(files.path(&format!("proc/{pid}")));
            if pid == me || of_user.is_ok_and(|found| found.uid() != user) {
                continue;
            }
            let mut uses_ours = false;
            for (path, target, is_removed) in files.open_files_named(pid, &record) {
                if ours.is_some() && identity(&path) == ours {
                    uses_ours = true;
                    continue;
                }
                let directory = target.parent().unwrap_or(&target).to_owned();
                let pids = elsewhere.entry((directory, is_removed)).or_default();
                if pids.last() != Some(&pid) {
                    pids.push(pid);
                }
            }
            if uses_ours {
                processes.push(files.process(pid));
            }
        }
        let elsewhere = elsewhere
            .into_iter()
            .map(|((path, is_removed), pids)| OtherDirectory {
                path,
                is_removed,
                pids,
            });
        Self {
            processes,
            elsewhere: elsewhere.collect(),
            ..Self::default()
        }
    }
}

/// Processes of `members` in other pid namespaces than this process.
pub(super) fn foreign(members: &[MemberEntry]) -> u64 {
    let here = std::fs::metadata("/proc/self/ns/pid")
        .map(|found| found.ino())
        .ok();
    let processes = members
        .iter()
        .filter_map(|it| Some((it.pid_namespace()?, it.pid)));
    let foreign = processes.filter(|(namespace, _)| Some(*namespace) != here);
    foreign.collect::<BTreeSet<_>>().len() as u64
}

impl Files<'_> {
    /// Open files of a process that have this name: where the process can be asked for them, their
    /// paths, and whether they were removed.
    fn open_files_named(self, pid: u32, name: &str) -> Vec<(PathBuf, PathBuf, bool)> {
        let descriptors = self.names(&format!("proc/{pid}/fd")).into_iter();
        let open = descriptors.filter_map(|descriptor| {
            let path = self.path(&format!("proc/{pid}/fd/{descriptor}"));
            let target = std::fs::read_link(&path).ok()?;
            let text = target.to_string_lossy();
            let (target, is_removed) = match text.strip_suffix(DELETED) {
                Some(target) => (PathBuf::from(target), true),
                None => (target.clone(), false),
            };
            let is_named = target.file_name().is_some_and(|it| it == name);
            is_named.then_some((path, target, is_removed))
        });
        open.collect()
    }

    fn process(self, pid: u32) -> MemberProcess {
        let text = |name: &str| self.text(&format!("proc/{pid}/{name}"));
        let namespace = |of: &str, kind: &str| {
            std::fs::read_link(self.path(&format!("proc/{of}/ns/{kind}"))).ok()
        };
        let is_other = |kind: &&str| {
            let theirs = namespace(&pid.to_string(), kind);
            theirs.is_some() && theirs != namespace("self", kind)
        };
        let limits = text("limits").unwrap_or_default();
        let open_files_max = line_after(&limits, "Max open files");
        let status = text("status").unwrap_or_default();
        let descriptors = self.names(&format!("proc/{pid}/fd"));
        MemberProcess {
            pid,
            name: text("comm")
                .unwrap_or_default()
                .replace(char::is_control, "?"),
            other_namespaces: NAMESPACES.into_iter().filter(is_other).collect(),
            open_files: (!descriptors.is_empty()).then_some(descriptors.len() as u64),
            open_files_max: Limit(
                open_files_max.and_then(|rest| rest.split_whitespace().next()?.parse().ok()),
            ),
            mappings: text("maps").map(|maps| maps.lines().count() as u64),
            threads: number_after(&status, "Threads:"),
        }
    }
}
