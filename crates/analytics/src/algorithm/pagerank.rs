//! PageRank: how often a walk is at each vertex that follows a random edge, and sometimes begins anew at a random vertex.
//!
//! Power iteration (Page, Brin, Motwani and Winograd, 1999): `next(v) = (1 − damping) / n + damping · (Σ rank(u) / degree(u) over the
//! edges u → v + lost / n)`. Each vertex pulls from its incoming edges, in the order of its row, so the sums do not depend on
//! threads. What a vertex without outgoing edges passes on is *lost*; the definitions differ in it:
//!
//! | definition | lost rank | ends |
//! |---|---|---|
//! | Graphalytics | spread over all vertices | after a number of rounds |
//! | GAP | dropped | when the sum of the changes is below a limit |
//! | TinkerPop | spread over all vertices | after a number of rounds, or when the sum of the changes is below 10⁻⁵ |
//!
//! TinkerPop's begins with the numbers of traversers at the vertices, if it has some: [`run_from`]. Then the ranks keep the sum that
//! they begin with, in the place of 1.
//!
//! *Personalised* ranks are those of a walk that begins anew at one of some sources (Page, Brin, Motwani and Winograd, section 6): `1 / n`
//! above becomes the part of the sources that a vertex is, and lost rank goes to the sources too. With *weights* the walk chooses an edge with
//! a probability in proportion to its weight.
//!
//! What limits the speed are reads of what the neighbors pass on, which lie anywhere. In single precision they take half as much
//! of the caches.
//!
//! Work O(n + m) a round; memory 32 bytes a position, half of it in single precision, and 8 more with sources.

use std::ops::{Add, AddAssign, Mul};

use mangrove_graph::{Error, Result};

use crate::projection::Projection;
use crate::team::Team;

/// What happens to the rank of vertices without outgoing edges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dangling {
    /// It is spread over all vertices, or over the sources if there are some: the ranks have the sum 1.
    Spread,
    /// It is dropped.
    Drop,
}

/// How exact ranks are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Precision {
    /// Fifteen digits.
    #[default]
    Double,
    /// About six digits: what vertices pass on has 32 bits, as in the GAP benchmark. It is faster.
    Single,
}

/// The options.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PageRankOptions {
    /// The probability of following an edge: from 0 to 1.
    pub damping: f64,
    /// The most rounds.
    pub rounds: u32,
    /// Ends when the sum of all changes of a round is at most this.
    pub tolerance: f64,
    /// What happens to the rank of vertices without outgoing edges.
    pub dangling: Dangling,
    /// Whether an edge is followed in proportion to its weight.
    pub weighted: bool,
    /// How exact ranks are.
    pub precision: Precision,
}

impl Default for PageRankOptions {
    fn default() -> Self {
        PageRankOptions {
            damping: 0.85,
            rounds: 20,
            tolerance: 0.0,
            dangling: Dangling::Spread,
            weighted: false,
            precision: Precision::Double,
        }
    }
}

/// The result.
#[derive(Clone, Debug)]
pub struct Ranks {
    /// The rank of every position; 0 for holes.
    pub ranks: Vec<f64>,
    /// The rounds that were made.
    pub rounds: u32,
    /// The sum of the changes of the last round.
    pub change: f64,
}

/// Computes the ranks.
///
/// # Errors
///
/// If the damping is no probability, if weights are wanted and there are none, if one is negative or no number, or if the
/// query of the team has ended.
pub fn run(projection: &Projection, options: &PageRankOptions, team: &Team) -> Result<Ranks> {
    match options.precision {
        Precision::Double => walk::<f64>(projection, options, None, None, team),
        Precision::Single => walk::<f32>(projection, options, None, None, team),
    }
}

