//! Sources: `V()` and `E()`, by id, by index, by a scan of one key, by label, or all elements.
//!
//! A source starts again for every row that reaches it. So `V()` in the middle of a traversal is the same operator as
//! at its start, where the only row is the unit row of the query. A scan gives at most one message in each step
//! (FLOW-2), so a satisfied `limit()` downstream stops it early.

mod by_id;
pub(super) mod by_index;

use mangrove_flow::{BATCH_ROWS, Batch, Cursor, Detail, GroupId, HeldDetail, Kernel, Output, Part, Step};
use mangrove_graph::{
    EdgeId, ElementKind, Error, ErrorKind, IndexRange, KeyId, LabelFilter, Need, Result, ScanCursor, UserId, Value,
    VertexId,
};
use mangrove_plan::logical::{Condition, Name};
use mangrove_plan::physical::Access;

use by_index::{IndexSearches, index_range};

use crate::context::execution::ExecutionContext;
use crate::limits::meter::Meter;
use crate::row::filter::Filter;
use crate::rows::{ObjectColumn, Remember, Rows};
use crate::values::names::LabelSets;

/// Batches that one step of a scan may read without a result before other operators run.
const FRUITLESS_BATCHES: usize = 16;

/// The way in which a source finds elements in this run, with the values of its operands.
enum ElementFinder {
    /// All elements, or those with the labels.
    Scan,
    /// These ids.
    Ids(Vec<Value>),
    /// The union of searches in indexes.
    Index(IndexSearches),
    /// These values of a key.
    Where(IndexRange),
}

/// The search for one row.
#[derive(Debug)]
enum RowSearch {
    Scan(LabelFilter, ScanCursor),
    /// A scan of one key.
    ScanWhere(LabelFilter, KeyId, ScanCursor),
    Found(ObjectColumn, usize),
    /// If the view may be late: elements whose conditions the next step tests, and the search for more, if it is not
    /// over. What the conditions read can be asked for only when the elements are known.
    Untested(ObjectColumn, Option<Box<RowSearch>>),
}

impl HeldDetail for RowSearch {
    fn bytes(&self) -> u64 {
        match self {
            RowSearch::Found(objects, _) => (objects.len() * size_of::<VertexId>()) as u64,
            RowSearch::Untested(objects, rest) => {
                (objects.len() * size_of::<VertexId>()) as u64 + rest.as_ref().map_or(0, |rest| rest.bytes())
            }
            RowSearch::Scan(..) | RowSearch::ScanWhere(..) => 0,
        }
    }
}

/// The operator of `V()` or `E()`.
pub(crate) struct ElementSource {
    kind: ElementKind,
    access: Access,
    /// All conditions, also those that the access answers.
    conditions: Vec<Condition>,
    labels: LabelSets,
    finder: ElementFinder,
    filter: Option<Filter>,
    /// True if the index was dropped since the plan was made: in this run, a scan tests all conditions.
    scans_instead: bool,
    /// True if the view of this run may be late.
    is_late: bool,
    remember: Remember,
    /// The ids of a look-up, and the elements found.
    user_ids: Vec<UserId>,
}

impl ElementSource {
    /// A source of vertices or edges, found by `access`, that meet these conditions.
    pub fn new(kind: ElementKind, access: &Access, conditions: &[Condition], remember: Remember) -> Result<Self> {
        Ok(ElementSource {
            kind,
            access: access.clone(),
            conditions: conditions.to_vec(),
            labels: labels_of(access, &[]),
            finder: ElementFinder::Scan,
            filter: remaining_filter(access, conditions),
            scans_instead: false,
            is_late: false,
            remember,
            user_ids: Vec::new(),
        })
    }

    /// Searches for the row of the cursor, and goes to the next row when the search is over. Returns the elements found,
    /// at most one message of them.
    fn search_row(&mut self, at: &mut Cursor, context: &ExecutionContext) -> Result<ObjectColumn> {
        let mut search = match at.take_held::<RowSearch>() {
            Some(search) => *search,
            None => self.start(context)?,
        };
        if let RowSearch::Untested(objects, rest) = search {
            match rest {
                None => at.go_to(at.row as usize + 1),
                Some(rest) => at.detail = Detail::Held(rest),
            }
            return self.test(objects, context);
        }
        let (objects, over) = self.next_objects(&mut search, context)?;
        if self.is_late && self.filter.is_some() && !objects.is_empty() {
            let rest = (!over).then(|| Box::new(search));
            at.detail = Detail::Held(Box::new(RowSearch::Untested(objects, rest)));
            return Ok(ObjectColumn::default());
        }
        if over {
            at.go_to(at.row as usize + 1);
        } else {
            at.detail = Detail::Held(Box::new(search));
        }
        self.test(objects, context)
    }

