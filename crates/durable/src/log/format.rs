//! The bytes around records: headers of segments and batches.
//!
//! ```text
//! segment   header block │ batch, padded to whole blocks │ batch │ … │ zeros, or the content of an earlier use
//! batch     header (64 bytes) │ payload │ zeros up to the block's end
//! ```
//!
//! - **LOG-12.** A batch begins at a block, so no write touches a block (nor a sector) with acknowledged content.
//!
//! The checksum of a batch covers header and payload. Salt, segment and number say that the batch belongs here and is
//! next: neither a batch of an earlier use of the file nor one of another database is ever taken for one of this
//! position. All integers are little-endian.

use std::fmt;

use uuid::Uuid;

/// Bytes of a block. Segments are written in blocks.
pub(crate) const BLOCK: u64 = 4096;
/// Bytes of a batch header.
pub(crate) const BATCH_HEADER: usize = 64;
/// The version of the format. Later ones are refused. Segments of version 1 are read: they have no moments.
pub(crate) const FORMAT_VERSION: u32 = 2;
/// The directory of the segments.
pub(crate) const DIRECTORY: &str = "wal";
/// The ending of the names of segments that are being made.
pub(crate) const UNFINISHED: &str = ".new";
/// In place of the offset of the first record: no record begins in the batch.
pub(crate) const NO_RECORD: u32 = u32::MAX;

const SEGMENT_MAGIC: [u8; 8] = *b"MGRVWAL\n";
const BATCH_MAGIC: [u8; 4] = *b"MGvB";
/// Bytes of a segment header that are used.
const SEGMENT_HEADER: usize = 72;
/// Where the part of a segment header begins that its checksum covers.
const SEGMENT_SUMMED: usize = 16;
/// Where the part of a batch begins that its checksum covers.
const BATCH_SUMMED: usize = 8;

/// The path of a segment.
pub(crate) fn segment_path(seq: u64) -> String {
    format!("{DIRECTORY}/{seq:016x}")
}

/// The number in the name of a segment; `None` for any other name.
pub(crate) fn segment_seq(name: &str) -> Option<u64> {
    let is_hex = name.len() == 16 && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    is_hex.then(|| u64::from_str_radix(name, 16).ok()).flatten()
}

fn get_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn get_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// A text that says which bytes were expected and which were found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Mismatch(pub(crate) String);

impl Mismatch {
    fn of(what: &str, expected: impl fmt::Display, found: impl fmt::Display) -> Self {
        Mismatch(format!("{what}: expected {expected}, found {found}"))
    }
}

/// The reason why a header block cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum HeaderError {
    /// It is no whole header of this format.
    Damaged(Mismatch),
    /// It has a later format version, which the number names.
    LaterFormat(u32),
}

impl From<Mismatch> for HeaderError {
    fn from(mismatch: Mismatch) -> Self {
        HeaderError::Damaged(mismatch)
    }
}

/// The first block of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SegmentHeader {
    /// The database that it belongs to.
    pub(crate) database: Uuid,
    /// The fencing epoch in which it was made.
    pub(crate) epoch: u64,
    /// The number of the segment.
    pub(crate) seq: u64,
    /// Its size in bytes when it was made, header block included.
    pub(crate) size: u64,
    /// True if its file was a segment before: bytes after its last batch may be of that use.
    pub(crate) is_reused: bool,
}

