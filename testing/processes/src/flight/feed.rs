//! A feed: decodes its share of the recording and publishes what it learns.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use spindle_dds::idl::TopicType;
use spindle_dds::qos::{DurabilityKind, ReliabilityKind};
use spindle_dds::{DataWriter, DomainParticipant, Error, StatusMask, WaitSet};

use super::create_participant;
use super::digest::Digest;
use super::kept::Kept;
use super::logs;
use super::options::{Options, Rate};
use super::recording::{self, Frame};
use super::report::{self, FeedProgress, FeedReport, Line};
use super::samples::{AlertSample, StateSample};
use super::tracker::{RaisedAlert, Tracker};
use crate::traffic::{AircraftState, Alert};
use crate::{Failure, clock};

const STATES: &str = "AircraftState";
const ALERTS: &str = "Alert";

pub(super) fn run(options: &Options, index: u16) -> Result<FeedReport, Failure> {
    let frames = recording::read(&options.recording, options.frames)?;
    let participant = create_participant(options)?;
    let mut feed = Feed::new(&participant, index)?;
    participant.enable()?;
    // A display that comes later would miss samples.
    wait_for_readers(&feed.states, options.displays)?;
    wait_for_readers(&feed.alerts, options.displays)?;
    if feed.states.qos()?.durability.kind == DurabilityKind::Persistent {
        logs::wait_for_all(options, &[STATES, ALERTS]);
    }
    feed.run(options, &frames)?;
    feed.report.peers = report::peer_ways(&participant)?;
    feed.report.nulls = participant.counters()?.engine.nulls;
    feed.report.returns = report::returns(&participant)?;
    participant.close()?;
    Ok(feed.report)
}

/// Blocks until a writer is matched with so many readers.
fn wait_for_readers<T: TopicType>(writer: &DataWriter<T>, displays: u16) -> Result<(), Failure> {
    let matched = writer.status_condition()?;
    matched.set_enabled_statuses(StatusMask::PUBLICATION_MATCHED);
    let waits = WaitSet::new();
    waits.attach(&matched);
    while writer.publication_matched_status()?.current_count < i32::from(displays) {
        waits.wait(spindle_dds::Duration::INFINITE)?;
    }
    Ok(())
}

#[derive(Debug)]
struct Feed {
    index: u16,
    participant: DomainParticipant,
    states: DataWriter<AircraftState>,
    alerts: DataWriter<Alert>,
    alert_count: u32,
    state_digest: Digest,
    alert_digest: Digest,
    report: FeedReport,
    /// Samples that progress was reported of.
    reported: u64,
}

impl Feed {
    fn new(participant: &DomainParticipant, index: u16) -> Result<Self, Failure> {
        let publisher = participant.publisher().create()?;
        let states = participant.topic(STATES).create()?;
        let alerts = participant.topic(ALERTS).create()?;
        let states = publisher.writer(&states).create()?;
        let qos = states.qos()?;
        Ok(Self {
            index,
            participant: participant.clone(),
            states,
            alerts: publisher.writer(&alerts).create()?,
            alert_count: 0,
            state_digest: Digest::new(),
            alert_digest: Digest::new(),
            report: FeedReport {
                reliable: qos.reliability.kind == ReliabilityKind::Reliable,
                kept: Kept::of(&qos),
                ..FeedReport::default()
            },
            reported: 0,
        })
    }

