//! The part of a variable's vertices, or of an atom's edges, that its conditions leave.
//!
//! Where an index has the values of a key, its entries for the values of the run are counted. Where none has, and the
//! statistics of the key's values are known, these tell. Otherwise the part is a guess, and planning notes which values
//! it would have to know. Conditions are taken to be independent of each other. Of edges nothing is known, so their parts
//! are guesses.

use mangrove_graph::statistics::{LabelStatistics, Statistics};
use mangrove_graph::{ElementKind, IndexId, IndexRange, KeyId, LabelSetId};
use mangrove_gremlin::Comparison;

use super::Variable;
use crate::facts::{GraphFacts, UsableIndex};
use crate::logical::{Condition, Name, Operand, Test};

/// The part of the vertices that a condition is taken to leave.
const RANGE: f64 = 0.3;
const MOST: f64 = 0.9;

/// How many elements there are taken to be, if nothing is known.
const UNKNOWN_ELEMENTS: f64 = 10_000.0;

/// Of a variable with many label sets, the values of at most so many are looked at: those with the most vertices.
const LABELS_MAX: usize = 8;

/// The part of the vertices of a variable's labels that its other conditions leave, and whether they are found without
/// a scan. `vertices` is the number of these vertices, and `labels` are their label sets.
pub(super) fn narrowed<'a>(
    variable: &'a Variable,
    vertices: f64,
    labels: impl Iterator<Item = &'a LabelStatistics>,
    statistics: Option<&'a Statistics>,
    facts: &'a GraphFacts,
) -> (f64, bool) {
    let all = vertices.max(1.0);
    if let Some(ids) = &variable.ids {
        return ((ids.len() as f64 / all).min(1.0), true);
    }
    if variable.conditions.is_empty() {
        return (1.0, false);
    }
    let labels = largest(labels.map(|label| (label.label, label.vertices)).collect());
    let indexes = indexes_of(variable, &facts.indexes).collect();
    let narrowing = Narrowing { indexes, all, labels, statistics, facts };
    let (part, is_found) = narrowing.of_all(&variable.conditions);
    (part.clamp(f64::MIN_POSITIVE, 1.0), is_found)
}

/// The label sets with the most vertices, as many as are looked at.
fn largest(mut labels: Vec<(LabelSetId, u64)>) -> Vec<(LabelSetId, u64)> {
    labels.sort_by_key(|(label, vertices)| (std::cmp::Reverse(*vertices), *label));
    labels.truncate(LABELS_MAX);
    labels
}

/// The part of an atom's edges that their conditions leave. `edges` is the number of these edges.
pub(super) fn part_of_edges(conditions: &[Condition], edges: f64, facts: &GraphFacts) -> f64 {
    let narrowing = Narrowing { indexes: Vec::new(), all: edges.max(1.0), labels: Vec::new(), statistics: None, facts };
    narrowing.of_all(conditions).0.clamp(f64::MIN_POSITIVE, 1.0)
}

/// The part of elements that each condition leaves. If the conditions name labels of vertices, indexes and statistics
/// tell; otherwise the forms of the tests do.
pub(super) fn parts_left(conditions: &[Condition], facts: &GraphFacts) -> Vec<f64> {
    let mut labels = Vec::new();
    if let Some(figures) = &facts.figures {
        let sets = figures.sets.taken_by_each(conditions.iter().filter_map(labels_of)).unwrap_or_default();
        labels.extend(sets.into_iter().filter_map(|set| Some((set, figures.statistics.label(set)?.vertices))));
    }
    let labels = largest(labels);
    let all = labels.iter().map(|(_, vertices)| *vertices as f64).sum::<f64>();
    let is_known = !labels.is_empty();
    let statistics = facts.figures.as_ref().map(|figures| &*figures.statistics).filter(|_| is_known);
    let variable = Variable { conditions: conditions.to_vec(), ..Variable::default() };
    let indexes = if is_known { indexes_of(&variable, &facts.indexes).collect() } else { Vec::new() };
    let all = if is_known { all.max(1.0) } else { UNKNOWN_ELEMENTS };
    let narrowing = Narrowing { indexes, all, labels, statistics, facts };
    conditions.iter().map(|condition| narrowing.of(condition).0).collect()
}