impl SegmentHeader {
    /// A number that all its batches carry.
    pub(crate) fn salt(&self) -> u64 {
        let (high, low) = self.database.as_u64_pair();
        let mixed = high ^ low.rotate_left(32) ^ self.epoch.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed ^ self.seq).wrapping_mul(0xD6E8_FEB8_6659_FD93)
    }

    /// Encodes the header block.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut block = Vec::with_capacity(BLOCK as usize);
        block.extend_from_slice(&SEGMENT_MAGIC);
        block.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        block.extend_from_slice(&[0; 4]);
        block.extend_from_slice(self.database.as_bytes());
        for number in [self.epoch, self.seq, self.size, self.salt(), u64::from(self.is_reused)] {
            block.extend_from_slice(&number.to_le_bytes());
        }
        debug_assert_eq!(block.len(), SEGMENT_HEADER);
        let sum = crc32c::crc32c(&block[SEGMENT_SUMMED..]);
        block[12..16].copy_from_slice(&sum.to_le_bytes());
        block.resize(BLOCK as usize, 0);
        block
    }

    /// Decodes a header block. A later version is refused by its number, whatever else is in the block (LOG-44).
    pub(crate) fn decode(block: &[u8]) -> Result<Self, HeaderError> {
        if block.len() < SEGMENT_HEADER {
            return Err(Mismatch::of("the length of a segment", format_args!("at least {BLOCK}"), block.len()).into());
        }
        if block[..8] != SEGMENT_MAGIC {
            return Err(Mismatch("this is no log segment: its first bytes differ".into()).into());
        }
        let version = get_u32(block, 8);
        if version > FORMAT_VERSION {
            return Err(HeaderError::LaterFormat(version));
        }
        if version == 0 {
            return Err(Mismatch::of("the format version of the log", FORMAT_VERSION, version).into());
        }
        let (expected, found) = (get_u32(block, 12), crc32c::crc32c(&block[SEGMENT_SUMMED..SEGMENT_HEADER]));
        if expected != found {
            let hex = |sum| format!("{sum:08x}");
            return Err(Mismatch::of("the checksum of a segment header", hex(expected), hex(found)).into());
        }
        let database = Uuid::from_bytes(block[16..32].try_into().expect("16 bytes"));
        let [epoch, seq, size, reused] = [32, 40, 48, 64].map(|at| get_u64(block, at));
        Ok(SegmentHeader { database, epoch, seq, size, is_reused: reused != 0 })
    }
}

/// The header of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BatchHeader {
    /// [`SegmentHeader::salt`].
    pub(crate) salt: u64,
    /// The segment.
    pub(crate) seq: u64,
    /// The number of the batch, from 1, over the life of the database.
    pub(crate) number: u64,
    /// Bytes of the payload.
    pub(crate) payload_len: u32,
    /// Where the first record begins in the payload. The bytes before it belong to a record of the batch before.
    pub(crate) first_record: u32,
    /// The smallest timestamp of the commits that end here; 0 if none does.
    pub(crate) first_ts: u64,
    /// The largest timestamp of the commits that end here; 0 if none does.
    pub(crate) last_ts: u64,
    /// The number of commits that end here.
    pub(crate) commit_count: u32,
}

/// The bytes found at a position where a batch may begin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum BatchFound {
    /// A batch of this segment, perhaps at another position than its own.
    Batch(BatchHeader),
    /// Zeros.
    Nothing,
    /// A batch of this segment that is not whole.
    Broken(Mismatch),
    /// Something else.
    Other(Mismatch),
}

