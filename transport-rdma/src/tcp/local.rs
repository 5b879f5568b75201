//! Groups within one process, for tests and benches.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use super::segment::TcpSegment;
use super::station::{Station, StationOptions};
use crate::peers::Rank;
use crate::segment::{SegmentKey, SegmentRequest};
use crate::shm::JoinError;
use crate::station_error::StationError;

/// Stations within this process, connected through 127.0.0.1, with ids from 1,
/// and a control segment with rows of these lengths in bytes: for tests and benches.
pub fn local_group(
    row_lens: &[usize],
    options: &StationOptions,
) -> Result<(Vec<Station>, Vec<TcpSegment>), StationError> {
    let ids: Vec<_> = (1..=row_lens.len() as u128).collect();
    let stations = ids.iter().map(|&id| Station::open(id, options));
    let stations: Vec<_> = stations.collect::<Result<_, _>>()?;
    for (at, one) in stations.iter().enumerate() {
        for other in &stations[..at] {
            connect(
                |outgoing, incoming| one.connect(other.id(), outgoing, incoming),
                |outgoing, incoming| other.connect(one.id(), outgoing, incoming),
            )?;
        }
    }
    let mut segments = Vec::new();
    for (rank, station) in stations.iter().enumerate() {
        let request = SegmentRequest {
            key: SegmentKey { epoch: 0, lane: 0 },
            members: ids.clone(),
            me: Rank(rank as u16),
            row_lens: row_lens.to_vec(),
            control: true,
        };
        segments.extend(station.segments(&[request])?);
    }
    Ok((stations, segments))
}

/// Connects two within this process.
pub(crate) fn connect(
    one: impl FnOnce(TcpStream, TcpStream) -> Result<(), StationError>,
    other: impl FnOnce(TcpStream, TcpStream) -> Result<(), StationError>,
) -> Result<(), StationError> {
    let connect = || connected_pair().map_err(JoinError::system("connecting within this host"));
    let (there, here) = connect()?;
    let (back, away) = connect()?;
    one(there, away)?;
    other(back, here)
}

/// Two ends of a stream through 127.0.0.1.
fn connected_pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    loop {
        let (far, from) = listener.accept()?;
        // A stranger of this host may have come first.
        if from == near.local_addr()? {
            return Ok((near, far));
        }
    }
}
