//! What the participants of each host, and its link, take for a sample.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use spindle_dds::StreamCalls;

use super::job::Report;
use super::netns::LinkShape;
use super::usage::{LinkCounters, LinkSpan};

/// The figures of one host, or of all together. Counts are of the time from when all participants
/// know each other until the last one is done.
#[derive(Debug, Default, Serialize)]
pub(super) struct HostFigures {
    pub(super) participants: usize,
    /// What its link has carried; `None` where a host is an address of this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) link: Option<LinkCounters>,
    /// The system calls of its streams to other hosts.
    pub(super) streams: StreamCalls,
    pub(super) voluntary_switches: u64,
    pub(super) cpu_ns: u64,
    /// The same for each sample that was written, on whatever host.
    pub(super) per_sample: PerSample,
}

/// Counts for a sample.
#[derive(Debug, Default, Serialize)]
pub(super) struct PerSample {
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<LinkPerSample>,
    send_calls: f64,
    receive_calls: f64,
    voluntary_switches: f64,
    cpu_us: f64,
}

#[derive(Debug, Default, Serialize)]
struct LinkPerSample {
    bytes_sent: f64,
    packets_sent: f64,
    bytes_received: f64,
    packets_received: f64,
}

/// The figures of the hosts, and of all together.
#[derive(Debug, Serialize)]
pub(super) struct PerHost {
    /// Samples that were written.
    samples: u64,
    hosts: Vec<HostFigures>,
    all: HostFigures,
}

impl PerHost {
    /// Those of workers that are on `hosts` hosts in turn; `None` on one host. `samples` were
    /// written.
    pub(super) fn of(hosts: usize, reports: &[Report], samples: u64) -> Option<Self> {
        if hosts < 2 {
            return None;
        }
        let mut of_each: BTreeMap<usize, Vec<&Report>> = BTreeMap::new();
        for (number, report) in reports.iter().enumerate() {
            of_each.entry(number % hosts).or_default().push(report);
        }
        let hosts: Vec<HostFigures> = of_each
            .values()
            .map(|reports| HostFigures::of(reports).for_each_of(samples))
            .collect();
        let all = hosts.iter().fold(HostFigures::default(), HostFigures::plus);
        Some(Self {
            samples,
            all: all.for_each_of(samples),
            hosts,
        })
    }

    pub(super) fn print(&self, links: Option<&LinkShape>, out: &mut impl Write) -> io::Result<()> {
        let has_links = self.all.link.is_some();
        let head = ["members", "sends", "receives", "switches", "CPU us"];
        let of_link = ["sent B", "packets", "rcvd B", "packets"];
        writeln!(out)?;
        if let Some(links) = links {
            writeln!(out, "{} hosts, links with {links}", self.hosts.len())?;
        }
        writeln!(out, "for each of {} samples:", self.samples)?;
        let columns = [
            &head[..1],
            &of_link[..if has_links { 4 } else { 0 }],
            &head[1..],
        ]
        .concat();
        let columns: Vec<String> = columns.iter().map(|name| format!("{name:>9}")).collect();
        writeln!(out, "{:<9} {}", "", columns.join(" "))?;
        for (number, host) in (1..).zip(&self.hosts) {
            host.print(&format!("host {number}"), out)?;
        }
        self.all.print("all", out)
    }
}

impl HostFigures {
    fn of(reports: &[&Report]) -> Self {
        let sum = |value: fn(&Report) -> u64| reports.iter().map(|report| value(report)).sum();
        let streams = reports.iter().map(|report| &report.streams);
        Self {
            participants: reports.len(),
            link: carried(reports.iter().filter_map(|report| report.link)),
            streams: streams.fold(StreamCalls::default(), |all, one| sum_of_calls(&all, one)),
            voluntary_switches: sum(|report| report.switches),
            cpu_ns: sum(|report| report.cpu_ns),
            per_sample: PerSample::default(),
        }
    }

    fn plus(self, other: &Self) -> Self {
        let links = self.link.into_iter().chain(other.link);
        Self {
            participants: self.participants + other.participants,
            link: links.reduce(|a, b| LinkCounters {
                bytes_sent: a.bytes_sent + b.bytes_sent,
                packets_sent: a.packets_sent + b.packets_sent,
                bytes_received: a.bytes_received + b.bytes_received,
                packets_received: a.packets_received + b.packets_received,
            }),
            streams: sum_of_calls(&self.streams, &other.streams),
            voluntary_switches: self.voluntary_switches + other.voluntary_switches,
            cpu_ns: self.cpu_ns + other.cpu_ns,
            per_sample: PerSample::default(),
        }
    }

