//! Bytes, integers and text: the functions that append them, and the [`Reader`] that takes them from untrusted bytes
//! (GRAPH-10).

use std::fmt;

use crate::Value;

/// Appends a varint.
pub fn put_varint(mut n: u64, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Appends a signed varint. Numbers near 0, of either sign, are short.
pub fn put_signed(n: i64, out: &mut Vec<u8>) {
    put_varint(((n << 1) ^ (n >> 63)) as u64, out);
}

/// Appends the length of some bytes, then the bytes.
pub fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Appends the length of a text in bytes, then the text.
pub fn put_text(text: &str, out: &mut Vec<u8>) {
    put_bytes(text.as_bytes(), out);
}

/// The error for bytes that no writer of this format produces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed {
    /// The offset of the byte at which the reader noticed the error, from the beginning of its input.
    pub at: u64,
    /// A description of the error, as a clause for the message.
    pub what: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.what, self.at)
    }
}

impl std::error::Error for Malformed {}

/// The [`Malformed::what`] of collections on more than [`Value::NESTING_MAX`] levels.
pub const TOO_DEEP: &str = "collections nested too deep";

/// Reads bytes from their beginning to their end.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: u32,
}

impl<'a> Reader<'a> {
    /// A reader at the beginning of the bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes, at: 0, depth: 0 }
    }

    /// The offset of the next byte.
    pub fn position(&self) -> u64 {
        self.at as u64
    }

    /// The number of bytes that are left.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Returns true if no byte is left.
    pub fn is_at_end(&self) -> bool {
        self.left() == 0
    }

    /// An error at the next byte.
    pub fn malformed(&self, what: &'static str) -> Malformed {
        Malformed { at: self.position(), what }
    }

    /// Fails if bytes are left.
    pub fn expect_end(&self) -> Result<(), Malformed> {
        if self.is_at_end() { Ok(()) } else { Err(self.malformed("bytes after the end")) }
    }

    /// The next `count` bytes.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let taken = self.bytes[self.at..].get(..count).ok_or(self.malformed("fewer bytes than their length says"))?;
        self.at += count;
        Ok(taken)
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let taken = self.take(N)?;
        Ok(taken.try_into().expect("as many as were asked for"))
    }

    /// One byte.
    pub fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    /// Four bytes, least significant first.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Eight bytes, least significant first.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A varint.
    pub fn varint(&mut self) -> Result<u64, Malformed> {
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
        Err(self.malformed("a number of more than 64 bits"))
    }

    /// A varint that fits in 32 bits.
    pub fn varint_u32(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.varint()?).map_err(|_| self.malformed("a number of more than 32 bits"))
    }

    /// A signed varint.
    pub fn signed(&mut self) -> Result<i64, Malformed> {
        let n = self.varint()?;
        Ok((n >> 1) as i64 ^ -((n & 1) as i64))
    }

    /// A count of items of which each takes at least one byte: a count above the bytes that are left is an error
    /// (GRAPH-10).
    pub fn count(&mut self) -> Result<usize, Malformed> {
        let count = self.varint()?;
        match usize::try_from(count) {
            Ok(count) if count <= self.left() => Ok(count),
            _ => Err(self.malformed("a count larger than what follows")),
        }
    }

    /// Reads `count` items, one after the other.
    pub fn repeat<T>(
        &mut self,
        count: usize,
        mut item: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        (0..count).map(|_| item(self)).collect()
    }

    /// Reads the content of a collection, one level deeper. Reading takes stack for each level, so their number is
    /// bounded. A storable value ([`Value::is_storable`]) stays within the bound.
    pub fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Malformed>) -> Result<T, Malformed> {
        if self.depth > Value::NESTING_MAX {
            return Err(self.malformed(TOO_DEEP));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// A length, and as many bytes.
    pub fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let count = self.count()?;
        self.take(count)
    }

    /// A length in bytes, and as much text.
    pub fn text(&mut self) -> Result<&'a str, Malformed> {
        let at = self.malformed("text that is not UTF-8");
        std::str::from_utf8(self.bytes()?).map_err(|_| at)
    }
}
