//! What the doctor is asked.

use std::net::IpAddr;
use std::path::PathBuf;

/// How to look at this machine.
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorOptions {
    /// The domain that is looked at.
    #[arg(long, default_value_t = 0)]
    pub(super) domain: u32,
    /// Where the processes of this host meet, as `spindle.directory`.
    #[arg(long)]
    pub(super) directory: Option<PathBuf>,
    /// The address at which participants of this host listen, as `spindle.listen` has it,
    /// without a port.
    #[arg(long)]
    pub(super) listen: Option<IpAddr>,
    /// A file with the domain's secret, as `spindle.secret_file`.
    #[arg(long)]
    pub(super) secret_file: Option<PathBuf>,
    /// Whom to call, as `spindle.contacts`. Each is really asked, and disturbed by nothing
    /// but that.
    #[arg(long, value_delimiter = ',', value_parser = contact)]
    pub(super) contacts: Vec<String>,
    /// How long each contact has to answer, in milliseconds.
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..=600_000))]
    pub(super) patience_ms: u64,
    /// What a machine has to have to be fit, beside what it cannot do without.
    #[arg(long, value_delimiter = ',')]
    pub(super) require: Vec<Requirement>,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// What can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Requirement {
    /// RDMA, with all that it takes.
    Rdma,
    /// That all contacts answer.
    Contacts,
}

fn contact(text: &str) -> Result<String, String> {
    let text = text.trim();
    let parts = text.rsplit_once(':');
    let good = parts.is_some_and(|(host, port)| {
        let whole = !host.contains(':') || host.starts_with('[') && host.ends_with(']');
        !host.is_empty() && whole && port.parse::<u16>().is_ok_and(|port| port > 0)
    });
    good.then(|| text.to_owned())
        .ok_or_else(|| "it has to be host:port, as 10.0.0.1:7400 or [fd00::1]:7400".to_owned())
}
