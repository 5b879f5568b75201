//! From history to the live stream.

use std::collections::VecDeque;

/// What arrives at a reader while it awaits history: kept aside, and shown after that history.
///
/// It is bounded in bytes. What does not fit stays where it is: in the rings of the writers, which find
/// no room then. So a slow transfer is ordinary back-pressure, and takes no memory without a bound.
///
/// ```text
///   begin     offer ... offer      end       pop ... pop       is_live
///   awaiting  kept aside           ending    in their order    nothing is kept aside
/// ```
#[derive(Debug)]
pub struct Handover<T> {
    aside: VecDeque<(T, usize)>,
    bytes: usize,
    bytes_max: usize,
    is_awaiting: bool,
}

impl<T> Handover<T> {
    /// Live. `bytes_max` bounds what is kept aside.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            aside: VecDeque::new(),
            bytes: 0,
            bytes_max,
            is_awaiting: false,
        }
    }

    /// History is awaited from now on.
    pub fn begin(&mut self) {
        self.is_awaiting = true;
    }

    /// Whether history is awaited.
    pub fn is_awaiting(&self) -> bool {
        self.is_awaiting
    }

    /// Whether what arrives may be shown at once: no history is awaited, and nothing is kept aside.
    pub fn is_live(&self) -> bool {
        !self.is_awaiting && self.aside.is_empty()
    }

    /// Whether an item of so many bytes would be kept aside. One item always is, however long.
    pub fn has_room_for(&self, bytes: usize) -> bool {
        self.aside.is_empty() || self.bytes.saturating_add(bytes) <= self.bytes_max
    }

    /// Keeps an item aside that takes so many bytes.
    ///
    /// # Errors
    /// The item, if there is no room for it: it is to be offered again after a [`pop`](Self::pop).
    pub fn offer(&mut self, item: T, bytes: usize) -> Result<(), T> {
        if !self.has_room_for(bytes) {
            return Err(item);
        }
        self.bytes += bytes;
        self.aside.push_back((item, bytes));
        Ok(())
    }

    /// The history has been shown, or will not come.
    pub fn end(&mut self) {
        self.is_awaiting = false;
    }

    /// What was kept aside, oldest first; `None` while history is awaited.
    pub fn pop(&mut self) -> Option<T> {
        if self.is_awaiting {
            return None;
        }
        let (item, bytes) = self.aside.pop_front()?;
        self.bytes -= bytes;
        if self.aside.is_empty() {
            // It may have been long, and is hardly ever used again.
            self.aside = VecDeque::new();
        }
        Some(item)
    }

    /// Gives an item back that was popped and could not be shown yet.
    pub fn put_back(&mut self, item: T, bytes: usize) {
        self.bytes += bytes;
        self.aside.push_front((item, bytes));
    }

    /// Drops everything; live again.
    pub fn clear(&mut self) {
        *self = Self::new(self.bytes_max);
    }

    /// Bytes that are kept aside.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Items that are kept aside.
    pub fn len(&self) -> usize {
        self.aside.len()
    }

    /// Whether nothing is kept aside.
    pub fn is_empty(&self) -> bool {
        self.aside.is_empty()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_waits_for_history_in_its_order() {
        let mut handover = Handover::new(100);
        assert!(handover.is_live());
        handover.begin();
        for item in 0..4 {
            handover.offer(item, 20).unwrap();
        }
        assert_eq!(handover.pop(), None);
        handover.end();
        assert!(!handover.is_live());
        assert_eq!(handover.pop(), Some(0));
        handover.put_back(0, 20);
        handover.offer(4, 20).unwrap();
        let popped: Vec<_> = core::iter::from_fn(|| handover.pop()).collect();
        assert_eq!(popped, [0, 1, 2, 3, 4]);
        assert!(handover.is_live());
        assert_eq!(handover.bytes(), 0);
    }

    #[test]
    fn what_is_kept_aside_is_bounded() {
        let mut handover = Handover::new(100);
        handover.begin();
        assert_eq!(handover.offer("one longer than all", 1000), Ok(()));
        assert_eq!(handover.offer("another", 1), Err("another"));
        handover.end();
        assert!(handover.pop().is_some());
        handover.begin();
        handover.offer("first", 60).unwrap();
        handover.offer("second", 40).unwrap();
        assert_eq!(handover.offer("third", 1), Err("third"));
        handover.clear();
        assert!(handover.is_live());
        assert_eq!(handover.offer("third", 1), Ok(()));
    }
}
