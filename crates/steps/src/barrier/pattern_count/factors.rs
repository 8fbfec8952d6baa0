//! The weights of the vertices of some pages: conditions, and the products of factors.
//!
//! If the first factor leaves only vertices with edges, the lists of these edges say which vertices there are: an edge is
//! visible only if its ends are (GRAPH-2). Otherwise the pages are scanned. Properties are tested after the first factor,
//! and each further factor is added up only for vertices whose weight is not 0 yet.

use mangrove_graph::{
    AdjacencyRequest, Direction, FastMap, GraphView, LabelFilter, Result, ScanCursor, Share, VertexId,
};
use mangrove_plan::logical::Condition;
use mangrove_plan::physical::{EdgesOf, Factor, FactorForm, Weighing};

use super::weights::{MANY, PageId, SLOTS, VertexWeights, WeightPage};
use crate::barrier::vertex_bulks;
use crate::context::execution::ExecutionContext;
use crate::limits::meter::Meter;
use crate::row::filter::Filter;
use crate::rows::held::rows_of_objects;
use crate::rows::{ObjectColumn, Rows};
use crate::values::names::LabelSets;

/// The edges of a variable, ready for a run.
pub(super) struct Edges {
    direction: Direction,
    labels: LabelSets,
}

impl Edges {
    pub fn new(edges: &EdgesOf) -> Self {
        Edges { direction: edges.direction, labels: LabelSets::along(edges.labels.clone()) }
    }

    /// A request for the lists of these edges of the vertices of some pages.
    pub fn request(&mut self, vertices: LabelFilter, pages: ScanCursor, view: &dyn GraphView) -> AdjacencyRequest {
        let labels = self.labels.filter(view).clone();
        AdjacencyRequest { vertices, direction: self.direction, labels, share: Share::ALL, pages, edges: false }
    }
}

/// A [`Weighing`], ready for a run.
pub(super) struct Weigher {
    labels: Option<LabelSets>,
    filter: Option<Filter>,
    factors: Vec<(Edges, Option<usize>, FactorForm)>,
}

/// The weights of the vertices of some pages, in the order in which the pages were met.
#[derive(Default)]
pub(super) struct PagesWeighed {
    pub pages: Vec<WeightPage>,
    numbers: FastMap<PageId, usize>,
}

impl PagesWeighed {
    /// The pages with lists of a request whose vertices are weighed already.
    pub fn known(request: &AdjacencyRequest, weights: &VertexWeights, call: &mut Call<'_>) -> Result<Self> {
        let mut weighed = PagesWeighed::default();
        call.context.view.for_each_adjacency(request, &mut |runs| {
            let page = PageId::of(runs.vertex(0));
            if weighed.find(page).is_none()
                && let Some(known) = weights.page(page)
            {
                let number = weighed.number(page);
                weighed.pages[number].weights.copy_from_slice(&known.weights[..]);
            }
            Ok(())
        })?;
        Ok(weighed)
    }

    /// Returns the number of a page, which is added if it is new.
    fn number(&mut self, page: PageId) -> usize {
        let PagesWeighed { pages, numbers } = self;
        *numbers.entry(page).or_insert_with(|| {
            pages.push(WeightPage::new(page));
            pages.len() - 1
        })
    }

    /// Gives those of these vertices that do not meet the conditions the weight 0.
    fn keep(&mut self, filter: &mut Filter, met: Vec<VertexId>, call: &mut Call<'_>) -> Result<()> {
        if met.is_empty() {
            return Ok(());
        }
        call.looked_at(met.len())?;
        let objects = ObjectColumn::Vertices(met);
        let (Some(kept), ObjectColumn::Vertices(met)) = (filter.select(&objects, call.context)?, &objects) else {
            return Ok(());
        };
        let mut kept = kept.into_iter().peekable();
        for (at, vertex) in (0_u32..).zip(met) {
            if kept.next_if_eq(&at).is_none()
                && let Some(number) = self.find(PageId::of(*vertex))
            {
                self.pages[number].weights[vertex.offset()] = 0;
            }
        }
        Ok(())
    }

    /// Multiplies each weight that is not 0 by what `times` says of the number of the page, the slot, and the vertex in its
    /// first generation. Returns the sum of the products.
    pub fn multiply_each(&mut self, mut times: impl FnMut(usize, usize, VertexId) -> Result<u128>) -> Result<u128> {
        let mut total: u128 = 0;
        for (number, page) in self.pages.iter_mut().enumerate() {
            for (slot, weight) in page.weights.iter_mut().enumerate().filter(|(_, weight)| **weight != 0) {
                let product = times(number, slot, page.page.vertex(slot))?.saturating_mul(u128::from(*weight));
                total = total.saturating_add(product);
                *weight = u64::try_from(product).unwrap_or(MANY);
            }
        }
        Ok(total)
    }

