//! Functions of one object: Gremlin's steps on text, collections, dates and types.
//!
//! A function computes one value from one object and its arguments. It reads no graph, except for the ids that
//! `asString()` shows. This module names the functions; `steps` computes them (`row/function`).

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// A function of a text or, with `Scope.local`, of every text in a list.
    Text {
        /// The function.
        function: TextFunction,
        /// `Scope.local`: applied to the members of a list.
        local: bool,
    },
    /// A function of a collection, most with another collection as an argument.
    Collection(CollectionFunction),
    /// `concat(text…)`
    Concat,
    /// `reverse()`: of a text or a list.
    Reverse,
    /// `asBool()`
    AsBool,
    /// `asDate()`
    AsDate,
    /// `asNumber()`, to a type; `None`: to a type that the number fits in.
    AsNumber(Option<NumberType>),
    /// `dateAdd(unit, number)`
    DateAdd(DateUnit),
    /// `dateDiff(date)`, in milliseconds.
    DateDiff,
    /// `index()`: a list of pairs of member and position, or a map from positions to members.
    Index {
        /// True makes a map, false a list.
        map: bool,
    },
    /// `element()`: the owner of a property.
    Element,
}

/// A function of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFunction {
    /// `asString()`
    AsString,
    /// `length()`
    Length,
    /// `toLower()`
    ToLower,
    /// `toUpper()`
    ToUpper,
    /// `trim()`
    Trim,
    /// `lTrim()`
    TrimStart,
    /// `rTrim()`
    TrimEnd,
    /// `replace(old, new)`
    Replace,
    /// `split(separator)`
    Split,
    /// `substring(from, to)`
    Substring,
}

/// A function of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectionFunction {
    /// `combine(other)`: all members, in a list.
    Combine,
    /// `conjoin(separator)`: members as one text.
    Conjoin,
    /// `difference(other)`: the set of the members that are not in the other collection.
    Difference,
    /// `disjunct(other)`: the set of the members that are in only one of the two collections.
    Disjunct,
    /// `intersect(other)`: the set of the members that are in both collections.
    Intersect,
    /// `merge(other)`: a set of all, or a map of both maps.
    Merge,
    /// `product(other)`: pairs of members.
    Product,
}

/// The types of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are Gremlin's")]
pub enum NumberType {
    Byte,
    Short,
    Int,
    Long,
    BigInt,
    Float,
    Double,
    BigDecimal,
}

impl NumberType {
    /// The type of a name of `GType`.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "BYTE" => NumberType::Byte,
            "SHORT" => NumberType::Short,
            "INT" => NumberType::Int,
            "LONG" => NumberType::Long,
            "BIGINT" => NumberType::BigInt,
            "FLOAT" => NumberType::Float,
            "DOUBLE" => NumberType::Double,
            "BIGDECIMAL" => NumberType::BigDecimal,
            _ => return None,
        })
    }

    /// The name in messages: that of TinkerPop's class.
    pub fn class(self) -> &'static str {
        match self {
            NumberType::Byte => "Byte",
            NumberType::Short => "Short",
            NumberType::Int => "Integer",
            NumberType::Long => "Long",
            NumberType::BigInt => "BigInteger",
            NumberType::Float => "Float",
            NumberType::Double => "Double",
            NumberType::BigDecimal => "BigDecimal",
        }
    }
}

/// The units of `dateAdd()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are Gremlin's")]
pub enum DateUnit {
    Second,
    Minute,
    Hour,
    Day,
}

impl DateUnit {
    /// The unit of a name of `DT`.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "second" => DateUnit::Second,
            "minute" => DateUnit::Minute,
            "hour" => DateUnit::Hour,
            "day" => DateUnit::Day,
            _ => return None,
        })
    }

    /// The length of the unit in seconds.
    pub fn seconds(self) -> i64 {
        match self {
            DateUnit::Second => 1,
            DateUnit::Minute => 60,
            DateUnit::Hour => 3_600,
            DateUnit::Day => 86_400,
        }
    }
}

