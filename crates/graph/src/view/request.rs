//! The requests of the callers of [`GraphView`](super::GraphView): labels, tablets, ranges of values, and cursors,
//! which say how far a caller has come.
//!
//! Requests are plain data. A cursor is a position, not a pointer: it may be kept while the caller does something else.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::compare::watched;
use crate::ids::{ElementKind, IndexId, KeyId, LabelId, LabelSetId, TabletId};
use crate::value::{Direction, Value};

/// Which labels a scan or an expansion takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelFilter {
    /// Every element.
    Any,
    /// Elements with one of these label sets; an empty list takes no element.
    Sets(Arc<[LabelSetId]>),
}

impl LabelFilter {
    /// Returns true if an element with this label set is taken.
    #[inline]
    pub fn takes(&self, set: LabelSetId) -> bool {
        match self {
            LabelFilter::Any => true,
            LabelFilter::Sets(sets) => sets.contains(&set),
        }
    }
}

/// A node's share of the tablets: the tablets whose number, divided by `of`, leaves the remainder `index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The number of the share, less than `of`.
    pub index: u16,
    /// The number of shares.
    pub of: u16,
}

impl Share {
    /// All tablets.
    pub const ALL: Share = Share { index: 0, of: 1 };

    /// Returns true if the tablet belongs to the share.
    #[inline]
    pub fn takes(self, tablet: TabletId) -> bool {
        tablet.0 % self.of == self.index
    }
}

/// How far a scan has come, and the page before which it ends. `Default` is the beginning of a scan of all pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanCursor {
    /// The position of the tablet in the view's list of tablets.
    pub tablet: u32,
    /// The page inside the tablet.
    pub page: u32,
    /// The offset inside the page.
    pub offset: u32,
    /// The scan ends before the page of this tablet and number.
    pub until: (u32, u32),
}

impl Default for ScanCursor {
    fn default() -> Self {
        ScanCursor { tablet: 0, page: 0, offset: 0, until: (u32::MAX, 0) }
    }
}

/// How far an expansion of a batch has come. `Default` is the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpandCursor {
    /// The input row.
    pub row: u32,
    /// Which of the row's adjacency lists, in an order that the implementation chooses.
    pub list: u32,
    /// The position inside the list.
    pub position: u64,
}

/// A request for the neighbors of vertices.
#[derive(Clone, Debug)]
pub struct ExpandRequest {
    /// The direction of the edges.
    pub direction: Direction,
    /// The labels of the edges.
    pub labels: LabelFilter,
    /// Fill the `edge` column too.
    pub edges: bool,
    /// The call stops soon after this many neighbors are in the output. It always takes at least one entry of a list.
    pub limit: usize,
}

/// The values that an index look-up, or a scan with a condition, searches for.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexRange {
    /// The values equal to one of these.
    Equal(Vec<Value>),
    /// The values between two bounds in the order of `compare::order`; only an ordered index answers it. A bound is a
    /// value, and true if the value itself belongs to the range.
    Between {
        /// The lower bound; `None`: from the smallest value.
        low: Option<(Value, bool)>,
        /// The upper bound; `None`: to the largest value.
        high: Option<(Value, bool)>,
    },
}

impl IndexRange {
    /// The texts with this beginning. They come after the beginning itself, and before the text whose last character is
    /// the next one. If there is no next character, no text is greater and has another beginning.
    pub fn beginning_with(beginning: &str) -> Self {
        let mut above: Vec<char> = beginning.chars().collect();
        let high = loop {
            let Some(last) = above.pop() else { break None };
            // The range leaves out the code points that are no characters.
            if let Some(next) = (last..=char::MAX).nth(1) {
                above.push(next);
                break Some((Value::from(above.into_iter().collect::<String>().as_str()), false));
            }
        };
        IndexRange::Between { low: Some((Value::from(beginning), true)), high }
    }

    /// Returns true if `has(key, P)` holds for a value: equality is [`watched::equal`], and a value passes a bound only
    /// if the two are comparable (`gt(1)` takes no string). Scans with a condition take these values.
    pub fn holds(&self, value: &Value) -> bool {
        match self {
            IndexRange::Equal(values) => watched::is_among(value, values.iter()),
            IndexRange::Between { low, high } => {
                let passes = |bound: &Option<(Value, bool)>, beyond: Ordering| match bound {
                    None => true,
                    Some((bound, inclusive)) => watched::comparable(value, bound)
                        .is_some_and(|order| order == beyond || (order.is_eq() && *inclusive)),
                };
                passes(low, Ordering::Greater) && passes(high, Ordering::Less)
            }
        }
    }
}

/// A look-up in an index, as [`GraphView::index_vertices`](super::GraphView::index_vertices) does it.
#[derive(Clone, Copy, Debug)]
pub struct IndexLookup<'a> {
    /// The index.
    pub index: IndexId,
    /// The values of the first keys.
    pub prefix: &'a [Value],
    /// The values of the next key.
    pub range: &'a IndexRange,
}

/// An index as the planner sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexInfo {
    /// The number of the index.
    pub id: IndexId,
    /// Whether it holds vertices or edges.
    pub element: ElementKind,
    /// The label that it is restricted to; `None`: it holds every element of its kind with the keys.
    pub label: Option<LabelId>,
    /// The keys, most significant first; a composite index has several.
    pub keys: Arc<[KeyId]>,
    /// True for an ordered index, which answers ranges, and equality on its first keys alone.
    pub ordered: bool,
    /// True if the index keeps its values unique; of several keys, their combination.
    pub unique: bool,
}

/// Counts of elements, from counters: cheap to get, and not exact while transactions write.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveCounts {
    /// The number of vertices of each label set.
    pub vertices: Vec<(LabelSetId, u64)>,
    /// The number of edges of each label set.
    pub edges: Vec<(LabelSetId, u64)>,
}

/// The part of a graph that [`GraphView::for_each_adjacency`](super::GraphView::for_each_adjacency) walks over.
#[derive(Clone, Debug)]
pub struct AdjacencyRequest {
    /// The labels of the vertices whose neighbors are shown.
    pub vertices: LabelFilter,
    /// The direction of the edges.
    pub direction: Direction,
    /// The labels of the edges.
    pub labels: LabelFilter,
    /// The tablets whose vertices are shown.
    pub share: Share,
    /// The pages whose vertices are shown: those of a scan of vertices that begins here. Offsets count as 0.
    pub pages: ScanCursor,
    /// Whether the reader wants the edges, and not only the neighbors. To load their ids takes as long as to load the neighbors.
    pub edges: bool,
}
