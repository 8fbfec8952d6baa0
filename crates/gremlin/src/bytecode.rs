//! A traversal as the client wrote it: instructions with arguments, whose meaning nothing here knows.
//!
//! Scripts and the bytecode of the wire are both read into this form, and the planner takes it. `Display` prints it as
//! gremlin-lang text that parses to the same bytecode (WIRE-6, in `print`).

use mangrove_graph::Value;
use smol_str::SmolStr;

/// A traversal: source instructions (`withSack`, `withStrategies`, …) and steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bytecode {
    /// The instructions that configure the traversal source.
    pub source: Vec<Instruction>,
    /// The steps in order.
    pub steps: Vec<Instruction>,
}

/// A step or source instruction, by its name in Gremlin (`out`, `hasLabel`, `by`, …).
#[derive(Clone, Debug)]
pub struct Instruction {
    /// The name as it is in bytecode: `in`, `as`, `from`, without a trailing underscore.
    pub name: SmolStr,
    /// The arguments in order; variable arguments are not grouped.
    pub arguments: Vec<Argument>,
    /// The position of the name in the script; `None` for bytecode from the wire.
    pub position: Option<Position>,
}

/// Positions are no part of equality: a traversal from a script equals the same traversal from the wire.
impl PartialEq for Instruction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.arguments == other.arguments
    }
}

impl Instruction {
    /// An instruction without a position.
    pub fn new(name: impl Into<SmolStr>, arguments: Vec<Argument>) -> Self {
        Instruction { name: name.into(), arguments, position: None }
    }
}

/// A position in a script. Lines and columns count from 1; a column is a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// An argument of an instruction.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// A literal; `T` and `Direction` tokens are values too.
    Value(Value),
    /// A named parameter whose value comes with the request (a variable of a script, a binding of bytecode).
    Parameter(SmolStr),
    /// A literal that the planner has taken out of the traversal, by its number. Its value comes beside the traversal.
    /// Neither scripts nor the wire can express it.
    Lifted(u32),
    /// A list whose members are not all literals.
    List(Vec<Argument>),
    /// A map whose keys and values are not all literals.
    Map(Vec<(Argument, Argument)>),
    /// A nested traversal (`__.out()`), without source instructions.
    Traversal(Bytecode),
    /// A predicate (`P`, `TextP`).
    Predicate(Predicate),
    /// A reference to a vertex, by its id.
    Vertex(Value),
    /// A reference to an edge, by its id.
    Edge(Value),
    /// `Order`
    Order(Order),
    /// `Scope`
    Scope(Scope),
    /// `Pop`
    Pop(Pop),
    /// `Column`
    Column(Column),
    /// `Cardinality`
    Cardinality(Cardinality),
    /// `Cardinality.list(v)`: a value with the cardinality of its property.
    CardinalityValue(Cardinality, Box<Argument>),
    /// `Merge`
    Merge(Merge),
    /// `Operator`
    Operator(Operator),
    /// `Pick`
    Pick(Pick),
    /// `Barrier.normSack`
    NormSack,
    /// `DT`: second, minute, hour or day.
    DateUnit(SmolStr),
    /// `GType`, by its name.
    Type(SmolStr),
    /// A strategy with its configuration (`withStrategies`), or only its name (`withoutStrategies`).
    Strategy(SmolStr, Vec<(SmolStr, Argument)>),
}

/// A test of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// `eq`, `lt`, … with one operand.
    Compare(Comparison, Box<Argument>),
    /// `within` these operands. A single list argument is already spread.
    Within(Vec<Argument>),
    /// `without` these operands.
    Without(Vec<Argument>),
    /// A text predicate with its operand.
    Text(TextOperation, Box<Argument>),
    /// `typeOf`
    TypeOf(Box<Argument>),
    /// All of these hold. `inside` and `between` are read as this.
    And(Vec<Predicate>),
    /// One of these holds. `outside` is read as this.
    Or(Vec<Predicate>),
    /// This does not hold (`P.not`, `negate()`).
    Not(Box<Predicate>),
}

/// The comparing predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are Gremlin's")]
pub enum Comparison {
    Eq,
    Neq,
    Lt,
    Lte,
    Gt,
    Gte,
}

/// The text predicates; the negated forms are [`Predicate::Not`] of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are Gremlin's")]
pub enum TextOperation {
    StartingWith,
    EndingWith,
    Containing,
    /// A regular expression that may match anywhere in the text.
    Regex,
}

macro_rules! keyword {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the names are Gremlin's")]
        pub enum $name { $($variant),* }

        impl $name {
            /// The name as Gremlin writes it.
            pub fn name(self) -> &'static str { match self { $($name::$variant => $text),* } }

            /// The member of a name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($text => Some($name::$variant),)* _ => None }
            }
        }
    };
}

keyword! {
    /// `Order`
    Order { Asc = "asc", Desc = "desc", Shuffle = "shuffle" }
}
keyword! {
    /// `Scope`
    Scope { Local = "local", Global = "global" }
}
keyword! {
    /// `Pop`
    Pop { First = "first", Last = "last", All = "all", Mixed = "mixed" }
}
keyword! {
    /// `Column`
    Column { Keys = "keys", Values = "values" }
}
keyword! {
    /// `Cardinality`
    Cardinality { Single = "single", List = "list", Set = "set" }
}
keyword! {
    /// `Merge`
    Merge { OnCreate = "onCreate", OnMatch = "onMatch", OutV = "outV", InV = "inV" }
}
keyword! {
    /// `Operator`
    Operator {
        Sum = "sum", Minus = "minus", Mult = "mult", Div = "div", Min = "min", Max = "max", Assign = "assign",
        And = "and", Or = "or", AddAll = "addAll", SumLong = "sumLong",
    }
}
keyword! {
    /// `Pick`
    Pick { Any = "any", None = "none", Unproductive = "unproductive" }
}

impl From<Value> for Argument {
    fn from(value: Value) -> Self {
        Argument::Value(value)
    }
}
