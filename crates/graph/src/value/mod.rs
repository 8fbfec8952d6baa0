//! Values: the contents of properties, and the objects that a traversal carries.
//!
//! One type serves both, so store, dataflow and wire convert nothing between them. The *storable* values
//! ([`Value::is_storable`]) are the scalars and collections that a property may hold. The others occur only in
//! traversals: elements, properties, paths, tokens. A value takes 32 bytes. Larger content is shared through an `Arc`,
//! so cloning never copies a collection.
//!
//! How two values compare is four questions (equality, equivalence, comparability, orderability), which `compare`
//! answers. Arithmetic is in `numeric`. The derived `PartialEq` is structural: same variant, same content. Tests use
//! it; Gremlin's steps do not.

mod datetime;
mod property_id;
mod structure;
mod traversal_metrics;

use std::sync::Arc;

use bigdecimal::BigDecimal;
use num_bigint::BigInt;
use smol_str::SmolStr;
use uuid::Uuid;

use crate::ids::{EdgeId, KeyId, VertexId};

pub use datetime::{DateTime, Duration};
pub use property_id::vertex_property_id;
pub use structure::{GraphValue, Tree};
pub use traversal_metrics::{OperatorMetrics, TraversalMetrics};

/// A value.
#[derive(Clone, Debug, PartialEq, Default)]
#[non_exhaustive]
pub enum Value {
    /// Gremlin's `null`: a value, unlike a missing property.
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
    /// A set in insertion order. The code that builds one leaves out members that are equivalent
    /// (`compare::equivalent`).
    Set(Arc<Vec<Value>>),
    /// A map in insertion order. The code that builds one keeps its keys unique under `compare::equivalent`.
    Map(Arc<Vec<(Value, Value)>>),
    /// A single entry of a map, as `unfold()` takes it out. Clients see it as a map of one entry.
    Entry(Arc<(Value, Value)>),
    /// A multiset, in insertion order: values, each with the number of times it occurs. A side effect of Gremlin.
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
    /// The path of a traverser.
    Path(Arc<PathValue>),
    /// The paths of several traversers, as a tree.
    Tree(Arc<Tree>),
    /// A part of a graph.
    Graph(Arc<GraphValue>),
    /// `T.id`, `T.label`, `T.key`, `T.value`: keys of result maps.
    Token(Token),
    /// `Direction.IN`, `OUT`: keys of an edge's `elementMap()`.
    Direction(Direction),
    /// An element or property with everything that a client needs, taken out of its snapshot. Only the last operator of
    /// a plan makes them; no step reads them.
    Detached(Arc<Detached>),
    /// The answer to `profile()`.
    TraversalMetrics(Arc<TraversalMetrics>),
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

/// The direction in which an edge is followed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// From source to target.
    Out,
    /// From target to source.
    In,
    /// Both; a self-loop is met twice, as in TinkerPop.
    Both,
}

impl Direction {
    /// The opposite direction.
    pub fn reverse(self) -> Self {
        match self {
            Direction::Out => Direction::In,
            Direction::In => Direction::Out,
            Direction::Both => Direction::Both,
        }
    }
}

/// A property of a vertex, as a traverser carries it: a copy of what its snapshot showed.
#[derive(Clone, Debug, PartialEq)]
pub struct VertexPropertyValue {
    /// The vertex that has the property.
    pub vertex: VertexId,
    /// The key.
    pub key: KeyId,
    /// The number of the value among several under the key (list and set cardinality); 0 for the only one.
    pub ordinal: u32,
    /// The value.
    pub value: Value,
    /// Meta-properties, in the order in which their keys were added.
    pub meta: Arc<Vec<(KeyId, Value)>>,
}

/// A property of an edge, or a meta-property of a vertex property, as a traverser carries it.
#[derive(Clone, Debug, PartialEq)]
pub struct PropertyValue {
    /// The edge, or the vertex property, that has the property.
    pub owner: PropertyOwner,
    /// The key.
    pub key: KeyId,
    /// The value.
    pub value: Value,
}

/// The owner of a [`PropertyValue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PropertyOwner {
    /// An edge.
    Edge(EdgeId),
    /// The vertex property (vertex, key, ordinal).
    VertexProperty(VertexId, KeyId, u32),
}

/// A path: its objects in order, each with the labels of the step that it comes from.
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
        /// The id by which the user knows it.
        id: Value,
        /// The label (`a::b` for a set of two).
        label: SmolStr,
        /// Its properties; none if only a reference was asked for.
        properties: Vec<DetachedVertexProperty>,
    },
    /// An edge with references to its ends.
    Edge {
        /// The id by which the user knows it.
        id: Value,
        /// The label.
        label: SmolStr,
        /// Id and label of the source.
        source: (Value, SmolStr),
        /// Id and label of the target.
        target: (Value, SmolStr),
        /// Its properties; none if only a reference was asked for.
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
    /// Its id (see [`vertex_property_id`]).
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

    /// A map value. The caller keeps the keys unique under `compare::equivalent`.
    pub fn map(entries: Vec<(Value, Value)>) -> Self {
        Value::Map(Arc::new(entries))
    }

    /// Returns true for a number of any type.
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

    /// The most levels of collections in a value that a property may hold. Reading and writing a value in a file takes
    /// stack for each level.
    pub const NESTING_MAX: u32 = 256;

    /// Returns true if a property may hold the value: scalars, and collections of storable values on at most
    /// [`Value::NESTING_MAX`] levels.
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
            | Value::Detached(_)
            | Value::TraversalMetrics(_) => false,
            _ => true,
        }
    }

    /// The name of the value's type, for error messages.
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
            Value::TraversalMetrics(_) => "traversal metrics",
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
