//! Cyclone DDS, by Debian's `ddsperf`: reliable, keep-all, unicast over the loopback interface. It
//! packs several samples of a writer into a datagram.

use std::process::Command;

use super::cell::Cell;
use super::contender::{Contender, DATAGRAM_BYTES, Figures, Latency, LatencyKind, Setup};
use super::options::{Measure, Read, Wait};

/// `ddsperf`.
pub(super) struct Cyclone;

impl Contender for Cyclone {
    fn name(&self) -> &'static str {
        "cyclone"
    }

    fn missing(&self) -> Option<String> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let there = std::env::split_paths(&path).any(|at| at.join(PROGRAM).is_file());
        (!there).then(|| "apt-get install cyclonedds-tools".to_owned())
    }

    /// Its reader copies a sample and reads its number, in a listener.
    fn takes_part(&self, cell: &Cell) -> bool {
        cell.wait == Wait::Block && cell.read == Read::Touch && cell.size <= DATAGRAM_BYTES
    }

    fn commands(&self, cell: &Cell, setup: &Setup) -> Result<Vec<Command>, String> {
        // It reports once a second, and its first second is shorter.
        let seconds = (1 + setup.seconds.ceil() as u64).max(2).to_string();
        let started = |arguments: &[&str]| {
            let mut command = Command::new(PROGRAM);
            command.env("CYCLONEDDS_URI", configuration(PARTICIPANTS));
            let options = [
                "-X", "-1", "-T", "KS", "-k", "all", "-i", DOMAIN, "-D", &seconds,
            ];
            command.args(options).args(arguments);
            command
        };
        let (size, rate) = (cell.size.to_string(), format!("{}Hz", setup.rate_hz));
        if cell.is_time() {
            return Ok(vec![
                started(&["pong"]),
                started(&["ping", &rate, "size", &size]),
            ]);
        }
        let readers = (0..cell.readers).map(|_| started(&["sub"]));
        Ok(readers.chain([started(&["pub", "size", &size])]).collect())
    }

    fn figures(&self, cell: &Cell, said: &[String]) -> Result<Figures, String> {
        if cell.is_time() {
            let said = said.get(1).map_or("", String::as_str);
            return round_trips(said, cell.measure == Measure::RoundTrip)
                .ok_or_else(|| format!("no round trips: {said}"));
        }
        let readers = said.iter().take(cell.readers as usize);
        let readers: Option<Vec<Reader>> = readers.map(|said| Reader::of(said)).collect();
        let readers = readers.ok_or_else(|| format!("no rates: {}", said.join(" | ")))?;
        let rates = readers.iter().map(|reader| reader.samples_per_s);
        Ok(Figures {
            samples_per_s: rates.fold(f64::INFINITY, f64::min),
            samples: readers.iter().map(|reader| reader.samples).sum(),
            lost: readers.iter().map(|reader| reader.lost).sum(),
            latency: None,
        })
    }
}

struct Reader {
    samples_per_s: f64,
    samples: u64,
    lost: u64,
}

impl Reader {
    /// Parses lines like `[7] 2.000  size 128 total 99 lost 0 delta 50 lost 0 rate 50.30 kS/s ...`:
    /// the rate between the first such line and the last.
    fn of(said: &str) -> Option<Self> {
        let lines = said.lines().filter(|line| line.contains(" total "));
        let counts: Option<Vec<(f64, u64, u64)>> = lines
            .map(|line| {
                let at = line.split_whitespace().nth(1)?.parse().ok()?;
                Some((at, number(line, "total")?, number(line, "lost")?))
            })
            .collect();
        let counts = counts?;
        let ((began, before, _), (ended, samples, lost)) = (*counts.first()?, *counts.last()?);
        (ended > began).then(|| Self {
            samples_per_s: samples.saturating_sub(before) as f64 / (ended - began),
            samples,
            lost,
        })
    }
}

/// Parses the last line like `[7] 2.000  vm:8 size 128 mean 23.876us min 11us 50% 24.581us 90%
/// 30.575us 99% 49.984us max 132us cnt 937`. These times are half round trips.
fn round_trips(said: &str, whole: bool) -> Option<Figures> {
    let mut lines = said
        .lines()
        .filter(|line| line.contains(" 50% "))
        .peekable();
    let mut samples = 0;
    let mut last = *lines.peek()?;
    for line in lines {
        samples += number::<u64>(line, "cnt")?;
        last = line;
    }
    let (kind, times) = match whole {
        true => (LatencyKind::RoundTrip, 2.0),
        false => (LatencyKind::HalfRoundTrip, 1.0),
    };
    let ns = |name| Some(number::<f64>(last, name)? * 1e3 * times);
    Some(Figures {
        samples_per_s: 0.0,
        samples,
        lost: 0,
        latency: Some(Latency {
            kind,
            p50_ns: ns("50%")?,
            p99_ns: ns("99%")?,
        }),
    })
}

/// `CYCLONEDDS_URI` for so many participants on the loopback interface only.
pub(crate) fn configuration(participants: u32) -> String {
    format!(
        "<CycloneDDS><Domain><General><Interfaces><NetworkInterface name=\"lo\"/></Interfaces>\
         <AllowMulticast>false</AllowMulticast></General>\
         <Discovery><ParticipantIndex>auto</ParticipantIndex>\
         <MaxAutoParticipantIndex>{participants}</MaxAutoParticipantIndex>\
         <Peers><Peer address=\"localhost\"/></Peers></Discovery></Domain></CycloneDDS>"
    )
}

/// The number after a word.
fn number<T: std::str::FromStr>(line: &str, name: &str) -> Option<T> {
    let mut words = line.split_whitespace().skip_while(|word| *word != name);
    words.nth(1)?.trim_end_matches("us").parse().ok()
}

const PROGRAM: &str = "ddsperf";
const DOMAIN: &str = "49";
/// Enough for all readers of a cell, and programs that have not ended yet.
const PARTICIPANTS: u32 = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_between_the_first_and_the_last_line() {
        let said = "[1] participant vm:1: new (self)\n\
            [1] 1.000  size 128 total 490368 lost 0 delta 490368 lost 0 rate 490.30 kS/s\n\
            [1] 1.000  rss:7.3MB vcsw:1549 ivcsw:1113\n\
            [1] 3.000  size 128 total 1490368 lost 3 delta 545046 lost 3 rate 545.03 kS/s\n";
        let reader = Reader::of(said).expect("a rate");
        assert_eq!(reader.samples_per_s, 500_000.0);
        assert_eq!((reader.samples, reader.lost), (1_490_368, 3));
        assert!(Reader::of("[1] participant vm:1: new (self)\n").is_none());
    }

    #[test]
    fn whole_round_trips_are_twice_what_is_printed() {
        let said = "[1] 1.000  vm:2 size 128 mean 23.876us min 11.161us 50% 24.5us 90% 30.575us \
            99% 49.9us max 132.562us cnt 937\n";
        let figures = round_trips(said, true).expect("times");
        let latency = figures.latency.expect("times");
        assert_eq!((latency.p50_ns, latency.p99_ns), (49_000.0, 99_800.0));
        assert_eq!(figures.samples, 937);
        assert!(round_trips("", false).is_none());
    }
}
