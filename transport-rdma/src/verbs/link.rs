//! The link to one peer: a queue pair, what is sent by it and what is received.

use core::sync::atomic::AtomicBool;
use core::time::Duration;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use super::control_message::{ControlMessage, MESSAGE_LEN_MAX};
use super::device::Device;
use super::offer::Offer;
use super::outgoing::Outgoing;
use super::peer_sleep::PeerSleep;
use super::poster::{Poster, reason_of};
use super::send_slots::SIGNAL_EVERY;
use super::sys::{
    Access, Capacity, Channel, CompletionQueue, LinkLayer, Memory, Outcome, QueuePair, Target,
    status_text,
};
use crate::fabric::WakeReason;
use crate::memory::mapping::Mapping;

/// Most work requests in flight to a peer.
const SENDS: u32 = 512;

/// Messages and doorbells of a peer that can wait to be received.
const RECEIVES: u32 = 60;

/// Bytes that a work request carries inline: the first value that the device grants.
const INLINE: [u32; 3] = [220, 128, MESSAGE_LEN_MAX as u32];

/// Exponent of the longest acknowledgement timeout: 0.54 s, so that a hello that is lost is
/// sent twice more before a new queue pair must have proved that it works.
const ACK_TIMEOUT_MAX: u8 = 17;

/// Offset of the peer's sleep word in a link's memory.
const LINE: usize = 0;

/// Offset of the receive buffers.
const ROOM: usize = 128;

/// Bytes of a link's memory.
const MEMORY_LEN: usize = 4096;
const _: () = assert!(ROOM + RECEIVES as usize * MESSAGE_LEN_MAX <= MEMORY_LEN);

/// Which side has offered the queue pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Offers,
    Answers,
}

/// What was received from a peer, other than writes to segments.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) messages: Vec<ControlMessage>,
    /// The greatest reason of the wake-ups.
    pub(super) wake: Option<WakeReason>,
    /// Number of doorbells.
    pub(super) peer_wakes: u64,
}

#[derive(Debug)]
pub(super) struct RdmaLink {
    pub(super) number: u64,
    pub(super) peer: u128,
    pub(super) role: Role,
    pub(super) outgoing: Outgoing,
    /// `None` once the link is closed.
    incoming: Mutex<Option<Arc<QueuePair>>>,
    memory: Memory,
    first_packet: u32,
    pub(super) sleep: PeerSleep,
    pub(super) is_proved: AtomicBool,
    /// Its failure was reported, or must not be reported.
    pub(super) told: AtomicBool,
}

fn what<E: core::fmt::Display>(what: &'static str) -> impl Fn(E) -> String {
    move |error| format!("{what}: {error}")
}

impl RdmaLink {
    /// A queue pair that can receive once it is connected.
    pub(super) fn new(
        device: &Device,
        channel: &Arc<Channel>,
        number: u64,
        peer: u128,
        role: Role,
    ) -> Result<Self, String> {
        let mapping = Mapping::shared(MEMORY_LEN).map_err(what("no memory for its queue pair"))?;
        let region = Arc::new(mapping).region();
        let memory = Memory::new(&device.domain, &region, Access::Target);
        let memory = memory.map_err(what("memory for its queue pair cannot be registered"))?;
        let pair = Self::pair(device, channel, number).map_err(what("no queue pair"))?;
        let pair = Arc::new(pair);
        let port = device.port.number;
        let initialized = pair.initialize(port);
        initialized.map_err(what("its queue pair cannot be initialized"))?;
        for id in 0..RECEIVES.into() {
            let posted = post_receive(&pair, &memory, id);
            posted.map_err(what("its queue pair takes no receives"))?;
        }
        let armed = pair.receives.arm();
        armed.map_err(what("its completions are not told"))?;
        let mut random = [0; 4];
        let drawn = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
        drawn.map_err(what("no random number"))?;
        let poster = Poster::new(&pair, device.port.message_len_max);
        Ok(Self {
            number,
            peer,
            role,
            outgoing: Outgoing::new(poster),
            incoming: Mutex::new(Some(pair)),
            memory,
            first_packet: u32::from_le_bytes(random) >> 8,
            sleep: PeerSleep::default(),
            is_proved: AtomicBool::new(false),
            told: AtomicBool::new(false),
        })
    }