    /// Returns the number of a page, if it is there.
    pub fn find(&self, page: PageId) -> Option<usize> {
        self.numbers.get(&page).copied()
    }
}

/// The state of one call.
pub(super) struct Call<'a> {
    pub context: &'a ExecutionContext,
    pub meter: Meter<'a>,
    /// The vertices and edges looked at.
    pub work: usize,
}

impl Call<'_> {
    /// Counts vertices and edges that were looked at. Fails if the query is to end.
    #[inline]
    pub fn looked_at(&mut self, count: usize) -> Result<()> {
        self.work += count;
        self.meter.pass(count * size_of::<VertexId>())
    }
}

impl Weigher {
    pub fn new(weighing: &Weighing) -> Self {
        let Weighing { labels, conditions, factors } = weighing;
        let factor = |factor: &Factor| (Edges::new(&factor.edges), factor.ends, factor.form);
        Weigher {
            labels: labels.clone().map(LabelSets::with_any),
            filter: (!conditions.is_empty()).then(|| Filter::new(conditions as &[Condition])),
            factors: factors.iter().map(factor).collect(),
        }
    }

    /// Makes the conditions ready for a run.
    pub fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        self.filter.iter_mut().try_for_each(|filter| filter.begin(context))
    }

    /// Returns the labels of the vertices.
    pub fn labels(&mut self, view: &dyn GraphView) -> LabelFilter {
        self.labels.as_mut().map_or(LabelFilter::Any, |labels| labels.filter(view).clone())
    }

    /// Weighs the vertices of some pages. `weights` are those of the weighings before.
    pub fn weigh(
        &mut self,
        pages: ScanCursor,
        weights: &[std::sync::Arc<VertexWeights>],
        call: &mut Call<'_>,
    ) -> Result<PagesWeighed> {
        let view = &*call.context.view;
        let labels = self.labels(view);
        let mut weighed = PagesWeighed::default();
        let by_edges = matches!(self.factors.first(), Some((_, _, FactorForm::Sum | FactorForm::Some)));
        if !by_edges {
            self.scan(&labels, pages, &mut weighed, call)?;
        }
        for (number, (edges, ends, form)) in self.factors.iter_mut().enumerate() {
            let request = edges.request(labels.clone(), pages, view);
            let ends = ends.map(|at| &*weights[at]);
            if by_edges && number == 0 {
                let mut met = self.filter.is_some().then(Vec::new);
                sum_new(&request, ends, &mut weighed, met.as_mut(), call)?;
                if let (Some(filter), Some(met)) = (&mut self.filter, met) {
                    weighed.keep(filter, met, call)?;
                }
                if *form != FactorForm::Sum {
                    weighed.pages.iter_mut().for_each(|page| {
                        page.weights.iter_mut().for_each(|weight| *weight = formed(*form, *weight));
                    });
                }
            } else if !weighed.pages.is_empty() {
                multiply(&request, ends, *form, &mut weighed, call)?;
            }
        }
        Ok(weighed)
    }

    /// A row for each vertex of some pages that have been weighed. Its bulk is the vertex's weight.
    pub fn rows(&mut self, pages: ScanCursor, weighed: &PagesWeighed, call: &mut Call<'_>) -> Result<Rows> {
        let (mut objects, mut bulks) = (Vec::new(), Vec::new());
        if !weighed.pages.is_empty() {
            // Weights do not know the generations of their vertices.
            let labels = self.labels(&*call.context.view);
            for vertex in scan(&labels, pages, call)? {
                let number = weighed.find(PageId::of(vertex));
                match number.map_or(0, |number| weighed.pages[number].weights[vertex.offset()]) {
                    0 => {}
                    MANY => return Err(vertex_bulks::too_many()),
                    weight => {
                        objects.push(vertex);
                        bulks.push(weight);
                    }
                }
            }
        }
        let mut rows = rows_of_objects(ObjectColumn::Vertices(objects), call.context);
        rows.bulk = Some(bulks);
        Ok(rows)
    }

    /// Gives all vertices that meet the conditions the weight 1.
    fn scan(
        &mut self,
        labels: &LabelFilter,
        pages: ScanCursor,
        weighed: &mut PagesWeighed,
        call: &mut Call<'_>,
    ) -> Result<()> {
        let mut ids = scan(labels, pages, call)?;
        let kept = match &mut self.filter {
            Some(filter) if !ids.is_empty() => {
                let objects = ObjectColumn::Vertices(ids);
                let kept = filter.select(&objects, call.context)?;
                let ObjectColumn::Vertices(all) = objects else { return Ok(()) };
                ids = all;
                kept
            }
            _ => None,
        };
        let mut set = |vertex: VertexId| {
            let number = weighed.number(PageId::of(vertex));
            weighed.pages[number].weights[vertex.offset()] = 1;
        };
        match kept {
            Some(kept) => kept.iter().for_each(|at| set(ids[*at as usize])),
            None => ids.iter().for_each(|vertex| set(*vertex)),
        }
        Ok(())
    }
}

