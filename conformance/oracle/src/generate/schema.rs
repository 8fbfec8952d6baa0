//! The names that graphs and traversals of a case share, and the kinds of object in a stream.

use mangrove_graph::{DateTime, Value};
use rand::Rng;
use rand::rngs::SmallRng;

/// Labels of vertices.
pub(crate) const VERTEX_LABELS: [&str; 3] = ["person", "software", "place"];
/// Labels of edges.
pub(crate) const EDGE_LABELS: [&str; 3] = ["knows", "created", "likes"];
/// Values of `name`: few of them, so they repeat.
pub(crate) const NAMES: [&str; 8] = ["ann", "bob", "cas", "dora", "eve", "anna", "bo", "casper"];

/// The kind of object in a stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ObjectKind {
    Vertex,
    Edge,
    VertexProperty,
    EdgeProperty,
    /// Meta-properties.
    MetaProperty,
    /// Integers of one width.
    Int(u8),
    /// Doubles that are multiples of a quarter: their sums are exact in any order.
    Float,
    Text,
    Bool,
    /// Points in time in UTC.
    Date,
    /// Scalars of any type.
    Mixed,
    List(Box<ObjectKind>),
    Map(Box<ObjectKind>, Box<ObjectKind>),
    Entry(Box<ObjectKind>, Box<ObjectKind>),
    /// A map that has these keys in every object.
    Record(Vec<(&'static str, ObjectKind)>),
    Path,
    /// A map, or any other object on which no further step is called.
    Opaque,
}

impl ObjectKind {
    /// Returns true for values of one type whose equal values are indistinguishable.
    pub fn is_homogeneous(&self) -> bool {
        matches!(self, ObjectKind::Int(_) | ObjectKind::Float | ObjectKind::Text | ObjectKind::Bool | ObjectKind::Date)
    }

    pub fn is_number(&self) -> bool {
        matches!(self, ObjectKind::Int(_) | ObjectKind::Float)
    }

    pub fn is_element(&self) -> bool {
        matches!(self, ObjectKind::Vertex | ObjectKind::Edge)
    }

    /// Returns true if values can be compared, deduplicated and grouped: they contain no list of undetermined order.
    pub fn is_plain(&self) -> bool {
        self.is_homogeneous() || self.is_element() || matches!(self, ObjectKind::Mixed)
    }
}

/// A property key: its name, the kind of its values, and true if vertices have it (else edges).
pub(crate) struct Key {
    pub name: &'static str,
    pub kind: ObjectKind,
    pub on_vertices: bool,
}

pub(crate) const KEYS: [Key; 11] = [
    Key { name: "name", kind: ObjectKind::Text, on_vertices: true },
    Key { name: "age", kind: ObjectKind::Int(32), on_vertices: true },
    Key { name: "score", kind: ObjectKind::Int(64), on_vertices: true },
    Key { name: "flag", kind: ObjectKind::Bool, on_vertices: true },
    Key { name: "mix", kind: ObjectKind::Mixed, on_vertices: true },
    Key { name: "born", kind: ObjectKind::Date, on_vertices: true },
    Key { name: "part", kind: ObjectKind::Text, on_vertices: true },
    Key { name: "weight", kind: ObjectKind::Float, on_vertices: false },
    Key { name: "since", kind: ObjectKind::Int(32), on_vertices: false },
    Key { name: "mix", kind: ObjectKind::Mixed, on_vertices: false },
    Key { name: "part", kind: ObjectKind::Text, on_vertices: false },
];

/// Keys under which a vertex may have several values, with meta-properties. Steps that need one value a key do not read
/// them.
pub(crate) const MULTI_KEYS: [Key; 2] = [
    Key { name: "nick", kind: ObjectKind::Text, on_vertices: true },
    Key { name: "rank", kind: ObjectKind::Int(32), on_vertices: true },
];

/// Keys of meta-properties.
pub(crate) const META_KEYS: [Key; 3] = [
    Key { name: "year", kind: ObjectKind::Int(32), on_vertices: false },
    Key { name: "by", kind: ObjectKind::Text, on_vertices: false },
    Key { name: "part", kind: ObjectKind::Text, on_vertices: false },
];

/// A random value of a scalar kind.
pub(crate) fn value(rng: &mut SmallRng, kind: &ObjectKind) -> Value {
    let small = rng.random_range(-3_i32..40);
    let quarter = f64::from(rng.random_range(-8_i32..40)) / 4.0;
    match kind {
        ObjectKind::Int(32) => Value::I32(small),
        ObjectKind::Int(_) => Value::I64(i64::from(small)),
        ObjectKind::Float => Value::F64(quarter),
        ObjectKind::Text => Value::string(NAMES[rng.random_range(0..NAMES.len())]),
        ObjectKind::Bool => Value::Bool(rng.random_bool(0.5)),
        ObjectKind::Date => Value::DateTime(DateTime::from_epoch_millis(i64::from(small) * 43_200_000)),
        _ => match rng.random_range(0..17) {
            0 => Value::I8(small as i8),
            1 => Value::I16(small as i16),
            2..=4 => Value::I32(small),
            5 | 6 => Value::I64(i64::from(small)),
            7 => Value::F32(quarter as f32),
            8..=10 => Value::F64(quarter),
            11 => Value::F64(f64::from(small)),
            12 => Value::Bool(rng.random_bool(0.5)),
            13 if rng.random_bool(0.3) => Value::F64(f64::NAN),
            16 => Value::DateTime(DateTime::from_epoch_millis(i64::from(small) * 43_200_000)),
            _ => Value::string(NAMES[rng.random_range(0..NAMES.len())]),
        },
    }
}
