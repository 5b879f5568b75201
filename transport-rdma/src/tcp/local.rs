//! Groups within one process, for tests and benches.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use super::fabric::TcpFabric;
use super::links::{LinkError, Links, TcpOptions};
use crate::peers::Rank;

/// A group within this process, over streams through 127.0.0.1, with rows of
/// these lengths in bytes: for tests and benches.
pub fn local_group(row_lens: &[usize], options: &TcpOptions) -> Result<Vec<TcpFabric>, LinkError> {
    let links = (0..row_lens.len()).map(|me| Links::new(Rank(me as u16), row_lens));
    let mut links: Vec<Links> = links.collect::<Result<_, _>>()?;
    link_all(&mut links, |_, _| true)?;
    links
        .into_iter()
        .map(|links| links.build(options))
        .collect()
}

/// Connects those pairs of members, by rank, that are to be.
pub(crate) fn link_all(
    links: &mut [Links],
    wanted: impl Fn(usize, usize) -> bool,
) -> Result<(), LinkError> {
    let connect = || connected_pair().map_err(LinkError::system("connecting within this host"));
    for one in 0..links.len() {
        for other in (0..one).filter(|&other| wanted(one, other)) {
            let (there, here) = connect()?;
            let (back, away) = connect()?;
            links[one].add(Rank(other as u16), there, away)?;
            links[other].add(Rank(one as u16), back, here)?;
        }
    }
    Ok(())
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
