//! A display: takes every sample, keeps a table of aircraft, and digests what it saw.

use std::collections::BTreeMap;
use std::time::Duration;

use spindle_dds::{
    DataReader, DomainParticipant, InstanceHandle, Sample, StatusMask, SubscriptionMatchedStatus,
    WaitSet,
};

use crate::digest::Digest;
use crate::flight::{AircraftState, Alert, KNOWN_ALTITUDE, KNOWN_POSITION, KNOWN_VELOCITY};
use crate::options::{Kill, Options};
use crate::report::{Row, Shown};
use crate::samples::{Alarm, State};
use crate::{Failure, clock, join};

pub(crate) fn run(options: &Options, index: u16) -> Result<Shown, Failure> {
    let participant = join(options)?;
    let mut display = Display::new(&participant, options)?;
    display.kill_at = options
        .kill
        .and_then(|Kill { display, samples }| (display == index).then_some(samples));
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
    states: DataReader<AircraftState>,
    alerts: DataReader<Alert>,
    waits: WaitSet,
    state_stream: Stream,
    alert_stream: Stream,
    table: BTreeMap<u32, (State, u64)>,
    feeds: i32,
    kill_at: Option<u64>,
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
        Ok(Self {
            states,
            alerts,
            waits,
            state_stream: Stream::new(),
            alert_stream: Stream::new(),
            table: BTreeMap::new(),
            feeds: i32::from(options.feeds),
            kill_at: None,
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
            for sample in &samples {
                if !sample.info().valid_data {
                    continue;
                }
                let state = State::read(&sample.view()?);
                self.state_stream
                    .fold(&sample, state.feed, |digest| state.fold_into(digest));
                let (shown, messages) = self.table.entry(state.icao).or_default();
                *shown = state;
                *messages += 1;
                self.die_if_told_to();
            }
        }
        Ok(())
    }

    fn take_alerts(&mut self) -> Result<(), Failure> {
        while let Some(samples) = some(self.alerts.take(TAKE_MAX))? {
            for sample in &samples {
                if !sample.info().valid_data {
                    continue;
                }
                let alarm = Alarm::read(&sample.view()?);
                self.alert_stream
                    .fold(&sample, alarm.feed, |digest| alarm.fold_into(digest));
            }
        }
        Ok(())
    }

    fn die_if_told_to(&self) {
        if self
            .kill_at
            .is_some_and(|samples| self.state_stream.count >= samples)
        {
            let _ = rustix::process::kill_process(
                rustix::process::getpid(),
                rustix::process::Signal::KILL,
            );
        }
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

    fn fold<T>(&mut self, sample: &Sample<'_, T>, feed: u16, fields: impl Fn(&mut Digest)) {
        let writer = sample.info().publication_handle;
        self.count += 1;
        fields(&mut self.order);
        if let Some(guid) = writer.guid() {
            self.order.fold(&guid.0);
        }
        self.interleaving.fold(&feed.to_le_bytes());
        fields(self.fifo.entry(feed).or_insert_with(Digest::new));
        if self.last != writer && !self.last.is_nil() {
            self.switches += 1;
        }
        self.last = writer;
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
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);
