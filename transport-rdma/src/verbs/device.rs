//! Choosing the device, port and GID of a station.

use ::core::net::IpAddr;
use std::io;
use std::sync::Arc;

use rustix::process::{Resource, getrlimit};

use super::control_message::MESSAGE_LEN_MAX;
use super::error::RdmaError;
use super::sys::{self, Access, Context, Domain, GidKind, GidRow, LinkLayer, Memory, Port};
use crate::memory::mapping::Mapping;
use crate::rdma::RdmaOptions;

/// Bytes that must be registrable: with less, RDMA is not usable.
const TRIAL_LEN: usize = 64 << 20;

/// A device that is in use.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) context: Arc<Context>,
    pub(super) domain: Arc<Domain>,
    pub(super) port: Port,
    pub(super) gid: GidRow,
    /// Path MTU, in bytes.
    pub(super) mtu: u32,
    /// Most work requests that a queue pair can hold.
    pub(super) work_requests_max: u32,
}

impl Device {
    /// Opens and tries the device that `options` name; else, of all usable ones, the one with
    /// the address `listen`, or the first.
    pub(super) fn open(options: &RdmaOptions, listen: IpAddr) -> Result<Self, RdmaError> {
        let names = match sys::device_names() {
            Ok(names) => names,
            // The kernel has no RDMA at all.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NOSYS.raw_os_error()) => {
                Vec::new()
            }
            Err(source) => {
                let what = "listing RDMA devices";
                return Err(RdmaError::System { what, source });
            }
        };
        let wanted: Vec<_> = match &options.device {
            None if names.is_empty() => return Err(RdmaError::NoDevice),
            None => names,
            Some(name) if names.contains(name) => vec![name.clone()],
            Some(name) => {
                let there = match names.is_empty() {
                    true => "none".to_owned(),
                    false => names.join(", "),
                };
                let name = name.clone();
                return Err(RdmaError::NoSuchDevice { name, there });
            }
        };
        let opened = wanted.iter().map(|name| Self::named(name, options, listen));
        let device = choose_device(opened, |device| {
            ipv4_of(device.gid.gid).map(IpAddr::V4) == Some(listen)
        })?;
        device.try_memory()?;
        Ok(device)
    }

    fn named(name: &str, options: &RdmaOptions, listen: IpAddr) -> Result<Self, RdmaError> {
        let unfit = |problem: String| RdmaError::Unfit {
            device: name.to_owned(),
            problem,
        };
        let failed = |what: &'static str| {
            move |error: io::Error| RdmaError::Unfit {
                device: name.to_owned(),
                problem: format!("{what}: {error}"),
            }
        };
        let context = Context::open(name).map_err(failed("it cannot be opened"))?;
        let ports = context.ports().map_err(failed("its ports are unknown"))?;
        let port = choose_port(&ports, options.port).map_err(unfit)?;
        let gids = context.gids().map_err(failed("its GIDs are unknown"))?;
        let gid = choose_gid(&gids, &port, options.gid_index, listen).map_err(unfit)?;
        let mtu = choose_mtu(&port, options.mtu).map_err(unfit)?;
        let work_requests_max = context.work_requests_max();
        let work_requests_max = work_requests_max.map_err(failed("its limits are unknown"))?;
        let domain = Domain::new(&context).map_err(failed("no protection domain"))?;
        Ok(Self {
            context,
            domain,
            port,
            gid,
            mtu,
            work_requests_max,
        })
    }

    /// Registers and releases memory, to find out whether segments will get it.
    fn try_memory(&self) -> Result<(), RdmaError> {
        let memlock = |source: io::Error| RdmaError::Memlock {
            device: self.context.name().to_owned(),
            wanted: TRIAL_LEN,
            limit: match getrlimit(Resource::Memlock).current {
                Some(bytes) => format!("{bytes} bytes"),
                None => "none".to_owned(),
            },
            source,
        };
        let trial = Mapping::shared(TRIAL_LEN).map_err(|errno| memlock(errno.into()))?;
        let region = Arc::new(trial).region();
        Memory::new(&self.domain, &region, Access::Target).map_err(memlock)?;
        Ok(())
    }
}

