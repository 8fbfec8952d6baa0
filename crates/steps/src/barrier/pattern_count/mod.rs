//! The matches of a pattern, counted without a row for each ([`PatternCount`]): all of them, or those of each vertex of the
//! root.
//!
//! The variables of the pattern are weighed, the leaves first. This is a sequence of *phases*:
//!
//! | phase | makes |
//! |---|---|
//! | one for each level of the tree | the weights of the variables that wait for no other ([`weights`]) |
//! | one for the second hop of a walk, if there is one | the lists of the middles ([`walks`]) |
//! | the last | the sum of the weights of the root, or its vertices with their weights as bulks |
//!
//! A phase goes over the pages of the graph. Threads share it by ranges of pages: what they make of a range is of no
//! interest to each other before the phase has ended. If the run is open, the end of the unit row's group hands out these
//! ranges as parts (FLOW-49), and comes again when they are worked off. Otherwise each step takes some pages itself.
//!
//! A step works on pages until it has looked at [`STEP_WORK`] vertices and edges. Weights and lists are charged to the
//! query until it ends. On the way, the limits of the query are looked at every 64 KiB.
//!
//! | file | content |
//! |---|---|
//! | `weights.rs` | the weights of all vertices of a variable |
//! | `factors.rs` | how the vertices of some pages are weighed |
//! | `lists.rs` | all neighbors of a vertex together |
//! | `pairs.rs`, `walks.rs` | comparisons |

mod factors;
mod lists;
mod pairs;
mod walks;
mod weights;

use std::sync::{Arc, Weak};

use mangrove_flow::{
    Cursor, Detail, GroupId, HeldDetail, Operator, Output, QueryControl, Shared, SharedState, Step, TagSet,
};
use mangrove_graph::{ElementKind, Error, GraphView, LabelFilter, Result, ScanCursor, Share, Value, VertexId};
use mangrove_plan::physical::{CountOf, Leg, Pairing, PatternCount, WalkPairing};
use parking_lot::Mutex;

use crate::context::execution::ExecutionContext;
use crate::limits::meter::Meter;
use crate::rows::held::rows_of_one;
use crate::rows::{Remember, Rows};
use crate::values::fold::too_many;
use factors::{Call, Edges, PagesWeighed, Weigher};
use lists::NeighborLists;
use pairs::different_pairs;
use walks::{Comparisons, EndPage, Root, SecondHop, WalkScratch};
use weights::{PAGE_BYTES, VertexWeights, WeightPage};

/// The vertices and edges that a step looks at, about: some tenths of a millisecond.
const STEP_WORK: usize = 1 << 14;

/// The same for the first step of a phase, which the home makes alone while other threads wait.
const FIRST_STEP_WORK: usize = 1 << 10;

/// The pages that are worked on together, if they have few edges.
const PAGES: u32 = 4;

/// The vertices and edges on the last pages from which on the next page is worked on alone.
const PAGE_WORK: usize = 1 << 10;

/// The most pages that a step passes, whatever they hold.
const STEP_PAGES: usize = 1 << 12;

/// The parts into which a phase is cut for several threads. At its end, threads wait for the last one for up to the time of
/// a part.
const PARTS: usize = 64;

/// What the threads of a run make together.
#[derive(Default)]
struct Run {
    progress: Mutex<Progress>,
    /// Arrays that threads give back after a call.
    scratches: Mutex<Vec<WalkScratch>>,
}

/// How far a run is.
#[derive(Default)]
struct Progress {
    phase: usize,
    /// The pages of the phase that no thread has taken; `None` before the first step.
    left: Option<Vec<ScanCursor>>,
    /// What the phase has made. Each page comes with the number of its weighing.
    pages: Vec<(usize, WeightPage)>,
    end_pages: Vec<EndPage>,
    total: u128,
    /// What earlier phases have made.
    made: Made,
    charged: u64,
}

/// What phases have made.
#[derive(Clone, Default)]
struct Made {
    /// By the number of the weighing. A weighing that no phase has made yet has no weights.
    weights: Vec<Arc<VertexWeights>>,
    hop: Option<Arc<SecondHop>>,
}

/// Where the state of a run is.
enum Place {
    Home(Arc<Run>),
    /// On a helper: the operator at the home holds it.
    Joined(Weak<Run>),
}

/// A range of pages that any thread may work on.
#[derive(Debug)]
struct Part(ScanCursor);

