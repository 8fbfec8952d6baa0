//! Values: what a property holds and what a traversal carries.
//!
//! One type serves both, so that nothing is converted between store, dataflow and wire. The *storable*
//! part (see [`Value::is_storable`]) are the scalars and collections of a property; the rest are what a
//! traversal meets on its way: elements, properties, paths, tokens. A value is 32 bytes; what does not
//! fit is shared behind an `Arc`, so cloning never copies a collection.
//!
//! How values compare is not one question but four (equality, equivalence, comparability, orderability);
//! the answers are in [`crate::compare`]. Arithmetic is in [`crate::numeric`]. The derived `PartialEq` is
//! structural: same variant, same content (floats by value); use it in tests, not for Gremlin.

use std::sync::Arc;

use bigdecimal::BigDecimal;
use num_bigint::BigInt;
use smol_str::SmolStr;
use uuid::Uuid;

use crate::datetime::{DateTime, Duration};
use crate::ids::{EdgeId, KeyId, VertexId};
use crate::structure::{GraphValue, Tree};

/// A value.
#[derive(Clone, Debug, PartialEq, Default)]
#[non_exhaustive]
pub enum Value {
    /// The absent value that is nevertheless there.
    #[default]
    Null,
    /// A boolean.
    Bool(bool),
    /// 8-bit signed integer.
    I8(i8),
    /// 16-bit signed integer.
    I16(i16),
    /// 32-bit signed integer.
    I32(i32),
    /// 64-bit signed integer.
    I64(i64),
    /// An integer of any size.
    BigInt(Arc<BigInt>),
    /// 32-bit float.
    F32(f32),
    /// 64-bit float.
    F64(f64),
    /// A decimal of any precision.
    Decimal(Arc<BigDecimal>),
    /// A character.
    Char(char),
    /// A string; up to 23 bytes are inline.
    String(SmolStr),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// A UUID.
    Uuid(Uuid),
    /// A point in time with its offset from UTC.
    DateTime(DateTime),
    /// A length of time.
    Duration(Duration),
    /// A list.
    List(Arc<Vec<Value>>),
    /// A set in insertion order. Who builds one removes duplicates (`compare::equivalent`) first.
    Set(Arc<Vec<Value>>),
    /// A map in insertion order. Who builds one keeps keys unique under `compare::equivalent`.
    Map(Arc<Vec<(Value, Value)>>),
    /// An entry of a map on its own, as `unfold()` takes it out. Detached results and the
    /// wire show it as a map of one entry.
    Entry(Arc<(Value, Value)>),
    /// A multiset: values with how many times each occurs, in insertion order (a Gremlin side effect).
    BulkSet(Arc<Vec<(Value, u64)>>),
    /// A packed array of 32-bit floats (an embedding, a feature vector).
    F32Array(Arc<[f32]>),

    /// A vertex.
    Vertex(VertexId),
    /// An edge.
    Edge(EdgeId),
    /// A property of a vertex.
    VertexProperty(Arc<VertexPropertyValue>),
    /// A property of an edge, or a meta-property.
    Property(Arc<PropertyValue>),
    /// The way a traverser came.
    Path(Arc<PathValue>),
    /// A tree of the ways that traversers came.
    Tree(Arc<Tree>),
    /// A part of a graph.
    Graph(Arc<GraphValue>),
    /// `T.id`, `T.label`, `T.key`, `T.value`: keys of result maps.
    Token(Token),
    /// `Direction.IN`, `OUT`: keys of an edge's `elementMap()`.
    Direction(Direction),
    /// A vertex or edge with everything a client needs, taken out of its snapshot. Only the last
    /// operator of a plan makes them; no step reads them.
    Detached(Arc<Detached>),
}

const _: () = assert!(size_of::<Value>() <= 32);

/// `T`: the parts of an element that are not properties.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Token {
    /// `T.id`
    Id,
    /// `T.label`
    Label,
    /// `T.key`
    Key,
    /// `T.value`
    Value,
}

/// Which way along an edge.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// From source to target.
    Out,
    /// From target to source.
    In,
    /// Either way; a self-loop is met twice, as TinkerPop has it.
    Both,
}

impl Direction {
    /// The other way round.
    pub fn reverse(self) -> Self {
        match self {
            Direction::Out => Direction::In,
            Direction::In => Direction::Out,
            Direction::Both => Direction::Both,
        }
    }
}

/// A property of a vertex as a traverser carries it: a copy of the value its snapshot saw.
#[derive(Clone, Debug, PartialEq)]
pub struct VertexPropertyValue {
    /// Whose property it is.
    pub vertex: VertexId,
    /// The key.
    pub key: KeyId,
    /// Which of several values under the key (list and set cardinality); 0 for the only one.
    pub ordinal: u32,
    /// The value.
    pub value: Value,
    /// Meta-properties, in key order of insertion.
    pub meta: Arc<Vec<(KeyId, Value)>>,
}

/// A property of an edge, or a meta-property of a vertex property, as a traverser carries it.
#[derive(Clone, Debug, PartialEq)]
pub struct PropertyValue {
    /// Whose property it is: an edge, or the vertex property a meta-property belongs to.
    pub owner: PropertyOwner,
    /// The key.
    pub key: KeyId,
    /// The value.
    pub value: Value,
}

/// What a [`PropertyValue`] belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PropertyOwner {
    /// An edge.
    Edge(EdgeId),
    /// The vertex property (vertex, key, ordinal).
    VertexProperty(VertexId, KeyId, u32),
}

