//! An object of a stream: a header and the records of some commits, or one of the two ends of a stream.
//!
//! ```text
//! header (136 bytes) │ set of tablets, padded to 8 bytes │ payload: records, or zstd of them
//! ```
//!
//! The table of all fields is in `docs/design/stream.md`. The checksum of the header covers all of it but the first 16
//! bytes; magic and format are compared. The header has the checksum of the payload and its length. So the decoder finds
//! every flipped byte and every cut, and it never panics. All integers are little-endian.
//!
//! A payload of 4 KiB and more is stored as zstd if that is shorter. The header says how many bytes it unpacks to; a
//! reader takes no memory for more, and refuses a number that no such payload can unpack to.
//!
//! The checksum of a header is also in the header of the next object. So a reader finds an object that belongs to
//! another chain.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::io::Read;
use std::ops::Range;

use bytes::Bytes;
use mangrove_graph::{Error, ErrorKind, TabletId};
use uuid::Uuid;

use crate::codec::{Malformed, Reader, put_varint};
use crate::home::settle::{Likeness, NewObject};

/// The version of the format. Later ones are refused (LOG-44).
pub const FORMAT_VERSION: u32 = 1;
/// Bytes of a header without a set of tablets. They include the nonce.
pub const HEADER_BYTES: usize = 136;
/// Bytes of the longest end of a stream.
pub const END_BYTES_MAX: usize = 144;

const MAGIC: [u8; 8] = *b"MGRVSTR\n";
/// Where the header's checksum lies.
const SUM: Range<usize> = 12..16;
/// Where the part of the header begins that its checksum covers.
const SUMMED: usize = 16;
const NONCE: Range<usize> = 48..64;
const KIND: usize = 64;
const CODEC: usize = 65;

const RECORDS: u8 = 0;
const FENCE: u8 = 1;
const FIN: u8 = 2;

/// The codec of a payload that is stored as it is.
const PLAIN: u8 = 0;
/// The codec of a payload that is stored as zstd.
const ZSTD: u8 = 1;

/// Payloads of fewer bytes are stored as they are.
const PACKED_BYTES_MIN: usize = 4 << 10;
/// The level of zstd: the fastest one.
const ZSTD_LEVEL: i32 = 1;
/// No byte of zstd unpacks to more bytes: the shortest block has four bytes, and no block unpacks to more than 128 KiB.
const UNPACKED_BYTES_MAX: u64 = 32 << 10;

/// A number that its writer draws once for an object. It tells the writer's own object from another one of the same
/// name.
pub type Nonce = [u8; 16];

/// The position that an object belongs to, and its writer's number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The database.
    pub database: Uuid,
    /// The incarnation whose stream it is.
    pub incarnation: u64,
    /// The number of the object in the stream, from 1.
    pub seq: u64,
    /// Drawn once for the object; every retry carries the same.
    pub nonce: Nonce,
    /// The checksum of the header of the object before. 0: there is none, or the writer of a FENCE has not read it.
    pub previous: u32,
}

/// The content of an object, apart from its payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// The payload has records.
    Records(Batch),
    /// The stream was ended by a successor: it has no later object.
    Fence {
        /// The incarnation of the successor.
        by: u64,
    },
    /// The owner of the stream ended it.
    Fin,
}

/// The commits of an object of records.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Batch {
    /// The smallest timestamp of the commits; 0 if there is none.
    pub first_ts: u64,
    /// The largest timestamp of the commits; 0 if there is none.
    pub last_ts: u64,
    /// All commits of the stream up to this timestamp are in this object and those before it.
    pub through: u64,
    /// The number of commits.
    pub commits: u32,
    /// The tablets that the commits change.
    pub tablets: BTreeSet<TabletId>,
}

/// The header of an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// The position that the object belongs to.
    pub place: Place,
    /// Microseconds since 1970 when the object was made. It never falls within a stream.
    pub cut_us: u64,
    /// What the object has.
    pub content: Content,
}

/// The reason why bytes are no object of a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ObjectError {
    /// They contradict the format or a checksum.
    Damaged {
        /// The offset of the first byte in question.
        at: u64,
        /// What is wrong, as a clause.
        what: String,
    },
    /// They have a later format, or a codec of a later format. The text names it.
    Later(String),
}

