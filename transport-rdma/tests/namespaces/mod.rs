//! Hosts as network namespaces on a bridge, which are removed when they are dropped.

use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Some hosts with one address each, which reach each other.
pub(crate) struct Network {
    name: String,
    hosts: usize,
}

impl Network {
    /// `None`, with a message why, where such a network cannot be created.
    pub(crate) fn new(hosts: usize) -> Option<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let root = std::fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0);
        if !root {
            eprintln!("skipped: only root makes network namespaces");
            return None;
        }
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("sp{}-{number}", std::process::id());
        let network = Self { name, hosts };
        let hub = network.namespace(None);
        if let Err(why) = ip(&["netns", "add", &hub]) {
            eprintln!("skipped: a network namespace cannot be made: {why}");
            return None;
        }
        network.build(&hub).expect("the network can be made");
        Some(network)
    }

    fn build(&self, hub: &str) -> Result<(), String> {
        ip(&["-n", hub, "link", "add", "bridge", "type", "bridge"])?;
        ip(&["-n", hub, "link", "set", "bridge", "up"])?;
        for host in 0..self.hosts {
            let (there, port) = (self.namespace(Some(host)), port(host));
            let address = format!("{}/24", self.address(host));
            ip(&["netns", "add", &there])?;
            ip(&[
                "-n", hub, "link", "add", &port, "type", "veth", "peer", "name", "net", "netns",
                &there,
            ])?;
            ip(&["-n", hub, "link", "set", &port, "master", "bridge", "up"])?;
            ip(&["-n", &there, "address", "add", &address, "dev", "net"])?;
            ip(&["-n", &there, "link", "set", "net", "up"])?;
            ip(&["-n", &there, "link", "set", "lo", "up"])?;
        }
        Ok(())
    }

    fn namespace(&self, host: Option<usize>) -> String {
        match host {
            Some(host) => format!("{}-{host}", self.name),
            None => format!("{}-hub", self.name),
        }
    }

    pub(crate) fn address(&self, host: usize) -> String {
        format!("10.77.0.{}", host + 1)
    }

    /// A program that will run on a host.
    pub(crate) fn command(&self, host: usize, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(Some(host)), program]);
        command
    }

    /// Disconnects a host from all others, or connects it again.
    pub(crate) fn set_reached(&self, host: usize, reached: bool) {
        let state = if reached { "up" } else { "down" };
        let hub = self.namespace(None);
        ip(&["-n", &hub, "link", "set", &port(host), state]).expect("the port is there");
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for host in (0..self.hosts).map(Some).chain([None]) {
            // What was not created does not exist.
            let _ = ip(&["netns", "del", &self.namespace(host)]);
        }
    }
}

fn port(host: usize) -> String {
    format!("port{host}")
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let done = Command::new("ip").args(arguments).output();
    let done = done.map_err(|error| format!("ip (iproute2): {error}"))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(format!(
            "ip {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&done.stderr).trim()
        )),
    }
}
