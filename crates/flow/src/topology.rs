//! The fixed graph of a query: operators and the edges between them.
//!
//! - **FLOW-9.** Operators are numbered along the stream: upstream before downstream, and the operators of a scope
//!   between the scope's own operator and the operator that follows the scope.
//!
//! Two mechanisms rest on this order. The scheduler prefers high numbers, which are nearer to the result. And a range
//! of numbers names all operators upstream of a point in a chain, with all nested scopes: a satisfied `limit()` cancels
//! such a range.
//!
//! ```text
//! V().where(out().has('x')).limit(1)
//!
//!  0 start ─► 1 V() ─► 2 where ───────────────────► 5 limit ─► 6 results
//!                        │  ▲                          cancels 1..5
//!                        ▼  │
//!                    3 out() ─► 4 has()
//! ```
//!
//! - **FLOW-10.** Whether every node sends the end of a group along an edge, or only one, is fixed when the topology is
//!   built ([`Edge::all_send`]). Into a scope only the home of the group sends.

use crate::policy::Policy;

/// The number of an operator in its topology (FLOW-9).
pub type OpId = u16;

/// Which nodes receive the input of an operator for a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The home of the group.
    Home,
    /// Every node.
    Spread,
}

/// Which node an edge takes its rows to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// The node they are on.
    Local,
    /// Each row to the node that owns its object.
    Owner,
    /// The home of their group.
    Home,
    /// Every row to every node.
    Broadcast,
}

/// An edge from an operator to a port of another.
#[derive(Clone, Debug)]
pub struct Edge {
    /// The receiving operator.
    pub to: OpId,
    /// Its port.
    pub port: u8,
    /// Which node rows go to.
    pub exchange: Exchange,
    /// True if every node sends for a group; false if only one does (FLOW-10).
    pub(crate) all_send: bool,
}

/// The order in which an operator without state works off the rows of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RowOrder {
    /// That in which they come.
    #[default]
    Kept,
    /// The rows of an instance in the order in which they come; instances in any order.
    KeptByInstance,
    /// Any order.
    Any,
}

/// The operators of a query and the edges between them. It never changes after it is built.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    pub(crate) outputs: Vec<Vec<Edge>>,
    placements: Vec<Placement>,
    /// For each operator of a scope: the number after the last operator from which an edge leads back to it; 0 for the
    /// others.
    scope_ends: Vec<OpId>,
    policies: Vec<Policy>,
    orders: Vec<RowOrder>,
    sets_all_apart: bool,
    /// The innermost scope around each operator, by the number of the scope's operator.
    around: Vec<Option<OpId>>,
}

impl Topology {
    /// Returns the number of operators.
    pub fn len(&self) -> usize {
        self.outputs.len()
    }

    /// Returns true if there are no operators.
    pub fn is_empty(&self) -> bool {
        self.outputs.is_empty()
    }

    /// Returns the edges that leave an operator.
    pub fn outputs(&self, operator: OpId) -> &[Edge] {
        &self.outputs[operator as usize]
    }

    /// Returns the nodes that an operator runs on.
    pub fn placement(&self, operator: OpId) -> Placement {
        self.placements[operator as usize]
    }

    /// Returns true if the operator is that of a scope: the pipelines inside send their results back to it.
    pub fn is_scope(&self, operator: OpId) -> bool {
        self.scope_ends[operator as usize] > 0
    }

    /// Returns true if the operator is that of a scope with operators inside.
    pub(crate) fn has_inside(&self, operator: OpId) -> bool {
        self.scope_ends[operator as usize] > operator + 1
    }

    /// Returns the policy of a scope.
    pub fn policy(&self, scope: OpId) -> Policy {
        self.policies[scope as usize]
    }

    /// Returns true if every instance counts as heavy.
    pub(crate) fn sets_all_apart(&self) -> bool {
        self.sets_all_apart
    }

    /// Returns the order of rows at an operator.
    pub(crate) fn row_order(&self, operator: OpId) -> RowOrder {
        self.orders[operator as usize]
    }

    /// Returns the first operator inside a scope, and how many there are, with those of nested scopes.
    pub(crate) fn inside(&self, scope: OpId) -> (OpId, usize) {
        let first = scope + 1;
        (first, usize::from(self.scope_ends[scope as usize].saturating_sub(first)))
    }

    /// Returns the operator of the innermost scope that an operator is in. The operator of a scope is outside its own
    /// scope.
    pub fn scope_around(&self, operator: OpId) -> Option<OpId> {
        self.around[operator as usize]
    }
}

/// Builds a topology operator by operator.
#[derive(Default)]
pub struct TopologyBuilder {
    topology: Topology,
}

impl TopologyBuilder {
    /// Adds an operator under the next number.
    pub fn operator(&mut self, placement: Placement) -> OpId {
        let id = OpId::try_from(self.topology.outputs.len()).expect("the planner bounds the size of a plan");
        self.topology.outputs.push(Vec::new());
        self.topology.placements.push(placement);
        self.topology.scope_ends.push(0);
        self.topology.policies.push(Policy::default());
        self.topology.orders.push(RowOrder::default());
        id
    }

    /// Sets the policy of a scope, by the scope's operator.
    pub fn set_policy(&mut self, scope: OpId, policy: Policy) {
        self.topology.policies[scope as usize] = policy;
    }

