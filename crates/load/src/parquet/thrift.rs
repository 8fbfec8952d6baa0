//! Thrift's compact protocol, as far as Parquet's own structures need it: to check a footer before a decoder sees it,
//! and to read the headers of pages.
//!
//! A list declares its length first, and a decoder allocates that much. Here every list is walked without allocating. A
//! list that declares more elements than there are, and structures that nest too deep, are errors.

use std::fmt;

/// The most levels of nested structures. Those of Parquet have about 8.
const DEPTH_MAX: u32 = 24;

/// The reason why bytes are not a structure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// They end inside the structure.
    Ends,
    /// They are not a structure of this protocol.
    Damaged(&'static str),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Ends => f.write_str("it ends in the middle"),
            Fault::Damaged(what) => f.write_str(what),
        }
    }
}

type Result<T> = std::result::Result<T, Fault>;

/// The type of a field. A boolean field has one type for true and one for false.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ThriftKind {
    True,
    False,
    Byte,
    Int,
    Double,
    Binary,
    List,
    Map,
    Struct,
}

impl ThriftKind {
    fn of(code: u8) -> Result<Self> {
        Ok(match code {
            1 => ThriftKind::True,
            2 => ThriftKind::False,
            3 => ThriftKind::Byte,
            4..=6 => ThriftKind::Int,
            7 => ThriftKind::Double,
            8 => ThriftKind::Binary,
            9 | 10 => ThriftKind::List,
            11 => ThriftKind::Map,
            12 => ThriftKind::Struct,
            _ => return Err(Fault::Damaged("a field of no known type")),
        })
    }
}

/// Reads structures from the front of some bytes.
pub(super) struct Thrift<'b> {
    bytes: &'b [u8],
    at: usize,
    depth: u32,
}

impl<'b> Thrift<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Thrift { bytes, at: 0, depth: 0 }
    }

    /// The number of bytes that were read.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    fn byte(&mut self) -> Result<u8> {
        let byte = *self.bytes.get(self.at).ok_or(Fault::Ends)?;
        self.at += 1;
        Ok(byte)
    }

    fn advance(&mut self, bytes: u64) -> Result<()> {
        let left = (self.bytes.len() - self.at) as u64;
        if bytes > left {
            return Err(Fault::Ends);
        }
        self.at += bytes as usize;
        Ok(())
    }

    /// Reads an unsigned number of variable length.
    pub(super) fn unsigned(&mut self) -> Result<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Fault::Damaged("a number of more than 64 bits"))
    }

    /// Reads a signed number.
    pub(super) fn int(&mut self) -> Result<i64> {
        let zigzag = self.unsigned()?;
        Ok((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
    }

    /// Reads a structure. `field` gets the number and the type of each field and returns true if it has read the field;
    /// otherwise the field is skipped.
    pub(super) fn fields(&mut self, mut field: impl FnMut(&mut Self, i64, ThriftKind) -> Result<bool>) -> Result<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Fault::Damaged("structures are nested too deep"));
        }
        let mut number = 0_i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                self.depth -= 1;
                return Ok(());
            }
            number = match head >> 4 {
                0 => self.int()?,
                delta => number.checked_add(i64::from(delta)).ok_or(Fault::Damaged("a field without a number"))?,
            };
            let kind = ThriftKind::of(head & 0x0f)?;
            if !field(self, number, kind)? {
                self.skip(kind)?;
            }
        }
    }

    /// Reads the head of a list: the type and the number of its elements. Each element has at least a byte.
    pub(super) fn list(&mut self) -> Result<(ThriftKind, u64)> {
        let head = self.byte()?;
        let size = match head >> 4 {
            15 => self.unsigned()?,
            size => u64::from(size),
        };
        if size > (self.bytes.len() - self.at) as u64 {
            return Err(Fault::Damaged("a list that is longer than what holds it"));
        }
        // An empty list need not name a type.
        let kind = if size == 0 { ThriftKind::Byte } else { ThriftKind::of(head & 0x0f)? };
        Ok((kind, size))
    }

    fn skip(&mut self, kind: ThriftKind) -> Result<()> {
        match kind {
            ThriftKind::True | ThriftKind::False => Ok(()),
            ThriftKind::Byte => self.advance(1),
            ThriftKind::Int => self.unsigned().map(drop),
            ThriftKind::Double => self.advance(8),
            ThriftKind::Binary => {
                let len = self.unsigned()?;
                self.advance(len)
            }
            ThriftKind::Struct => self.fields(|_, _, _| Ok(false)),
            ThriftKind::List => {
                let (kind, size) = self.list()?;
                self.nested(|thrift| (0..size).try_for_each(|_| thrift.skip_element(kind)))
            }
            ThriftKind::Map => {
                let size = self.unsigned()?;
                if size == 0 {
                    return Ok(());
                }
                let kinds = self.byte()?;
                let (key, value) = (ThriftKind::of(kinds >> 4)?, ThriftKind::of(kinds & 0x0f)?);
                self.nested(|thrift| {
                    (0..size).try_for_each(|_| {
                        thrift.skip_element(key)?;
                        thrift.skip_element(value)
                    })
                })
            }
        }
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Fault::Damaged("structures are nested too deep"));
        }
        read(self)?;
        self.depth -= 1;
        Ok(())
    }

    /// Skips an element of a list, in which a boolean has a byte of its own.
    fn skip_element(&mut self, kind: ThriftKind) -> Result<()> {
        match kind {
            ThriftKind::True | ThriftKind::False => self.advance(1),
            kind => self.skip(kind),
        }
    }
}

