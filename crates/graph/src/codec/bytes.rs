//! Bytes, integers and text.

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

/// Appends a signed varint: numbers near 0, of either sign, are short.
pub fn put_signed(n: i64, out: &mut Vec<u8>) {
    put_varint(((n << 1) ^ (n >> 63)) as u64, out);
}

/// Appends bytes with their length in front.
pub fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Appends text with its length in bytes in front.
pub fn put_text(text: &str, out: &mut Vec<u8>) {
    put_bytes(text.as_bytes(), out);
}

/// Bytes that nobody writes: where, counted from the beginning of what was read, and what is wrong with them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed {
    /// The offset of the byte at which it was noticed.
    pub at: u64,
    /// What was met there.
    pub what: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.what, self.at)
    }
}

impl std::error::Error for Malformed {}

/// What [`Malformed::what`] says where collections lie in one another deeper than [`Value::NESTING_MAX`].
pub const TOO_DEEP: &str = "collections nested too deep";

/// Reads from bytes, front to back.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: u32,
}

impl<'a> Reader<'a> {
    /// From the beginning.
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes, at: 0, depth: 0 }
    }

    /// The offset of the next byte.
    pub fn position(&self) -> u64 {
        self.at as u64
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Whether nothing is left.
    pub fn is_at_end(&self) -> bool {
        self.left() == 0
    }

    /// The error for what is here.
    pub fn malformed(&self, what: &'static str) -> Malformed {
        Malformed { at: self.position(), what }
    }

    /// Fails when something is left.
    pub fn expect_end(&self) -> Result<(), Malformed> {
        if self.is_at_end() { Ok(()) } else { Err(self.malformed("bytes after the end")) }
    }

    /// The next bytes.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let taken = self.bytes[self.at..].get(..count).ok_or(self.malformed("fewer bytes than their length says"))?;
        self.at += count;
        Ok(taken)
    }

    /// The next bytes, of a number known beforehand.
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

    /// A count of things of which each takes at least one byte.
    pub fn count(&mut self) -> Result<usize, Malformed> {
        let count = self.varint()?;
        match usize::try_from(count) {
            Ok(count) if count <= self.left() => Ok(count),
            _ => Err(self.malformed("a count larger than what follows")),
        }
    }

    /// As many items, one after the other.
    pub fn repeat<T>(
        &mut self,
        count: usize,
        mut item: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        (0..count).map(|_| item(self)).collect()
    }

    /// Reads what lies in a collection, one level deeper. Reading takes stack for each level, so there is a limit: what
    /// is storable ([`Value::is_storable`]) stays within it.
    pub fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Malformed>) -> Result<T, Malformed> {
        if self.depth > Value::NESTING_MAX {
            return Err(self.malformed(TOO_DEEP));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Bytes with their length in front.
    pub fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let count = self.count()?;
        self.take(count)
    }

    /// Text with its length in front.
    pub fn text(&mut self) -> Result<&'a str, Malformed> {
        let at = self.malformed("text that is not UTF-8");
        std::str::from_utf8(self.bytes()?).map_err(|_| at)
    }
}
