//! What processes tell the one that started them, and what that one prints.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use spindle_dds::{DomainParticipant, PeerPath};

/// One line on the standard output of a feed or a display.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
    /// A feed has gone through so many of its frames.
    Progress { frames: u64, samples: u64 },
    /// What a display that keeps a journal has got so far.
    Seen(Seen),
    /// A feed is done.
    Fed(Fed),
    /// A display is done.
    Shown(Shown),
    /// It went wrong.
    Failed { error: String },
}

impl Line {
    /// Prints it. Nobody listening any more is no concern of the sender's.
    pub(crate) fn send(&self) {
        let mut out = io::stdout().lock();
        let _ = serde_json::to_writer(&mut out, self)
            .map_err(io::Error::from)
            .and_then(|()| out.write_all(b"\n"))
            .and_then(|()| out.flush());
    }
}

/// How far a display is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// Samples taken, of both topics.
    pub(crate) samples: u64,
    /// The view of its group, by number.
    pub(crate) view: u64,
    /// Participants in it.
    pub(crate) members: usize,
}

/// What a feed did.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Fed {
    /// Samples of both topics.
    pub(crate) published: u64,
    /// Those of them that are alerts.
    pub(crate) alerts: u64,
    /// Digest of those that were sent, in their order.
    pub(crate) fifo_digest: String,
    /// Those of them that found no room and were not sent (BEST_EFFORT only).
    pub(crate) dropped: u64,
    /// Whether it may not lose any: its writers are RELIABLE.
    pub(crate) reliable: bool,
    /// CLOCK_MONOTONIC when the first frame was about to be decoded.
    pub(crate) started_at_ns: u64,
    pub(crate) nulls: u64,
    /// How its samples went to the others.
    pub(crate) peers: Vec<PeerPath>,
}

/// How samples go from a participant to all others.
pub(crate) fn peers(participant: &DomainParticipant) -> spindle_dds::Result<Vec<PeerPath>> {
    let peers = participant.peers()?;
    Ok(peers.into_iter().map(|peer| peer.way).collect())
}

/// What a display saw.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Shown {
    /// Samples taken, of both topics.
    pub(crate) delivered: u64,
    /// Of decoded fields and publication handles in `take` order, both topics.
    pub(crate) digest: String,
    /// Of which feed each sample was from: the order alone, the same in any run
    /// that interleaves the feeds in the same way.
    pub(crate) interleaving: String,
    /// Changes of feed from one sample to the next, in each topic.
    pub(crate) switches: u64,
    /// For each feed, of its samples in its order.
    pub(crate) fifo_digests: BTreeMap<u16, String>,
    pub(crate) alerts: u64,
    /// CLOCK_MONOTONIC after the last sample.
    pub(crate) ended_at_ns: u64,
    pub(crate) nulls: u64,
    pub(crate) batch_p50: u64,
    pub(crate) aircraft: Vec<Row>,
}

/// One aircraft on a display.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) icao: u32,
    pub(crate) callsign: String,
    pub(crate) altitude_ft: Option<i32>,
    pub(crate) ground_speed_kt: Option<f32>,
    pub(crate) position_deg: Option<(f64, f64)>,
    pub(crate) on_ground: bool,
    pub(crate) messages: u64,
}

/// The outcome of a run; its last line of output.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    pub(crate) feeds: usize,
    pub(crate) displays: usize,
    pub(crate) published: u64,
    pub(crate) delivered: Vec<u64>,
    pub(crate) digest: Vec<String>,
    pub(crate) identical: bool,
    pub(crate) switches: u64,
    /// For each feed: of what it sent.
    pub(crate) fifo_digest: BTreeMap<u16, String>,
    /// Whether each display has, for each feed, the digest of what it sent.
    pub(crate) fifo_identical: bool,
    pub(crate) nulls: u64,
    pub(crate) batch_p50: u64,
    pub(crate) seconds: f64,
    /// Samples published but not delivered, summed over the displays.
    pub(crate) lost: u64,
    /// Those of them that found no room at their feed (BEST_EFFORT only).
    pub(crate) dropped: u64,
    pub(crate) interleaving: String,
    /// For each feed, how its samples went to the other participants.
    pub(crate) peers: Vec<Vec<PeerPath>>,
    /// Whether the profile promises all samples in one order.
    #[serde(skip)]
    pub(crate) promised: bool,
}

