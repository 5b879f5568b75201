//! A display: takes every sample, keeps a table of aircraft, and digests what it saw.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use spindle_dds::idl::TopicType;
use spindle_dds::{
    DataReader, DomainParticipant, InstanceHandle, Sample, StatusMask, SubscriptionMatchedStatus,
    WaitSet,
};

use super::create_participant;
use super::digest::Digest;
use super::feed::watch_input;
use super::journal::{Entry, Journal, Topic};
use super::options::Options;
use super::report::{self, AircraftRow, DisplayProgress, DisplayReport, Line};
use super::samples::{AlertSample, StateSample};
use crate::traffic::{AircraftState, Alert, KNOWN_ALTITUDE, KNOWN_POSITION, KNOWN_VELOCITY};
use crate::{Failure, clock};

pub(super) fn run(options: &Options) -> Result<DisplayReport, Failure> {
    let participant = create_participant(options)?;
    let mut display = Display::new(&participant, options)?;
    participant.enable()?;
    display.run()?;
    let engine = participant.counters()?.engine;
    let mut report = display.report()?;
    report.nulls = engine.nulls;
    report.batch_p50 = engine.delivery_batches.quantile(0.5);
    participant.close()?;
    Ok(report)
}

#[derive(Debug)]
struct Display {
    participant: DomainParticipant,
    states: DataReader<AircraftState>,
    alerts: DataReader<Alert>,
    waits: WaitSet,
    state_log: TopicLog,
    alert_log: TopicLog,
    /// By address: the last state, and how many states came.
    table: BTreeMap<u32, (StateSample, u64)>,
    feeds: i32,
    journal: Option<Journal>,
    /// In a run with a fault: set when the feeds have ended.
    feeds_ended: Option<Arc<AtomicBool>>,
    /// The progress that was reported.
    reported: DisplayProgress,
}

impl Display {
    fn new(participant: &DomainParticipant, options: &Options) -> Result<Self, Failure> {
        let subscriber = participant.subscriber().create()?;
        let states = participant.topic("AircraftState").create()?;
        let alerts = participant.topic("Alert").create()?;
        let states = subscriber.reader(&states).create()?;
        let alerts = subscriber.reader(&alerts).create()?;
        let waits = WaitSet::new();
        for condition in [states.status_condition()?, alerts.status_condition()?] {
            condition.set_enabled_statuses(
                StatusMask::DATA_AVAILABLE | StatusMask::SUBSCRIPTION_MATCHED,
            );
            waits.attach(&condition);
        }
        let journal = options.journal.as_deref().map(Journal::create);
        Ok(Self {
            participant: participant.clone(),
            states,
            alerts,
            waits,
            state_log: TopicLog::new(),
            alert_log: TopicLog::new(),
            table: BTreeMap::new(),
            feeds: i32::from(options.feeds),
            journal: journal.transpose()?,
            feeds_ended: options.journal.as_ref().map(|_| watch_input()),
            reported: DisplayProgress::default(),
        })
    }

