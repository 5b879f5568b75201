//! A recording of Mode S frames: lines of `unix_time,beast_frame_hex`, gzipped or not.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;

/// One received frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    /// When it was received, in nanoseconds since the Unix epoch.
    pub(crate) received_at_ns: i64,
    bytes: [u8; LONG_BYTES],
    len: u8,
}

impl Frame {
    /// The message without the receiver's envelope: 7 or 14 bytes.
    pub(crate) fn message(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordingError {
    #[error("cannot read the recording {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("the recording {} is malformed at line {line}: {what}", path.display())]
    Malformed {
        path: PathBuf,
        line: usize,
        what: &'static str,
    },
    #[error("the recording {} has no frames", path.display())]
    Empty { path: PathBuf },
}

/// Reads the first `frames_max` frames of a recording.
pub(crate) fn read(path: &Path, frames_max: usize) -> Result<Vec<Frame>, RecordingError> {
    let unreadable = |source| RecordingError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(unreadable)?;
    let mut file = BufReader::new(file);
    let zipped = file
        .fill_buf()
        .map_err(unreadable)?
        .starts_with(&GZIP_MAGIC);
    let text: Box<dyn Read> = if zipped {
        Box::new(GzDecoder::new(file))
    } else {
        Box::new(file)
    };
    let mut frames = Vec::new();
    for (index, line) in BufReader::new(text).lines().take(frames_max).enumerate() {
        let frame = parse(&line.map_err(unreadable)?);
        frames.push(frame.map_err(|what| RecordingError::Malformed {
            path: path.to_owned(),
            line: index + 1,
            what,
        })?);
    }
    if frames.is_empty() && frames_max > 0 {
        return Err(RecordingError::Empty {
            path: path.to_owned(),
        });
    }
    Ok(frames)
}

/// One line.
fn parse(line: &str) -> Result<Frame, &'static str> {
    let (time, beast) = line
        .trim_end()
        .split_once(',')
        .ok_or("a line is `unix_time,beast_frame_hex`")?;
    let received_at_ns = nanoseconds(time).ok_or("the time is not a decimal number")?;
    let envelope = beast.get(..ENVELOPE_HEX).ok_or("the frame is too short")?;
    let message = &beast[ENVELOPE_HEX..];
    let len = match &envelope[..4] {
        "1a32" => SHORT_BYTES,
        "1a33" => LONG_BYTES,
        _ => return Err("the frame is not a Beast frame of type 32 or 33"),
    };
    if message.len() != 2 * len {
        return Err("the frame's length does not fit its type");
    }
    let mut bytes = [0; LONG_BYTES];
    for (byte, digits) in bytes.iter_mut().zip(message.as_bytes().chunks_exact(2)) {
        let digits = std::str::from_utf8(digits).unwrap_or_default();
        *byte = u8::from_str_radix(digits, 16).map_err(|_| "the frame is not hexadecimal")?;
    }
    Ok(Frame {
        received_at_ns,
        bytes,
        len: len as u8,
    })
}

/// Of `seconds.fraction`, without the rounding of floating point.
fn nanoseconds(time: &str) -> Option<i64> {
    let (seconds, fraction) = time.split_once('.').unwrap_or((time, ""));
    let digits = fraction.get(..fraction.len().min(9))?;
    let fraction = match digits {
        "" => 0,
        digits => digits.parse::<u32>().ok()? * 10_u32.pow(9 - digits.len() as u32),
    };
    let seconds: i64 = seconds.parse().ok()?;
    seconds
        .checked_mul(1_000_000_000)?
        .checked_add(i64::from(fraction))
}

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const SHORT_BYTES: usize = 7;
const LONG_BYTES: usize = 14;
/// 1a, the type, a 6-byte clock and a signal byte, two digits each.
const ENVELOPE_HEX: usize = 2 * 9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_time_and_a_frame() {
        let frame = parse("1698140962.119813,1a32000023b1dda011210000bd6b441a").expect("a frame");
        assert_eq!(frame.received_at_ns, 1_698_140_962_119_813_000);
        assert_eq!(frame.message(), [0x21, 0, 0, 0xbd, 0x6b, 0x44, 0x1a]);
    }

    #[test]
    fn malformed_lines_are_refused() {
        for line in [
            "",
            "1.5",
            "x,1a32",
            "1,1a32000023b1dda011210000bd6b44",
            "1,1a99000023b1dda011210000bd6b441a",
            "1,1a32000023b1dda0é1210000bd6b44",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
