//! The id of a vertex property, as a client sees it.
//!
//! The wire formats have an id for every vertex property, but storing one would cost as much as the value. So the id is
//! made from the vertex's id, the key and the number of the value under the key (its *ordinal*): `VERTEX:KEY` for the
//! ordinal 0, which the first value under a key gets, and `VERTEX:KEY:ORDINAL` for the others.

use smol_str::{SmolStr, format_smolstr};

use super::Value;

/// The id of value number `ordinal` under `key` of the vertex that users know by the id `vertex`.
pub fn vertex_property_id(vertex: &Value, key: &str, ordinal: u32) -> Value {
    let owner: SmolStr = match vertex {
        Value::I32(n) => format_smolstr!("{n}"),
        Value::I64(n) => format_smolstr!("{n}"),
        Value::Uuid(u) => format_smolstr!("{u}"),
        Value::String(s) => s.clone(),
        other => format_smolstr!("{other:?}"),
    };
    Value::String(match ordinal {
        0 => format_smolstr!("{owner}:{key}"),
        n => format_smolstr!("{owner}:{key}:{n}"),
    })
}
