//! Options of `spindle doctor`.

use std::net::IpAddr;
use std::path::PathBuf;

/// What to examine.
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorOptions {
    /// The domain to examine.
    #[arg(long, default_value_t = 0)]
    pub(super) domain: u32,
    /// Directory of the domains on this host, as `spindle.directory`.
    #[arg(long)]
    pub(super) directory: Option<PathBuf>,
    /// Address at which participants of this host listen, as `spindle.listen` without a port.
    #[arg(long)]
    pub(super) listen: Option<IpAddr>,
    /// File with the domain's secret, as `spindle.secret_file`.
    #[arg(long)]
    pub(super) secret_file: Option<PathBuf>,
    /// Contacts to call, as `spindle.contacts`. A contact only answers: it admits no member.
    #[arg(long, value_delimiter = ',', value_parser = contact)]
    pub(super) contacts: Vec<String>,
    /// Time for each contact to answer, in milliseconds.
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..=600_000))]
    pub(super) patience_ms: u64,
    /// Other participants on this host, of each participant: limits are compared with what these
    /// need. Default: those of the running domain, or 9.
    #[arg(long, value_parser = clap::value_parser!(u64).range(0..=255))]
    pub(super) peers: Option<u64>,
    /// Topics of the domain, likewise. Default: those of the running domain, or 10.
    #[arg(long, value_parser = clap::value_parser!(u64).range(0..=100_000))]
    pub(super) topics: Option<u64>,
    /// Further requirements for the machine to be fit.
    #[arg(long, value_delimiter = ',')]
    pub(super) require: Vec<Requirement>,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// Further requirements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Requirement {
    /// RDMA can be used.
    Rdma,
    /// All contacts answer.
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
        .ok_or_else(|| "not host:port, for example 10.0.0.1:7400 or [fd00::1]:7400".to_owned())
}
