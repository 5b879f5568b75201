//! What samples are built in, kept by their writer from one to the next.
//!
//! ```text
//!   take --> reserve (place, room) --> build --> send --> give
//!                \------------- dropped --------------/
//! ```
//!
//! A loan is moved from stage to stage of its builder, and so is small: what belongs to it
//! stands in a draft, on the heap. A draft keeps its last claim, which is finished, for the
//! hold on the lane that comes with it: so a sample costs no count of the lane, and no lock
//! to find it. The first draft goes round by two exchanges of one word; others are there
//! while a writer has several loans at a time, or several threads.

use std::borrow::Borrow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};

use crossbeam_queue::ArrayQueue;
use crossbeam_utils::atomic::AtomicCell;
use spindle_dds_core::Claim;

use super::core::WriterCore;
use super::place::Place;
use crate::wire::Wire;

/// Drafts that are kept beside the first one.
const OTHERS_MAX: usize = 16;

/// What a sample is built in.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// The place in the ring where readers will find it. One that is finished is kept.
    pub(super) claim: Option<Claim<Wire>>,
    /// How many lanes had begun when it was claimed.
    pub(super) lanes: usize,
    /// Its place within RESOURCE_LIMITS, if there are any.
    pub(super) place: Option<Place>,
    /// A BEST_EFFORT writer found no room: it is built here, and thrown away.
    pub(super) is_scratch: bool,
    scratch: Vec<u8>,
    /// That of the sample, if it was given.
    pub(super) timestamp: Option<i64>,
    is_first: bool,
    is_loan: bool,
}

impl Draft {
    #[inline]
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        match &mut self.claim {
            _ if self.is_scratch => &mut self.scratch,
            Some(claim) => claim.bytes(),
            None => &mut [],
        }
    }

    /// There is no room for the sample.
    #[cold]
    pub(super) fn scratch(&mut self, len: usize) {
        self.is_scratch = true;
        self.scratch.resize(len, 0);
    }

    /// What was not sent leaves no trace.
    #[inline]
    fn clear(&mut self) {
        if let Some(claim) = &mut self.claim {
            claim.withdraw();
        }
        if self.place.is_some() {
            self.place = None;
        }
        self.is_scratch = false;
    }
}

/// The drafts of a writer.
pub(super) struct Drafts {
    /// `None`: somebody builds in it.
    first: AtomicCell<Option<Box<Draft>>>,
    others: ArrayQueue<Box<Draft>>,
    /// Of the loans that there are, one is in the first draft. Only who has it writes this.
    first_is_loan: AtomicBool,
    /// Loans in other drafts.
    other_loans: AtomicUsize,
    /// How many lanes have begun.
    lanes: AtomicUsize,
}

/// Somebody builds in a draft of a writer, which is given back when this is dropped.
#[derive(Debug)]
pub(super) struct Drafting<W: Borrow<Arc<WriterCore>>> {
    pub(super) writer: W,
    /// `None` only while it is dropped.
    draft: Option<Box<Draft>>,
}

impl<W: Borrow<Arc<WriterCore>>> Drafting<W> {
    #[inline]
    pub(super) fn new(writer: W) -> Self {
        Self {
            draft: Some(writer.borrow().drafts.take()),
            writer,
        }
    }

    #[inline]
    pub(super) fn parts(&mut self) -> Option<(&Arc<WriterCore>, &mut Draft)> {
        Some((self.writer.borrow(), self.draft.as_mut()?))
    }
}

impl<W: Borrow<Arc<WriterCore>>> Drop for Drafting<W> {
    #[inline]
    fn drop(&mut self) {
        if let Some(draft) = self.draft.take() {
            self.writer.borrow().drafts.give(draft);
        }
    }
}

impl Drafts {
    pub(super) fn new() -> Self {
        let first = Draft {
            is_first: true,
            ..Draft::default()
        };
        Self {
            first: AtomicCell::new(Some(Box::new(first))),
            others: ArrayQueue::new(OTHERS_MAX),
            first_is_loan: AtomicBool::new(false),
            other_loans: AtomicUsize::new(0),
            lanes: AtomicUsize::new(0),
        }
    }

    #[inline]
    fn take(&self) -> Box<Draft> {
        match self.first.take() {
            Some(draft) => draft,
            None => self.another(),
        }
    }

    #[cold]
    fn another(&self) -> Box<Draft> {
        self.others.pop().unwrap_or_default()
    }

