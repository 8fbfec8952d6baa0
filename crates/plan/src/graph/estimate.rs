//! How many rows an order makes, estimated from the statistics of the graph.
//!
//! An estimate goes along with the moves of an order. For each variable that is bound it keeps in which parts the rows
//! are at vertices of which label sets, and by which edges they came there. The next hop then follows the hop before it
//! as in a Markov process of first order: with `d_a` for the degrees of the vertices of a label set in table `a`, rows
//! that came along `a` go on along `Σ d_a·d_b / Σ d_a` edges of table `b` each. Both sums are in the statistics, so a
//! walk of two hops is exact if one label set is met between them. Taking degrees for independent instead is far off in
//! real graphs: vertices that many edges lead to have many edges themselves.
//!
//! The ends of a hop are spread over the label sets that the edges of this label set lead to, by the sample that the
//! statistics have of them.
//!
//! Two bound variables have as many edges between them as if each vertex drew its edges at random by the degrees of the
//! other ends: `d(x)·d(y) / |edges|`.
//!
//! Orders share most of their hops. So the estimator keeps in a table where rows may be, and numbers the entries
//! ([`Place`]). Two orders whose rows reach a variable along the same edges share an entry. The estimator estimates each
//! hop from an entry once.
//!
//! Of the edges that a hop follows, conditions on edges leave a part, by guesses (`selectivity.rs`). Where these edges lead is
//! taken not to depend on the conditions.
//!
//! What random walks have found replaces the rows that are expected after a set of atoms (`walks.rs`).
//!
//! Without statistics, every label is taken to be as frequent as any other, and to have as many edges
//! ([`UNKNOWN_VERTICES`], [`UNKNOWN_DEGREE`]). So only orders that differ in their form have different costs.

use std::cell::RefCell;

use mangrove_graph::statistics::{DegreeStatistics, EdgeTable, LabelStatistics, Statistics};
use mangrove_graph::{Direction, LabelSetId};

use super::learned::Learned;
pub(super) use super::memo::Place;
use super::memo::{Hop, Memo, Part, Whereabouts};
use super::preconditions::{self, Checked};
use super::selectivity::{labels_of, narrowed, part_of_edges};
use super::{Atom, QueryGraph, Variable};
use crate::facts::{Figures, GraphFacts};
use crate::label_sets::Sets;
use crate::logical::{Configuration, Name, Traversal};
use crate::physical::{EdgesOf, Requirements};

/// The vertices that a label, and a graph without statistics, is taken to have.
const UNKNOWN_VERTICES: f64 = 10_000.0;
/// The edges that a vertex is taken to have along a label and a direction.
const UNKNOWN_DEGREE: f64 = 4.0;

/// What is known about the members of a query graph.
pub(super) struct Estimator<'a> {
    figures: Option<&'a Figures>,
    statistics: Option<&'a Statistics>,
    /// For each variable, the label sets that its conditions take, or all; and the part that other conditions leave.
    ends: Vec<(LabelSets, f64)>,
    /// For each variable without such conditions, the label sets with edges of an atom; or all.
    narrowed: Vec<LabelSets>,
    /// For each atom, the label sets of edges that it follows, or all.
    edges: Vec<LabelSets>,
    /// For each atom, the part of its edges that meet its conditions.
    passing: Vec<f64>,
    /// For each variable, true if ids or an index find its vertices.
    is_found: Vec<bool>,
    /// For each variable, the beginning there.
    begun: Vec<Beginning>,
    memo: RefCell<Memo>,
    /// What [`Self::reach`] has answered: a few for each hop.
    reached: RefCell<Vec<(usize, EdgesOf, Reach)>>,
    /// What [`Self::reach_along`] has answered, for both ends of each atom.
    reached_along: RefCell<Vec<[Option<Reach>; 2]>>,
    /// What walks have found of the rows after some atoms.
    pub learned: Learned,
}

/// The estimates of a query graph, for several choices about one traversal. Most of them are about the same graph.
#[derive(Default)]
pub(crate) struct Estimates<'a> {
    of_graph: Option<(Vec<Variable>, Vec<Atom>, Estimator<'a>)>,
    checked: Option<Checked>,
}

