//! Readers that show what logs have on disk only.

use std::ops::Range;
use std::sync::Mutex;

use super::*;
use crate::driver::logs::Logged;

/// What the logs have.
#[derive(Default)]
struct Logs {
    end: u64,
    lost: Range<u64>,
}

struct Logging {
    it: Fixture,
    logs: Arc<Mutex<Logs>>,
}

impl Logging {
    fn new(aside_bytes: usize) -> Self {
        let it = Fixture::new(Settings {
            aside_bytes,
            ..Settings::default()
        });
        let logs = Arc::<Mutex<Logs>>::default();
        let known = logs.clone();
        it.port.show_logged(Some(Arc::new(move |position| {
            let logs = known.lock().unwrap();
            match position < logs.end {
                _ if logs.lost.contains(&position) => Logged::Lost,
                true => Logged::Yes,
                false => Logged::NotYet,
            }
        })));
        Self { it, logs }
    }

    /// The logs have all below this position.
    fn log(&self, end: u64) {
        self.logs.lock().unwrap().end = end;
        self.it.port.persisted();
    }
}

#[test]
fn samples_are_shown_as_far_as_the_logs_have_them() {
    let Logging { mut it, logs } = Logging::new(1 << 20);
    it.begin(&[1], LEFT, None);
    // At positions 1 to 4.
    it.deliver(data(1, 1..5));
    assert_eq!(it.take_samples(), []);
    let logging = Logging { it, logs };
    logging.log(3);
    assert_eq!(logging.it.take_samples(), of(1, 1..3));
    logging.log(4);
    logging.log(5);
    assert_eq!(logging.it.take_samples(), of(1, 3..5));
    // What the logs have when it comes is shown at once.
    logging.log(7);
    let mut it = logging.it;
    it.deliver(data(1, 5..9));
    assert_eq!(it.take_samples(), of(1, 5..7));
    // A writer that is gone is so after its samples.
    it.begin(&[2], LEFT, None);
    assert_eq!(it.matched(), [1].into());
    it.deliver(data(2, 1..2));
    let logging = Logging {
        it,
        logs: logging.logs,
    };
    logging.log(100);
    let shown = logging.it.take(usize::MAX).into_iter();
    let shown: Vec<_> = shown.map(|it| (it.0, it.1, it.3)).collect();
    assert_eq!(shown[..3], [(1, 7, true), (1, 8, true), (1, 0, false)]);
    assert_eq!(shown[3..], [(2, 1, true)]);
    assert_eq!(logging.it.matched(), [2].into());
    assert_eq!(logging.it.lost(), 0);
}

#[test]
fn what_has_no_room_aside_stays_where_it_is() {
    let mut logging = Logging::new(400);
    logging.it.begin(&[1], LEFT, None);
    logging.it.deliver(data(1, 1..50));
    assert!(logging.it.port.is_full());
    for (end, shown) in [(2, 1..2), (20, 2..20), (50, 20..50)] {
        logging.log(end);
        assert_eq!(logging.it.take_samples(), of(1, shown));
    }
    assert!(!logging.it.port.is_full());
    logging.it.deliver(data(1, 50..51));
    logging.log(51);
    assert_eq!(logging.it.take_samples(), of(1, 50..51));
}

#[test]
fn what_no_log_will_have_is_lost() {
    let mut logging = Logging::new(1 << 20);
    logging.it.begin(&[1], LEFT, None);
    logging.it.deliver(data(1, 1..5));
    logging.logs.lock().unwrap().lost = 3..5;
    logging.log(3);
    assert_eq!(logging.it.take_samples(), of(1, 1..3));
    logging.it.deliver(data(1, 5..6));
    logging.log(6);
    assert_eq!(logging.it.take_samples(), of(1, 5..6));
    assert_eq!(logging.it.lost(), 2);
}

#[test]
fn where_the_group_is_lost_the_history_brings_what_the_logs_have() {
    let mut logging = Logging::new(1 << 20);
    logging.it.begin(&[1], LEFT, None);
    logging.it.deliver(data(1, 1..5));
    logging.log(3);
    logging.it.lose_group();
    let shown = logging.it.take(usize::MAX).into_iter();
    let shown: Vec<_> = shown.map(|it| (it.1, it.3)).collect();
    assert_eq!(shown, [(1, true), (2, true), (0, false)]);
    logging.it.begin(&[1], LEFT, Some(1));
    assert_eq!(logging.it.lasts(1), Some(vec![(1, 2)]));
    // As far as they have it.
    logging.it.wakes();
    let mut history = records(data(1, 3..5));
    assert_eq!(logging.it.offer(1, &mut history), HistoryOffer::Full);
    assert_eq!(logging.it.wakes(), 0);
    logging.log(5);
    assert!(logging.it.wakes() > 0);
    assert_eq!(logging.it.offer(1, &mut history), HistoryOffer::Taken);
    let end = end_of(&[(1, 4)]);
    assert!(logging.it.port.end_history(TransferId(1), &end));
    logging.it.deliver(data(1, 5..6));
    logging.log(100);
    assert_eq!(logging.it.take_samples(), of(1, 3..6));
    assert_eq!(logging.it.lost(), 0);
}

#[test]
fn a_full_cache_leaves_samples_in_their_rings() {
    let it = Fixture::new(Settings {
        limits: max_samples(2),
        ..Settings::default()
    });
    it.port.show_logged(Some(Arc::new(|_| Logged::Yes)));
    let mut it = it;
    it.begin(&[1], LEFT, None);
    it.deliver(data(1, 1..9));
    assert!(it.port.is_full());
    let mut shown = Vec::new();
    while shown.len() < 8 {
        let taken = it.take_samples();
        assert!(!taken.is_empty() && taken.len() <= 2);
        shown.extend(taken);
    }
    assert_eq!(shown, of(1, 1..9));
}
