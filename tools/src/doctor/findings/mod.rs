//! Findings, computed from the facts alone.

use serde::Serialize;
use spindle_dds_transport::hybrid::CallFailureCause;

use super::contacts::{ContactCheck, ContactPath, ContactProblem, ProblemCause};
use super::domain::Domain;
use super::machine::Machine;
use super::options::Requirement;
use super::rdma::{Choice, Obstacle, Port};

/// The weight of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mark {
    Ok,
    /// It works, and can be improved.
    Advice,
    /// Spindle does not work, or a requirement is not met.
    Unfit,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) mark: Mark,
    pub(super) subject: &'static str,
    pub(super) what: String,
    /// What to do, if anything.
    pub(super) advice: Option<String>,
}

/// All facts.
#[derive(Debug)]
pub(super) struct Found<'a> {
    pub(super) machine: &'a Machine,
    pub(super) rdma: &'a Result<Choice, Obstacle>,
    /// Result of opening a station on trial.
    pub(super) trial: &'a Result<(), String>,
    pub(super) domain: &'a Domain,
    pub(super) contacts: &'a Result<Vec<ContactCheck>, String>,
    pub(super) require: &'a [Requirement],
}

/// The oldest supported kernel, and those with useful features.
const KERNEL_MIN: (u32, u32) = (5, 10);
const FUTEX_WAITV: (u32, u32) = (5, 16);
const NOEXEC_SEAL: (u32, u32) = (6, 3);

