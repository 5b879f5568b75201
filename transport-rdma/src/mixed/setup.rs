//! Set-up: a group on my host and links to all others become one fabric.

use super::fabric::MixedFabric;
use crate::fabric::Fabric;
use crate::mem::Region;
use crate::peers::Rank;
use crate::shm::{self, DoorbellChoice, JoinError, ShmFabric};
use crate::tcp::{self, LinkError, Links, TcpOptions};

/// Why the parts did not become a fabric.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MixedError {
    /// The group on a host did not come together.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// The links are not those of the view.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The members of my host's group have other ranks in the view, or none.
    #[error("{ranks:?} are no ranks for the members of my host in a view of {members}")]
    Ranks {
        /// What was given.
        ranks: Vec<Rank>,
        /// Size of the view.
        members: usize,
    },
    /// A row of my host's group is shorter than the view has it.
    #[error("the row of member {rank} has {has} bytes, the view has {needed}")]
    RowLen {
        /// Whose row.
        rank: Rank,
        /// Its length.
        has: usize,
        /// Length in the view.
        needed: usize,
    },
}

impl MixedFabric {
    /// Joins my host's group, whose members have these ranks in the view (by
    /// their ranks in the group), with the links to all other members. Does not
    /// wait for the others.
    pub fn build(
        shm: ShmFabric,
        in_view: &[Rank],
        links: Links,
        options: &TcpOptions,
    ) -> Result<Self, MixedError> {
        let me = links.me();
        let on_host = seats(&shm, in_view, &links)?;
        let mut rows = Vec::new();
        for (rank, (&len, seat)) in links.row_lens().iter().zip(&on_host).enumerate() {
            let rank = Rank(rank as u16);
            let row = match (seat, links.has(rank)) {
                (Some(_), true) => return Err(LinkError::Twice { rank }.into()),
                (None, false) => return Err(LinkError::Missing { rank }.into()),
                (Some(seat), false) => shm.row(*seat).clone(),
                (None, true) => Region::heap(len),
            };
            if row.len() < len {
                let (has, needed) = (row.len(), len);
                return Err(MixedError::RowLen { rank, has, needed });
            }
            rows.push(row);
        }
        let streams = links.start(&rows, options, Box::new(shm.waker()))?;
        for (row, seat) in rows.iter_mut().zip(&on_host) {
            if seat.is_none() {
                *row = row.read_only();
            }
        }
        Ok(Self {
            me,
            rows,
            streams,
            shm,
            in_view: in_view.to_vec(),
            on_host,
        })
    }
}

/// Ranks on my host by rank in the view.
fn seats(
    shm: &ShmFabric,
    in_view: &[Rank],
    links: &Links,
) -> Result<Vec<Option<Rank>>, MixedError> {
    let members = links.row_lens().len();
    let mut on_host = vec![None; members];
    for (seat, rank) in in_view.iter().enumerate() {
        if let Some(place) = on_host.get_mut(rank.index()) {
            *place = Some(Rank(seat as u16));
        }
    }
    let seated = on_host.iter().flatten().count();
    let all = seated == in_view.len() && seated == shm.members();
    if !all || on_host[links.me().index()] != Some(shm.me()) {
        let ranks = in_view.to_vec();
        return Err(MixedError::Ranks { ranks, members });
    }
    Ok(on_host)
}

/// A view within this process whose members are on these hosts, by rank: shared
/// memory within each, streams between them. For tests and benches.
pub fn local_group(
    hosts: &[usize],
    row_len: usize,
    doorbell: DoorbellChoice,
    options: &TcpOptions,
) -> Result<Vec<MixedFabric>, MixedError> {
    let ranks = || (0..hosts.len()).map(|rank| Rank(rank as u16));
    let links = ranks().map(|me| Links::new(me, &vec![row_len; hosts.len()]));
    let mut links: Vec<Links> = links.collect::<Result<_, _>>()?;
    tcp::link_all(&mut links, |one, other| hosts[one] != hosts[other])?;
    let mut links: Vec<_> = links.into_iter().map(Some).collect();
    let mut fabrics: Vec<_> = ranks().map(|_| None).collect();
    for first in ranks().map(Rank::index) {
        let in_view: Vec<_> = ranks()
            .filter(|rank| hosts[rank.index()] == hosts[first])
            .collect();
        if in_view[0].index() != first {
            continue;
        }
        let group = shm::local_group(in_view.len(), row_len, doorbell)?;
        for (shm, rank) in group.into_iter().zip(&in_view) {
            if let Some(links) = links[rank.index()].take() {
                let fabric = MixedFabric::build(shm, &in_view, links, options)?;
                fabrics[rank.index()] = Some(fabric);
            }
        }
    }
    Ok(fabrics.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(others: &[u16]) -> Links {
        let view = |rank| Links::new(Rank(rank), &[4096; 3]).expect("a view");
        let mut all: Vec<_> = (0..3).map(view).collect();
        let linked = |one: usize, other| other == 0 && others.contains(&(one as u16));
        tcp::link_all(&mut all, linked).expect("linked");
        all.swap_remove(0)
    }

    #[test]
    fn parts_that_make_no_view_are_refused() {
        let check = |others: &[u16], in_view: &[u16], row_len: usize, expected: &str| {
            let group = shm::local_group(2, row_len, DoorbellChoice::Auto).expect("a group");
            let shm = group.into_iter().next().expect("the first");
            let in_view: Vec<_> = in_view.iter().copied().map(Rank).collect();
            let options = TcpOptions::default();
            let built = MixedFabric::build(shm, &in_view, links(others), &options);
            let said = built.err().map(|error| error.to_string());
            let said = said.as_deref().unwrap_or("built");
            assert!(said.contains(expected), "{others:?} {in_view:?}: {said}");
        };
        check(&[2], &[0, 1], 4096, "built");
        check(&[1], &[0, 2], 4096, "built");
        check(&[], &[0, 1], 4096, "member 2 is not linked");
        check(&[1, 2], &[0, 1], 4096, "member 1 is linked already");
        check(&[2], &[0, 1], 2048, "has 2048 bytes, the view has 4096");
        for in_view in [&[0][..], &[1, 0], &[0, 0], &[0, 3], &[0, 1, 2], &[]] {
            check(&[2], in_view, 4096, "are no ranks");
        }
    }
}
