//! A feed: decodes its share of the recording and publishes what it learns.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use spindle_dds::idl::TopicType;
use spindle_dds::qos::ReliabilityKind;
use spindle_dds::{DataWriter, DomainParticipant, StatusMask, WaitSet};

use crate::digest::Digest;
use crate::flight::{AircraftState, Alert};
use crate::options::{Options, Rate};
use crate::recording::{self, Frame};
use crate::report::{self, Fed, Line};
use crate::samples::{Alarm, State};
use crate::tracker::{Raised, Tracker};
use crate::{Failure, clock, join};

pub(crate) fn run(options: &Options, index: u16) -> Result<Fed, Failure> {
    let frames = recording::read(&options.recording, options.frames)?;
    let participant = join(options)?;
    let mut feed = Feed::new(&participant, index)?;
    participant.enable()?;
    // Who comes later has missed something.
    wait_for(&feed.states, options.displays)?;
    wait_for(&feed.alerts, options.displays)?;
    feed.run(options, &frames)?;
    feed.fed.peers = report::peers(&participant)?;
    feed.fed.nulls = participant.counters()?.engine.nulls;
    participant.close()?;
    Ok(feed.fed)
}

/// Blocks until so many displays listen to a writer.
fn wait_for<T: TopicType>(writer: &DataWriter<T>, displays: u16) -> Result<(), Failure> {
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
    states: DataWriter<AircraftState>,
    alerts: DataWriter<Alert>,
    alert_count: u32,
    state_digest: Digest,
    alert_digest: Digest,
    fed: Fed,
    /// Samples that were told of.
    reported: u64,
}

impl Feed {
    fn new(participant: &DomainParticipant, index: u16) -> Result<Self, Failure> {
        let publisher = participant.publisher().create()?;
        let states = participant.topic("AircraftState").create()?;
        let alerts = participant.topic("Alert").create()?;
        let states = publisher.writer(&states).create()?;
        let reliable = states.qos()?.reliability.kind == ReliabilityKind::Reliable;
        Ok(Self {
            index,
            states,
            alerts: publisher.writer(&alerts).create()?,
            alert_count: 0,
            state_digest: Digest::new(),
            alert_digest: Digest::new(),
            fed: Fed {
                reliable,
                ..Fed::default()
            },
            reported: 0,
        })
    }

    fn run(&mut self, options: &Options, frames: &[Frame]) -> Result<(), Failure> {
        self.fed.started_at_ns = clock::monotonic_ns();
        let mut tracker = Tracker::new(self.index);
        let mut pace = Pace::new(
            options.rate,
            frames.first().map_or(0, |first| first.received_at_ns),
        );
        let told = options.endless.then(until_input_ends);
        let is_told = || {
            told.as_ref()
                .is_some_and(|told| told.load(Ordering::Acquire))
        };
        let mut done = 0;
        'laps: for lap in 0.. {
            let mine = frames.iter().skip(usize::from(self.index));
            for frame in mine.step_by(usize::from(options.feeds)) {
                if is_told() {
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
                if pace.is_time_to_report() || self.is_time_to_report() {
                    self.report(done);
                }
            }
            if !options.endless {
                break;
            }
        }
        self.report(done);
        self.fed.fifo_digest = self.state_digest.combined(self.alert_digest).hex();
        Ok(())
    }

    /// Whether somebody may wait for this sample.
    fn is_time_to_report(&self) -> bool {
        self.fed.published >= self.reported + REPORT_SAMPLES
    }

    fn report(&mut self, frames: u64) {
        self.reported = self.fed.published;
        let samples = self.fed.published;
        Line::Progress { frames, samples }.send();
    }

    fn publish_state(&mut self, state: &State) -> Result<(), Failure> {
        state.publish(self.states.loan()?)?;
        self.fed.published += 1;
        if self.was_sent() {
            state.fold_into(&mut self.state_digest);
        }
        Ok(())
    }

    fn publish_alert(&mut self, alert: &Raised) -> Result<(), Failure> {
        self.alert_count += 1;
        let alarm = Alarm {
            icao: alert.icao,
            feed: self.index,
            kind: alert.kind,
            raised_at_ns: alert.raised_at_ns,
            number: self.alert_count,
            text: &alert.text,
        };
        alarm.publish(self.alerts.loan()?)?;
        self.fed.published += 1;
        self.fed.alerts += 1;
        if self.was_sent() {
            alarm.fold_into(&mut self.alert_digest);
        }
        Ok(())
    }

    /// Whether the last sample was sent: a BEST_EFFORT writer that finds no room
    /// drops it instead, and counts it.
    fn was_sent(&mut self) -> bool {
        let dropped = self.states.dropped_samples() + self.alerts.dropped_samples();
        std::mem::replace(&mut self.fed.dropped, dropped) == dropped
    }
}

/// Set when the standard input ends.
fn until_input_ends() -> Arc<AtomicBool> {
    let told = Arc::new(AtomicBool::new(false));
    let tell = told.clone();
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        tell.store(true, Ordering::Release);
    });
    told
}

/// From one round of the recording to the next.
fn lap_ns(frames: &[Frame]) -> i64 {
    match (frames.first(), frames.last()) {
        (Some(first), Some(last)) => last.received_at_ns - first.received_at_ns + PAUSE_NS,
        _ => 0,
    }
}

/// Keeps a feed at the rate of the recording.
#[derive(Debug)]
struct Pace {
    rate: Rate,
    first_at_ns: i64,
    started: Instant,
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
const PAUSE_NS: i64 = 1_000_000_000;
