//! `spindle doctor`: whether this machine is fit for Spindle, and for which fabrics.
//!
//! - Facts: `machine`, `mounts` and `rdma` (from the kernel's files), `domain` (its record on this
//!   host), `place` (its directory), `members` (its processes), `contacts` (which of them answer).
//! - `needs`: what participants need of the system, by the number of peers and topics.
//! - Conclusions: `findings`, from the facts alone; `report` prints them.

mod contacts;
mod domain;
mod findings;
mod machine;
mod members;
mod mounts;
mod needs;
mod options;
mod place;
mod rdma;
mod report;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, error::ErrorKind};
use spindle_dds_transport::hybrid::read_secret;
use spindle_dds_transport::shm::default_domain_directory;

use contacts::ContactChecker;
use domain::Domain;
use findings::{Found, Level};
use machine::Machine;
use members::Members;
use needs::Scale;
pub(crate) use options::DoctorOptions;
use options::Requirement;
use place::Place;
use report::Report;
use spindle_dds::monitor::Monitor;

/// Exit code 0: fit. 1: unfit, in general or for what is required. 2: wrong arguments.
pub(crate) fn run(options: &DoctorOptions) -> ExitCode {
    if options.require.contains(&Requirement::Contacts) && options.contacts.is_empty() {
        let problem = "--require contacts needs --contacts";
        crate::Arguments::command()
            .error(ErrorKind::MissingRequiredArgument, problem)
            .exit();
    }
    let report = examine(options, Machine::read(Path::new("/")));
    let text = match options.json {
        true => serde_json::to_string(&report).map(|text| text + "\n"),
        false => Ok(report.to_string()),
    };
    let printed = text
        .map_err(std::io::Error::from)
        .and_then(|text| std::io::stdout().write_all(text.as_bytes()));
    if let Err(error) = printed {
        eprintln!("spindle doctor: {error}");
        return ExitCode::FAILURE;
    }
    match report.fit {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn examine(options: &DoctorOptions, machine: Machine) -> Report {
    let directory = options
        .directory
        .clone()
        .unwrap_or_else(default_domain_directory);
    let domain = Domain::read(options.domain, &directory);
    let place = Place::read(&directory, Path::new("/"));
    let members = members(options, &domain, &directory);
    let scale = Scale::new(
        options.peers,
        options.topics,
        (members.recorded, members.topics),
    );
    let secret = options.secret_file.as_deref().map(read_secret).transpose();
    let (secret, no_secret) = match secret {
        Ok(secret) => (secret, None),
        Err(error) => (None, Some(error.to_string())),
    };
    let checker = ContactChecker {
        domain: options.domain,
        directory,
        listen: options.listen,
        secret,
        patience: Duration::from_millis(options.patience_ms),
    };
    let trial = checker.trial();
    let contacts = match (no_secret, options.contacts.as_slice()) {
        (Some(problem), _) => Err(problem),
        (None, []) => Ok(Vec::new()),
        (None, contacts) => checker.check(contacts),
    };
    let listen = options.listen.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    let rdma = machine.rdma.choice(&machine.limits, listen);
    let found = Found {
        machine: &machine,
        rdma: &rdma,
        trial: &trial,
        domain: &domain,
        place: &place,
        members: &members,
        scale,
        contacts: &contacts,
        require: &options.require,
    };
    let findings = found.findings();
    Report {
        fit: findings.iter().all(|finding| finding.level != Level::Error),
        fabrics: report::fabrics(&rdma),
        findings,
        machine,
        domain,
        place,
        members,
        scale,
        contacts: contacts.unwrap_or_default(),
    }
}

/// The domain's processes, and what its members tell of themselves.
fn members(options: &DoctorOptions, domain: &Domain, directory: &Path) -> Members {
    let mut members = Members::read(options.domain, directory, Path::new("/"));
    if !matches!(domain, Domain::Members(_)) {
        return members;
    }
    let entries = domain::living_members(options.domain, directory).unwrap_or_default();
    members.foreign = members::foreign(&entries);
    let mut monitor = Monitor::new(options.domain, Some(directory));
    let seen = monitor.observe(Duration::from_millis(options.patience_ms));
    let seen = seen.unwrap_or_default();
    members.recorded = seen.iter().filter(|it| it.is_here).count() as u64;
    let figures = seen.iter().filter_map(|it| it.figures.as_ref().ok());
    let topics = figures.flat_map(|it| it.topics.iter().map(|topic| &*topic.topic));
    members.topics = topics.collect::<BTreeSet<_>>().len() as u64;
    members
}
