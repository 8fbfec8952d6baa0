//! Where elements come from: `V()` and `E()`, by id, by index, by a scan of one key, by label, or all of them.
//!
//! A source starts again for every row that reaches it, so `V()` in the middle of a traversal is the same
//! operator as at its start, where the one row is the query's unit. A scan goes on in steps: at most one
//! message a call, so that a satisfied `limit()` downstream stops it early.

use std::collections::VecDeque;

use mangrove_flow::{BATCH_ROWS, GroupId, Operator, Output};
use mangrove_graph::{
    EdgeId, Error, ErrorKind, IndexId, IndexRange, KeyId, LabelFilter, Result, ScanCursor, UserId, Value, VertexId,
};
use mangrove_gremlin::Comparison;
use mangrove_plan::logical::{Condition, Name, Operand, Test};
use mangrove_plan::lower::{equal_operands, range_bounds};
use mangrove_plan::physical::Access;

use crate::environment::Environment;
use crate::row::filter::Filter;
use crate::rows::{Column, Remember, Rows};
use crate::test::within_values;

/// Batches of a scan that one call may look at in vain before others get their turn.
const FRUITLESS_BATCHES: usize = 16;

/// Vertices or edges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `V()`
    Vertices,
    /// `E()`
    Edges,
}

/// How the elements of a source are found, with everything resolved.
enum Finder {
    Scan(Option<Vec<Name>>),
    Ids { ids: Vec<Value>, distinct: bool },
    Index { index: IndexId, prefix: Vec<Value>, range: IndexRange },
    Where { labels: Option<Vec<Name>>, key: Name, range: IndexRange },
}

/// One row whose elements are being found.
enum Search {
    Scan(LabelFilter, ScanCursor),
    /// A scan of one key.
    ScanWhere(LabelFilter, KeyId, ScanCursor),
    Found(Column, usize),
}

/// A source.
pub struct Source {
    kind: Kind,
    finder: Finder,
    filter: Option<Filter>,
    /// All conditions, for the scan that takes over where the index was dropped since the plan was made.
    without_index: Option<Vec<Condition>>,
    remember: Remember,
    environment: Environment,
    pending: VecDeque<(GroupId, Rows)>,
    row: u32,
    search: Option<Search>,
}

impl Source {
    /// Vertices.
    pub fn vertices(
        access: &Access,
        conditions: &[Condition],
        remember: Remember,
        environment: Environment,
    ) -> Result<Self> {
        Source::new(Kind::Vertices, access, conditions, remember, environment)
    }

    /// Edges.
    pub fn edges(
        access: &Access,
        conditions: &[Condition],
        remember: Remember,
        environment: Environment,
    ) -> Result<Self> {
        Source::new(Kind::Edges, access, conditions, remember, environment)
    }

    fn new(
        kind: Kind,
        access: &Access,
        conditions: &[Condition],
        remember: Remember,
        environment: Environment,
    ) -> Result<Self> {
        let mut conditions = conditions.to_vec();
        let mut without_index = None;
        let finder = match access {
            Access::All => Finder::Scan(None),
            Access::Labels(names) => Finder::Scan(Some(names.clone())),
            Access::Where { labels, key, test } => {
                Finder::Where { labels: labels.clone(), key: key.clone(), range: index_range(test, &environment)? }
            }
            Access::Ids(ids) => Finder::Ids { ids: resolve_ids(ids, &environment)?, distinct: false },
            Access::IdSet(ids) => Finder::Ids { ids: resolve_ids(ids, &environment)?, distinct: true },
            Access::Index { .. } if kind == Kind::Edges => {
                return Err(Error::bug("the planner looks up only vertices in an index"));
            }
            Access::Index { index, prefix: places, condition, .. } => {
                let range = index_range(property_test(&conditions, *condition)?, &environment)?;
                let prefix =
                    places.iter().map(|&at| equal_value(&conditions, at, &environment)).collect::<Result<_>>()?;
                without_index = Some(conditions.clone());
                // Equality is exact. A range runs over the order of all types, where `gt(1)` goes on into the
                // strings; the condition keeps what is comparable.
                let is_exact = matches!(range, IndexRange::Equal(_));
                let is_answered = |at: usize| places.contains(&at) || is_exact && at == *condition;
                conditions =
                    (0..conditions.len()).filter(|&at| !is_answered(at)).map(|at| conditions[at].clone()).collect();
                Finder::Index { index: *index, prefix, range }
            }
        };
        let filter = match &conditions[..] {
            [] => None,
            conditions => Some(Filter::new(conditions, &environment)?),
        };
        let pending = VecDeque::new();
        Ok(Source { kind, finder, filter, without_index, remember, environment, pending, row: 0, search: None })
    }