impl<'a> Estimates<'a> {
    /// Whether the first steps of the traversal may be worked off in another way.
    pub(super) fn checked(&mut self, traversal: &Traversal, configuration: &Configuration) -> &Checked {
        self.checked.get_or_insert_with(|| preconditions::check(traversal, configuration))
    }

    /// What rows of the traversal keep, if [`Self::checked`] has told.
    pub fn needs(&self) -> Option<&Requirements> {
        self.checked.as_ref().and_then(|checked| checked.as_ref().ok())
    }

    /// Those of a graph. They are kept if the last graph had the same variables and atoms.
    pub(super) fn of(&mut self, graph: &QueryGraph, facts: &'a GraphFacts) -> &Estimator<'a> {
        let is_same = |(variables, atoms, _): &(Vec<Variable>, Vec<Atom>, Estimator<'a>)| {
            let is_same = |a: &Variable, b: &Variable| a.ids == b.ids && a.conditions == b.conditions;
            let (known, others) = (variables.iter(), graph.variables.iter());
            *atoms == graph.atoms && known.len() == others.len() && known.zip(others).all(|(a, b)| is_same(a, b))
        };
        let known = self.of_graph.take().filter(is_same);
        let (.., estimator) = self.of_graph.insert(
            known.unwrap_or_else(|| (graph.variables.clone(), graph.atoms.clone(), Estimator::new(graph, facts))),
        );
        estimator
    }
}

/// Label sets, ascending; `None`: all.
struct LabelSets(Option<Sets>);

impl LabelSets {
    /// The label sets that one name of each list takes; all if there are no lists.
    fn of<'n>(lists: impl IntoIterator<Item = &'n [Name]>, figures: Option<&Figures>) -> Self {
        LabelSets(figures.and_then(|figures| figures.sets.taken_by_each(lists)))
    }

    fn takes(&self, set: LabelSetId) -> bool {
        self.0.as_ref().is_none_or(|sets| sets.binary_search(&set).is_ok())
    }
}

impl<'a> Estimator<'a> {
    pub fn new(graph: &QueryGraph, facts: &'a GraphFacts) -> Self {
        let figures = facts.figures.as_ref();
        let statistics = figures.map(|figures| &*figures.statistics);
        let mut estimator = Estimator {
            figures,
            statistics,
            ends: Vec::new(),
            narrowed: Vec::new(),
            edges: Vec::new(),
            passing: Vec::new(),
            is_found: Vec::new(),
            begun: Vec::new(),
            memo: RefCell::new(Memo::new(graph)),
            reached: RefCell::default(),
            reached_along: RefCell::new(vec![[None; 2]; graph.atoms.len()]),
            learned: Learned::default(),
        };
        for (at, variable) in graph.variables.iter().enumerate() {
            let entry = graph.entry.as_ref().filter(|_| at == 0);
            let known = entry.into_iter().flat_map(|entry| &entry.known);
            let sets = LabelSets::of(known.chain(&variable.conditions).filter_map(labels_of), figures);
            let taken = estimator.label_sets().filter(|label| sets.takes(label.label));
            let vertices = statistics.map_or(UNKNOWN_VERTICES, |_| taken.map(|label| label.vertices as f64).sum());
            let labels = estimator.label_sets().filter(|label| sets.takes(label.label));
            let (part, is_found) = narrowed(variable, vertices, labels, statistics, facts);
            // As many rows enter as vertices meet conditions that are not known.
            let entering = entry.map_or(1.0, |entry| entry.rows / vertices.max(1.0));
            let (part, is_found) = (part * entering, is_found || entry.is_some());
            estimator.ends.push((sets, part));
            estimator.is_found.push(is_found);
        }
        for atom in &graph.atoms {
            let names = Some(&atom.labels[..]).filter(|labels| !labels.is_empty()).into_iter();
            let names = names.chain(atom.conditions.iter().filter_map(labels_of));
            estimator.edges.push(LabelSets::of(names, figures));
        }
        for (at, atom) in graph.atoms.iter().enumerate() {
            let passing = match atom.conditions.is_empty() {
                true => 1.0,
                false => part_of_edges(&atom.conditions, estimator.followed(at, atom.direction), facts),
            };
            estimator.passing.push(passing);
        }
        for variable in 0..graph.variables.len() {
            estimator.narrowed.push(LabelSets(None));
            let beginning = estimator.beginning(variable, graph, facts.connections.is_some());
            estimator.begun.push(beginning);
        }
        estimator
    }

