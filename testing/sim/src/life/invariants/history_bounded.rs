//! Q5: what a reader keeps aside stays within its bound, and at most two parts of a source are unread.

use super::Invariant;
use crate::life::facts::Fact;
use crate::life::storage::StorageFact;

/// Parts of a source that a joiner may have.
const PARTS: usize = 2;

pub(super) struct HistoryBounded;

impl Invariant for HistoryBounded {
    fn id(&self) -> &'static str {
        "Q5"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match *fact {
            Fact::Storage(StorageFact::Aside {
                reader,
                items,
                bytes,
                bytes_max,
            }) if *items > 1 && bytes > bytes_max => Err(format!(
                "reader {reader:02x?} keeps {bytes} bytes aside, and may keep {bytes_max}"
            )),
            Fact::Storage(StorageFact::Unread { transfer, parts }) if *parts > PARTS => Err(
                format!("{parts} parts of a source of {transfer:?} are unread"),
            ),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{last_violates, transfer};
    use super::*;

    #[test]
    fn it_can_be_violated() {
        let aside = |items, bytes| StorageFact::Aside {
            reader: [1; 16],
            items,
            bytes,
            bytes_max: 100,
        };
        let unread = |parts| StorageFact::Unread {
            transfer: transfer(2),
            parts,
        };
        let facts = [unread(2), aside(3, 100), aside(1, 1000), unread(3)];
        last_violates(HistoryBounded, &facts.each_ref().map(Fact::Storage));
        let facts = [aside(3, 101)];
        last_violates(HistoryBounded, &facts.each_ref().map(Fact::Storage));
    }
}
