//! Which IP addresses are public: globally routable unicast, by the IANA special-purpose registries (D28).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

/// Why an address is not a public one; `None` where it is.
pub fn non_public_reason(address: IpAddr) -> Option<&'static str> {
    match unwrap_embedded(address) {
        IpAddr::V4(v4) => NON_PUBLIC_V4.iter().find(|(net, _)| net.contains(&v4)).map(|(_, reason)| *reason),
        IpAddr::V6(v6) => {
            let listed = NON_PUBLIC_V6.iter().find(|(net, _)| net.contains(&v6)).map(|(_, reason)| *reason);
            listed.or((!GLOBAL_UNICAST.contains(&v6)).then_some("a reserved address"))
        }
    }
}

/// The IPv4 address that packets end up at, where an IPv6 address only wraps one: IPv4-mapped, NAT64 and 6to4.
pub fn unwrap_embedded(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else {
        return address;
    };
    let bits = v6.to_bits();
    if NAT64.contains(&v6) || MAPPED.contains(&v6) {
        return IpAddr::V4(Ipv4Addr::from_bits(bits as u32));
    }
    if SIX_TO_FOUR.contains(&v6) {
        return IpAddr::V4(Ipv4Addr::from_bits((bits >> 80) as u32));
    }
    address
}

const MAPPED: Ipv6Net = v6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96);
const NAT64: Ipv6Net = v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96);
const SIX_TO_FOUR: Ipv6Net = v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16);
const GLOBAL_UNICAST: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

const NON_PUBLIC_V4: [(Ipv4Net, &str); 16] = [
    (v4([0, 0, 0, 0], 8), "an unspecified address"),
    (v4([10, 0, 0, 0], 8), "a private address"),
    (v4([100, 64, 0, 0], 10), "a shared (carrier) address"),
    (v4([127, 0, 0, 0], 8), "a loopback address"),
    // Azure's platform service: a public address by number, answered on every virtual machine's own host.
    (v4([168, 63, 129, 16], 32), "a cloud metadata address"),
    (v4([169, 254, 0, 0], 16), "a link-local address"),
    (v4([172, 16, 0, 0], 12), "a private address"),
    (v4([192, 0, 0, 0], 24), "a reserved address"),
    (v4([192, 0, 2, 0], 24), "a documentation address"),
    (v4([192, 88, 99, 0], 24), "a relay address"),
    (v4([192, 168, 0, 0], 16), "a private address"),
    (v4([198, 18, 0, 0], 15), "a benchmarking address"),
    (v4([198, 51, 100, 0], 24), "a documentation address"),
    (v4([203, 0, 113, 0], 24), "a documentation address"),
    (v4([224, 0, 0, 0], 4), "a multicast address"),
    (v4([240, 0, 0, 0], 4), "a reserved address"),
];

/// The ranges of IPv6 that are not public. Those outside 2000::/3 would be refused anyway: they are here for the reason
/// that is given.
const NON_PUBLIC_V6: [(Ipv6Net, &str); 12] = [
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 128), "an unspecified address"),
    (v6([0, 0, 0, 0, 0, 0, 0, 1], 128), "a loopback address"),
    // Which of its bits are the IPv4 address depends on the translator, so it cannot be unwrapped.
    (v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48), "a local translation address"),
    (v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64), "a discard address"),
    // Teredo (2001::/32), benchmarking, ORCHID and other protocol assignments.
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), "a protocol assignment address"),
    (v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), "a documentation address"),
    (v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), "a documentation address"),
    (v6([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16), "a segment routing address"),
    (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), "a unique local address"),
    (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), "a link-local address"),
    (v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), "a site-local address"),
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), "a multicast address"),
];

const fn v4(octets: [u8; 4], prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3]), prefix)
}

const fn v6(s: [u16; 8], prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]), prefix)
}