    /// Returns the elements that meet the conditions.
    fn test(&mut self, objects: ObjectColumn, context: &ExecutionContext) -> Result<ObjectColumn> {
        match &mut self.filter {
            Some(filter) if !objects.is_empty() => Ok(match filter.select(&objects, context)? {
                Some(kept) => objects.gather(&kept),
                None => objects,
            }),
            _ => Ok(objects),
        }
    }

    /// Returns the next elements of a search, at most one message of them, and whether the search is over.
    fn next_objects(&self, search: &mut RowSearch, context: &ExecutionContext) -> Result<(ObjectColumn, bool)> {
        Ok(match search {
            RowSearch::Found(objects, 0) if objects.len() <= BATCH_ROWS => (std::mem::take(objects), true),
            RowSearch::Found(objects, at) => {
                let rows: Vec<u32> = (*at..objects.len().min(*at + BATCH_ROWS)).map(|r| r as u32).collect();
                *at += rows.len();
                (objects.gather(&rows), *at >= objects.len())
            }
            RowSearch::Scan(labels, cursor) => self.scan(labels, cursor, context)?,
            RowSearch::ScanWhere(labels, key, cursor) => self.scan_where(labels, *key, cursor, context)?,
            RowSearch::Untested(..) => return Err(Error::bug("elements are tested before more are searched for")),
        })
    }

    /// Returns what the next step of a search reads.
    fn search_needs<'a>(&'a self, search: &'a RowSearch, context: &ExecutionContext) -> Need<'a> {
        match search {
            RowSearch::Found(..) => Need::Nothing,
            RowSearch::Scan(labels, from) => self.scan_needs(labels, None, *from, context),
            RowSearch::ScanWhere(labels, key, from) => self.scan_needs(labels, Some(*key), *from, context),
            RowSearch::Untested(objects, _) => match &self.filter {
                Some(filter) => filter.needs(objects, 0, &*context.view),
                None => Need::Nothing,
            },
        }
    }

