//! A manifest as text: one line of JSON, so that people can read it too.
//!
//! ```text
//! {"crc32c":"xxxxxxxx","manifest":{…}}
//! ```
//!
//! The CRC32C, in hexadecimal, covers the bytes of the inner object.

use std::fmt;

use mangrove_graph::Error;
use serde::{Deserialize, Serialize};

use super::first::FirstManifest;
use super::{FORMAT, Manifest, PackName, indexes};
use crate::damage::{damaged_in, unknown_format_in};
use crate::open::columns::is_columns_path;

const HEAD: &str = r#"{"crc32c":""#;
const MIDDLE: &str = r#"","manifest":"#;
const TAIL: &str = "}\n";
const CRC_DIGITS: usize = 8;

/// The checksum of the inner object of a manifest; as text, eight hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Checksum(u32);

impl Checksum {
    fn of(bytes: &[u8]) -> Self {
        Checksum(crc32c::crc32c(bytes))
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

impl TryFrom<String> for Checksum {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let number = u32::from_str_radix(&text, 16).map_err(|_| format!("{text:?} is no checksum"))?;
        Ok(Checksum(number))
    }
}

impl From<Checksum> for String {
    fn from(checksum: Checksum) -> String {
        checksum.to_string()
    }
}

/// The reason why a text is no manifest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Unreadable {
    /// It is damaged at an offset.
    Damaged(usize, String),
    /// It has a later format.
    Format(u64),
}

impl Unreadable {
    /// The error for a manifest, which `place` names in full.
    pub(super) fn of(self, place: &str) -> Error {
        match self {
            Unreadable::Damaged(at, what) => damaged_in(place, at as u64, what),
            Unreadable::Format(found) => unknown_format_in(place, found, FORMAT),
        }
    }
}

impl Manifest {
    /// The checksum of the manifest, and its text.
    pub(super) fn to_text(&self) -> (Checksum, String) {
        let inner = serde_json::to_string(self).expect("a manifest is numbers, text and lists of them");
        let checksum = Checksum::of(inner.as_bytes());
        (checksum, format!("{HEAD}{checksum}{MIDDLE}{inner}{TAIL}"))
    }

    /// Reads and checks the manifest with a number.
    pub(super) fn of_text(bytes: &[u8], version: u64) -> Result<Self, Unreadable> {
        let inner = inner_object(bytes).map_err(|(at, what)| Unreadable::Damaged(at, what.to_owned()))?;
        let start = bytes.len() - TAIL.len() - inner.len();
        let malformed = |error: serde_json::Error| Unreadable::Damaged(start + error.column(), error.to_string());
        // The format first: a later format may have other fields.
        let Format { format } = serde_json::from_slice(inner).map_err(malformed)?;
        let mut manifest: Manifest = match format {
            1 => serde_json::from_slice::<FirstManifest>(inner).map_err(malformed)?.into(),
            FORMAT => serde_json::from_slice(inner).map_err(malformed)?,
            later => return Err(Unreadable::Format(later)),
        };
        manifest.checksum = Some(Checksum::of(inner));
        let wrong = |what: String| Err(Unreadable::Damaged(start, what));
        if manifest.version != version {
            return wrong(format!("expected manifest {version}, found manifest {}", manifest.version));
        }
        match manifest.contradiction() {
            Some(what) => wrong(what),
            None => Ok(manifest),
        }
    }

    /// What the sections of a manifest contradict.
    pub(crate) fn contradiction(&self) -> Option<String> {
        let owned = self.owners.iter().filter_map(|owner| owner.tablets.max());
        let covered = self.packs.iter().flat_map(|pack| pack.covers.kinds().filter_map(|(_, tablets)| tablets.max()));
        let tablets = self.tablets.iter().filter_map(|tablets| tablets.range.max());
        if self.tablet_count == 0 || owned.chain(covered).chain(tablets).any(|tablet| tablet > self.tablet_count) {
            return Some("it names a tablet with an impossible number".to_owned());
        }
        let mut ranges: Vec<_> = self.tablets.iter().flat_map(|tablets| tablets.range.ranges()).collect();
        ranges.sort_unstable_by_key(|range| *range.start());
        let next = ranges.iter().try_fold(1, |next, range| match u32::from(*range.start()) == next {
            true => Some(u32::from(*range.end()) + 1),
            false => None,
        });
        if next != Some(u32::from(self.tablet_count) + 1) {
            return Some("it does not say once for each tablet how far the packs have it".to_owned());
        }
        for pack in &self.packs {
            let is_first_format = pack.path.as_deref().map(|path| {
                matches!(PackName::of_path(path), Some(PackName::First { version, .. }) if version == pack.counter)
            });
            if is_first_format == Some(false) || is_first_format.is_some() != (pack.format == 1) {
                return Some(format!("the pack {} has a path that is not its own", pack.path()));
            }
            if pack.live > pack.bytes {
                return Some(format!("the pack {} has fewer bytes than count of it", pack.path()));
            }
        }
        let mut paths: Vec<String> = self.packs.iter().map(|pack| pack.path()).collect();
        paths.sort_unstable();
        if let Some(twice) = paths.windows(2).find(|pair| pair[0] == pair[1]) {
            return Some(format!("it names the pack {} twice", twice[0]));
        }
        let columns = self.columns.iter().flat_map(|columns| &columns.files);
        if let Some(file) = columns.into_iter().find(|file| !is_columns_path(&file.path)) {
            return Some(format!("it has open columns in {:?}, which is no name of such a file", file.path));
        }
        if self.columns.as_ref().is_some_and(|columns| columns.at_ts > self.checkpoint_ts()) {
            return Some("its open columns are of a later commit than its packs".to_owned());
        }
        if let Some(what) = indexes::contradiction(self) {
            return Some(what);
        }
        if self.names.is_some() != self.names_pack().is_some() {
            return Some("the pack with its names is not among its packs".to_owned());
        }
        if !self.log_floor().is_covered_by(self.checkpoint_ts()) {
            return Some(format!(
                "there is a gap between its checkpoint, which ends with commit {}, and the part of the log that it names, \
                 which begins after commit {}",
                self.checkpoint_ts(),
                self.log_floor().before.map_or(0, |before| before.last_ts)
            ));
        }
        None
    }
}

#[derive(Deserialize)]
struct Format {
    format: u64,
}

/// Returns the bytes of the inner object if their checksum is right; otherwise where they are wrong, and how.
fn inner_object(bytes: &[u8]) -> Result<&[u8], (usize, &'static str)> {
    let rest = bytes.strip_prefix(HEAD.as_bytes()).ok_or((0, "the beginning is not that of a manifest"))?;
    let (crc, rest) = rest.split_at_checked(CRC_DIGITS).ok_or((bytes.len(), "the file ends here"))?;
    let at = HEAD.len() + CRC_DIGITS;
    let inner =
        rest.strip_prefix(MIDDLE.as_bytes()).ok_or((at, "the text after the checksum is not that of a manifest"))?;
    let inner = inner.strip_suffix(TAIL.as_bytes()).ok_or((bytes.len(), "the end is not that of a manifest"))?;
    let expected = std::str::from_utf8(crc).ok().and_then(|crc| u32::from_str_radix(crc, 16).ok());
    match expected == Some(crc32c::crc32c(inner)) {
        true => Ok(inner),
        false => Err((HEAD.len(), "the checksum is wrong")),
    }
}
