//! Reads that may be late: the interface of a view that must fetch what a query reads, such as one over object storage.
//!
//! The methods of [`GraphView`](super::GraphView) are synchronous: a read of what is not at hand blocks its thread. So
//! with a view that may be late ([`LateReads`]), a query first says what its next step will read ([`Need`]), under a
//! [`Ticket`]. If that is not at hand, the query does other work until the view completes the ticket. Then it takes the
//! step while it has the [`Hold`], which keeps at hand what was asked for.
//!
//! A read that was not asked for gives the same answer, and takes longer.
//!
//! ```text
//!  query                                   view                            any thread
//!  want(need, ticket) ───────────────────► at hand:     Ready(hold)
//!                                          not at hand: Submitted ───────► reads
//!  …other work…                                                             │
//!  takes the step ◄───────────── complete(ticket, hold or error) ◄──────────┘
//! ```

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

use super::{AdjacencyRequest, ExpandCursor, ExpandRequest, IndexRange, LabelFilter, ScanCursor, Share};
use crate::error::Result;
use crate::ids::{EdgeId, ElementKind, IndexId, KeyId, VertexId};
use crate::user_id::UserId;
use crate::value::{Direction, Value};

/// A read that a run waits for. No other ticket of the process is equal to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    /// The run that waits.
    pub run: u64,
    /// The position in the run's table of tickets. It is used again after the ticket is completed or forgotten.
    pub number: u32,
    /// Counts the uses of the position.
    pub generation: u32,
}

/// The part of a run that a view tells of its progress, from any thread. No call blocks for long.
pub trait Completions: Send + Sync {
    /// Completes a ticket with what was read, or with the error of the reads. A ticket that was completed before, or
    /// that the run has forgotten, is ignored, and the hold is dropped.
    fn complete(&self, ticket: Ticket, outcome: Result<Hold>);

    /// Says that [`LateReads::want`] may be called again after it returned [`Want::Full`].
    fn has_room(&self);
}

/// Keeps at hand what was asked for, until it is dropped.
#[derive(Debug)]
pub struct Hold {
    bytes: u64,
    /// Only its drop matters.
    _pinned: Option<Box<dyn Any + Send>>,
}

impl Hold {
    /// A hold that keeps a value of so many bytes, for which the query is charged.
    pub fn new(pinned: impl Any + Send, bytes: u64) -> Self {
        Hold { bytes, _pinned: Some(Box::new(pinned)) }
    }

    /// The hold of a need that is at hand as long as the view is.
    pub fn nothing() -> Self {
        Hold { bytes: 0, _pinned: None }
    }

