use super::*;

use spindle_dds_transport::sim::Rng;

use crate::storage::{Donor, DonorReply, HistoryLimits, SampleHistory, Snapshot};

fn snapshot(of: &[Record]) -> Snapshot {
    let mut history = SampleHistory::default();
    for record in of {
        history.put([1; 16], record.clone(), &HistoryLimits::default(), 0);
    }
    history.snapshot()
}

fn part(of: impl IntoIterator<Item = Record>) -> Vec<u8> {
    of.into_iter().flat_map(|it| it.bytes().to_vec()).collect()
}

#[test]
fn parts_that_break_the_protocol_are_refused() {
    let record = |at| Record::test(1, at, 1, at);
    let mut joiner = Joiner::new([vec![7]]);
    assert_eq!(joiner.part(7, &part([record(1)])), Ok(()), "not asked yet");
    joiner.asks();
    assert_eq!(joiner.part(8, &[1, 2, 3]), Ok(()), "another donor");
    assert_eq!(joiner.part(7, &[]), Err(PartError::Malformed));
    assert_eq!(joiner.part(7, &[1, 2, 3]), Err(PartError::Malformed));
    let falls = part([record(2), record(1)]);
    assert_eq!(joiner.part(7, &falls), Err(PartError::OutOfOrder));
    assert_eq!(joiner.part(7, &part([record(1)])), Ok(()));
    assert_eq!(
        joiner.part(7, &part([record(1)])),
        Err(PartError::OutOfOrder)
    );
    assert_eq!(joiner.part(7, &part([record(2)])), Ok(()));
    assert_eq!(
        joiner.part(7, &part([record(3)])),
        Err(PartError::NotGranted)
    );
    assert_eq!(joiner.asks(), []);
    joiner.next_record().unwrap();
    assert_eq!(joiner.asks(), [JoinerAsk::More { donor: 7 }]);
    assert_eq!(joiner.part(7, &part([record(3)])), Ok(()));
    assert_eq!(joiner.progress().records, 3);
}

#[test]
fn a_source_without_a_donor_is_lost() {
    let mut joiner = Joiner::new([vec![1], vec![]]);
    joiner.asks();
    assert!(joiner.part(1, &part([Record::test(1, 1, 1, 1)])).is_ok());
    joiner.lost(1);
    assert_eq!(joiner.state(), JoinerState::Pulling, "what came is read");
    assert!(joiner.next_record().is_some());
    assert_eq!(joiner.state(), JoinerState::Done { lost_sources: 2 });
    assert!(!joiner.needs(1));
}

/// Donors that are lost at any time, messages that take any time: the reader gets all records of a
/// source that has a donor to the end, by position, once; and no more is on its way than granted.
#[test]
fn a_transfer_is_whole_whatever_happens() {
    for seed in 0..500 {
        whole(&mut Rng::new(seed), seed);
    }
}

fn whole(rng: &mut Rng, seed: u64) {
    // Source s has donors 10 s to 10 s + 2, which keep the same.
    let sources = 1 + rng.below(3) as u64;
    let mut all: Vec<Vec<Record>> = vec![Vec::new(); sources as usize];
    for position in 1..rng.below(200) as u64 {
        let source = rng.below(sources as usize);
        let meta = Record::test(source as u8, position, 1, position).meta();
        let long = vec![0; rng.below(200_000)];
        all[source].push(Record::new(&meta, &long));
    }
    let names = |source: u64| (0..3).map(move |at| 10 * source + at);
    let mut donors = BTreeMap::new();
    for (source, records) in (0..).zip(&all) {
        for name in names(source) {
            let mut donor = Donor::default();
            donor.pin((), snapshot(records), 0);
            donors.insert(name, donor);
        }
    }
    let mut joiner = Joiner::new((0..sources).map(|source| names(source).collect::<Vec<_>>()));
    let mut to_donors: BTreeMap<u64, VecDeque<JoinerAsk<u64>>> = BTreeMap::new();
    let mut to_joiner: BTreeMap<u64, VecDeque<DonorReply>> = BTreeMap::new();
    let mut got = Vec::new();
    let mut lives: BTreeMap<u64, u32> = BTreeMap::new();
    for turn in 0.. {
        assert!(turn < 100_000, "seed {seed}: it does not end");
        for ask in joiner.asks() {
            let (JoinerAsk::Ask { donor, .. } | JoinerAsk::More { donor }) = ask;
            to_donors.entry(donor).or_default().push_back(ask);
        }
        let unread: usize = joiner.sources.iter().map(|it| it.unread.len()).sum();
        assert!(unread <= 2 * joiner.sources.len(), "seed {seed}");
        let name = 10 * rng.below(sources as usize) as u64 + rng.below(3) as u64;
        match rng.below(4) {
            0 => {
                let donor = donors.get_mut(&name).expect("a donor");
                let replies = match to_donors.entry(name).or_default().pop_front() {
                    Some(JoinerAsk::Ask { from, parts, .. }) => {
                        donor.ask(&(), BTreeMap::new(), from, parts, 0)
                    }
                    Some(JoinerAsk::More { .. }) => donor.more(&(), 0),
                    None => Vec::new(),
                };
                to_joiner.entry(name).or_default().extend(replies);
            }
            1 => match to_joiner.entry(name).or_default().pop_front() {
                Some(DonorReply::Part(bytes)) => {
                    joiner.part(name, &bytes).expect("granted and in order");
                }
                Some(DonorReply::End { lasts }) => joiner.end(name, lasts),
                Some(DonorReply::Unknown) => joiner.lost(name),
                None => {}
            },
            2 => got.extend(joiner.next_record()),
            _ => {
                let lost = lives.entry(name / 10).or_default();
                if *lost < 2 && rng.below(30) == 0 && joiner.needs(name) {
                    *lost += 1;
                    joiner.lost(name);
                    to_donors.remove(&name);
                    to_joiner.remove(&name);
                }
            }
        }
        if joiner.state() != JoinerState::Pulling {
            break;
        }
    }
    assert_eq!(joiner.state(), JoinerState::Done { lost_sources: 0 });
    let positions: Vec<u64> = got.iter().map(Record::position).collect();
    let mut model: Vec<u64> = all.iter().flatten().map(Record::position).collect();
    model.sort_unstable();
    assert_eq!(positions, model, "seed {seed}");
}