    fn label_sets(&self) -> impl Iterator<Item = &'a LabelStatistics> {
        self.statistics.into_iter().flat_map(|statistics| statistics.labels())
    }

    /// True if there are statistics.
    pub fn is_informed(&self) -> bool {
        self.statistics.is_some()
    }

    /// The beginning at a variable.
    pub fn begin(&self, variable: usize) -> Beginning {
        self.begun[variable]
    }

    /// `has_facts`: a scan of all vertices before a hop finds those alone whose label sets have such edges.
    fn beginning(&mut self, variable: usize, graph: &QueryGraph, has_facts: bool) -> Beginning {
        let enters = graph.entry.is_some() && variable == 0;
        if has_facts && !enters && self.ends[variable].0.0.is_none() {
            self.narrowed[variable] = self.with_edges(variable, graph);
        }
        let ((sets, part), narrowed) = (&self.ends[variable], &self.narrowed[variable]);
        let mut parts = Vec::new();
        let mut scanned = UNKNOWN_VERTICES;
        if self.statistics.is_some() {
            let taken = self.label_sets().filter(|label| sets.takes(label.label) && narrowed.takes(label.label));
            parts.extend(taken.map(|label| Part { label: label.label, arrival: None, share: label.vertices as f64 }));
            scanned = normalize(&mut parts);
        }
        let place = self.memo.borrow_mut().place(Whereabouts { variable, parts, domain: scanned });
        Beginning { scanned, rows: scanned * part, place }
    }

    /// The label sets that have edges of an atom at a variable: of all such atoms, the one that leaves the fewest vertices.
    fn with_edges(&self, variable: usize, graph: &QueryGraph) -> LabelSets {
        let at_end = graph.atoms.iter().enumerate().filter(|(_, atom)| atom.from == variable || atom.to == variable);
        let with_edges = at_end.map(|(atom, ends)| {
            let direction = ends.direction_from(variable);
            let has_edges = |label: &&LabelStatistics| {
                let mut tables = label.tables().iter().map(|degrees| degrees.table);
                tables.any(|table| follows(direction, table) && self.edges[atom].takes(table.label))
            };
            let with_edges: Vec<&LabelStatistics> = self.label_sets().filter(has_edges).collect();
            let vertices: u64 = with_edges.iter().map(|label| label.vertices).sum();
            (vertices, with_edges.into_iter().map(|label| label.label).collect())
        });
        LabelSets(with_edges.min_by_key(|(vertices, _)| *vertices).map(|(_, sets)| sets))
    }

    /// The label sets of the vertices that a scan for a variable looks at; `None`: all.
    pub fn label_sets_of(&self, variable: usize) -> Option<&[LabelSetId]> {
        let narrowed = &self.narrowed[variable];
        narrowed.0.as_deref().or(self.ends[variable].0.0.as_deref())
    }

    /// Returns true if ids or an index find the vertices of a variable without a scan.
    pub fn is_found(&self, variable: usize) -> bool {
        self.is_found[variable]
    }

    /// The part of an atom's edges that meet its conditions.
    pub fn passing(&self, atom: usize) -> f64 {
        self.passing[atom]
    }

    /// The estimate of a hop of one row from a place, along an atom that leads to `to`.
    pub fn hop(&self, atom: usize, direction: Direction, to: usize, from: Place) -> Hop {
        if let Some(known) = self.memo.borrow().hop(from, atom) {
            return known;
        }
        let hop = self.estimated(atom, direction, to, from);
        self.memo.borrow_mut().keep_hop(from, atom, hop);
        hop
    }

    fn estimated(&self, atom: usize, direction: Direction, to: usize, from: Place) -> Hop {
        let (sets, part) = &self.ends[to];
        let mut memo = self.memo.borrow_mut();
        let Some(statistics) = self.statistics else {
            let end = Whereabouts { variable: to, parts: Vec::new(), domain: UNKNOWN_VERTICES * part };
            let (neighbors, rows) = (UNKNOWN_DEGREE, UNKNOWN_DEGREE * part * self.passing[atom]);
            return Hop { neighbors, rows, plain: UNKNOWN_DEGREE, end: memo.place(end), left: from };
        };
        let mut followed: Vec<Followed<'_>> = Vec::new();
        let mut left: Vec<Part> = Vec::new();
        let mut plain = 0.0;
        let Whereabouts { variable, parts, domain } = memo.at(from);
        for part in parts {
            let Some(label) = statistics.label(part.label) else { continue };
            let known = followed.iter().position(|other| other.label.label == part.label);
            let counts = known.unwrap_or_else(|| {
                followed.push(Followed { label, counts: vec![0.0; label.tables().len()] });
                followed.len() - 1
            });
            let counts = &mut followed[counts].counts;
            let mut of_part = 0.0;
            self.each_table(part, atom, direction, |table, each, mean| {
                let count = part.share * each;
                plain += part.share * mean;
                if count > 0.0 {
                    counts[table] += count;
                    of_part += count;
                    if part.arrival.is_none() {
                        let arrival = Some(label.tables()[table].table);
                        left.push(Part { label: part.label, arrival, share: count });
                    }
                }
            });
            if part.arrival.is_some() && of_part > 0.0 {
                left.push(Part { share: of_part, ..*part });
            }
        }
        normalize(&mut left);
        let left = Whereabouts { variable: *variable, parts: left, domain: *domain };
        // The edges are spread over the label sets that they lead to, or if that is not known, over those that edges of
        // their kind lead to.
        let mut along: Vec<(EdgeTable, &DegreeStatistics, f64)> = Vec::new();
        for Followed { label, counts } in &followed {
            let tables = label.tables().iter().zip(counts).filter(|(_, count)| **count > 0.0);
            along.extend(tables.map(|(degrees, count)| (reversed(degrees.table), degrees, *count)));
        }
        along.sort_unstable_by_key(|(arrival, ..)| arrival.order());
        let mut parts: Vec<Part> = Vec::new();
        let (mut neighbors, mut rows) = (0.0, 0.0);
        let mut reached: Vec<(&LabelStatistics, u64)> = Vec::new();
        for along in along.chunk_by(|(a, ..), (b, ..)| a == b) {
            // Only these parts came along edges of this table.
            let begin = parts.len();
            for (arrival, degrees, count) in along {
                let (arrival, count) = (*arrival, *count);
                neighbors += count;
                let mut lead = |label: &'a LabelStatistics, share: f64| {
                    if !sets.takes(label.label) {
                        return;
                    }
                    rows += share * part;
                    if let Some(other) = parts[begin..].iter_mut().find(|other| other.label == label.label) {
                        other.share += share;
                        return;
                    }
                    parts.push(Part { label: label.label, arrival: Some(arrival), share });
                    let sources = label.degrees(arrival).map_or(0, |degrees| degrees.sources);
                    match reached.iter_mut().find(|(other, _)| other.label == label.label) {
                        Some((_, ends)) => *ends += sources,
                        None => reached.push((label, sources)),
                    }
                };
                for (label, part) in &degrees.ends {
                    if let Some(label) = statistics.label(*label) {
                        lead(label, count * part);
                    }
                }
                if degrees.ends.is_empty() {
                    let degrees = statistics.labels().iter().filter_map(|label| Some((label, label.degrees(arrival)?)));
                    let all: f64 = degrees.clone().map(|(_, degrees)| degrees.edges as f64).sum();
                    degrees.for_each(|(label, degrees)| lead(label, count * degrees.edges as f64 / all.max(1.0)));
                }
            }
        }
        normalize(&mut parts);
        let rows = rows * self.passing[atom];
        // A vertex may have edges of several of the tables.
        let domain = part * reached.iter().map(|(label, ends)| label.vertices.min(*ends) as f64).sum::<f64>();
        let (left, end) = (memo.place(left), memo.place(Whereabouts { variable: to, parts, domain }));
        Hop { neighbors, rows, plain, end, left }
    }

    /// The vertices that so many rows at a place are at.
    pub fn distinct(&self, place: Place, rows: f64) -> f64 {
        self.memo.borrow().at(place).distinct(rows)
    }

    /// The vertices that a variable may be, as far as a walk to a place knows; at least 1.
    pub fn domain(&self, place: Place) -> f64 {
        self.memo.borrow().at(place).domain.max(1.0)
    }

    /// The part of all pairs of rows at two places of a variable that are at the same vertex. Both walks come there more
    /// often where the vertex has more of the edges that they come along.
    pub fn meeting(&self, variable: usize, here: Place, there: Place) -> f64 {
        if self.statistics.is_none() {
            return 1.0 / UNKNOWN_VERTICES;
        }
        if let Some(known) = self.memo.borrow().meeting(here, there) {
            return known;
        }
        let part = self.estimated_meeting(variable, here, there);
        self.memo.borrow_mut().keep_meeting(here, there, part);
        part
    }

    fn estimated_meeting(&self, variable: usize, here: Place, there: Place) -> f64 {
        let memo = self.memo.borrow();
        let (here, there) = (&memo.at(here).parts, &memo.at(there).parts);
        let mut sum = 0.0;
        for part in here {
            let Some(label) = self.statistics.and_then(|statistics| statistics.label(part.label)) else { continue };
            for other in there.iter().filter(|other| other.label == part.label) {
                let table = |part: &Part| part.arrival.and_then(|arrival| label.degrees(arrival));
                let by_edges = table(part).zip(table(other)).and_then(|(a, b)| {
                    Some(label.moment(a.table, b.table)? / (a.edges.max(1) as f64 * b.edges.max(1) as f64))
                });
                sum += part.share * other.share * by_edges.unwrap_or(1.0 / label.vertices.max(1) as f64);
            }
        }
        // The conditions of the variable have left the same vertices in both walks.
        (sum / self.ends[variable].1).min(1.0)
    }

    /// The rows that an edge between two bound variables makes of one; `direction` is that from `x` to `y`.
    pub fn close(&self, atom: usize, direction: Direction, x: Place, y: Place) -> f64 {
        if self.statistics.is_none() {
            return UNKNOWN_DEGREE / UNKNOWN_VERTICES * self.passing[atom];
        }
        let there = self.degree(atom, direction, x);
        let back = self.degree(atom, direction.reverse(), y);
        self.passing[atom] * (there * back / self.followed(atom, direction).max(1.0)).min(there.min(back))
    }

    /// The edges that an atom follows from all vertices.
    fn followed(&self, atom: usize, direction: Direction) -> f64 {
        if self.statistics.is_none() {
            return UNKNOWN_VERTICES * UNKNOWN_DEGREE;
        }
        if let Some(known) = self.memo.borrow().followed(atom, direction) {
            return known;
        }
        let tables = self.label_sets().flat_map(|label| label.tables());
        let is_followed = |table: EdgeTable| follows(direction, table) && self.edges[atom].takes(table.label);
        let edges = tables.filter(|d| is_followed(d.table)).map(|degrees| degrees.edges as f64).sum();
        self.memo.borrow_mut().keep_followed(atom, direction, edges);
        edges
    }

    /// How many vertices of a variable's labels have labels with such edges, and how many edges they have.
    pub fn reach(&self, variable: usize, edges: &EdgesOf) -> Reach {
        let is_same = |(of, others, _): &&(usize, EdgesOf, Reach)| *of == variable && others == edges;
        if let Some((.., known)) = self.reached.borrow().iter().find(is_same) {
            return *known;
        }
        let reach = self.counted_reach(variable, edges);
        self.reached.borrow_mut().push((variable, edges.clone(), reach));
        reach
    }

    /// As [`Self::reach`], for the edges of an atom from one of its ends.
    pub fn reach_along(&self, atoms: &[Atom], atom: usize, from: usize) -> Reach {
        let side = usize::from(from == atoms[atom].to);
        let known = self.reached_along.borrow()[atom][side];
        known.unwrap_or_else(|| {
            let reach = self.reach_of(from, atoms[atom].direction_from(from), &self.edges[atom]);
            self.reached_along.borrow_mut()[atom][side] = Some(reach);
            reach
        })
    }

    fn counted_reach(&self, variable: usize, edges: &EdgesOf) -> Reach {
        let names = Some(&edges.labels[..]).filter(|labels| !labels.is_empty());
        self.reach_of(variable, edges.direction, &LabelSets::of(names, self.figures))
    }

    fn reach_of(&self, variable: usize, direction: Direction, followed: &LabelSets) -> Reach {
        let mut reach = Reach { vertices: 0.0, edges: 0.0, looks: 0.0 };
        for label in self.label_sets().filter(|label| self.ends[variable].0.takes(label.label)) {
            let tables = label.tables().iter();
            let of_request = tables.filter(|d| follows(direction, d.table) && followed.takes(d.table.label));
            let (mut tables, mut edges) = (0, 0);
            of_request.for_each(|degrees| {
                tables += 1;
                edges += degrees.edges;
            });
            if edges > 0 {
                reach.vertices += label.vertices as f64;
                reach.edges += edges as f64;
                reach.looks += (tables * label.vertices) as f64;
            }
        }
        reach
    }

    /// The ends of two hops from a variable over another one, between any two atoms of a graph.
    pub fn walks(&self, graph: &QueryGraph, from: usize, [first, second]: [usize; 2]) -> f64 {
        let Beginning { rows, place, .. } = self.begin(from);
        let middle = graph.atoms[first].other(from);
        let hop = self.hop(first, graph.atoms[first].direction_from(from), middle, place);
        let ends = &graph.atoms[second];
        rows * hop.rows * self.hop(second, ends.direction_from(middle), ends.other(middle), hop.end).neighbors
    }

    /// The edges along an atom of a row.
    fn degree(&self, atom: usize, direction: Direction, at: Place) -> f64 {
        if let Some(known) = self.memo.borrow().degree(at, atom, direction) {
            return known;
        }
        let mut sum = 0.0;
        for part in &self.memo.borrow().at(at).parts {
            self.each_table(part, atom, direction, |_, each, _| sum += part.share * each);
        }
        self.memo.borrow_mut().keep_degree(at, atom, direction, sum);
        sum
    }

    /// Calls `each` with the positions of the tables of a label set that a hop follows, how many edges it follows there
    /// from a row of a part, and from any vertex of the label set.
    fn each_table(&self, part: &Part, atom: usize, direction: Direction, mut each: impl FnMut(usize, f64, f64)) {
        let Some(label) = self.statistics.and_then(|statistics| statistics.label(part.label)) else { return };
        let came = part.arrival.and_then(|arrival| label.position(arrival));
        for (table, degrees) in label.tables().iter().enumerate() {
            if !follows(direction, degrees.table) || !self.edges[atom].takes(degrees.table.label) {
                continue;
            }
            let mean = degrees.edges as f64 / label.vertices.max(1) as f64;
            let moment = came.and_then(|came| Some((label.moment_at(came, table)?, label.tables()[came].edges)));
            let count = moment.map_or(mean, |(moment, edges)| moment / edges.max(1) as f64);
            each(table, count, mean);
        }
    }
}

