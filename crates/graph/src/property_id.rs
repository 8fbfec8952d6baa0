//! The id of a vertex property as a client sees it.
//!
//! A vertex property needs an id on the wire, but storing one would cost as much as the value. So it is
//! spelled from what names the property anyway: `VERTEX:KEY` for the only value under a key, and
//! `VERTEX:KEY:ORDINAL` where the key has several.

use smol_str::{SmolStr, format_smolstr};

use crate::value::Value;

/// The id of the property `key` (number `ordinal` of its values) of the vertex with this user-visible id.
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
