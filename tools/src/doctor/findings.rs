//! What is said of what was found. No look at the machine: all comes in.

use serde::Serialize;

use super::contacts::{Knock, Way};
use super::domain::Domain;
use super::machine::Machine;
use super::options::Requirement;
use super::rdma::{Choice, Obstacle, Port};

/// How it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mark {
    Ok,
    /// It works, and could be better.
    Advice,
    /// Nothing works, or not what was asked for.
    Unfit,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) mark: Mark,
    pub(super) subject: &'static str,
    pub(super) what: String,
    /// What to do, if something is to be done.
    pub(super) advice: Option<String>,
}

/// All that was found out.
#[derive(Debug)]
pub(super) struct Found<'a> {
    pub(super) machine: &'a Machine,
    pub(super) rdma: &'a Result<Choice, Obstacle>,
    /// Whether the system gives what a participant needs, tried.
    pub(super) trial: &'a Result<(), String>,
    pub(super) domain: &'a Domain,
    pub(super) knocks: &'a Result<Vec<Knock>, String>,
    pub(super) require: &'a [Requirement],
}

/// Oldest kernel, and those that bring something.
const KERNEL_MIN: (u32, u32) = (5, 10);
const FUTEX_WAITV: (u32, u32) = (5, 16);
const NOEXEC_SEAL: (u32, u32) = (6, 3);

/// A row with the default rings is about as large.
const ROW_BYTES: u64 = 16 << 20;

const OPEN_FILES: u64 = 4096;
const MEMORY_BYTES: u64 = 256 << 20;
const SHM_BYTES: u64 = 1 << 20;

