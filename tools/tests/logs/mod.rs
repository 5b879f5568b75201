//! Logs on disk, as participants write them.

use std::fs;
use std::path::Path;
use std::process::Command;

use spindle_dds::idl::Representation;
use spindle_dds::log::{
    Generation, HistoryLimits, LogHead, LogId, LogLock, LogPlace, LogState, MessageKind,
    RecordMeta, Roster,
};
use spindle_dds::qos::QosProvider;
use spindle_dds::testing::{create_log, type_in_head};
use spindle_dds::xtypes::DynamicType;
use tempfile::TempDir;

/// The type of the samples.
const READING: &str = "<types><struct name='Reading'>
  <member name='sensor' type='int32' key='true'/>
  <member name='place' type='string' stringMaxLength='16'/>
  <member name='value' type='float64'/>
</struct></types>";

const SEGMENT_BYTES: u64 = 2048;
/// 2026-11-28T12:00:00Z.
const NOON_NS: i64 = 1_795_867_200_000_000_000;

/// A log that is written: positions 1, 2, 3, 5, 6, 7, 9, ... of four instances.
#[derive(Clone)]
pub(crate) struct Written {
    pub(crate) name: &'static str,
    pub(crate) domain: u32,
    pub(crate) topic: &'static str,
    pub(crate) id: u128,
    pub(crate) lineage: u128,
    pub(crate) roster: &'static [u128],
    pub(crate) generation: u64,
    pub(crate) type_information: Vec<u8>,
    pub(crate) records: u64,
    /// No more bytes of each payload.
    pub(crate) payload_len: usize,
    /// The number of the record that is left out.
    pub(crate) skipped: u64,
    /// The number of the record that has another value.
    pub(crate) changed: u64,
}

impl Written {
    pub(crate) fn new(name: &'static str, id: u128, records: u64) -> Self {
        Self {
            name,
            domain: 0,
            topic: "Track",
            id,
            lineage: 0xa1,
            roster: &[0xa1, 0xb2, 0xc3],
            generation: 3,
            type_information: type_in_head(&reading()).expect("a type"),
            records,
            payload_len: usize::MAX,
            skipped: u64::MAX,
            changed: u64::MAX,
        }
    }
}

fn reading() -> DynamicType {
    let files = QosProvider::from_str(READING, "types.xml").expect("types");
    files.topic_type("Reading").expect("the type")
}

/// A directory with directories of logs.
pub(crate) struct Directory(TempDir);

impl Directory {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn make(&self, name: &str) {
        fs::create_dir_all(self.path().join(name)).expect("a directory");
    }

    pub(crate) fn exists(&self, file: &str) -> bool {
        self.path().join(file).exists()
    }

    /// Runs `spindle` here.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        spindle(self.path(), arguments)
    }

    /// Does something while a participant has the logs of a domain.
    pub(crate) fn in_use<T>(&self, name: &str, done: impl FnOnce() -> T) -> T {
        let lock = LogLock::acquire(&self.path().join(name)).expect("a lock");
        let _lock = lock.expect("no process has it");
        done()
    }

    /// Changes a bit.
    pub(crate) fn flip(&self, file: &str, byte: u64) {
        let path = self.path().join(file);
        let mut bytes = fs::read(&path).expect("a file");
        bytes[byte as usize] ^= 4;
        fs::write(path, bytes).expect("written");
    }

    /// Changes a bit of the last segment of a log.
    pub(crate) fn flip_last(&self, log: &str, byte: u64) {
        let (file, _) = self.segments(log).pop().expect("a segment");
        self.flip(&file, byte);
    }

    /// Appends to the last segment of a log, as a crash may leave it.
    pub(crate) fn append(&self, log: &str, bytes: &[u8]) {
        let (file, _) = self.segments(log).pop().expect("a segment");
        let path = self.path().join(file);
        let whole = [&fs::read(&path).expect("a file"), bytes].concat();
        fs::write(path, whole).expect("written");
    }

    /// The segments of a log, with their lengths.
    pub(crate) fn segments(&self, log: &str) -> Vec<(String, u64)> {
        let entries = fs::read_dir(self.path().join(log)).expect("a log");
        let mut segments: Vec<_> = entries
            .map(|entry| entry.expect("an entry"))
            .map(|entry| {
                let name = entry.file_name().into_string().expect("text");
                let len = entry.metadata().expect("a file").len();
                (format!("{log}/{name}"), len)
            })
            .filter(|(name, _)| name.ends_with(".segment"))
            .collect();
        segments.sort();
        segments
    }

    /// Writes a log.
    pub(crate) fn write(&self, written: &Written) {
        let directory = self.path().join(written.name);
        let place = LogPlace::new(&directory, written.domain, written.topic);
        let head = LogHead {
            domain: written.domain,
            topic: written.topic.to_owned(),
            type_name: "Reading".to_owned(),
            type_information: written.type_information.clone(),
            limits: HistoryLimits {
                depth: Some(1),
                ..HistoryLimits::default()
            },
        };
        let log = create_log(&place, log_id(written.id), &head).expect("a new log");
        let mut log = log.with_segment_bytes(SEGMENT_BYTES);
        let state = state(written);
        log.record(state.clone()).expect("recorded");
        let ty = reading();
        for number in (0..written.records).filter(|it| *it != written.skipped) {
            let kind = match number % 20 {
                18 => MessageKind::Dispose,
                19 => MessageKind::Unregister,
                _ => MessageKind::Data,
            };
            let mut data = ty.default_data().expect("data");
            let value = number as f64 / 4.0 + f64::from(u8::from(number == written.changed));
            data.set("sensor", ((number % 4) as i32).into())
                .expect("set");
            data.set("place", "deck \"B\"".into()).expect("set");
            data.set("value", value.into()).expect("set");
            let payload = match kind {
                MessageKind::Data => data.encode(Representation::Xcdr1),
                _ => data.encode_key(Representation::Xcdr1),
            };
            let mut payload = payload.expect("bytes");
            payload.truncate(written.payload_len);
            let meta = RecordMeta {
                position: number + number / 3 + 1,
                sequence: number / 2 + 1,
                timestamp: NOON_NS + number as i64 * 1_000_001,
                writer: [number as u8 % 2 + 1; 16],
                key: data.key_hash().0,
                kind,
                encapsulation: ty.encapsulation(Representation::Xcdr1).0,
            };
            let record = [(meta, payload.as_slice())];
            log.append(written.generation, 12, &record)
                .expect("appended");
        }
        log.record(state).expect("synced");
    }
}

/// An id that begins and ends with a number of two digits.
pub(crate) fn log_id(number: u128) -> LogId {
    LogId(number << 120 | number)
}

fn state(written: &Written) -> LogState {
    let generation = Generation {
        number: written.generation,
        view: 12,
        ..Generation::default()
    };
    LogState {
        id: log_id(written.id),
        lineage: log_id(written.lineage).0,
        confirmed: Some(Roster {
            generation,
            epoch: 12,
            logs: written.roster.iter().copied().map(log_id).collect(),
        }),
        proposed: Vec::new(),
    }
}

/// Runs `spindle` in a directory. Its exit code, what it complained of, and what it printed.
pub(crate) fn spindle(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(arguments)
        .current_dir(directory)
        .output()
        .expect("spindle starts");
    let code = output.status.code().expect("it ends by itself");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (said, printed) = (text(&output.stderr), text(&output.stdout));
    format!("exit {code}\n{said}{printed}")
}
