//! Dust DDS: reliable, over UDP on the loopback interface.
//!
//! The history keeps the last 32: with KEEP_ALL and a limit the writer fails with
//! OUT_OF_RESOURCES, and without a limit its memory grows for ever. A sample that is replaced
//! before it is received counts as lost. Each sample is one datagram: fragments of the default
//! size reduce the rate of 10 KB samples from ten thousand to a few hundred per second.

use std::process::ExitCode;
use std::time::Duration;

use dust_dds::dds_async::configuration::DustDdsConfigurationBuilder;
use dust_dds::domain::domain_participant::DomainParticipant;
use dust_dds::domain::domain_participant_factory::DomainParticipantFactory;
use dust_dds::infrastructure::error::DdsError;
use dust_dds::infrastructure::listener::NO_LISTENER;
use dust_dds::infrastructure::qos::{DataReaderQos, DataWriterQos, QosKind};
use dust_dds::infrastructure::qos_policy::{
    HistoryQosPolicy, HistoryQosPolicyKind, ReliabilityQosPolicy, ReliabilityQosPolicyKind,
};
use dust_dds::infrastructure::sample_info::{ANY_INSTANCE_STATE, ANY_SAMPLE_STATE, ANY_VIEW_STATE};
use dust_dds::infrastructure::status::{NO_STATUS, StatusKind};
use dust_dds::infrastructure::time::{Duration as DdsDuration, DurationKind};
use dust_dds::infrastructure::type_support::DdsType;
use dust_dds::publication::data_writer::DataWriter;
use dust_dds::subscription::data_reader::DataReader;
use dust_dds::topic_definition::topic::Topic;
use dust_dds::wait_set::{Condition, WaitSet};
use spindle_peer_measure::{Arguments, Failure, Inlet, Outlet, Peer, Stamp, Wait, run};

fn main() -> ExitCode {
    run(Dust::open)
}

#[derive(Debug, Clone, DdsType)]
struct Probe {
    number: u64,
    sent_at_ns: u64,
    payload: Vec<u8>,
}

struct Dust {
    participant: DomainParticipant,
    arguments: Arguments,
}

impl Dust {
    fn open(arguments: &Arguments) -> Result<Self, Failure> {
        let factory = DomainParticipantFactory::get_instance();
        factory
            .get_mut_transport()
            .set_interface_name(Some("lo".to_owned()))
            .set_udp_receive_buffer_size(Some(RECEIVE_BYTES))
            .set_fragment_size(FRAGMENT_BYTES)?;
        let configuration = DustDdsConfigurationBuilder::new()
            .participant_announcement_interval(ANNOUNCE_EVERY)
            .build()
            .map_err(failure)?;
        *factory.get_mut_configuration() = configuration;
        let participant = factory
            .create_participant(DOMAIN, QosKind::Default, NO_LISTENER, NO_STATUS)
            .map_err(failure)?;
        Ok(Self {
            participant,
            arguments: arguments.clone(),
        })
    }

    fn topic(&self, name: &str) -> Result<Topic, Failure> {
        let name = format!("spindle_bench_{}_{name}", self.arguments.session);
        self.participant
            .create_topic::<Probe>(&name, "Probe", QosKind::Default, NO_LISTENER, NO_STATUS)
            .map_err(failure)
    }
}

impl Peer for Dust {
    type Outlet = Writer;
    type Inlet = Reader;

    fn outlet(&mut self, topic: &str) -> Result<Writer, Failure> {
        let topic = self.topic(topic)?;
        let publisher = self
            .participant
            .create_publisher(QosKind::Default, NO_LISTENER, NO_STATUS)
            .map_err(failure)?;
        let qos = DataWriterQos {
            reliability: reliable(),
            history: history(),
            ..Default::default()
        };
        let writer = publisher
            .create_datawriter(&topic, QosKind::Specific(qos), NO_LISTENER, NO_STATUS)
            .map_err(failure)?;
        Ok(Writer {
            writer,
            size: self.arguments.size,
        })
    }

