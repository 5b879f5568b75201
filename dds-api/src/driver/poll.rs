//! The polling thread: steps the engine, spins briefly, yields, then sleeps.

use std::hint;
use std::thread;
use std::time::Duration;

use spindle_dds_core::Outcome;
use spindle_dds_transport::{Fabric, Park, Want};

use super::session::Session;
use crate::properties::WaitPolicy;

/// How often a thread looks again before it sleeps.
#[derive(Debug, Clone, Copy)]
struct Patience {
    spins: u32,
    yields: u32,
}

impl Patience {
    /// More polling threads than cores is normal: even `spin` ends soon.
    const fn of(policy: WaitPolicy) -> Self {
        let (spins, yields) = match policy {
            WaitPolicy::Balanced => (50, 4),
            WaitPolicy::Spin => (2000, 200),
            WaitPolicy::Block => (0, 0),
        };
        Self { spins, yields }
    }
}

/// Samples that are to stay in a ring are copied out when the ring is nearly
/// full of them and nobody has asked for one for so long.
const NEGLECTED_AFTER: Duration = Duration::from_millis(20);

/// Steps until the participant leaves or the group stops.
pub(super) fn run(session: &Session, wait: WaitPolicy) {
    let patience = Patience::of(wait);
    let mut idle = 0;
    while !session.is_stopping() {
        session.hold().pass();
        let Some(outcome) = session.step() else {
            thread::yield_now();
            continue;
        };
        if outcome.stopped {
            break;
        }
        if outcome.progress {
            idle = 0;
            continue;
        }
        idle += 1;
        if idle <= patience.spins {
            hint::spin_loop();
        } else if idle <= patience.spins + patience.yields {
            thread::yield_now();
        } else {
            sleep(session, outcome);
            idle = 0;
        }
    }
}

fn sleep(session: &Session, outcome: Outcome) {
    let upkeep = session
        .engine()
        .with_sink(|sink| (sink.relieve(), sink.tight()));
    let Some((false, tight)) = upkeep else {
        return;
    };
    let fabric = session.handle().fabric();
    fabric.announce_sleep(outcome.want);
    // The second look: what was pushed before the announcement was seen.
    let asleep = session.step().filter(|again| {
        let wants_more = again.want == Want::DataAndAcks && outcome.want == Want::Data;
        !again.progress && !again.stopped && !wants_more
    });
    if let Some(again) = asleep
        && !session.is_stopping()
    {
        // Its heartbeat is due some time, whatever happens.
        let left = |due: u64| Duration::from_nanos(due.saturating_sub(session.now()));
        let due = Some(again.due).filter(|due| *due != 0).map(left);
        let tight_for = tight.map(|_| NEGLECTED_AFTER);
        let timeout = match (due, tight_for) {
            (Some(due), Some(tight_for)) => Some(due.min(tight_for)),
            (due, tight_for) => due.or(tight_for),
        };
        let rung = fabric.park(timeout);
        session.woke_up();
        if let (false, Some(before)) = (rung, tight) {
            let _ = session.engine().with_sink(|sink| sink.neglect(before));
        }
    }
    fabric.announce_awake();
}
