//! Writing page images.

use mangrove_graph::{ElementKind, VertexId};
use mangrove_store::image::PageImage;

use super::slots::{kind_byte, put_ids, put_slots};
use super::values::{ValueRange, put_values};
use super::{ALL_LIVE, HAS_GENERATIONS, HAS_IDS, PREFIX_BYTES};
use crate::checkpoint::compress::{Compression, Packer, TooLarge};
use crate::codec::{put_signed, put_varint};

/// Writes images, one after the other.
pub(crate) struct ImageWriter {
    packer: Packer,
    /// A part before it is packed.
    part: Vec<u8>,
    /// The packed parts of an image.
    parts: Vec<u8>,
}

impl ImageWriter {
    pub(crate) fn new(compression: Compression) -> Self {
        ImageWriter { packer: Packer::new(compression), part: Vec::new(), parts: Vec::new() }
    }

    /// Appends an image.
    pub(crate) fn put(&mut self, image: &PageImage, out: &mut Vec<u8>) -> Result<(), TooLarge> {
        let begin = out.len();
        self.parts.clear();
        out.extend_from_slice(&[0; PREFIX_BYTES]);
        out.push(kind_byte(image.name.kind));
        for n in [u32::from(image.name.tablet.0), image.name.number, image.labels.0, image.capacity, image.used] {
            put_varint(u64::from(n), out);
        }
        let used = image.used as usize;
        let all_live = image.live.len() == used;
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        out.push(
            flag(!image.generations.is_empty(), HAS_GENERATIONS)
                | flag(all_live, ALL_LIVE)
                | flag(!image.ids.is_empty(), HAS_IDS),
        );
        if !all_live {
            put_slots(&image.live, used, out);
        }
        if !image.generations.is_empty() {
            // LOG-26.
            self.put_part(out, |out| {
                image.generations.iter().for_each(|&generation| put_varint(generation.into(), out))
            })?;
        }
        if !image.ids.is_empty() {
            self.put_part(out, |out| put_ids(&image.ids, out))?;
        }
        if image.name.kind == ElementKind::Edge {
            self.put_part(out, |out| put_ends(&image.ends, out))?;
        }
        put_varint(image.columns.len() as u64, out);
        for column in &image.columns {
            let is_partial = column.present != image.live;
            self.part.clear();
            if is_partial {
                put_slots(&column.present, used, &mut self.part);
            }
            let tag = put_values(&column.values, &mut self.part);
            put_varint(u64::from(column.key.0), out);
            out.extend_from_slice(&[tag, u8::from(is_partial)]);
            ValueRange::of(&column.values).put(out);
            self.packer.pack(&self.part, &mut self.parts)?.put(out);
        }
        let head = &mut out[begin..];
        let length = (head.len() as u32).to_le_bytes();
        let crc = crc32c::crc32c_append(crc32c::crc32c(&length), &head[PREFIX_BYTES..]);
        head[..4].copy_from_slice(&length);
        head[4..PREFIX_BYTES].copy_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(&self.parts);
        Ok(())
    }

    /// Packs a part, and appends its form to the head.
    fn put_part(&mut self, head: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>)) -> Result<(), TooLarge> {
        self.part.clear();
        put(&mut self.part);
        self.packer.pack(&self.part, &mut self.parts)?.put(head);
        Ok(())
    }
}

fn put_ends(ends: &[(VertexId, VertexId)], out: &mut Vec<u8>) {
    let mut last = 0;
    for (source, _) in ends {
        put_signed(source.slot() as i64 - last, out);
        last = source.slot() as i64;
    }
    // Numbers of one kind side by side are compressed better.
    ends.iter().for_each(|(_, target)| put_varint(u64::from(target.tablet().0), out));
    ends.iter().for_each(|(_, target)| put_varint(target.slot(), out));
}