    /// Takes until every feed has left and nothing is left to take.
    fn run(&mut self) -> Result<(), Failure> {
        loop {
            // The statuses first, then the samples: a feed leaves after its last sample. Both are
            // read each time, because a status that is not read keeps its condition triggered.
            let feeds_ended = self.feeds_ended.as_ref();
            let feeds_ended = feeds_ended.is_none_or(|ended| ended.load(Ordering::Acquire));
            let matched = [
                self.states.subscription_matched_status()?,
                self.alerts.subscription_matched_status()?,
            ];
            // While its participant is out, no feed is matched.
            let is_member = self.participant.membership_status()?.is_member;
            let have_left = matched.iter().all(|matched| self.have_feeds_left(matched));
            let last_round = feeds_ended && is_member && have_left;
            self.take_states()?;
            self.take_alerts()?;
            self.report_progress()?;
            if last_round {
                return Ok(());
            }
            match self.waits.wait(WAIT_MAX) {
                Ok(_) => {}
                Err(error) if error.is_timeout() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether every feed has joined and left.
    fn have_feeds_left(&self, matched: &SubscriptionMatchedStatus) -> bool {
        matched.total_count >= self.feeds && matched.current_count == 0
    }

    fn take_states(&mut self) -> Result<(), Failure> {
        while let Some(samples) = none_if_no_data(self.states.take(TAKE_MAX))? {
            let taken_at_ns = clock::monotonic_ns();
            for sample in &samples {
                if !sample.info().valid_data {
                    continue;
                }
                let state = StateSample::read(&sample.view()?);
                let digest = self
                    .state_log
                    .fold(&sample, state.feed, |digest| state.fold_into(digest));
                if let Some(journal) = &mut self.journal {
                    let source = (Topic::States, state.feed, state.icao);
                    journal.append(entry(source, &sample, digest, taken_at_ns));
                }
                let (last, count) = self.table.entry(state.icao).or_default();
                *last = state;
                *count += 1;
            }
            drop(samples);
            self.report_progress()?;
        }
        Ok(())
    }

    fn take_alerts(&mut self) -> Result<(), Failure> {
        while let Some(samples) = none_if_no_data(self.alerts.take(TAKE_MAX))? {
            let taken_at_ns = clock::monotonic_ns();
            for sample in &samples {
                if !sample.info().valid_data {
                    continue;
                }
                let alert = AlertSample::read(&sample.view()?);
                let digest = self
                    .alert_log
                    .fold(&sample, alert.feed, |digest| alert.fold_into(digest));
                if let Some(journal) = &mut self.journal {
                    let source = (Topic::Alerts, alert.feed, alert.icao);
                    journal.append(entry(source, &sample, digest, taken_at_ns));
                }
            }
        }
        Ok(())
    }

    /// Writes the journal, if there is one, and reports how far the display is: after a change of
    /// the view, with the last of history, and after enough samples.
    fn report_progress(&mut self) -> Result<(), Failure> {
        let Some(journal) = &mut self.journal else {
            return Ok(());
        };
        journal.flush()?;
        let samples = self.state_log.count + self.alert_log.count;
        let view = self.participant.counters()?.view;
        let returns = report::returns(&self.participant)?;
        let has_history = has_history(&self.states)? && has_history(&self.alerts)?;
        let before = self.reported;
        if samples < before.samples + REPORT_SAMPLES
            && (view, returns, has_history) == (before.view, before.returns, before.has_history)
        {
            return Ok(());
        }
        self.reported = DisplayProgress {
            samples,
            view,
            members: self.participant.discovered_participants()?.len() + 1,
            returns,
            has_history,
        };
        Line::Seen(self.reported).print();
        Ok(())
    }

    fn report(&self) -> Result<DisplayReport, Failure> {
        let (states, alerts) = (&self.state_log, &self.alert_log);
        let none = Digest::new();
        let feeds = states.by_feed.keys().chain(alerts.by_feed.keys());
        let lost = [
            self.states.sample_lost_status()?,
            self.alerts.sample_lost_status()?,
        ];
        Ok(DisplayReport {
            delivered: states.count + alerts.count,
            digest: states.order.combined(alerts.order).hex(),
            interleaving: states.interleaving.combined(alerts.interleaving).hex(),
            switches: states.switches + alerts.switches,
            fifo_digests: feeds
                .map(|feed| {
                    let of = |log: &TopicLog| *log.by_feed.get(feed).unwrap_or(&none);
                    (*feed, of(states).combined(of(alerts)).hex())
                })
                .collect(),
            alerts: alerts.count,
            lost: lost.map(|lost| u64::try_from(lost.total_count).unwrap_or(0)),
            returns: report::returns(&self.participant)?,
            ended_at_ns: clock::monotonic_ns(),
            aircraft: self.table.values().map(row).collect(),
            ..DisplayReport::default()
        })
    }
}

/// What is kept of the samples of one topic, in the order of taking.
#[derive(Debug)]
struct TopicLog {
    count: u64,
    /// Of fields and publication handles.
    order: Digest,
    /// Of the feeds.
    interleaving: Digest,
    /// For each feed, of the fields of its samples.
    by_feed: BTreeMap<u16, Digest>,
    last_writer: InstanceHandle,
    /// How often the writer changed.
    switches: u64,
}

impl TopicLog {
    fn new() -> Self {
        Self {
            count: 0,
            order: Digest::new(),
            interleaving: Digest::new(),
            by_feed: BTreeMap::new(),
            last_writer: InstanceHandle::NIL,
            switches: 0,
        }
    }

    /// Folds a sample in, and returns its own digest.
    fn fold<T>(
        &mut self,
        sample: &Sample<'_, T>,
        feed: u16,
        fields: impl Fn(&mut Digest),
    ) -> Digest {
        let writer = sample.info().publication_handle;
        let mut own = Digest::new();
        fields(&mut own);
        self.count += 1;
        fields(&mut self.order);
        if let Some(guid) = writer.guid() {
            self.order.fold(&guid.0);
            own.fold(&guid.0);
        }
        self.interleaving.fold(&feed.to_le_bytes());
        fields(self.by_feed.entry(feed).or_insert_with(Digest::new));
        if self.last_writer != writer && !self.last_writer.is_nil() {
            self.switches += 1;
        }
        self.last_writer = writer;
        own
    }
}

fn entry<T>(
    (topic, feed, aircraft): (Topic, u16, u32),
    sample: &Sample<'_, T>,
    digest: Digest,
    taken_at_ns: u64,
) -> Entry {
    let info = sample.info();
    Entry {
        topic,
        feed,
        aircraft,
        number: info.writer_sequence(),
        position: info.position(),
        digest: digest.value(),
        sent_at_ns: info.source_timestamp,
        taken_at_ns,
    }
}

/// Whether a reader awaits no history.
fn has_history<T: TopicType>(reader: &DataReader<T>) -> spindle_dds::Result<bool> {
    match reader.wait_for_historical_data(spindle_dds::Duration::ZERO) {
        Ok(()) => Ok(true),
        Err(error) if error.is_timeout() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Turns the error "no data" into `None`.
fn none_if_no_data<T>(taken: spindle_dds::Result<T>) -> spindle_dds::Result<Option<T>> {
    match taken {
        Ok(samples) => Ok(Some(samples)),
        Err(error) if error.is_no_data() => Ok(None),
        Err(error) => Err(error),
    }
}

fn row((state, messages): &(StateSample, u64)) -> AircraftRow {
    AircraftRow {
        icao: state.icao,
        callsign: state.callsign().to_owned(),
        altitude_ft: state.knows(KNOWN_ALTITUDE).then_some(state.altitude_ft),
        ground_speed_kt: state.knows(KNOWN_VELOCITY).then_some(state.ground_speed_kt),
        position_deg: state
            .knows(KNOWN_POSITION)
            .then_some((state.latitude_deg, state.longitude_deg)),
        on_ground: state.on_ground,
        messages: *messages,
    }
}

const TAKE_MAX: usize = 256;
const REPORT_SAMPLES: u64 = 1000;
/// The end of the feeds, and that of an outage, wake no condition.
const WAIT_MAX: Duration = Duration::from_millis(100);
