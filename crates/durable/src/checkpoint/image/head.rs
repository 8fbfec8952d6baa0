//! Reading page images of version 2: all of an image, or its head and parts.

use mangrove_graph::{ElementKind, KeyId, LabelSetId, PAGE_SLOTS, TabletId, UserId, VertexId};
use mangrove_store::image::{ColumnImage, PageImage, PageName, SlotSet};

use super::slots::{SLOT_MAX, read_ids, read_kind, read_list, read_slots, read_tablet, read_u16};
use super::values::{Types, ValueRange, read_values};
use super::{ALL_LIVE, HAS_GENERATIONS, HAS_IDS, PREFIX_BYTES};
use crate::checkpoint::compress::{PartForm, Unpacker};
use crate::codec::{Malformed, Reader};

/// A part of an image: where it lies, and in which form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    /// The offset in the image.
    offset: u64,
    form: PartForm,
}

impl Part {
    /// The offset in the image of the byte after it.
    fn end(self) -> u64 {
        self.offset + u64::from(self.form.stored)
    }

    /// The part's bytes in an image, all of which the caller has.
    fn of(self, image: &[u8]) -> Result<&[u8], Malformed> {
        let found = usize::try_from(self.offset).ok().zip(usize::try_from(self.end()).ok());
        let bytes = found.and_then(|(begin, end)| image.get(begin..end));
        bytes.ok_or(Malformed { at: image.len() as u64, what: "the image ends before its parts" })
    }
}

/// A column in the head of an image.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ColumnHead {
    pub(crate) key: KeyId,
    pub(crate) range: ValueRange,
    tag: u8,
    is_partial: bool,
    part: Part,
}

/// The head of an image.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ImageHead {
    pub(crate) name: PageName,
    labels: LabelSetId,
    capacity: u32,
    used: u32,
    live: SlotSet,
    generations: Option<Part>,
    ids: Option<Part>,
    ends: Option<Part>,
    pub(crate) columns: Vec<ColumnHead>,
    /// The length of the whole image in bytes.
    bytes: u64,
}

impl ImageHead {
    /// Reads the head of an image from its first bytes, and checks the checksum of the head.
    pub(crate) fn check(bytes: &[u8]) -> Result<Self, Malformed> {
        let head = head_bytes(bytes)?;
        let crc = u32::from_le_bytes(head[4..PREFIX_BYTES].try_into().expect("four bytes"));
        if crc32c::crc32c_append(crc32c::crc32c(&head[..4]), &head[PREFIX_BYTES..]) != crc {
            return Err(Malformed { at: 4, what: "the checksum of the head of an image is wrong" });
        }
        ImageHead::read(bytes)
    }

    /// Reads the head of an image from its first bytes. The caller has checked a checksum over them.
    fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let head = head_bytes(bytes)?;
        let reader = &mut Reader::new(head);
        reader.take(PREFIX_BYTES)?;
        let kind = read_kind(reader)?;
        let name = PageName { tablet: read_tablet(reader)?, kind, number: reader.varint_u32()? };
        let (labels, capacity, used) = (LabelSetId(reader.varint_u32()?), reader.varint_u32()?, reader.varint_u32()?);
        if u64::from(used) > PAGE_SLOTS {
            return Err(reader.malformed("more slots than a page has"));
        }
        let unknown = reader.malformed("unknown flags of an image");
        let flags = reader.byte()?;
        if flags & !(HAS_GENERATIONS | ALL_LIVE | HAS_IDS) != 0 {
            return Err(unknown);
        }
        let live = match flags & ALL_LIVE {
            0 => read_slots(reader, used as usize)?,
            _ => (0..used as usize).collect(),
        };
        let mut end = head.len() as u64;
        let mut part = |reader: &mut Reader<'_>| {
            let part = Part { offset: end, form: PartForm::read(reader)? };
            end = part.end();
            Ok::<_, Malformed>(part)
        };
        let generations = if flags & HAS_GENERATIONS == 0 { None } else { Some(part(reader)?) };
        let ids = if flags & HAS_IDS == 0 { None } else { Some(part(reader)?) };
        let ends = if kind == ElementKind::Vertex { None } else { Some(part(reader)?) };
        let count = reader.count()?;
        let columns = reader.repeat(count, |reader| {
            let key = KeyId(reader.varint_u32()?);
            let tag = Types::All.read(reader)?;
            let unknown = reader.malformed("an unknown form of the slots of a column");
            let is_partial = match reader.byte()? {
                0 => false,
                1 => true,
                _ => return Err(unknown),
            };
            let range = ValueRange::read(tag, reader)?;
            Ok(ColumnHead { key, range, tag, is_partial, part: part(reader)? })
        })?;
        reader.expect_end()?;
        Ok(ImageHead { name, labels, capacity, used, live, generations, ids, ends, columns, bytes: end })
    }
}

/// The bytes of the head of an image, whose length they say.
fn head_bytes(bytes: &[u8]) -> Result<&[u8], Malformed> {
    let length = Reader::new(bytes).u32()? as usize;
    let short = Malformed { at: bytes.len() as u64, what: "the image ends before its head" };
    match bytes.get(..length) {
        Some(head) if length >= PREFIX_BYTES => Ok(head),
        Some(_) => Err(Malformed { at: 0, what: "a head of an image without fields" }),
        None => Err(short),
    }
}