    fn scan_needs<'a>(
        &'a self,
        labels: &LabelFilter,
        key: Option<KeyId>,
        from: ScanCursor,
        context: &ExecutionContext,
    ) -> Need<'a> {
        let condition = match &self.finder {
            ElementFinder::Where(range) => key.map(|key| (key, range)),
            _ => None,
        };
        Need::Scan { kind: self.kind, labels: labels.clone(), condition, share: context.share, from, limit: BATCH_ROWS }
    }

    /// Returns what the first step of a search reads.
    fn start_needs<'a>(&'a mut self, context: &ExecutionContext) -> Need<'a> {
        let (view, share) = (&*context.view, context.share);
        let labels = self.labels.filter(view).clone();
        match (&self.finder, &self.access) {
            (ElementFinder::Ids(ids), _) => by_id::needs(self.kind, ids, context),
            (ElementFinder::Index(searches), _) => searches.needs(context),
            (ElementFinder::Where(_), Access::Where { key, .. }) => match view.key_of(key) {
                Some(key) => self.scan_needs(&labels, Some(key), ScanCursor::default(), context),
                None => Need::Count { kind: self.kind, labels, share },
            },
            _ => self.scan_needs(&labels, None, ScanCursor::default(), context),
        }
    }

    fn scan(
        &self,
        labels: &LabelFilter,
        cursor: &mut ScanCursor,
        context: &ExecutionContext,
    ) -> Result<(ObjectColumn, bool)> {
        let (view, share) = (&context.view, context.share);
        Ok(match self.kind {
            ElementKind::Vertex => {
                let mut ids: Vec<VertexId> = Vec::with_capacity(BATCH_ROWS);
                let over = view.scan_vertices(labels, share, cursor, BATCH_ROWS, &mut ids)?;
                (ObjectColumn::Vertices(ids), over)
            }
            ElementKind::Edge => {
                let mut ids: Vec<EdgeId> = Vec::with_capacity(BATCH_ROWS);
                let over = view.scan_edges(labels, share, cursor, BATCH_ROWS, &mut ids)?;
                (ObjectColumn::Edges(ids), over)
            }
        })
    }

    fn scan_where(
        &self,
        labels: &LabelFilter,
        key: KeyId,
        cursor: &mut ScanCursor,
        context: &ExecutionContext,
    ) -> Result<(ObjectColumn, bool)> {
        let ElementFinder::Where(range) = &self.finder else {
            return Err(Error::bug("a scan for values has values to look for"));
        };
        let (view, share) = (&context.view, context.share);
        Ok(match self.kind {
            ElementKind::Vertex => {
                let mut ids: Vec<VertexId> = Vec::new();
                let over = view.scan_vertices_where(labels, key, range, share, cursor, BATCH_ROWS, &mut ids)?;
                (ObjectColumn::Vertices(ids), over)
            }
            ElementKind::Edge => {
                let mut ids: Vec<EdgeId> = Vec::new();
                let over = view.scan_edges_where(labels, key, range, share, cursor, BATCH_ROWS, &mut ids)?;
                (ObjectColumn::Edges(ids), over)
            }
        })
    }

    /// Begins a search for elements with a value under a key. If no key has the name, no element has a value, but the
    /// read set of the transaction cannot name the key. So the search scans the labels instead, which the read set can
    /// name.
    fn start_where(&self, labels: LabelFilter, key: &Name, context: &ExecutionContext) -> Result<RowSearch> {
        let (view, share) = (&context.view, context.share);
        if let Some(key) = view.key_of(key) {
            return Ok(RowSearch::ScanWhere(labels, key, ScanCursor::default()));
        }
        Ok(match self.kind {
            ElementKind::Vertex => {
                view.count_vertices(&labels, share)?;
                RowSearch::Found(ObjectColumn::Vertices(Vec::new()), 0)
            }
            ElementKind::Edge => {
                view.count_edges(&labels, share)?;
                RowSearch::Found(ObjectColumn::Edges(Vec::new()), 0)
            }
        })
    }

    fn start(&mut self, context: &ExecutionContext) -> Result<RowSearch> {
        match self.search(context) {
            Err(error) if error.kind() == ErrorKind::NotFound && matches!(self.finder, ElementFinder::Index(_)) => {
                self.scan_instead(context)?;
                self.search(context)
            }
            search => search,
        }
    }

    /// Replaces the index by a scan that tests all conditions.
    fn scan_instead(&mut self, context: &ExecutionContext) -> Result<()> {
        self.scans_instead = true;
        self.finder = ElementFinder::Scan;
        self.labels = labels_of(&self.access, &self.conditions);
        let mut filter = Filter::new(&self.conditions);
        filter.begin(context)?;
        self.filter = Some(filter);
        Ok(())
    }

    fn search(&mut self, context: &ExecutionContext) -> Result<RowSearch> {
        let view = &*context.view;
        Ok(match (&self.finder, &self.access) {
            (ElementFinder::Scan, _) => RowSearch::Scan(self.labels.filter(view).clone(), ScanCursor::default()),
            (ElementFinder::Where(_), Access::Where { key, .. }) => {
                let labels = self.labels.filter(view).clone();
                self.start_where(labels, key, context)?
            }
            (ElementFinder::Ids(ids), access) => {
                let distinct = matches!(access, Access::IdSet(_));
                RowSearch::Found(by_id::find(self.kind, ids, distinct, &mut self.user_ids, context)?, 0)
            }
            (ElementFinder::Index(searches), _) => RowSearch::Found(searches.find(self.kind, context)?, 0),
            (ElementFinder::Where(_), _) => return Err(Error::bug("a source finds as it accesses")),
        })
    }
}

/// Returns the labels that a scan is restricted to.
fn labels_of(access: &Access, conditions: &[Condition]) -> LabelSets {
    let named = match access {
        Access::Labels(names) => Some(names),
        Access::Where { labels, .. } => labels.as_ref(),
        Access::All | Access::Ids(_) | Access::IdSet(_) => None,
        Access::Index(_) => conditions.iter().find_map(|condition| match condition {
            Condition::LabelIn(names) => Some(names),
            _ => None,
        }),
    };
    named.map_or_else(|| LabelSets::along(Vec::new()), |names| LabelSets::with_any(names.clone()))
}

/// Returns a filter for the conditions that the access does not answer itself. It runs on the elements that the access
/// finds.
fn remaining_filter(access: &Access, conditions: &[Condition]) -> Option<Filter> {
    match access {
        Access::Index(access) => by_index::remaining_filter(access, conditions),
        _ => (!conditions.is_empty()).then(|| Filter::new(conditions)),
    }
}

