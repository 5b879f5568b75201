//! The recording: lines of `unix_time,beast_frame_hex`, gzipped (see `data/NOTICE`).

use std::fs::File;
use std::io::{BufRead, BufReader};

use adsb_deku::DF;
use adsb_deku::adsb::ADSB;
use adsb_deku::deku::DekuContainerRead;
use flate2::read::GzDecoder;

use crate::Result;

/// A received frame.
pub(crate) struct Frame {
    pub(crate) received_at_ns: i64,
    message: Vec<u8>,
}

pub(crate) fn read() -> Result<Vec<Frame>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/data/long_flight_60k.csv.gz");
    let lines = BufReader::new(GzDecoder::new(File::open(path)?)).lines();
    lines.map(|line| parse(&line?)).collect()
}

fn parse(line: &str) -> Result<Frame> {
    let (seconds, frame) = line.split_once(',').ok_or("a line has two columns")?;
    // 1a, the type, a clock of 6 bytes and the signal's strength come before the message.
    let message = frame.get(18..).ok_or("a frame is too short")?;
    let byte = |at| u8::from_str_radix(message.get(at..at + 2).unwrap_or_default(), 16);
    let bytes = (0..message.len()).step_by(2).map(byte);
    Ok(Frame {
        received_at_ns: (seconds.parse::<f64>()? * 1e9) as i64,
        message: bytes.collect::<std::result::Result<_, _>>()?,
    })
}

impl Frame {
    /// The ADS-B message in it; `None` if it holds another one, or is damaged.
    pub(crate) fn decode(&self) -> Option<ADSB> {
        // Other messages do not name their aircraft.
        if self.message.len() != 14 || self.message[0] >> 3 != 17 {
            return None;
        }
        let (_, frame) = adsb_deku::Frame::from_bytes((&self.message, 0)).ok()?;
        match frame.df {
            DF::ADSB(message) if frame.crc == 0 => Some(message),
            _ => None,
        }
    }
}
