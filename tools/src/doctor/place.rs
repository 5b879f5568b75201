//! The place of the domain's directory: its file system, and what may make it vanish.

use std::path::{Path, PathBuf};

use rustix::fs::Access;
use rustix::io::Errno;
use serde::Serialize;

use super::machine::Files;
use super::mounts::Mount;

/// The place of a directory, or of the nearest directory above that exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Place {
    pub(super) directory: PathBuf,
    pub(super) mount: Option<Mount>,
    pub(super) room: Option<Room>,
    /// Why this process cannot write there, if so.
    pub(super) refused: Option<Refused>,
    pub(super) hazards: Vec<Hazard>,
}

/// What is free on a file system for this user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Room {
    pub(super) free_bytes: u64,
    pub(super) bytes: u64,
    /// `None` where the file system does not limit them.
    pub(super) free_files: Option<u64>,
}

/// Why a directory cannot be written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Refused {
    ReadOnly,
    NoPermission,
}

/// What removes the directory while participants run, or hides it from some of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Hazard {
    /// It is removed when the user logs out for the last time.
    Logout,
    /// systemd-logind removes the user's files of /dev/shm then.
    RemoveIpc,
    /// A cleaner removes what is old: the file that configures it, and the age.
    Cleaner { by: PathBuf, age: String },
    /// It is the /tmp of a service with PrivateTmp=yes.
    PrivateTmp,
    /// It is in memory or in a file system of this container alone.
    Container(String),
}

/// Largest id of a system user, to which logins and their ends mean nothing (systemd).
const SYSTEM_USER_MAX: u32 = 999;

/// Directories of systemd-tmpfiles: a file hides those of the same name in later ones.
const TMPFILES: [&str; 4] = [
    "etc/tmpfiles.d",
    "run/tmpfiles.d",
    "usr/local/lib/tmpfiles.d",
    "usr/lib/tmpfiles.d",
];

/// Cleaners of /tmp that are started daily, if they are installed.
const DAILY: [&str; 2] = ["etc/cron.daily/tmpreaper", "etc/cron.daily/tmpwatch"];

impl Place {
    /// Looks at a directory of this process; what the system does with it is read below `root`.
    pub(super) fn read(directory: &Path, root: &Path) -> Self {
        let files = Files(root);
        let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
        let above = absolute.ancestors().find_map(|it| it.canonicalize().ok());
        let there = above.unwrap_or_else(|| PathBuf::from("/"));
        let mount = files.mount_of(&there);
        let room = rustix::fs::statvfs(&there).ok().map(|it| Room {
            free_bytes: it.f_bavail.saturating_mul(it.f_frsize),
            bytes: it.f_blocks.saturating_mul(it.f_frsize),
            free_files: (it.f_files > 0).then_some(it.f_favail),
        });
        let refused = match rustix::fs::access(&there, Access::WRITE_OK | Access::EXEC_OK) {
            Err(Errno::ROFS) => Some(Refused::ReadOnly),
            Err(Errno::ACCESS | Errno::PERM) => Some(Refused::NoPermission),
            _ => None,
        };
        let hazards = files.hazards(&absolute, mount.as_ref());
        Self {
            directory: absolute,
            mount,
            room,
            refused,
            hazards,
        }
    }
}