/// What conditions leave of the vertices of a variable's labels, or of the edges of an atom.
struct Narrowing<'a> {
    /// The indexes that find them.
    indexes: Vec<&'a UsableIndex>,
    /// How many there are, at least 1.
    all: f64,
    /// The label sets with the most vertices, and the vertices of each.
    labels: Vec<(LabelSetId, u64)>,
    statistics: Option<&'a Statistics>,
    facts: &'a GraphFacts,
}

impl Narrowing<'_> {
    /// The part that conditions leave together, and whether one of them finds its vertices.
    fn of_all(&self, conditions: &[Condition]) -> (f64, bool) {
        let each = conditions.iter().map(|condition| self.of(condition));
        each.fold((1.0, false), |(part, is_found), (left, finds)| (part * left, is_found | finds))
    }

    fn of(&self, condition: &Condition) -> (f64, bool) {
        match condition {
            Condition::Id(test) => match test.equal_operands() {
                Some(ids) => (ids.len() as f64 / self.all, true),
                None => (RANGE, false),
            },
            Condition::Property(key, test) => {
                let index = self.indexes.iter().find(|index| index.keys.first() == Some(key)).copied();
                let is_found = index.is_some_and(|index| finds(index, test));
                let by_index = index.and_then(|index| self.by_index(index, test));
                let part = by_index.or_else(|| if is_found { None } else { self.by_values(key, test) });
                (part.unwrap_or_else(|| self.guess(index, test)), is_found)
            }
            Condition::AnyOf(branches) => {
                let each = branches.iter().map(|branch| self.of_all(branch));
                let (part, is_found) = each.fold((0.0, true), |(part, all), (left, finds)| (part + left, all & finds));
                (part.min(1.0), is_found)
            }
            Condition::Label(_) => (RANGE, false),
            Condition::HasKey(key) => (self.with_key(key).unwrap_or(MOST), false),
            Condition::HasNot(key) => (self.with_key(key).map_or(MOST, |part| 1.0 - part), false),
            Condition::LabelIn(_) | Condition::PropertyKey(_) | Condition::PropertyValue(_) => (1.0, false),
        }
    }

    /// The part that a test leaves, from the number of entries that an index has for the values of the run.
    fn by_index(&self, index: &UsableIndex, test: &Test) -> Option<f64> {
        let entries = self.statistics?.index(index.info.id)?.entries as f64;
        // An index without a label may have entries of vertices with other labels.
        let all = if index.label.is_some() { self.all } else { self.all.max(entries) };
        let is_unique = index.info.unique && index.keys.len() == 1;
        let count = |test: &Test| match values_taken(test) {
            Some(values) if is_unique => Some(values),
            _ => Some(self.facts.values.entries(index.info.id, &[], test)? as f64),
        };
        let taken = taken(test, entries, &count)?;
        // The plan serves other values, too, of which some have entries.
        Some((taken.max(1.0) / all).min(1.0))
    }

    /// The part that a test leaves, from the statistics of the values of a key.
    fn by_values(&self, key: &Name, test: &Test) -> Option<f64> {
        if !is_counted(test) {
            return None;
        }
        let Known { labels, key, vertices, values, distinct } = self.known(key)?;
        let count = |test: &Test| match self.facts.values.values(&labels, key, test) {
            // The value is that of a parameter.
            None => values_taken(test).map(|taken| taken * values / distinct.max(1.0)),
            known => known.map(|count| count as f64),
        };
        Some((taken(test, values, &count)?.max(1.0) / vertices).min(1.0))
    }

    /// The part of the vertices that have a value of a key, if its values are counted. A vertex with several values
    /// counts several times.
    fn with_key(&self, key: &Name) -> Option<f64> {
        let Known { vertices, values, .. } = self.known(key)?;
        Some((values / vertices).min(1.0))
    }

    /// What is known about the values of a key. If they are not counted, this is noted.
    fn known(&self, key: &Name) -> Option<Known> {
        let statistics = self.statistics?;
        let key = self.facts.values.key(key)?;
        let labels: Vec<LabelSetId> = self.labels.iter().map(|(label, _)| *label).collect();
        let found: Vec<_> = labels.iter().filter_map(|label| statistics.values_of(*label, key)).collect();
        if found.len() < labels.len() || labels.is_empty() {
            labels.iter().for_each(|label| self.facts.values.miss(*label, key));
            return None;
        }
        Some(Known {
            key,
            vertices: self.labels.iter().map(|(_, vertices)| *vertices as f64).sum::<f64>().max(1.0),
            values: found.iter().map(|known| known.values as f64).sum(),
            // Label sets are taken to have the same values.
            distinct: found.iter().map(|known| known.distinct as f64).fold(0.0, f64::max),
            labels,
        })
    }

    /// The part that a test is taken to leave if nothing is known about its values.
    fn guess(&self, index: Option<&UsableIndex>, test: &Test) -> f64 {
        let distinct = index.map(|index| {
            let known = self.statistics.and_then(|all| all.index(index.info.id));
            known.map_or(self.all, |of| of.distinct as f64)
        });
        let distinct = distinct.unwrap_or(self.all.sqrt()).max(1.0);
        values_taken(test).map_or(RANGE, |values| values / distinct)
    }
}