    fn for_each_of(self, samples: u64) -> Self {
        let each = |count: u64| count as f64 / samples.max(1) as f64;
        let per_sample = PerSample {
            link: self.link.map(|link| LinkPerSample {
                bytes_sent: each(link.bytes_sent),
                packets_sent: each(link.packets_sent),
                bytes_received: each(link.bytes_received),
                packets_received: each(link.packets_received),
            }),
            send_calls: each(self.streams.send_calls),
            receive_calls: each(self.streams.receive_calls),
            voluntary_switches: each(self.voluntary_switches),
            cpu_us: each(self.cpu_ns) / 1e3,
        };
        Self { per_sample, ..self }
    }

    fn print(&self, name: &str, out: &mut impl Write) -> io::Result<()> {
        let each = &self.per_sample;
        write!(out, "{name:<9} {:>9}", self.participants)?;
        if let Some(link) = &each.link {
            let LinkPerSample {
                bytes_sent,
                packets_sent,
                bytes_received,
                packets_received,
            } = link;
            write!(out, " {bytes_sent:>9.1} {packets_sent:>9.3}")?;
            write!(out, " {bytes_received:>9.1} {packets_received:>9.3}")?;
        }
        writeln!(
            out,
            " {:>9.4} {:>9.4} {:>9.4} {:>9.3}",
            each.send_calls, each.receive_calls, each.voluntary_switches, each.cpu_us
        )
    }
}

/// What a link has carried from the first begin to the last end.
fn carried(spans: impl Iterator<Item = LinkSpan>) -> Option<LinkCounters> {
    let all = spans.reduce(|a, b| LinkSpan {
        begun: extreme(u64::min, &a.begun, &b.begun),
        ended: extreme(u64::max, &a.ended, &b.ended),
    })?;
    Some(extreme(u64::saturating_sub, &all.ended, &all.begun))
}

fn extreme(of: fn(u64, u64) -> u64, a: &LinkCounters, b: &LinkCounters) -> LinkCounters {
    LinkCounters {
        bytes_sent: of(a.bytes_sent, b.bytes_sent),
        packets_sent: of(a.packets_sent, b.packets_sent),
        bytes_received: of(a.bytes_received, b.bytes_received),
        packets_received: of(a.packets_received, b.packets_received),
    }
}

fn sum_of_calls(a: &StreamCalls, b: &StreamCalls) -> StreamCalls {
    let mut sum = *a;
    sum.send_calls += b.send_calls;
    sum.bytes_sent += b.bytes_sent;
    sum.receive_calls += b.receive_calls;
    sum.bytes_received += b.bytes_received;
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(calls: u64, begun: u64, ended: u64) -> Report {
        let link = |bytes_sent| LinkCounters {
            bytes_sent,
            packets_received: bytes_sent / 10,
            ..LinkCounters::default()
        };
        let mut report = Report {
            switches: 3,
            cpu_ns: 500_000,
            link: Some(LinkSpan {
                begun: link(begun),
                ended: link(ended),
            }),
            ..Report::default()
        };
        report.streams.send_calls = calls;
        report
    }

    /// The link is of the host: its participants have all read the same counters.
    #[test]
    fn calls_are_summed_and_links_are_not() {
        let reports = [report(10, 100, 900), report(1, 0, 50), report(20, 50, 1050)];
        let hosts = PerHost::of(2, &reports, 100).expect("two hosts");
        let [first, second] = &hosts.hosts[..] else {
            panic!("{hosts:?}");
        };
        assert_eq!((first.participants, second.participants), (2, 1));
        let sent = |host: &HostFigures| host.link.map(|link| link.bytes_sent);
        assert_eq!((sent(first), sent(second)), (Some(1000), Some(50)));
        assert_eq!((sent(&hosts.all), hosts.all.participants), (Some(1050), 3));
        assert_eq!(first.streams.send_calls, 30);
        assert_eq!(hosts.all.per_sample.send_calls, 0.31);
        assert_eq!(first.per_sample.cpu_us, 10.0);
        let link = hosts.all.per_sample.link.as_ref();
        assert_eq!(link.map(|link| link.packets_received), Some(1.05));
        assert!(PerHost::of(1, &reports, 100).is_none());
    }

    #[test]
    fn the_table_has_the_columns_that_there_are() {
        let check = |reports: &[Report], expected: &str| {
            let hosts = PerHost::of(2, reports, 10).expect("two hosts");
            let mut text = Vec::new();
            hosts.print(None, &mut text).expect("it can be written");
            let text = String::from_utf8(text).expect("text");
            assert_eq!(text.lines().next_back(), Some(expected), "{text}");
            let lengths = text.lines().skip(2).map(str::len);
            let lengths: Vec<usize> = lengths.collect();
            assert!(lengths.iter().all(|it| *it == expected.len()), "{text}");
        };
        let of_all = "all               2     105.0     0.000       0.0    10.500    0.3000    0.0000    0.6000   100.000";
        check(&[report(1, 0, 1000), report(2, 0, 50)], of_all);
        let without = || Report {
            link: None,
            ..report(1, 0, 0)
        };
        let of_all = "all               2    0.2000    0.0000    0.6000   100.000";
        check(&[without(), without()], of_all);
    }
}
