//! What feeds and displays print for the launcher, and what the launcher prints.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use spindle_dds::{DomainParticipant, PeerPath};

use super::kept::Kept;

/// One line on the standard output of a feed or a display.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// How far a feed is.
    Progress(FeedProgress),
    /// How far a display with a journal is.
    Seen(DisplayProgress),
    /// A feed is done.
    Fed(FeedReport),
    /// A display is done.
    Shown(DisplayReport),
    /// The process gives up.
    Failed { error: String },
}

impl Line {
    /// Prints it. Without a launcher that reads, the line is lost, which is no failure.
    pub(super) fn print(&self) {
        let mut out = io::stdout().lock();
        let _ = serde_json::to_writer(&mut out, self)
            .map_err(io::Error::from)
            .and_then(|()| out.write_all(b"\n"))
            .and_then(|()| out.flush());
    }
}

/// How far a feed is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FeedProgress {
    /// Frames that it has processed.
    pub(super) frames: u64,
    /// Samples published of both topics.
    pub(super) samples: u64,
    /// How often its participant has lost its group and come back.
    pub(super) returns: u32,
}

/// How far a display is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DisplayProgress {
    /// Samples taken of both topics.
    pub(super) samples: u64,
    /// Number of its view.
    pub(super) view: u64,
    /// Participants in the view.
    pub(super) members: usize,
    /// How often its participant has lost its group and come back.
    pub(super) returns: u32,
    /// Whether its readers have all history that is to come.
    pub(super) has_history: bool,
}

/// How often a participant has lost its group and come back.
pub(super) fn returns(participant: &DomainParticipant) -> spindle_dds::Result<u32> {
    let status = participant.membership_status()?;
    let out = i32::from(!status.is_member);
    Ok(u32::try_from(status.total_count - out).unwrap_or(0))
}

/// What a feed did.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct FeedReport {
    /// Samples of both topics that were written.
    pub(super) published: u64,
    /// The alerts among them.
    pub(super) alerts: u64,
    /// Digest of the samples that were sent, in their order.
    pub(super) fifo_digest: String,
    /// Samples that found no room and were not sent (BEST_EFFORT only).
    pub(super) dropped: u64,
    /// Whether its writers are RELIABLE, and may lose no sample.
    pub(super) reliable: bool,
    /// What its writers' QoS keeps for displays that were not there.
    pub(super) kept: Kept,
    /// CLOCK_MONOTONIC just before the first frame was decoded.
    pub(super) started_at_ns: u64,
    pub(super) nulls: u64,
    /// How often its participant has lost its group and come back.
    pub(super) returns: u32,
    /// How its samples were carried to each other participant.
    pub(super) peers: Vec<PeerPath>,
}

/// How the samples of a participant are carried to each other one.
pub(super) fn peer_ways(participant: &DomainParticipant) -> spindle_dds::Result<Vec<PeerPath>> {
    let peers = participant.peers()?;
    Ok(peers.into_iter().map(|peer| peer.path).collect())
}

/// What a display took.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct DisplayReport {
    /// Samples taken of both topics.
    pub(super) delivered: u64,
    /// Digest of fields and publication handles in the order of taking, of both topics.
    pub(super) digest: String,
    /// Digest of the feed of each sample: equal for all runs that interleave the feeds equally.
    pub(super) interleaving: String,
    /// How often a sample had another feed than the one before it in its topic.
    pub(super) switches: u64,
    /// For each feed, the digest of its samples in their order.
    pub(super) fifo_digests: BTreeMap<u16, String>,
    pub(super) alerts: u64,
    /// SAMPLE_LOST of the states, and of the alerts.
    pub(super) lost: [u64; 2],
    /// How often its participant has lost its group and come back.
    pub(super) returns: u32,
    /// CLOCK_MONOTONIC after the last sample.
    pub(super) ended_at_ns: u64,
    pub(super) nulls: u64,
    pub(super) batch_p50: u64,
    pub(super) aircraft: Vec<AircraftRow>,
}

/// One aircraft in the table of a display.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct AircraftRow {
    pub(super) icao: u32,
    pub(super) callsign: String,
    pub(super) altitude_ft: Option<i32>,
    pub(super) ground_speed_kt: Option<f32>,
    pub(super) position_deg: Option<(f64, f64)>,
    pub(super) on_ground: bool,
    pub(super) messages: u64,
}

/// The outcome of a run; its last line of output.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    pub(super) feeds: usize,
    pub(super) displays: usize,
    pub(super) published: u64,
    pub(super) delivered: Vec<u64>,
    pub(super) digest: Vec<String>,
    pub(super) identical: bool,
    pub(super) switches: u64,
    /// For each feed, the digest of what it sent.
    pub(super) fifo_digest: BTreeMap<u16, String>,
    /// Whether every display has these digests.
    pub(super) fifo_identical: bool,
    pub(super) nulls: u64,
    pub(super) batch_p50: u64,
    pub(super) seconds: f64,
    /// Samples published and not delivered, summed over the displays.
    pub(super) lost: u64,
    /// Samples that found no room at their feed (BEST_EFFORT only).
    pub(super) dropped: u64,
    pub(super) interleaving: String,
    /// For each feed, how its samples were carried to the other participants.
    pub(super) peers: Vec<Vec<PeerPath>>,
    /// Whether the profile promises all samples in one order.
    #[serde(skip)]
    pub(super) promised: bool,
}

impl Outcome {
    pub(super) fn of(fed: &[FeedReport], shown: &[DisplayReport]) -> Self {
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
    pub(super) fn is_kept(&self) -> bool {
        match self.promised {
            true => self.identical && self.fifo_identical,
            false => self.fifo_identical || self.lost > 0,
        }
    }
}

/// Several runs in a row; the last line of output then.
#[derive(Debug, Default, Serialize)]
pub(super) struct Summary {
    runs: usize,
    /// Runs whose displays all took the same samples in the same order.
    identical: usize,
    /// Runs that kept what their profile promises.
    kept: usize,
    /// Different orders over all runs.
    distinct_orders: usize,
    /// The smallest share of samples that had another feed than the one before, in percent.
    switches_min_percent: f64,
    lost: u64,
}

impl Summary {
    pub(super) fn of(outcomes: &[Outcome]) -> Self {
        let orders: std::collections::BTreeSet<_> =
            outcomes.iter().map(|run| &run.interleaving).collect();
        let switches_percent =
            |run: &Outcome| 100.0 * run.switches as f64 / run.published.max(1) as f64;
        Self {
            runs: outcomes.len(),
            identical: outcomes.iter().filter(|run| run.identical).count(),
            kept: outcomes.iter().filter(|run| run.is_kept()).count(),
            distinct_orders: orders.len(),
            switches_min_percent: outcomes.iter().map(switches_percent).fold(100.0, f64::min),
            lost: outcomes.iter().map(|run| run.lost).sum(),
        }
    }
}

/// Prints the aircraft that the first display shows, and a line for each display.
pub(super) fn print_table(out: &mut impl Write, shown: &[DisplayReport]) -> io::Result<()> {
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