/// The most levels of nested types in a schema.
const SCHEMA_DEPTH_MAX: usize = 32;

/// Checks that a footer is complete: that all its lists are there, and that its schema is a tree of limited depth.
pub(super) fn check_footer(bytes: &[u8]) -> Result<()> {
    let mut thrift = Thrift::new(bytes);
    thrift.fields(|thrift, number, kind| match (number, kind) {
        (2, ThriftKind::List) => check_schema(thrift).map(|()| true),
        _ => Ok(false),
    })
}

/// Checks the elements of a schema: a tree in depth-first order, in which each says how many children follow.
fn check_schema(thrift: &mut Thrift<'_>) -> Result<()> {
    let (kind, size) = thrift.list()?;
    if kind != ThriftKind::Struct || size == 0 {
        return Err(Fault::Damaged("the schema is not a list of types"));
    }
    // For each open level, the number of children that are still to come.
    let mut open: Vec<u64> = vec![1];
    for _ in 0..size {
        let mut children = 0;
        thrift.fields(|thrift, number, kind| {
            if (number, kind) != (5, ThriftKind::Int) {
                return Ok(false);
            }
            children = u64::try_from(thrift.int()?).map_err(|_| Fault::Damaged("a type with fewer than no fields"))?;
            Ok(true)
        })?;
        match open.last_mut() {
            Some(left) => *left -= 1,
            None => return Err(Fault::Damaged("the schema has types that belong to no field")),
        }
        if children > 0 {
            open.push(children);
        }
        if open.len() > SCHEMA_DEPTH_MAX {
            return Err(Fault::Damaged("types are nested too deep"));
        }
        while open.last() == Some(&0) {
            open.pop();
        }
    }
    if open.is_empty() { Ok(()) } else { Err(Fault::Damaged("the schema lacks types")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_must_be_as_long_as_they_say() {
        // Field 4 is a list of structures: two empty ones, then the end.
        assert_eq!(check_footer(&[0x49, 0x2c, 0, 0, 0]), Ok(()));
        assert_eq!(check_footer(&[0x49, 0x2c, 0]), Err(Fault::Damaged("a list that is longer than what holds it")));
        let huge = [0x49, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0];
        assert_eq!(check_footer(&huge), Err(Fault::Damaged("a list that is longer than what holds it")));
        assert_eq!(check_footer(&[0x48, 0x7f, 0]), Err(Fault::Ends));
    }

    #[test]
    fn structures_may_not_nest_without_end() {
        assert_eq!(check_footer(&[0x1c; 100_000]), Err(Fault::Damaged("structures are nested too deep")));
        assert!(check_footer(&[0x49; 100_000]).is_err());
        // A schema (field 2) whose every type has one child.
        let mut deep = vec![0x29, 0xfc, 0xe8, 0x07];
        (0..1000).for_each(|_| deep.extend([0x55, 2, 0]));
        deep.push(0);
        assert_eq!(check_footer(&deep), Err(Fault::Damaged("types are nested too deep")));
        // One type with one field, one that lacks it, and one field too many.
        assert_eq!(check_footer(&[0x29, 0x2c, 0x55, 2, 0, 0, 0]), Ok(()));
        assert_eq!(check_footer(&[0x29, 0x1c, 0x55, 2, 0, 0]), Err(Fault::Damaged("the schema lacks types")));
        let more = Err(Fault::Damaged("the schema has types that belong to no field"));
        assert_eq!(check_footer(&[0x29, 0x2c, 0, 0, 0]), more);
    }

    #[test]
    fn numbers_have_signs_and_at_most_64_bits() {
        for (bytes, number) in [(&[0][..], 0), (&[1], -1), (&[2], 1), (&[0xfe, 0x01], 127)] {
            assert_eq!(Thrift::new(bytes).int(), Ok(number));
        }
        assert!(Thrift::new(&[0xff; 11]).unsigned().is_err());
    }
}
