//! Mounts and control groups, from the kernel's files.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::machine::{Files, line_after};

/// A mount of this process's mount namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Mount {
    pub(super) point: PathBuf,
    /// The directory of its file system that is mounted.
    pub(super) root: PathBuf,
    /// Type of the file system, for example `tmpfs`.
    pub(super) kind: String,
    pub(super) source: String,
    pub(super) is_read_only: bool,
    /// Options of the file system; for a control group, its controllers are among them.
    #[serde(skip)]
    options: Vec<String>,
}

/// A control group's limit, and what its processes use of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct GroupLimit {
    /// The group's directory.
    pub(super) group: PathBuf,
    pub(super) limit: u64,
    pub(super) used: u64,
}

impl GroupLimit {
    pub(super) fn left(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }
}

/// A controller of control groups: its name, and its files of limit and use, of version 2 and of
/// version 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Controller {
    name: &'static str,
    unified: [&'static str; 2],
    legacy: [&'static str; 2],
}

pub(super) const MEMORY: Controller = Controller {
    name: "memory",
    unified: ["memory.max", "memory.current"],
    legacy: ["memory.limit_in_bytes", "memory.usage_in_bytes"],
};

pub(super) const PIDS: Controller = Controller {
    name: "pids",
    unified: ["pids.max", "pids.current"],
    legacy: ["pids.max", "pids.current"],
};

/// From here on a number means unlimited: version 1 has no word for it.
const UNLIMITED_FROM: u64 = 1 << 60;

impl Mount {
    /// Reads a line of mountinfo (proc_pid_mountinfo(5)).
    fn parse(line: &str) -> Option<Self> {
        let (fields, rest) = line.split_once(" - ")?;
        let mut fields = fields.split(' ').skip(3);
        let (root, point, options) = (fields.next()?, fields.next()?, fields.next()?);
        let mut rest = rest.split(' ');
        let (kind, source, all) = (rest.next()?, rest.next()?, rest.next().unwrap_or(""));
        let is_read_only = |options: &str| options.split(',').any(|option| option == "ro");
        Some(Self {
            point: unescape(point).into(),
            root: unescape(root).into(),
            kind: kind.to_owned(),
            source: unescape(source),
            is_read_only: is_read_only(options) || is_read_only(all),
            options: all.split(',').map(str::to_owned).collect(),
        })
    }
}

/// Spaces and backslashes are octal numbers there.
fn unescape(text: &str) -> String {
    let codes = [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ];
    codes
        .iter()
        .fold(text.to_owned(), |text, (code, is)| text.replace(code, is))
}

impl Files<'_> {
    fn mounts(self) -> Vec<Mount> {
        let text = self.text("proc/self/mountinfo").unwrap_or_default();
        text.lines().filter_map(Mount::parse).collect()
    }

    /// The mount that has a path, which must be absolute and without symbolic links.
    pub(super) fn mount_of(self, path: &Path) -> Option<Mount> {
        let mounts = self.mounts().into_iter();
        // Of several at one point, the last one hides the others.
        mounts
            .filter(|mount| path.starts_with(&mount.point))
            .max_by_key(|mount| mount.point.components().count())
    }

    /// The limit that leaves the least, of this process's control group and those above it.
    pub(super) fn group_limit(self, controller: Controller) -> Option<GroupLimit> {
        let groups = self.text("proc/self/cgroup").unwrap_or_default();
        let limits = self.mounts().into_iter().filter_map(|mount| {
            let (group, files) = match &*mount.kind {
                "cgroup2" => (line_after(&groups, "0::")?, controller.unified),
                "cgroup" if mount.options.iter().any(|it| it == controller.name) => {
                    (group_of(&groups, controller.name)?, controller.legacy)
                }
                _ => return None,
            };
            // In a container, its own group is mounted.
            let group = Path::new(group);
            let below = group
                .strip_prefix(&mount.root)
                .unwrap_or_else(|_| Path::new(""));
            self.tightest(&mount.point, below, files)
        });
        limits.min_by_key(GroupLimit::left)
    }

    fn tightest(self, mount: &Path, group: &Path, [limit, used]: [&str; 2]) -> Option<GroupLimit> {
        let number = |directory: &Path, file: &str| -> Option<u64> {
            let path = directory.join(file);
            self.text(path.strip_prefix("/").ok()?.to_str()?)?
                .parse()
                .ok()
        };
        let limits = group.ancestors().filter_map(|group| {
            let directory = mount.join(group);
            let limit = number(&directory, limit).filter(|limit| *limit < UNLIMITED_FROM)?;
            let used = number(&directory, used).unwrap_or(0);
            Some(GroupLimit {
                group: directory,
                limit,
                used,
            })
        });
        limits.min_by_key(GroupLimit::left)
    }
}

/// The group of a controller of version 1.
fn group_of<'a>(groups: &'a str, controller: &str) -> Option<&'a str> {
    groups.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, group) = rest.split_once(':')?;
        let mut controllers = controllers.split(',');
        controllers.any(|it| it == controller).then_some(group)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_mountinfo_are_parsed() {
        let line = "30 25 0:27 /a\\040b /dev/shm ro,relatime shared:2 - tmpfs shm rw,size=64k";
        let mount = Mount::parse(line).expect("a mount");
        assert_eq!(mount.point, Path::new("/dev/shm"));
        assert_eq!(mount.root, Path::new("/a b"));
        assert_eq!((&*mount.kind, &*mount.source), ("tmpfs", "shm"));
        assert!(mount.is_read_only);
        for line in ["", " - ", "30 25 0:27 / /dev/shm rw", "1 2 3 - a b c"] {
            assert_eq!(Mount::parse(line), None, "{line}");
        }
    }

    #[test]
    fn the_tightest_limit_of_the_groups_above_counts() {
        let root = tempfile::tempdir().expect("a directory");
        let put = |name: &str, text: &str| {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        let files = Files(root.path());
        assert_eq!(files.group_limit(PIDS), None);
        put(
            "proc/self/cgroup",
            "8:cpu,pids:/docker/x/job\n4:memory:/\n0::/a/b\n",
        );
        put(
            "proc/self/mountinfo",
            "1 0 0:1 /docker/x /cg/pids rw - cgroup cgroup rw,pids\n\
             2 0 0:2 / /cg/memory rw - cgroup cgroup rw,memory\n\
             3 0 0:3 / /cg/unified rw - cgroup2 cgroup2 rw\n",
        );
        put("cg/pids/job/pids.max", "max\n");
        put("cg/pids/pids.max", "100\n");
        put("cg/pids/pids.current", "40\n");
        let pids = files.group_limit(PIDS).expect("a limit");
        assert_eq!((pids.limit, pids.used, pids.left()), (100, 40, 60));
        assert_eq!(pids.group, Path::new("/cg/pids/"));
        put("cg/memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(files.group_limit(MEMORY), None);
        put("cg/unified/a/memory.max", "1000\n");
        put("cg/unified/a/b/memory.max", "3000\n");
        put("cg/unified/a/b/memory.current", "2500\n");
        let memory = files.group_limit(MEMORY).expect("a limit");
        assert_eq!((memory.limit, memory.used), (3000, 2500));
    }
}
