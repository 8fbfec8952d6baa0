//! Which vertices edges connect: facts that plans may rely on.
//!
//! A [`Connections`] is a value that never changes. For each kind of adjacency lists (the label set of their vertices, a
//! direction, and the label set of the edges) it says where the edges lead, and whether a list has more than one.
//!
//! The facts are *sound*: they hold for every edge that a reader meets who has the value by the rules of
//! [`GraphView::connections`](crate::GraphView::connections). They may say too little, as after the deletion of edges.
//! So a plan may leave out a test that they answer. [`statistics`](crate::statistics) are *advisory*: they describe one
//! snapshot, and a plan may only be chosen by them.

use crate::ids::LabelSetId;
use crate::value::Direction;

/// A direction and an edge label set, as vertices see their edges.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EdgeTable {
    /// [`Direction::Out`] or [`Direction::In`].
    pub direction: Direction,
    /// The label set of the edges.
    pub label: LabelSetId,
}

impl EdgeTable {
    /// The position in the order of tables: outgoing ones first.
    pub fn order(self) -> (bool, LabelSetId) {
        (self.direction != Direction::Out, self.label)
    }
}

/// The facts about the edges of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// The number of facts when the value was made: a greater one means that there are more.
    pub epoch: u64,
    lists: Box<[ListFacts]>,
}

/// What is known of the lists of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListFacts {
    /// The label set of the vertices that have the lists.
    pub vertices: LabelSetId,
    /// The direction of the edges, as seen from these vertices, and their label set.
    pub table: EdgeTable,
    /// The label sets of the vertices at the other ends.
    pub ends: Ends,
    /// True if each of the vertices has at most one such edge.
    pub is_functional: bool,
}

/// The label sets that edges may lead to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ends {
    /// These, ascending.
    Sets(Box<[LabelSetId]>),
    /// Any.
    Any,
}

impl Connections {
    /// The facts about these lists, in any order. A kind of lists is given once. Between vertices, directions and label
    /// sets that are not among them there is no edge.
    pub fn new(epoch: u64, mut lists: Vec<ListFacts>) -> Self {
        lists.sort_unstable_by_key(|facts| (facts.vertices, facts.table.label, facts.table.direction as u8));
        Connections { epoch, lists: lists.into() }
    }

    /// The facts, by the label set of the vertices.
    pub fn lists(&self) -> &[ListFacts] {
        &self.lists
    }
}
