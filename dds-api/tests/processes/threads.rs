//! How the system schedules the threads of a participant: `spindle.threads.*`.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use spindle_dds::{DomainParticipant, Error};

use crate::scene::{self, Child};

const PATIENCE: Duration = Duration::from_secs(60);
/// A user without rights.
const USER: u32 = 65534;

#[test]
fn threads_run_on_their_processors_with_their_nice_values() {
    scene::play("threads::process", "settings");
}

#[test]
fn a_processor_that_does_not_exist_fails_enable_and_nothing_is_left() {
    scene::play("threads::process", "processor");
}

#[test]
fn a_policy_without_the_right_fails_enable_with_what_is_missing_and_nothing_is_left() {
    scene::play("threads::process", "right");
}

/// Not a test by itself. The child has one thread, as a program of its own has.
#[test]
fn process() {
    let Some(act) = scene::current() else { return };
    let child = Child::fork(|| match &*act {
        "settings" => settings(),
        "processor" => processor(),
        _ => right(),
    });
    child.join();
}

type Outcome = Result<(), String>;

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn create(directory: &Path, properties: &[(&str, &str)]) -> spindle_dds::Result<DomainParticipant> {
    let directory = directory.display().to_string();
    let mut builder = DomainParticipant::builder(0).property("spindle.directory", &directory);
    for (name, value) in properties {
        builder = builder.property(&format!("spindle.threads.{name}"), value);
    }
    builder.create()
}

fn settings() -> Outcome {
    let directory = tempfile::tempdir().map_err(text)?;
    let allowed = std::fs::read_to_string("/proc/self/status").map_err(text)?;
    let allowed = allowed
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .ok_or("no processors")?
        .trim();
    let end = allowed.find(['-', ',']).unwrap_or(allowed.len());
    let first = &allowed[..end];
    let properties = [
        ("poll.cpus", first),
        ("poll.priority", "19"),
        ("io.cpus", first),
        ("dispatch.priority", "18"),
    ];
    let participant = create(&directory.path().join("domains"), &properties).map_err(text)?;
    let found = scene::library_threads(&["poll", "station", "dispatch", "control"])?;
    let found: Vec<_> = found
        .iter()
        .map(|thread| (thread.status("Cpus_allowed_list"), thread.nice()))
        .collect();
    let nice = rustix::process::getpriority_process(None).map_err(text)?;
    let [first, all] = [first, allowed].map(str::to_owned);
    let expected = [
        (first.clone(), 19),
        (first, nice),
        (all.clone(), 18),
        (all, nice),
    ];
    if found != expected {
        return Err(format!("{found:?}, not {expected:?}"));
    }
    participant.close().map_err(text)
}

fn processor() -> Outcome {
    for thread in ["poll", "control", "dispatch", "wake", "io"] {
        let name = format!("{thread}.cpus");
        let wanted = [&*format!("spindle.threads.{name}"), "no processor 1023"];
        refused((&name, "1023"), &[], &wanted)?;
    }
    Ok(())
}

fn right() -> Outcome {
    if rustix::process::getuid().is_root() {
        // SAFETY: this process has one thread.
        let failed = unsafe { libc::setresuid(USER, USER, USER) };
        if failed != 0 {
            return Err("another user cannot be had".to_owned());
        }
    }
    let none = rustix::process::Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    rustix::process::setrlimit(rustix::process::Resource::Rtprio, none).map_err(text)?;
    for thread in ["poll", "dispatch", "io"] {
        let (name, priority) = (format!("{thread}.policy"), format!("{thread}.priority"));
        let property = format!("spindle.threads.{name}");
        let wanted = [&*property, "CAP_SYS_NICE", "RLIMIT_RTPRIO"];
        refused((&name, "fifo"), &[(&priority, "50")], &wanted)?;
    }
    Ok(())
}

/// The participant is not created, for this reason, and no thread and no socket of it is left.
fn refused(property: (&str, &str), others: &[(&str, &str)], wanted: &[&str]) -> Outcome {
    let directory = tempfile::tempdir().map_err(text)?;
    let domains = directory.path().join("domains");
    let properties = [&[property], others].concat();
    match create(&domains, &properties) {
        Err(Error::Error(text)) if wanted.iter().all(|it| text.contains(it)) => {}
        Err(error) => return Err(format!("{property:?}: {error}")),
        Ok(_) => return Err(format!("{property:?} is taken")),
    }
    let deadline = Instant::now() + PATIENCE;
    while !scene::other_threads().is_empty() {
        if Instant::now() > deadline {
            return Err(format!("{property:?}: its threads are left"));
        }
        thread::yield_now();
    }
    let left: Vec<_> = std::fs::read_dir(&domains)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name())
        .filter(|name| !name.to_string_lossy().ends_with(".record"))
        .collect();
    match left.is_empty() {
        true => Ok(()),
        false => Err(format!("{property:?}: {left:?} are left")),
    }
}
