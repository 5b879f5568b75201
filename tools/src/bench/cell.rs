//! What is measured.

use std::fmt;

use clap::ValueEnum;
use serde::Serialize;

use super::options::{BenchOptions, Measure, Read, Wait};

/// The conditions under which contenders are compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Cell {
    pub(super) measure: Measure,
    pub(super) size: u64,
    pub(super) readers: u32,
    pub(super) read: Read,
    pub(super) wait: Wait,
}

impl Cell {
    /// All cells that the options ask for.
    pub(super) fn all(options: &BenchOptions) -> Vec<Self> {
        let mut all = Vec::new();
        for measure in &options.measure {
            let throughput = *measure == Measure::Throughput;
            let (readers, reads) = match throughput {
                true => (&options.readers[..], &options.read[..]),
                false => (&[1][..], &[Read::Touch][..]),
            };
            for wait in &options.wait {
                for read in reads {
                    for size in &options.sizes {
                        all.extend(readers.iter().map(|readers| Self {
                            measure: *measure,
                            size: *size,
                            readers: *readers,
                            read: *read,
                            wait: *wait,
                        }));
                    }
                }
            }
        }
        all
    }

    /// Whether the figure is a time, of which less is better.
    pub(super) fn is_time(&self) -> bool {
        self.measure != Measure::Throughput
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let readers = if self.readers == 1 {
            "reader"
        } else {
            "readers"
        };
        write!(
            f,
            "{}, {}, {} {readers}, {}, {}",
            word(self.measure),
            size(self.size),
            self.readers,
            word(self.read),
            word(self.wait),
        )
    }
}

/// The value as on the command line.
pub(super) fn word(value: impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

fn size(bytes: u64) -> String {
    match bytes {
        KI.. if bytes.is_multiple_of(KI * KI) => format!("{} MB", bytes / KI / KI),
        KI.. if bytes.is_multiple_of(KI) => format!("{} KB", bytes / KI),
        _ => format!("{bytes} B"),
    }
}

const KI: u64 = 1024;