impl ObjectError {
    /// The error for an object, which `object` names in full.
    pub fn of(&self, object: &str) -> Error {
        match self {
            ObjectError::Damaged { at, what } => Error::new(
                ErrorKind::Damaged,
                format!(
                    "{object} is damaged at byte {at}: {what}. Nothing was changed; restore the graph from a backup"
                ),
            ),
            ObjectError::Later(what) => Error::unsupported(format!(
                "{object} has {what}, which this version of Mangrove does not read; open the graph with the version \
                 that wrote it, or a later one"
            )),
        }
    }
}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObjectError::Damaged { at, what } => write!(f, "damaged at byte {at}: {what}"),
            ObjectError::Later(what) => write!(f, "of a later format: {what}"),
        }
    }
}

fn damaged(at: usize, what: impl Into<String>) -> ObjectError {
    ObjectError::Damaged { at: at as u64, what: what.into() }
}

fn expect_equal(
    at: usize,
    what: &str,
    expected: impl fmt::Display,
    found: impl fmt::Display,
) -> Result<(), ObjectError> {
    let (expected, found) = (expected.to_string(), found.to_string());
    match expected == found {
        true => Ok(()),
        false => Err(damaged(at, format!("{what}: expected {expected}, found {found}"))),
    }
}

/// Encodes an object. FENCE and FIN have no payload.
pub fn encode(header: &Header, payload: &[u8]) -> Vec<u8> {
    debug_assert!(matches!(header.content, Content::Records(_)) || payload.is_empty(), "an end has no payload");
    let mut after = Vec::new();
    let (kind, batch) = match &header.content {
        Content::Records(batch) => {
            put_tablets(&batch.tablets, &mut after);
            (RECORDS, batch.clone())
        }
        Content::Fence { by } => {
            after.extend_from_slice(&by.to_le_bytes());
            (FENCE, Batch::default())
        }
        Content::Fin => (FIN, Batch::default()),
    };
    let header_len = (HEADER_BYTES + after.len()).next_multiple_of(8);
    let packed = pack(payload);
    let (codec, stored) = packed.as_deref().map_or((PLAIN, payload), |packed| (ZSTD, packed));
    let mut bytes = Vec::with_capacity(header_len + stored.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(header.place.database.as_bytes());
    put_u64(header.place.incarnation, &mut bytes);
    put_u64(header.place.seq, &mut bytes);
    bytes.extend_from_slice(&header.place.nonce);
    bytes.extend_from_slice(&[kind, codec, 0, 0]);
    put_u32(header_len as u32, &mut bytes);
    for number in [batch.first_ts, batch.last_ts, batch.through, header.cut_us] {
        put_u64(number, &mut bytes);
    }
    put_u32(batch.commits, &mut bytes);
    put_u32(crc32c::crc32c(stored), &mut bytes);
    put_u64(stored.len() as u64, &mut bytes);
    put_u64(payload.len() as u64, &mut bytes);
    put_u32(header.place.previous, &mut bytes);
    put_u32(after.len() as u32, &mut bytes);
    debug_assert_eq!(bytes.len(), HEADER_BYTES);
    bytes.extend_from_slice(&after);
    bytes.resize(header_len, 0);
    seal(&mut bytes, header_len);
    bytes.extend_from_slice(stored);
    bytes
}

/// The payload as zstd, if it is long enough and becomes shorter.
fn pack(payload: &[u8]) -> Option<Vec<u8>> {
    if payload.len() < PACKED_BYTES_MIN {
        return None;
    }
    // It fails only if there is no memory for it.
    zstd::bulk::compress(payload, ZSTD_LEVEL).ok().filter(|packed| packed.len() < payload.len())
}

/// An object to be put, which its writer knows again by its first bytes: they include the nonce and a whole FENCE.
pub fn new_object(bytes: Bytes) -> NewObject {
    let is_intact = |bytes: &[u8]| open(bytes).is_ok();
    NewObject { bytes, likeness: Likeness::First { count: END_BYTES_MAX, is_intact } }
}

/// The payload of an object that passed its checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Payload<'a> {
    stored: &'a [u8],
    codec: u8,
    /// Bytes of records, as the header says.
    len: u64,
    /// Where it begins in the object.
    at: usize,
}

impl<'a> Payload<'a> {
    /// Where the payload begins in the object.
    pub fn offset(&self) -> u64 {
        self.at as u64
    }

