//! Damage that another log mends.

use spindle_dds_transport::sim::Rng;

use super::*;

const OTHER: LogId = LogId(0x9abc);

/// Records at these positions, in several segments, synced after each third one.
fn log_of(id: LogId, positions: impl IntoIterator<Item = u64>) -> SimDisk {
    let disk = SimDisk::default();
    let log = TopicLog::create(disk.clone(), id, &head()).unwrap();
    let mut log = log.with_segment_bytes(1024);
    let lineage = LogState {
        id,
        lineage: 5,
        ..LogState::default()
    };
    log.record(lineage.clone()).unwrap();
    for (count, position) in positions.into_iter().enumerate() {
        append(&mut log, [position]);
        if count % 3 == 2 {
            log.sync().unwrap();
        }
    }
    log.record(lineage).unwrap();
    disk
}

/// Positions are skipped, as in subgroups with other topics.
fn some(end: u64) -> impl Iterator<Item = u64> {
    (1..end).filter(|it| it % 4 != 0)
}

fn mend(disk: &SimDisk, other: &SimDisk) -> Result<Vec<Mended>, MendError> {
    let (mut other, _) = TopicLog::open_read_only(other.clone()).unwrap().unwrap();
    TopicLog::mend(&mut disk.clone(), &mut other)
}

/// Its records, if it is sound.
fn records(disk: &SimDisk) -> Result<Vec<LoggedRecord>, LogError> {
    let (mut log, _) = TopicLog::open_read_only(disk.clone())?.unwrap();
    match log.verify(&mut |_| {})?.damaged.into_iter().next() {
        Some(error) => Err(error),
        None => log.read(0, usize::MAX),
    }
}

fn segments(disk: &SimDisk) -> Vec<String> {
    let contents = disk.contents().into_keys();
    contents.filter(|it| it.ends_with(".segment")).collect()
}

/// Of each byte of each segment but the last one and of the head, a damage is mended; the damaged file is
/// kept. The other log has other segments.
#[test]
fn each_damaged_byte_is_mended() {
    let disk = log_of(ID, some(60));
    let other = log_of(OTHER, some(90).filter(|it| *it != 61));
    // Its segments begin elsewhere.
    let expected = records(&disk).unwrap();
    let names = segments(&disk);
    assert!(names.len() > 4, "{names:?}");
    let (_, closed) = names.split_last().unwrap();
    for file in closed.iter().map(String::as_str).chain(["head"]) {
        let len = disk.contents()[file].len() as u64;
        for byte in 0..len {
            let copy = disk.copy();
            assert!(copy.flip(file, byte, byte as u32 % 8));
            let damaged = copy.contents()[file].clone();
            records(&copy).expect_err("it is damaged");
            let mended = mend(&copy, &other).unwrap();
            assert_eq!(mended.len(), 1, "{file} {byte}: {mended:?}");
            assert_eq!(mended[0].file, file);
            assert_eq!(copy.contents()[&mended[0].kept], damaged);
            assert_eq!(records(&copy).unwrap(), expected, "{file} {byte}");
            assert_eq!(mend(&copy, &other).unwrap(), [], "{file} {byte}");
        }
    }
}

/// In the last segment, what is before a sound record is mended, what is behind the last one is not.
#[test]
fn the_last_segment_is_mended_up_to_its_last_record() {
    let disk = log_of(ID, some(60));
    let other = log_of(OTHER, some(90));
    let expected = records(&disk).unwrap();
    let file = segments(&disk).pop().unwrap();
    let len = disk.contents()[&file].len() as u64;
    let last = expected.last().unwrap().record.payload().len() as u64 + 96;
    for byte in 0..len {
        let copy = disk.copy();
        copy.flip(&file, byte, 3);
        records(&copy).expect_err("it is damaged");
        let mended = mend(&copy, &other);
        if byte < len - last {
            mended.unwrap();
            assert_eq!(records(&copy).unwrap(), expected, "{byte}");
        } else {
            assert!(matches!(mended, Err(MendError::Unknown { .. })), "{byte}");
            assert_eq!(segments(&copy), segments(&disk));
        }
    }
}

