//! Which pass wakes the members that sleep until something is stable: the last one.
//!
//! A message is stable once each of `n` members has acknowledged it, and has filled the places
//! before it with nulls. If each of these pushes woke the sleepers, a message would cost up to
//! `n * n` wake-ups, all but the last `n` in vain. So where members share memory, a pass that
//! pushes nothing but acknowledgements and nulls wakes a sleeper only if `stable` rises here: then
//! this member had the last of them.
//!
//! ```text
//!   member Y                                  member Z
//!   first pass:  store acks and nulls         store acks and nulls
//!                look at others: not stable   look at others: not stable
//!                fence (the flush)            fence (the flush)
//!   second pass: look at others               look at others
//!                stable now? wake sleepers    stable now? wake sleepers
//! ```
//!
//! **No wake-up is lost.** Let `v` be a position that is stable by all that was stored, and X a
//! member that sleeps until it is. Of the members whose acknowledgements and nulls make it stable,
//! let Y be the one whose flush fences last, in the one order of all SeqCst fences. What
//! the others stored for `v` comes before their fences, so Y sees it in its second pass at the
//! latest. That pass receives, computes the nulls that are left to push and then `stable`, as the
//! first one does, so `stable` reaches `v` at Y in one of the two. It cannot have reached `v` before, as
//! it is no higher than what Y itself has stored. So Y wakes X: by the flush of the first
//! pass, which fences after its stores; or by that of the second, which fences again. If X
//! has announced its sleep before that fence, Y sees the announcement; if not, the second look
//! of X comes after the fence of its announcement, and sees what was stored (`sleep` in
//! `transport-rdma`). A flush that wakes all sleepers, because it has a message, does the same for all
//! that its member has stored before.
//!
//! Y need not look again if it sees no member asleep after its fence that waits for stability, as it
//! is while all are busy: those that announce their sleep later see what it has stored.
//!
//! **Nothing is left behind.** Both passes are part of one step, so it does not matter what the thread
//! does afterwards. If the second pass has to push such words itself, it wakes all that sleep until
//! something is stable, as a member does that shares no memory with others.
//!
//! Where the epoch is not open, or a member is faulty, nothing is left to others either: they may
//! not compute `stable` any more. A member that fails before it wakes a sleeper, or has fenced another,
//! causes a view change, which wakes all. Without shared memory, no fence orders what two members see
//! of each other.

use spindle_dds_transport::Fabric;

use super::{Context, MemberFault, Phase, Progress, SubgroupState};
use crate::sink::Sink;

/// What a pass has done.
#[derive(Debug, Clone, Copy)]
struct Passed {
    /// It changed or pushed something.
    moved: bool,
    /// It has pushed acknowledgements or nulls, and has woken no member for them, though one sleeps.
    left_waking: bool,
}

impl<F: Fabric> SubgroupState<F> {
    /// Runs the predicates once, and once more where it may be this member that has to wake others.
    /// Returns whether this changed or pushed anything.
    pub(super) fn pass<S: Sink<F>>(
        &mut self,
        context: &mut Context<'_, S>,
        progress: &mut Progress,
    ) -> Result<bool, MemberFault> {
        let passed = self.pass_once(context, progress, false)?;
        if passed.left_waking {
            self.pass_once(context, progress, true)?;
        }
        Ok(passed.moved)
    }

    /// Runs the predicates once. `is_second`: the pass before it has woken no member for what it
    /// pushed.
    fn pass_once<S: Sink<F>>(
        &mut self,
        context: &mut Context<'_, S>,
        progress: &mut Progress,
        is_second: bool,
    ) -> Result<Passed, MemberFault> {
        let handle = &self.handle.clone();
        let mut own = Progress::default();
        context.pushes.address(&self.others, self.peers);
        let evaluated = self.evaluate(handle, context, &mut own);
        let is_sound = evaluated.is_ok() && self.phase == Phase::Open;
        let leaves = self.shares_memory
            && !is_second
            && is_sound
            && !own.stable
            && context.pushes.wake_for_stability();
        if is_second && (own.stable || !is_sound) {
            context.pushes.wake_after_all();
        }
        let left_waking = leaves && context.pushes.flush_and_leave_waking(&handle.fabric);
        let pushed = context.pushes.flush(&handle.fabric) || leaves;
        if own.room || own.stable || own.persisted {
            handle.has_changed();
        }
        progress.add(own);
        evaluated.map(|()| Passed {
            moved: own.is_any() || pushed,
            left_waking,
        })
    }
}
