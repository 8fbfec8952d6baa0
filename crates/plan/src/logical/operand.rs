//! Operands: values that are known when a plan is made, or when it is run.

use mangrove_graph::Value;
use smol_str::SmolStr;

/// The name of a label, key, step label or side effect.
pub type Name = SmolStr;

/// A value that is known now, or when the plan runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// Known now.
    Literal(Value),
    /// The value of this parameter.
    Parameter(Name),
    /// The value of the literal of this number, which was taken out of the traversal by `literals`.
    Lifted(u32),
    /// A list with something else in it than literals.
    List(Vec<Operand>),
    /// A map with something else in it than literals.
    Map(Vec<(Operand, Operand)>),
    /// The vertex of this id, as a client sends one; null where there is none.
    Vertex(Value),
    /// The edge of this id.
    Edge(Value),
}

impl Operand {
    /// The integer, if it is known now and is one.
    pub fn literal_integer(&self) -> Option<i64> {
        match self {
            Operand::Literal(value) => mangrove_graph::numeric::integer(value),
            Operand::Parameter(_)
            | Operand::Lifted(_)
            | Operand::List(_)
            | Operand::Map(_)
            | Operand::Vertex(_)
            | Operand::Edge(_) => None,
        }
    }
}