/// What is made of it is charged as state of the operator.
impl HeldDetail for Part {
    fn bytes(&self) -> u64 {
        0
    }
}

/// Two lists of the root that are compared, ready for a run.
enum Paired {
    Neighbors { first: (Edges, Option<usize>), second: Option<(Edges, Option<usize>)> },
    Walk(Box<Walk>),
}

/// A [`WalkPairing`], ready for a run.
struct Walk {
    first: Edges,
    middle: usize,
    second: Edges,
    ends: usize,
    closing: Option<Edges>,
    sibling: Option<(Edges, Option<usize>)>,
    comparisons: Comparisons,
}

/// See the header of this file.
pub(crate) struct CountPattern {
    of: CountOf,
    weighers: Vec<Weigher>,
    /// The weighings of each of the first phases, by number.
    levels: Vec<Vec<usize>>,
    root: Weigher,
    pairing: Option<Paired>,
    remember: Remember,
    may_share: bool,
    is_shared: bool,
    run: Place,
    /// Scratch.
    ends: Vec<(VertexId, u64)>,
}

impl CountPattern {
    /// `may_share`: several threads may work at it.
    pub fn new(count: &PatternCount, remember: Remember, may_share: bool) -> Self {
        let leg = |leg: &Leg| (Edges::new(&leg.edges), leg.ends);
        let pairing = count.pairing.as_ref().map(|pairing| match pairing {
            Pairing::Neighbors { first, second } => {
                // One list serves both legs if they are the same.
                let is_same = first.edges == second.edges && first.ends == second.ends;
                Paired::Neighbors { first: leg(first), second: (!is_same).then(|| leg(second)) }
            }
            Pairing::Walk(walk) => {
                let WalkPairing { first, middle, second, ends, closing, differs, sibling } = &**walk;
                let comparisons = Comparisons {
                    closing: closing.as_ref().map(|(_, is_there)| *is_there),
                    differs: *differs,
                    sibling: sibling.is_some(),
                };
                Paired::Walk(Box::new(Walk {
                    first: Edges::new(first),
                    middle: *middle,
                    second: Edges::new(second),
                    ends: *ends,
                    closing: closing.as_ref().map(|(edges, _)| Edges::new(edges)),
                    sibling: sibling.as_ref().map(leg),
                    comparisons,
                }))
            }
        });
        CountPattern {
            of: count.of,
            weighers: count.weighings.iter().map(Weigher::new).collect(),
            levels: count.levels(),
            root: Weigher::new(&count.root),
            pairing,
            remember,
            may_share,
            is_shared: false,
            run: Place::Home(Arc::default()),
            ends: Vec::new(),
        }
    }

    /// The run; `None` on a helper whose run is over.
    fn run(&self) -> Option<Arc<Run>> {
        match &self.run {
            Place::Home(run) => Some(run.clone()),
            Place::Joined(run) => run.upgrade(),
        }
    }

    /// The number of the last phase.
    fn last_phase(&self) -> usize {
        self.levels.len() + usize::from(matches!(self.pairing, Some(Paired::Walk(_))))
    }

    /// The labels of the vertices of a phase.
    fn labels_of(&mut self, phase: usize, view: &dyn GraphView) -> LabelFilter {
        if let Some(level) = self.levels.get(phase) {
            let mut all = Vec::new();
            for &weighing in level {
                match self.weighers[weighing].labels(view) {
                    LabelFilter::Any => return LabelFilter::Any,
                    LabelFilter::Sets(sets) => all.extend_from_slice(&sets),
                }
            }
            return LabelFilter::Sets(all.into());
        }
        match &self.pairing {
            Some(Paired::Walk(walk)) if phase == self.levels.len() => self.weighers[walk.middle].labels(view),
            _ => self.root.labels(view),
        }
    }

