//! A page image as bytes.
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
//! The decoder checks each page by itself; `store::restore` checks that pages agree with one another.

use mangrove_graph::{ElementKind, KeyId, LabelSetId, PAGE_SLOTS, TabletId, UserId, VertexId};
use mangrove_store::Content;
use mangrove_store::image::{ColumnImage, ColumnValues, PageImage, PageName, SlotSet};

use crate::codec::{
    Malformed, Reader, put_content, put_signed, put_text, put_user_id, put_varint, read_content, read_user_id,
};

const VERTICES: u8 = 0;
const EDGES: u8 = 1;

const HAS_GENERATIONS: u8 = 1;
const ALL_LIVE: u8 = 2;

const BOOL: u8 = 1;
const I32: u8 = 2;
const I64: u8 = 3;
const F64: u8 = 4;
const STRING: u8 = 5;
const ANY: u8 = 6;

/// The largest slot. A slot has 48 bits: generation and slot index.
const SLOT_MAX: u64 = (1 << 48) - 1;

/// The byte for a kind of page.
pub(super) fn kind_byte(kind: ElementKind) -> u8 {
    match kind {
        ElementKind::Vertex => VERTICES,
        ElementKind::Edge => EDGES,
    }
}

/// Reads the byte of a kind of page.
pub(super) fn read_kind(reader: &mut Reader<'_>) -> Result<ElementKind, Malformed> {
    let at = reader.malformed("a page of an unknown kind");
    match reader.byte()? {
        VERTICES => Ok(ElementKind::Vertex),
        EDGES => Ok(ElementKind::Edge),
        _ => Err(at),
    }
}

/// Appends a page image.
pub(crate) fn put_image(image: &PageImage, out: &mut Vec<u8>) {
    out.push(kind_byte(image.name.kind));
    for n in [u32::from(image.name.tablet.0), image.name.number, image.labels.0, image.capacity, image.used] {
        put_varint(u64::from(n), out);
    }
    let used = image.used as usize;
    let has_generations = !image.generations.is_empty();
    let all_live = image.live.len() == used;
    out.push((u8::from(has_generations) * HAS_GENERATIONS) | (u8::from(all_live) * ALL_LIVE));
    // LOG-26.
    image.generations.iter().for_each(|&generation| put_varint(u64::from(generation), out));
    if !all_live {
        put_slots(&image.live, used, out);
    }
    put_ids(&image.ids, out);
    put_ends(&image.ends, out);
    put_varint(image.columns.len() as u64, out);
    image.columns.iter().for_each(|column| put_column(column, &image.live, used, out));
}

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

fn read_u16(reader: &mut Reader<'_>) -> Result<u16, Malformed> {
    let at = reader.malformed("a number of more than 16 bits");
    u16::try_from(reader.varint()?).map_err(|_| at)
}

fn read_tablet(reader: &mut Reader<'_>) -> Result<TabletId, Malformed> {
    read_u16(reader).map(TabletId)
}

fn put_slots(slots: &SlotSet, used: usize, out: &mut Vec<u8>) {
    slots.words()[..used.div_ceil(64)].iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
}

/// Reads a set of slots. A slot at or above `used` is refused, so that the number of live slots tells whether all are
/// live.
fn read_slots(reader: &mut Reader<'_>, used: usize) -> Result<SlotSet, Malformed> {
    let mut words = [0; SlotSet::WORDS];
    for (number, word) in words[..used.div_ceil(64)].iter_mut().enumerate() {
        let at = reader.malformed("a slot beyond those that the page uses");
        *word = reader.u64()?;
        let used_here = used - number * 64;
        if used_here < 64 && *word >> used_here != 0 {
            return Err(at);
        }
    }
    Ok(SlotSet::from_words(words))
}

fn put_ids(ids: &[(u16, UserId)], out: &mut Vec<u8>) {
    put_varint(ids.len() as u64, out);
    let mut last = 0;
    for (at, id) in ids {
        put_varint(u64::from(at - last), out);
        put_user_id(id, out);
        last = *at;
    }
}

fn read_ids(reader: &mut Reader<'_>) -> Result<Vec<(u16, UserId)>, Malformed> {
    let mut last = 0_u16;
    let count = reader.count()?;
    let next = |_| {
        let at = reader.malformed("the id of a slot that no page has");
        last = last.checked_add(read_u16(reader)?).ok_or(at)?;
        Ok((last, read_user_id(reader)?))
    };
    (0..count).map(next).collect()
}

