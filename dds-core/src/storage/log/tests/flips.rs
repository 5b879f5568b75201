//! A byte that is not as it was written.

use spindle_dds_transport::sim::Rng;

use super::*;

/// A log of several segments, and its records.
fn full_log() -> (SimDisk, Vec<LoggedRecord>) {
    let disk = SimDisk::default();
    let mut log = created(&disk);
    for round in 0..60 {
        append(&mut log, (0..3).map(|it| round * 10 + it));
        log.sync().unwrap();
    }
    let records = log.read(0, usize::MAX).unwrap();
    (disk, records)
}

#[test]
fn a_changed_byte_never_gives_a_wrong_record() {
    let (disk, records) = full_log();
    let files: Vec<(String, Vec<u8>)> = disk.contents().into_iter().collect();
    let bytes: usize = files.iter().map(|(_, it)| it.len()).sum();
    let mut rng = Rng::new(7);
    let (mut refused, mut cut, mut found_later) = (0, 0, 0);
    for _ in 0..1000 {
        let mut at = rng.below(bytes);
        let file = files.iter().find(|(_, file)| {
            let is_in = at < file.len();
            at -= if is_in { 0 } else { file.len() };
            is_in
        });
        let (file, contents) = file.unwrap();
        let mut contents = contents.clone();
        contents[at] ^= 1 + rng.below(255) as u8;
        let disk = disk.copy();
        disk.put(file, contents);
        let (mut log, report) = match TopicLog::open(disk) {
            Ok(found) => found.unwrap(),
            Err(LogError::Damaged { file: damaged, .. }) => {
                refused += 1;
                assert_eq!(&damaged, file);
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        match log.read(0, usize::MAX) {
            Ok(read) => {
                // What was cut are the last records, of which nothing says that they were synced.
                assert_eq!(read, records[..read.len()]);
                assert_eq!(report.cut.is_some(), read.len() < records.len());
                assert!(records.len() - read.len() <= 3);
                assert!(report.cut.is_none_or(|it| it.0 == *file));
                cut += 1;
            }
            Err(LogError::Damaged { file: damaged, .. }) => {
                assert_eq!(&damaged, file);
                assert_eq!(report.cut, None);
                found_later += 1;
            }
            Err(error) => panic!("{error}"),
        }
        let verified = log.verify(&mut |_| ()).unwrap();
        assert_eq!(verified.damaged.is_empty(), log.read(0, usize::MAX).is_ok());
    }
    assert!(
        refused > 50 && cut > 3 && found_later > 500,
        "{refused} {cut} {found_later}"
    );
}

#[test]
fn damage_before_what_was_synced_is_no_torn_tail() {
    let (disk, _) = full_log();
    let (file, bytes) = disk
        .contents()
        .into_iter()
        .rfind(|(it, _)| it.ends_with("segment"))
        .unwrap();
    // The payload of the first record of the last segment.
    assert!(disk.flip(&file, 96 + 96, 3));
    let error = TopicLog::open(disk.clone()).unwrap_err();
    let expected = format!("{file} is damaged at byte 96: the CRC of a record does not match");
    assert_eq!(error.to_string(), expected);
    assert!(disk.flip(&file, 96 + 96, 3));
    assert_eq!(disk.contents()[&file], bytes);
    opened(&disk);
}

#[test]
fn what_the_superblock_knows_is_not_cut() {
    let disk = SimDisk::default();
    let mut log = created(&disk);
    append(&mut log, 0..3);
    let state = log.state().clone();
    log.record(state).unwrap();
    let (file, bytes) = disk
        .contents()
        .into_iter()
        .rfind(|(it, _)| it.ends_with("segment"))
        .unwrap();
    assert!(disk.flip(&file, bytes.len() as u64 - 1, 0));
    let error = TopicLog::open(disk).unwrap_err();
    let LogError::Damaged { what, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(what, "records before position 3 are missing");
}

#[test]
fn files_that_are_missing_are_noticed() {
    let (disk, _) = full_log();
    let files: Vec<String> = disk.contents().into_keys().collect();
    let last = files.iter().rfind(|it| it.ends_with("segment")).unwrap();
    let others = files.iter().filter(|it| *it != last);
    for file in others {
        let disk = disk.copy();
        disk.clone().remove(file).unwrap();
        let error = TopicLog::open(disk).unwrap_err();
        assert!(matches!(error, LogError::Damaged { .. }), "{file}: {error}");
    }
    disk.clone().remove(last).unwrap();
    opened(&disk);
}

#[test]
fn a_record_that_is_missing_or_was_moved_is_noticed() {
    let (disk, records) = full_log();
    let segments = disk.contents().into_iter();
    let segments: Vec<_> = segments.filter(|(it, _)| it.ends_with("segment")).collect();
    // The last segment is read when the log is opened, the others later.
    for (file, bytes) in [&segments[0], &segments[segments.len() - 1]] {
        let first = u64::from_str_radix(&file[..16], 16).unwrap();
        let at = records.iter().position(|it| it.record.position() == first);
        let ends: Vec<usize> = records[at.unwrap()..][..3]
            .iter()
            .scan(96, |end, it| {
                *end += 96 + it.record.payload().len();
                Some(*end)
            })
            .collect();
        let missing = [&bytes[..ends[0]], &bytes[ends[1]..]].concat();
        let moved = [
            &bytes[..ends[0]],
            &bytes[ends[1]..ends[2]],
            &bytes[ends[0]..],
        ]
        .concat();
        for changed in [missing, moved] {
            let disk = disk.copy();
            disk.put(file, changed);
            let read = TopicLog::open(disk).and_then(|opened| {
                let (mut log, report) = opened.unwrap();
                assert_eq!(report, OpenReport::default());
                log.read(0, usize::MAX)
            });
            let error = read.unwrap_err();
            let expected = format!(
                "{file} is damaged at byte {}: it does not follow the record before",
                ends[0]
            );
            assert_eq!(error.to_string(), expected);
        }
    }
}

#[test]
fn a_segment_that_ends_too_early_is_noticed() {
    let (disk, records) = full_log();
    let (file, bytes) = disk.contents().into_iter().next().unwrap();
    let end = 96 + 96 + records[0].record.payload().len();
    disk.put(&file, bytes[..end].to_vec());
    let (mut log, _) = opened(&disk);
    let expected = format!("{file} is damaged at byte {end}: records at its end are missing");
    let error =
        |result: Result<(), LogError>| assert_eq!(result.unwrap_err().to_string(), expected);
    error(log.read(0, usize::MAX).map(drop));
    error(log.chain_before(2).map(drop));
    error(log.step_back(log.appended(), 170).map(drop));
    let mut compaction = Compaction::of_live(&log, 100, Vec::new());
    error(compaction.run(&mut log, &|record, _| record.meta().key));
    error(Err(log.verify(&mut |_| ()).unwrap().damaged.remove(0)));
}

#[test]
fn a_segment_that_becomes_the_last_one_is_read() {
    let (disk, records) = full_log();
    let segments = disk.contents().into_iter();
    let mut segments = segments.filter(|(it, _)| it.ends_with("segment"));
    let (file, mut bytes) = segments.next().unwrap();
    let end = bytes.len();
    bytes.extend([0; 7]);
    disk.put(&file, bytes);
    let (mut log, _) = opened(&disk);
    let second = u64::from_str_radix(&segments.next().unwrap().0[..16], 16).unwrap();
    let error = log.truncate(second).unwrap_err();
    let expected = format!("{file} is damaged at byte {end}: no whole record");
    assert_eq!(error.to_string(), expected);
    let left = log.read(second, usize::MAX).unwrap();
    let expected = records.iter().filter(|it| it.record.position() >= second);
    assert!(left.iter().eq(expected));
}
