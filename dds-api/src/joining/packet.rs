//! The packets between newcomers and members.

use std::collections::BTreeSet;

use spindle_dds_core::membership::{DeliveredCounts, Member, MemberId, View};
use spindle_dds_transport::shm::MemberEntry;

use crate::discovery::PROTOCOL;
use crate::error::Error;
use crate::history::{
    HISTORY_KINDS, HistoryPacket, LOG_KINDS, LOG_NOTICE_KIND, LogMessage, LogNotice,
};

/// Bytes of a view in one packet.
const PART_LEN: usize = 512 << 10;

/// A packet between a newcomer and a member, or two newcomers. The first four bytes (the protocol
/// version), and the format of a refusal, are the same in all versions.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Packet {
    /// A newcomer asks to be let in.
    Ask(Ask),
    /// A part of a view that the newcomer may come to be in: it prepares it, and answers.
    Prepare {
        /// Number of the preparation among those of the view.
        number: u64,
        last: bool,
        part: Vec<u8>,
    },
    /// The newcomer has prepared a view, or lacks something for it.
    Prepared {
        /// Number of the view.
        view: u64,
        /// Number of the preparation.
        number: u64,
        /// What it lacks.
        lack: Option<String>,
    },
    /// A part of the view that has the newcomer.
    Welcome {
        /// Of the decision that made the view.
        digest: u64,
        /// Number of the preparation by which the newcomer has prepared it.
        preparation: u64,
        last: bool,
        part: Vec<u8>,
    },
    /// The newcomer waits for its turn.
    Waits {
        /// So many newcomers have asked the same member before it.
        ahead: u32,
    },
    /// What the group has delivered of the member that the newcomer was, before the view that has it.
    Delivered(DeliveredCounts),
    /// A request is refused, and why.
    Refused {
        /// A member lacks something for it, which it may have another time.
        is_lack: bool,
        reason: String,
    },
    /// The participant that was asked is in no group either.
    NotYet(Answer),
    /// A member leaves the group, as it lacks something for the view, and why.
    GivesUp(String),
    /// A monitor asks for the participant's figures.
    StatusRequest,
    /// A part of the answer: [`ParticipantFigures`](crate::monitor::ParticipantFigures).
    Status { last: bool, part: Vec<u8> },
    /// Members tell each other of the transfer of history.
    History(HistoryPacket),
    /// Logs of a topic tell each other of their records.
    Log(LogMessage),
    /// A member tells whether one of its logs is written.
    LogNotice(LogNotice),
}

/// A newcomer's question.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) member: Member,
    /// It founds the domain if the contacts wait for it.
    pub(crate) founds: bool,
    /// The member that it was before it lost the group.
    pub(crate) was: Option<MemberId>,
    /// Recorded members of other hosts: does the receiver know that they are dead?
    pub(crate) missing: Vec<MemberEntry>,
}

/// A newcomer's answer to another newcomer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// It waits for the asking newcomer to found the domain.
    pub(crate) promises: bool,
    /// It is in no view, and enters none by what it asked for before.
    pub(crate) is_out: bool,
    /// The missing members that are dead.
    pub(crate) dead: BTreeSet<u128>,
    /// The reason, for users.
    pub(crate) reason: String,
}

