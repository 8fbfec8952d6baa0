//! The fixed shape of a query: operators and the edges between them.
//!
//! Operators are numbered along the stream: upstream before downstream, and the operators of a scope
//! between the scope's own operator and what follows it. Two things rest on it: the scheduler prefers high
//! numbers (work nearer to the result), and a range of numbers names "everything upstream of here in this
//! chain, with all its nested scopes", which is what a satisfied `limit()` cancels.

/// The number of an operator in its topology.
pub type OpId = u16;

/// Which nodes have an operator's input for a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The group's home only.
    Home,
    /// Every node.
    Spread,
}

/// Where an edge takes its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// They stay on their node.
    Local,
    /// Each to the node that owns its object.
    Owner,
    /// To the home of their group.
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
    /// Where rows go.
    pub exchange: Exchange,
    /// Whether every node sends for a group, or only one.
    pub(crate) all_send: bool,
}

/// The shape of a query.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    pub(crate) outputs: Vec<Vec<Edge>>,
    placements: Vec<Placement>,
    /// Which operators are those of scopes: an edge leads back to them.
    scopes: Vec<bool>,
}

impl Topology {
    /// How many operators.
    pub fn len(&self) -> usize {
        self.outputs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.outputs.is_empty()
    }

    /// The edges out of an operator.
    pub fn outputs(&self, operator: OpId) -> &[Edge] {
        &self.outputs[operator as usize]
    }

    /// Where an operator runs.
    pub fn placement(&self, operator: OpId) -> Placement {
        self.placements[operator as usize]
    }

    /// Whether the operator is a scope's: what runs inside sends its results back to it.
    pub fn is_scope(&self, operator: OpId) -> bool {
        self.scopes[operator as usize]
    }
}

/// Builds a topology operator by operator.
#[derive(Default)]
pub struct TopologyBuilder {
    topology: Topology,
}

impl TopologyBuilder {
    /// Adds an operator; its number is the next one.
    pub fn operator(&mut self, placement: Placement) -> OpId {
        let id = OpId::try_from(self.topology.outputs.len()).expect("the planner bounds the size of a plan");
        self.topology.outputs.push(Vec::new());
        self.topology.placements.push(placement);
        self.topology.scopes.push(false);
        id
    }

    /// The number the next operator will get.
    pub fn next(&self) -> OpId {
        self.topology.outputs.len() as OpId
    }

    /// Where an operator runs.
    pub fn placement(&self, operator: OpId) -> Placement {
        self.topology.placement(operator)
    }

    /// Adds an edge within one scope; its number among the sender's outputs is returned.
    pub fn connect(&mut self, from: OpId, to: OpId, port: u8, exchange: Exchange) -> usize {
        let all_send = self.topology.placement(from) == Placement::Spread && exchange != Exchange::Local;
        self.push(from, Edge { to, port, exchange, all_send })
    }

    /// Adds an edge by which a scope's operator sends into its scope: for a group inside, only the group's
    /// home sends.
    pub fn enter(&mut self, scope: OpId, to: OpId, port: u8, exchange: Exchange) -> usize {
        self.push(scope, Edge { to, port, exchange, all_send: false })
    }

    fn push(&mut self, from: OpId, edge: Edge) -> usize {
        if edge.to < from {
            self.topology.scopes[edge.to as usize] = true;
        }
        let outputs = &mut self.topology.outputs[from as usize];
        outputs.push(edge);
        outputs.len() - 1
    }

    /// The finished topology.
    pub fn build(self) -> Topology {
        self.topology
    }
}
