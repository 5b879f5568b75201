//! A display: takes every sample, keeps a table of aircraft, and digests what it saw.

use std::collections::BTreeMap;
use std::time::Duration;

use spindle_dds::{
    DataReader, DomainParticipant, InstanceHandle, Sample, StatusMask, SubscriptionMatchedStatus,
    WaitSet,
};

use crate::digest::Digest;
use crate::flight::{AircraftState, Alert, KNOWN_ALTITUDE, KNOWN_POSITION, KNOWN_VELOCITY};
use crate::journal::{Entry, Journal, Topic};
use crate::options::Options;
use crate::report::{Line, Row, Seen, Shown};
use crate::samples::{Alarm, State};
use crate::{Failure, clock, join};

pub(crate) fn run(options: &Options) -> Result<Shown, Failure> {
    let participant = join(options)?;
    let mut display = Display::new(&participant, options)?;
    participant.enable()?;
    display.run()?;
    let engine = participant.counters()?.engine;
    let mut shown = display.shown();
    shown.nulls = engine.nulls;
    shown.batch_p50 = engine.delivery_batches.quantile(0.5);
    participant.close()?;
    Ok(shown)
}

#[derive(Debug)]
struct Display {
    participant: DomainParticipant,
    states: DataReader<AircraftState>,
    alerts: DataReader<Alert>,
    waits: WaitSet,
    state_stream: Stream,
    alert_stream: Stream,
    table: BTreeMap<u32, (State, u64)>,
    feeds: i32,
    journal: Option<Journal>,
    /// Samples and view that were told last.
    told: (u64, u64),
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
            state_stream: Stream::new(),
            alert_stream: Stream::new(),
            table: BTreeMap::new(),
            feeds: i32::from(options.feeds),
            journal: journal.transpose()?,
            told: (0, 0),
        })
    }

    /// Shows samples until every feed has left and nothing is left to take.
    fn run(&mut self) -> Result<(), Failure> {
        loop {
            // Who has left has left after its last sample: look first, then take.
            // (Both are read every time: a status that is not read keeps its
            // condition triggered.)
            let matched = [
                self.states.subscription_matched_status()?,
                self.alerts.subscription_matched_status()?,
            ];
            let last_round = matched.iter().all(|matched| self.has_left(matched));
            self.take_states()?;
            self.take_alerts()?;
            self.tell()?;
            if last_round {
                return Ok(());
            }
            match self.waits.wait(LOOK_AGAIN_AFTER) {
                Ok(_) => {}
                Err(error) if error.is_timeout() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether every feed has come and gone.
    fn has_left(&self, matched: &SubscriptionMatchedStatus) -> bool {
        matched.total_count >= self.feeds && matched.current_count == 0
    }

    fn take_states(&mut self) -> Result<(), Failure> {
        while let Some(samples) = some(self.states.take(TAKE_MAX))? {
            let taken_at_ns = clock::monotonic_ns();
            for sample in &samples {
                if !sample.info().valid_data {
                    continue;
                }
                let state = State::read(&sample.view()?);
                let digest = self
                    .state_stream
                    .fold(&sample, state.feed, |digest| state.fold_into(digest));
                if let Some(journal) = &mut self.journal {
                    let (topic, feed) = (Topic::States, state.feed);
                    journal.put(entry(topic, feed, &sample, digest, taken_at_ns));
                }
                let (shown, messages) = self.table.entry(state.icao).or_default();
                *shown = state;
                *messages += 1;
            }
            drop(samples);
            self.tell()?;
        }
        Ok(())
    }

    fn take_alerts(&mut self) -> Result<(), Failure> {
        while let Some(samples) = some(self.alerts.take(TAKE_MAX))? {
            let taken_at_ns = clock::monotonic_ns();
            for sample in &samples {
                if !sample.info().valid_data {
                    continue;
                }
                let alarm = Alarm::read(&sample.view()?);
                let digest = self
                    .alert_stream
                    .fold(&sample, alarm.feed, |digest| alarm.fold_into(digest));
                if let Some(journal) = &mut self.journal {
                    let (topic, feed) = (Topic::Alerts, alarm.feed);
                    journal.put(entry(topic, feed, &sample, digest, taken_at_ns));
                }
            }
        }
        Ok(())
    }

    /// If it keeps a journal: writes it on, and now and then tells how far it is.
    fn tell(&mut self) -> Result<(), Failure> {
        let Some(journal) = &mut self.journal else {
            return Ok(());
        };
        journal.flush()?;
        let samples = self.state_stream.count + self.alert_stream.count;
        let view = self.participant.counters()?.view;
        if samples < self.told.0 + TELL_EVERY && view == self.told.1 {
            return Ok(());
        }
        self.told = (samples, view);
        let members = self.participant.discovered_participants()?.len() + 1;
        Line::Seen(Seen {
            samples,
            view,
            members,
        })
        .send();
        Ok(())
    }

    fn shown(&self) -> Shown {
        let (states, alerts) = (&self.state_stream, &self.alert_stream);
        let none = Digest::new();
        let feeds = states.fifo.keys().chain(alerts.fifo.keys());
        Shown {
            delivered: states.count + alerts.count,
            digest: states.order.combined(alerts.order).hex(),
            interleaving: states.interleaving.combined(alerts.interleaving).hex(),
            switches: states.switches + alerts.switches,
            fifo_digests: feeds
                .map(|feed| {
                    let of = |stream: &Stream| *stream.fifo.get(feed).unwrap_or(&none);
                    (*feed, of(states).combined(of(alerts)).hex())
                })
                .collect(),
            alerts: alerts.count,
            ended_at_ns: clock::monotonic_ns(),
            aircraft: self.table.values().map(row).collect(),
            ..Shown::default()
        }
    }
}

/// What is kept of the samples of one topic, in `take` order.
#[derive(Debug)]
struct Stream {
    count: u64,
    order: Digest,
    interleaving: Digest,
    fifo: BTreeMap<u16, Digest>,
    last: InstanceHandle,
    switches: u64,
}

impl Stream {
    fn new() -> Self {
        Self {
            count: 0,
            order: Digest::new(),
            interleaving: Digest::new(),
            fifo: BTreeMap::new(),
            last: InstanceHandle::NIL,
            switches: 0,
        }
    }

    /// Folds a sample in; its own digest.
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
        fields(self.fifo.entry(feed).or_insert_with(Digest::new));
        if self.last != writer && !self.last.is_nil() {
            self.switches += 1;
        }
        self.last = writer;
        own
    }
}

fn entry<T>(
    topic: Topic,
    feed: u16,
    sample: &Sample<'_, T>,
    digest: Digest,
    taken_at_ns: u64,
) -> Entry {
    let info = sample.info();
    Entry {
        topic,
        feed,
        number: info.writer_sequence(),
        position: info.position(),
        digest: digest.value(),
        sent_at_ns: info.source_timestamp,
        taken_at_ns,
    }
}

/// Nothing to take is no error here.
fn some<T>(taken: spindle_dds::Result<T>) -> spindle_dds::Result<Option<T>> {
    match taken {
        Ok(samples) => Ok(Some(samples)),
        Err(error) if error.is_no_data() => Ok(None),
        Err(error) => Err(error),
    }
}

fn row((state, messages): &(State, u64)) -> Row {
    Row {
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
/// Samples.
const TELL_EVERY: u64 = 1000;
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);
