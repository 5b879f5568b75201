//! RDMA devices as the kernel shows them (sysfs-class-infiniband in its ABI documentation), and
//! whether one can be used. Needs no library.

use std::net::{IpAddr, Ipv6Addr};

use serde::Serialize;

use super::machine::{Files, Limits};

/// Library directories of distributions.
const LIBRARIES: [&str; 4] = ["usr/lib", "usr/lib64", "usr/local/lib", "lib"];

/// Bytes that a station registers on trial.
pub(super) const TRIAL_BYTES: u64 = 64 << 20;

/// Entries of a GID table that are read at most.
const GIDS_MAX: usize = 256;

#[derive(Debug, Clone, Serialize)]
pub(super) struct Rdma {
    /// Whether this program is built with RDMA.
    pub(super) built: bool,
    /// Whether libibverbs is installed.
    pub(super) library: bool,
    /// Installed drivers of libibverbs, for example `mlx5`.
    pub(super) providers: Vec<String>,
    /// Number of device files in /dev/infiniband.
    pub(super) device_files: usize,
    pub(super) devices: Vec<Device>,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Device {
    pub(super) name: String,
    pub(super) ports: Vec<Port>,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Port {
    pub(super) number: u32,
    /// For example `ACTIVE`.
    pub(super) state: String,
    /// `Ethernet`, or `InfiniBand`.
    pub(super) link_layer: String,
    /// For example `100 Gb/sec (4X EDR)`.
    pub(super) rate: String,
    /// Largest payload of a packet, from the network interface; the kernel does not show that of
    /// InfiniBand.
    pub(super) mtu: Option<u32>,
    pub(super) gids: Vec<Gid>,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Gid {
    pub(super) index: u32,
    pub(super) gid: Ipv6Addr,
    /// `RoCE v2`, or `IB/RoCE v1`.
    pub(super) kind: String,
    pub(super) interface: Option<String>,
}

/// The port and GID that a station uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Choice {
    pub(super) device: String,
    pub(super) port: u32,
    pub(super) gid_index: u32,
    pub(super) gid: Option<Ipv6Addr>,
}

/// The reason why RDMA is not used, and advice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Obstacle {
    pub(super) what: String,
    pub(super) advice: String,
}

impl Rdma {
    pub(super) fn read(files: &Files<'_>) -> Self {
        let providers = files.names("etc/libibverbs.d").into_iter();
        let providers = providers.filter_map(|name| Some(name.strip_suffix(".driver")?.to_owned()));
        let uverbs = files.names("dev/infiniband").into_iter();
        let devices = files.names("sys/class/infiniband").into_iter();
        Self {
            built: cfg!(feature = "verbs"),
            library: has_library(files),
            providers: providers.collect(),
            device_files: uverbs.filter(|name| name.starts_with("uverbs")).count(),
            devices: devices.map(|name| Device::read(files, name)).collect(),
        }
    }

