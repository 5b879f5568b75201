//! `spindle doctor`: whether this machine is fit for Spindle, and for which fabrics.
//!
//! - Facts: `machine` and `rdma` (from the kernel's files), `domain` (its directory on this host),
//!   `contacts` (which of them answer).
//! - Conclusions: `findings`, from the facts alone; `report` prints them.

mod contacts;
mod domain;
mod findings;
mod machine;
mod options;
mod rdma;
mod report;
#[cfg(test)]
mod tests;

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
use findings::{Found, Mark};
use machine::Machine;
pub(crate) use options::DoctorOptions;
use options::Requirement;
use report::Report;

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
        contacts: &contacts,
        require: &options.require,
    };
    let findings = found.findings();
    Report {
        fit: findings.iter().all(|finding| finding.mark != Mark::Unfit),
        fabrics: report::fabrics(&rdma),
        findings,
        machine,
        domain,
        contacts: contacts.unwrap_or_default(),
    }
}