    fn pair(device: &Device, channel: &Arc<Channel>, number: u64) -> io::Result<QueuePair> {
        let sends = SENDS.min(device.work_requests_max);
        if u64::from(sends) <= SIGNAL_EVERY || device.work_requests_max < RECEIVES {
            return Err(io::Error::other("the device has too short queues"));
        }
        let context = &device.context;
        let mut last = Err(io::ErrorKind::Unsupported.into());
        for inline in INLINE {
            // Room for a completion of each request: all of them may fail.
            let sent = CompletionQueue::new(context, channel, sends, number << 1 | 1)?;
            let received = CompletionQueue::new(context, channel, RECEIVES, number << 1)?;
            let wanted = Capacity {
                sends,
                receives: RECEIVES,
                inline,
            };
            last = QueuePair::new(&device.domain, sent, received, wanted, number);
            if last.is_ok() {
                break;
            }
        }
        last
    }

    fn incoming(&self) -> Option<Arc<QueuePair>> {
        let incoming = self.incoming.lock();
        incoming.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the peer needs to know for connecting, encoded.
    pub(super) fn offer(&self, device: &Device) -> Result<Vec<u8>, String> {
        let pair = self.incoming().ok_or("it is closed")?;
        let offer = Offer {
            queue_pair: pair.number(),
            first_packet: self.first_packet,
            gid: device.gid.gid,
            lid: device.port.lid,
            link_layer: device.port.link_layer,
            mtu: device.mtu,
            line: self.memory.remote().at(LINE),
        };
        Ok(offer.encode())
    }

    /// Connects to the peer's queue pair.
    pub(super) fn connect(
        &self,
        device: &Device,
        theirs: &[u8],
        patience: Duration,
    ) -> Result<(), String> {
        let theirs = Offer::decode(theirs).ok_or("what it offers is no queue pair")?;
        let here = device.port.link_layer;
        if theirs.link_layer != here {
            let there = theirs.link_layer;
            return Err(format!("its port is one of {there:?}, here it is {here:?}"));
        }
        let pair = self.incoming().ok_or("it is closed")?;
        let target = Target {
            queue_pair: theirs.queue_pair,
            first_packet: theirs.first_packet,
            gid: theirs.gid,
            lid: theirs.lid,
            is_global: here == LinkLayer::Ethernet || theirs.lid == 0,
            mtu: theirs.mtu.min(device.mtu),
            my_port: device.port.number,
            my_gid_index: device.gid.index,
            my_first_packet: self.first_packet,
            timeout: ack_timeout(patience),
        };
        let no_way = Some(rustix::io::Errno::TIMEDOUT.raw_os_error());
        // The kernel gives up after a second, in which it asks for the neighbour's hardware
        // address only once: one lost packet is no answer yet, so it is tried twice.
        let connected = pair.connect(&target).or_else(|error| {
            let again = error.raw_os_error() == no_way;
            if again {
                pair.connect(&target)
            } else {
                Err(error)
            }
        });
        connected.map_err(|error| match error.raw_os_error() {
            errno if errno == no_way => {
                "no route to its RDMA address was found (is it of the same network?)".to_owned()
            }
            _ => format!("its queue pair cannot be connected: {error}"),
        })?;
        if let Some(poster) = &mut *self.outgoing.poster() {
            poster.connected(theirs.line);
        }
        Ok(())
    }

    /// The peer's sleep word as it was last received.
    pub(super) fn sleep_word(&self) -> u64 {
        self.memory.region().load(LINE)
    }

    /// Has the completion channel report what is received from now on.
    pub(super) fn arm(&self) -> Result<(), String> {
        match self.incoming() {
            Some(pair) => pair
                .receives
                .arm()
                .map_err(what("its completions are not told")),
            None => Ok(()),
        }
    }

    /// Takes what was received, and posts the receives again. One thread at a time. After an
    /// error the queue pair is unusable.
    pub(super) fn receive(&self) -> Result<Received, String> {
        let mut received = Received::default();
        let Some(pair) = self.incoming() else {
            return Ok(received);
        };
        // Not more completions than there are receives.
        let mut done = [None; RECEIVES as usize];
        let mut free = done.iter_mut();
        let polled = pair.receives.poll(|completion| {
            if let Some(place) = free.next() {
                *place = Some(completion);
            }
        });
        polled.map_err(|error| error.to_string())?;
        for completion in done.into_iter().flatten() {
            match completion.what {
                Outcome::Received(len) => {
                    let message = self.message(completion.id, len);
                    let message = message.ok_or("it sent a message that is none")?;
                    received.messages.push(message);
                }
                Outcome::Doorbell(number) => {
                    let reason =
                        reason_of(number).ok_or("it sent a doorbell without a valid reason")?;
                    received.wake = received.wake.max(Some(reason));
                    received.peer_wakes += 1;
                }
                Outcome::Failed(status) => {
                    return Err(format!("nothing comes from it: {}", status_text(status)));
                }
                Outcome::Sent => {}
            }
            let posted = post_receive(&pair, &self.memory, completion.id);
            posted.map_err(what("its queue pair takes no receives"))?;
        }
        Ok(received)
    }

    fn message(&self, id: u64, len: usize) -> Option<ControlMessage> {
        let mut bytes = [0; MESSAGE_LEN_MAX];
        let at = ROOM + usize::try_from(id).ok()? * MESSAGE_LEN_MAX;
        if len > bytes.len() || !self.memory.region().contains(at, MESSAGE_LEN_MAX) {
            return None;
        }
        self.memory.region().copy_out(at, &mut bytes);
        ControlMessage::decode(&bytes[..len])
    }

    /// Closes the link: once this has returned, nothing is written here or there any more.
    pub(super) fn close(&self) {
        let incoming = self.incoming.lock();
        let pair = incoming.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(pair) = &pair
            && let Err(error) = pair.stop()
        {
            tracing::debug!(%error, "a queue pair is destroyed as it stands");
        }
        let poster = self.outgoing.close();
        drop(pair);
        // Also deregisters the memory to which the peer wrote.
        drop(poster);
    }
}

fn post_receive(pair: &QueuePair, memory: &Memory, id: u64) -> io::Result<()> {
    let at = ROOM + id as usize * MESSAGE_LEN_MAX;
    pair.receive(id, memory, at, MESSAGE_LEN_MAX)
}

/// Exponent of the acknowledgement timeout with which a silent peer has failed after
/// `patience` at most.
///
/// Some losses are noticed only when this timeout is over, and all later pushes wait for it:
/// the last packet of a batch, a retransmitted packet, and the receiver's report of a gap,
/// which is sent once. So the timeout is bounded, however patient a station is.
fn ack_timeout(patience: Duration) -> u8 {
    // Waited for after the first transmission and after each retry.
    let times = u128::from(super::sys::RETRIES) + 1;
    let all = |exponent: &u8| (4096_u128 << exponent) * times;
    let fits = |exponent: &u8| all(exponent) <= patience.as_nanos();
    (10..=ACK_TIMEOUT_MAX).rev().find(fits).unwrap_or(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_is_shared_among_the_retries() {
        let check = |patience, expected| {
            assert_eq!(ack_timeout(patience), expected, "{patience:?}");
        };
        check(Duration::ZERO, 10);
        check(Duration::from_secs(1), 15);
        check(Duration::from_secs(2), 16);
        check(Duration::from_secs(10), 17);
        check(Duration::MAX, 17);
    }
}
