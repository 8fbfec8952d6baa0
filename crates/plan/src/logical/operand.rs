//! Operands: values that are known when a plan is made, or only when it runs (PLAN-3 in `literals`).

use mangrove_graph::Value;
use smol_str::SmolStr;

/// The name of a label, key, step label or side effect.
pub type Name = SmolStr;

/// A value that is known when the plan is made, or only when it runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A value known when the plan is made.
    Literal(Value),
    /// The value of a parameter.
    Parameter(Name),
    /// The value of a literal that `literals` has taken out of the traversal, by its number.
    Lifted(u32),
    /// A list whose members are not all literals.
    List(Vec<Operand>),
    /// A map whose keys and values are not all literals.
    Map(Vec<(Operand, Operand)>),
    /// The vertex of an id, as a client sends it; null if there is no such vertex.
    Vertex(Value),
    /// The edge of an id; null if there is no such edge.
    Edge(Value),
}

impl Operand {
    /// The integer, if the operand is a literal and an integer. A rule that may meet a literal that was taken out asks
    /// [`Literals`](crate::literals::Literals) instead.
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