impl Outcome {
    pub(crate) fn of(fed: &[Fed], shown: &[Shown]) -> Self {
        let published = fed.iter().map(|feed| feed.published).sum();
        let delivered: Vec<u64> = shown.iter().map(|display| display.delivered).collect();
        let digest: Vec<String> = shown.iter().map(|display| display.digest.clone()).collect();
        let fifo_digest: BTreeMap<u16, String> = (0..)
            .zip(fed.iter().map(|feed| feed.fifo_digest.clone()))
            .collect();
        let started_at_ns = fed.iter().map(|feed| feed.started_at_ns).min();
        let ended_at_ns = shown.iter().map(|display| display.ended_at_ns).max();
        let elapsed_ns = ended_at_ns
            .unwrap_or_default()
            .saturating_sub(started_at_ns.unwrap_or_default());
        let first = shown.first().cloned().unwrap_or_default();
        Self {
            feeds: fed.len(),
            displays: shown.len(),
            published,
            identical: delivered.iter().all(|count| *count == published)
                && digest.iter().all(|one| *one == first.digest),
            lost: delivered
                .iter()
                .map(|count| published.saturating_sub(*count))
                .sum(),
            delivered,
            digest,
            switches: first.switches,
            fifo_identical: shown.iter().all(|one| one.fifo_digests == fifo_digest),
            fifo_digest,
            nulls: fed.iter().map(|feed| feed.nulls).sum::<u64>()
                + shown.iter().map(|display| display.nulls).sum::<u64>(),
            batch_p50: first.batch_p50,
            seconds: elapsed_ns as f64 / 1e9,
            dropped: fed.iter().map(|feed| feed.dropped).sum(),
            interleaving: first.interleaving,
            peers: fed.iter().map(|feed| feed.peers.clone()).collect(),
            promised: fed.iter().all(|feed| feed.reliable),
        }
    }

    /// Whether the run kept what its profile promises.
    pub(crate) fn kept(&self) -> bool {
        match self.promised {
            true => self.identical && self.fifo_identical,
            false => self.fifo_identical || self.lost > 0,
        }
    }
}

/// Several runs in a row; the last line of output then.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Summary {
    runs: usize,
    /// Runs whose displays all saw the same.
    identical: usize,
    /// Runs that kept what their profile promises.
    kept: usize,
    /// How many different orders there were.
    distinct_orders: usize,
    /// The least share of samples that came from another feed than the one before.
    switches_min_percent: f64,
    lost: u64,
}

impl Summary {
    pub(crate) fn of(outcomes: &[Outcome]) -> Self {
        let orders: std::collections::BTreeSet<_> =
            outcomes.iter().map(|run| &run.interleaving).collect();
        let switches_percent =
            |run: &Outcome| 100.0 * run.switches as f64 / run.published.max(1) as f64;
        Self {
            runs: outcomes.len(),
            identical: outcomes.iter().filter(|run| run.identical).count(),
            kept: outcomes.iter().filter(|run| run.kept()).count(),
            distinct_orders: orders.len(),
            switches_min_percent: outcomes.iter().map(switches_percent).fold(100.0, f64::min),
            lost: outcomes.iter().map(|run| run.lost).sum(),
        }
    }
}

/// Prints the aircraft that the first display shows, and a line a display.
pub(crate) fn print_table(out: &mut impl Write, shown: &[Shown]) -> io::Result<()> {
    let Some(first) = shown.first() else {
        return Ok(());
    };
    writeln!(
        out,
        "{:<6}  {:<8}  {:>9}  {:>8}  {:>19}  {:>8}",
        "ICAO", "callsign", "altitude", "speed", "position", "messages"
    )?;
    for row in &first.aircraft {
        let altitude = match (row.on_ground, row.altitude_ft) {
            (true, _) => "ground".to_owned(),
            (false, Some(altitude_ft)) => format!("{altitude_ft} ft"),
            (false, None) => "-".to_owned(),
        };
        let speed = row
            .ground_speed_kt
            .map_or_else(|| "-".to_owned(), |kt| format!("{kt:.0} kt"));
        let position = row.position_deg.map_or_else(
            || "-".to_owned(),
            |(latitude, longitude)| format!("{latitude:.4} {longitude:.4}"),
        );
        writeln!(
            out,
            "{:06x}  {:<8}  {altitude:>9}  {speed:>8}  {position:>19}  {:>8}",
            row.icao, row.callsign, row.messages
        )?;
    }
    writeln!(out)?;
    for (index, display) in shown.iter().enumerate() {
        writeln!(
            out,
            "display {index}: {} samples ({} alerts), digest {}, {} switches",
            display.delivered, display.alerts, display.digest, display.switches
        )?;
    }
    Ok(())
}