    fn run(&mut self, options: &Options, frames: &[Frame]) -> Result<(), Failure> {
        self.report.started_at_ns = clock::monotonic_ns();
        let mut tracker = Tracker::new(self.index);
        let mut pace = Pace::new(
            options.rate,
            frames.first().map_or(0, |first| first.received_at_ns),
        );
        let input_ended = options.endless.then(watch_input);
        let has_input_ended = || {
            let flag = input_ended.as_ref();
            flag.is_some_and(|flag| flag.load(Ordering::Acquire))
        };
        let mut done = 0;
        'laps: for lap in 0.. {
            let own = frames.iter().skip(usize::from(self.index));
            for frame in own.step_by(usize::from(options.feeds)) {
                if has_input_ended() {
                    break 'laps;
                }
                let mut frame = *frame;
                frame.received_at_ns += lap * lap_ns(frames);
                pace.wait_for(frame.received_at_ns);
                if let Some(state) = tracker.handle_frame(&frame) {
                    self.publish_state(state)?;
                }
                for alert in tracker.poll_alerts() {
                    self.publish_alert(&alert)?;
                }
                done += 1;
                if pace.is_time_to_report() || self.has_enough_to_report() {
                    self.print_progress(done)?;
                }
            }
            if !options.endless {
                break;
            }
        }
        self.print_progress(done)?;
        self.report.fifo_digest = self.state_digest.combined(self.alert_digest).hex();
        Ok(())
    }

    /// The launcher injects a fault after so many samples: it must not learn of them too late.
    fn has_enough_to_report(&self) -> bool {
        self.report.published >= self.reported + REPORT_SAMPLES
    }

    fn print_progress(&mut self, frames: u64) -> Result<(), Failure> {
        self.reported = self.report.published;
        Line::Progress(FeedProgress {
            frames,
            samples: self.report.published,
            returns: report::returns(&self.participant)?,
        })
        .print();
        Ok(())
    }

    fn publish_state(&mut self, state: &StateSample) -> Result<(), Failure> {
        publish_patiently(|| state.publish(self.states.loan()?))?;
        self.report.published += 1;
        if self.was_sent() {
            state.fold_into(&mut self.state_digest);
        }
        Ok(())
    }

    fn publish_alert(&mut self, alert: &RaisedAlert) -> Result<(), Failure> {
        self.alert_count += 1;
        let sample = AlertSample {
            icao: alert.icao,
            feed: self.index,
            kind: alert.kind,
            raised_at_ns: alert.raised_at_ns,
            number: self.alert_count,
            text: &alert.text,
        };
        publish_patiently(|| sample.publish(self.alerts.loan()?))?;
        self.report.published += 1;
        self.report.alerts += 1;
        if self.was_sent() {
            sample.fold_into(&mut self.alert_digest);
        }
        Ok(())
    }

    /// Whether the last sample was sent. A BEST_EFFORT writer that finds no room drops and counts
    /// it instead.
    fn was_sent(&mut self) -> bool {
        let dropped = self.states.dropped_samples() + self.alerts.dropped_samples();
        std::mem::replace(&mut self.report.dropped, dropped) == dropped
    }
}

/// Publishes a sample, and tries again after TIMEOUT: the group may be a while without this
/// participant, or without room.
fn publish_patiently<R>(mut publish: impl FnMut() -> Result<R, Error>) -> Result<R, Error> {
    loop {
        match publish() {
            Err(error) if error.is_timeout() => {}
            published => return published,
        }
    }
}

/// A flag that is set when the standard input ends.
pub(super) fn watch_input() -> Arc<AtomicBool> {
    let ended = Arc::new(AtomicBool::new(false));
    let flag = ended.clone();
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        flag.store(true, Ordering::Release);
    });
    ended
}

/// Time from one repetition of the recording to the next.
fn lap_ns(frames: &[Frame]) -> i64 {
    match (frames.first(), frames.last()) {
        (Some(first), Some(last)) => last.received_at_ns - first.received_at_ns + LAP_PAUSE_NS,
        _ => 0,
    }
}

/// Keeps a feed at the wanted multiple of the recording's rate.
#[derive(Debug)]
struct Pace {
    rate: Rate,
    first_at_ns: i64,
    started: Instant,
    /// When progress was last reported.
    reported: Instant,
}

impl Pace {
    fn new(rate: Rate, first_at_ns: i64) -> Self {
        let started = Instant::now();
        Self {
            rate,
            first_at_ns,
            started,
            reported: started,
        }
    }

    fn wait_for(&self, received_at_ns: i64) {
        let Rate::Times(times) = self.rate else {
            return;
        };
        let since_first_ns = received_at_ns.saturating_sub(self.first_at_ns).max(0);
        let due = Duration::from_secs_f64(since_first_ns as f64 / 1e9 / times);
        if let Some(left) = due.checked_sub(self.started.elapsed()) {
            std::thread::sleep(left);
        }
    }

    fn is_time_to_report(&mut self) -> bool {
        let now = Instant::now();
        let due = now.duration_since(self.reported) >= REPORT_EVERY;
        if due {
            self.reported = now;
        }
        due
    }
}

const REPORT_EVERY: Duration = Duration::from_millis(50);
const REPORT_SAMPLES: u64 = 1000;
/// Between two repetitions of the recording.
const LAP_PAUSE_NS: i64 = 1_000_000_000;