/// Computes the ranks of a walk that begins at one of the sources. One that is named twice begins twice as many walks.
///
/// # Errors
///
/// As those of [`run`], and if there is no source.
pub fn personalized(projection: &Projection, options: &PageRankOptions, sources: &[u32], team: &Team) -> Result<Ranks> {
    if sources.is_empty() {
        return Err(Error::invalid("personalised ranks need at least one source"));
    }
    let mut starts = vec![0.0; projection.positions()];
    sources.iter().for_each(|source| starts[*source as usize] += 1.0 / sources.len() as f64);
    match options.precision {
        Precision::Double => walk::<f64>(projection, options, Some(&starts), None, team),
        Precision::Single => walk::<f32>(projection, options, Some(&starts), None, team),
    }
}

/// Computes the ranks from those at the beginning: one for each position, from 0 on; 0 for holes. In double precision.
///
/// # Errors
///
/// As those of [`run`].
pub fn run_from(projection: &Projection, mut first: Vec<f64>, options: &PageRankOptions, team: &Team) -> Result<Ranks> {
    let sum: f64 = first.iter().sum();
    if sum <= 0.0 {
        return Ok(Ranks { ranks: first, rounds: 0, change: 0.0 });
    }
    // As parts of 1, and back again.
    first.iter_mut().for_each(|rank| *rank /= sum);
    let options = PageRankOptions { tolerance: options.tolerance / sum, ..*options };
    let mut found = walk::<f64>(projection, &options, None, Some(&first), team)?;
    found.ranks.iter_mut().for_each(|rank| *rank *= sum);
    found.change *= sum;
    Ok(found)
}

/// A number that a vertex passes on.
trait Passed: Copy + Send + Sync + AddAssign + Add<Output = Self> + Mul<Output = Self> {
    fn of(number: f64) -> Self;
    fn double(self) -> f64;
}

impl Passed for f64 {
    fn of(number: f64) -> Self {
        number
    }
    fn double(self) -> f64 {
        self
    }
}

impl Passed for f32 {
    fn of(number: f64) -> Self {
        number as f32
    }
    fn double(self) -> f64 {
        self.into()
    }
}

/// The sum of what the vertices of a row pass on, in the order of the row. Four sums at a time were slower by a fifth.
#[inline]
fn pull<P: Passed>(row: &[u32], passed: &[P]) -> P {
    let mut sum = P::of(0.0);
    for from in row {
        sum += passed[*from as usize];
    }
    sum
}

/// `starts` has for each position the part of all walks that begin there; `None`: equally many begin at each vertex. `first` has
/// the parts that are there before the first round, if they are others.
fn walk<P: Passed>(
    projection: &Projection,
    options: &PageRankOptions,
    starts: Option<&[f64]>,
    first: Option<&[f64]>,
    team: &Team,
) -> Result<Ranks> {
    let PageRankOptions { damping, rounds, tolerance, dangling, weighted, .. } = *options;
    if !(0.0..=1.0).contains(&damping) {
        return Err(Error::invalid(format!("the damping is {damping}; it is a probability, from 0 to 1")));
    }
    let leaving = Leaving::<P>::of(projection, weighted, team)?;
    let (numbering, parts) = (projection.numbering(), projection.parts());
    let of_each = 1.0 / projection.vertex_count() as f64;
    let start = |at: usize| match starts {
        Some(starts) => starts[at],
        None if numbering.exists(at as u32) => of_each,
        None => 0.0,
    };
    let first = |at: usize| first.map_or_else(|| start(at), |first| first[at]);
    // What each position passes on along an edge of weight 1, or its rank if it has no outgoing edge: then no vertex reads it.
    let mut passed: Vec<P> = (0..projection.positions()).map(|at| P::of(first(at)) * leaving.inverse(at)).collect();
    let mut next = vec![P::of(0.0); projection.positions()];
    let mut lost: f64 = (0..projection.positions()).filter(|at| leaving.is_nothing(*at)).map(first).sum();
    let mut found = Ranks { ranks: Vec::new(), rounds: 0, change: f64::INFINITY };
    team.count_in("rounds", u64::from(rounds));
    while found.rounds < rounds && found.change > tolerance {
        let begun = (1.0 - damping) + if dangling == Dangling::Spread { damping * lost } else { 0.0 };
        let sums = team.map_slices(parts, &mut next, |part, next| {
            let (mut change, mut lost) = (0.0, 0.0);
            let rows = projection.incoming_in(parts[part].clone());
            for ((at, next), row) in parts[part].clone().zip(next).zip(rows) {
                let pulled = if weighted {
                    let weights = projection.incoming_weights(at as u32);
                    row.iter().zip(weights).map(|(from, weight)| passed[*from as usize].double() * weight).sum()
                } else {
                    pull(row, &passed).double()
                };
                let rank = begun * start(at) + damping * pulled;
                *next = P::of(rank) * leaving.inverse(at);
                change += (rank - passed[at].double() * leaving.amount(at)).abs();
                if leaving.is_nothing(at) {
                    lost += rank;
                }
            }
            (change, lost)
        })?;
        // In the order of the parts (ALGO-2).
        found.change = sums.iter().map(|(change, _)| change).sum();
        lost = sums.iter().map(|(_, lost)| lost).sum();
        team.advance(1);
        found.rounds += 1;
        std::mem::swap(&mut passed, &mut next);
    }
    let ranks = passed.iter().enumerate().map(|(at, passed)| passed.double() * leaving.amount(at)).collect();
    Ok(Ranks { ranks, ..found })
}