/// What is known about the values of a key.
struct Known {
    labels: Vec<LabelSetId>,
    key: KeyId,
    /// The vertices of these label sets.
    vertices: f64,
    /// The values that they have.
    values: f64,
    /// How many different values there are.
    distinct: f64,
}

/// How many of some values a test takes. `count` tells it for equality and for ranges.
fn taken(test: &Test, values: f64, count: &dyn Fn(&Test) -> Option<f64>) -> Option<f64> {
    let taken = match test {
        Test::Compare(Comparison::Neq, operand) => values - count(&equal_to(operand))?,
        Test::Without(operands) => values - count(&Test::Within(operands.clone()))?,
        Test::Not(test) => values - taken(test, values, count)?,
        Test::Or(tests) => tests.iter().map(|test| taken(test, values, count)).sum::<Option<f64>>()?,
        Test::And(tests) if !test.is_interval() => {
            let part = |test: &Test| Some(taken(test, values, count)? / values.max(1.0));
            values * tests.iter().map(part).product::<Option<f64>>()?
        }
        _ => count(test)?,
    };
    Some(taken.clamp(0.0, values))
}

/// Returns true if counts of values tell how many of them a test takes.
fn is_counted(test: &Test) -> bool {
    match test {
        Test::Compare(..) | Test::Within(_) | Test::Without(_) => true,
        Test::Text(..) => test.beginning().is_some(),
        Test::TypeOf(_) => false,
        Test::And(tests) | Test::Or(tests) => tests.iter().all(is_counted),
        Test::Not(test) => is_counted(test),
    }
}

fn equal_to(operand: &Operand) -> Test {
    Test::Compare(Comparison::Eq, operand.clone())
}

/// Returns true if an index finds what a test takes.
fn finds(index: &UsableIndex, test: &Test) -> bool {
    test.equal_operands().is_some() || index.info.ordered && test.is_interval()
}

pub(super) fn labels_of(condition: &Condition) -> Option<&[Name]> {
    match condition {
        Condition::LabelIn(names) => Some(names),
        _ => None,
    }
}

/// The indexes that find vertices of a variable.
fn indexes_of<'a>(variable: &Variable, indexes: &'a [UsableIndex]) -> impl Iterator<Item = &'a UsableIndex> {
    let labels = move || variable.conditions.iter().filter_map(labels_of).flatten();
    let covers = move |index: &&UsableIndex| {
        let takes_label = index.label.as_ref().is_none_or(|label| labels().any(|name| name == label));
        index.info.element == ElementKind::Vertex && takes_label
    };
    indexes.iter().filter(covers)
}

/// The index by which the vertices of a variable are found, and the values that are looked up there.
pub(super) fn look_up(variable: &Variable, facts: &GraphFacts) -> Option<(IndexId, IndexRange)> {
    variable.conditions.iter().find_map(|condition| {
        let Condition::Property(key, test) = condition else { return None };
        let mut indexes = indexes_of(variable, &facts.indexes);
        let index = indexes.find(|index| index.keys.first() == Some(key)).filter(|index| finds(index, test))?;
        Some((index.info.id, facts.values.range(test)?))
    })
}

/// How many values a test takes, if it takes some values of many.
fn values_taken(test: &Test) -> Option<f64> {
    match test {
        Test::Compare(Comparison::Eq, _) => Some(1.0),
        Test::Within(operands) => Some(operands.len() as f64),
        Test::Compare(..)
        | Test::Without(_)
        | Test::Text(..)
        | Test::TypeOf(_)
        | Test::And(_)
        | Test::Or(_)
        | Test::Not(_) => None,
    }
}
