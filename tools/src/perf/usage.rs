//! What a worker uses while it is measured: processor time, switches, system calls of its
//! streams, and the link of its host.

use std::fs;
use std::io;

use serde::{Deserialize, Serialize};
use spindle_dds::{DomainParticipant, StreamCalls};
use spindle_dds_children::netns::LINK;

use super::job::{Job, Report};
use super::{Failure, clock};

/// Counts at the begin of a measurement.
#[derive(Debug)]
pub(super) struct Usage {
    cpu_ns: u64,
    switches: u64,
    streams: StreamCalls,
    link: Option<LinkCounters>,
}

/// What the link of a host has carried until a moment: all that its participants, and the
/// kernel, have sent and received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LinkCounters {
    pub(super) bytes_sent: u64,
    pub(super) packets_sent: u64,
    pub(super) bytes_received: u64,
    pub(super) packets_received: u64,
}

/// The link of a worker's host at the begin and at the end.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct LinkSpan {
    pub(super) begun: LinkCounters,
    pub(super) ended: LinkCounters,
}

impl Usage {
    /// Begins to count, in a participant that is enabled.
    pub(super) fn begin(job: &Job, participant: &DomainParticipant) -> Result<Self, Failure> {
        Ok(Self {
            cpu_ns: clock::process_cpu_ns(),
            switches: clock::voluntary_switches()?,
            streams: participant.counters()?.streams,
            link: link_of(job)?,
        })
    }

    /// Adds what was used since to the report.
    pub(super) fn end(
        &self,
        job: &Job,
        participant: &DomainParticipant,
        report: &mut Report,
    ) -> Result<(), Failure> {
        report.cpu_ns = clock::process_cpu_ns() - self.cpu_ns;
        report.switches = clock::voluntary_switches()?.saturating_sub(self.switches);
        report.streams = difference(&participant.counters()?.streams, &self.streams);
        let ended = link_of(job)?;
        let span = self.link.zip(ended);
        report.link = span.map(|(begun, ended)| LinkSpan { begun, ended });
        Ok(())
    }
}

/// The calls since an earlier count. A participant that has lost its group may count from zero again.
fn difference(now: &StreamCalls, before: &StreamCalls) -> StreamCalls {
    let mut since = *now;
    since.send_calls = since.send_calls.saturating_sub(before.send_calls);
    since.bytes_sent = since.bytes_sent.saturating_sub(before.bytes_sent);
    since.receive_calls = since.receive_calls.saturating_sub(before.receive_calls);
    since.bytes_received = since.bytes_received.saturating_sub(before.bytes_received);
    since
}

/// The counters of the host's link; `None` if the host is no namespace.
fn link_of(job: &Job) -> io::Result<Option<LinkCounters>> {
    let place = job.place.as_ref();
    if place.is_none_or(|place| place.namespace.is_none()) {
        return Ok(None);
    }
    let interfaces = fs::read_to_string("/proc/thread-self/net/dev")?;
    let counters = counters_of(&interfaces, LINK);
    let missing = || io::Error::other(format!("there is no interface `{LINK}`"));
    counters.map(Some).ok_or_else(missing)
}

/// The counters of an interface, in the kernel's table of them: eight numbers of what was
/// received, then those of what was sent; of both, bytes and packets come first.
fn counters_of(interfaces: &str, name: &str) -> Option<LinkCounters> {
    let mut lines = interfaces.lines().filter_map(|line| line.split_once(':'));
    let (_, numbers) = lines.find(|(interface, _)| interface.trim() == name)?;
    let numbers = numbers.split_whitespace().map(str::parse);
    let numbers: Vec<u64> = numbers.collect::<Result<_, _>>().ok()?;
    Some(LinkCounters {
        bytes_received: *numbers.first()?,
        packets_received: *numbers.get(1)?,
        bytes_sent: *numbers.get(8)?,
        packets_sent: *numbers.get(9)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counters_of_an_interface_are_found() {
        let interfaces = "Inter-|   Receive                            |  Transmit\n \
             face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets\n    \
             lo:       1       2    0    0    0     0          0         0        3       4\n   \
             net: 1000 20 0 0 0 0 0 0 30000 400 0 0 0 0 0 0\n";
        let expected = LinkCounters {
            bytes_sent: 30_000,
            packets_sent: 400,
            bytes_received: 1000,
            packets_received: 20,
        };
        assert_eq!(counters_of(interfaces, "net"), Some(expected));
        assert_eq!(counters_of(interfaces, "et"), None);
        assert_eq!(counters_of("net: 1 2 3\n", "net"), None);
        assert_eq!(counters_of("net: 1 2 x\n", "net"), None);
    }
}
