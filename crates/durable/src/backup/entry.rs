//! A backup as text: one line of JSON with a checksum, as manifests have it.
//!
//! ```text
//! {"crc32c":"xxxxxxxx","backup":{…}}
//! ```

use bytes::Bytes;
use mangrove_graph::Result;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::BACKUPS;
use crate::damage::{damaged_in, unknown_format_in};
use crate::extract::find::{Found, Span};
use crate::manifest::{Manifest, ManifestPack};

const HEAD: &str = r#"{"crc32c":""#;
const MIDDLE: &str = r#"","backup":"#;
const TAIL: &str = "}\n";
const CRC_DIGITS: usize = 8;
/// The format of backups that this version writes.
const FORMAT: u64 = 1;

/// A backup: a state of a graph, in a home of backups.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Backup {
    format: u64,
    /// Its number: 1, 2, 3, …
    pub number: u64,
    /// When it was begun, in microseconds since 1970. It has everything that was durable before.
    pub taken_us: u64,
    /// Its last commit.
    pub last_ts: u64,
    /// When the last part of the log that it has was written, in microseconds since 1970; 0 if it has none.
    pub written_us: u64,
    /// The manifest with its packs, without a log.
    manifest: Manifest,
    /// The parts of streams after it.
    spans: Vec<Span>,
}

#[derive(Deserialize)]
struct Format {
    format: u64,
}

impl Backup {
    /// The backup of a state.
    pub(super) fn of(found: Found, number: u64, taken_us: u64) -> Self {
        let Found { mut manifest, spans, last_ts, written_us, .. } = found;
        // The parts of streams say more than the lists of a manifest, whose numbers are those of the source.
        manifest.streams.clear();
        manifest.wal = None;
        // A backup has no derived files: an owner of the restored graph writes them again.
        manifest.columns = None;
        Backup { format: FORMAT, number, taken_us, last_ts, written_us, manifest, spans }
    }

    /// The database.
    pub fn database(&self) -> Uuid {
        self.manifest.database
    }

    /// Its first commit that can be restored.
    pub fn checkpoint_ts(&self) -> u64 {
        self.manifest.checkpoint_ts()
    }

    /// The number of its packs.
    pub fn pack_count(&self) -> u64 {
        self.manifest.packs.len() as u64
    }

    /// The number of its objects of streams.
    pub fn object_count(&self) -> u64 {
        self.spans.iter().map(|span| span.end - span.first).sum()
    }

    /// Bytes of its packs.
    pub fn pack_bytes(&self) -> u64 {
        self.manifest.packs.iter().map(|pack| pack.bytes).sum()
    }

    /// The time from which on it can be restored to, in microseconds since 1970.
    pub(super) fn first_us(&self) -> u64 {
        self.manifest.written
    }

    pub(crate) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    pub(crate) fn packs(&self) -> impl Iterator<Item = &ManifestPack> {
        self.manifest.packs.iter()
    }

    pub(crate) fn spans(&self) -> impl Iterator<Item = &Span> {
        self.spans.iter()
    }

    /// The name of its object.
    pub(super) fn name(&self) -> String {
        Backup::name_of(self.number)
    }

    /// The name of the object of a backup.
    pub(super) fn name_of(number: u64) -> String {
        format!("{BACKUPS}/{number}.json")
    }

    /// The number of a backup; `None` for any other name.
    pub(super) fn number_of(name: &str) -> Option<u64> {
        let number = name.strip_prefix(BACKUPS)?.strip_prefix('/')?.strip_suffix(".json")?.parse().ok()?;
        (Backup::name_of(number) == name).then_some(number)
    }

    /// The text of its object.
    pub(super) fn text(&self) -> Bytes {
        let inner = serde_json::to_string(self).expect("a backup is numbers, text and lists of them");
        format!("{HEAD}{:08x}{MIDDLE}{inner}{TAIL}", crc32c::crc32c(inner.as_bytes())).into()
    }

    /// Reads and checks the object of a backup, which `place` names in full.
    pub(super) fn of_text(bytes: &[u8], number: u64, place: &str) -> Result<Self> {
        let wrong = |at: usize, what: &str| damaged_in(place, at as u64, what.to_owned());
        let inner = (|| {
            let rest = bytes.strip_prefix(HEAD.as_bytes())?;
            let (crc, rest) = rest.split_at_checked(CRC_DIGITS)?;
            let inner = rest.strip_prefix(MIDDLE.as_bytes())?.strip_suffix(TAIL.as_bytes())?;
            let expected = u32::from_str_radix(std::str::from_utf8(crc).ok()?, 16).ok()?;
            (expected == crc32c::crc32c(inner)).then_some(inner)
        })();
        let inner = inner.ok_or_else(|| wrong(0, "it is no backup, or its checksum is wrong"))?;
        let malformed = |error: serde_json::Error| wrong(error.column(), &error.to_string());
        // The format first: a later format may have other fields.
        let Format { format } = serde_json::from_slice(inner).map_err(malformed)?;
        if format != FORMAT {
            return Err(unknown_format_in(place, format, FORMAT));
        }
        let backup: Backup = serde_json::from_slice(inner).map_err(malformed)?;
        if backup.number != number {
            return Err(wrong(0, &format!("expected backup {number}, found backup {}", backup.number)));
        }
        if backup.spans.iter().any(|span| span.first > span.end) {
            return Err(wrong(0, "a part of a stream ends before it begins"));
        }
        match backup.manifest.contradiction() {
            Some(what) => Err(wrong(0, &what)),
            None => Ok(backup),
        }
    }
}