impl BatchHeader {
    /// Writes the header into the first bytes of a batch whose payload is complete.
    pub(crate) fn seal(&self, batch: &mut [u8]) {
        batch[..4].copy_from_slice(&BATCH_MAGIC);
        for (at, number) in [(8, self.salt), (16, self.seq), (24, self.number), (40, self.first_ts), (48, self.last_ts)]
        {
            batch[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        for (at, number) in [(32, self.payload_len), (36, self.first_record), (56, self.commit_count), (60, 0)] {
            batch[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        let sum = crc32c::crc32c(&batch[BATCH_SUMMED..BATCH_HEADER + self.payload_len as usize]);
        batch[4..8].copy_from_slice(&sum.to_le_bytes());
    }

    /// The number of blocks that the batch takes.
    pub(crate) fn blocks(&self) -> u64 {
        blocks_of(u64::from(self.payload_len))
    }

    /// Looks for a batch at the first of `bytes`, which go on to the end of the segment.
    pub(crate) fn find(bytes: &[u8], segment: &SegmentHeader) -> BatchFound {
        let Some(header) = bytes.get(..BATCH_HEADER) else {
            return BatchFound::Other(Mismatch::of("bytes of a batch header", BATCH_HEADER, bytes.len()));
        };
        if header.iter().all(|byte| *byte == 0) {
            return BatchFound::Nothing;
        }
        if header[..4] != BATCH_MAGIC {
            return BatchFound::Other(Mismatch("a batch was expected, and something else found".into()));
        }
        let found = BatchHeader {
            salt: get_u64(header, 8),
            seq: get_u64(header, 16),
            number: get_u64(header, 24),
            payload_len: get_u32(header, 32),
            first_record: get_u32(header, 36),
            first_ts: get_u64(header, 40),
            last_ts: get_u64(header, 48),
            commit_count: get_u32(header, 56),
        };
        let salt = segment.salt();
        if found.salt != salt || found.seq != segment.seq {
            let described = |salt, seq| format!("salt {salt:016x} and segment {seq:x}");
            let (expected, found) = (described(salt, segment.seq), described(found.salt, found.seq));
            return BatchFound::Other(Mismatch::of("the place that a batch belongs to", expected, found));
        }
        let Some(summed) = bytes.get(BATCH_SUMMED..BATCH_HEADER + found.payload_len as usize) else {
            let left = bytes.len() - BATCH_HEADER;
            return BatchFound::Broken(Mismatch::of(
                "the length of a batch's payload",
                format_args!("at most {left}"),
                found.payload_len,
            ));
        };
        let (expected, sum) = (get_u32(header, 4), crc32c::crc32c(summed));
        if expected != sum {
            let hex = |sum| format!("{sum:08x}");
            return BatchFound::Broken(Mismatch::of("the checksum of a batch", hex(expected), hex(sum)));
        }
        BatchFound::Batch(found)
    }
}

/// The number of blocks that a batch with this many bytes of payload takes.
pub(crate) fn blocks_of(payload: u64) -> u64 {
    (payload + BATCH_HEADER as u64).div_ceil(BLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment() -> SegmentHeader {
        SegmentHeader { database: Uuid::from_u128(42), epoch: 3, seq: 0xabc, size: 1 << 20, is_reused: true }
    }

    #[test]
    fn a_segment_header_comes_back_and_no_bit_of_it_may_flip() {
        let block = segment().encode();
        assert_eq!(SegmentHeader::decode(&block), Ok(segment()));
        for bit in 0..SEGMENT_HEADER * 8 {
            let mut flipped = block.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(SegmentHeader::decode(&flipped).is_err(), "bit {bit}");
        }
        let mut other = block;
        other[8] = 3;
        assert_eq!(SegmentHeader::decode(&other), Err(HeaderError::LaterFormat(3)));
        other[8] = 1;
        assert_eq!(SegmentHeader::decode(&other), Ok(segment()));
        other[8] = 0;
        let refused = Mismatch("the format version of the log: expected 2, found 0".into());
        assert_eq!(SegmentHeader::decode(&other), Err(HeaderError::Damaged(refused)));
        assert!(SegmentHeader::decode(&[1, 2]).is_err());
    }

    #[test]
    fn a_batch_is_found_where_it_belongs_and_nowhere_else() {
        let header = BatchHeader {
            salt: segment().salt(),
            seq: segment().seq,
            number: 9,
            payload_len: 100,
            first_record: 0,
            first_ts: 5,
            last_ts: 6,
            commit_count: 2,
        };
        let mut bytes = vec![7; BATCH_HEADER + 100];
        header.seal(&mut bytes);
        assert_eq!(BatchHeader::find(&bytes, &segment()), BatchFound::Batch(header));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let found = BatchHeader::find(&flipped, &segment());
            assert!(matches!(found, BatchFound::Other(_) | BatchFound::Broken(_)), "bit {bit}: {found:?}");
        }
        for other in [SegmentHeader { epoch: 4, ..segment() }, SegmentHeader { seq: 0xabd, ..segment() }] {
            assert!(matches!(BatchHeader::find(&bytes, &other), BatchFound::Other(_)));
        }
        assert_eq!(BatchHeader::find(&[0; 64], &segment()), BatchFound::Nothing);
        assert!(matches!(BatchHeader::find(&bytes[..160], &segment()), BatchFound::Broken(_)));
    }

    #[test]
    fn names_of_segments_are_sixteen_hex_digits() {
        assert_eq!(segment_path(0xab), "wal/00000000000000ab");
        assert_eq!(segment_seq("00000000000000ab"), Some(0xab));
        for other in ["00000000000000ab.new", "00000000000000AB", "+0000000000000ab", ""] {
            assert_eq!(segment_seq(other), None);
        }
    }
}
