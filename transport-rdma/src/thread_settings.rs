//! Scheduling policy, priority and processors of a thread.

use std::fmt;
use std::io;
use std::str::FromStr;

use rustix::thread::CpuSet;

/// How the system schedules a thread, where that is not left to the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadSettings {
    /// The beginning of the names of the properties that say so, for error messages.
    pub name: &'static str,
    /// The policy; `None`: as the thread that starts it.
    pub policy: Option<ThreadPolicy>,
    /// The processors that it may use; `None`: as the thread that starts it.
    pub cpus: Option<CpuList>,
}

/// Processors of this host, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuList(CpuSet);

impl FromStr for CpuList {
    type Err = ();

    /// Numbers and ranges with commas between, as `0,2-3`.
    fn from_str(text: &str) -> Result<Self, ()> {
        let mut cpus = CpuSet::new();
        for item in text.split(',') {
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            let number = |text: &str| text.trim().parse::<usize>().map_err(drop);
            let (first, last) = (number(first)?, number(last)?);
            if first > last || last >= CpuSet::MAX_CPU {
                return Err(());
            }
            (first..=last).for_each(|cpu| cpus.set(cpu));
        }
        Ok(Self(cpus))
    }
}

/// As `0,2-3`.
impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        for cpu in self.numbers() {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == cpu => *last = cpu,
                _ => ranges.push((cpu, cpu)),
            }
        }
        for (at, (first, last)) in ranges.into_iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{first}")?;
            if last > first {
                write!(f, "-{last}")?;
            }
        }
        Ok(())
    }
}

impl CpuList {
    fn numbers(&self) -> impl Iterator<Item = usize> {
        (0..CpuSet::MAX_CPU).filter(|cpu| self.0.is_set(*cpu))
    }

    /// The processors that the calling thread may use.
    fn of_this_thread() -> Self {
        Self(rustix::thread::sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new()))
    }
}

/// A scheduling policy with its priority; see sched(7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadPolicy {
    /// SCHED_OTHER, with this nice value, -20 to 19, if there is one.
    Other(Option<i32>),
    /// SCHED_FIFO with this priority, 1 to 99.
    Fifo(i32),
    /// SCHED_RR with this priority, 1 to 99.
    RoundRobin(i32),
}

impl ThreadSettings {
    /// Whether everything is left to the system.
    pub(crate) fn is_empty(&self) -> bool {
        self.policy.is_none() && self.cpus.is_none()
    }

    /// Applies them to the calling thread.
    ///
    /// # Errors
    /// The text names the property, and says what is missing.
    pub(crate) fn apply(&self) -> io::Result<()> {
        let name = self.name;
        if let Some(cpus) = &self.cpus {
            restrict_to(cpus)
                .map_err(|why| io::Error::other(format!("property {name}.cpus: {why}")))?;
        }
        if let Some(policy) = self.policy {
            policy
                .apply()
                .map_err(|why| io::Error::other(format!("property {name}.policy: {why}")))?;
        }
        Ok(())
    }
}

fn restrict_to(cpus: &CpuList) -> Result<(), String> {
    let refused = rustix::thread::sched_setaffinity(None, &cpus.0).err();
    let allowed = CpuList::of_this_thread();
    // The kernel leaves out processors that do not exist, as long as one does.
    let missing = cpus.numbers().find(|cpu| !allowed.0.is_set(*cpu));
    match (missing, refused) {
        (None, None) => Ok(()),
        (Some(cpu), _) => Err(format!(
            "there is no processor {cpu}, or this process may not use it (its cpuset); it may use \
             {allowed}"
        )),
        (None, Some(errno)) => Err(errno.to_string()),
    }
}

impl ThreadPolicy {
    fn apply(self) -> Result<(), String> {
        let (policy, priority) = match self {
            Self::Other(_) => (libc::SCHED_OTHER, 0),
            Self::Fifo(priority) => (libc::SCHED_FIFO, priority),
            Self::RoundRobin(priority) => (libc::SCHED_RR, priority),
        };
        set_policy(policy, priority).map_err(|error| self.refused(&error))?;
        match self {
            Self::Other(Some(nice)) => set_nice(nice).map_err(|error| self.refused(&error)),
            Self::Other(None) | Self::Fifo(_) | Self::RoundRobin(_) => Ok(()),
        }
    }