/// The first device that is `at_home`, else the first usable one, else the error of the first.
fn choose_device<T>(
    opened: impl Iterator<Item = Result<T, RdmaError>>,
    at_home: impl Fn(&T) -> bool,
) -> Result<T, RdmaError> {
    let mut best = Err(RdmaError::NoDevice);
    for (place, device) in opened.enumerate() {
        match device {
            Ok(device) if at_home(&device) => return Ok(device),
            Ok(device) if best.is_err() => best = Ok(device),
            Err(error) if place == 0 => best = Err(error),
            _ => {}
        }
    }
    best
}

fn choose_port(ports: &[Port], wanted: Option<u8>) -> Result<Port, String> {
    let found = match wanted {
        Some(number) => ports.iter().find(|port| port.number == number),
        None => ports.iter().find(|port| port.is_active),
    };
    match (found, wanted) {
        (Some(port), _) if port.is_active && port.message_len_max >= MESSAGE_LEN_MAX => Ok(*port),
        (Some(port), _) => Err(format!("its port {} is not active", port.number)),
        (None, Some(number)) => Err(format!("it has {} ports, no port {number}", ports.len())),
        (None, None) => Err("none of its ports is active; is the link up?".to_owned()),
    }
}

/// See [`RdmaOptions::gid_index`].
fn choose_gid(
    gids: &[GidRow],
    port: &Port,
    wanted: Option<u8>,
    listen: IpAddr,
) -> Result<GidRow, String> {
    let here = || gids.iter().filter(|row| row.port == port.number);
    if let Some(index) = wanted {
        let found = here().find(|row| row.index == index).copied();
        return found.ok_or_else(|| format!("its port {} has no GID {index}", port.number));
    }
    let ipv4 = |row: &GidRow| ipv4_of(row.gid);
    let roce = |row: &&GidRow| row.kind == GidKind::RoceV2;
    let same = |row: &&GidRow| ipv4(row).map(IpAddr::V4) == Some(listen);
    let found = match port.link_layer {
        LinkLayer::InfiniBand => None,
        LinkLayer::Ethernet => here()
            .filter(roce)
            .find(same)
            .or_else(|| here().filter(roce).find(|row| ipv4(row).is_some()))
            .or_else(|| here().find(roce)),
    };
    let found = found.or_else(|| here().find(|row| row.index == 0));
    let found = found.or_else(|| here().next()).copied();
    found.ok_or_else(|| {
        format!(
            "its port {} has no GID: has its interface an address?",
            port.number
        )
    })
}

/// The IPv4 address that a GID maps, if it does.
fn ipv4_of(gid: [u8; 16]) -> Option<::core::net::Ipv4Addr> {
    ::core::net::Ipv6Addr::from(gid).to_ipv4_mapped()
}