impl Found<'_> {
    pub(super) fn findings(&self) -> Vec<Finding> {
        let mut findings = vec![
            self.kernel(),
            self.trial(),
            self.cores(),
            self.memory(),
            self.huge_pages(),
            self.open_files(),
            self.memlock(),
            self.clock(),
        ];
        findings.extend(self.shm());
        findings.extend(self.devices());
        findings.push(self.rdma());
        findings.push(self.domain());
        findings.extend(self.contacts());
        findings
    }

    fn kernel(&self) -> Finding {
        let (subject, kernel) = ("kernel", &self.machine.kernel);
        let Some(version) = self.machine.kernel_version() else {
            let what = format!("Linux {kernel}: a release that makes no sense here");
            return advice(subject, what, "5.10 or newer is needed");
        };
        if version < KERNEL_MIN {
            let what = format!("Linux {kernel} is too old");
            return unfit(subject, what, "5.10 or newer is needed, 5.16 is better");
        }
        if version < FUTEX_WAITV {
            let what = format!("Linux {kernel} has no futex_waitv: sleepers wait for events");
            return advice(subject, what, "5.16 or newer wakes them sooner");
        }
        let noexec = match version < NOEXEC_SEAL {
            true => "; rows in memory cannot be sealed against execution (6.3)",
            false => ", memory sealed against execution",
        };
        ok(
            subject,
            format!("Linux {kernel}: pidfd, futex_waitv{noexec}"),
        )
    }

    fn trial(&self) -> Finding {
        let subject = "station";
        match self.trial {
            Ok(()) => ok(
                subject,
                "a station was opened and closed on trial".to_owned(),
            ),
            Err(problem) => unfit(
                subject,
                format!("a station cannot be opened: {problem}"),
                "look for limits of memory and of open files, and for a sandbox (seccomp) that \
                 forbids memfd_create or pidfd_open",
            ),
        }
    }

    fn cores(&self) -> Finding {
        let subject = "processors";
        let (Some(cores), Some(load)) = (self.machine.cores, self.machine.load) else {
            return ok(subject, "nothing is known".to_owned());
        };
        let what = format!("{cores}, load {load:.1}");
        if cores == 1 {
            return advice(
                subject,
                what,
                "set spindle.wait to block: who spins takes the time of all",
            );
        }
        if load > f64::from(cores) {
            let words = "more runs than there is room for: latency suffers, and a heartbeat may be \
                         late; set spindle.failure.limit_ms higher, or spindle.wait to block";
            return advice(subject, what, words);
        }
        ok(subject, what)
    }

    fn memory(&self) -> Finding {
        let (subject, machine) = ("memory", self.machine);
        let file_size = machine.limits.file_size_bytes;
        if !file_size.allows(ROW_BYTES) {
            let most = mebibytes(file_size.0.unwrap_or(0));
            let what = format!("a file may have {most} only, also one in memory");
            return unfit(
                subject,
                what,
                "ulimit -f unlimited: rows are files in memory",
            );
        }
        let Some(available) = machine.memory_available_bytes else {
            return ok(subject, "nothing is known".to_owned());
        };
        let room = available.min(machine.memory_max_bytes.unwrap_or(u64::MAX));
        let group = match machine.memory_max_bytes {
            Some(most) => format!(", {} in this control group", mebibytes(most)),
            None => String::new(),
        };
        let what = format!("{} available{group}", mebibytes(available));
        match room < MEMORY_BYTES {
            true => advice(
                subject,
                what,
                "each member keeps a ring of 8 MiB of each sender in a subgroup: set \
                 spindle.ring.bytes lower",
            ),
            false => ok(subject, what),
        }
    }

    fn huge_pages(&self) -> Finding {
        let (subject, pages) = ("huge pages", &self.machine.huge_pages);
        let shared = pages.shared_memory.as_deref().unwrap_or("unknown");
        let reserved = format!("{} reserved, {} free (not used)", pages.total, pages.free);
        ok(
            subject,
            format!("shared memory gets them: {shared}; {reserved}"),
        )
    }

    fn shm(&self) -> Option<Finding> {
        let (subject, free) = ("/dev/shm", self.machine.shm_free_bytes?);
        let what = format!(
            "{} free; the domain's directory may lie there, rows never do",
            mebibytes(free)
        );
        Some(match free < SHM_BYTES {
            true => advice(subject, what, "make room, or set spindle.directory"),
            false => ok(subject, what),
        })
    }

    fn open_files(&self) -> Finding {
        let (subject, limits) = ("open files", &self.machine.limits);
        let most =
            |limit: Option<u64>| limit.map_or_else(|| "unlimited".to_owned(), |it| it.to_string());
        let (soft, hard) = (most(limits.open_files.0), most(limits.open_files_hard.0));
        let what = format!("at most {soft}, {hard} if asked for");
        match limits.open_files.allows(OPEN_FILES) {
            true => ok(subject, what),
            false => advice(
                subject,
                what,
                &format!(
                    "each row of another member on this host takes one: for many members or \
                     topics, ulimit -n {hard}"
                ),
            ),
        }
    }

    fn memlock(&self) -> Finding {
        let (subject, limits) = ("pinned memory", &self.machine.limits);
        match (limits.may_pin_any, limits.memlock_bytes.0) {
            (true, _) => ok(subject, "unlimited (CAP_IPC_LOCK)".to_owned()),
            (false, None) => ok(subject, "unlimited".to_owned()),
            (false, Some(most)) => ok(
                subject,
                format!("at most {}; RDMA alone needs it", mebibytes(most)),
            ),
        }
    }

    fn clock(&self) -> Finding {
        let subject = "clock";
        let Some(source) = self.machine.clock.as_deref() else {
            return ok(subject, "nothing is known".to_owned());
        };
        let what =
            format!("{source}; timestamps of hosts compare as well as their clocks are kept");
        match source {
            "hpet" | "acpi_pm" | "jiffies" => advice(
                subject,
                what,
                "this source is slow to read: each sample has a timestamp; find out why the kernel \
                 does not trust the processor's (dmesg | grep -i tsc)",
            ),
            _ => ok(subject, what),
        }
    }

    fn devices(&self) -> Vec<Finding> {
        let devices = self.machine.rdma.devices.iter();
        let ports = devices.flat_map(|device| device.ports.iter().map(move |port| (device, port)));
        let findings = ports.map(|(device, port)| {
            let what = format!("{} port {}: {}", device.name, port.number, describe(port));
            match port.state.as_str() {
                "ACTIVE" => ok("RDMA port", what),
                _ => advice("RDMA port", what, "it carries nothing as it is"),
            }
        });
        findings.collect()
    }

    fn rdma(&self) -> Finding {
        let subject = "RDMA";
        let required = self.require.contains(&Requirement::Rdma);
        match self.rdma {
            Ok(choice) => ok(subject, format!("would be used: {choice}")),
            Err(Obstacle {
                what,
                advice: words,
            }) if required => unfit(subject, format!("is required, but {what}"), words),
            // It is there and stays unused.
            Err(Obstacle {
                what,
                advice: words,
            }) if !self.machine.rdma.devices.is_empty() => {
                advice(subject, format!("is not used: {what}"), words)
            }
            Err(Obstacle { what, .. }) => ok(subject, format!("is not used: {what}")),
        }
    }

    fn domain(&self) -> Finding {
        let subject = "domain";
        match self.domain {
            Domain::NoDirectory => ok(
                subject,
                "nobody has been here: its directory is not there yet".to_owned(),
            ),
            Domain::Nobody => ok(
                subject,
                "nobody lives there, as far as this host knows".to_owned(),
            ),
            Domain::Members(1) => ok(subject, "1 member, by the record".to_owned()),
            Domain::Members(count) => ok(subject, format!("{count} members, by the record")),
            Domain::Unusable(problem) => unfit(
                subject,
                problem.clone(),
                "set it right, or give another place with spindle.directory",
            ),
        }
    }

    fn contacts(&self) -> Vec<Finding> {
        let subject = "contact";
        let required = self.require.contains(&Requirement::Contacts);
        let fail = |what: String, words: &str| match required {
            true => unfit(subject, what, words),
            false => advice(subject, what, words),
        };
        let knocks = match self.knocks {
            Ok(knocks) => knocks,
            Err(problem) => {
                return vec![fail(
                    format!("nobody can be called: {problem}"),
                    "nobody is called before that is right",
                )];
            }
        };
        let findings = knocks.iter().map(|knock| {
            let contact = &knock.contact;
            match (knock.way, &knock.problem) {
                (Some(Way::Shm), _) => ok(
                    subject,
                    format!("{contact} answers: by shared memory, it is on this host"),
                ),
                (Some(Way::Tcp), _) => ok(
                    subject,
                    format!("{contact} answers: from another host, by streams"),
                ),
                (Some(Way::Rdma), _) => ok(
                    subject,
                    format!("{contact} answers: from another host, by RDMA"),
                ),
                (None, problem) => {
                    let problem = problem.as_deref().unwrap_or("nothing is known");
                    fail(format!("{contact}: {problem}"), advice_for(problem))
                }
            }
        });
        findings.collect()
    }
}