impl Packet {
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = PROTOCOL.to_le_bytes().to_vec();
        match self {
            Self::Ask(ask) => {
                out.push(1);
                out.push(u8::from(ask.founds) | u8::from(ask.was.is_some()) << 1);
                out.extend(ask.was.iter().flat_map(|was| was.0.to_le_bytes()));
                out.extend((ask.missing.len() as u16).to_le_bytes());
                for entry in &ask.missing {
                    out.extend(entry.id.to_le_bytes());
                    out.extend(entry.host.to_le_bytes());
                    out.extend(entry.pid.to_le_bytes());
                    out.extend(entry.start.to_le_bytes());
                    out.extend((entry.address.len() as u16).to_le_bytes());
                    out.extend(&entry.address);
                }
                // Sent as a view of one member: it is checked like any view.
                if let Ok(alone) = View::first(ask.member.clone()) {
                    out.extend(alone.to_bytes());
                }
            }
            Self::Prepare { number, last, part } => {
                out.push(7);
                out.extend(number.to_le_bytes());
                out.push(u8::from(*last));
                out.extend(part);
            }
            Self::Prepared { view, number, lack } => {
                out.push(8);
                out.extend(view.to_le_bytes());
                out.extend(number.to_le_bytes());
                out.push(u8::from(lack.is_some()));
                out.extend(lack.iter().flat_map(|lack| lack.as_bytes()));
            }
            Self::Welcome {
                digest,
                preparation,
                last,
                part,
            } => {
                out.push(2);
                out.extend(digest.to_le_bytes());
                out.extend(preparation.to_le_bytes());
                out.push(u8::from(*last));
                out.extend(part);
            }
            Self::Waits { ahead } => {
                out.push(11);
                out.extend(ahead.to_le_bytes());
            }
            Self::Refused { is_lack, reason } => {
                out.extend([3, u8::from(*is_lack)]);
                out.extend(reason.as_bytes());
            }
            Self::Delivered(counts) => {
                out.push(10);
                out.extend(counts.to_bytes());
            }
            Self::GivesUp(reason) => {
                out.push(9);
                out.extend(reason.as_bytes());
            }
            Self::NotYet(answer) => {
                out.push(4);
                out.push(u8::from(answer.promises) | u8::from(answer.is_out) << 1);
                out.extend((answer.dead.len() as u16).to_le_bytes());
                let dead = answer.dead.iter();
                dead.for_each(|id| out.extend(id.to_le_bytes()));
                out.extend(answer.reason.as_bytes());
            }
            Self::StatusRequest => out.push(5),
            Self::Status { last, part } => {
                out.extend([6, u8::from(*last)]);
                out.extend(part);
            }
            Self::History(history) => history.write(&mut out),
            Self::Log(log) => log.write(&mut out),
            Self::LogNotice(notice) => notice.write(&mut out),
        }
        out
    }

    /// A refusal with what is wrong.
    pub(crate) fn refused(error: Error) -> Vec<u8> {
        let (is_lack, reason) = match error {
            Error::OutOfResources(lack) => (true, lack),
            error => (false, error.to_string()),
        };
        Self::Refused { is_lack, reason }.write()
    }

    /// Figures in as many packets as they take.
    pub(crate) fn status(bytes: &[u8]) -> Vec<Vec<u8>> {
        let count = bytes.len().div_ceil(PART_LEN);
        let parts = bytes.chunks(PART_LEN).zip(1..);
        let packet = |(part, at): (&[u8], usize)| {
            let (last, part) = (at == count, part.to_vec());
            Self::Status { last, part }.write()
        };
        parts.map(packet).collect()
    }

    /// A view in as many packets as it takes.
    pub(crate) fn welcome(view: &View, digest: u64, preparation: u64) -> Vec<Vec<u8>> {
        in_parts(view, |last, part| Self::Welcome {
            digest,
            preparation,
            last,
            part,
        })
    }

    /// A view that is to be prepared, in as many packets as it takes.
    pub(crate) fn prepare(view: &View, number: u64) -> Vec<Vec<u8>> {
        in_parts(view, |last, part| Self::Prepare { number, last, part })
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self, String> {
        let nonsense = || "it said what makes no sense".to_owned();
        let (version, rest) = bytes.split_first_chunk().ok_or_else(nonsense)?;
        let version = u32::from_le_bytes(*version);
        let (kind, rest) = rest.split_first().ok_or_else(nonsense)?;
        if version != PROTOCOL && *kind != 3 {
            return Err(format!(
                "process {} speaks version {PROTOCOL} of the protocol, the other one {version}: \
                 all participants of a domain are built with one version of Spindle DDS",
                std::process::id()
            ));
        }
        let packet = match kind {
            1 => read_ask(rest).map(Self::Ask),
            2 => read_welcome(rest),
            3 => read_refused(rest),
            4 => read_answer(rest).map(Self::NotYet),
            5 => rest.is_empty().then_some(Self::StatusRequest),
            9 => Some(Self::GivesUp(String::from_utf8_lossy(rest).into_owned())),
            10 => DeliveredCounts::from_bytes(rest).map(Self::Delivered),
            7 => read_prepare(rest),
            8 => read_prepared(rest),
            6 => read_told(rest),
            11 => read_waits(rest),
            kind if HISTORY_KINDS.contains(kind) => {
                HistoryPacket::read(*kind, rest).map(Self::History)
            }
            kind if LOG_KINDS.contains(kind) => LogMessage::read(*kind, rest).map(Self::Log),
            &LOG_NOTICE_KIND => LogNotice::read(rest).map(Self::LogNotice),
            _ => None,
        };
        packet.ok_or_else(nonsense)
    }
}