    /// The records.
    ///
    /// # Errors
    ///
    /// If the payload does not unpack to as many bytes as the header says.
    pub fn records(&self) -> Result<Cow<'a, [u8]>, ObjectError> {
        if self.codec == PLAIN {
            return Ok(Cow::Borrowed(self.stored));
        }
        let unpacked = (|| {
            let mut records = Vec::new();
            // Grows with what is there: the number in the header takes no memory by itself.
            zstd::stream::read::Decoder::with_buffer(self.stored)?.take(self.len + 1).read_to_end(&mut records)?;
            Ok(records)
        })();
        let records = unpacked
            .map_err(|error: std::io::Error| damaged(self.at, format!("the payload cannot be unpacked: {error}")))?;
        match records.len() as u64 {
            len if len == self.len => Ok(Cow::Owned(records)),
            len if len > self.len => Err(damaged(120, format!("the payload unpacks to more than {} bytes", self.len))),
            len => Err(damaged(120, format!("the payload unpacks to {len} bytes, not {}", self.len))),
        }
    }
}

/// Decodes an object. Returns its header and its records.
///
/// # Errors
///
/// If a byte differs from what was encoded, if a byte is missing or too many, or if the format is a later one.
pub fn decode(bytes: &[u8]) -> Result<(Header, Cow<'_, [u8]>), ObjectError> {
    let (header, payload) = open(bytes)?;
    Ok((header, payload.records()?))
}

/// Decodes and checks all of an object, and does not unpack its payload.
///
/// # Errors
///
/// As [`decode`].
pub fn open(bytes: &[u8]) -> Result<(Header, Payload<'_>), ObjectError> {
    let Some((header, header_len)) = open_header(bytes)? else {
        let header_len = get_u32(bytes, 68);
        return Err(damaged(68, format!("a header of {header_len} bytes in an object of {}", bytes.len())));
    };
    let stored = &bytes[header_len..];
    let hex = |sum: u32| format!("{sum:08x}");
    expect_equal(112, "the length of the payload", get_u64(bytes, 112), stored.len())?;
    expect_equal(header_len, "the checksum of the payload", hex(get_u32(bytes, 108)), hex(crc32c::crc32c(stored)))?;
    let (codec, len) = (bytes[CODEC], get_u64(bytes, 120));
    match codec {
        PLAIN => expect_equal(120, "the bytes of records", len, stored.len())?,
        ZSTD if len > (stored.len() as u64).saturating_mul(UNPACKED_BYTES_MAX) => {
            return Err(damaged(120, format!("{} bytes that unpack to {len}", stored.len())));
        }
        ZSTD => {}
        _ => return Err(ObjectError::Later(format!("a payload of codec {codec}"))),
    }
    Ok((header, Payload { stored, codec, len, at: header_len }))
}

/// Decodes and checks the header of an object from its first bytes. Returns its length too; `None` if the header has more
/// bytes than these.
///
/// # Errors
///
/// As [`decode`], for the header.
pub fn open_header(bytes: &[u8]) -> Result<Option<(Header, usize)>, ObjectError> {
    if bytes.len() < HEADER_BYTES {
        return Err(damaged(bytes.len(), format!("the object ends within its first {HEADER_BYTES} bytes")));
    }
    if bytes[..8] != MAGIC {
        return Err(damaged(0, "this is no object of a stream: its first bytes differ"));
    }
    let version = get_u32(bytes, 8);
    if version > FORMAT_VERSION {
        return Err(ObjectError::Later(format!("format {version}")));
    }
    expect_equal(8, "the format", FORMAT_VERSION, version)?;
    let header_len = get_u32(bytes, 68) as usize;
    if header_len < HEADER_BYTES || !header_len.is_multiple_of(8) {
        return Err(damaged(68, format!("a header of {header_len} bytes")));
    }
    let Some(header_bytes) = bytes.get(..header_len) else { return Ok(None) };
    let hex = |sum: u32| format!("{sum:08x}");
    let sum = crc32c::crc32c(&header_bytes[SUMMED..]);
    expect_equal(SUM.start, "the checksum of the header", hex(get_u32(bytes, SUM.start)), hex(sum))?;
    Ok(Some((decode_header(header_bytes)?, header_len)))
}

