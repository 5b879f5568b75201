//! Findings about RDMA, and about the contacts.

use spindle_dds_transport::hybrid::CallFailureCause;

use super::super::contacts::{ContactPath, ContactProblem, ProblemCause};
use super::super::options::Requirement;
use super::super::rdma::{Obstacle, Port};
use super::{Finding, Found, error, ok, warning};

impl Found<'_> {
    pub(super) fn devices(&self) -> Vec<Finding> {
        let devices = self.machine.rdma.devices.iter();
        let ports = devices.flat_map(|device| device.ports.iter().map(move |port| (device, port)));
        let findings = ports.map(|(device, port)| {
            let what = format!("{} port {}: {}", device.name, port.number, describe(port));
            match port.state.as_str() {
                "ACTIVE" => ok("rdma-port", what),
                _ => warning("rdma-port", what, "not usable in this state"),
            }
        });
        findings.collect()
    }

    pub(super) fn rdma(&self) -> Finding {
        let check = "rdma";
        let required = self.require.contains(&Requirement::Rdma);
        match self.rdma {
            Ok(choice) => ok(check, format!("is used: {choice}")),
            Err(Obstacle {
                what,
                advice: words,
            }) if required => error(check, format!("required, but {what}"), words),
            // A device exists but is not used.
            Err(Obstacle {
                what,
                advice: words,
            }) if !self.machine.rdma.devices.is_empty() => {
                warning(check, format!("is not used: {what}"), words)
            }
            Err(Obstacle { what, .. }) => ok(check, format!("is not used: {what}")),
        }
    }

    pub(super) fn contacts(&self) -> Vec<Finding> {
        let check = "contact";
        let required = self.require.contains(&Requirement::Contacts);
        let fail = |what: String, words: &str| match required {
            true => error(check, what, words),
            false => warning(check, what, words),
        };
        let contacts = match self.contacts {
            Ok(contacts) => contacts,
            Err(problem) => {
                return vec![fail(
                    format!("contacts cannot be called: {problem}"),
                    "correct it, and run this command again",
                )];
            }
        };
        let findings = contacts.iter().map(|one| {
            let contact = &one.contact;
            match (one.path, &one.problem) {
                (Some(ContactPath::Shm), _) => ok(
                    check,
                    format!("{contact} answers from this host, over shared memory"),
                ),
                (Some(ContactPath::Tcp), _) => ok(
                    check,
                    match one.encrypted {
                        true => format!("{contact} answers from another host, over TCP, encrypted"),
                        false => format!(
                            "{contact} answers from another host, over TCP, which is not encrypted"
                        ),
                    },
                ),
                (Some(ContactPath::Rdma), _) => ok(
                    check,
                    format!(
                        "{contact} answers from another host, over RDMA, which is not encrypted"
                    ),
                ),
                (None, Some(ContactProblem { text, cause })) => {
                    fail(format!("{contact}: {text}"), advice_for(*cause))
                }
                (None, None) => fail(format!("{contact}: unknown"), ADVICE_OTHER),
            }
        });
        findings.collect()
    }
}

/// Advice for a problem with a contact.
fn advice_for(cause: ProblemCause) -> &'static str {
    let ProblemCause::Call(cause) = cause else {
        return "check the name, /etc/hosts and the resolver";
    };
    match cause {
        CallFailureCause::Secret => {
            "give all participants of a domain the same spindle.secret_file"
        }
        CallFailureCause::Encryption => {
            "give all participants of a domain the same spindle.encryption"
        }
        CallFailureCause::Version => "run one version of Spindle DDS on all hosts",
        CallFailureCause::Domain => {
            "a participant of another domain listens there: use another port"
        }
        CallFailureCause::NoRoute => "check the network: there is no route to it",
        CallFailureCause::NotListening => {
            "no program listens there: is the participant running, with this spindle.listen?"
        }
        _ => ADVICE_OTHER,
    }
}

const ADVICE_OTHER: &str =
    "is the participant running, with this spindle.listen, and does a firewall allow TCP?";

fn describe(port: &Port) -> String {
    let mtu = port.mtu.map_or(String::new(), |mtu| format!(", MTU {mtu}"));
    let gids = port.gids.iter().map(|gid| {
        let (index, kind, gid) = (gid.index, &gid.kind, gid.gid);
        format!("{index} {gid} ({kind})")
    });
    let gids: Vec<_> = gids.collect();
    let (state, layer, rate) = (&port.state, &port.link_layer, &port.rate);
    let gids = match gids.is_empty() {
        true => "none".to_owned(),
        false => gids.join(", "),
    };
    format!("{state}, {layer}, {rate}{mtu}, GIDs: {gids}")
}
