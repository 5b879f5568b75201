//! Whether the group goes on, has failed, or was left; and the times in which the participant was in
//! no group, if it comes back by itself.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use crate::error::{Error, Result};
use crate::joining::random_id;
use crate::status::{MembershipStatus, TotalCount};

/// Shared by all that ends when the group does.
#[derive(Debug, Default)]
pub(crate) struct GroupStatus {
    /// The participant enters its group again by itself when it has lost it.
    returns: bool,
    failed: OnceLock<String>,
    closed: AtomicBool,
    /// The participant has lost its group, and is not back. Written under the lock.
    out: AtomicBool,
    /// How often it has lost its group. Written under the lock.
    outages: AtomicU32,
    /// The listener has not been told of the last change.
    has_news: AtomicBool,
    outage: Mutex<Outage>,
}

/// The last time in which the participant was in no group.
#[derive(Debug, Default)]
struct Outage {
    count: TotalCount,
    reason: Option<String>,
    since: Option<SystemTime>,
    until: Option<SystemTime>,
    samples_gone: u64,
    /// Why the last attempt to come back failed.
    attempt: Option<String>,
    /// How long to wait before the next one.
    pause: Duration,
}

/// Pauses between attempts to come back.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// A participant that has been a member for so long comes back without a pause.
const LASTS: Duration = Duration::from_secs(10);

impl GroupStatus {
    /// `returns`: the participant enters its group again by itself when it has lost it.
    pub(crate) fn new(returns: bool) -> Self {
        Self {
            returns,
            ..Self::default()
        }
    }

    fn outage(&self) -> MutexGuard<'_, Outage> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The group has stopped for this participant: it comes back, or that is the end; then the first
    /// reason counts.
    pub(crate) fn stopped(&self, reason: String) {
        if !self.returns || self.is_closed() {
            let _ = self.failed.set(reason);
            return;
        }
        let mut outage = self.outage();
        // An attempt to come back that failed late is of the same outage.
        if !self.out.load(Ordering::Relaxed) {
            outage.count.add(1);
            outage.attempt = None;
            let back = outage.until.and_then(|until| until.elapsed().ok());
            if back.is_none_or(|back| back > LASTS) {
                outage.pause = Duration::ZERO;
            }
            outage.since = Some(SystemTime::now());
            outage.until = None;
        }
        outage.reason = Some(reason);
        self.out.store(true, Ordering::Release);
        self.outages.fetch_add(1, Ordering::AcqRel);
        self.has_news.store(true, Ordering::Release);
    }

    /// The participant is a member again, in a session that began after so many outages. False if it
    /// has lost its group meanwhile.
    pub(crate) fn came_back(&self, outages: u32) -> bool {
        let mut outage = self.outage();
        if self.outages() != outages {
            return false;
        }
        outage.until = Some(SystemTime::now());
        self.out.store(false, Ordering::Release);
        self.has_news.store(true, Ordering::Release);
        true
    }

    /// An attempt to come back has failed.
    pub(crate) fn not_back(&self, error: &Error) {
        let text = format!("it has not come back yet: {error}");
        let mut outage = self.outage();
        if outage.attempt.as_ref() != Some(&text) {
            tracing::warn!("{text}");
            outage.attempt = Some(text);
        }
    }

    /// Samples of its writers were neither delivered nor kept.
    pub(crate) fn samples_gone(&self, samples: u64) {
        self.outage().samples_gone += samples;
    }

    /// How long to wait before the next attempt to come back: not at all at first, then longer each
    /// time, also where the participant soon lost its group again.
    pub(crate) fn next_pause(&self) -> Duration {
        let mut outage = self.outage();
        let pause = outage.pause;
        outage.pause = (2 * pause).clamp(PAUSE_MIN, PAUSE_MAX);
        // Participants that were expelled together do not come back in step.
        pause.mul_f64(0.5 + (random_id() % 1024) as f64 / 1024.0)
    }

