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
//! to find it. It keeps its writer too, until that is deleted: so a sample costs no count of
//! the writer, either. The first draft goes round by two exchanges of one word; others are
//! there while a writer has several loans at a time, or several threads.
//!
//! Who gives a draft back, and the last hold on the writer with it, still has to look whether
//! the draft may keep what it holds. So the place where drafts are kept, a *nest*, outlives
//! its writer: it is handed to the next one.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// A draft, and whose it is.
#[derive(Debug, Default)]
struct Kept {
    /// `None` while nobody builds in it, before its first sample and once the writer is
    /// deleted.
    writer: Option<Arc<WriterCore>>,
    draft: Draft,
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

/// In the count of lanes: the writer is deleted, and nothing keeps it alive that nobody builds
/// in.
const ENDED: usize = 1 << (usize::BITS - 1);

/// The drafts of a writer.
pub(super) struct Drafts(&'static Nest);

/// Where drafts are kept: for one writer, and then for another.
struct Nest {
    /// `None`: somebody builds in it.
    first: AtomicCell<Option<Box<Kept>>>,
    others: ArrayQueue<Box<Kept>>,
    /// Of the loans that there are, one is in the first draft. Only who has it writes this.
    first_is_loan: AtomicBool,
    /// Loans in other drafts.
    other_loans: AtomicUsize,
    /// How many lanes have begun, and whether the writer is deleted.
    lanes: AtomicUsize,
}

/// Nests without a writer.
static NESTS: Mutex<Vec<&'static Nest>> = Mutex::new(Vec::new());

fn nests() -> MutexGuard<'static, Vec<&'static Nest>> {
    NESTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Somebody builds in a draft of a writer, which is given back when this is dropped.
#[derive(Debug)]
pub(super) struct Drafting {
    /// `None` only while it is dropped.
    kept: Option<Box<Kept>>,
}

impl Drafting {
    #[inline]
    pub(super) fn new(writer: &Arc<WriterCore>) -> Self {
        let mut kept = writer.side.drafts.0.take();
        if kept.writer.is_none() {
            kept.writer = Some(writer.clone());
        }
        Self { kept: Some(kept) }
    }

    #[inline]
    pub(super) fn parts(&mut self) -> Option<(&Arc<WriterCore>, &mut Draft)> {
        let Kept { writer, draft } = &mut **self.kept.as_mut()?;
        Some((writer.as_ref()?, draft))
    }

    /// The memory to build in.
    #[inline]
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        match &mut self.kept {
            Some(kept) => kept.draft.bytes(),
            None => &mut [],
        }
    }
}

/// By value, so that no address of a builder is given away for it: one whose address is known
/// nowhere is kept in registers.
impl Drop for Drafting {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(kept) = self.kept.take() {
            hand_back(kept);
        }
    }
}

#[inline(never)]
fn hand_back(kept: Box<Kept>) {
    if let Some(nest) = kept.writer.as_ref().map(|writer| writer.side.drafts.0) {
        nest.give(kept);
    }
}

impl Drafts {
    pub(super) fn new() -> Self {
        Self(nests().pop().unwrap_or_else(Nest::leak))
    }

