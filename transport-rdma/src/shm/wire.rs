//! What members say to each other while they join.
//!
//! Little-endian, one message a packet. All of it comes from another process:
//! lengths are checked against what is there, and descriptors against what they
//! should be.

use std::os::fd::OwnedFd;

use super::descriptor;
use super::doorbell::{Bell, DoorbellKind};
use super::socket::{PACKET_LEN_MAX, Packet};
use crate::peers::{MEMBERS_MAX, Rank};

/// Longest announcement.
pub const ANNOUNCEMENT_LEN_MAX: usize = 64 * 1024;

const _: () = assert!(ANNOUNCEMENT_LEN_MAX + 64 <= PACKET_LEN_MAX);

/// First bytes of every message: name and version of the join.
const MAGIC: [u8; 4] = *b"SPJ1";

/// A message.
#[derive(Debug)]
pub(super) enum Message {
    /// Member to founder: here I am. With my pidfd and event descriptor.
    Hello {
        nonce: u64,
        size: u32,
        doorbell: DoorbellKind,
        announcement: Vec<u8>,
    },
    /// Founder to member: you are `you`, and this is one of the group. With
    /// that one's descriptors.
    Member {
        group: u64,
        you: Rank,
        rank: Rank,
        pid: u32,
        doorbell: DoorbellKind,
        announcement: Vec<u8>,
    },
    /// Both ways: the row of a member. With its memory file.
    Row { rank: Rank, len: u64 },
    /// Member to founder: I have mapped all rows, and need nothing more.
    Mapped,
    /// Founder to member: the group is formed.
    Formed,
    /// Both ways: no, and why.
    Refused { reason: String },
}

impl Message {
    pub(super) fn write(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        match self {
            Self::Hello {
                nonce,
                size,
                doorbell,
                announcement,
            } => {
                out.push(1);
                out.extend(nonce.to_le_bytes());
                out.extend(size.to_le_bytes());
                out.push(doorbell_code(*doorbell));
                out.extend(announcement);
            }
            Self::Member {
                group,
                you,
                rank,
                pid,
                doorbell,
                announcement,
            } => {
                out.push(2);
                out.extend(group.to_le_bytes());
                out.extend(you.0.to_le_bytes());
                out.extend(rank.0.to_le_bytes());
                out.extend(pid.to_le_bytes());
                out.push(doorbell_code(*doorbell));
                out.extend(announcement);
            }
            Self::Row { rank, len } => {
                out.push(3);
                out.extend(rank.0.to_le_bytes());
                out.extend(len.to_le_bytes());
            }
            Self::Mapped => out.push(4),
            Self::Formed => out.push(5),
            Self::Refused { reason } => {
                out.push(6);
                out.extend(reason.as_bytes());
            }
        }
        out
    }

    /// The message, if the bytes are one and nothing else.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let mut input = Input(bytes.strip_prefix(&MAGIC)?);
        let message = match input.u8()? {
            1 => Self::Hello {
                nonce: input.u64()?,
                size: input.u32()?,
                doorbell: input.doorbell()?,
                announcement: input.rest(),
            },
            2 => Self::Member {
                group: input.u64()?,
                you: input.rank()?,
                rank: input.rank()?,
                pid: input.u32()?,
                doorbell: input.doorbell()?,
                announcement: input.rest(),
            },
            3 => Self::Row {
                rank: input.rank()?,
                len: input.u64()?,
            },
            4 => Self::Mapped,
            5 => Self::Formed,
            6 => Self::Refused {
                reason: String::from_utf8_lossy(&input.rest()).into_owned(),
            },
            _ => return None,
        };
        input.0.is_empty().then_some(message)
    }
}

fn doorbell_code(kind: DoorbellKind) -> u8 {
    match kind {
        DoorbellKind::Futex => 0,
        DoorbellKind::Event => 1,
    }
}

/// Bytes that are left to read.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take().map(u8::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn rank(&mut self) -> Option<Rank> {
        let rank = Rank(self.take().map(u16::from_le_bytes)?);
        (rank.index() < MEMBERS_MAX).then_some(rank)
    }

    fn doorbell(&mut self) -> Option<DoorbellKind> {
        match self.u8()? {
            0 => Some(DoorbellKind::Futex),
            1 => Some(DoorbellKind::Event),
            _ => None,
        }
    }

    fn rest(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.0).to_vec()
    }
}

/// A member's descriptors: the pidfd of process `pid`, and an event descriptor
/// that never blocks whoever writes to it.
pub(super) fn check_descriptors(
    packet: &mut Packet,
    pid: u32,
    kind: DoorbellKind,
) -> Option<(OwnedFd, Bell)> {
    let event = packet.fds.pop()?;
    let lifeline = packet.fds.pop()?;
    let good = packet.fds.is_empty()
        && descriptor::pid_of(&lifeline) == Some(pid)
        && descriptor::is_event(&event);
    good.then_some((lifeline, Bell { kind, event }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_read_as_they_were_written() {
        let messages = [
            Message::Hello {
                nonce: 1,
                size: 2,
                doorbell: DoorbellKind::Event,
                announcement: b"abc".to_vec(),
            },
            Message::Member {
                group: 9,
                you: Rank(1),
                rank: Rank(255),
                pid: 77,
                doorbell: DoorbellKind::Futex,
                announcement: vec![],
            },
            Message::Row {
                rank: Rank(3),
                len: 1 << 33,
            },
            Message::Mapped,
            Message::Formed,
            Message::Refused {
                reason: "no".into(),
            },
        ];
        for message in messages {
            let bytes = message.write();
            let read = Message::read(&bytes).expect("a message");
            assert_eq!(format!("{read:?}"), format!("{message:?}"));
        }
    }

    #[test]
    fn what_is_no_message_is_refused_and_never_panics() {
        let row = Message::Row {
            rank: Rank(3),
            len: 8,
        };
        let bytes = row.write();
        for len in 0..bytes.len() {
            assert!(Message::read(&bytes[..len]).is_none(), "{len}");
        }
        let more = [&bytes[..], &[0]].concat();
        assert!(Message::read(&more).is_none());
        let mut bad = Message::Mapped.write();
        bad[4] = 99;
        assert!(Message::read(&bad).is_none());
        let beyond = Message::Row {
            rank: Rank(256),
            len: 8,
        };
        assert!(Message::read(&beyond.write()).is_none());
    }
}
