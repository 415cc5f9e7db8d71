//! Decides which addresses are public, that is, globally reachable. Only addresses known to be so count as public. That
//! excludes the machine itself, private and shared networks, link-local addresses (where clouds serve credentials),
//! multicast, documentation, and every form of IPv6 that embeds an IPv4 address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 blocks that aren't globally reachable (IANA special-purpose address registry), the 6to4 relays, multicast, and
/// reserved addresses.
const SPECIAL_PURPOSE_V4_BLOCKS: [(Ipv4Addr, u32); 15] = [
    (Ipv4Addr::UNSPECIFIED, 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];
/// All IPv6 addresses that are allocated for global use. IPv4-mapped and IPv4-compatible addresses, NAT64, loopback,
/// link-local, unique local, and multicast are outside of this block.
const GLOBAL_UNICAST_V6_BLOCK: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
/// Blocks within it that lead elsewhere: IETF protocol assignments (including Teredo), documentation, and 6to4.
const SPECIAL_PURPOSE_V6_BLOCKS: [(Ipv6Addr, u32); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Whether the address is globally reachable, that is, the same machine for everyone on the internet.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !SPECIAL_PURPOSE_V4_BLOCKS
            .iter()
            .any(|block| is_in_v4_block(address, *block)),
        IpAddr::V6(address) => {
            is_in_v6_block(address, &GLOBAL_UNICAST_V6_BLOCK)
                && !SPECIAL_PURPOSE_V6_BLOCKS
                    .iter()
                    .any(|block| is_in_v6_block(address, block))
        }
    }
}

fn is_in_v4_block(address: Ipv4Addr, (block, prefix_len): (Ipv4Addr, u32)) -> bool {
    (address.to_bits() ^ block.to_bits()).leading_zeros() >= prefix_len
}

fn is_in_v6_block(address: Ipv6Addr, (block, prefix_len): &(Ipv6Addr, u32)) -> bool {
    (address.to_bits() ^ block.to_bits()).leading_zeros() >= *prefix_len
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests the edges of every block.
    #[test]
    fn special_purpose_addresses_are_not_public() {
        let public = |text: &str| is_public(text.parse().unwrap());
        for address in [
            "0.0.0.0",
            "0.255.255.255",
            "10.0.0.0",
            "10.255.255.255",
            "100.64.0.0",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.0.0",
            "169.254.169.254",
            "172.16.0.0",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.0.170",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.0",
            "192.168.255.255",
            "198.18.0.0",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.7",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:8.8.8.8",
            "::ffff:127.0.0.1",
            "64:ff9b::808:808",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:1ff:ffff::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:808:808::1",
            "3fff:fff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fdff::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!public(address), "{address}");
        }
        for address in [
            "1.0.0.0",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.1",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2003::1",
            "2606:4700:4700::1111",
            "2a00::1",
            "3ffe::1",
        ] {
            assert!(public(address), "{address}");
        }
    }
}
