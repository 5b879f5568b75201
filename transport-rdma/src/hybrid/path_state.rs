//! State of the path selection on one connection.

use std::time::Instant;

use super::handshake_frame::Verdict;
use super::rdma::TrialPair;
use crate::tcp::ReadyStream;

const TOO_LATE: &str = "nothing of the other's came through its queue pair in time: look at the \
                        firewall (UDP port 4791), and at GID index and MTU on both sides";

/// State of the path selection on a connection.
#[derive(Debug, Default)]
pub(super) struct PathSelection {
    /// My queue pair, unless a thread is working on it.
    pub(super) pair: Option<TrialPair>,
    /// The result of that thread.
    pub(super) done: Option<PairResult>,
    /// When the queue pair must have proved that it works.
    pub(super) prove_by: Option<Instant>,
    /// What it takes to serve the connection as a peer's.
    pub(super) stream: Option<ReadyStream>,
    pub(super) mine: Option<Verdict>,
    pub(super) theirs: Option<Verdict>,
}

/// A step that may block.
#[derive(Debug)]
pub(super) enum PairStep {
    Offer,
    Answer(Vec<u8>),
    Accept(Vec<u8>),
}

/// Its result; of the first two steps, what is sent to the other side.
#[derive(Debug)]
pub(super) enum PairResult {
    Offered(Result<Vec<u8>, String>),
    Answered(Result<Vec<u8>, String>),
    Accepted(Result<(), String>),
}

impl PairStep {
    pub(super) fn take(&self, pair: &TrialPair) -> PairResult {
        match self {
            Self::Offer => PairResult::Offered(pair.offer()),
            Self::Answer(offer) => PairResult::Answered(pair.answer(offer)),
            Self::Accept(answer) => PairResult::Accepted(pair.accept(answer)),
        }
    }

    pub(super) fn fail(&self, reason: String) -> PairResult {
        match self {
            Self::Offer => PairResult::Offered(Err(reason)),
            Self::Answer(_) => PairResult::Answered(Err(reason)),
            Self::Accept(_) => PairResult::Accepted(Err(reason)),
        }
    }
}

impl PathSelection {
    /// When to check the queue pair again.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.prove_by.filter(|_| self.mine.is_none())
    }

    /// My verdict, if it has just become known.
    pub(super) fn decide(&mut self) -> Option<Verdict> {
        if self.mine.is_some() {
            return None;
        }
        let outcome = self.pair.as_ref().and_then(TrialPair::outcome);
        let late = self.prove_by.is_some_and(|end| end <= Instant::now());
        self.mine = outcome.or_else(|| late.then(|| Err(TOO_LATE.to_owned())));
        self.mine.clone()
    }
}