/// A code that is not known here is no lack.
fn read_refused(rest: &[u8]) -> Option<Packet> {
    let (code, reason) = rest.split_first()?;
    Some(Packet::Refused {
        is_lack: *code == 1,
        reason: String::from_utf8_lossy(reason).into_owned(),
    })
}

fn read_told(mut rest: &[u8]) -> Option<Packet> {
    let last = take_flags(&mut rest, 1)? == 1;
    let part = rest.to_vec();
    Some(Packet::Status { last, part })
}

fn read_ask(mut rest: &[u8]) -> Option<Ask> {
    let flags = take_flags(&mut rest, 3)?;
    let was = match flags & 2 {
        0 => None,
        _ => Some(MemberId(u128::from_le_bytes(take(&mut rest)?))),
    };
    let count = u16::from_le_bytes(take(&mut rest)?);
    let mut missing = Vec::new();
    for _ in 0..count {
        let id = u128::from_le_bytes(take(&mut rest)?);
        let host = u128::from_le_bytes(take(&mut rest)?);
        let pid = u32::from_le_bytes(take(&mut rest)?);
        let start = u64::from_le_bytes(take(&mut rest)?);
        let len = u16::from_le_bytes(take(&mut rest)?);
        let (address, after) = rest.split_at_checked(usize::from(len))?;
        rest = after;
        missing.push(MemberEntry {
            id,
            host,
            pid,
            start,
            address: address.to_vec(),
        });
    }
    let [member] = <[Member; 1]>::try_from(View::from_bytes(rest).ok()?.members).ok()?;
    Some(Ask {
        member,
        founds: flags & 1 != 0,
        was,
        missing,
    })
}

fn in_parts(view: &View, packet: impl Fn(bool, Vec<u8>) -> Packet) -> Vec<Vec<u8>> {
    let bytes = view.to_bytes();
    let count = bytes.len().div_ceil(PART_LEN);
    let parts = bytes.chunks(PART_LEN).zip(1..);
    let packet = |(part, at): (&[u8], usize)| packet(at == count, part.to_vec()).write();
    parts.map(packet).collect()
}

fn read_prepare(mut rest: &[u8]) -> Option<Packet> {
    let number = u64::from_le_bytes(take(&mut rest)?);
    let last = take_flags(&mut rest, 1)? == 1;
    let part = rest.to_vec();
    Some(Packet::Prepare { number, last, part })
}

fn read_prepared(mut rest: &[u8]) -> Option<Packet> {
    let view = u64::from_le_bytes(take(&mut rest)?);
    let number = u64::from_le_bytes(take(&mut rest)?);
    let lacks = take_flags(&mut rest, 1)? == 1;
    if !lacks && !rest.is_empty() {
        return None;
    }
    let lack = lacks.then(|| String::from_utf8_lossy(rest).into_owned());
    Some(Packet::Prepared { view, number, lack })
}

fn read_welcome(mut rest: &[u8]) -> Option<Packet> {
    let digest = u64::from_le_bytes(take(&mut rest)?);
    let preparation = u64::from_le_bytes(take(&mut rest)?);
    let last = take_flags(&mut rest, 1)? == 1;
    let part = rest.to_vec();
    Some(Packet::Welcome {
        digest,
        preparation,
        last,
        part,
    })
}

fn read_waits(mut rest: &[u8]) -> Option<Packet> {
    let ahead = u32::from_le_bytes(take(&mut rest)?);
    rest.is_empty().then_some(Packet::Waits { ahead })
}

fn read_answer(mut rest: &[u8]) -> Option<Answer> {
    let flags = take_flags(&mut rest, 3)?;
    let count = u16::from_le_bytes(take(&mut rest)?);
    let mut dead = BTreeSet::new();
    for _ in 0..count {
        dead.insert(u128::from_le_bytes(take(&mut rest)?));
    }
    Some(Answer {
        promises: flags & 1 != 0,
        is_out: flags & 2 != 0,
        dead,
        reason: String::from_utf8_lossy(rest).into_owned(),
    })
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*taken)
}

/// One byte, in which no other bits are set.
fn take_flags(rest: &mut &[u8], known: u8) -> Option<u8> {
    let [flags] = take(rest)?;
    (flags & !known == 0).then_some(flags)
}

#[cfg(test)]
mod tests {
    use spindle_dds_core::membership::HostId;
    use spindle_dds_core::storage::Cursor;
    use spindle_dds_core::{SubgroupId, TopicKey};

    use super::*;
    use crate::history::{HistoryContent, LogTrouble, TransferName};

