//! The facts about a graph that plans depend on: its indexes, its statistics, and which labels its edges connect.

use std::sync::Arc;

use mangrove_graph::statistics::{IndexStatistics, Statistics};
use mangrove_graph::{IndexId, IndexInfo, LabelSetId};

use crate::connections::KnownConnections;
use crate::label_sets::NamedSets;
use crate::logical::Name;
use crate::sampling::GraphSample;
use crate::values::RunValues;

/// An index with its names.
#[derive(Clone, Debug, PartialEq)]
pub struct UsableIndex {
    /// The index.
    pub info: IndexInfo,
    /// Its label, if it is restricted to a label.
    pub label: Option<Name>,
    /// Its keys, most significant first.
    pub keys: Vec<Name>,
}

impl std::fmt::Display for UsableIndex {
    /// `person.name`, `(last, first)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(label) = &self.label {
            write!(f, "{label}.")?;
        }
        match &self.keys[..] {
            [key] => write!(f, "{key}"),
            keys => write!(f, "({})", keys.join(", ")),
        }
    }
}

/// The facts about a graph that plans depend on.
#[derive(Clone, Debug, Default)]
pub struct GraphFacts {
    /// The indexes that plans may use.
    pub indexes: Vec<UsableIndex>,
    /// The sizes of indexes, as far as they are known, in any order.
    pub sizes: Vec<IndexStatistics>,
    /// The statistics from which the order of steps is chosen, if there are any.
    pub figures: Option<Figures>,
    /// The facts about edges that the plan may rely on; `None`: none (PLAN-13).
    pub connections: Option<KnownConnections>,
    /// The values of the run that the plan is made for, for estimates.
    pub values: RunValues,
    /// Draws from the graph, for estimates.
    pub sample: GraphSample,
}

impl GraphFacts {
    /// The size of an index, if it is known.
    pub fn size(&self, index: IndexId) -> Option<&IndexStatistics> {
        self.sizes.iter().find(|size| size.index == index)
    }
}

/// Statistics of a graph with the names of its labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// The statistics.
    pub statistics: Arc<Statistics>,
    /// The label sets of vertices and edges that the statistics have.
    pub(crate) sets: Arc<NamedSets>,
}

impl Figures {
    /// Statistics with the labels that `labels_of` gives for a label set.
    pub fn new(statistics: Arc<Statistics>, labels_of: impl Fn(LabelSetId) -> Vec<Name>) -> Self {
        let tables = statistics.labels().iter().flat_map(|label| label.tables());
        let mut sets: Vec<LabelSetId> = tables.map(|degrees| degrees.table.label).collect();
        sets.extend(statistics.labels().iter().map(|label| label.label));
        Figures { statistics, sets: Arc::new(NamedSets::new(sets, labels_of)) }
    }
}