/// The vertices of some pages with these labels.
fn scan(labels: &LabelFilter, pages: ScanCursor, call: &mut Call<'_>) -> Result<Vec<VertexId>> {
    let (mut cursor, mut ids) = (pages, Vec::new());
    while !call.context.view.scan_vertices(labels, Share::ALL, &mut cursor, 4 * SLOTS, &mut ids)? {}
    call.looked_at(ids.len())?;
    Ok(ids)
}

/// What a form of a factor makes of a sum.
fn formed(form: FactorForm, sum: u64) -> u64 {
    match form {
        FactorForm::Sum => sum,
        FactorForm::AtLeastOne => sum.max(1),
        FactorForm::Some => u64::from(sum != 0),
        FactorForm::None => u64::from(sum == 0),
    }
}

/// Returns the sum of the weights of a list's ends.
#[inline]
fn sum_of(neighbors: &[VertexId], ends: Option<&VertexWeights>) -> u64 {
    match ends {
        None => neighbors.len() as u64,
        Some(weights) => neighbors.iter().fold(0, |sum: u64, end| sum.saturating_add(weights.get(*end))),
    }
}

/// Gives each vertex the sum of the weights of its ends. Adds those of which it is not 0 to `met`.
fn sum_new(
    request: &AdjacencyRequest,
    ends: Option<&VertexWeights>,
    weighed: &mut PagesWeighed,
    mut met: Option<&mut Vec<VertexId>>,
    call: &mut Call<'_>,
) -> Result<()> {
    call.context.view.for_each_adjacency(request, &mut |runs| {
        let number = weighed.number(PageId::of(runs.vertex(0)));
        let page = &mut weighed.pages[number].weights;
        let first = runs.vertex(0).offset();
        if ends.is_none() && met.is_none() {
            runs.add_lengths(&mut page[first..]);
            return call.looked_at(runs.vertex_count());
        }
        for (sum, (vertex, neighbors, _)) in page[first..].iter_mut().zip(runs.iter()) {
            if !neighbors.is_empty() {
                let before = *sum;
                *sum = sum.saturating_add(sum_of(neighbors, ends));
                if let Some(met) = met.as_deref_mut().filter(|_| before == 0 && *sum != 0) {
                    met.push(vertex);
                }
            }
        }
        call.looked_at(runs.vertex_count() + if ends.is_some() { runs.all_neighbors().len() } else { 0 })
    })
}

/// Multiplies each weight by what the form makes of the sum of the weights of the vertex's ends.
fn multiply(
    request: &AdjacencyRequest,
    ends: Option<&VertexWeights>,
    form: FactorForm,
    weighed: &mut PagesWeighed,
    call: &mut Call<'_>,
) -> Result<()> {
    let mut sums: Vec<Option<Box<[u64; SLOTS]>>> = weighed.pages.iter().map(|_| None).collect();
    call.context.view.for_each_adjacency(request, &mut |runs| {
        let Some(number) = weighed.find(PageId::of(runs.vertex(0))) else { return Ok(()) };
        let first = runs.vertex(0).offset();
        let sums = sums[number].get_or_insert_with(|| Box::new([0; SLOTS]));
        if ends.is_none() {
            runs.add_lengths(&mut sums[first..]);
            return call.looked_at(runs.vertex_count());
        }
        let weights = &weighed.pages[number].weights[first..];
        let mut looked = runs.vertex_count();
        for ((sum, weight), (_, neighbors, _)) in sums[first..].iter_mut().zip(weights).zip(runs.iter()) {
            if *weight != 0 && !neighbors.is_empty() {
                *sum = sum.saturating_add(sum_of(neighbors, ends));
                looked += neighbors.len();
            }
        }
        call.looked_at(looked)
    })?;
    for (page, sums) in weighed.pages.iter_mut().zip(sums) {
        match sums {
            Some(mut sums) => {
                sums.iter_mut().for_each(|sum| *sum = formed(form, *sum));
                multiply_all(&mut page.weights, &sums);
            }
            None if formed(form, 0) == 0 => page.weights.fill(0),
            None => {}
        }
    }
    Ok(())
}

/// Multiplies weights (STEPS-13). Mostly all are so small that no product can overflow. Then the loop is one of vector
/// instructions.
fn multiply_all(weights: &mut [u64; SLOTS], by: &[u64; SLOTS]) {
    let bits = weights.iter().zip(by).fold(0, |bits, (weight, by)| bits | weight | by);
    if bits <= u64::from(u32::MAX) {
        weights.iter_mut().zip(by).for_each(|(weight, by)| *weight *= by);
    } else {
        weights.iter_mut().zip(by).for_each(|(weight, by)| *weight = weight.checked_mul(*by).unwrap_or(MANY));
    }
}