    /// The draft is a loan from now on, until it is given back.
    #[inline]
    pub(super) fn lend(&self, draft: &mut Draft) {
        draft.is_loan = true;
        if draft.is_first {
            self.0.first_is_loan.store(true, Ordering::Release);
        } else {
            self.0.other_loans.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Loans that are neither published nor dropped.
    pub(super) fn loans(&self) -> usize {
        let first = self.0.first_is_loan.load(Ordering::Acquire);
        self.0.other_loans.load(Ordering::Acquire) + usize::from(first)
    }

    /// How many lanes have begun: to be noted in a draft before it gets a claim.
    #[inline]
    pub(super) fn lanes(&self) -> usize {
        self.0.lanes.load(Ordering::Acquire)
    }

    /// A lane has begun: those before it have ended, and nobody keeps their memory for the
    /// sake of claims to come.
    pub(super) fn lane_begun(&self) {
        self.0.lanes.fetch_add(1, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        self.0.forget();
    }

    /// The writer is deleted: from now on only who builds in a draft keeps it alive.
    pub(super) fn end(&self) {
        self.0.lanes.fetch_or(ENDED, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        self.0.forget();
    }
}

/// Nobody has a draft of it any more, for that would keep the writer alive; who gave the last
/// one back may still be in [`Nest::forget`], where it finds nothing more to forget.
impl Drop for Drafts {
    fn drop(&mut self) {
        self.end();
        self.0.lanes.store(0, Ordering::Release);
        nests().push(self.0);
    }
}

impl Nest {
    fn leak() -> &'static Self {
        let first = Kept {
            writer: None,
            draft: Draft {
                is_first: true,
                ..Draft::default()
            },
        };
        Box::leak(Box::new(Self {
            first: AtomicCell::new(Some(Box::new(first))),
            others: ArrayQueue::new(OTHERS_MAX),
            first_is_loan: AtomicBool::new(false),
            other_loans: AtomicUsize::new(0),
            lanes: AtomicUsize::new(0),
        }))
    }

    #[inline]
    fn take(&self) -> Box<Kept> {
        match self.first.take() {
            Some(kept) => kept,
            None => self.another(),
        }
    }

    #[cold]
    fn another(&self) -> Box<Kept> {
        self.others.pop().unwrap_or_default()
    }

    #[inline]
    fn give(&'static self, mut kept: Box<Kept>) {
        let draft = &mut kept.draft;
        draft.clear();
        if !draft.is_first {
            return self.give_another(kept);
        }
        if draft.is_loan {
            draft.is_loan = false;
            self.first_is_loan.store(false, Ordering::Release);
        }
        let lanes = draft.lanes;
        self.first.store(Some(kept));
        // Acquire, by the exchange: who has had a lane begin, or the writer end, and has found
        // no draft here to forget it in, has said so before.
        if self.is_past(lanes) {
            self.forget();
        }
    }

    #[cold]
    fn give_another(&'static self, mut kept: Box<Kept>) {
        let draft = &mut kept.draft;
        if draft.is_loan {
            draft.is_loan = false;
            self.other_loans.fetch_sub(1, Ordering::AcqRel);
        }
        let lanes = draft.lanes;
        // Beyond those that are kept, it ends here.
        let _ = self.others.push(kept);
        // Pairs with the fences in `lane_begun` and `end`: either the draft is found there, or
        // this sees what has happened.
        fence(Ordering::SeqCst);
        if self.is_past(lanes) {
            self.forget();
        }
    }

    /// Whether more lanes have begun than these, or the writer is deleted.
    #[inline]
    fn is_past(&self, lanes: usize) -> bool {
        let now = self.lanes.load(Ordering::Relaxed);
        now != lanes || now & ENDED != 0
    }

    /// Of drafts that nobody builds in, forgets the claims; the writer too, if it is deleted.
    /// Who holds the last of it may be this: what is let go of is let go of last.
    #[cold]
    fn forget(&'static self) {
        if let Some(kept) = self.first.take() {
            let (kept, writer) = self.forget_in(kept);
            self.first.store(Some(kept));
            drop(writer);
        }
        for _ in 0..self.others.len() {
            if let Some(kept) = self.others.pop() {
                let (kept, writer) = self.forget_in(kept);
                let _ = self.others.push(kept);
                drop(writer);
            }
        }
    }

    fn forget_in(&self, mut kept: Box<Kept>) -> (Box<Kept>, Option<Arc<WriterCore>>) {
        let lanes = self.lanes.load(Ordering::Acquire);
        kept.draft.claim = None;
        kept.draft.lanes = lanes;
        let writer = match lanes & ENDED {
            0 => None,
            _ => kept.writer.take(),
        };
        (kept, writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_goes_round_and_others_come_and_go() {
        let nest = Nest::leak();
        let address = |kept: &Kept| std::ptr::from_ref(kept).addr();
        let first = nest.take();
        let home = address(&first);
        let other = nest.take();
        let beside = address(&other);
        assert!(first.draft.is_first && !other.draft.is_first);
        nest.give(other);
        nest.give(first);
        let again = [nest.take(), nest.take()];
        assert_eq!(again.each_ref().map(|it| address(it)), [home, beside]);
        let many: Vec<_> = (0..OTHERS_MAX).map(|_| nest.take()).collect();
        again.into_iter().chain(many).for_each(|it| nest.give(it));
        assert_eq!(nest.others.len(), OTHERS_MAX);
        assert!(nest.take().draft.is_first);
    }

    #[test]
    fn loans_are_counted_until_they_are_given_back() {
        let nest = Nest::leak();
        let drafts = Drafts(nest);
        let mut taken = [0; 3].map(|_| nest.take());
        assert_eq!(drafts.loans(), 0, "who writes has no loan");
        for (kept, loans) in taken.iter_mut().zip(1..) {
            drafts.lend(&mut kept.draft);
            assert_eq!(drafts.loans(), loans);
        }
        for (kept, loans) in taken.into_iter().zip([2, 1, 0]) {
            nest.give(kept);
            assert_eq!(drafts.loans(), loans);
        }
    }

    #[test]
    fn who_comes_back_after_a_lane_has_begun_forgets_the_old_one() {
        let nest = Nest::leak();
        let drafts = Drafts(nest);
        let [first, other] = [nest.take(), nest.take()];
        drafts.lane_begun();
        nest.give(first);
        nest.give(other);
        for _ in 0..2 {
            let kept = nest.take();
            assert_eq!(kept.draft.lanes, drafts.lanes());
            std::mem::forget(kept);
        }
    }
}