    /// Works on a range of pages until it has looked at about `work_max` vertices and edges. Returns what is left of it.
    fn work_on(
        &mut self,
        run: &Run,
        mut range: ScanCursor,
        work_max: usize,
        group: GroupId,
        out: &mut Output<'_, Rows>,
    ) -> Result<Option<ScanCursor>> {
        let context = out.context();
        let (phase, made) = {
            let progress = run.progress.lock();
            (progress.phase, progress.made.clone())
        };
        let mut work = 0;
        // What the first pages hold is not known.
        let mut count = 1;
        for _ in 0..STEP_PAGES {
            if work >= work_max {
                return Ok(Some(range));
            }
            let Some(pages) = next_pages(&*context.view, &mut range, count)? else { return Ok(None) };
            let mut call = Call { context, meter: Meter::new(out.control()), work: 1 };
            let mut made_rows = None;
            if let Some(level) = self.levels.get(phase) {
                let mut kept = Vec::new();
                for &weighing in level {
                    let weighed = self.weighers[weighing].weigh(pages, &made.weights, &mut call)?.pages;
                    kept.extend(weighed.into_iter().filter(|page| !page.is_empty()).map(|page| (weighing, page)));
                }
                let bytes = kept.len() as u64 * PAGE_BYTES;
                out.control().charge(bytes)?;
                let mut progress = run.progress.lock();
                progress.charged += bytes;
                progress.pages.extend(kept);
            } else if phase < self.last_phase() {
                let ends = self.second_hops(pages, &made, &mut call)?;
                let bytes = ends.iter().map(EndPage::bytes).sum();
                out.control().charge(bytes)?;
                let mut progress = run.progress.lock();
                progress.charged += bytes;
                progress.end_pages.extend(ends);
            } else {
                let (total, weighed) = self.weigh_root(run, pages, &made, &mut call, out)?;
                match self.of {
                    CountOf::AllMatches => {
                        let mut progress = run.progress.lock();
                        progress.total = progress.total.saturating_add(total);
                    }
                    CountOf::EachRoot => {
                        let mut rows = self.root.rows(pages, &weighed, &mut call)?;
                        rows.remember(&self.remember);
                        made_rows = Some(rows);
                    }
                }
            }
            count = if call.work < PAGE_WORK { PAGES } else { 1 };
            work += call.work;
            drop(call);
            for chunk in made_rows.into_iter().flat_map(Rows::chunks) {
                out.emit(0, group, chunk)?;
            }
        }
        Ok(Some(range))
    }

    /// The lists of the second hop from the middles of some pages.
    fn second_hops(&mut self, pages: ScanCursor, made: &Made, call: &mut Call<'_>) -> Result<Vec<EndPage>> {
        let Some(Paired::Walk(walk)) = &mut self.pairing else { return Ok(Vec::new()) };
        let view = &*call.context.view;
        let labels = self.weighers[walk.middle].labels(view);
        let (weights, ends) = (&made.weights[walk.middle], &made.weights[walk.ends]);
        let request = walk.second.request(labels, pages, view);
        let weighed = PagesWeighed::known(&request, weights, call)?;
        if weighed.pages.is_empty() {
            return Ok(Vec::new());
        }
        let lists = NeighborLists::read(&request, &weighed, call)?;
        let pages = weighed.pages.into_iter().enumerate();
        Ok(pages.map(|(number, page)| EndPage::new((page.page, page.weights), number, &lists, ends)).collect())
    }

