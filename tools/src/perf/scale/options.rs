//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::contender::{Contender, Peer};
use super::{PEER_PARTICIPANTS_MAX, Size};
use crate::perf::Failure;

/// `spindle perf scale`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ScaleOptions {
    /// Number of participants, each in its own process.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=256))]
    participants: u32,
    /// Number of topics. Each participant has a writer and a reader on each of them.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    topics: u32,
    /// Bytes of payload in the few samples that are sent when all endpoints are matched.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(super) size: u32,
    /// Measure the same endpoints with this middleware too, in turns.
    #[arg(long, value_enum)]
    peer: Option<Peer>,
    /// Number of rounds. In each, Spindle and the peer are run once.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) repeat: u32,
    /// At the end, one participant sends 10,000 samples of 10 KB on one topic, and memory is read
    /// once more.
    #[arg(long)]
    pub(super) burst: bool,
    /// At the end, one more participant joins with as many endpoints, while the others send samples
    /// at a pace on a topic that it does not have: how long it takes until it is matched, and the
    /// longest gap in their samples, without it and with it.
    #[arg(long, conflicts_with_all = ["peer", "curve"])]
    pub(super) late: bool,
    /// Measure fewer participants and fewer topics too: 1, 2, 4 and so on. The report plots them.
    #[arg(long, requires = "report")]
    pub(super) curve: bool,
    /// Write the figures to this file too, as a page of HTML.
    #[arg(long, value_name = "FILE")]
    pub(super) report: Option<PathBuf>,
    /// Time limit of each run in seconds.
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// Print a JSON object instead of tables.
    #[arg(long)]
    pub(super) json: bool,
}

impl ScaleOptions {
    /// Refuses what the peer cannot do.
    pub(super) fn check(&self) -> Result<(), Failure> {
        match self.peer {
            Some(Peer::Cyclone) if self.participants > PEER_PARTICIPANTS_MAX => {
                Err(Failure::Workers(format!(
                    "--participants {}: at most {PEER_PARTICIPANTS_MAX} with --peer cyclone, whose \
                     ports would run into those of other domains",
                    self.participants
                )))
            }
            _ => Ok(()),
        }
    }

    /// What is run in each round, in turn.
    pub(super) fn contenders(&self) -> Vec<Contender> {
        let peer = self.peer.map(Contender::from);
        [Contender::Spindle].into_iter().chain(peer).collect()
    }

    pub(super) fn time_limit(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }

    /// The size that was asked for.
    pub(super) fn whole(&self) -> Size {
        Size {
            participants: self.participants,
            topics: self.topics,
        }
    }

    /// All sizes that are measured, small ones first.
    pub(super) fn sizes(&self) -> Vec<Size> {
        let whole = self.whole();
        if !self.curve {
            return vec![whole];
        }
        let fewer = steps(self.participants).map(|participants| Size {
            participants,
            ..whole
        });
        let mut sizes: Vec<Size> = fewer.collect();
        sizes.extend(steps(self.topics).map(|topics| Size { topics, ..whole }));
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}

/// The powers of two below a number, and the number.
fn steps(last: u32) -> impl Iterator<Item = u32> {
    let powers = (0..u32::BITS).map(|power| 1 << power);
    powers
        .take_while(move |step| *step < last)
        .chain(std::iter::once(last))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: ScaleOptions,
    }

    fn options(line: &str) -> Result<ScaleOptions, String> {
        let words = format!("scale {line}");
        let line = Line::try_parse_from(words.split_whitespace());
        line.map(|line| line.options)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_curve_has_each_size_once() {
        let check = |line: &str, expected: &[(u32, u32)]| {
            let sizes = options(line).expect("options").sizes().into_iter();
            let found: Vec<_> = sizes.map(|it| (it.participants, it.topics)).collect();
            assert_eq!(found, expected, "{line}");
        };
        check("--participants 3 --topics 5", &[(3, 5)]);
        let curve = "--participants 3 --topics 5 --curve --report page.html";
        check(curve, &[(1, 5), (2, 5), (3, 1), (3, 2), (3, 4), (3, 5)]);
        let one = "--participants 1 --topics 1 --curve --report page.html";
        check(one, &[(1, 1)]);
    }

    #[test]
    fn a_peer_takes_its_turn() {
        let with = options("--peer cyclone").expect("options");
        assert_eq!(with.contenders(), [Contender::Spindle, Contender::Cyclone]);
        assert!(with.check().is_ok());
        let many = options("--peer cyclone --participants 101").expect("options");
        let error = many.check().expect_err("too many").to_string();
        assert!(error.contains("at most 100"), "{error}");
    }
}
