//! Hops: from a vertex by its id to its neighbors, and to their neighbors. The graph has no hubs (about ten neighbors a
//! vertex), because these are light queries; the suite `scan` has a graph with hubs.
//!
//! - *one hop*: a property of every out-neighbor;
//! - *two hops, paths*: the number of paths of two edges from the vertex;
//! - *two hops, distinct*: the number of vertices at the ends of these paths.

use std::sync::Arc;

use hashbrown::HashMap;
use mangrove::{
    Database, Direction, ExpandCursor, ExpandRequest, Expansion, GraphView, LabelFilter, Parameters, Result, Value,
    ValueRows, VertexId,
};

use super::{Context, ReadCase, against_rival};
use crate::csr::Csr;
use crate::harness::Operation;
use crate::options::Suite;
use crate::people::{self, Columns, PeopleNames, digest};
use crate::report::{Growing, Metric, Row};
use crate::served::Served;
use crate::social::{self, Social};
use crate::ways::Question;

/// The fastest embedded rival's one hop and distinct two hops, in milliseconds.
const RIVAL_ONE_HOP_MS: f64 = 0.198;
const RIVAL_TWO_HOPS_MS: f64 = 0.324;

/// The target of the design for a prepared one-hop query: three times the hand-written loop, or this much more.
const ABOVE_BARE_NS_MAX: f64 = 200.0;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Hops {
    One,
    TwoPaths,
    TwoDistinct,
}

impl Hops {
    const ALL: [Hops; 3] = [Hops::One, Hops::TwoPaths, Hops::TwoDistinct];

    fn name(self) -> &'static str {
        match self {
            Hops::One => "one hop",
            Hops::TwoPaths => "two hops, paths",
            Hops::TwoDistinct => "two hops, distinct",
        }
    }

    fn script(self) -> &'static str {
        match self {
            Hops::One => "g.V(x).out('knows').values('born')",
            Hops::TwoPaths => "g.V(x).out('knows').out('knows').count()",
            Hops::TwoDistinct => "g.V(x).out('knows').out('knows').dedup().count()",
        }
    }

    fn rival_ms(self) -> f64 {
        match self {
            Hops::One => RIVAL_ONE_HOP_MS,
            Hops::TwoPaths | Hops::TwoDistinct => RIVAL_TWO_HOPS_MS,
        }
    }
}

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    let scale = context.options.scale;
    let social = Social::load(scale, &social::even_edges(scale))?;
    let served = Served::start(&social.database)?;
    let bare = Arc::new(Bare::new(&social));
    describe(&social, report);
    for hops in Hops::ALL {
        let mut case = ReadCase::new(Suite::Hop, hops.name(), bare.born.len() as u64, context);
        let reference = || -> Box<dyn Operation> {
            let (bare, mut scratch) = (bare.clone(), Vec::new());
            Box::new(move |input: u64| Ok(bare.read(hops, input, &mut scratch)))
        };
        case.measure_bare(report, reference)?;
        let typed = || -> Result<Box<dyn Operation>> { Ok(Box::new(Typed::new(&social, hops))) };
        case.measure(report, "typed", None, &mut *reference(), typed)?;
        let question = Question::new(hops.script(), |input, parameters: &mut Parameters| {
            parameters.insert("x".into(), Value::I64(input as i64));
        });
        let targets = against_rival(hops.rival_ms());
        case.measure_ways(report, &question, targets, &mut *reference(), &social.database, &served)?;
        if let (Hops::One, Some(bare)) = (hops, case.bare) {
            let allowed = (3.0 * bare).max(bare + ABOVE_BARE_NS_MAX);
            let row = Row::single(Suite::Hop.name(), hops.name(), "prepared may take", Metric::Time, allowed, "ns");
            report.push(row);
        }
    }
    Ok(())
}