fn choose_mtu(port: &Port, wanted: Option<u32>) -> Result<u32, String> {
    let Some(mtu) = wanted else {
        return Ok(port.mtu);
    };
    if !mtu.is_power_of_two() || !(256..=4096).contains(&mtu) {
        return Err(format!(
            "an MTU is 256, 512, 1024, 2048 or 4096 bytes, not {mtu}"
        ));
    }
    match mtu <= port.mtu {
        true => Ok(mtu),
        false => Err(format!(
            "its port has an MTU of {} bytes, not {mtu}",
            port.mtu
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(number: u8, is_active: bool, link_layer: LinkLayer) -> Port {
        Port {
            number,
            is_active,
            link_layer,
            lid: 1,
            mtu: 1024,
            message_len_max: 1 << 20,
        }
    }

    fn row(port: u8, index: u8, kind: GidKind, ip: &str) -> GidRow {
        let gid = match ip.parse::<IpAddr>().expect("an address") {
            IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
            IpAddr::V6(ip) => ip.octets(),
        };
        GidRow {
            port,
            index,
            gid,
            kind,
        }
    }

    #[test]
    fn the_device_of_the_listen_address_is_preferred() {
        let unfit = |name: &str| {
            Err(RdmaError::Unfit {
                device: name.to_owned(),
                problem: "off".to_owned(),
            })
        };
        let check = |opened: Vec<Result<u8, RdmaError>>, expected: &str| {
            let chosen = choose_device(opened.into_iter(), |device| *device == 7);
            let chosen = chosen.map_or_else(|error| error.to_string(), |it| it.to_string());
            assert!(chosen.contains(expected), "{chosen}, not {expected}");
        };
        check(vec![Ok(1), unfit("b"), Ok(7), Ok(2)], "7");
        check(vec![unfit("a"), Ok(1), Ok(2)], "1");
        check(vec![unfit("first"), unfit("b")], "first");
        check(vec![], &RdmaError::NoDevice.to_string());
    }

    #[test]
    fn the_first_active_port_is_chosen() {
        let ports = [1, 2, 3].map(|number| port(number, number > 1, LinkLayer::Ethernet));
        let chosen = |wanted| choose_port(&ports, wanted).map(|port| port.number);
        assert_eq!(chosen(None), Ok(2));
        assert_eq!(chosen(Some(3)), Ok(3));
        assert_eq!(chosen(Some(1)), Err("its port 1 is not active".into()));
        assert_eq!(chosen(Some(4)), Err("it has 3 ports, no port 4".into()));
        assert!(choose_port(&ports[..1], None).is_err());
    }

    #[test]
    fn the_gid_of_the_listen_address_is_preferred() {
        use GidKind::{InfiniBand, RoceV1, RoceV2};
        let table = [
            row(2, 0, RoceV2, "10.0.0.1"),
            row(1, 0, RoceV1, "fe80::1"),
            row(1, 1, RoceV2, "fe80::1"),
            row(1, 2, RoceV1, "10.0.0.1"),
            row(1, 3, RoceV2, "10.0.0.1"),
            row(1, 5, RoceV2, "10.0.0.2"),
        ];
        let ethernet = port(1, true, LinkLayer::Ethernet);
        let check = |table: &[GidRow], port: &Port, wanted, listen: &str, expected| {
            let listen = listen.parse().expect("an address");
            let chosen = choose_gid(table, port, wanted, listen).ok();
            assert_eq!(chosen.map(|row| row.index), expected, "{listen}");
        };
        check(&table, &ethernet, None, "10.0.0.2", Some(5));
        check(&table, &ethernet, None, "0.0.0.0", Some(3));
        check(&table, &ethernet, None, "10.0.0.9", Some(3));
        check(&table, &ethernet, None, "::", Some(3));
        check(&table, &ethernet, Some(2), "10.0.0.2", Some(2));
        check(&table, &ethernet, Some(4), "10.0.0.2", None);
        check(&table[..3], &ethernet, None, "10.0.0.1", Some(1));
        check(&table[..2], &ethernet, None, "10.0.0.1", Some(0));
        check(&table[..1], &ethernet, None, "10.0.0.1", None);
        let infiniband = port(1, true, LinkLayer::InfiniBand);
        let table = [
            row(1, 1, InfiniBand, "fe80::2"),
            row(1, 0, InfiniBand, "fe80::1"),
        ];
        check(&table, &infiniband, None, "10.0.0.1", Some(0));
    }

    #[test]
    fn the_mtu_is_at_most_the_ports() {
        let port = port(1, true, LinkLayer::Ethernet);
        assert_eq!(choose_mtu(&port, None), Ok(1024));
        assert_eq!(choose_mtu(&port, Some(512)), Ok(512));
        assert!(choose_mtu(&port, Some(2048)).is_err());
        assert!(choose_mtu(&port, Some(1000)).is_err());
    }
}