    #[inline]
    fn give(&self, mut draft: Box<Draft>) {
        draft.clear();
        if !draft.is_first {
            return self.give_another(draft);
        }
        if draft.is_loan {
            draft.is_loan = false;
            self.first_is_loan.store(false, Ordering::Release);
        }
        let lanes = draft.lanes;
        self.first.store(Some(draft));
        // Acquire, by the exchange: who has had a lane begin, and has found no draft here to
        // forget it in, has said so before.
        if self.lanes.load(Ordering::Relaxed) != lanes {
            self.forget_claims();
        }
    }

    #[cold]
    fn give_another(&self, mut draft: Box<Draft>) {
        if draft.is_loan {
            draft.is_loan = false;
            self.other_loans.fetch_sub(1, Ordering::AcqRel);
        }
        let lanes = draft.lanes;
        // Beyond those that are kept, it ends here.
        let _ = self.others.push(draft);
        // Pairs with the fence in `lane_begun`: either the draft is found there, or this
        // sees that a lane has begun.
        fence(Ordering::SeqCst);
        if self.lanes.load(Ordering::Relaxed) != lanes {
            self.forget_claims();
        }
    }

    /// The draft is a loan from now on, until it is given back.
    #[inline]
    pub(super) fn lend(&self, draft: &mut Draft) {
        draft.is_loan = true;
        if draft.is_first {
            self.first_is_loan.store(true, Ordering::Release);
        } else {
            self.other_loans.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Loans that are neither published nor dropped.
    pub(super) fn loans(&self) -> usize {
        let first = self.first_is_loan.load(Ordering::Acquire);
        self.other_loans.load(Ordering::Acquire) + usize::from(first)
    }

    /// How many lanes have begun: to be noted in a draft before it gets a claim.
    #[inline]
    pub(super) fn lanes(&self) -> usize {
        self.lanes.load(Ordering::Acquire)
    }

    /// A lane has begun: those before it have ended, and nobody keeps their memory for the
    /// sake of claims to come.
    pub(super) fn lane_begun(&self) {
        self.lanes.fetch_add(1, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        self.forget_claims();
    }

    /// Of drafts that nobody builds in.
    #[cold]
    fn forget_claims(&self) {
        let forget = |mut draft: Box<Draft>| {
            draft.claim = None;
            draft.lanes = self.lanes();
            draft
        };
        if let Some(draft) = self.first.take() {
            self.first.store(Some(forget(draft)));
        }
        for _ in 0..self.others.len() {
            if let Some(draft) = self.others.pop() {
                let _ = self.others.push(forget(draft));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_goes_round_and_others_come_and_go() {
        let drafts = Drafts::new();
        let address = |draft: &Draft| std::ptr::from_ref(draft).addr();
        let first = drafts.take();
        let home = address(&first);
        let other = drafts.take();
        let beside = address(&other);
        assert!(first.is_first && !other.is_first);
        drafts.give(other);
        drafts.give(first);
        let again = [drafts.take(), drafts.take()];
        assert_eq!(again.each_ref().map(|it| address(it)), [home, beside]);
        let many: Vec<_> = (0..OTHERS_MAX).map(|_| drafts.take()).collect();
        again.into_iter().chain(many).for_each(|it| drafts.give(it));
        assert_eq!(drafts.others.len(), OTHERS_MAX);
        assert!(drafts.take().is_first);
    }

    #[test]
    fn loans_are_counted_until_they_are_given_back() {
        let drafts = Drafts::new();
        let mut taken = [0; 3].map(|_| drafts.take());
        assert_eq!(drafts.loans(), 0, "who writes has no loan");
        for (draft, loans) in taken.iter_mut().zip(1..) {
            drafts.lend(draft);
            assert_eq!(drafts.loans(), loans);
        }
        for (draft, loans) in taken.into_iter().zip([2, 1, 0]) {
            drafts.give(draft);
            assert_eq!(drafts.loans(), loans);
        }
    }

    #[test]
    fn who_comes_back_after_a_lane_has_begun_forgets_the_old_one() {
        let drafts = Drafts::new();
        let [first, other] = [drafts.take(), drafts.take()];
        drafts.lane_begun();
        drafts.give(first);
        drafts.give(other);
        for _ in 0..2 {
            let draft = drafts.take();
            assert_eq!(draft.lanes, drafts.lanes());
            std::mem::forget(draft);
        }
    }
}