/// The work of a query: means over all vertices.
fn describe(social: &Social, report: &mut Growing<'_>) {
    let (csr, count) = (&social.csr, social.csr.vertex_count());
    let two: u64 = (0..count).flat_map(|v| csr.neighbors(v)).map(|&n| csr.degree(n as usize)).sum();
    for (variant, total) in [("one hop", csr.edge_count() as u64), ("two hops", two)] {
        let mean = total as f64 / count as f64;
        report.push(Row::single(Suite::Hop.name(), "paths a query", variant, Metric::Size, mean, ""));
    }
}

/// A hash map and a static graph.
struct Bare {
    numbers: HashMap<i64, u32, foldhash::fast::RandomState>,
    born: Vec<i64>,
    csr: Csr,
}

impl Bare {
    fn new(social: &Social) -> Self {
        let count = social.csr.vertex_count();
        let Columns { born, .. } = Columns::new(count);
        let csr = social.csr.clone();
        let numbers = (0..count as u32).map(|n| (i64::from(n), n)).collect();
        Bare { numbers, born, csr }
    }

    fn read(&self, hops: Hops, input: u64, scratch: &mut Vec<u64>) -> u64 {
        let Some(&start) = self.numbers.get(&(input as i64)) else { return 0 };
        let neighbors = self.csr.neighbors(start as usize);
        match hops {
            Hops::One => neighbors.iter().map(|&n| self.born[n as usize] as u64).fold(0, u64::wrapping_add),
            Hops::TwoPaths => neighbors.iter().map(|&n| self.csr.degree(n as usize)).sum(),
            Hops::TwoDistinct => {
                scratch.clear();
                neighbors.iter().for_each(|&n| scratch.extend_from_slice(self.csr.neighbors(n as usize)));
                distinct(scratch)
            }
        }
    }
}

fn distinct<T: Ord + Copy>(items: &mut Vec<T>) -> u64 {
    items.sort_unstable();
    items.dedup();
    items.len() as u64
}

/// Through the typed interface, each in a read-only transaction of its own.
struct Typed {
    database: Database,
    names: PeopleNames,
    hops: Hops,
    request: ExpandRequest,
    found: Vec<Option<VertexId>>,
    near: Expansion,
    far: Expansion,
    degrees: Vec<u64>,
    values: ValueRows,
}

impl Typed {
    fn new(social: &Social, hops: Hops) -> Self {
        let labels = LabelFilter::Sets([social.knows].into());
        Typed {
            database: social.database.clone(),
            names: social.names,
            hops,
            request: ExpandRequest { direction: Direction::Out, labels, edges: false, limit: usize::MAX },
            found: Vec::new(),
            near: Expansion::default(),
            far: Expansion::default(),
            degrees: Vec::new(),
            values: ValueRows::default(),
        }
    }
}

/// The neighbors of all vertices.
fn expand(view: &dyn GraphView, from: &[VertexId], request: &ExpandRequest, out: &mut Expansion) -> Result<()> {
    out.clear();
    let mut cursor = ExpandCursor::default();
    while !view.expand(from, request, &mut cursor, out)? {}
    Ok(())
}

impl Operation for Typed {
    fn perform(&mut self, input: u64) -> Result<u64> {
        let start = people::id(input);
        let transaction = self.database.begin_read()?;
        let view = transaction.view();
        self.found.clear();
        view.find_vertices(&[start], &mut self.found)?;
        let Some(Some(start)) = self.found.pop() else { return Ok(0) };
        expand(view, &[start], &self.request, &mut self.near)?;
        match self.hops {
            Hops::One => {
                self.values.clear();
                view.vertex_values(&self.near.neighbor, self.names.born, &mut self.values)?;
                Ok(self.values.value.iter().map(digest).fold(0, u64::wrapping_add))
            }
            Hops::TwoPaths => {
                self.degrees.clear();
                view.degrees(&self.near.neighbor, Direction::Out, &self.request.labels, &mut self.degrees)?;
                Ok(self.degrees.iter().sum())
            }
            Hops::TwoDistinct => {
                expand(view, &self.near.neighbor, &self.request, &mut self.far)?;
                Ok(distinct(&mut self.far.neighbor))
            }
        }
    }
}
