//! The names of the objects that fencing rests on.
//!
//! ```text
//! node/INC                 claims an incarnation
//! manifest/N.json          the chain of manifests; the largest N counts
//! log/HHHHHHHH-INC/SEQ     an object of the stream of an incarnation
//! ```
//!
//! `INC` and `SEQ` have 16 hexadecimal digits, `N` is decimal. `HHHHHHHH` is the CRC32C of the text `INC`, so that stores
//! that divide their load by prefix spread the streams.

/// The directory of the claims of incarnations.
pub const NODES: &str = "node";
/// The directory of the manifests.
pub const MANIFESTS: &str = "manifest";
/// The directory of the streams.
pub const STREAMS: &str = "log";

/// The name of the object that claims an incarnation.
pub fn node_name(incarnation: u64) -> String {
    format!("{NODES}/{incarnation:016x}")
}

/// The incarnation that an object of [`NODES`] claims; `None` for any other name.
pub fn node_incarnation(name: &str) -> Option<u64> {
    hex(name.strip_prefix(NODES)?.strip_prefix('/')?)
}

/// The name of a manifest.
pub fn manifest_name(number: u64) -> String {
    format!("{MANIFESTS}/{number}.json")
}

/// The number of a manifest; `None` for any other name.
pub fn manifest_number(name: &str) -> Option<u64> {
    let number = name.strip_prefix(MANIFESTS)?.strip_prefix('/')?.strip_suffix(".json")?.parse().ok()?;
    (manifest_name(number) == name).then_some(number)
}

/// The name of an object of a stream.
pub fn stream_name(incarnation: u64, seq: u64) -> String {
    let incarnation = format!("{incarnation:016x}");
    format!("{STREAMS}/{:08x}-{incarnation}/{seq:016x}", crc32c::crc32c(incarnation.as_bytes()))
}

/// Incarnation and SEQ of an object of a stream; `None` for any other name.
pub fn stream_place(name: &str) -> Option<(u64, u64)> {
    let (directory, seq) = name.strip_prefix(STREAMS)?.strip_prefix('/')?.split_once('/')?;
    let (incarnation, seq) = (hex(directory.split_once('-')?.1)?, hex(seq)?);
    (stream_name(incarnation, seq) == name).then_some((incarnation, seq))
}

fn hex(text: &str) -> Option<u64> {
    let is_hex = text.len() == 16 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    is_hex.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_and_other_names_are_none() {
        assert_eq!(node_name(10), "node/000000000000000a");
        assert_eq!(node_incarnation("node/000000000000000a"), Some(10));
        assert_eq!(manifest_number(&manifest_name(57)), Some(57));
        let name = stream_name(3, 0xab);
        assert!(name.starts_with("log/") && name.ends_with("-0000000000000003/00000000000000ab"), "{name}");
        assert_eq!(stream_place(&name), Some((3, 0xab)));
        for other in ["", "node/a", "node/000000000000000A", "manifest/057.json", "manifest/+5.json", "manifest/5"] {
            assert_eq!((node_incarnation(other), manifest_number(other)), (None, None), "{other}");
        }
        let wrong_hash = "log/00000000-0000000000000003/00000000000000ab";
        for other in ["log/x", wrong_hash, &name[..name.len() - 1]] {
            assert_eq!(stream_place(other), None, "{other}");
        }
    }
}
