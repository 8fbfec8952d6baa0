//! Bytes, numbers and text, bounds-checked.

use mangrove_graph::{Error, Result};
use smol_str::SmolStr;

/// The error for bytes that no node of this version writes.
pub fn corrupt(what: &str) -> Error {
    Error::bug(format!("a message between nodes is damaged, or of another version of Mangrove: it has {what}"))
}

/// Appends a varint.
pub fn put_varint(mut n: u64, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Appends a signed varint: small numbers of either sign are short.
pub fn put_signed(n: i64, out: &mut Vec<u8>) {
    put_varint(((n << 1) ^ (n >> 63)) as u64, out);
}

/// Appends bytes with their length.
pub fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Appends a string with its length.
pub fn put_text(text: &str, out: &mut Vec<u8>) {
    put_bytes(text.as_bytes(), out);
}

/// Collections may lie in one another this deep: reading takes stack for each level.
const DEPTH_MAX: u32 = 200;

/// What is left to read.
pub struct Reader<'a> {
    bytes: &'a [u8],
    depth: u32,
}

impl<'a> Reader<'a> {
    /// Reads from the beginning.
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes, depth: 0 }
    }

    /// The next bytes.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or_else(|| corrupt("fewer bytes than it says"))?;
        self.bytes = rest;
        Ok(taken)
    }

    /// The next bytes, of a number known beforehand.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.bytes.split_first_chunk().ok_or_else(|| corrupt("fewer bytes than it says"))?;
        self.bytes = rest;
        Ok(*taken)
    }

    /// One byte.
    pub fn byte(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    /// Eight bytes.
    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A varint.
    pub fn varint(&mut self) -> Result<u64> {
        let mut n = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                break;
            }
            n |= part << shift;
            if byte & 0x80 == 0 {
                return Ok(n);
            }
        }
        Err(corrupt("a number of more than 64 bits"))
    }

    /// A signed varint.
    pub fn signed(&mut self) -> Result<i64> {
        let n = self.varint()?;
        Ok((n >> 1) as i64 ^ -((n & 1) as i64))
    }

    /// A varint of 32 bits.
    pub fn u32(&mut self) -> Result<u32> {
        u32::try_from(self.varint()?).map_err(|_| corrupt("a number of more than 32 bits"))
    }

    /// How many items follow. Each takes a byte at least, so there cannot be more than bytes.
    pub fn count(&mut self) -> Result<usize> {
        let count = self.varint()?;
        match usize::try_from(count) {
            Ok(count) if count <= self.bytes.len() => Ok(count),
            _ => Err(corrupt("more items than bytes")),
        }
    }

    /// As many items.
    pub fn repeat<T>(&mut self, count: usize, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        (0..count).map(|_| item(self)).collect()
    }

    /// Bytes with their length in front.
    pub fn sized(&mut self) -> Result<&'a [u8]> {
        let count = self.count()?;
        self.take(count)
    }

    /// A string.
    pub fn text(&mut self) -> Result<SmolStr> {
        std::str::from_utf8(self.sized()?).map(SmolStr::new).map_err(|_| corrupt("text that is not UTF-8"))
    }

    /// Reads what lies one level deeper.
    pub fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == DEPTH_MAX {
            return Err(Error::evaluation(format!(
                "a value with more than {DEPTH_MAX} collections in one another cannot travel between nodes"
            )));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Checks that everything was read.
    pub fn finish(&self) -> Result<()> {
        match self.bytes {
            [] => Ok(()),
            _ => Err(corrupt("bytes after its end")),
        }
    }
}
