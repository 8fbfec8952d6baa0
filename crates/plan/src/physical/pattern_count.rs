//! [`PatternCount`]: the number of matches of a pattern, worked out from degrees and weights instead of rows.
//! Either all of them are counted, or those of each vertex that a variable may stand for.
//!
//! Every variable of the pattern is *weighed*. The weight of a vertex is the number of ways to match what hangs on it, if
//! it is put for the variable. Weights are worked out from the leaves to one variable, the root, and added up there.

use mangrove_graph::Direction;

use super::Pipeline;
use crate::logical::{Condition, Name};

/// What a [`PatternCount`] makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountOf {
    /// One row: the number of all matches.
    AllMatches,
    /// A row for each vertex that the root may stand for. Its bulk is the number of matches with the vertex.
    EachRoot,
}

/// The number of matches of a pattern.
#[derive(Clone, Debug)]
pub struct PatternCount {
    /// What is made of the weights of the root.
    pub of: CountOf,
    /// The variables whose weights others use, in the order in which they are weighed: a factor names earlier ones.
    pub weighings: Vec<Weighing>,
    /// The variable that is weighed last.
    pub root: Weighing,
    /// What the weights of the root are multiplied by, if variables are compared.
    pub pairing: Option<Pairing>,
    /// The same with a row for each match. On several nodes, it runs instead.
    pub rows: Pipeline,
}

impl PatternCount {
    /// Returns the weighings by level, as numbers: those that wait for no other one, those that wait for these, and so
    /// on. Weighings of a level may be worked out side by side.
    pub fn levels(&self) -> Vec<Vec<usize>> {
        let mut levels: Vec<Vec<usize>> = Vec::new();
        let mut level_of = Vec::with_capacity(self.weighings.len());
        for (number, weighing) in self.weighings.iter().enumerate() {
            let waits_for = weighing.factors.iter().filter_map(|factor| factor.ends);
            let level = waits_for.map(|ends| level_of[ends] + 1).max().unwrap_or(0);
            level_of.push(level);
            levels.resize_with(levels.len().max(level + 1), Vec::new);
            levels[level].push(number);
        }
        levels
    }
}

/// How a variable is weighed: its vertices meet the conditions, and their weights are the products of the factors.
#[derive(Clone, Debug, Default)]
pub struct Weighing {
    /// Only vertices with one of these labels; `None`: all.
    pub labels: Option<Vec<Name>>,
    /// Further conditions.
    pub conditions: Vec<Condition>,
    /// The factors, cheap ones first.
    pub factors: Vec<Factor>,
}

/// The edges from a variable to another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgesOf {
    /// Their direction, as seen from the variable.
    pub direction: Direction,
    /// Their labels; empty: all.
    pub labels: Vec<Name>,
}

/// A factor of the weight of a vertex.
#[derive(Clone, Debug)]
pub struct Factor {
    /// The edges that are counted.
    pub edges: EdgesOf,
    /// The weighing of their other ends, by number. `None`: every end has the weight 1, so that the factor is a degree.
    pub ends: Option<usize>,
    /// What is made of the sum of the weights.
    pub form: FactorForm,
}

/// What is made of a sum of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactorForm {
    /// The sum.
    Sum,
    /// The sum, but at least 1: `optional(out())`.
    AtLeastOne,
    /// 1 if it is not 0: `where(out())`.
    Some,
    /// 1 if it is 0: `not(out())`.
    None,
}

/// The edges to a variable, with the weighing of its vertices.
#[derive(Clone, Debug)]
pub struct Leg {
    /// The edges.
    pub edges: EdgesOf,
    /// The weighing of their other ends; `None`: every end has the weight 1.
    pub ends: Option<usize>,
}

/// Two variables that are compared with each other or with the root.
#[derive(Clone, Debug)]
pub enum Pairing {
    /// Two neighbors of the root that are different vertices.
    Neighbors {
        /// The edges to one of them.
        first: Leg,
        /// The edges to the other one.
        second: Leg,
    },
    /// The vertices that two hops lead to.
    Walk(Box<WalkPairing>),
}

/// The vertices that two hops lead to, compared with the root and with a neighbor of the root.
#[derive(Clone, Debug)]
pub struct WalkPairing {
    /// The edges of the first hop.
    pub first: EdgesOf,
    /// The weighing of the vertices that it leads to, without the second hop.
    pub middle: usize,
    /// The edges of the second hop.
    pub second: EdgesOf,
    /// The weighing of the vertices that it leads to.
    pub ends: usize,
    /// Edges from the root that must lead to the end (true), or must not.
    pub closing: Option<(EdgesOf, bool)>,
    /// The end differs from the root.
    pub differs: bool,
    /// The edges to another neighbor of the root, from which the end differs.
    pub sibling: Option<Leg>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weighing_is_on_the_level_after_those_that_it_waits_for() {
        let edges = EdgesOf { direction: Direction::Out, labels: Vec::new() };
        let weighing = |waits_for: &[Option<usize>]| {
            let factor = |ends: &Option<usize>| Factor { edges: edges.clone(), ends: *ends, form: FactorForm::Sum };
            Weighing { factors: waits_for.iter().map(factor).collect(), ..Weighing::default() }
        };
        let waits_for: [&[Option<usize>]; 6] =
            [&[], &[Some(0)], &[None], &[Some(1), Some(2)], &[None, Some(2)], &[Some(4)]];
        let count = PatternCount {
            of: CountOf::AllMatches,
            weighings: waits_for.map(weighing).into(),
            root: Weighing::default(),
            pairing: None,
            rows: Pipeline::default(),
        };
        assert_eq!(count.levels(), [vec![0, 2], vec![1, 4], vec![3, 5]]);
    }
}