impl Files<'_> {
    fn hazards(self, directory: &Path, mount: Option<&Mount>) -> Vec<Hazard> {
        let user = rustix::process::geteuid().as_raw();
        let mut hazards = Vec::new();
        if directory.starts_with("/run/user") && !self.lingers(directory) {
            hazards.push(Hazard::Logout);
        }
        if directory.starts_with("/dev/shm") && user > SYSTEM_USER_MAX && self.removes_ipc() {
            hazards.push(Hazard::RemoveIpc);
        }
        hazards.extend(self.cleaner(directory));
        let Some(mount) = mount else { return hazards };
        if mount.root.to_string_lossy().contains("systemd-private-") {
            hazards.push(Hazard::PrivateTmp);
        } else if self.is_container() && is_of_container(mount) {
            let (kind, point) = (&mount.kind, mount.point.display());
            hazards.push(Hazard::Container(format!("{kind} at {point}")));
        }
        hazards
    }

    /// Whether the user whose runtime directory it is keeps it without a login.
    fn lingers(self, directory: &Path) -> bool {
        let user = directory.components().nth(3);
        let user = user.and_then(|it| it.as_os_str().to_str()).unwrap_or("");
        let users = self.text("etc/passwd").unwrap_or_default();
        let name = users.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1) == Some(user)).then_some(name)
        });
        name.is_some_and(|name| self.path("var/lib/systemd/linger").join(name).exists())
    }

    /// Whether systemd-logind runs and removes IPC objects, as it does unless it is told not to.
    fn removes_ipc(self) -> bool {
        let mut names = vec!["etc/systemd/logind.conf".to_owned()];
        for directory in ["usr/lib/systemd/logind.conf.d", "etc/systemd/logind.conf.d"] {
            let drop_ins = self.names(directory).into_iter();
            names.extend(drop_ins.map(|name| format!("{directory}/{name}")));
        }
        let texts = names.iter().filter_map(|name| self.text(name));
        let mut said = texts.filter_map(|text| {
            let mut values = text
                .lines()
                .filter_map(|line| line.trim().strip_prefix("RemoveIPC="));
            values.next_back().map(str::to_owned)
        });
        let no = ["no", "false", "off", "0"];
        let keeps = said
            .next_back()
            .is_some_and(|it| no.contains(&it.trim().to_lowercase().as_str()));
        self.path("run/systemd/users").exists() && !keeps
    }

    fn is_container(self) -> bool {
        let marks = [".dockerenv", "run/.containerenv", "run/systemd/container"];
        marks.iter().any(|mark| self.path(mark).exists())
    }

    /// The cleaner that removes old files of the directory.
    fn cleaner(self, directory: &Path) -> Option<Hazard> {
        let daily = || {
            let name = DAILY.iter().find(|name| self.path(name).exists())?;
            directory.starts_with("/tmp").then(|| Hazard::Cleaner {
                by: Path::new("/").join(name),
                age: "some days".to_owned(),
            })
        };
        if !self.path("run/systemd/system").exists() {
            return daily();
        }
        let mut names: Vec<(String, String)> = Vec::new();
        for folder in TMPFILES {
            for name in self
                .names(folder)
                .into_iter()
                .filter(|it| it.ends_with(".conf"))
            {
                if names.iter().all(|(known, _)| *known != name) {
                    let path = format!("{folder}/{name}");
                    names.push((name, path));
                }
            }
        }
        let mut cleaner: Option<(usize, Hazard)> = None;
        for (_, path) in names {
            for rule in self
                .text(&path)
                .unwrap_or_default()
                .lines()
                .filter_map(Rule::parse)
            {
                if rule.spares(directory) {
                    return daily();
                }
                let depth = rule.path.components().count();
                if rule.ages(directory) && cleaner.as_ref().is_none_or(|(known, _)| *known < depth)
                {
                    let by = Path::new("/").join(&path);
                    cleaner = Some((depth, Hazard::Cleaner { by, age: rule.age }));
                }
            }
        }
        cleaner.map(|(_, cleaner)| cleaner).or_else(daily)
    }
}

/// Whether a mount is made for one container, as engines make them.
fn is_of_container(mount: &Mount) -> bool {
    match &*mount.kind {
        "overlay" => mount.point == Path::new("/"),
        // With --ipc=host, the host's is mounted.
        "tmpfs" => mount.point == Path::new("/dev/shm") && mount.source == "shm",
        _ => false,
    }
}

/// A line of tmpfiles.d(5).
struct Rule {
    kind: char,
    path: PathBuf,
    age: String,
}

impl Rule {
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split_whitespace();
        let kind = fields.next()?.chars().next()?;
        let path = fields.next()?.trim_matches('"');
        Some(Self {
            kind,
            path: path.into(),
            age: fields.nth(3).unwrap_or("-").to_owned(),
        })
    }

    /// Whether old files below its path are removed, and `directory` is there.
    fn ages(&self, directory: &Path) -> bool {
        let has_age = !matches!(&*self.age, "-" | "");
        "dDevqQC".contains(self.kind) && has_age && directory.starts_with(&self.path)
    }

    /// Whether it keeps cleaners away from `directory`.
    fn spares(&self, directory: &Path) -> bool {
        if self.kind != 'x' {
            return false;
        }
        let pattern = self.path.to_string_lossy();
        directory
            .ancestors()
            .any(|it| matches(&pattern, &it.to_string_lossy()))
    }
}