impl CollectionFunction {
    /// The step's name.
    pub fn name(self) -> &'static str {
        match self {
            CollectionFunction::Combine => "combine",
            CollectionFunction::Conjoin => "conjoin",
            CollectionFunction::Difference => "difference",
            CollectionFunction::Disjunct => "disjunct",
            CollectionFunction::Intersect => "intersect",
            CollectionFunction::Merge => "merge",
            CollectionFunction::Product => "product",
        }
    }
}

impl TextFunction {
    /// The step's name.
    pub fn name(self) -> &'static str {
        match self {
            TextFunction::AsString => "asString",
            TextFunction::Length => "length",
            TextFunction::ToLower => "toLower",
            TextFunction::ToUpper => "toUpper",
            TextFunction::Trim => "trim",
            TextFunction::TrimStart => "lTrim",
            TextFunction::TrimEnd => "rTrim",
            TextFunction::Replace => "replace",
            TextFunction::Split => "split",
            TextFunction::Substring => "substring",
        }
    }
}

impl Function {
    /// The step's name.
    pub fn name(self) -> &'static str {
        match self {
            Function::Text { function, .. } => function.name(),
            Function::Collection(function) => function.name(),
            Function::Concat => "concat",
            Function::Reverse => "reverse",
            Function::AsBool => "asBool",
            Function::AsDate => "asDate",
            Function::AsNumber(_) => "asNumber",
            Function::DateAdd(_) => "dateAdd",
            Function::DateDiff => "dateDiff",
            Function::Index { .. } => "index",
            Function::Element => "element",
        }
    }
}

/// The types that `typeOf()` knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are Gremlin's")]
pub enum ValueType {
    Null,
    Boolean,
    Number,
    Byte,
    Short,
    Int,
    Long,
    BigInt,
    Float,
    Double,
    BigDecimal,
    Char,
    String,
    Binary,
    Uuid,
    DateTime,
    Duration,
    List,
    Set,
    Map,
    Vertex,
    Edge,
    VertexProperty,
    Property,
    Path,
    Tree,
    Graph,
}

/// Names of types: that of `GType`, and that of TinkerPop's class.
#[rustfmt::skip] // A table.
const TYPES: &[(&str, &str, ValueType)] = &[
    ("NULL", "", ValueType::Null), ("BOOLEAN", "Boolean", ValueType::Boolean),
    ("NUMBER", "Number", ValueType::Number), ("BYTE", "Byte", ValueType::Byte), ("SHORT", "Short", ValueType::Short),
    ("INT", "Integer", ValueType::Int), ("LONG", "Long", ValueType::Long),
    ("BIGINT", "BigInteger", ValueType::BigInt), ("FLOAT", "Float", ValueType::Float),
    ("DOUBLE", "Double", ValueType::Double), ("BIGDECIMAL", "BigDecimal", ValueType::BigDecimal),
    ("CHAR", "Character", ValueType::Char), ("STRING", "String", ValueType::String),
    ("BINARY", "ByteBuffer", ValueType::Binary), ("UUID", "UUID", ValueType::Uuid),
    ("DATETIME", "OffsetDateTime", ValueType::DateTime), ("DURATION", "Duration", ValueType::Duration),
    ("LIST", "List", ValueType::List), ("SET", "Set", ValueType::Set), ("MAP", "Map", ValueType::Map),
    ("VERTEX", "Vertex", ValueType::Vertex), ("EDGE", "Edge", ValueType::Edge),
    ("VPROPERTY", "VertexProperty", ValueType::VertexProperty), ("PROPERTY", "Property", ValueType::Property),
    ("PATH", "Path", ValueType::Path), ("TREE", "Tree", ValueType::Tree), ("GRAPH", "Graph", ValueType::Graph),
];

impl ValueType {
    /// The type that `GType` calls so.
    pub fn from_token(name: &str) -> Option<Self> {
        TYPES.iter().find(|(token, ..)| *token == name).map(|(.., of)| *of)
    }

    /// The type whose class TinkerPop calls so.
    pub fn from_class(name: &str) -> Option<Self> {
        TYPES.iter().find(|(_, class, _)| !class.is_empty() && *class == name).map(|(.., of)| *of)
    }

    /// The name in `GType`.
    pub fn token(self) -> &'static str {
        TYPES.iter().find(|(.., of)| *of == self).map_or("", |(token, ..)| token)
    }
}