/// About the size of a row with default rings.
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
            let what = format!("Linux {kernel}: the release cannot be parsed");
            return advice(subject, what, "5.10 or newer is needed");
        };
        if version < KERNEL_MIN {
            let what = format!("Linux {kernel} is too old");
            return unfit(subject, what, "5.10 or newer is needed, 5.16 is better");
        }
        if version < FUTEX_WAITV {
            let what = format!(
                "Linux {kernel} has no futex_waitv: threads sleep on event file descriptors"
            );
            return advice(subject, what, "5.16 or newer wakes them faster");
        }
        let noexec = match version < NOEXEC_SEAL {
            true => "; memory cannot be sealed against execution (needs 6.3)",
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
                "check the limits of memory and open files, and whether a sandbox (seccomp) forbids \
                 memfd_create or pidfd_open",
            ),
        }
    }

    fn cores(&self) -> Finding {
        let subject = "processors";
        let (Some(cores), Some(load)) = (self.machine.cores, self.machine.load) else {
            return ok(subject, "unknown".to_owned());
        };
        let what = format!("{cores}, load {load:.1}");
        if cores == 1 {
            return advice(
                subject,
                what,
                "set spindle.wait to block: a spinning thread takes the only processor",
            );
        }
        if load > f64::from(cores) {
            let words = "the processors are overloaded: latency suffers, and heartbeats may be late; \
                         increase spindle.failure.limit_ms, or set spindle.wait to block";
            return advice(subject, what, words);
        }
        ok(subject, what)
    }

    fn memory(&self) -> Finding {
        let (subject, machine) = ("memory", self.machine);
        let file_size = machine.limits.file_size_bytes;
        if !file_size.allows(ROW_BYTES) {
            let most = mebibytes(file_size.0.unwrap_or(0));
            let what = format!("files may have {most} at most, including files in memory");
            return unfit(
                subject,
                what,
                "ulimit -f unlimited: rows are files in memory",
            );
        }
        let Some(available) = machine.memory_available_bytes else {
            return ok(subject, "unknown".to_owned());
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
                "each member keeps a ring of 8 MiB for each sender in a subgroup: reduce \
                 spindle.ring.bytes",
            ),
            false => ok(subject, what),
        }
    }

    fn huge_pages(&self) -> Finding {
        let (subject, pages) = ("huge pages", &self.machine.huge_pages);
        let shared = pages.shared_memory.as_deref().unwrap_or("unknown");
        let reserved = format!("{} reserved, {} free (not used)", pages.total, pages.free);
        ok(subject, format!("for shared memory: {shared}; {reserved}"))
    }

    fn shm(&self) -> Option<Finding> {
        let (subject, free) = ("/dev/shm", self.machine.shm_free_bytes?);
        let what = format!(
            "{} free; may contain the domain's directory, but no rows",
            mebibytes(free)
        );
        Some(match free < SHM_BYTES {
            true => advice(subject, what, "free some space, or set spindle.directory"),
            false => ok(subject, what),
        })
    }

    fn open_files(&self) -> Finding {
        let (subject, limits) = ("open files", &self.machine.limits);
        let most =
            |limit: Option<u64>| limit.map_or_else(|| "unlimited".to_owned(), |it| it.to_string());
        let (soft, hard) = (most(limits.open_files.0), most(limits.open_files_hard.0));
        let what = format!("soft limit {soft}, hard limit {hard}");
        match limits.open_files.allows(OPEN_FILES) {
            true => ok(subject, what),
            false => advice(
                subject,
                what,
                &format!(
                    "each row of another member on this host needs one: for many members or \
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
                format!("at most {}; only RDMA needs it", mebibytes(most)),
            ),
        }
    }

    fn clock(&self) -> Finding {
        let subject = "clock";
        let Some(source) = self.machine.clock.as_deref() else {
            return ok(subject, "unknown".to_owned());
        };
        let what =
            format!("{source}; timestamps of different hosts are as comparable as their clocks");
        match source {
            "hpet" | "acpi_pm" | "jiffies" => advice(
                subject,
                what,
                "slow to read, and each sample has a timestamp; find out why the kernel does not \
                 trust the processor's clock (dmesg | grep -i tsc)",
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
                _ => advice("RDMA port", what, "not usable in this state"),
            }
        });
        findings.collect()
    }

    fn rdma(&self) -> Finding {
        let subject = "RDMA";
        let required = self.require.contains(&Requirement::Rdma);
        match self.rdma {
            Ok(choice) => ok(subject, format!("is used: {choice}")),
            Err(Obstacle {
                what,
                advice: words,
            }) if required => unfit(subject, format!("required, but {what}"), words),
            // A device exists but is not used.
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
                "no participants yet: the directory does not exist".to_owned(),
            ),
            Domain::NoMembers => ok(subject, "no participants known on this host".to_owned()),
            Domain::Members(1) => ok(subject, "1 member in the record".to_owned()),
            Domain::Members(count) => ok(subject, format!("{count} members in the record")),
            Domain::Unusable(problem) => unfit(
                subject,
                problem.clone(),
                "correct it, or set spindle.directory to another directory",
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
        let contacts = match self.contacts {
            Ok(contacts) => contacts,
            Err(problem) => {
                return vec![fail(
                    format!("contacts cannot be called: {problem}"),
                    "correct it, and run this command again",
                )];
            }
        };
        let findings = contacts.iter().map(|check| {
            let contact = &check.contact;
            match (check.path, &check.problem) {
                (Some(ContactPath::Shm), _) => ok(
                    subject,
                    format!("{contact} answers from this host, over shared memory"),
                ),
                (Some(ContactPath::Tcp), _) => ok(
                    subject,
                    format!("{contact} answers from another host, over TCP"),
                ),
                (Some(ContactPath::Rdma), _) => ok(
                    subject,
                    format!("{contact} answers from another host, over RDMA"),
                ),
                (None, Some(ContactProblem { text, cause })) => {
                    fail(format!("{contact}: {text}"), advice_for(*cause))
                }
                (None, None) => fail(format!("{contact}: unknown"), ADVICE_OTHER),
            }
        });
        findings.collect()
    }
}

/// Advice for a problem with a contact.
fn advice_for(cause: ProblemCause) -> &'static str {
    let ProblemCause::Call(cause) = cause else {
        return "check the name, /etc/hosts and the resolver";
    };
    match cause {
        CallFailureCause::Secret => {
            "give all participants of a domain the same spindle.secret_file"
        }
        CallFailureCause::Version => "run one version of Spindle DDS on all hosts",
        CallFailureCause::Domain => {
            "a participant of another domain listens there: use another port"
        }
        CallFailureCause::NoRoute => "check the network: there is no route to it",
        CallFailureCause::NotListening => {
            "no program listens there: is the participant running, with this spindle.listen?"
        }
        _ => ADVICE_OTHER,
    }
}

const ADVICE_OTHER: &str =
    "is the participant running, with this spindle.listen, and does a firewall allow TCP?";

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