    /// The port and GID that a station uses which listens at `listen`.
    pub(super) fn choice(&self, limits: &Limits, listen: IpAddr) -> Result<Choice, Obstacle> {
        let fail = |what: String, advice: &str| {
            let advice = advice.to_owned();
            Err(Obstacle { what, advice })
        };
        if !self.built {
            return fail(
                "this program is built without RDMA".to_owned(),
                "build with --features verbs, which needs libibverbs-dev, cmake and libclang-dev",
            );
        }
        if self.devices.is_empty() {
            return fail(
                "this machine has no RDMA device".to_owned(),
                "if it should have one: load its driver (modprobe mlx5_ib, or rdma_rxe and \
                 `rdma link add rxe0 type rxe netdev eth0` for one in software)",
            );
        }
        if !self.library || self.providers.is_empty() {
            return fail(
                "libibverbs or its drivers are not installed".to_owned(),
                "apt-get install libibverbs1 ibverbs-providers",
            );
        }
        if self.device_files == 0 {
            return fail(
                "there is no /dev/infiniband/uverbs*".to_owned(),
                "modprobe ib_uverbs; in a container, pass it the devices of /dev/infiniband",
            );
        }
        let active = |port: &&Port| port.state == "ACTIVE";
        let ports = || {
            let ports = self.devices.iter();
            ports.filter_map(|device| Some((device, device.ports.iter().find(active)?)))
        };
        let mut at_home = ports().filter(|(_, port)| port.has(listen));
        let Some((device, port)) = at_home.next().or_else(|| ports().next()) else {
            let names: Vec<_> = self.devices.iter().map(|it| it.name.as_str()).collect();
            return fail(
                format!("no port of {} is active", names.join(", ")),
                "connect a cable, bring its network interface up, or start a subnet manager \
                 (InfiniBand)",
            );
        };
        if !limits.may_pin_any && !limits.memlock_bytes.allows(TRIAL_BYTES) {
            return fail(
                format!(
                    "this process may pin only {} bytes of memory",
                    limits.memlock_bytes.0.unwrap_or(0)
                ),
                "ulimit -l unlimited; for good: `* - memlock unlimited` in \
                 /etc/security/limits.d/, or LimitMEMLOCK=infinity of a systemd unit",
            );
        }
        let gid = port.gid_for(listen);
        if gid.is_none() && port.link_layer == "Ethernet" {
            return fail(
                format!("port {} of {} has no GID", port.number, device.name),
                "give its network interface an address",
            );
        }
        Ok(Choice {
            device: device.name.clone(),
            port: port.number,
            gid_index: gid.map_or(0, |gid| gid.index),
            gid: gid.map(|gid| gid.gid),
        })
    }
}

impl Device {
    fn read(files: &Files<'_>, name: String) -> Self {
        let ports = format!("sys/class/infiniband/{name}/ports");
        let numbers = files.names(&ports).into_iter();
        let numbers = numbers.filter_map(|number| number.parse().ok());
        let ports = numbers.map(|number| Port::read(files, &ports, number));
        Self {
            ports: ports.collect(),
            name,
        }
    }
}

impl Port {
    fn read(files: &Files<'_>, ports: &str, number: u32) -> Self {
        let text = |name: &str| files.text(&format!("{ports}/{number}/{name}"));
        let gids = files.names(&format!("{ports}/{number}/gids")).into_iter();
        let gids = gids.take(GIDS_MAX).filter_map(|index| {
            let gid: Ipv6Addr = text(&format!("gids/{index}"))?.parse().ok()?;
            (!gid.is_unspecified()).then(|| Gid {
                index: index.parse().unwrap_or(0),
                gid,
                kind: text(&format!("gid_attrs/types/{index}")).unwrap_or_default(),
                interface: text(&format!("gid_attrs/ndevs/{index}")),
            })
        });
        let gids: Vec<Gid> = gids.collect();
        let interface = gids.iter().find_map(|gid| gid.interface.as_deref());
        let mtu = interface.and_then(|it| files.text(&format!("sys/class/net/{it}/mtu")));
        Self {
            number,
            // For example `4: ACTIVE`.
            state: text("state")
                .and_then(|state| Some(state.split_once(": ")?.1.to_owned()))
                .unwrap_or_default(),
            link_layer: text("link_layer").unwrap_or_default(),
            rate: text("rate").unwrap_or_default(),
            mtu: mtu.and_then(|mtu| rdma_mtu(mtu.parse().ok()?)),
            gids,
        }
    }

    /// Whether it has a RoCE v2 GID of this address.
    fn has(&self, address: IpAddr) -> bool {
        let mut v2 = self.gids.iter().filter(|gid| gid.kind == "RoCE v2");
        v2.any(|gid| gid.gid.to_ipv4_mapped().map(IpAddr::V4) == Some(address))
    }

    /// In this order: the RoCE v2 GID of the IPv4 address `listen`, the first RoCE v2 GID of an
    /// IPv4 address, the first RoCE v2 GID, the first GID.
    fn gid_for(&self, listen: IpAddr) -> Option<&Gid> {
        let v2 = || self.gids.iter().filter(|gid| gid.kind == "RoCE v2");
        let v4 = || v2().filter_map(|gid| Some((gid, gid.gid.to_ipv4_mapped()?)));
        let mut alike = v4().filter(|(_, address)| IpAddr::V4(*address) == listen);
        let found = alike.next().or_else(|| v4().next()).map(|(gid, _)| gid);
        found.or_else(|| v2().next()).or_else(|| self.gids.first())
    }
}

/// The largest RDMA MTU (a power of two) that fits into the network's MTU with the headers of
/// RoCE v2.
fn rdma_mtu(network: u32) -> Option<u32> {
    let room = network.checked_sub(80)?;
    [4096, 2048, 1024, 512, 256]
        .into_iter()
        .find(|&mtu| mtu <= room)
}

fn has_library(files: &Files<'_>) -> bool {
    let there = |directory: &str| files.path(&format!("{directory}/libibverbs.so.1")).exists();
    LIBRARIES.iter().any(|&directory| {
        // Debian has them one level deeper, in usr/lib/x86_64-linux-gnu.
        let mut deeper = files.names(directory).into_iter();
        there(directory)
            || deeper.any(|name| name.contains("-linux-") && there(&format!("{directory}/{name}")))
    })
}
