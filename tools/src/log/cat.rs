//! `spindle log cat`.

use std::io::{BufWriter, Write, stdout};

use spindle_dds::log::LogReader;

use super::failure::Failure;
use super::logs;
use super::options::CatOptions;
use super::sample::Line;

/// Prints records, a line of JSON each.
pub(super) fn run(options: &CatOptions) -> Result<(), Failure> {
    let place = logs::one(&options.directory, &options.topic, options.domain)?;
    let mut log = LogReader::open(&place.path).map_err(Failure::log(&place.path))?;
    let ty = match log.data_type() {
        Ok(Some(ty)) => Some(ty),
        Ok(None) => {
            eprintln!(
                "the log does not have the type of its samples: they are shown in hexadecimal digits"
            );
            None
        }
        Err(error) => {
            eprintln!("{error}: samples are shown in hexadecimal digits");
            None
        }
    };
    let mut out = BufWriter::new(stdout().lock());
    for record in log.records(options.from) {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                // What comes before the damage stays on the output.
                out.flush().map_err(Failure::Output)?;
                return Err(Failure::log(&place.path)(error));
            }
        };
        let line = serde_json::to_string(&Line::new(&record, ty.as_ref()))?;
        writeln!(out, "{line}").map_err(Failure::Output)?;
    }
    out.flush().map_err(Failure::Output)
}
