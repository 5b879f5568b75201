//! The addresses of this host, for a station that listens on all of them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::address::SOCKETS_MAX;

/// Addresses that other hosts may reach: all except loopback and link-local ones; the loopback
/// address if there are no others. Read from /proc (proc(5)).
pub(super) fn addresses(with_v6: bool) -> Vec<IpAddr> {
    let read = |name| std::fs::read_to_string(name).unwrap_or_default();
    let mut found = v4(&read("/proc/self/net/fib_trie"));
    if with_v6 {
        found.extend(v6(&read("/proc/self/net/if_inet6")));
    }
    found.truncate(SOCKETS_MAX);
    if found.is_empty() {
        found.push(Ipv4Addr::LOCALHOST.into());
    }
    found
}

/// From the routing table: addresses whose line is followed by one that marks them as the
/// host's own.
///
/// ```text
///            |-- 192.168.1.7
///               /32 host LOCAL
/// ```
fn v4(trie: &str) -> Vec<IpAddr> {
    let mut found = Vec::new();
    let mut last = None;
    for line in trie.lines() {
        if let Some((_, address)) = line.split_once("|-- ") {
            last = address.trim().parse::<Ipv4Addr>().ok();
        } else if line.trim() == "/32 host LOCAL"
            && let Some(address) = last
            && !address.is_loopback()
            && !address.is_link_local()
            && !found.contains(&IpAddr::V4(address))
        {
            found.push(address.into());
        }
    }
    found
}

/// From the interfaces: address, index, prefix, scope (0 is global) and more, in hexadecimal.
fn v6(interfaces: &str) -> Vec<IpAddr> {
    let address = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let bits = u128::from_str_radix(fields.next()?, 16).ok()?;
        let scope = fields.nth(2)?;
        (scope == "00").then(|| IpAddr::V6(Ipv6Addr::from_bits(bits)))
    };
    interfaces.lines().filter_map(address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_that_the_kernel_marks_as_the_hosts() {
        let trie = "\
Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 10.1.0.0/16 2 0 2
        |-- 10.1.0.0
           /16 link UNICAST
        |-- 10.1.2.3
           /32 host LOCAL
        |-- 10.1.255.255
           /32 link BROADCAST
     +-- 127.0.0.0/8 2 0 2
           |-- 127.0.0.1
              /32 host LOCAL
Local:
        |-- 10.1.2.3
           /32 host LOCAL
";
        assert_eq!(v4(trie), ["10.1.2.3".parse::<IpAddr>().expect("one")]);
        let interfaces = "\
20010db8000000000000000000000001 02 40 00 80 eth0
fe80000000000000021122fffe334455 02 40 20 80 eth0
00000000000000000000000000000001 01 80 10 80 lo
nonsense
";
        assert_eq!(
            v6(interfaces),
            ["2001:db8::1".parse::<IpAddr>().expect("one")]
        );
        assert!(v4("nonsense").is_empty());
        assert!(!addresses(true).is_empty());
    }
}
