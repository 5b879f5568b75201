//! Cyclone DDS, by its Python package: processes that run `cyclone.py`, on the loopback interface.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::protocol::Job;
use crate::bench::cyclone::configuration;
use crate::perf::Failure;

/// The version that is installed, or how to install it.
pub(super) fn version() -> Result<String, Failure> {
    let said = match Command::new(PROGRAM).args(["-c", VERSION]).output() {
        Ok(output) if output.status.success() => {
            let version = String::from_utf8_lossy(&output.stdout);
            return Ok(format!("Cyclone DDS {}", version.trim()));
        }
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            said.trim().lines().last().unwrap_or_default().to_owned()
        }
        Err(error) => error.to_string(),
    };
    Err(Failure::Workers(format!(
        "--peer cyclone: not installed: pip install cyclonedds, for the {PROGRAM} of the PATH ({said})"
    )))
}

/// Replaces the program of this process. Returns only if that fails.
pub(super) fn become_process(job: &Job) -> io::Error {
    // Runs at the same time do not meet.
    let domain = DOMAINS[0] + job.parent % (DOMAINS[1] - DOMAINS[0]);
    let numbers = [domain, job.participants, job.topics, job.index];
    let error = Command::new(PROGRAM)
        .args(["-c", SCRIPT])
        .args(numbers.map(|number| number.to_string()))
        .env("CYCLONEDDS_URI", configuration(job.participants + SPARE))
        .exec();
    io::Error::new(error.kind(), format!("{PROGRAM}: {error}"))
}

const PROGRAM: &str = "python3";
const SCRIPT: &str = include_str!("cyclone.py");
/// What the script imports, in short.
const VERSION: &str = "import cyclonedds.pub, importlib.metadata
print(importlib.metadata.version('cyclonedds'))";
/// Participants of programs that have not ended yet.
const SPARE: u32 = 19;
/// From the first to before the last: their ports are below those that the kernel gives out.
const DOMAINS: [u32; 2] = [50, 100];
