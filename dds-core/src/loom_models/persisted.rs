//! Threads of a log say what is persisted while the engine lets the subgroup go idle.

use super::*;
use crate::subgroup::persisted::Persisted;

/// The last pass finds the highest position, or the engine is told.
#[test]
fn loom_no_persisted_position_is_missed_in_an_idle_subgroup() {
    model(|| {
        let subgroup = Arc::new((IdleFlag::new(), LeftWork::new(), Persisted::new(1)));
        let threads = [5, 7].map(|position| {
            let subgroup = subgroup.clone();
            thread::spawn(move || {
                let (idle, left_work, persisted) = &*subgroup;
                if persisted.ask(position) {
                    // As every nudge does.
                    fence(Ordering::SeqCst);
                    idle.interrupt(left_work);
                }
            })
        });
        let (idle, left_work, persisted) = &*subgroup;
        idle.begin();
        let found = persisted.asked();
        for thread in threads {
            thread.join().unwrap();
        }
        let is_told = left_work.take() && !idle.lasts();
        assert!(found == 7 || is_told, "{found} was found last");
        assert_eq!(persisted.asked(), 7);
    });
}
