//! Findings about the machine, whatever runs on it.

use super::{Finding, Found, error, ok, warning};

/// The oldest supported kernel, and those with useful features.
const KERNEL_MIN: (u32, u32) = (5, 10);
const FUTEX_WAITV: (u32, u32) = (5, 16);
const NOEXEC_SEAL: (u32, u32) = (6, 3);

impl Found<'_> {
    pub(super) fn kernel(&self) -> Finding {
        let (check, kernel) = ("kernel", &self.machine.kernel);
        let Some(version) = self.machine.kernel_version() else {
            let what = format!("Linux {kernel}: the release cannot be parsed");
            return warning(check, what, "5.10 or newer is needed");
        };
        if version < KERNEL_MIN {
            let what = format!("Linux {kernel} is too old");
            return error(check, what, "5.10 or newer is needed, 5.16 is better");
        }
        if version < FUTEX_WAITV {
            let what = format!(
                "Linux {kernel} has no futex_waitv: threads sleep on event file descriptors"
            );
            return warning(check, what, "5.16 or newer wakes them faster");
        }
        let noexec = match version < NOEXEC_SEAL {
            true => "; memory cannot be sealed against execution (needs 6.3)",
            false => ", memory sealed against execution",
        };
        ok(check, format!("Linux {kernel}: pidfd, futex_waitv{noexec}"))
    }

    pub(super) fn trial(&self) -> Finding {
        let check = "station";
        match self.trial {
            Ok(()) => ok(check, "a station was opened and closed on trial".to_owned()),
            Err(problem) => error(
                check,
                format!("a station cannot be opened: {problem}"),
                "check the limits of memory and open files, and whether a sandbox (seccomp) forbids \
                 memfd_create or pidfd_open",
            ),
        }
    }

    pub(super) fn cores(&self) -> Finding {
        let check = "processors";
        let (Some(cores), Some(load)) = (self.machine.cores, self.machine.load) else {
            return ok(check, "unknown".to_owned());
        };
        let what = format!("{cores}, load {load:.1}");
        if cores == 1 {
            return warning(
                check,
                what,
                "set spindle.wait to block: a spinning thread takes the only processor",
            );
        }
        if load > f64::from(cores) {
            let words = "the processors are overloaded: latency suffers, and heartbeats may be late; \
                         increase spindle.failure.limit_ms, or set spindle.wait to block";
            return warning(check, what, words);
        }
        ok(check, what)
    }

    pub(super) fn huge_pages(&self) -> Finding {
        let (check, pages) = ("huge-pages", &self.machine.huge_pages);
        let shared = pages.shared_memory.as_deref().unwrap_or("unknown");
        let reserved = format!("{} reserved, {} free (not used)", pages.total, pages.free);
        ok(check, format!("for shared memory: {shared}; {reserved}"))
    }

    pub(super) fn clock(&self) -> Finding {
        let check = "clock";
        let Some(source) = self.machine.clock.as_deref() else {
            return ok(check, "unknown".to_owned());
        };
        let what =
            format!("{source}; timestamps of different hosts are as comparable as their clocks");
        match source {
            "hpet" | "acpi_pm" | "jiffies" => warning(
                check,
                what,
                "slow to read, and each sample has a timestamp; find out why the kernel does not \
                 trust the processor's clock (dmesg | grep -i tsc)",
            ),
            _ => ok(check, what),
        }
    }
}