/// The edges that a hop follows from the vertices of one label set.
struct Followed<'a> {
    label: &'a LabelStatistics,
    /// How many there are of each table of the label set.
    counts: Vec<f64>,
}

/// A table as the vertices at the other ends of its edges see it.
fn reversed(table: EdgeTable) -> EdgeTable {
    EdgeTable { direction: table.direction.reverse(), label: table.label }
}

/// Vertices and their edges.
#[derive(Clone, Copy)]
pub(super) struct Reach {
    pub vertices: f64,
    pub edges: f64,
    /// As `vertices`, but a vertex counts once for each kind and direction of edges that its label has.
    pub looks: f64,
}

/// The estimate of the rows that begin at a variable.
#[derive(Clone, Copy)]
pub(super) struct Beginning {
    /// The vertices of the variable's labels, which a scan looks at.
    pub scanned: f64,
    /// Those that meet all conditions.
    pub rows: f64,
    pub place: Place,
}

/// Makes the shares of parts add up to 1; returns their sum.
fn normalize(parts: &mut [Part]) -> f64 {
    // The sum of nothing would be -0.
    let sum = parts.iter().fold(0.0, |sum, part| sum + part.share);
    parts.iter_mut().for_each(|part| part.share /= sum.max(f64::MIN_POSITIVE));
    sum
}

fn follows(direction: Direction, table: EdgeTable) -> bool {
    direction == Direction::Both || direction == table.direction
}
