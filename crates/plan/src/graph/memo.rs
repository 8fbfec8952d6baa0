//! What was estimated of the hops of a query graph, so that it is estimated once.

use mangrove_graph::statistics::EdgeTable;
use mangrove_graph::{Direction, FastMap, LabelSetId};

use super::QueryGraph;

/// The most places of a variable that a new one is compared with, newest first.
const COMPARED_MAX: usize = 8;

/// The number of [`Whereabouts`]. Greedy orders from six variables and a search make at most some ten thousand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Place(u16);

/// The part of a variable's rows that are at vertices of a label set, and came along edges of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Part {
    pub label: LabelSetId,
    /// The table as the vertex sees it; `None` if the rows came along no edge.
    pub arrival: Option<EdgeTable>,
    pub share: f64,
}

/// Where the rows of a variable are.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Whereabouts {
    pub variable: usize,
    pub parts: Vec<Part>,
    /// The vertices that it may be, before rows are looked at.
    pub domain: f64,
}

impl Whereabouts {
    /// How many different vertices so many rows are at.
    pub fn distinct(&self, rows: f64) -> f64 {
        let domain = self.domain.max(1.0);
        (domain * -(-rows / domain).exp_m1()).min(rows)
    }
}

/// The estimate of a hop of one row.
#[derive(Clone, Copy)]
pub(super) struct Hop {
    /// The edges that are followed, before their conditions.
    pub neighbors: f64,
    /// The rows whose edges and ends meet all conditions.
    pub rows: f64,
    /// As `neighbors`, if rows were at each vertex as often as at any other.
    pub plain: f64,
    /// Where the rows are then.
    pub end: Place,
    /// Where they were, counted once for each edge: vertices with more edges have a larger part of the rows.
    pub left: Place,
}

/// Places, and what is known of the atoms there.
pub(super) struct Memo {
    atoms: usize,
    places: Vec<Whereabouts>,
    /// For each place, one for each atom.
    of_places: Vec<AtPlace>,
    /// For each atom, the edges that it follows from all vertices, in its own direction and in the other.
    followed: Vec<[Option<f64>; 2]>,
    /// The direction of each atom.
    directions: Vec<Direction>,
    /// For two places of a variable, the part of pairs of rows that are at the same vertex.
    meeting: FastMap<(Place, Place), f64>,
}

/// What is known of an atom at a place.
#[derive(Clone, Copy, Default)]
struct AtPlace {
    hop: Option<Hop>,
    /// The edges of a row, in the atom's own direction and in the other.
    degrees: [Option<f64>; 2],
}

impl Memo {
    pub fn new(graph: &QueryGraph) -> Self {
        let directions: Vec<Direction> = graph.atoms.iter().map(|atom| atom.direction).collect();
        let atoms = directions.len();
        Memo {
            atoms,
            places: Vec::new(),
            of_places: Vec::new(),
            followed: vec![[None; 2]; atoms],
            directions,
            meeting: FastMap::default(),
        }
    }

    /// The number of a place. Equal ones have one number.
    pub fn place(&mut self, whereabouts: Whereabouts) -> Place {
        let places = self.places.iter().enumerate().rev();
        let of_variable = places.filter(|(_, known)| known.variable == whereabouts.variable).take(COMPARED_MAX);
        let known = of_variable.filter(|(_, known)| **known == whereabouts).map(|(at, _)| at).next();
        let at = known.unwrap_or_else(|| {
            debug_assert!(self.places.len() <= usize::from(u16::MAX), "places have numbers of their own");
            self.places.push(whereabouts);
            self.of_places.resize(self.places.len() * self.atoms, AtPlace::default());
            self.places.len() - 1
        });
        Place(at as u16)
    }

    pub fn at(&self, place: Place) -> &Whereabouts {
        &self.places[usize::from(place.0)]
    }

    fn index(&self, place: Place, atom: usize) -> usize {
        usize::from(place.0) * self.atoms + atom
    }

    fn side(&self, atom: usize, direction: Direction) -> usize {
        usize::from(self.directions[atom] != direction)
    }

    /// The hop along an atom from a place. (A place is at one end of the atom, so its direction is known.)
    pub fn hop(&self, from: Place, atom: usize) -> Option<Hop> {
        self.of_places[self.index(from, atom)].hop
    }

    pub fn keep_hop(&mut self, from: Place, atom: usize, hop: Hop) {
        let at = self.index(from, atom);
        self.of_places[at].hop = Some(hop);
    }

    /// The edges of a row at a place along an atom.
    pub fn degree(&self, at: Place, atom: usize, direction: Direction) -> Option<f64> {
        self.of_places[self.index(at, atom)].degrees[self.side(atom, direction)]
    }

    pub fn keep_degree(&mut self, at: Place, atom: usize, direction: Direction, degree: f64) {
        let (at, side) = (self.index(at, atom), self.side(atom, direction));
        self.of_places[at].degrees[side] = Some(degree);
    }

    /// The edges that an atom follows from all vertices.
    pub fn followed(&self, atom: usize, direction: Direction) -> Option<f64> {
        self.followed[atom][self.side(atom, direction)]
    }

    pub fn keep_followed(&mut self, atom: usize, direction: Direction, edges: f64) {
        let side = self.side(atom, direction);
        self.followed[atom][side] = Some(edges);
    }

    /// The part of pairs of rows at two places of a variable that are at the same vertex.
    pub fn meeting(&self, here: Place, there: Place) -> Option<f64> {
        self.meeting.get(&(here, there)).copied()
    }

    pub fn keep_meeting(&mut self, here: Place, there: Place, part: f64) {
        self.meeting.insert((here, there), part);
    }
}