    fn examples() -> [Packet; 20] {
        let name = TransferName {
            endpoint: [3; 16],
            view: 1 << 40,
        };
        let history = |content| Packet::History(HistoryPacket { name, content });
        let sequences = [([1; 16], 5), ([9; 16], u64::MAX)];
        let from = Cursor {
            position: 77,
            writer: [1; 16],
            sequence: 4,
        };
        let member = Member {
            id: MemberId(7),
            host: HostId(1 << 100),
            address: vec![1; 40],
            info: b"what it says of itself".to_vec(),
            updates: 0,
            endpoints: Default::default(),
            notes: Default::default(),
        };
        let entry = |id| MemberEntry {
            id,
            host: 3,
            pid: 4,
            start: u64::MAX,
            address: vec![9; id as usize * 10],
        };
        [
            Packet::Ask(Ask {
                member,
                founds: true,
                was: Some(MemberId(1 << 90)),
                missing: (0..3).map(entry).collect(),
            }),
            Packet::Prepare {
                number: 3,
                last: false,
                part: vec![4, 5],
            },
            Packet::Prepared {
                view: 9,
                number: 3,
                lack: None,
            },
            Packet::Prepared {
                view: 9,
                number: 3,
                lack: Some("memory".to_owned()),
            },
            Packet::Welcome {
                digest: u64::MAX,
                preparation: 3,
                last: true,
                part: vec![1, 2, 3],
            },
            Packet::Waits { ahead: 0x0102_0304 },
            Packet::Delivered(DeliveredCounts::from_bytes(&[7; 40]).expect("two")),
            Packet::Refused {
                is_lack: true,
                reason: "no room".to_owned(),
            },
            Packet::Refused {
                is_lack: false,
                reason: "another version".to_owned(),
            },
            Packet::GivesUp("no memory".to_owned()),
            Packet::NotYet(Answer {
                promises: true,
                is_out: false,
                dead: [5, u128::MAX].into(),
                reason: "it waits".to_owned(),
            }),
            Packet::StatusRequest,
            Packet::Status {
                last: false,
                part: b"{}".to_vec(),
            },
            history(HistoryContent::Ask {
                parts: 2,
                from: Some(from),
                after: sequences.into(),
            }),
            history(HistoryContent::More { grants: true }),
            history(HistoryContent::Part(vec![1, 2, 3])),
            history(HistoryContent::End(sequences.into())),
            history(HistoryContent::Unknown),
            Packet::LogNotice(LogNotice {
                topic: TopicKey(1 << 77),
                trouble: None,
            }),
            Packet::LogNotice(LogNotice {
                topic: TopicKey(3),
                trouble: Some(LogTrouble {
                    subgroup: SubgroupId(9),
                    holds: true,
                    text: "the log is full".to_owned(),
                }),
            }),
        ]
    }

    #[test]
    fn a_packet_is_read_as_it_was_written_and_no_part_of_it_is_taken_for_the_whole() {
        for packet in examples() {
            let bytes = packet.write();
            assert_eq!(Packet::read(&bytes).as_ref(), Ok(&packet));
            for end in 0..bytes.len() {
                assert_ne!(Packet::read(&bytes[..end]).as_ref(), Ok(&packet), "{end}");
            }
        }
    }

    /// Counts without a pattern, and packets of all kinds whose bytes have been changed.
    #[test]
    fn any_bytes_are_read_or_refused() {
        let mut number: u64 = 7;
        let mut draw = |end: usize| {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(9);
            (number >> 33) as usize % end
        };
        for _ in 0..200 {
            for packet in examples() {
                let mut bytes = packet.write();
                for _ in 0..=draw(4) {
                    let at = 4 + draw(bytes.len() - 4);
                    bytes[at] = draw(256) as u8;
                }
                bytes.truncate(5 + draw(bytes.len()));
                if let Ok(Packet::History(read)) = Packet::read(&bytes) {
                    assert_eq!(Packet::History(read).write().len(), bytes.len());
                }
            }
        }
    }

    #[test]
    fn packets_of_other_versions_are_refused_and_their_refusals_understood() {
        for packet in examples() {
            let mut bytes = packet.write();
            bytes[0] ^= 1;
            match (packet, Packet::read(&bytes)) {
                (said @ Packet::Refused { .. }, Ok(read)) => assert_eq!(said, read),
                (_, Err(why)) => assert!(why.contains("version"), "{why}"),
                (said, read) => panic!("{said:?} is read as {read:?}"),
            }
        }
    }
}