impl Kernel<Rows> for ElementSource {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        self.is_late = context.view.late().is_some();
        if std::mem::take(&mut self.scans_instead) {
            self.labels = labels_of(&self.access, &[]);
            self.filter = remaining_filter(&self.access, &self.conditions);
        }
        self.finder = match &self.access {
            Access::All | Access::Labels(_) => ElementFinder::Scan,
            Access::Ids(operands) | Access::IdSet(operands) => {
                let mut ids = match std::mem::replace(&mut self.finder, ElementFinder::Scan) {
                    ElementFinder::Ids(ids) => ids,
                    _ => Vec::with_capacity(operands.len()),
                };
                for operand in operands {
                    by_id::spread(context.resolve(operand)?, &mut ids);
                }
                ElementFinder::Ids(ids)
            }
            Access::Where { test, .. } => ElementFinder::Where(index_range(test, context)?),
            Access::Index(access) => ElementFinder::Index(IndexSearches::new(access, context)?),
        };
        self.filter.iter_mut().try_for_each(|filter| filter.begin(context))
    }

    fn recycle(&mut self) {
        // The values of a run may be large, so they are dropped with it.
        match &mut self.finder {
            ElementFinder::Ids(ids) if ids.capacity() <= BATCH_ROWS => ids.clear(),
            finder => *finder = ElementFinder::Scan,
        }
        self.user_ids = Vec::new();
    }

    fn split(
        &mut self,
        rows: &mut Rows,
        at: &mut Cursor,
        _rows_min: usize,
        context: &ExecutionContext,
    ) -> Result<Option<Part<Rows>>> {
        let row = at.row;
        if rows.len() > row as usize + 1 {
            // Rows are cut off before scans: the row at hand stays here.
            let batch = rows.split_off(row as usize + 1);
            return Ok(Some(Part { batch, cursor: Cursor::default() }));
        }
        let Detail::Held(held) = &mut at.detail else { return Ok(None) };
        let Some(search) = (&mut **held as &mut dyn std::any::Any).downcast_mut::<RowSearch>() else { return Ok(None) };
        let rest = match search {
            RowSearch::Scan(labels, cursor) => {
                let rest = context.view.split_scan(self.kind, labels, context.share, cursor);
                rest.map(|rest| RowSearch::Scan(labels.clone(), rest))
            }
            RowSearch::ScanWhere(labels, key, cursor) => {
                let rest = context.view.split_scan(self.kind, labels, context.share, cursor);
                rest.map(|rest| RowSearch::ScanWhere(labels.clone(), *key, rest))
            }
            RowSearch::Found(objects, sent) => {
                let left = objects.len() - *sent;
                (left >= 2 * BATCH_ROWS).then(|| {
                    let numbers: Vec<u32> = (0..objects.len() as u32).collect();
                    let middle = *sent + left / 2;
                    let rest = objects.gather(&numbers[middle..]);
                    *objects = objects.gather(&numbers[..middle]);
                    RowSearch::Found(rest, 0)
                })
            }
            RowSearch::Untested(..) => None,
        };
        let Some(rest) = rest else { return Ok(None) };
        let cursor = Cursor { row: 0, detail: Detail::Held(Box::new(rest)) };
        Ok(Some(Part { batch: rows.take(&[row]), cursor }))
    }

    fn needs<'a>(&'a mut self, _: &'a Rows, at: &'a Cursor, context: &'a ExecutionContext) -> Result<Need<'a>> {
        match &at.detail {
            Detail::Held(held) => Ok(match (&**held as &dyn std::any::Any).downcast_ref::<RowSearch>() {
                Some(search) => self.search_needs(search, context),
                None => Need::Nothing,
            }),
            _ => Ok(self.start_needs(context)),
        }
    }

    fn step(&mut self, rows: &mut Rows, at: &mut Cursor, group: GroupId, out: &mut Output<'_, Rows>) -> Result<Step> {
        // What another batch reads was not asked for.
        let batches = if self.is_late { 1 } else { FRUITLESS_BATCHES };
        for _ in 0..batches {
            let row = at.row;
            if row as usize >= rows.len() {
                return Ok(Step::Done);
            }
            let objects = self.search_row(at, out.context())?;
            if !objects.is_empty() {
                let mut found = rows.derive_from_one(row, objects);
                found.remember(&self.remember);
                out.emit(0, group, found)?;
                break;
            }
        }
        Ok(if (at.row as usize) < rows.len() { Step::More } else { Step::Done })
    }
}

/// Counts the elements of this node, for each row.
pub(crate) struct CountAll {
    /// The kind of elements that are counted.
    pub kind: ElementKind,
    /// Only with one of these labels.
    pub labels: Option<Vec<Name>>,
}

impl CountAll {
    fn filter(&self, context: &ExecutionContext) -> LabelFilter {
        self.labels.as_ref().map_or(LabelFilter::Any, |names| context.view.label_filter(names))
    }
}

impl crate::row::operator::RowOperator for CountAll {
    fn needs<'a>(&mut self, _: &'a ObjectColumn, _: usize, context: &ExecutionContext) -> Result<Need<'a>> {
        Ok(Need::Count { kind: self.kind, labels: self.filter(context), share: context.share })
    }

    fn apply(&mut self, rows: Rows, context: &ExecutionContext, _: &mut Meter<'_>) -> Result<Rows> {
        let labels = self.filter(context);
        let count = match self.kind {
            ElementKind::Vertex => context.view.count_vertices(&labels, context.share)?,
            ElementKind::Edge => context.view.count_edges(&labels, context.share)?,
        };
        let values = vec![Value::I64(count as i64); rows.len()];
        Ok(rows.with_objects(ObjectColumn::Values(values)))
    }
}
