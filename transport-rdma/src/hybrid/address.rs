//! The address of a station: its host, its address there, and its sockets in the network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Longest address, in bytes.
pub(super) const ADDRESS_LEN_MAX: usize = 1024;

/// Most sockets in an address.
pub(super) const SOCKETS_MAX: usize = 8;

const MAGIC: [u8; 4] = *b"net1";

/// What [`Station::address`](super::Station::address) returns, encoded as: magic, host, id,
/// length and bytes of the address on the host, and for each socket its family (4 or 6), IP
/// address and port; little-endian.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) host: u128,
    pub(super) id: u128,
    /// The address of its shared-memory station.
    pub(super) on_host: Vec<u8>,
    pub(super) sockets: Vec<SocketAddr>,
}

impl Address {
    pub(super) fn write(&self) -> Vec<u8> {
        debug_assert!(self.on_host.len() <= 255 && self.sockets.len() <= SOCKETS_MAX);
        let mut out = MAGIC.to_vec();
        out.extend(self.host.to_le_bytes());
        out.extend(self.id.to_le_bytes());
        out.push(self.on_host.len() as u8);
        out.extend(&self.on_host);
        for socket in &self.sockets {
            match socket.ip() {
                IpAddr::V4(ip) => {
                    out.push(4);
                    out.extend(ip.octets());
                }
                IpAddr::V6(ip) => {
                    out.push(6);
                    out.extend(ip.octets());
                }
            }
            out.extend(socket.port().to_le_bytes());
        }
        out
    }

    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > ADDRESS_LEN_MAX {
            return None;
        }
        let rest = bytes.strip_prefix(&MAGIC)?;
        let (host, rest) = rest.split_first_chunk()?;
        let (id, rest) = rest.split_first_chunk()?;
        let (&len, rest) = rest.split_first()?;
        let (on_host, mut rest) = rest.split_at_checked(usize::from(len))?;
        let mut sockets = Vec::new();
        while let Some((&family, after)) = rest.split_first() {
            let (ip, after) = match family {
                4 => {
                    let (ip, after) = after.split_first_chunk::<4>()?;
                    (IpAddr::V4(Ipv4Addr::from(*ip)), after)
                }
                6 => {
                    let (ip, after) = after.split_first_chunk::<16>()?;
                    (IpAddr::V6(Ipv6Addr::from(*ip)), after)
                }
                _ => return None,
            };
            let (port, after) = after.split_first_chunk()?;
            sockets.push(SocketAddr::new(ip, u16::from_le_bytes(*port)));
            rest = after;
        }
        (sockets.len() <= SOCKETS_MAX).then(|| Self {
            host: u128::from_le_bytes(*host),
            id: u128::from_le_bytes(*id),
            on_host: on_host.to_vec(),
            sockets,
        })
    }
}

/// The host in an address of a [`Station`](super::Station), as
/// [`shm::host_id`](crate::shm::host_id) identifies it; `None` if it is not such an address.
pub fn host_of(address: &[u8]) -> Option<u128> {
    Some(Address::read(address)?.host)
}

/// The sockets on which a station listens, from its address; empty if there are none, or it
/// is not such an address.
pub fn sockets_of(address: &[u8]) -> Vec<SocketAddr> {
    Address::read(address).map_or_else(Vec::new, |it| it.sockets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_address_is_read_as_one() {
        let sockets = ["10.0.0.1:7400", "[2001:db8::1]:9"].map(|text| text.parse().expect("one"));
        let address = Address {
            host: 7,
            id: u128::MAX,
            on_host: b"somewhere".to_vec(),
            sockets: sockets.to_vec(),
        };
        let bytes = address.write();
        assert_eq!(Address::read(&bytes), Some(address.clone()));
        assert_eq!(host_of(&bytes), Some(7));
        assert_eq!(sockets_of(&bytes), sockets);
        for end in 0..bytes.len() {
            let part = Address::read(&bytes[..end]);
            assert_ne!(part.as_ref(), Some(&address), "{end}");
        }
        let mut long = bytes.clone();
        long.extend([4; 2000]);
        assert_eq!(Address::read(&long), None);
        let nine = [&bytes[..], &[4, 1, 2, 3, 4, 0, 0].repeat(7)].concat();
        assert_eq!(Address::read(&nine), None);
    }
}
