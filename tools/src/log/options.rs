//! Options of `spindle log`.

use std::path::PathBuf;

use spindle_dds::log::LogId;

/// The commands for logs. Each takes directories of `spindle.log.directory`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// List the logs of a directory: how many records they have, from when, and whether they are sound.
    Ls(LsOptions),
    /// Print the records of a topic, a line of JSON each: samples by the type that the log has, or else
    /// in hexadecimal digits.
    Cat(CatOptions),
    /// Read whole logs, and name what is damaged; with `--same`, compare those of several directories.
    Verify(VerifyOptions),
    /// Mend a damaged log from that of another directory, or set aside logs that do not belong to those of
    /// another participant. No file is removed.
    Repair(RepairOptions),
    /// Remove records that the limits of a log do not keep for readers that come later.
    Compact(CompactOptions),
}

/// Which logs of a directory.
#[derive(Debug, clap::Args)]
pub(super) struct Selection {
    /// Only the log of this topic.
    #[arg(long, value_name = "NAME")]
    pub(super) topic: Option<String>,
    /// Only logs of this domain.
    #[arg(long, value_name = "ID")]
    pub(super) domain: Option<u32>,
}

/// What `ls` lists.
#[derive(Debug, clap::Args)]
pub(crate) struct LsOptions {
    /// The directory.
    #[arg(value_name = "DIR")]
    pub(super) directory: PathBuf,
    #[command(flatten)]
    pub(super) selection: Selection,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// What `cat` prints.
#[derive(Debug, clap::Args)]
pub(crate) struct CatOptions {
    /// The directory.
    #[arg(value_name = "DIR")]
    pub(super) directory: PathBuf,
    /// The topic.
    #[arg(long, value_name = "NAME")]
    pub(super) topic: String,
    /// Its domain, where logs of several domains have the topic.
    #[arg(long, value_name = "ID")]
    pub(super) domain: Option<u32>,
    /// The first position to print.
    #[arg(long, value_name = "POSITION", default_value_t = 0)]
    pub(super) from: u64,
}

/// What `verify` reads.
#[derive(Debug, clap::Args)]
pub(crate) struct VerifyOptions {
    /// The directories.
    #[arg(value_name = "DIR", required = true)]
    pub(super) directories: Vec<PathBuf>,
    /// Compare the logs of each topic: below their common end they have to have the same records.
    #[arg(long)]
    pub(super) same: bool,
    #[command(flatten)]
    pub(super) selection: Selection,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// What `repair` does.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("source").required(true).args(["from", "keep"]))]
pub(crate) struct RepairOptions {
    /// The directory that is changed; with `--keep` there may be several.
    #[arg(value_name = "DIR", required = true)]
    pub(super) directories: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) selection: Selection,
    /// Take what is damaged in the log of `--topic` from its log in this directory.
    #[arg(long, value_name = "OTHER", requires = "topic")]
    pub(super) from: Option<PathBuf>,
    /// Keep the log with this id, in whatever directory it is, and those that descend from the same
    /// beginning; set aside the logs of its topic that do not. An id of a beginning (lineage) is taken
    /// too.
    #[arg(long, value_name = "ID", value_parser = log_id)]
    pub(super) keep: Option<LogId>,
}

/// What `compact` rewrites.
#[derive(Debug, clap::Args)]
pub(crate) struct CompactOptions {
    /// The directory.
    #[arg(value_name = "DIR")]
    pub(super) directory: PathBuf,
    #[command(flatten)]
    pub(super) selection: Selection,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

fn log_id(text: &str) -> Result<LogId, String> {
    let is_id = text.len() == 32 && text.bytes().all(|it| it.is_ascii_hexdigit());
    let id = is_id.then(|| u128::from_str_radix(text, 16).ok()).flatten();
    let id =
        id.ok_or("not an id of a log: 32 hexadecimal digits, as `spindle log ls --json` has them");
    id.map(LogId).map_err(str::to_owned)
}
