//! Findings that compare limits with what the domain's participants need.

use super::super::needs::{Scale, ScaleFrom};
use super::{Finding, Found, error, mebibytes, number, ok, warning};

/// About the size of a row with default rings.
const ROW_BYTES: u64 = 16 << 20;

/// Memory of a ring with the default size.
const RING_BYTES: u64 = 8 << 20;

/// Free bytes of /dev/shm below which something else has filled it.
const SHM_BYTES: u64 = 1 << 20;

/// What a check compares.
struct Comparison {
    check: &'static str,
    /// What there is, and of which `used` is used up; `None` is unlimited.
    limit: Option<u64>,
    used: u64,
    needed: u64,
    what: String,
    advice: String,
}

impl Found<'_> {
    /// The size for which limits are looked at, as text.
    fn for_scale(&self) -> String {
        let scale = self.scale;
        let (peers, topics) = (scale.peers, scale.topics);
        let from = match scale.from {
            ScaleFrom::Assumption => " (assumed)",
            ScaleFrom::Options => "",
            ScaleFrom::Domain => " (the running domain and one more)",
        };
        format!("{peers} peers and {topics} topics{from}")
    }

    /// Warns where little is left, too. What does not suffice is an error, unless the size is only
    /// assumed.
    fn compare(&self, comparison: Comparison) -> Finding {
        let Comparison {
            check,
            limit,
            used,
            needed,
            what,
            advice,
        } = comparison;
        let left = limit.map(|limit| limit.saturating_sub(used));
        let what = format!("{what}; {needed} needed for {}", self.for_scale());
        let finding = match left {
            Some(left) if left < needed && self.scale.is_known() => error(check, what, &advice),
            Some(left) if left < needed + needed / 4 => warning(check, what, &advice),
            _ => ok(check, what),
        };
        finding.with([
            ("limit", limit),
            ("used", Some(used)),
            ("needed", Some(needed)),
        ])
    }

    pub(super) fn open_files(&self) -> Finding {
        let limits = &self.machine.limits;
        let (soft, hard) = (
            number(limits.open_files.0),
            number(limits.open_files_hard.0),
        );
        self.compare(Comparison {
            check: "open-files",
            limit: limits.open_files.0,
            used: 0,
            needed: self.scale.open_files(),
            what: format!("soft limit {soft}, hard limit {hard}"),
            advice: format!(
                "each row of another participant on this host needs some: ulimit -n {hard}"
            ),
        })
    }

    /// Limits of threads: of the user, of the control group, and of the machine.
    pub(super) fn threads(&self) -> Vec<Finding> {
        let (machine, threads) = (self.machine, &self.machine.threads);
        let needed = self.scale.missing() * self.scale.threads();
        let of_user = machine
            .limits
            .user_threads
            .0
            .filter(|_| !machine.limits.may_start_any);
        let exempt = match machine.limits.may_start_any {
            true => " (does not apply to this process: CAP_SYS_RESOURCE)",
            false => "",
        };
        let mut findings = vec![self.compare(Comparison {
            check: "user-threads",
            limit: of_user,
            used: threads.of_user,
            needed,
            what: format!(
                "limit {}{exempt}, {} in use by this user",
                number(machine.limits.user_threads.0),
                threads.of_user
            ),
            advice: "raise the limit of processes (ulimit -u, LimitNPROC=), which counts threads of \
                     the user"
                .to_owned(),
        })];
        if let Some(group) = &threads.group {
            let (limit, used) = (group.limit, group.used);
            findings.push(self.compare(Comparison {
                check: "group-threads",
                limit: Some(limit),
                used,
                needed,
                what: format!(
                    "pids.max {limit}, {used} in use, in {}",
                    group.group.display()
                ),
                advice: "raise pids.max (TasksMax=, docker run --pids-limit)".to_owned(),
            }));
        }
        if let (Some(used), Some(most)) = (threads.of_machine, threads.of_machine_max) {
            findings.push(self.compare(Comparison {
                check: "machine-threads",
                limit: Some(most),
                used,
                needed,
                what: format!("limit {most}, {used} in use"),
                advice: "raise kernel.threads-max and kernel.pid_max (sysctl)".to_owned(),
            }));
        }
        findings
    }

    pub(super) fn mappings(&self) -> Finding {
        let limit = self.machine.mappings_max;
        self.compare(Comparison {
            check: "mappings",
            limit,
            used: 0,
            needed: self.scale.mappings(),
            what: match limit {
                Some(limit) => format!("vm.max_map_count {limit}"),
                None => "vm.max_map_count unknown".to_owned(),
            },
            advice: "each row of another participant on this host is mapped: sysctl -w \
                     vm.max_map_count=262144"
                .to_owned(),
        })
    }

    pub(super) fn memory(&self) -> Finding {
        let (check, machine) = ("memory", self.machine);
        let file_size = machine.limits.file_size_bytes;
        if !file_size.allows(ROW_BYTES) {
            let most = mebibytes(file_size.0.unwrap_or(0));
            let what = format!("files may have {most} at most, including files in memory");
            let words = "ulimit -f unlimited: rows are files in memory";
            let figures = [("limit", file_size.0), ("needed", Some(ROW_BYTES))];
            return error(check, what, words).with(figures);
        }
        let Some(available) = machine.memory_available_bytes else {
            return ok(check, "unknown".to_owned());
        };
        let group = machine.memory_group.as_ref();
        let left = group.map_or(u64::MAX, |group| group.left());
        let needed = self.scale.missing() * self.scale.row_bytes(RING_BYTES);
        let of_group = group.map_or_else(String::new, |group| {
            let (limit, used) = (mebibytes(group.limit), mebibytes(group.used));
            format!(", {used} of {limit} used in {}", group.group.display())
        });
        let what = format!(
            "{} available{of_group}; up to {} needed for {}, if each writes all topics",
            mebibytes(available),
            mebibytes(needed),
            self.for_scale()
        );
        let finding = match available.min(left) < needed {
            true => warning(
                check,
                what,
                "a writer's ring has up to 8 MiB: reduce spindle.ring.bytes, or raise memory.max",
            ),
            false => ok(check, what),
        };
        finding.with([
            ("available", Some(available)),
            ("group_limit", group.map(|it| it.limit)),
            ("group_used", group.map(|it| it.used)),
            ("needed", Some(needed)),
        ])
    }

    pub(super) fn pinned_memory(&self) -> Finding {
        let (check, limits) = ("pinned-memory", &self.machine.limits);
        let most = limits.memlock_bytes.0;
        let needed = self.scale.row_bytes(RING_BYTES);
        let figures = [("limit", most), ("needed", Some(needed))];
        let Some(most) = most.filter(|_| !limits.may_pin_any) else {
            let why = match limits.may_pin_any {
                true => " (CAP_IPC_LOCK)",
                false => "",
            };
            return ok(check, format!("unlimited{why}")).with(figures);
        };
        let what = format!("at most {}", mebibytes(most));
        let finding = match self.rdma {
            // With RDMA, all rows are pinned.
            Ok(_) if most < needed => {
                let what = format!(
                    "{what}; {} needed for {}",
                    mebibytes(needed),
                    self.for_scale()
                );
                let words = "RDMA pins rows: ulimit -l unlimited (LimitMEMLOCK=infinity)";
                match self.scale.is_known() {
                    true => error(check, what, words),
                    false => warning(check, what, words),
                }
            }
            _ => ok(check, format!("{what}; only RDMA needs it")),
        };
        finding.with(figures)
    }

    pub(super) fn shm(&self) -> Option<Finding> {
        let (check, free) = ("dev-shm", self.machine.shm_free_bytes?);
        let all = self.machine.shm_bytes;
        let of = all.map_or_else(String::new, |all| format!(" of {}", mebibytes(all)));
        let what = format!(
            "{}{of} free; may contain the domain's directory, but no rows",
            mebibytes(free)
        );
        let finding = match free < SHM_BYTES {
            true => warning(check, what, "free some space, or set spindle.directory"),
            false => ok(check, what),
        };
        Some(finding.with([
            ("free", Some(free)),
            ("size", all),
            ("needed", Some(SHM_BYTES)),
        ]))
    }

    /// Members that run and have little left for one more peer, each on its own limits.
    pub(super) fn member_limits(&self) -> Vec<Finding> {
        let check = "member-limits";
        let processes = &self.members.processes;
        // What one more peer takes.
        let more = |needs: fn(Scale) -> u64| {
            let peers = self.scale.peers;
            let with = |peers| {
                needs(Scale {
                    peers,
                    ..self.scale
                })
            };
            with(peers + 1).saturating_sub(with(peers))
        };
        let files = more(Scale::open_files);
        let mappings = more(Scale::mappings);
        let mut findings = Vec::new();
        for process in processes {
            let holder = format!("process {} ({})", process.pid, process.name);
            let looked_at = [
                (
                    "open files",
                    process.open_files,
                    process.open_files_max.0,
                    files,
                ),
                (
                    "mappings",
                    process.mappings,
                    self.machine.mappings_max,
                    mappings,
                ),
            ];
            for (kind, used, limit, needed) in looked_at {
                let (Some(used), Some(limit)) = (used, limit) else {
                    continue;
                };
                if limit.saturating_sub(used) < needed {
                    let what = format!(
                        "{holder} has {used} of {limit} {kind}; one more peer takes up to {needed}"
                    );
                    let words = "start it with a higher limit: until then, newcomers are refused";
                    let figures = [
                        ("pid", Some(process.pid.into())),
                        ("limit", Some(limit)),
                        ("used", Some(used)),
                        ("needed", Some(needed)),
                    ];
                    findings.push(error(check, what, words).with(figures));
                }
            }
        }
        if findings.is_empty() && !processes.is_empty() {
            let count = processes.len();
            findings.push(ok(
                check,
                format!("{count} processes have room for one more peer"),
            ));
        }
        findings
    }
}
