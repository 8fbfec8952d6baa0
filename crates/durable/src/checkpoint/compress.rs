//! Compression of parts of checkpoint files: codec 0 leaves the bytes as they are, codec 1 is a frame of zstd.
//!
//! The reader knows how many bytes a frame unpacks to before it unpacks it, and refuses impossible numbers before it
//! allocates: a part unpacks to at most [`EXPANSION_MAX`] times its bytes and [`UNPACKED_FREE`] more. The packer leaves
//! parts that would unpack to more as they are. Contexts of zstd are made once for a [`Packer`] or an [`Unpacker`].

use mangrove_graph::codec::Malformed;
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::compress_bound;

use crate::codec::{Reader, put_varint};

const AS_IT_IS: u8 = 0;
const ZSTD: u8 = 1;

/// The level of zstd.
const LEVEL: i32 = 1;
/// Parts below this many bytes are not compressed: the frame takes about 12 bytes.
const WORTH_BYTES: usize = 48;
/// A part is compressed if it becomes shorter by this part of its bytes: a quarter. Less is not worth the time to unpack.
const WORTH_PART: usize = 4;
/// How many times its bytes a part may unpack to, beyond [`UNPACKED_FREE`].
const EXPANSION_MAX: u64 = 256;
/// The number of bytes that any part may unpack to.
const UNPACKED_FREE: u64 = 16 << 10;

/// Whether a writer compresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Compression {
    /// Everything stays as it is.
    None,
    /// Parts that become shorter are compressed with zstd.
    Zstd,
}

/// The error for a part of more than 4 GiB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooLarge;

/// The stored form of a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PartForm {
    codec: u8,
    /// Bytes as stored.
    pub(super) stored: u32,
    /// Bytes after unpacking.
    unpacked: u32,
    /// The CRC32C of the stored bytes.
    pub(super) crc: u32,
}

impl PartForm {
    /// Appends the form: codec 1, bytes as stored, bytes after unpacking if the codec is not 0, CRC 4.
    pub(super) fn put(self, out: &mut Vec<u8>) {
        out.push(self.codec);
        put_varint(u64::from(self.stored), out);
        if self.codec != AS_IT_IS {
            put_varint(u64::from(self.unpacked), out);
        }
        out.extend_from_slice(&self.crc.to_le_bytes());
    }

    /// Reads the bytes of [`PartForm::put`].
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let unknown = reader.malformed("a part in an unknown codec");
        let codec = reader.byte()?;
        let stored = reader.varint_u32()?;
        let impossible = reader.malformed("a part that unpacks to more than it can have");
        let unpacked = match codec {
            AS_IT_IS => stored,
            ZSTD => reader.varint_u32()?,
            _ => return Err(unknown),
        };
        if codec != AS_IT_IS && !may_unpack_to(u64::from(stored), u64::from(unpacked)) {
            return Err(impossible);
        }
        Ok(PartForm { codec, stored, unpacked, crc: reader.u32()? })
    }

    /// Returns true if the stored bytes are the part itself.
    pub(super) fn is_as_it_is(self) -> bool {
        self.codec == AS_IT_IS
    }
}

fn may_unpack_to(stored: u64, unpacked: u64) -> bool {
    unpacked <= stored * EXPANSION_MAX + UNPACKED_FREE
}

/// Compresses parts, one after the other.
pub(super) struct Packer {
    compression: Compression,
    /// Made when it is first needed.
    compressor: Option<Compressor<'static>>,
}

impl Packer {
    pub(super) fn new(compression: Compression) -> Self {
        Packer { compression, compressor: None }
    }

