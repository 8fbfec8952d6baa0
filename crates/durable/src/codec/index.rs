//! The definition of an index as bytes: `id | flags 1: ordered 1, unique 2, of one label 4, of edges 8 | label, if of
//! one | count, keys`.
//!
//! The log has a definition for each creation of an index, and a checkpoint has one for each index. The caller checks
//! the names against its catalog.

use mangrove_graph::{ElementKind, IndexId, IndexInfo, KeyId, LabelId};

use super::{Malformed, Reader, put_varint};

const ORDERED: u8 = 1;
const UNIQUE: u8 = 2;
const OF_ONE_LABEL: u8 = 4;
const OF_EDGES: u8 = 8;

/// Appends the definition of an index.
pub fn put_index(info: &IndexInfo, out: &mut Vec<u8>) {
    put_varint(u64::from(info.id.0), out);
    let flag = |is: bool, flag: u8| if is { flag } else { 0 };
    out.push(
        flag(info.ordered, ORDERED)
            | flag(info.unique, UNIQUE)
            | flag(info.label.is_some(), OF_ONE_LABEL)
            | flag(info.element == ElementKind::Edge, OF_EDGES),
    );
    info.label.iter().for_each(|label| put_varint(u64::from(label.0), out));
    put_varint(info.keys.len() as u64, out);
    info.keys.iter().for_each(|key| put_varint(u64::from(key.0), out));
}

/// Reads the bytes of [`put_index`]. Refuses unknown flags: an index with an unknown property must not be built without
/// that property.
pub fn read_index(reader: &mut Reader<'_>) -> Result<IndexInfo, Malformed> {
    let id = IndexId(reader.varint_u32()?);
    let unknown = reader.malformed("an index of an unknown kind");
    let flags = reader.byte()?;
    if flags & !(ORDERED | UNIQUE | OF_ONE_LABEL | OF_EDGES) != 0 {
        return Err(unknown);
    }
    let label = match flags & OF_ONE_LABEL {
        0 => None,
        _ => Some(LabelId(reader.varint_u32()?)),
    };
    let count = reader.count()?;
    let keys: Vec<KeyId> = (0..count).map(|_| reader.varint_u32().map(KeyId)).collect::<Result<_, _>>()?;
    let element = if flags & OF_EDGES == 0 { ElementKind::Vertex } else { ElementKind::Edge };
    Ok(IndexInfo { id, element, label, keys: keys.into(), ordered: flags & ORDERED != 0, unique: flags & UNIQUE != 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_comes_back_and_an_unknown_kind_is_refused() {
        for (element, label, ordered, unique) in [
            (ElementKind::Vertex, None, false, true),
            (ElementKind::Vertex, Some(LabelId(300)), true, false),
            (ElementKind::Edge, Some(LabelId(3)), false, false),
        ] {
            let info = IndexInfo { id: IndexId(4), element, label, keys: [KeyId(0), KeyId(7)].into(), ordered, unique };
            let mut bytes = Vec::new();
            put_index(&info, &mut bytes);
            let mut reader = Reader::new(&bytes);
            assert_eq!(read_index(&mut reader), Ok(info));
            assert!(reader.is_at_end());
            for end in 0..bytes.len() {
                assert!(read_index(&mut Reader::new(&bytes[..end])).is_err());
            }
            bytes[1] |= 16;
            let error = read_index(&mut Reader::new(&bytes)).unwrap_err();
            assert_eq!(error, Malformed { at: 1, what: "an index of an unknown kind" });
        }
    }
}
