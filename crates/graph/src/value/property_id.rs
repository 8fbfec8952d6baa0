//! The id of a vertex property, as a client sees it.
//!
//! The wire format asks for an id of every vertex property, but storing one would cost as much as the value. So the id
//! is made from what names the property anyway: `VERTEX:KEY` for the only value under a key, and `VERTEX:KEY:ORDINAL`
//! if the key has several.

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