    /// Says that an operator without state may work off the rows of a group in any order.
    pub fn set_unordered(&mut self, operator: OpId) {
        self.topology.orders[operator as usize] = RowOrder::Any;
    }

    /// Says that an operator without state may work off the instances of a group in any order, but the rows of each
    /// instance in theirs.
    pub fn set_unordered_instances(&mut self, operator: OpId) {
        self.topology.orders[operator as usize] = RowOrder::KeptByInstance;
    }

    /// For tests: each message in a scope counts its first instance as heavy.
    pub fn set_all_apart(&mut self) {
        self.topology.sets_all_apart = true;
    }

    /// Returns the number that the next operator will get.
    pub fn next(&self) -> OpId {
        self.topology.outputs.len() as OpId
    }

    /// Returns the nodes that an operator runs on.
    pub fn placement(&self, operator: OpId) -> Placement {
        self.topology.placement(operator)
    }

    /// Adds an edge within one scope. Returns its index among the outputs of the sender.
    pub fn connect(&mut self, from: OpId, to: OpId, port: u8, exchange: Exchange) -> usize {
        let all_send = self.topology.placement(from) == Placement::Spread && exchange != Exchange::Local;
        self.push(from, Edge { to, port, exchange, all_send })
    }

    /// Adds an edge by which the operator of a scope sends into its scope. Only the home of the inner group sends along
    /// it (FLOW-10).
    pub fn enter(&mut self, scope: OpId, to: OpId, port: u8, exchange: Exchange) -> usize {
        self.push(scope, Edge { to, port, exchange, all_send: false })
    }

    fn push(&mut self, from: OpId, edge: Edge) -> usize {
        // FLOW-9: only the way back from a scope leads to a lower number, or to the scope itself if nothing is inside.
        if edge.to <= from {
            let end = &mut self.topology.scope_ends[edge.to as usize];
            *end = (*end).max(from + 1);
        }
        let outputs = &mut self.topology.outputs[from as usize];
        outputs.push(edge);
        outputs.len() - 1
    }

    /// Returns the finished topology.
    pub fn build(mut self) -> Topology {
        let Topology { scope_ends, around, .. } = &mut self.topology;
        // The way back from a scope may begin at the operator of a scope nested last in it, whose own operators follow.
        for scope in (0..scope_ends.len()).rev().filter(|scope| scope_ends[*scope] > 0).collect::<Vec<_>>() {
            let mut inside = scope + 1;
            while inside < usize::from(scope_ends[scope]) {
                scope_ends[scope] = scope_ends[scope].max(scope_ends[inside]);
                inside += 1;
            }
        }
        // FLOW-9: the operators of a scope follow the scope's own operator, and scopes nest.
        let mut entered: Vec<OpId> = Vec::new();
        *around = (0..scope_ends.len() as OpId)
            .map(|operator| {
                while entered.last().is_some_and(|scope| scope_ends[*scope as usize] <= operator) {
                    entered.pop();
                }
                let scope = entered.last().copied();
                if scope_ends[operator as usize] > 0 {
                    entered.push(operator);
                }
                scope
            })
            .collect();
        self.topology
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scope_around_an_operator_is_the_innermost_one() {
        let mut b = TopologyBuilder::default();
        let all: Vec<OpId> = (0..7).map(|_| b.operator(Placement::Home)).collect();
        // 1 { 2, 3 { 4 }, 5 }
        for (from, to) in [(0, 1), (2, 3), (4, 3), (3, 5), (5, 1), (1, 6)] {
            b.connect(all[from], all[to], 0, Exchange::Local);
        }
        b.enter(all[1], all[2], 0, Exchange::Local);
        b.enter(all[3], all[4], 0, Exchange::Local);
        let topology = b.build();
        let around: Vec<Option<OpId>> = all.iter().map(|operator| topology.scope_around(*operator)).collect();
        assert_eq!(around, [None, None, Some(1), Some(1), Some(3), Some(1), None]);
        assert!(topology.is_scope(1) && topology.is_scope(3) && !topology.is_scope(4));
    }

    #[test]
    fn a_scope_without_operators_is_a_scope() {
        let mut b = TopologyBuilder::default();
        let scope = b.operator(Placement::Home);
        b.enter(scope, scope, 1, Exchange::Local);
        let topology = b.build();
        assert!(topology.is_scope(scope));
        assert_eq!(topology.inside(scope), (scope + 1, 0));
        assert!(!topology.has_inside(scope));
    }

    #[test]
    fn a_scope_holds_the_operators_of_scopes_nested_last_in_it() {
        let mut b = TopologyBuilder::default();
        let all: Vec<OpId> = (0..6).map(|_| b.operator(Placement::Home)).collect();
        // 1 { 2 { 3 { 4 } } }
        for (from, to) in [(0, 1), (4, 3), (3, 2), (2, 1), (1, 5)] {
            b.connect(all[from], all[to], 0, Exchange::Local);
        }
        for (scope, first) in [(1, 2), (2, 3), (3, 4)] {
            b.enter(all[scope], all[first], 0, Exchange::Local);
        }
        let topology = b.build();
        assert_eq!([1, 2, 3].map(|scope| topology.inside(scope)), [(2, 3), (3, 2), (4, 1)]);
        assert_eq!(
            (0..6).map(|operator| topology.scope_around(operator)).collect::<Vec<_>>(),
            [None, None, Some(1), Some(2), Some(3), None]
        );
    }
}
