//! iceoryx2: samples are built and read in place, and no reader misses one.
//!
//! A blocking reader is woken by an event after each sample, as in iceoryx2's own example of
//! event-based communication: it cannot sleep otherwise.

use core::time::Duration;
use std::process::ExitCode;

use iceoryx2::port::DegradationAction;
use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;
use iceoryx2::service::port_factory::PortFactory as _;
use iceoryx2::service::port_factory::event::PortFactory as EventFactory;
use iceoryx2::service::port_factory::publish_subscribe::PortFactory;
use spindle_peer_measure::{Arguments, Failure, Inlet, Outlet, Peer, Stamp, Wait, run};

type Service = ipc::Service;

fn main() -> ExitCode {
    set_log_level(LogLevel::Error);
    run(Iceoryx2::open)
}

struct Iceoryx2 {
    node: Node<Service>,
    arguments: Arguments,
}

/// The user header of a sample: its stamp.
#[derive(Debug, Default, Clone, Copy, ZeroCopySend)]
#[repr(C)]
struct Header {
    words: [u64; 2],
}

impl Iceoryx2 {
    fn open(arguments: &Arguments) -> Result<Self, Failure> {
        Ok(Self {
            node: NodeBuilder::new().create::<Service>()?,
            arguments: arguments.clone(),
        })
    }

    fn data(&self, topic: &str) -> Result<PortFactory<Service, [u8], Header>, Failure> {
        Ok(self
            .node
            .service_builder(&self.name(topic, "data")?)
            .publish_subscribe::<[u8]>()
            .user_header::<Header>()
            .enable_safe_overflow(false)
            .history_size(0)
            .max_publishers(1)
            .max_subscribers(self.readers())
            .subscriber_max_buffer_size(self.buffer_samples())
            .open_or_create()?)
    }

    fn events(&self, topic: &str) -> Result<EventFactory<Service>, Failure> {
        let name = self.name(topic, "event")?;
        let builder = self.node.service_builder(&name).event();
        Ok(builder.max_listeners(self.readers()).open_or_create()?)
    }

    fn name(&self, topic: &str, kind: &str) -> Result<ServiceName, Failure> {
        let session = &self.arguments.session;
        Ok(ServiceName::new(&format!(
            "spindle-bench/{session}/{topic}/{kind}"
        ))?)
    }

    fn readers(&self) -> usize {
        self.arguments.readers as usize
    }

    /// As many samples as a writer of Spindle has in flight, within a limit of memory: each reader
    /// may hold that many.
    fn buffer_samples(&self) -> usize {
        let room = BYTES_MAX / self.arguments.size.max(1) / self.readers().max(1);
        room.clamp(2, BUFFER_SAMPLES)
    }

    fn blocks(&self) -> bool {
        self.arguments.wait == Wait::Block
    }
}

impl Peer for Iceoryx2 {
    type Outlet = Writer;
    type Inlet = Reader;

    fn outlet(&mut self, topic: &str) -> Result<Writer, Failure> {
        let service = self.data(topic)?;
        let publisher = service
            .publisher_builder()
            .initial_max_slice_len(self.arguments.size)
            .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
            .set_degradation_handler(|_, _| DegradationAction::DegradeAndFail)
            .create()?;
        let notifier = match self.blocks() {
            true => Some(self.events(topic)?.notifier_builder().create()?),
            false => None,
        };
        Ok(Writer {
            publisher,
            service,
            notifier,
            size: self.arguments.size,
        })
    }

    fn inlet(&mut self, topic: &str) -> Result<Reader, Failure> {
        // The listener first: a publisher may send and notify as soon as it sees the subscriber.
        let listener = match self.blocks() {
            true => Some(self.events(topic)?.listener_builder().create()?),
            false => None,
        };
        let service = self.data(topic)?;
        let subscriber = service.subscriber_builder().create()?;
        Ok(Reader {
            subscriber,
            listener,
            service,
        })
    }
}

struct Writer {
    publisher: Publisher<Service, [u8], Header>,
    service: PortFactory<Service, [u8], Header>,
    notifier: Option<Notifier<Service>>,
    size: usize,
}

impl Outlet for Writer {
    fn readers(&mut self) -> Result<usize, Failure> {
        let readers = self.service.dynamic_config().number_of_subscribers();
        // A subscriber connects when it polls. Until then a publisher does not wait for room in its
        // buffer, and drops samples. So sleeping subscribers are notified.
        if let Some(notifier) = &self.notifier {
            notifier.notify()?;
        }
        Ok(readers)
    }

    fn send(&mut self, stamp: Stamp, write: impl Fn(&mut [u8])) -> Result<(), Failure> {
        let sample = self.publisher.loan_slice_uninit(self.size)?;
        // SAFETY: the bytes lie in a shared mapping of this process whose pages were zeroed, so
        // every byte is initialized, and any value is a valid `u8`.
        let mut sample = unsafe { sample.assume_init() };
        sample.user_header_mut().words = stamp.words();
        write(sample.payload_mut());
        sample.send()?;
        if let Some(notifier) = &self.notifier {
            notifier.notify()?;
        }
        Ok(())
    }
}

struct Reader {
    subscriber: Subscriber<Service, [u8], Header>,
    listener: Option<Listener<Service>>,
    service: PortFactory<Service, [u8], Header>,
}

impl Inlet for Reader {
    fn is_ready(&mut self) -> Result<bool, Failure> {
        Ok(self.service.dynamic_config().number_of_publishers() > 0)
    }

    fn receive(
        &mut self,
        limit: Duration,
        each: &mut impl FnMut(Stamp, &[u8]),
    ) -> Result<usize, Failure> {
        let came = self.take(each)?;
        let Some(listener) = self.listener.as_ref().filter(|_| came == 0) else {
            return Ok(came);
        };
        listener.timed_wait(|_| (), limit)?;
        self.take(each)
    }
}

impl Reader {
    fn take(&self, each: &mut impl FnMut(Stamp, &[u8])) -> Result<usize, Failure> {
        let mut came = 0;
        while came < TAKE_MAX {
            let Some(sample) = self.subscriber.receive()? else {
                break;
            };
            each(
                Stamp::of_words(sample.user_header().words),
                sample.payload(),
            );
            came += 1;
        }
        Ok(came)
    }
}

const BUFFER_SAMPLES: usize = 1024;
const BYTES_MAX: usize = 1 << 30;
/// Most samples taken before the caller checks for the end.
const TAKE_MAX: usize = 256;
