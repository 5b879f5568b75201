//! Hosts as network namespaces, each with a link to a bridge.
//!
//! ```text
//!   host 1  10.77.0.1  net ==== port1 --+
//!   host 2  10.77.0.2  net ==== port2 --+-- bridge        in a namespace of its own
//! ```

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use super::LinkDiscipline;
use super::namespace::Namespace;

/// The hosts. The kernel removes them when this process has ended, or this is dropped and no
/// process runs in them.
#[derive(Debug)]
pub struct Network {
    hub: Namespace,
    hosts: Vec<Namespace>,
}

/// Why there is no such network.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// EPERM.
    #[error("network namespaces take root: run it with sudo, or in a container with --privileged")]
    NotRoot,
    /// The kernel is built without them.
    #[error(
        "this kernel has no network namespaces: it takes one built with CONFIG_NET_NS, as those of \
         all distributions are"
    )]
    NoNamespaces,
    /// `ip` or `tc`.
    #[error("there is no program `{0}`: install iproute2 (Fedora: iproute, iproute-tc)")]
    NoProgram(&'static str),
    /// The kernel, or a module of it, is not there.
    #[error(
        "this kernel cannot delay or lose packets: it has no netem. `modprobe sch_netem` loads it, \
         if the modules are installed (Debian: linux-image-amd64, Fedora: kernel-modules-extra); \
         without --delay and --loss it is not needed"
    )]
    NoNetem,
    /// A command of `ip` or `tc` has failed.
    #[error("`{command}`: {said}")]
    Command {
        /// With its program.
        command: String,
        /// Its standard error.
        said: String,
    },
    /// Something else.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Network {
    /// A network without hosts, whose links can have these disciplines.
    ///
    /// # Errors
    /// The kernel cannot do it, or this process may not.
    pub fn new(links: &[LinkDiscipline]) -> Result<Self, NetworkError> {
        let hub = namespace()?;
        run(
            &hub,
            "ip",
            &[
                "link set lo up",
                "link add bridge type bridge",
                "link set bridge up",
            ],
        )?;
        if links.iter().any(LinkDiscipline::needs_netem) {
            run(&hub, "tc", &["qdisc add dev lo root netem limit 1"])?;
        }
        Ok(Self {
            hub,
            hosts: Vec::new(),
        })
    }

    /// Adds a host with this link.
    ///
    /// # Errors
    /// The same.
    pub fn add_host(&mut self, link: &LinkDiscipline) -> Result<(), NetworkError> {
        let host = namespace()?;
        let number = self.hosts.len();
        let (port, there) = (format!("port{}", number + 1), host.path());
        let links = [
            format!(
                "link add {port} type veth peer name {LINK} netns {}",
                there.display()
            ),
            format!("link set {port} master bridge up"),
        ];
        run(&self.hub, "ip", &links)?;
        let mut links = vec![
            "link set lo up".to_owned(),
            format!("address add {}/24 dev {LINK}", address(number)),
        ];
        if link.is_unsegmented {
            links.push(format!("link set {LINK} gso_max_segs 1"));
        }
        links.push(format!("link set {LINK} up"));
        run(&host, "ip", &links)?;
        if let Some(words) = &link.words {
            run(&host, "tc", &[format!("qdisc add dev {LINK} root {words}")])?;
        }
        self.hosts.push(host);
        Ok(())
    }

    /// The address of each host, and the path by which other processes enter it as long as this
    /// process lives.
    pub fn hosts(&self) -> Vec<(IpAddr, PathBuf)> {
        let hosts = self.hosts.iter().enumerate();
        hosts
            .map(|(number, host)| (address(number), host.path()))
            .collect()
    }
}

fn namespace() -> Result<Namespace, NetworkError> {
    Namespace::new().map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => NetworkError::NotRoot,
        io::ErrorKind::InvalidInput => NetworkError::NoNamespaces,
        _ => NetworkError::Io(error),
    })
}

fn address(host: usize) -> IpAddr {
    // There are few hosts.
    Ipv4Addr::new(10, 77, 0, host as u8 + 1).into()
}

/// Runs these commands of `ip` or `tc` in the namespace, one after the other.
fn run(
    namespace: &Namespace,
    program: &'static str,
    commands: &[impl AsRef<str> + Sync],
) -> Result<(), NetworkError> {
    let done = namespace.inside(|| batch(program, commands));
    let done = done.map_err(|error| not_run(program, error))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(failure(
            program,
            commands,
            &String::from_utf8_lossy(&done.stderr),
        )),
    }
}

fn not_run(program: &'static str, error: io::Error) -> NetworkError {
    match error.kind() {
        io::ErrorKind::NotFound => NetworkError::NoProgram(program),
        _ => NetworkError::Io(error),
    }
}

fn batch(program: &str, commands: &[impl AsRef<str>]) -> io::Result<Output> {
    let mut child = Command::new(program)
        .args(["-batch", "-"])
        .env("PATH", with_system_programs(std::env::var_os("PATH")))
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        let lines: Vec<&str> = commands.iter().map(AsRef::as_ref).collect();
        writeln!(stdin, "{}", lines.join("\n"))?;
    }
    child.wait_with_output()
}

/// Where distributions put `ip` and `tc`, which may not be in root's PATH.
fn with_system_programs(path: Option<OsString>) -> OsString {
    let mut path = path.unwrap_or_default();
    path.push(":/usr/sbin:/sbin:/usr/bin:/bin");
    path
}

/// What a program that has failed said, without the line that counts its input.
fn failure(program: &str, commands: &[impl AsRef<str>], said: &str) -> NetworkError {
    let lines: Vec<&str> = said.lines().map(str::trim).collect();
    let counted = lines
        .iter()
        .find_map(|line| line.strip_prefix("Command failed -:"));
    let number: Option<usize> = counted.and_then(|number| number.parse().ok());
    let command = number.and_then(|number| commands.get(number - 1));
    let said = lines
        .iter()
        .filter(|line| !line.is_empty() && !line.starts_with("Command failed"));
    let said = said.copied().collect::<Vec<_>>().join("; ");
    let is_netem = command.is_some_and(|it| it.as_ref().contains(" netem "));
    match is_netem && said.contains("qdisc kind is unknown") {
        true => NetworkError::NoNetem,
        false => NetworkError::Command {
            command: format!("{program} {}", command.map_or("-batch -", AsRef::as_ref)),
            said,
        },
    }
}

/// The interface of each host.
pub const LINK: &str = "net";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_missing_is_named() {
        let program = "no-such-program-of-iproute2";
        let error = batch(program, &["link"]).expect_err("there is none");
        let text = not_run(program, error).to_string();
        assert!(
            text.starts_with("there is no program `no-such-program"),
            "{text}"
        );
    }

    #[test]
    fn a_failure_names_the_command() {
        let check = |said: &str, expected: &str| {
            let commands = ["link set lo up", "qdisc add dev lo root netem limit 1"];
            let text = failure("tc", &commands, said).to_string();
            assert!(text.starts_with(expected), "{text}");
        };
        let unknown = "Error: Specified qdisc kind is unknown.\nCommand failed -:2\n";
        check(unknown, "this kernel cannot delay or lose packets");
        let denied = "RTNETLINK answers: Operation not permitted\nCommand failed -:1\n";
        check(
            denied,
            "`tc link set lo up`: RTNETLINK answers: Operation not permitted",
        );
        check("oh", "`tc -batch -`: oh");
        check("Command failed -:9", "`tc -batch -`: ");
    }
}
