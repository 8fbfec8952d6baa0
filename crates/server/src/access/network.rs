//! The address of a client, as limits count it.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use smol_str::{SmolStr, ToSmolStr, format_smolstr};

/// The address of a peer (`address:port`) without its port. An IPv6 address counts as its network of 64 bits, because
/// one machine usually has a whole one.
pub fn network(peer: &str) -> SmolStr {
    match peer.parse::<SocketAddr>().map(|address| address.ip().to_canonical()) {
        Ok(IpAddr::V4(address)) => address.to_smolstr(),
        Ok(IpAddr::V6(address)) => {
            let [a, b, c, d, ..] = address.segments();
            format_smolstr!("{}/64", Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        Err(_) => peer.into(),
    }
}