    fn advance(&mut self, out: &mut Output<'_, Rows>) -> Result<()> {
        for _ in 0..FRUITLESS_BATCHES {
            let Some(&(group, _)) = self.pending.front() else { return Ok(()) };
            let mut objects = self.next_objects()?;
            if let Some(filter) = &mut self.filter
                && !objects.is_empty()
                && let Some(kept) = filter.select(&objects, &self.environment)?
            {
                objects = objects.gather(&kept);
            }
            let found = self.emit(objects, group, out)?;
            self.finish_row();
            if found {
                break;
            }
        }
        if !self.pending.is_empty() {
            out.again();
        }
        Ok(())
    }

    fn emit(&mut self, objects: Column, group: GroupId, out: &mut Output<'_, Rows>) -> Result<bool> {
        if objects.is_empty() {
            return Ok(false);
        }
        let Some((_, rows)) = self.pending.front() else { return Ok(false) };
        let mut found = rows.derive(&vec![self.row; objects.len()], objects);
        found.remember(&self.remember);
        out.emit(0, group, found)?;
        Ok(true)
    }

    /// Goes to the next row when the current one's search is over.
    fn finish_row(&mut self) {
        if self.search.is_none() {
            self.row += 1;
            if self.pending.front().is_some_and(|(_, rows)| self.row as usize >= rows.len()) {
                self.pending.pop_front();
                self.row = 0;
            }
        }
    }

    /// The next elements for the current row: at most a message full. Ends the search when it is over.
    fn next_objects(&mut self) -> Result<Column> {
        let mut search = match self.search.take() {
            Some(search) => search,
            None => self.begin()?,
        };
        let (objects, over) = match &mut search {
            Search::Found(objects, at) => {
                let rows: Vec<u32> = (*at..objects.len().min(*at + BATCH_ROWS)).map(|r| r as u32).collect();
                *at += rows.len();
                (objects.gather(&rows), *at >= objects.len())
            }
            Search::Scan(labels, cursor) => self.scan(labels, cursor)?,
            Search::ScanWhere(labels, key, cursor) => self.scan_where(labels, *key, cursor)?,
        };
        if !over {
            self.search = Some(search);
        }
        Ok(objects)
    }

    fn scan(&self, labels: &LabelFilter, cursor: &mut ScanCursor) -> Result<(Column, bool)> {
        let (view, share) = (&self.environment.view, self.environment.share);
        Ok(match self.kind {
            Kind::Vertices => {
                let mut ids: Vec<VertexId> = Vec::with_capacity(BATCH_ROWS);
                let over = view.scan_vertices(labels, share, cursor, BATCH_ROWS, &mut ids)?;
                (Column::Vertices(ids), over)
            }
            Kind::Edges => {
                let mut ids: Vec<EdgeId> = Vec::with_capacity(BATCH_ROWS);
                let over = view.scan_edges(labels, share, cursor, BATCH_ROWS, &mut ids)?;
                (Column::Edges(ids), over)
            }
        })
    }

