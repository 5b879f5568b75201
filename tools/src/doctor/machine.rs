//! The machine, from the kernel's files.
//!
//! All files are read below a root, so that tests can invent machines. Files that cannot be read
//! are skipped: a container may hide some.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::mounts::{GroupLimit, MEMORY, PIDS};
use super::rdma::Rdma;

/// The bit of CAP_IPC_LOCK (linux/capability.h), which allows a process to pin any memory.
const CAP_IPC_LOCK: u32 = 14;
/// Those of CAP_SYS_ADMIN and CAP_SYS_RESOURCE, to which RLIMIT_NPROC does not apply.
const CAP_SYS: [u32; 2] = [21, 24];

/// A machine, and this process's limits on it.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Machine {
    /// Release of the kernel, for example `6.1.0-56-amd64`.
    pub(super) kernel: String,
    /// Processors that this process may use.
    pub(super) cores: Option<u32>,
    /// Runnable processes, averaged over the last minute.
    pub(super) load: Option<f64>,
    pub(super) memory_available_bytes: Option<u64>,
    /// The tightest memory limit of its control group and those above it.
    pub(super) memory_group: Option<GroupLimit>,
    pub(super) huge_pages: HugePages,
    /// Free bytes of /dev/shm, and all of them.
    pub(super) shm_free_bytes: Option<u64>,
    pub(super) shm_bytes: Option<u64>,
    pub(super) limits: Limits,
    pub(super) threads: Threads,
    /// Most mappings of a process (vm.max_map_count).
    pub(super) mappings_max: Option<u64>,
    /// The kernel's clock source, for example `tsc`.
    pub(super) clock: Option<String>,
    pub(super) rdma: Rdma,
}

#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct HugePages {
    pub(super) total: u64,
    pub(super) free: u64,
    /// Setting of transparent huge pages for shared memory: `never`, `advise`, `within_size` ...
    pub(super) shared_memory: Option<String>,
}

/// Limits of this process (getrlimit(2)): soft limits, unless the name says otherwise.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Limits {
    /// Memory that may be pinned, as registering it for RDMA does.
    pub(super) memlock_bytes: Limit,
    pub(super) open_files: Limit,
    pub(super) open_files_hard: Limit,
    /// Size of a file, including files in memory.
    pub(super) file_size_bytes: Limit,
    /// Threads of its user.
    pub(super) user_threads: Limit,
    /// Whether it has CAP_IPC_LOCK.
    pub(super) may_pin_any: bool,
    /// Whether `user_threads` does not apply to it, as it has CAP_SYS_RESOURCE or CAP_SYS_ADMIN.
    pub(super) may_start_any: bool,
}

/// Threads, and limits of their number that are not of this process alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Threads {
    /// Threads of this user.
    pub(super) of_user: u64,
    /// Threads of the machine.
    pub(super) of_machine: Option<u64>,
    /// The least of kernel.threads-max and kernel.pid_max.
    pub(super) of_machine_max: Option<u64>,
    /// The tightest limit of its control group and those above it.
    pub(super) group: Option<GroupLimit>,
}

/// A limit; `None` for unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(super) struct Limit(pub(super) Option<u64>);

impl Limit {
    pub(super) fn allows(self, wanted: u64) -> bool {
        self.0.is_none_or(|most| most >= wanted)
    }
}

impl Machine {
    /// Reads the machine whose files are below `root`: `/` for the real one.
    pub(super) fn read(root: &Path) -> Self {
        let files = Files(root);
        let meminfo = files.text("proc/meminfo").unwrap_or_default();
        let kibibytes = |name| number_after(&meminfo, name).map(|found| found << 10);
        let shared = files.text("sys/kernel/mm/transparent_hugepage/shmem_enabled");
        let load = files.text("proc/loadavg");
        let shm = rustix::fs::statvfs(root.join("dev/shm")).ok();
        let bytes = |blocks: u64, of: &rustix::fs::StatVfs| blocks.saturating_mul(of.f_frsize);
        Self {
            kernel: files
                .text("proc/sys/kernel/osrelease")
                .unwrap_or_else(|| "unknown".to_owned()),
            cores: files.cores(),
            load: load.and_then(|text| text.split_whitespace().next()?.parse().ok()),
            memory_available_bytes: kibibytes("MemAvailable:"),
            memory_group: files.group_limit(MEMORY),
            huge_pages: HugePages {
                total: number_after(&meminfo, "HugePages_Total:").unwrap_or(0),
                free: number_after(&meminfo, "HugePages_Free:").unwrap_or(0),
                // The selected value is in brackets.
                shared_memory: shared.and_then(|text| {
                    let (_, rest) = text.split_once('[')?;
                    Some(rest.split_once(']')?.0.to_owned())
                }),
            },
            shm_free_bytes: shm.as_ref().map(|it| bytes(it.f_bavail, it)),
            shm_bytes: shm.as_ref().map(|it| bytes(it.f_blocks, it)),
            limits: files.limits(),
            threads: files.threads(),
            mappings_max: files.number("proc/sys/vm/max_map_count"),
            clock: files.text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
            rdma: Rdma::read(&files),
        }
    }