    fn refused(self, error: &io::Error) -> String {
        use rustix::process::{Resource, getrlimit};
        let current = |limit| match getrlimit(limit).current {
            Some(current) => current.to_string(),
            None => "unlimited".to_owned(),
        };
        match self {
            Self::Other(None) => error.to_string(),
            Self::Other(Some(nice)) => format!(
                "a nice value of {nice} is refused ({error}): it needs the capability \
                 CAP_SYS_NICE, or a limit RLIMIT_NICE (ulimit -e) of at least {}, which is {}",
                20 - nice,
                current(Resource::Nice)
            ),
            Self::Fifo(priority) | Self::RoundRobin(priority) => format!(
                "a real-time policy with priority {priority} is refused ({error}): it needs the \
                 capability CAP_SYS_NICE, or a limit RLIMIT_RTPRIO (ulimit -r) of at least \
                 {priority}, which is {}",
                current(Resource::Rtprio)
            ),
        }
    }
}

fn set_policy(policy: libc::c_int, priority: libc::c_int) -> io::Result<()> {
    // SAFETY: a structure of integers, for which zeros are valid.
    let mut param: libc::sched_param = unsafe { std::mem::zeroed() };
    param.sched_priority = priority;
    // SAFETY: only a query.
    let thread = unsafe { libc::pthread_self() };
    // SAFETY: the calling thread, and a structure that lives during the call.
    match unsafe { libc::pthread_setschedparam(thread, policy, &raw const param) } {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

fn set_nice(nice: i32) -> io::Result<()> {
    // For Linux a thread has a nice value of its own, and 0 is the calling one.
    rustix::process::setpriority_process(None, nice)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library_thread::LibraryThread;

    fn settings(policy: Option<ThreadPolicy>, cpus: Option<CpuList>) -> ThreadSettings {
        ThreadSettings {
            name: "spindle.threads.test",
            policy,
            cpus,
        }
    }

    fn started_with(settings: ThreadSettings) -> io::Result<(CpuList, i32)> {
        let (sender, found) = std::sync::mpsc::channel();
        let thread = LibraryThread::named("spindle-test").spawn_with(&settings, move || {
            let cpus = CpuList::of_this_thread();
            let nice = rustix::process::getpriority_process(None).expect("a nice value");
            sender.send((cpus, nice)).expect("a receiver");
        })?;
        thread.join().expect("it ends");
        Ok(found.recv().expect("what it has found"))
    }

    #[test]
    fn a_thread_has_its_processors_and_nice_value_and_its_starter_is_as_before() {
        let allowed = CpuList::of_this_thread();
        let nice = rustix::process::getpriority_process(None).expect("a nice value");
        let last = allowed.numbers().last().expect("a processor");
        let one = last.to_string().parse().expect("a list");
        let policy = ThreadPolicy::Other(Some(19));
        let found = started_with(settings(Some(policy), Some(one))).expect("a thread");
        assert_eq!(found, (one, 19));
        assert_eq!(CpuList::of_this_thread(), allowed);
        assert_eq!(rustix::process::getpriority_process(None), Ok(nice));
    }

    #[test]
    fn a_thread_on_a_processor_that_does_not_exist_is_not_started() {
        let mut cpus = CpuList::of_this_thread();
        cpus.0.set(CpuSet::MAX_CPU - 1);
        let error = started_with(settings(None, Some(cpus))).expect_err("no such processor");
        let text = error.to_string();
        let wanted = ["spindle.threads.test.cpus", "no processor 1023", "cpuset"];
        assert!(wanted.iter().all(|it| text.contains(it)), "{text}");
    }

    /// Depends on the rights of the process that runs the test.
    #[test]
    fn a_real_time_policy_is_had_or_its_absence_explained() {
        match started_with(settings(Some(ThreadPolicy::Fifo(7)), None)) {
            Ok(_) => {}
            Err(error) => {
                let text = error.to_string();
                let wanted = [
                    "spindle.threads.test.policy",
                    "CAP_SYS_NICE",
                    "RLIMIT_RTPRIO",
                ];
                assert!(wanted.iter().all(|it| text.contains(it)), "{text}");
            }
        }
    }

    #[test]
    fn processors_are_written_as_they_are_read() {
        let parse = |text: &str| text.parse::<CpuList>();
        for text in ["0", "0,2-4,9", "1023"] {
            assert_eq!(parse(text).expect(text).to_string(), text);
        }
        assert_eq!(parse(" 2 - 3, 0,1").expect("a list").to_string(), "0-3");
        for text in ["", "a", "1,", "3-2", "1024", "-1", "0-2000"] {
            assert_eq!(parse(text), Err(()), "{text}");
        }
    }
}