fn put_ends(ends: &[(VertexId, VertexId)], out: &mut Vec<u8>) {
    let mut last = 0;
    for (source, target) in ends {
        put_signed(source.slot() as i64 - last, out);
        put_varint(u64::from(target.tablet().0), out);
        put_varint(target.slot(), out);
        last = source.slot() as i64;
    }
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

fn put_column(column: &ColumnImage, live: &SlotSet, used: usize, out: &mut Vec<u8>) {
    put_varint(u64::from(column.key.0), out);
    out.push(match &column.values {
        ColumnValues::Bool(_) => BOOL,
        ColumnValues::I32(_) => I32,
        ColumnValues::I64(_) => I64,
        ColumnValues::F64(_) => F64,
        ColumnValues::String(_) => STRING,
        ColumnValues::Any(_) => ANY,
    });
    let is_partial = column.present != *live;
    out.push(u8::from(is_partial));
    if is_partial {
        put_slots(&column.present, used, out);
    }
    match &column.values {
        ColumnValues::Bool(v) => v.iter().for_each(|&value| out.push(u8::from(value))),
        ColumnValues::I32(v) => v.iter().for_each(|&value| put_signed(i64::from(value), out)),
        ColumnValues::I64(v) => v.iter().for_each(|&value| put_signed(value, out)),
        ColumnValues::F64(v) => v.iter().for_each(|&value| out.extend_from_slice(&value.to_bits().to_le_bytes())),
        ColumnValues::String(v) => v.iter().for_each(|value| put_text(value, out)),
        ColumnValues::Any(v) => v.iter().for_each(|value| put_content(value, out)),
    }
}

fn read_column(reader: &mut Reader<'_>, live: &SlotSet, used: usize) -> Result<ColumnImage, Malformed> {
    let key = KeyId(reader.varint_u32()?);
    let unknown = reader.malformed("a column of an unknown type");
    let tag = reader.byte()?;
    let present = match reader.byte()? {
        0 => *live,
        _ => read_slots(reader, used)?,
    };
    let count = present.len();
    let values = match tag {
        BOOL => ColumnValues::Bool(reader.take(count)?.iter().map(|&byte| byte != 0).collect()),
        I32 => {
            let wide = reader.malformed("an integer too large for its type");
            let next = |_| i32::try_from(reader.signed()?).map_err(|_| wide);
            ColumnValues::I32((0..count).map(next).collect::<Result<_, _>>()?)
        }
        I64 => ColumnValues::I64((0..count).map(|_| reader.signed()).collect::<Result<_, _>>()?),
        F64 => {
            let next = |_| Ok(f64::from_bits(reader.u64()?));
            ColumnValues::F64((0..count).map(next).collect::<Result<_, Malformed>>()?)
        }
        STRING => {
            let next = |_| Ok(reader.text()?.into());
            ColumnValues::String((0..count).map(next).collect::<Result<_, Malformed>>()?)
        }
        ANY => ColumnValues::Any((0..count).map(|_| read_present(reader)).collect::<Result<_, _>>()?),
        _ => return Err(unknown),
    };
    Ok(ColumnImage { key, present, values })
}

fn read_present(reader: &mut Reader<'_>) -> Result<Content, Malformed> {
    let at = reader.malformed("an absent value in a slot that is marked as present");
    match read_content(reader)? {
        Content::Absent => Err(at),
        content => Ok(content),
    }
}

#[cfg(test)]
mod tests {
    use mangrove_graph::Value;

    use super::*;

    fn images() -> [PageImage; 2] {
        let tablet = TabletId(3);
        let live: SlotSet = [0, 2, 70].into_iter().collect();
        let column = |key, present: &[usize], values| ColumnImage {
            key: KeyId(key),
            present: present.iter().copied().collect(),
            values,
        };
        let columns = vec![
            column(0, &[0, 2, 70], ColumnValues::I64(vec![1, -2, i64::MIN])),
            column(1, &[70], ColumnValues::String(vec!["a".into()])),
            column(2, &[0], ColumnValues::Bool(vec![true])),
            column(3, &[0, 2], ColumnValues::F64(vec![0.5, -0.0])),
            column(4, &[2], ColumnValues::I32(vec![-7])),
            column(9, &[0, 2], ColumnValues::Any(vec![Content::One(Value::from("x")), Content::One(Value::I8(1))])),
        ];
        let vertices = PageImage {
            name: PageName { tablet, kind: ElementKind::Vertex, number: 7 },
            labels: LabelSetId(5),
            capacity: 1_024,
            used: 71,
            generations: (0..71).collect(),
            live,
            ids: vec![(2, UserId::from("chosen")), (70, UserId::int(-1))],
            ends: Vec::new(),
            columns,
        };
        let vertex = |tablet, slot| VertexId::new(TabletId(tablet), slot);
        let edges = PageImage {
            name: PageName { tablet, kind: ElementKind::Edge, number: 0 },
            used: 2,
            generations: Vec::new(),
            live: (0..2).collect(),
            ids: Vec::new(),
            ends: vec![(vertex(3, SLOT_MAX), vertex(u16::MAX, 0)), (vertex(3, 1), vertex(1, 2))],
            columns: Vec::new(),
            ..vertices.clone()
        };
        [vertices, edges]
    }

    #[test]
    fn an_image_comes_back_as_it_was() {
        for image in images() {
            let mut bytes = Vec::new();
            put_image(&image, &mut bytes);
            let mut reader = Reader::new(&bytes);
            assert_eq!(read_image(&mut reader).unwrap(), image);
            reader.expect_end().unwrap();
        }
    }

    #[test]
    fn a_live_slot_beyond_those_in_use_is_refused() {
        // 8 slots are in use. The words have 8 bits set, one of them for slot 8, which is not in use.
        let image = [&[VERTICES, 0, 0, 0, 8, 8, 0][..], &0x017f_u64.to_le_bytes(), &[0, 0]].concat();
        let refused = read_image(&mut Reader::new(&image)).unwrap_err();
        assert!(refused.to_string().contains("beyond those that the page uses"), "{refused}");
    }

    #[test]
    fn bytes_that_are_no_image_are_refused_or_make_another_one() {
        for image in images() {
            let mut bytes = Vec::new();
            put_image(&image, &mut bytes);
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