    /// The weights of the roots on some pages, and their sum.
    fn weigh_root(
        &mut self,
        run: &Run,
        pages: ScanCursor,
        made: &Made,
        call: &mut Call<'_>,
        out: &Output<'_, Rows>,
    ) -> Result<(u128, PagesWeighed)> {
        let view = &*call.context.view;
        let mut weighed = self.root.weigh(pages, &made.weights, call)?;
        let labels = self.root.labels(view);
        let total = match &mut self.pairing {
            _ if weighed.pages.is_empty() => 0,
            None => {
                let weights = weighed.pages.iter().flat_map(|page| page.weights.iter());
                weights.fold(0, |sum: u128, weight| sum.saturating_add(u128::from(*weight)))
            }
            Some(Paired::Neighbors { first, second }) => {
                let weights = |of: &Option<usize>| of.map(|at| &*made.weights[at]);
                let request = first.0.request(labels.clone(), pages, view);
                let mut lists = NeighborLists::read(&request, &weighed, call)?;
                let mut others = match second {
                    Some((edges, _)) => Some(NeighborLists::read(&edges.request(labels, pages, view), &weighed, call)?),
                    None => None,
                };
                let first_ends = weights(&first.1);
                let second_ends = second.as_ref().map_or(first_ends, |(_, ends)| weights(ends));
                weighed.multiply_each(|number, slot, _| {
                    let list = lists.sorted(number, slot);
                    let other = others.as_mut().map_or(list, |others| others.sorted(number, slot));
                    call.looked_at(list.len() + other.len())?;
                    Ok(different_pairs((list, first_ends), (other, second_ends), &mut self.ends))
                })?
            }
            Some(Paired::Walk(walk)) => {
                let Some(hop) = &made.hop else { return Err(Error::bug("the second hop is made before the sum")) };
                let walk = &mut **walk;
                let read = |edges: &mut Edges, call: &mut Call<'_>| {
                    NeighborLists::read(&edges.request(labels.clone(), pages, view), &weighed, call)
                };
                let middles = read(&mut walk.first, call)?;
                let closing = walk.closing.as_mut().map(|edges| read(edges, call)).transpose()?;
                let siblings = walk.sibling.as_mut().map(|(edges, _)| read(edges, call)).transpose()?;
                let sibling_ends = walk.sibling.as_ref().and_then(|(_, ends)| ends.map(|at| &*made.weights[at]));
                let scratch = run.scratches.lock().pop();
                let mut scratch = match scratch {
                    Some(scratch) => scratch,
                    None => {
                        let scratch = WalkScratch::new(hop, walk.comparisons);
                        out.control().charge(scratch.bytes())?;
                        run.progress.lock().charged += scratch.bytes();
                        scratch
                    }
                };
                let total = weighed.multiply_each(|number, slot, vertex| {
                    let root = Root {
                        vertex,
                        middles: middles.get(number, slot),
                        closing: closing.as_ref().map_or(&[], |lists| lists.get(number, slot)),
                        siblings: siblings.as_ref().map_or(&[], |lists| lists.get(number, slot)),
                        sibling_ends,
                    };
                    let mut met = 0;
                    let times = scratch.count(hop, root, &mut met);
                    call.looked_at(met + root.middles.len() + root.closing.len() + root.siblings.len())?;
                    Ok(times)
                })?;
                run.scratches.lock().push(scratch);
                total
            }
        };
        Ok((total, weighed))
    }

    /// At the home: goes on to the next phase if the last one is over. Returns false if that was the last.
    fn begin_phase(&self, progress: &mut Progress, control: &QueryControl) -> Result<bool> {
        match &mut progress.left {
            None => progress.left = Some(vec![ScanCursor::default()]),
            Some(left) if !left.is_empty() => {}
            Some(_) if progress.phase == self.last_phase() => return Ok(false),
            Some(left) => {
                left.push(ScanCursor::default());
                if let Some(level) = self.levels.get(progress.phase) {
                    let mut pages = std::mem::take(&mut progress.pages);
                    progress.made.weights.resize_with(self.weighers.len(), Arc::default);
                    for &weighing in level {
                        let of_weighing = pages.extract_if(.., |(number, _)| *number == weighing);
                        let weights = VertexWeights::new(of_weighing.map(|(_, page)| page).collect());
                        progress.made.weights[weighing] = Arc::new(weights);
                    }
                } else if let Some(Paired::Walk(walk)) = &self.pairing {
                    let ends = progress.made.weights[walk.ends].clone();
                    let hop = SecondHop::new(std::mem::take(&mut progress.end_pages), ends);
                    control.charge(hop.bytes())?;
                    progress.charged += hop.bytes();
                    progress.made.hop = Some(Arc::new(hop));
                }
                progress.phase += 1;
            }
        }
        Ok(true)
    }
}

/// Takes the next `count` pages, or fewer, off a range; `None` if there are no more.
fn next_pages(view: &dyn GraphView, range: &mut ScanCursor, count: u32) -> Result<Option<ScanCursor>> {
    let from = *range;
    let end = (from.tablet, from.page + count).min(from.until);
    // A scan that takes no vertex finds out where the pages of the tablet end.
    let mut to = ScanCursor { until: end, ..from };
    view.scan_vertices(&LabelFilter::Sets([].into()), Share::ALL, &mut to, 1, &mut Vec::new())?;
    if (to.tablet, to.page) == (from.tablet, from.page) {
        return Ok(None);
    }
    (range.tablet, range.page) = (to.tablet, to.page);
    Ok(Some(ScanCursor { until: (to.tablet, to.page), ..from }))
}