/// Decodes the fields of a header that passed its checksum.
fn decode_header(bytes: &[u8]) -> Result<Header, ObjectError> {
    expect_equal(66, "the bytes after the codec", 0, get_u32(bytes, KIND) >> 16)?;
    let after_len = get_u32(bytes, 132) as usize;
    let after_end =
        HEADER_BYTES.checked_add(after_len).filter(|end| end.checked_next_multiple_of(8) == Some(bytes.len()));
    let Some(after_end) = after_end else {
        return Err(damaged(132, format!("a set of tablets of {after_len} bytes in a header of {}", bytes.len())));
    };
    let (after, padding) = (&bytes[HEADER_BYTES..after_end], &bytes[after_end..]);
    if padding.iter().any(|byte| *byte != 0) {
        return Err(damaged(after_end, "the bytes after the set of tablets are not zero"));
    }
    let place = Place {
        database: Uuid::from_bytes(bytes[16..32].try_into().expect("16 bytes")),
        incarnation: get_u64(bytes, 32),
        seq: get_u64(bytes, 40),
        nonce: bytes[NONCE].try_into().expect("16 bytes"),
        previous: get_u32(bytes, 128),
    };
    let content = match (bytes[KIND], after.len()) {
        (RECORDS, _) => Content::Records(decode_batch(bytes, after)?),
        (FENCE, 8) => Content::Fence { by: get_u64(bytes, HEADER_BYTES) },
        (FIN, 0) => Content::Fin,
        (FENCE | FIN, len) => return Err(damaged(132, format!("an end of a stream with {len} further bytes"))),
        (kind, _) => return Err(ObjectError::Later(format!("kind {kind}"))),
    };
    if !matches!(content, Content::Records(_)) {
        expect_equal(CODEC, "the codec of an end of a stream", PLAIN, bytes[CODEC])?;
        if bytes[72..96].iter().chain(&bytes[104..128]).any(|byte| *byte != 0) {
            return Err(damaged(72, "an end of a stream with commits"));
        }
    }
    Ok(Header { place, cut_us: get_u64(bytes, 96), content })
}

fn decode_batch(bytes: &[u8], after: &[u8]) -> Result<Batch, ObjectError> {
    let [first_ts, last_ts, through] = [72, 80, 88].map(|at| get_u64(bytes, at));
    let commits = get_u32(bytes, 104);
    if first_ts > last_ts || last_ts > through || (commits == 0) != (last_ts == 0) {
        let what = format!("{commits} commits from {first_ts} to {last_ts} in a stream that is whole to {through}");
        return Err(damaged(72, what));
    }
    let tablets = decode_tablets(after).map_err(|malformed| {
        damaged(HEADER_BYTES + malformed.at as usize, format!("the tablets: {}", malformed.what))
    })?;
    Ok(Batch { first_ts, last_ts, through, commits, tablets })
}

/// Appends a set of tablets: the first number, then the difference of each number to the one before.
fn put_tablets(tablets: &BTreeSet<TabletId>, out: &mut Vec<u8>) {
    let mut before = 0;
    for tablet in tablets {
        put_varint(u64::from(tablet.0 - before), out);
        before = tablet.0;
    }
}

fn decode_tablets(bytes: &[u8]) -> Result<BTreeSet<TabletId>, Malformed> {
    let mut reader = Reader::new(bytes);
    let mut tablets: BTreeSet<TabletId> = BTreeSet::new();
    let mut before = 0_u64;
    while !reader.is_at_end() {
        let malformed = reader.malformed("numbers of tablets that do not ascend");
        before = before.checked_add(reader.varint()?).ok_or(malformed)?;
        let tablet = TabletId(u16::try_from(before).map_err(|_| malformed)?);
        if !tablets.insert(tablet) {
            return Err(malformed);
        }
    }
    Ok(tablets)
}

/// The checksum of an object's header, which the next object's header repeats.
///
/// # Panics
///
/// If there are fewer bytes than a header has.
pub fn header_sum(object: &[u8]) -> u32 {
    get_u32(object, SUM.start)
}

/// The nonce of an object: random bytes of its writer, mixed with the object's number (SplitMix64).
pub fn nonce_of(seed: Nonce, seq: u64) -> Nonce {
    let mut nonce = [0; 16];
    for (half, out) in nonce.chunks_exact_mut(8).enumerate() {
        let part = u64::from_le_bytes(seed[half * 8..half * 8 + 8].try_into().expect("eight bytes"));
        let mut n = part.wrapping_add(seq.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        out.copy_from_slice(&(n ^ (n >> 31)).to_le_bytes());
    }
    nonce
}

/// The object with another nonce. No writer does that (LOG-52); a simulation shows what happens if one did.
#[cfg(test)]
pub(super) fn with_nonce(object: &[u8], nonce: Nonce) -> Vec<u8> {
    let mut bytes = object.to_vec();
    bytes[NONCE].copy_from_slice(&nonce);
    let header_len = get_u32(&bytes, 68) as usize;
    seal(&mut bytes, header_len);
    bytes
}

/// Writes the checksum of a header.
fn seal(bytes: &mut [u8], header_len: usize) {
    let sum = crc32c::crc32c(&bytes[SUMMED..header_len]);
    bytes[SUM].copy_from_slice(&sum.to_le_bytes());
}

fn put_u32(number: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn put_u64(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn get_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn get_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests;