    /// The first two numbers of the kernel's version.
    pub(super) fn kernel_version(&self) -> Option<(u32, u32)> {
        let mut numbers = self.kernel.split(|c: char| !c.is_ascii_digit());
        let mut next = || numbers.next()?.parse().ok();
        Some((next()?, next()?))
    }
}

/// The kernel's files below a root.
#[derive(Debug, Clone, Copy)]
pub(super) struct Files<'a>(pub(super) &'a Path);

impl Files<'_> {
    pub(super) fn path(self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The text of a file, trimmed.
    pub(super) fn text(self, name: &str) -> Option<String> {
        let bytes = std::fs::read(self.path(name)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// Names in a directory, sorted; numbers in numeric order.
    pub(super) fn names(self, directory: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(directory));
        let entries = entries.into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<_> = names.collect();
        names.sort_by_key(|name| (name.parse::<u64>().unwrap_or(u64::MAX), name.clone()));
        names
    }

    fn cores(self) -> Option<u32> {
        let status = self.text("proc/self/status")?;
        let list = line_after(&status, "Cpus_allowed_list:")?;
        // For example 0-3,8.
        let ranges = list.split(',').map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            last.checked_sub(first)?.checked_add(1)
        });
        ranges.sum()
    }

    fn number(self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    fn threads(self) -> Threads {
        let user = rustix::process::geteuid().as_raw();
        let is_of_user = |name: &String| {
            let found = std::fs::metadata(self.path(&format!("proc/{name}")));
            found.is_ok_and(|found| found.uid() == user)
        };
        let processes = self.names("proc").into_iter();
        let processes = processes.filter(|name| name.parse::<u32>().is_ok());
        let threads = processes.filter(is_of_user).filter_map(|name| {
            let status = self.text(&format!("proc/{name}/status"))?;
            number_after(&status, "Threads:")
        });
        // For example 0.50 0.40 0.30 2/150 4711: of 150 threads, 2 can run.
        let load = self.text("proc/loadavg").unwrap_or_default();
        let of_machine = load.split_whitespace().nth(3);
        let of_machine = of_machine.and_then(|it| it.split_once('/')?.1.parse().ok());
        let most = ["threads-max", "pid_max"];
        let most = most.map(|name| self.number(&format!("proc/sys/kernel/{name}")));
        Threads {
            of_user: threads.sum(),
            of_machine,
            of_machine_max: most.into_iter().flatten().min(),
            group: self.group_limit(PIDS),
        }
    }

    fn limits(self) -> Limits {
        let text = self.text("proc/self/limits").unwrap_or_default();
        // The soft and the hard limit follow the name.
        let limit = |name: &str, at: usize| {
            let rest = line_after(&text, name);
            Limit(rest.and_then(|rest| rest.split_whitespace().nth(at)?.parse().ok()))
        };
        let status = self.text("proc/self/status").unwrap_or_default();
        let capabilities = line_after(&status, "CapEff:");
        let capabilities = capabilities.and_then(|bits| u64::from_str_radix(bits, 16).ok());
        let has = |capability: u32| capabilities.is_some_and(|bits| bits >> capability & 1 == 1);
        Limits {
            memlock_bytes: limit("Max locked memory", 0),
            open_files: limit("Max open files", 0),
            open_files_hard: limit("Max open files", 1),
            file_size_bytes: limit("Max file size", 0),
            user_threads: limit("Max processes", 0),
            may_pin_any: has(CAP_IPC_LOCK),
            may_start_any: CAP_SYS.into_iter().any(has),
        }
    }
}

/// What follows a word that a line begins with.
pub(super) fn line_after<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let mut rests = text.lines().filter_map(|line| line.strip_prefix(word));
    rests.next().map(str::trim)
}

pub(super) fn number_after(text: &str, word: &str) -> Option<u64> {
    let rest = line_after(text, word)?;
    rest.split_whitespace().next()?.parse().ok()
}