/// What a problem with a contact asks for.
fn advice_for(problem: &str) -> &'static str {
    let has = |word| problem.contains(word);
    match () {
        () if has("secret") => "give all participants of a domain the same spindle.secret_file",
        () if has("version") => "run one version of Spindle DDS on all hosts",
        () if has("is of domain") => {
            "somebody of another domain listens there: give ports of their own"
        }
        () if has("resolved") => "look at the name, /etc/hosts and the resolver",
        () if has("unreachable") || has("route") => "look at the network: there is no way to it",
        () if has("refused") => "nobody listens there: is it running, with this spindle.listen?",
        () => "is it running, with this spindle.listen, and does a firewall let TCP through?",
    }
}

fn describe(port: &Port) -> String {
    let mtu = port.mtu.map_or(String::new(), |mtu| format!(", MTU {mtu}"));
    let gids = port.gids.iter().map(|gid| {
        let (index, kind, gid) = (gid.index, &gid.kind, gid.gid);
        format!("{index} {gid} ({kind})")
    });
    let gids: Vec<_> = gids.collect();
    let (state, layer, rate) = (&port.state, &port.link_layer, &port.rate);
    let gids = match gids.is_empty() {
        true => "none".to_owned(),
        false => gids.join(", "),
    };
    format!("{state}, {layer}, {rate}{mtu}, GIDs: {gids}")
}

fn ok(subject: &'static str, what: String) -> Finding {
    Finding {
        mark: Mark::Ok,
        subject,
        what,
        advice: None,
    }
}

fn advice(subject: &'static str, what: String, words: &str) -> Finding {
    Finding {
        mark: Mark::Advice,
        advice: Some(words.to_owned()),
        ..ok(subject, what)
    }
}

fn unfit(subject: &'static str, what: String, words: &str) -> Finding {
    Finding {
        mark: Mark::Unfit,
        ..advice(subject, what, words)
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}