/// Of a torn tail nothing is mended: opening cuts it.
#[test]
fn a_torn_tail_stays() {
    let disk = log_of(ID, some(60));
    let other = log_of(OTHER, some(90));
    let (mut log, _) = opened(&disk);
    append(&mut log, [61]);
    let file = segments(&disk).pop().unwrap();
    let len = disk.contents()[&file].len() as u64;
    disk.flip(&file, len - 1, 0);
    assert_eq!(mend(&disk, &other).unwrap(), []);
    let (mut log, report) = opened(&disk);
    assert!(report.cut.is_some());
    assert_eq!(positions(&mut log), some(60).collect::<Vec<_>>());
}

#[test]
fn several_segments_and_a_truncated_one_are_mended() {
    let disk = log_of(ID, some(60));
    let other = log_of(OTHER, some(90));
    let expected = records(&disk).unwrap();
    let names = segments(&disk);
    let bytes = disk.contents();
    // Heads of neighbours, most of one, and all of another.
    disk.flip(&names[0], 40, 1);
    disk.flip(&names[1], 40, 1);
    disk.put(&names[2], bytes[&names[2]][..300].to_vec());
    disk.put(&names[3], Vec::new());
    disk.put("head", Vec::new());
    let mended = mend(&disk, &other).unwrap();
    let files: Vec<_> = mended.iter().map(|it| it.file.as_str()).collect();
    assert_eq!(files, ["head", &names[0], &names[1], &names[2], &names[3]]);
    assert_eq!(mended[1].positions, None);
    assert_eq!(
        mended[4].positions.map(|it| it.0),
        u64::from_str_radix(&names[3][..16], 16).ok()
    );
    assert_eq!(records(&disk).unwrap(), expected);
    // A second damage of a file is kept beside the first one.
    disk.flip(&names[0], 100, 1);
    let mended = mend(&disk, &other).unwrap();
    assert_eq!(mended[0].kept, format!("{}.damaged2", names[0]));
}

/// A mending that a crash interrupts is done again.
#[test]
fn an_interrupted_mending_is_done_again() {
    let other = log_of(OTHER, some(90));
    let sound = log_of(ID, some(60));
    let expected = records(&sound).unwrap();
    let file = segments(&sound).swap_remove(1);
    let mut failed = 0;
    for syncs in 0..4 {
        for choice in 0..27 {
            let disk = sound.copy();
            disk.flip(&file, 200, 1);
            disk.fail_sync_after(syncs);
            failed += u32::from(mend(&disk, &other).is_err());
            disk.crash(&mut Rng::new(syncs * 27 + choice));
            mend(&disk, &other).unwrap();
            assert_eq!(records(&disk).unwrap(), expected, "{syncs} {choice}");
        }
    }
    assert_eq!(failed, 81);
}

/// What the other log does not have, or has otherwise, is not put in.
#[test]
fn what_does_not_follow_is_refused() {
    let refused = |other: &SimDisk| {
        let disk = log_of(ID, some(60));
        let file = segments(&disk).swap_remove(1);
        disk.flip(&file, 200, 1);
        let before = disk.contents();
        let error = mend(&disk, other).unwrap_err();
        assert_eq!(disk.contents(), before);
        error.to_string()
    };
    // It ends before, lacks records, or has others at the same positions.
    let short = refused(&log_of(OTHER, some(8)));
    assert!(short.contains("does not have what was between"), "{short}");
    let lacking = refused(&log_of(OTHER, some(90).filter(|it| *it != 2)));
    assert!(lacking.contains("differ at position"), "{lacking}");
    let stranger = SimDisk::default();
    let mut log = TopicLog::create(stranger.clone(), OTHER, &head()).unwrap();
    let mut state = log.state().clone();
    state.lineage = 6;
    log.record(state).unwrap();
    assert_eq!(refused(&stranger), MendError::Lineage.to_string());
    // The superblock has what no other log knows.
    let disk = log_of(ID, some(60));
    disk.flip("superblock", 20, 1);
    let error = mend(&disk, &log_of(OTHER, some(60))).unwrap_err();
    assert!(
        matches!(error, MendError::Log(LogError::Damaged { .. })),
        "{error}"
    );
}