    fn scan_where(&self, labels: &LabelFilter, key: KeyId, cursor: &mut ScanCursor) -> Result<(Column, bool)> {
        let Finder::Where { range, .. } = &self.finder else {
            return Err(Error::bug("a scan for values has values to look for"));
        };
        let (view, share) = (&self.environment.view, self.environment.share);
        Ok(match self.kind {
            Kind::Vertices => {
                let mut ids: Vec<VertexId> = Vec::new();
                let over = view.scan_vertices_where(labels, key, range, share, cursor, BATCH_ROWS, &mut ids)?;
                (Column::Vertices(ids), over)
            }
            Kind::Edges => {
                let mut ids: Vec<EdgeId> = Vec::new();
                let over = view.scan_edges_where(labels, key, range, share, cursor, BATCH_ROWS, &mut ids)?;
                (Column::Edges(ids), over)
            }
        })
    }

    /// The search for elements with a value under a key. A name that no key ever had has no values, and no number
    /// to remember the question by: the transaction is asked for the labels instead, so that it knows what it
    /// must not miss.
    fn begin_where(&self, labels: LabelFilter, key: &Name) -> Result<Search> {
        let (view, share) = (&self.environment.view, self.environment.share);
        if let Some(key) = view.key_of(key) {
            return Ok(Search::ScanWhere(labels, key, ScanCursor::default()));
        }
        Ok(match self.kind {
            Kind::Vertices => {
                view.count_vertices(&labels, share)?;
                Search::Found(Column::Vertices(Vec::new()), 0)
            }
            Kind::Edges => {
                view.count_edges(&labels, share)?;
                Search::Found(Column::Edges(Vec::new()), 0)
            }
        })
    }

    fn begin(&mut self) -> Result<Search> {
        match self.search() {
            Err(error) if error.kind() == ErrorKind::NotFound && self.without_index.is_some() => {
                self.scan_instead()?;
                self.search()
            }
            search => search,
        }
    }

    /// Gives up the index for a scan that tests all conditions.
    fn scan_instead(&mut self) -> Result<()> {
        let conditions = self.without_index.take().unwrap_or_default();
        let labels = conditions.iter().find_map(|condition| match condition {
            Condition::LabelIn(names) => Some(names.clone()),
            _ => None,
        });
        self.filter = Some(Filter::new(&conditions, &self.environment)?);
        self.finder = Finder::Scan(labels);
        Ok(())
    }

    fn search(&self) -> Result<Search> {
        let view = &self.environment.view;
        Ok(match &self.finder {
            Finder::Scan(None) => Search::Scan(LabelFilter::Any, ScanCursor::default()),
            Finder::Scan(Some(names)) => Search::Scan(view.label_filter(names), ScanCursor::default()),
            Finder::Where { labels, key, .. } => {
                let labels = labels.as_ref().map_or(LabelFilter::Any, |names| view.label_filter(names));
                self.begin_where(labels, key)?
            }
            Finder::Ids { ids, distinct } => Search::Found(self.find(ids, *distinct)?, 0),
            Finder::Index { index, prefix, range } => {
                let mut ids = Vec::new();
                view.index_vertices(*index, prefix, range, self.environment.share, &mut ids)?;
                Search::Found(Column::Vertices(ids), 0)
            }
        })
    }

    /// The elements of these ids that this node serves, in the order of the ids. A value that is no id
    /// names nothing.
    fn find(&self, ids: &[Value], distinct: bool) -> Result<Column> {
        let (view, share) = (&self.environment.view, self.environment.share);
        let user_ids: Vec<UserId> = ids.iter().filter_map(UserId::from_value).collect();
        Ok(match self.kind {
            Kind::Vertices => {
                let mut found = Vec::with_capacity(user_ids.len());
                view.find_vertices(&user_ids, &mut found)?;
                let mut here: Vec<VertexId> = ids.iter().filter_map(as_vertex).collect();
                view.retain_vertices(&mut here)?;
                here.extend(found.into_iter().flatten());
                here.retain(|v| share.takes(v.tablet()));
                if distinct {
                    keep_first(&mut here);
                }
                Column::Vertices(here)
            }
            Kind::Edges => {
                let mut found = Vec::with_capacity(user_ids.len());
                view.find_edges(&user_ids, &mut found)?;
                let mut here: Vec<EdgeId> = ids.iter().filter_map(as_edge).collect();
                view.retain_edges(&mut here)?;
                here.extend(found.into_iter().flatten());
                here.retain(|e| share.takes(e.tablet()));
                if distinct {
                    keep_first(&mut here);
                }
                Column::Edges(here)
            }
        })
    }
}

