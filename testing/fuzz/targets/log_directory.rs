//! Any bytes as the files of a log: those of a whole log, of which some are changed, cut, exchanged or
//! taken away, with and without their CRCs made right. What is read was written, or is refused.
#![no_main]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use spindle_dds_core::MessageKind;
use spindle_dds_core::storage::log::{Compaction, LogHead, LoggedRecord, SimDisk, TopicLog};
use spindle_dds_core::storage::{HistoryLimits, LogId, RecordMeta};

type Files = BTreeMap<String, Vec<u8>>;

const ID: LogId = LogId(7);
/// Bytes before the first record of a segment, and before the payload of a record.
const HEAD: usize = 96;
/// A tail may be repeated often.
const LEN_MAX: usize = 20_000;

static WHOLE: LazyLock<(Files, Vec<LoggedRecord>)> = LazyLock::new(|| {
    let disk = SimDisk::default();
    let head = LogHead {
        topic: "topic".to_owned(),
        ..LogHead::default()
    };
    let log = TopicLog::create(disk.clone(), ID, &head).expect("an empty disk");
    let mut log = log.with_segment_bytes(700);
    for position in 0..10 {
        let meta = RecordMeta {
            position,
            sequence: position,
            timestamp: 0,
            writer: [1; 16],
            key: [2; 16],
            kind: MessageKind::Data,
            encapsulation: 7,
        };
        let payload = vec![position as u8; position as usize * 9];
        log.append(1, 1, &[(meta, &payload)]).expect("room");
        if position % 3 == 0 {
            log.sync().expect("a disk that works");
        }
    }
    let records = log.read(0, usize::MAX).expect("a whole log");
    (disk.contents(), records)
});

fuzz_target!(|bytes: &[u8]| {
    let (whole, records) = &*WHOLE;
    let Some((mode, steps)) = bytes.split_first() else {
        return;
    };
    let are_made_right = mode & 1 == 1;
    let mut files = match mode & 2 {
        0 => whole.clone(),
        _ => Files::new(),
    };
    change(&mut files, steps);
    if are_made_right {
        files
            .iter_mut()
            .for_each(|(name, bytes)| make_right(name, bytes));
    }
    // Without right CRCs, only what was written is read.
    let records = (!are_made_right).then_some(&records[..]);
    let disk = SimDisk::default();
    for (name, bytes) in files {
        disk.put(&name, bytes);
    }
    let before = disk.contents();
    use_log(TopicLog::open_read_only(disk.clone()), records);
    assert_eq!(disk.contents(), before);
    use_log(TopicLog::open(disk.clone()), records);
    // What was made good stays good.
    if let Ok(Some((_, report))) = TopicLog::open(disk) {
        assert_eq!(report, Default::default());
    }
});

fn change(files: &mut Files, mut steps: &[u8]) {
    let names: Vec<String> = WHOLE.0.keys().cloned().collect();
    while let [step, at, value, rest @ ..] = steps {
        steps = rest;
        let name = &names[usize::from(*step) % names.len()];
        let file = files.entry(name.clone()).or_default();
        file.truncate(LEN_MAX);
        let at = file.len() * usize::from(*at) / 256;
        match step >> 5 {
            0 => file.truncate(at),
            1 | 2 => {
                if let Some(byte) = file.get_mut(at) {
                    *byte ^= value;
                }
            }
            3 => {
                let taken = &steps[..usize::from(*value).min(steps.len())];
                file.splice(
                    at..(at + taken.len()).min(file.len()),
                    taken.iter().copied(),
                );
                steps = &steps[taken.len()..];
            }
            4 => {
                let tail = file.split_off(at);
                file.extend(
                    tail.iter()
                        .cycle()
                        .take(tail.len() * usize::from(value % 4)),
                );
            }
            5 => {
                files.remove(name);
            }
            6 => {
                let file = file.clone();
                let other = &names[usize::from(*value) % names.len()];
                files.insert(other.clone(), file);
            }
            _ => {
                let file = file.clone();
                files.insert(format!("{value:016x}.segment"), file);
            }
        }
    }
}

/// Gives a file the CRCs that it would have.
fn make_right(name: &str, file: &mut [u8]) {
    let salted = |bytes: &[&[u8]]| {
        let salt = crc32c::crc32c(&ID.0.to_le_bytes());
        bytes
            .iter()
            .fold(salt, |crc, part| crc32c::crc32c_append(crc, part))
            .to_le_bytes()
    };
    if !name.ends_with(".segment") {
        if let Some((framed, crc)) = file.split_last_chunk_mut::<4>() {
            *crc = crc32c::crc32c(framed).to_le_bytes();
        }
        return;
    }
    let Some((head, mut rest)) = file.split_first_chunk_mut::<HEAD>() else {
        return;
    };
    let crc = salted(&[&head[..12], &head[16..]]);
    head[12..16].copy_from_slice(&crc);
    while let Some((head, after)) = rest.split_first_chunk_mut::<HEAD>() {
        let len = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        let len = len.min(after.len());
        let (payload, after) = after.split_at_mut(len);
        let mut crc = crc32c::crc32c(&head[4..8]);
        crc = crc32c::crc32c_append(crc, &head[24..]);
        crc = crc32c::crc32c_append(crc, &[head[1] & 0x7f, head[2], head[3]]);
        crc = crc32c::crc32c_append(crc, payload);
        head[8..12].copy_from_slice(&crc.to_le_bytes());
        let crc = salted(&[&head[..16], &head[20..]]);
        head[16..20].copy_from_slice(&crc);
        rest = after;
    }
}

fn use_log<E>(
    opened: Result<
        Option<(
            TopicLog<SimDisk>,
            spindle_dds_core::storage::log::OpenReport,
        )>,
        E,
    >,
    whole: Option<&[LoggedRecord]>,
) {
    let Ok(Some((mut log, _))) = opened else {
        return;
    };
    let verified = log.verify(&mut |_| ()).expect("the disk works");
    let read = log.read(0, usize::MAX);
    if verified.damaged.is_empty() {
        let read = read.as_ref().expect("a log without damage is read");
        assert_eq!(read.len() as u64, verified.records);
    }
    if let (Ok(read), Some(whole)) = (read, whole) {
        assert!(read.iter().all(|it| whole.contains(it)));
    }
    for position in [0, 1, 5, 9, 10, u64::MAX] {
        let _ = log.read(position, 100);
        let _ = log.chain_before(position);
        let _ = log.step_back(position, 3);
    }
    let end = log.appended();
    let limits = HistoryLimits {
        depth: Some(1),
        ..HistoryLimits::default()
    };
    let mut compaction = Compaction::new(&log, end, limits, 1);
    let _ = compaction.run(&mut log, &|record, _| record.meta().key);
    let _ = log.truncate(end / 2);
    let _ = log.truncate(0);
}
