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
//! Work O(n + m) a round; memory 48 bytes a position, 28 in single precision, and 8 more with sources or with weights.

use std::ops::{Add, AddAssign, Mul, Sub};

use mangrove_graph::{Error, Result};

use crate::arrays;
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
trait Passed:
    Copy + Default + PartialEq + Send + Sync + AddAssign + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self>
{
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

/// The sum of what the vertices of a row pass on along edges with weights, in the order of the row.
fn pull_weighted<P: Passed>(row: &[u32], weights: &[f64], passed: &[P]) -> P {
    P::of(row.iter().zip(weights).map(|(from, weight)| passed[*from as usize].double() * weight).sum())
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
    let (numbering, parts) = (projection.numbering(), projection.parts());
    let of_each = 1.0 / projection.vertex_count() as f64;
    let start = |at: usize| match starts {
        Some(starts) => starts[at],
        None if numbering.exists(at as u32) => of_each,
        None => 0.0,
    };
    let weights = weighted.then(|| weight_sums(projection, team)).transpose()?;
    let state = |at: usize| {
        let leaving = match &weights {
            Some(weights) => weights[at],
            None => f64::from(projection.out_degree(at as u32)),
        };
        State {
            rank: P::of(first.map_or_else(|| start(at), |first| first[at])),
            start: P::of(start(at)),
            share: P::of(if leaving > 0.0 { 1.0 / leaving } else { 0.0 }),
        }
    };
    let positions = projection.positions();
    let mut states: Vec<State<P>> = arrays::of_places(team, positions, state)?;
    // What each position passes on along an edge of weight 1.
    let mut passed: Vec<P> = arrays::of_places(team, positions, |at| states[at].rank * states[at].share)?;
    let mut next = arrays::filled(team, positions, P::default())?;
    let is_spread = dangling == Dangling::Spread;
    let mut lost: f64 = if is_spread { states.iter().map(State::lost).sum() } else { 0.0 };
    let mut found = Ranks { ranks: Vec::new(), rounds: 0, change: f64::INFINITY };
    team.count_in("rounds", u64::from(rounds));
    while found.rounds < rounds && found.change > tolerance {
        let begun = P::of((1.0 - damping) + if is_spread { damping * lost } else { 0.0 });
        let followed = P::of(damping);
        let sums = team.map_slices(parts, (&mut *states, &mut *next), |part, (states, next)| {
            let (mut change, mut lost) = (0.0, 0.0);
            let mut places = states.iter_mut().zip(next);
            let mut pulled = |pulled: P| {
                let Some((state, next)) = places.next() else { return };
                let rank = begun * state.start + followed * pulled;
                change += (rank - state.rank).double().abs();
                state.rank = rank;
                *next = rank * state.share;
                if is_spread {
                    lost += state.lost();
                }
            };
            let (range, passed) = (parts[part].clone(), &*passed);
            match weighted {
                true => projection.each_incoming(range, |at, row| {
                    pulled(pull_weighted(row, projection.incoming_weights(at as u32), passed));
                }),
                false => projection.each_incoming_sum(range, passed, pulled),
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
    drop((passed, next));
    found.ranks = arrays::of_places(team, positions, |at| states[at].rank.double())?;
    Ok(found)
}

/// What a round reads and writes of a position itself.
#[derive(Clone, Copy)]
struct State<P> {
    rank: P,
    /// The part of all walks that begin here. 0 for holes.
    start: P,
    /// The part of the rank that an edge of weight 1 passes on. 0 if no edge leaves.
    share: P,
}

impl<P: Passed> State<P> {
    /// The rank, if no edge leaves.
    #[inline]
    fn lost(&self) -> f64 {
        if self.share == P::default() { self.rank.double() } else { 0.0 }
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
    let wrong = team.map_slices(parts, &mut *sums, |part, sums| {
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