impl Operator<Rows> for Source {
    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        self.pending.push_back((group, batch));
        self.advance(out)
    }

    fn resume(&mut self, out: &mut Output<'_, Rows>) -> Result<()> {
        if let Some((group, _)) = self.pending.front()
            && out.is_cancelled(*group)
        {
            self.pending.pop_front();
            self.row = 0;
            self.search = None;
        }
        self.advance(out)
    }
}

fn as_vertex(value: &Value) -> Option<VertexId> {
    match value {
        Value::Vertex(id) => Some(*id),
        _ => None,
    }
}

fn as_edge(value: &Value) -> Option<EdgeId> {
    match value {
        Value::Edge(id) => Some(*id),
        _ => None,
    }
}

fn keep_first<T: Copy + Eq + std::hash::Hash>(ids: &mut Vec<T>) {
    let mut seen = hashbrown::HashSet::with_capacity_and_hasher(ids.len(), foldhash::fast::RandomState::default());
    ids.retain(|id| seen.insert(*id));
}

/// Ids out of operands; lists (a parameter may be one) are spread.
fn resolve_ids(operands: &[Operand], environment: &Environment) -> Result<Vec<Value>> {
    let mut ids = Vec::with_capacity(operands.len());
    for operand in operands {
        spread(environment.resolve(operand)?, &mut ids);
    }
    Ok(ids)
}

fn spread(value: Value, into: &mut Vec<Value>) {
    match value {
        Value::List(values) | Value::Set(values) => values.iter().for_each(|v| spread(v.clone(), into)),
        value => into.push(value),
    }
}

/// The test of the property condition at a place.
fn property_test(conditions: &[Condition], at: usize) -> Result<&Test> {
    match conditions.get(at) {
        Some(Condition::Property(_, test)) => Ok(test),
        other => Err(Error::bug(format!("the planner looks up only properties in an index, not {other:?}"))),
    }
}

/// The value a condition on one of the first keys of an index asks for.
fn equal_value(conditions: &[Condition], at: usize, environment: &Environment) -> Result<Value> {
    match property_test(conditions, at)? {
        Test::Compare(Comparison::Eq, operand) => environment.resolve(operand),
        other => Err(Error::bug(format!("the planner looks up only equality in a prefix, not {other:?}"))),
    }
}

/// An equality or a range with its values.
fn index_range(test: &Test, environment: &Environment) -> Result<IndexRange> {
    if let Test::Within(operands) = test {
        return Ok(IndexRange::Equal(within_values(operands, environment)?));
    }
    if let Some(operands) = equal_operands(test) {
        return Ok(IndexRange::Equal(operands.iter().map(|o| environment.resolve(o)).collect::<Result<_>>()?));
    }
    let (low, high) = range_bounds(test).ok_or_else(|| Error::bug("the planner looks up only equality and ranges"))?;
    let resolve = |(operand, inside): (Operand, bool)| Ok::<_, Error>((environment.resolve(&operand)?, inside));
    let bound = |b: Option<(Operand, bool)>| b.map(resolve).transpose();
    Ok(IndexRange::Between { low: bound(low)?, high: bound(high)? })
}

/// How many elements there are on this node, for each row.
pub struct CountAll {
    /// Edges instead of vertices.
    pub edges: bool,
    /// Only with one of these labels.
    pub labels: Option<Vec<Name>>,
}

impl crate::row::RowOperator for CountAll {
    fn apply(&mut self, rows: Rows, environment: &Environment) -> Result<Rows> {
        let labels = match &self.labels {
            None => LabelFilter::Any,
            Some(names) => environment.view.label_filter(names),
        };
        let count = if self.edges {
            environment.view.count_edges(&labels, environment.share)?
        } else {
            environment.view.count_vertices(&labels, environment.share)?
        };
        let values = vec![Value::I64(count as i64); rows.len()];
        Ok(rows.with_objects(Column::Values(values)))
    }
}