    fn inlet(&mut self, topic: &str) -> Result<Reader, Failure> {
        let topic = self.topic(topic)?;
        let subscriber = self
            .participant
            .create_subscriber(QosKind::Default, NO_LISTENER, NO_STATUS)
            .map_err(failure)?;
        let qos = DataReaderQos {
            reliability: reliable(),
            history: history(),
            ..Default::default()
        };
        let reader = subscriber
            .create_datareader::<Probe>(&topic, QosKind::Specific(qos), NO_LISTENER, NO_STATUS)
            .map_err(failure)?;
        let condition = reader.get_statuscondition();
        condition
            .set_enabled_statuses(&[StatusKind::DataAvailable])
            .map_err(failure)?;
        let mut waits = WaitSet::new();
        waits
            .attach_condition(Condition::StatusCondition(condition))
            .map_err(failure)?;
        Ok(Reader {
            reader,
            waits,
            blocks: self.arguments.wait == Wait::Block,
        })
    }
}

struct Writer {
    writer: DataWriter<Probe>,
    size: usize,
}

impl Outlet for Writer {
    fn readers(&mut self) -> Result<usize, Failure> {
        let matched = self.writer.get_publication_matched_status();
        Ok(usize::try_from(matched.map_err(failure)?.current_count)?)
    }

    fn send(&mut self, stamp: Stamp, write: impl Fn(&mut [u8])) -> Result<(), Failure> {
        let [number, sent_at_ns] = stamp.words();
        let mut payload = vec![0; self.size];
        write(&mut payload);
        let probe = Probe {
            number,
            sent_at_ns,
            payload,
        };
        self.writer.write(probe, None).map_err(failure)
    }
}

struct Reader {
    reader: DataReader<Probe>,
    waits: WaitSet,
    blocks: bool,
}

impl Inlet for Reader {
    fn is_ready(&mut self) -> Result<bool, Failure> {
        let matched = self.reader.get_subscription_matched_status();
        Ok(matched.map_err(failure)?.current_count > 0)
    }

    fn receive(
        &mut self,
        limit: Duration,
        each: &mut impl FnMut(Stamp, &[u8]),
    ) -> Result<usize, Failure> {
        let came = self.take(each)?;
        if came > 0 || !self.blocks {
            return Ok(came);
        }
        let limit = DdsDuration::new(i32::try_from(limit.as_secs())?, limit.subsec_nanos());
        match self.waits.wait(limit) {
            Ok(_) => self.take(each),
            Err(DdsError::Timeout) => Ok(0),
            Err(error) => Err(failure(error)),
        }
    }
}

impl Reader {
    fn take(&self, each: &mut impl FnMut(Stamp, &[u8])) -> Result<usize, Failure> {
        let states = (ANY_SAMPLE_STATE, ANY_VIEW_STATE, ANY_INSTANCE_STATE);
        let samples = match self.reader.take(TAKE_MAX, states.0, states.1, states.2) {
            Ok(samples) => samples,
            Err(DdsError::NoData) => return Ok(0),
            Err(error) => return Err(failure(error)),
        };
        let mut came = 0;
        for probe in samples.into_iter().filter_map(|sample| sample.data) {
            let stamp = Stamp::of_words([probe.number, probe.sent_at_ns]);
            each(stamp, &probe.payload);
            came += 1;
        }
        Ok(came)
    }
}

fn reliable() -> ReliabilityQosPolicy {
    ReliabilityQosPolicy {
        kind: ReliabilityQosPolicyKind::Reliable,
        max_blocking_time: DurationKind::Finite(DdsDuration::new(10, 0)),
    }
}

fn history() -> HistoryQosPolicy {
    HistoryQosPolicy {
        kind: HistoryQosPolicyKind::KeepLast(DEPTH),
    }
}

/// `DdsError` does not implement `std::error::Error`.
fn failure(error: DdsError) -> Failure {
    error.to_string().into()
}

const DOMAIN: i32 = 47;
const DEPTH: u32 = 32;
/// Large enough for a sample in one datagram; the loopback interface does not fragment these.
const FRAGMENT_BYTES: usize = 60_000;
const RECEIVE_BYTES: usize = 4 << 20;
const TAKE_MAX: i32 = 256;
const ANNOUNCE_EVERY: Duration = Duration::from_millis(200);