    /// Appends a part in its shorter form.
    pub(super) fn pack(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<PartForm, TooLarge> {
        let begin = out.len();
        let unpacked = u32::try_from(bytes.len()).map_err(|_| TooLarge)?;
        let is_packed = bytes.len() >= WORTH_BYTES
            && self.compress(bytes, out).is_some_and(|stored| {
                stored <= bytes.len() - bytes.len() / WORTH_PART && may_unpack_to(stored as u64, bytes.len() as u64)
            });
        if !is_packed {
            out.truncate(begin);
            out.extend_from_slice(bytes);
        }
        let stored = &out[begin..];
        let codec = if is_packed { ZSTD } else { AS_IT_IS };
        Ok(PartForm { codec, stored: stored.len() as u32, unpacked, crc: crc32c::crc32c(stored) })
    }

    /// Appends the form of a part and its bytes as stored: a *packed part*.
    pub(super) fn put(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), TooLarge> {
        let mut stored = Vec::new();
        self.pack(bytes, &mut stored)?.put(out);
        out.append(&mut stored);
        Ok(())
    }

    /// Appends a frame and returns its length; `None` if the writer does not compress, or zstd cannot.
    fn compress(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        if self.compression == Compression::None {
            return None;
        }
        if self.compressor.is_none() {
            self.compressor = Compressor::new(LEVEL).ok();
        }
        let begin = out.len();
        out.resize(begin + compress_bound(bytes.len()), 0);
        let stored = self.compressor.as_mut()?.compress_to_buffer(bytes, &mut out[begin..]).ok()?;
        out.truncate(begin + stored);
        Some(stored)
    }
}

/// Unpacks parts, one after the other.
#[derive(Default)]
pub(super) struct Unpacker {
    decompressor: Option<Decompressor<'static>>,
    buffer: Vec<u8>,
}

impl Unpacker {
    /// The part with these stored bytes. The caller has as many of them as the form says.
    pub(super) fn unpack<'a>(&'a mut self, form: PartForm, stored: &'a [u8]) -> Result<&'a [u8], &'static str> {
        debug_assert_eq!(stored.len(), form.stored as usize);
        if form.is_as_it_is() {
            return Ok(stored);
        }
        if self.decompressor.is_none() {
            self.decompressor = Some(Decompressor::new().map_err(|_| "zstd finds no memory to unpack")?);
        }
        let decompressor = self.decompressor.as_mut().expect("it was just made");
        self.buffer.clear();
        // PartForm::read has bounded it.
        self.buffer.reserve(form.unpacked as usize);
        // Fills the buffer up to its capacity, which may be larger.
        match decompressor.decompress_to_buffer(stored, &mut self.buffer) {
            Ok(unpacked) if unpacked == form.unpacked as usize => Ok(&self.buffer),
            _ => Err("bytes that zstd cannot unpack to their length"),
        }
    }
}

/// Reads a packed part that takes all of the bytes.
pub(super) fn read_packed<T>(
    bytes: &[u8],
    unpacker: &mut Unpacker,
    read: impl FnOnce(&[u8]) -> Result<T, Malformed>,
) -> Result<T, Malformed> {
    let mut reader = Reader::new(bytes);
    let form = PartForm::read(&mut reader)?;
    let (at, left) = (reader.position(), reader.left());
    if left != form.stored as usize {
        return Err(Malformed { at, what: "a part of another length than its form says" });
    }
    let part = unpacker.unpack(form, reader.take(left)?).map_err(|what| Malformed { at, what })?;
    read(part).map_err(|error| Malformed { at: at + if form.is_as_it_is() { error.at } else { 0 }, ..error })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(bytes: &[u8], compression: Compression) -> (PartForm, Vec<u8>) {
        let mut out = vec![7];
        let form = Packer::new(compression).pack(bytes, &mut out).unwrap();
        assert_eq!(out.remove(0), 7, "what was there stays");
        (form, out)
    }

    #[test]
    fn parts_come_back() {
        let mut unpacker = Unpacker::default();
        let noise: Vec<u8> = (0..2_000_u32).flat_map(|n| crc32c::crc32c(&n.to_le_bytes()).to_le_bytes()).collect();
        for (bytes, is_shorter) in [(vec![], false), (vec![1; 20], false), (vec![1; 4_000], true), (noise, false)] {
            for compression in [Compression::None, Compression::Zstd] {
                let (form, stored) = form(&bytes, compression);
                assert_eq!(stored.len() < bytes.len(), is_shorter && compression == Compression::Zstd);
                let mut written = Vec::new();
                form.put(&mut written);
                let read = PartForm::read(&mut Reader::new(&written)).unwrap();
                assert_eq!(read, form);
                assert_eq!(unpacker.unpack(read, &stored).unwrap(), bytes);
            }
        }
    }

    #[test]
    fn a_part_that_would_grow_too_much_stays_as_it_is_and_is_refused_if_it_claims_to() {
        let zeros = vec![0; 4 << 20];
        let (whole, stored) = form(&zeros, Compression::Zstd);
        assert!(whole.is_as_it_is() && stored.len() == zeros.len());
        let packed = zstd::bulk::compress(&zeros, LEVEL).unwrap();
        let mut bytes = Vec::new();
        PartForm { codec: ZSTD, stored: packed.len() as u32, unpacked: zeros.len() as u32, crc: 0 }.put(&mut bytes);
        let refused = PartForm::read(&mut Reader::new(&bytes)).unwrap_err();
        assert_eq!(refused.what, "a part that unpacks to more than it can have");
    }

    #[test]
    fn a_frame_of_another_length_is_refused() {
        let (form, stored) = form(&[1; 4_000], Compression::Zstd);
        for unpacked in [3_999, 4_001] {
            assert!(Unpacker::default().unpack(PartForm { unpacked, ..form }, &stored).is_err());
        }
        let other = vec![9; stored.len()];
        assert!(Unpacker::default().unpack(form, &other).is_err());
    }
}