/// A path: the objects in order, each with the labels its step bore.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct PathValue {
    /// Objects, oldest first.
    pub objects: Vec<Value>,
    /// The labels of each object; as long as `objects`.
    pub labels: Vec<Vec<SmolStr>>,
}

/// An element taken out of its snapshot for a client: ids and names resolved, properties attached.
#[derive(Clone, Debug, PartialEq)]
pub enum Detached {
    /// A vertex.
    Vertex {
        /// The id the user knows.
        id: Value,
        /// The label (`a::b` for a set of two).
        label: SmolStr,
        /// Its properties, or none where only references were asked for.
        properties: Vec<DetachedVertexProperty>,
    },
    /// An edge with references to its ends.
    Edge {
        /// The id the user knows.
        id: Value,
        /// The label.
        label: SmolStr,
        /// Id and label of the source.
        source: (Value, SmolStr),
        /// Id and label of the target.
        target: (Value, SmolStr),
        /// Its properties, or none where only references were asked for.
        properties: Vec<(SmolStr, Value)>,
    },
    /// A vertex property.
    VertexProperty(DetachedVertexProperty),
    /// A property of an edge or a meta-property.
    Property {
        /// The key.
        key: SmolStr,
        /// The value.
        value: Value,
    },
}

/// A vertex property taken out of its snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct DetachedVertexProperty {
    /// Its id (see [`crate::property_id`]).
    pub id: Value,
    /// The key.
    pub key: SmolStr,
    /// The value.
    pub value: Value,
    /// Meta-properties.
    pub meta: Vec<(SmolStr, Value)>,
}

impl Value {
    /// A string value.
    pub fn string(s: impl Into<SmolStr>) -> Self {
        Value::String(s.into())
    }

    /// A list value.
    pub fn list(values: Vec<Value>) -> Self {
        Value::List(Arc::new(values))
    }

    /// A map value; the caller keeps keys unique.
    pub fn map(entries: Vec<(Value, Value)>) -> Self {
        Value::Map(Arc::new(entries))
    }

    /// Whether it is a number of any width.
    pub fn is_number(&self) -> bool {
        matches!(
            self,
            Value::I8(_)
                | Value::I16(_)
                | Value::I32(_)
                | Value::I64(_)
                | Value::BigInt(_)
                | Value::F32(_)
                | Value::F64(_)
                | Value::Decimal(_)
        )
    }

    /// Collections that a property may hold lie in one another at most this deep: whoever reads or writes a value in a
    /// file goes down into it.
    pub const NESTING_MAX: u32 = 256;

    /// Whether a property may hold it: scalars, and collections of storable values, nested at most
    /// [`Value::NESTING_MAX`] deep.
    pub fn is_storable(&self) -> bool {
        self.is_storable_within(Self::NESTING_MAX)
    }

    fn is_storable_within(&self, levels: u32) -> bool {
        let inside = |value: &Value| levels > 0 && value.is_storable_within(levels - 1);
        match self {
            Value::List(v) | Value::Set(v) => v.iter().all(inside),
            Value::Map(m) => m.iter().all(|(k, v)| inside(k) && inside(v)),
            Value::Null
            | Value::Entry(_)
            | Value::BulkSet(_)
            | Value::Vertex(_)
            | Value::Edge(_)
            | Value::VertexProperty(_)
            | Value::Property(_)
            | Value::Path(_)
            | Value::Tree(_)
            | Value::Graph(_)
            | Value::Token(_)
            | Value::Direction(_)
            | Value::Detached(_) => false,
            _ => true,
        }
    }

    /// The name of the value's type, as error messages have it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::I8(_) => "byte",
            Value::I16(_) => "short",
            Value::I32(_) => "int",
            Value::I64(_) => "long",
            Value::BigInt(_) => "bigint",
            Value::F32(_) => "float",
            Value::F64(_) => "double",
            Value::Decimal(_) => "decimal",
            Value::Char(_) => "char",
            Value::String(_) => "string",
            Value::Bytes(_) => "bytes",
            Value::Uuid(_) => "uuid",
            Value::DateTime(_) => "datetime",
            Value::Duration(_) => "duration",
            Value::List(_) => "list",
            Value::Set(_) => "set",
            Value::Map(_) => "map",
            Value::Entry(_) => "map entry",
            Value::BulkSet(_) => "bulkset",
            Value::F32Array(_) => "float array",
            Value::Vertex(_) => "vertex",
            Value::Edge(_) => "edge",
            Value::VertexProperty(_) => "vertex property",
            Value::Property(_) => "property",
            Value::Path(_) => "path",
            Value::Tree(_) => "tree",
            Value::Graph(_) => "graph",
            Value::Token(_) => "token",
            Value::Direction(_) => "direction",
            Value::Detached(_) => "element",
        }
    }
}

macro_rules! from {
    ($($type:ty => $variant:ident),* $(,)?) => {$(
        impl From<$type> for Value { fn from(v: $type) -> Self { Value::$variant(v.into()) } }
    )*};
}
from! { bool => Bool, i8 => I8, i16 => I16, i32 => I32, i64 => I64, f32 => F32, f64 => F64, char => Char,
&str => String, String => String, SmolStr => String, Uuid => Uuid, DateTime => DateTime,
Duration => Duration, VertexId => Vertex, EdgeId => Edge }

impl From<Vec<Value>> for Value {
    fn from(v: Vec<Value>) -> Self {
        Value::list(v)
    }
}