/// Whether a text matches a pattern in which `*` is any text and `?` any character.
fn matches(pattern: &str, text: &str) -> bool {
    let Some(first) = pattern.chars().next() else {
        return text.is_empty();
    };
    let rest = &pattern[first.len_utf8()..];
    let mut chars = text.chars();
    match first {
        '*' => text
            .char_indices()
            .map(|(at, _)| at)
            .chain([text.len()])
            .any(|at| matches(rest, &text[at..])),
        '?' => chars.next().is_some() && matches(rest, chars.as_str()),
        first => chars.next() == Some(first) && matches(rest, chars.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(root: &Path, name: &str, text: &str) {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        std::fs::write(path, text).expect("written");
    }

    fn hazards(root: &Path, directory: &str) -> Vec<Hazard> {
        Files(root).hazards(Path::new(directory), None)
    }

    #[test]
    fn a_cleaner_counts_where_it_runs_and_does_not_spare_the_directory() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path();
        let tmp = "/tmp/spindle-dds-1000";
        let rules = "# a comment\nq /tmp 1777 root root 10d\nd /var/tmp 1777 root root -\n";
        put(root, "usr/lib/tmpfiles.d/tmp.conf", rules);
        assert_eq!(hazards(root, tmp), [], "no systemd runs");
        put(root, "run/systemd/system/x", "");
        let cleaner = |by: &str, age: &str| Hazard::Cleaner {
            by: by.into(),
            age: age.to_owned(),
        };
        let usual = cleaner("/usr/lib/tmpfiles.d/tmp.conf", "10d");
        assert_eq!(hazards(root, tmp), std::slice::from_ref(&usual));
        assert_eq!(hazards(root, "/var/tmp/a"), []);
        put(root, "etc/tmpfiles.d/own.conf", "x /tmp/other-*\n");
        assert_eq!(hazards(root, tmp), [usual]);
        put(root, "etc/tmpfiles.d/own.conf", "x /tmp/spindle-dds-*\n");
        assert_eq!(hazards(root, tmp), []);
        put(
            root,
            "etc/tmpfiles.d/own.conf",
            "d /tmp/spindle-dds-1000 - - - 1h\n",
        );
        assert_eq!(
            hazards(root, tmp),
            [cleaner("/etc/tmpfiles.d/own.conf", "1h")]
        );
        // A file of this name hides the other one.
        put(root, "etc/tmpfiles.d/own.conf", "");
        put(root, "etc/tmpfiles.d/tmp.conf", "q /tmp 1777 root root -\n");
        assert_eq!(hazards(root, tmp), []);
        put(root, "etc/cron.daily/tmpreaper", "");
        assert_eq!(
            hazards(root, tmp),
            [cleaner("/etc/cron.daily/tmpreaper", "some days")]
        );
    }

    #[test]
    fn a_runtime_directory_goes_with_the_login_unless_its_user_lingers() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path();
        assert_eq!(hazards(root, "/run/user/1000/dds"), [Hazard::Logout]);
        put(
            root,
            "etc/passwd",
            "root:x:0:0::/:\nann:x:1000:1000::/home/ann:\n",
        );
        put(root, "var/lib/systemd/linger/root", "");
        assert_eq!(hazards(root, "/run/user/1000/dds"), [Hazard::Logout]);
        put(root, "var/lib/systemd/linger/ann", "");
        assert_eq!(hazards(root, "/run/user/1000/dds"), []);
    }

    #[test]
    fn logind_removes_ipc_unless_it_is_told_not_to() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path();
        let removes = || Files(root).removes_ipc();
        assert!(!removes(), "no systemd-logind runs");
        put(root, "run/systemd/users/1000", "");
        assert!(removes());
        put(
            root,
            "etc/systemd/logind.conf",
            "[Login]\n#RemoveIPC=no\nRemoveIPC=no\n",
        );
        assert!(!removes());
        put(
            root,
            "etc/systemd/logind.conf.d/a.conf",
            "[Login]\nRemoveIPC=yes\n",
        );
        assert!(removes());
    }

    #[test]
    fn mounts_that_are_of_a_container_or_a_service_alone_are_told() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path();
        let lines = "1 0 0:1 / / rw - overlay overlay rw\n\
                     2 1 0:2 / /dev/shm rw - tmpfs shm rw,size=65536k\n\
                     3 1 0:3 /docker/volumes/dds /run/dds rw - ext4 /dev/sda rw\n\
                     4 1 0:4 /systemd-private-1-x/tmp /var/tmp rw - tmpfs tmpfs rw\n";
        put(root, "proc/self/mountinfo", lines);
        let hazards = |directory: &str| {
            let mount = Files(root).mount_of(Path::new(directory));
            Files(root).hazards(Path::new(directory), mount.as_ref())
        };
        assert_eq!(hazards("/dev/shm/a"), [], "no container");
        assert_eq!(hazards("/var/tmp/a"), [Hazard::PrivateTmp]);
        put(root, ".dockerenv", "");
        let container = |what: &str| [Hazard::Container(what.to_owned())];
        assert_eq!(hazards("/tmp/a"), container("overlay at /"));
        assert_eq!(hazards("/dev/shm/a"), container("tmpfs at /dev/shm"));
        assert_eq!(hazards("/run/dds/domains"), [], "a volume");
    }

    #[test]
    fn patterns_match_as_a_shell_has_it() {
        assert!(matches("/tmp/a*", "/tmp/abc") && matches("/tmp/?bc", "/tmp/abc"));
        assert!(!matches("/tmp/a*d", "/tmp/abc") && !matches("", "a") && matches("*", ""));
    }
}