    /// The participant has never been a member, and does not come back by itself: its creation fails.
    /// Returns why.
    pub(crate) fn never_began(&self) -> Option<String> {
        let mut outage = self.outage();
        self.out.store(false, Ordering::Release);
        self.has_news.store(false, Ordering::Release);
        std::mem::take(&mut *outage).reason
    }

    /// This participant leaves.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn failure(&self) -> Option<&str> {
        self.failed.get().map(String::as_str)
    }

    /// Whether the participant has lost its group, and is to come back.
    pub(crate) fn is_out(&self) -> bool {
        self.out.load(Ordering::Acquire)
    }

    /// Changes each time the participant loses its group.
    pub(crate) fn outages(&self) -> u32 {
        self.outages.load(Ordering::Acquire)
    }

    /// Why operations that need the group cannot be served now.
    pub(crate) fn why_out(&self) -> String {
        let outage = self.outage();
        let reason = outage.reason.as_deref().unwrap_or("it is not known why");
        let since = outage.since.and_then(|since| since.elapsed().ok());
        let since = since.unwrap_or_default();
        let attempt = outage.attempt.iter().map(|it| format!("; {it}"));
        let attempt: String = attempt.collect();
        format!("the participant has been out of its group for {since:.1?}: {reason}{attempt}")
    }

    /// Whether the listener has to be told of a change; that is asked once for each.
    pub(crate) fn take_news(&self) -> bool {
        self.has_news.load(Ordering::Acquire) && self.has_news.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn membership(&self) -> MembershipStatus {
        let mut outage = self.outage();
        let (total_count, total_count_change) = outage.count.read();
        let reason = self.failure().map(str::to_owned);
        MembershipStatus {
            is_member: !self.is_out() && self.failure().is_none() && !self.is_closed(),
            total_count,
            total_count_change,
            last_reason: reason.or_else(|| outage.reason.clone()),
            out_since: outage.since,
            back_since: outage.until,
            samples_gone: outage.samples_gone,
        }
    }

    /// # Errors
    /// Why the participant is in no group, for good.
    pub(crate) fn check(&self) -> Result<()> {
        if let Some(reason) = self.failure() {
            return Err(Error::Error(reason.to_owned()));
        }
        if self.is_closed() {
            return Err(Error::AlreadyDeleted(
                "the participant has left its group".to_owned(),
            ));
        }
        Ok(())
    }
}

/// Cancels what another thread waits in. Clones share one state.
#[derive(Debug, Clone, Default)]
pub(crate) struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// Cancels, for good.
    pub(crate) fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outage_is_counted_and_told_once() {
        let status = GroupStatus::new(true);
        assert!(status.membership().is_member);
        status.stopped("expelled".to_owned());
        status.stopped("the way back is barred".to_owned());
        assert!(status.is_out() && status.check().is_ok());
        let told = status.membership();
        assert!(!told.is_member);
        assert_eq!((told.total_count, told.total_count_change), (1, 1));
        assert_eq!(told.last_reason.as_deref(), Some("the way back is barred"));
        assert!(status.take_news() && !status.take_news());
        status.samples_gone(3);
        assert!(!status.came_back(1), "a session of before");
        assert!(status.came_back(2));
        let told = status.membership();
        assert!(told.is_member && told.out_since <= told.back_since);
        assert_eq!((told.total_count, told.total_count_change), (1, 0));
        assert_eq!(told.samples_gone, 3);
        assert!(status.take_news());
    }

    #[test]
    fn without_a_way_back_the_first_reason_ends_all() {
        let status = GroupStatus::new(false);
        status.stopped("first".to_owned());
        status.stopped("second".to_owned());
        assert_eq!(status.check(), Err(Error::Error("first".to_owned())));
        let told = status.membership();
        assert!(!told.is_member && !status.is_out());
        assert_eq!(told.last_reason.as_deref(), Some("first"));
    }
}
