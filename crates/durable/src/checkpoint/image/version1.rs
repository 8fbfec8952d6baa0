//! Page images of version 1, which files of format 1 have. They are read, and not written.
//!
//! ```text
//! kind 1 | tablet | number | label set | capacity | used | flags 1
//! generations: used varints, if flag 1
//! live: words of 8 bytes for `used` slots, unless flag 2 says that all are
//! ids: count, then (slots since the last one, id)
//! ends (of edges): (source slot as a difference from the last one, target tablet, target slot)
//! columns: count, then key | type 1 | present: 0, or 1 and words of 8 bytes | values
//! ```
//!
//! Numbers without a width are varints; differences of source slots are signed. Sources lie in the tablet of the page.

use mangrove_graph::{ElementKind, KeyId, LabelSetId, PAGE_SLOTS, TabletId, VertexId};
use mangrove_store::image::{ColumnImage, PageImage, PageName, SlotSet};

use super::slots::{SLOT_MAX, read_ids, read_kind, read_slots, read_tablet, read_u16};
use super::values::{Types, read_values};
use crate::codec::{Malformed, Reader};

const HAS_GENERATIONS: u8 = 1;
const ALL_LIVE: u8 = 2;

/// Reads a page image. The caller checks that such a page can exist.
pub(crate) fn read_image(reader: &mut Reader<'_>) -> Result<PageImage, Malformed> {
    let kind = read_kind(reader)?;
    let name = PageName { tablet: read_tablet(reader)?, kind, number: reader.varint_u32()? };
    let (labels, capacity, used) = (LabelSetId(reader.varint_u32()?), reader.varint_u32()?, reader.varint_u32()?);
    if u64::from(used) > PAGE_SLOTS {
        return Err(reader.malformed("more slots than a page has"));
    }
    let flags = reader.byte()?;
    let generations = match flags & HAS_GENERATIONS {
        0 => Vec::new(),
        _ => (0..used).map(|_| read_u16(reader)).collect::<Result<_, _>>()?,
    };
    let used_slots = used as usize;
    let live = match flags & ALL_LIVE {
        0 => read_slots(reader, used_slots)?,
        _ => (0..used_slots).collect(),
    };
    let ids = read_ids(reader)?;
    let ends = match kind {
        ElementKind::Vertex => Vec::new(),
        ElementKind::Edge => read_ends(reader, name.tablet, live.len())?,
    };
    let count = reader.count()?;
    let columns = (0..count).map(|_| read_column(reader, &live, used_slots)).collect::<Result<_, _>>()?;
    Ok(PageImage { name, labels, capacity, used, generations, live, ids, ends, columns })
}

fn read_ends(reader: &mut Reader<'_>, tablet: TabletId, count: usize) -> Result<Vec<(VertexId, VertexId)>, Malformed> {
    let mut last = 0_i64;
    let next = |_| {
        let at = reader.malformed("the end of an edge in a slot that no tablet has");
        last = last.wrapping_add(reader.signed()?);
        let source = u64::try_from(last).ok().filter(|slot| *slot <= SLOT_MAX).ok_or(at)?;
        let (target_tablet, target) = (read_tablet(reader)?, reader.varint()?);
        if target > SLOT_MAX {
            return Err(at);
        }
        Ok((VertexId::new(tablet, source), VertexId::new(target_tablet, target)))
    };
    (0..count).map(next).collect()
}

fn read_column(reader: &mut Reader<'_>, live: &SlotSet, used: usize) -> Result<ColumnImage, Malformed> {
    let key = KeyId(reader.varint_u32()?);
    let tag = Types::First.read(reader)?;
    let present = match reader.byte()? {
        0 => *live,
        _ => read_slots(reader, used)?,
    };
    Ok(ColumnImage { key, present, values: read_values(tag, present.len(), reader)? })
}

#[cfg(test)]
mod tests {
    use super::super::tests::images;
    use super::*;

    const VERTICES: &str = "0003070580084701000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f2021222324252627\
                            28292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f404142434445460500000000000000400000000000000002\
                            02030663686f73656e440101060003000203ffffffffffffffffff010105010000000000000000400000000000000001\
                            61020101010000000000000000000000000000000103040105000000000000000000000000000000000000000000e03f\
                            0000000000000080040201040000000000000000000000000000000d090601050000000000000000000000000000000c\
                            01780302";
    const EDGES: &str = "010300058008020200feffffffffff7fffff0300fbffffffffff7f010200";

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    #[test]
    fn images_of_earlier_versions_are_read() {
        for (image, hex) in images().into_iter().zip([VERTICES, EDGES]) {
            let bytes = bytes(hex);
            let mut reader = Reader::new(&bytes);
            assert_eq!(read_image(&mut reader).unwrap(), image);
            reader.expect_end().unwrap();
        }
    }

    #[test]
    fn a_live_slot_beyond_those_in_use_is_refused() {
        // 8 slots are in use. The words have 8 bits set, one of them for slot 8, which is not in use.
        let image = [&[0, 0, 0, 0, 8, 8, 0][..], &0x017f_u64.to_le_bytes(), &[0, 0]].concat();
        let refused = read_image(&mut Reader::new(&image)).unwrap_err();
        assert!(refused.to_string().contains("beyond those that the page uses"), "{refused}");
    }

    #[test]
    fn bytes_that_are_no_image_are_refused_or_make_another_one() {
        for bytes in [bytes(VERTICES), bytes(EDGES)] {
            for at in 0..bytes.len() {
                assert!(read_image(&mut Reader::new(&bytes[..at])).is_err(), "{at} bytes of {}", bytes.len());
                for flip in [1, 0x10, 0x80, 0xff] {
                    let mut other = bytes.clone();
                    other[at] ^= flip;
                    // Whatever the result is, the decoder must not panic.
                    let _ = read_image(&mut Reader::new(&other));
                }
            }
        }
    }
}