    /// Returns the number of bytes that it keeps.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// The answer to a need.
#[derive(Debug)]
pub enum Want {
    /// It is at hand while the hold lives.
    Ready(Hold),
    /// It is being read. The view completes the ticket.
    Submitted {
        /// The number of reads.
        reads: u32,
        /// The bytes that they bring, for which the query is charged while it waits.
        bytes: u64,
    },
    /// Too many reads are under way. The run asks again after one of its tickets is completed, or after
    /// [`Completions::has_room`].
    Full,
}

/// A view whose reads may be late.
///
/// An implementation promises:
///
/// - While a hold lives, reads of what was asked for do not block. Any other read blocks until it is answered.
/// - It completes every ticket that it has submitted, or fails it, within a time of its own. Nothing else ends the wait
///   of a query.
/// - It completes no ticket for which it did not answer [`Want::Submitted`]. It may complete one before it returns that.
/// - After [`Want::Full`] it calls [`Completions::has_room`] once it has room, if no ticket of that run is submitted.
/// - It calls [`Completions`] without a lock that `want`, `forget` or the drop of a hold takes.
pub trait LateReads: Send + Sync {
    /// Asks for what a step will read. It does not block. A need that names an element that does not exist is not an
    /// error: the read skips it (GRAPH-5). Nor is a need that names an index that was dropped.
    fn want(&self, need: &Need<'_>, ticket: Ticket, completions: &Arc<dyn Completions>) -> Result<Want>;

    /// Says that the run no longer waits for a ticket. The view may complete it all the same, or never.
    fn forget(&self, ticket: Ticket);
}

/// Elements of one kind.
#[derive(Clone, Debug)]
pub enum Elements<'a> {
    /// Vertices.
    Vertices(Cow<'a, [VertexId]>),
    /// Edges.
    Edges(Cow<'a, [EdgeId]>),
}

/// What one step of an operator reads: the arguments of a method of [`GraphView`](super::GraphView).
#[derive(Clone, Debug)]
pub enum Need<'a> {
    /// Nothing.
    Nothing,
    /// Adjacency lists, from the cursor on.
    Lists {
        /// The vertices.
        of: Cow<'a, [VertexId]>,
        /// The request of the expansion.
        request: ExpandRequest,
        /// How far it has come.
        from: ExpandCursor,
    },
    /// The adjacency of a share, for [`GraphView::for_each_adjacency`](super::GraphView::for_each_adjacency).
    AllLists(&'a AdjacencyRequest),
    /// Numbers of edges.
    Degrees {
        /// The vertices.
        of: Cow<'a, [VertexId]>,
        /// The direction of the edges.
        direction: Direction,
        /// The labels of the edges.
        labels: LabelFilter,
    },
    /// Values of properties.
    Values {
        /// The elements.
        of: Elements<'a>,
        /// The keys; `None`: all.
        keys: Option<Cow<'a, [KeyId]>>,
    },
    /// Whether elements are visible, their labels, and their user ids.
    Heads(Elements<'a>),
    /// Sources and targets of edges.
    Ends(Cow<'a, [EdgeId]>),
    /// Sources and targets of edges, and what [`Need::Heads`] says of these vertices.
    EndHeads(Cow<'a, [EdgeId]>),
    /// Elements by their user ids.
    LookUp {
        /// Their kind.
        kind: ElementKind,
        /// The ids.
        ids: Cow<'a, [UserId]>,
    },
    /// The next elements of a scan.
    Scan {
        /// Their kind.
        kind: ElementKind,
        /// Their labels.
        labels: LabelFilter,
        /// A condition on a value.
        condition: Option<(KeyId, &'a IndexRange)>,
        /// The tablets.
        share: Share,
        /// How far the scan has come.
        from: ScanCursor,
        /// The most elements that the step takes.
        limit: usize,
    },
    /// The number of elements of a share.
    Count {
        /// Their kind.
        kind: ElementKind,
        /// Their labels.
        labels: LabelFilter,
        /// The tablets.
        share: Share,
    },
    /// Elements of an index.
    Index {
        /// The index.
        index: IndexId,
        /// The values of the first keys.
        prefix: Cow<'a, [Value]>,
        /// The values of the next key.
        range: &'a IndexRange,
        /// The tablets.
        share: Share,
    },
    /// Several of these.
    Several(Vec<Need<'a>>),
}

impl<'a> Need<'a> {
    /// All of these.
    pub fn all(needs: impl IntoIterator<Item = Need<'a>>) -> Self {
        let mut needs: Vec<Need<'a>> = needs.into_iter().filter(|need| !need.is_nothing()).collect();
        match needs.len() {
            0 => Need::Nothing,
            1 => needs.remove(0),
            _ => Need::Several(needs),
        }
    }

    /// Returns true if nothing is needed.
    pub fn is_nothing(&self) -> bool {
        match self {
            Need::Nothing => true,
            Need::Several(needs) => needs.iter().all(Need::is_nothing),
            Need::Lists { of, from, .. } => of.len() <= from.row as usize,
            Need::Degrees { of, .. } => of.is_empty(),
            Need::Values { of, keys } => of.is_empty() || keys.as_ref().is_some_and(|keys| keys.is_empty()),
            Need::Heads(of) => of.is_empty(),
            Need::Ends(of) | Need::EndHeads(of) => of.is_empty(),
            Need::LookUp { ids, .. } => ids.is_empty(),
            Need::AllLists(_) | Need::Scan { .. } | Need::Count { .. } | Need::Index { .. } => false,
        }
    }
}

impl Elements<'_> {
    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        match self {
            Elements::Vertices(ids) => ids.is_empty(),
            Elements::Edges(ids) => ids.is_empty(),
        }
    }
}