/// What leaves each position: the number of its outgoing edges, or the sum of their weights.
struct Leaving<P> {
    /// 1 if it is nothing.
    amounts: Vec<P>,
    /// What it is divided by, as a factor.
    inverses: Vec<P>,
    /// A bit for each position of which nothing leaves.
    nothing: Vec<u64>,
}

impl<P: Passed> Leaving<P> {
    fn of(projection: &Projection, weighted: bool, team: &Team) -> Result<Self> {
        let amounts = match weighted {
            true => weight_sums(projection, team)?,
            false => (0..projection.positions()).map(|at| f64::from(projection.out_degree(at as u32))).collect(),
        };
        let mut nothing = vec![0; amounts.len().div_ceil(64)];
        let of_nothing = amounts.iter().enumerate().filter(|(_, amount)| **amount <= 0.0);
        of_nothing.for_each(|(at, _)| nothing[at / 64] |= 1 << (at % 64));
        let some = |amount: &f64| if *amount > 0.0 { *amount } else { 1.0 };
        Ok(Leaving {
            amounts: amounts.iter().map(|amount| P::of(some(amount))).collect(),
            inverses: amounts.iter().map(|amount| P::of(1.0 / some(amount))).collect(),
            nothing,
        })
    }

    #[inline]
    fn amount(&self, at: usize) -> f64 {
        self.amounts[at].double()
    }

    #[inline]
    fn inverse(&self, at: usize) -> P {
        self.inverses[at]
    }

    #[inline]
    fn is_nothing(&self, at: usize) -> bool {
        self.nothing[at / 64] >> (at % 64) & 1 == 1
    }
}

/// The sum of the weights of each row.
fn weight_sums(projection: &Projection, team: &Team) -> Result<Vec<f64>> {
    if !projection.is_weighted() {
        return Err(Error::invalid(
            "the projection has no weights: name the property of the edges that is their weight",
        ));
    }
    let parts = projection.parts();
    let mut sums = vec![0.0; projection.positions()];
    let wrong = team.map_slices(parts, &mut sums, |part, sums| {
        let mut wrong = None;
        for (at, sum) in parts[part].clone().zip(sums) {
            for weight in projection.outgoing_weights(at as u32) {
                if !(weight.is_finite() && *weight >= 0.0) {
                    wrong = wrong.or(Some(*weight));
                }
                *sum += weight;
            }
        }
        wrong
    })?;
    match wrong.into_iter().flatten().next() {
        None => Ok(sums),
        Some(weight) => {
            Err(Error::invalid(format!("an edge has the weight {weight}; ranks need finite weights of at least 0")))
        }
    }
}