/// Reads images, one after the other.
#[derive(Default)]
pub(crate) struct ImageReader {
    unpacker: Unpacker,
}

impl ImageReader {
    /// Reads a whole image. The caller has checked a checksum over all of it, and checks that such a page can exist.
    pub(crate) fn image(&mut self, bytes: &[u8]) -> Result<PageImage, Malformed> {
        let head = ImageHead::read(bytes)?;
        if head.bytes != bytes.len() as u64 {
            let at = head.bytes.min(bytes.len() as u64);
            return Err(Malformed { at, what: "the image does not end with its last part" });
        }
        let generations = match head.generations {
            Some(part) => self.generations(&head, part, part.of(bytes)?)?,
            None => Vec::new(),
        };
        let ids = match head.ids {
            Some(part) => self.ids(part, part.of(bytes)?)?,
            None => Vec::new(),
        };
        let ends = match head.ends {
            Some(part) => self.ends(&head, part, part.of(bytes)?)?,
            None => Vec::new(),
        };
        let columns = head.columns.iter().map(|column| self.column(&head, column, column.part.of(bytes)?));
        let columns = columns.collect::<Result<_, _>>()?;
        let ImageHead { name, labels, capacity, used, live, .. } = head;
        Ok(PageImage { name, labels, capacity, used, generations, live, ids, ends, columns })
    }

    /// Checks a whole image, and everything in it that is there twice: the checksums of the head and of the parts, and
    /// the ranges of values.
    pub(crate) fn check(&mut self, bytes: &[u8]) -> Result<PageImage, Malformed> {
        let head = ImageHead::check(bytes)?;
        let parts = [head.generations, head.ids, head.ends].into_iter().flatten();
        for part in parts.chain(head.columns.iter().map(|column| column.part)) {
            if crc32c::crc32c(part.of(bytes)?) != part.form.crc {
                return Err(Malformed { at: part.offset, what: "the checksum of a part of an image is wrong" });
            }
        }
        let image = self.image(bytes)?;
        for (column, head) in image.columns.iter().zip(&head.columns) {
            if ValueRange::of(&column.values) != head.range {
                return Err(Malformed { at: head.part.offset, what: "a column whose range is not that of its values" });
            }
        }
        Ok(image)
    }

    fn generations(&mut self, head: &ImageHead, part: Part, stored: &[u8]) -> Result<Vec<u16>, Malformed> {
        self.part(part, stored, |reader| read_list(reader, head.used as usize, read_u16))
    }

    fn ids(&mut self, part: Part, stored: &[u8]) -> Result<Vec<(u16, UserId)>, Malformed> {
        self.part(part, stored, read_ids)
    }

    fn ends(&mut self, head: &ImageHead, part: Part, stored: &[u8]) -> Result<Vec<(VertexId, VertexId)>, Malformed> {
        let count = head.live.len();
        self.part(part, stored, |reader| {
            let mut last = 0_i64;
            let sources = read_list(reader, count, |reader| {
                let at = reader.malformed(IMPOSSIBLE_SLOT);
                last = last.wrapping_add(reader.signed()?);
                u64::try_from(last).ok().filter(|slot| *slot <= SLOT_MAX).ok_or(at)
            })?;
            let tablets: Vec<TabletId> = read_list(reader, count, read_tablet)?;
            let mut pairs = sources.into_iter().zip(tablets);
            read_list(reader, count, |reader| {
                let at = reader.malformed(IMPOSSIBLE_SLOT);
                let target = reader.varint()?;
                let (source, tablet) = pairs.next().expect("as many as there are targets");
                match target <= SLOT_MAX {
                    true => Ok((VertexId::new(head.name.tablet, source), VertexId::new(tablet, target))),
                    false => Err(at),
                }
            })
        })
    }

    fn column(&mut self, head: &ImageHead, column: &ColumnHead, stored: &[u8]) -> Result<ColumnImage, Malformed> {
        self.part(column.part, stored, |reader| {
            let present = match column.is_partial {
                true => read_slots(reader, head.used as usize)?,
                false => head.live,
            };
            Ok(ColumnImage { key: column.key, present, values: read_values(column.tag, present.len(), reader)? })
        })
    }

    /// Unpacks a part and reads it to its end. An error has its offset in the image; in a compressed part, that of the
    /// part.
    fn part<T>(
        &mut self,
        part: Part,
        stored: &[u8],
        read: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>,
    ) -> Result<T, Malformed> {
        let bytes = self.unpacker.unpack(part.form, stored).map_err(|what| Malformed { at: part.offset, what })?;
        let mut reader = Reader::new(bytes);
        let result = read(&mut reader).and_then(|result| reader.expect_end().map(|()| result));
        result.map_err(|error| match part.form.is_as_it_is() {
            true => Malformed { at: part.offset + error.at, ..error },
            false => Malformed { at: part.offset, ..error },
        })
    }
}

const IMPOSSIBLE_SLOT: &str = "the end of an edge in a slot that no tablet has";
