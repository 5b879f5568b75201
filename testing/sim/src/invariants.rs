//! The properties that every run must have, each with its id (docs/properties.md).

use std::collections::{BTreeMap, BTreeSet};

use spindle_dds_core::{DeliveryClass, SubgroupId};
use spindle_dds_transport::Rank;

use crate::recorder::{Record, SentMessage};
use crate::violation::Finding;

/// A1, A2: every message is one that its sender sent, unaltered in length, once,
/// in the order of its sender, none left out. `next` counts by sender.
pub fn integrity_and_fifo(
    record: &Record,
    sent: &[SentMessage],
    next: &mut BTreeMap<Rank, u64>,
) -> Result<(), Finding> {
    let expected = next.entry(record.sender).or_insert(0);
    *expected += 1;
    if record.number != *expected {
        return Err((
            "A2",
            format!(
                "message {} of {} after {}",
                record.number,
                record.sender,
                *expected - 1
            ),
        ));
    }
    match sent.get(record.number as usize - 1) {
        Some(message) if message.number == record.number && message.len == record.len => Ok(()),
        Some(message) => Err(("A1", format!("{record:?} was sent as {message:?}"))),
        None => Err(("A1", format!("{record:?} was never sent"))),
    }
}

/// A3: of two histories of an ordered ring one is a prefix of the other.
pub fn total_order(histories: &[(Rank, &[Record])]) -> Result<(), Finding> {
    let Some((longest_at, longest)) = histories.iter().max_by_key(|(_, history)| history.len())
    else {
        return Ok(());
    };
    for (rank, history) in histories {
        let differs = history
            .iter()
            .zip(longest.iter())
            .position(|(a, b)| !same_place(a, b));
        if let Some(at) = differs {
            return Err((
                "A3",
                format!(
                    "delivery {at}: {:?} at {rank}, {:?} at {longest_at}",
                    history[at], longest[at]
                ),
            ));
        }
    }
    Ok(())
}

fn same_place(a: &Record, b: &Record) -> bool {
    a == b
}

/// A5: positions rise, those of farewells included.
pub fn positions_rise(history: &[Record]) -> Result<(), Finding> {
    let messages: Vec<u64> = history.iter().map(|record| record.position).collect();
    match messages.windows(2).position(|pair| pair[0] >= pair[1]) {
        Some(at) => Err((
            "A5",
            format!("position {} after {}", messages[at + 1], messages[at]),
        )),
        None => Ok(()),
    }
}

/// L2: everything committed has been delivered. `sent` is by sender, those who
/// failed left out.
pub fn all_delivered(
    subgroup: SubgroupId,
    ring: DeliveryClass,
    at: Rank,
    history: &[Record],
    sent: &BTreeMap<Rank, usize>,
) -> Result<(), Finding> {
    for (sender, sent) in sent {
        let of_sender = history
            .iter()
            .filter(|record| record.number > 0 && record.sender == *sender);
        let delivered = of_sender.count();
        if delivered != *sent {
            return Err((
                "L2",
                format!(
                    "{delivered} of {sent} of {sender} delivered at {at} ({ring:?}, subgroup \
                     {subgroup})"
                ),
            ));
        }
    }
    Ok(())
}

/// L8: what has been delivered, the layer above has been told.
pub fn told(untold: &BTreeSet<SubgroupId>) -> Result<(), Finding> {
    match untold.is_empty() {
        true => Ok(()),
        false => Err((
            "L8",
            format!("batches without an end in subgroups {untold:?}"),
        )),
    }
}

/// A3 of lanes: all who go on end them alike.
pub fn ends_agree(
    at: Rank,
    subgroup: SubgroupId,
    epoch: u64,
    [mine, others]: [(u64, u64); 2],
) -> Result<(), Finding> {
    if mine == others {
        return Ok(());
    }
    let what = format!(
        "lane {epoch} of subgroup {subgroup} ended with (position, digest) {mine:?} at {at}, with \
         {others:?} elsewhere"
    );
    Err(("A3", what))
}

/// L2 for those who leave: every other member is told, once.
pub fn farewells(at: Rank, history: &[Record], leavers: &[Rank]) -> Result<(), Finding> {
    let mut told: Vec<Rank> = history
        .iter()
        .filter(|record| record.number == 0)
        .map(|record| record.sender)
        .collect();
    told.sort_unstable();
    if told == leavers {
        return Ok(());
    }
    Err((
        "L2",
        format!("{leavers:?} have left, {at} was told of {told:?}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(position: u64, sender: u16, number: u64) -> Record {
        Record {
            position,
            sender: Rank(sender),
            number,
            len: 3,
        }
    }

    #[test]
    fn each_check_can_fail() {
        let sent = [
            SentMessage { number: 1, len: 3 },
            SentMessage { number: 2, len: 4 },
        ];
        let mut next = BTreeMap::new();
        assert!(integrity_and_fifo(&record(0, 0, 1), &sent, &mut next).is_ok());
        let id = |result: Result<(), Finding>| result.unwrap_err().0;
        assert_eq!(
            id(integrity_and_fifo(&record(1, 0, 2), &sent, &mut next)),
            "A1",
            "length"
        );
        assert_eq!(
            id(integrity_and_fifo(&record(2, 0, 3), &sent, &mut next)),
            "A1",
            "never sent"
        );
        assert_eq!(
            id(integrity_and_fifo(&record(3, 0, 3), &sent, &mut next)),
            "A2",
            "twice"
        );
        let (a, b) = (
            [record(0, 0, 1), record(1, 1, 1)],
            [record(0, 0, 1), record(2, 0, 2)],
        );
        assert!(total_order(&[(Rank(0), &a), (Rank(1), &a[..1])]).is_ok());
        assert_eq!(id(total_order(&[(Rank(0), &a), (Rank(1), &b)])), "A3");
        assert_eq!(
            id(positions_rise(&[record(1, 0, 1), record(1, 1, 1)])),
            "A5"
        );
        assert_eq!(
            id(positions_rise(&[record(1, 0, 1), record(0, 1, 0)])),
            "A5",
            "a farewell"
        );
        assert_eq!(
            id(all_delivered(
                SubgroupId(0),
                DeliveryClass::Ordered,
                Rank(0),
                &a,
                &[(Rank(1), 2)].into()
            )),
            "L2"
        );
        let ends = [(1, 2), (1, 3)];
        assert_eq!(id(ends_agree(Rank(0), SubgroupId(0), 1, ends)), "A3");
    }
}