/// Cuts a range into parts of about as many pages with the labels.
fn cut(view: &dyn GraphView, labels: &LabelFilter, range: ScanCursor) -> Vec<ScanCursor> {
    let mut parts = vec![range];
    while parts.len() < PARTS {
        let count = parts.len();
        for at in 0..count {
            let rest = view.split_scan(ElementKind::Vertex, labels, Share::ALL, &mut parts[at]);
            parts.extend(rest);
        }
        if parts.len() == count {
            break;
        }
    }
    parts
}

impl Operator<Rows> for CountPattern {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        self.weighers.iter_mut().chain([&mut self.root]).try_for_each(|weigher| weigher.begin(context))
    }

    fn recycle(&mut self) -> bool {
        self.is_shared = false;
        self.ends = Vec::new();
        match &self.run {
            Place::Home(run) if run.progress.lock().charged > 0 => return false,
            Place::Home(_) | Place::Joined(_) => self.run = Place::Home(Arc::default()),
        }
        true
    }

    fn share(&mut self) -> Option<Shared> {
        let Place::Home(run) = &self.run else { return None };
        if !self.may_share {
            return None;
        }
        self.is_shared = true;
        // The unit row comes to the home.
        Some(Shared { state: run.clone(), from_port: 1 })
    }

    fn join(&mut self, state: &SharedState) {
        if let Ok(run) = state.clone().downcast::<Run>() {
            self.run = Place::Joined(Arc::downgrade(&run));
        }
    }

    fn cancelled(&mut self, _: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        // What parts hold goes with them, at the end of the group.
        if let (None, Place::Home(run), false) = (tags, &self.run, self.is_shared) {
            clear(run, out);
        }
    }

    /// The only row is the unit row of the query.
    fn receive(&mut self, _: u8, _: GroupId, _: Rows, _: &mut Output<'_, Rows>) -> Result<()> {
        Ok(())
    }

    fn work_part(&mut self, group: GroupId, at: &mut Cursor, out: &mut Output<'_, Rows>) -> Result<Step> {
        let Some(part) = at.take_held::<Part>() else { return Err(Error::bug("a part of a count is a range")) };
        let Some(run) = self.run() else { return Ok(Step::Done) };
        match self.work_on(&run, part.0, STEP_WORK, group, out)? {
            Some(left) => {
                at.detail = Detail::Held(Box::new(Part(left)));
                Ok(Step::More)
            }
            None => Ok(Step::Done),
        }
    }

    /// Each step works on some pages of a phase, or hands them out. The last one sends the count of all matches.
    fn finish_step(
        &mut self,
        _: u8,
        group: GroupId,
        instances: u32,
        _: &mut Cursor,
        out: &mut Output<'_, Rows>,
    ) -> Result<Step> {
        let Some(run) = self.run() else { return Err(Error::bug("only the home ends a group")) };
        if !out.is_cancelled(group) {
            let next = {
                let mut progress = run.progress.lock();
                match self.begin_phase(&mut progress, out.control())? {
                    true => progress.left.as_mut().and_then(Vec::pop).map(|range| (progress.phase, range)),
                    false => None,
                }
            };
            if let Some((phase, range)) = next {
                // The home makes the first step alone: most phases of small patterns end there.
                let is_first = range == ScanCursor::default();
                if self.is_shared && !is_first {
                    let labels = self.labels_of(phase, &*out.context().view);
                    for part in cut(&*out.context().view, &labels, range) {
                        out.hand_out(group, Box::new(Part(part)));
                    }
                } else {
                    let work_max = if self.is_shared { FIRST_STEP_WORK } else { STEP_WORK };
                    if let Some(left) = self.work_on(&run, range, work_max, group, out)? {
                        run.progress.lock().left.get_or_insert_default().push(left);
                    }
                }
                return Ok(Step::More);
            }
            if self.of == CountOf::AllMatches {
                let total = run.progress.lock().total;
                let count = i64::try_from(total).map_err(|_| too_many())?;
                let mut rows = rows_of_one(vec![Value::I64(count)], out.context());
                rows.remember(&self.remember);
                out.emit(0, group, rows)?;
            }
        }
        clear(&run, out);
        out.finish_all(group, instances)?;
        Ok(Step::Done)
    }
}

/// Drops what a run has made, and releases its charge.
fn clear(run: &Run, out: &Output<'_, Rows>) {
    let progress = std::mem::take(&mut *run.progress.lock());
    run.scratches.lock().clear();
    out.control().release(progress.charged);
}
