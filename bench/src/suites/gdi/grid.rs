//! The grid of the GDI paper's section 6.6: what numbers of labels, of property types and of edges change.
//!
//! Each graph of the grid has a search, a new projection, and reads of a vertex through Gremlin: the number of its neighbors and of its
//! properties. Algorithms do not read properties, so only the last depends on them. Labels count more than in larger graphs: vertices of each
//! label are on pages of their own, whose free places have positions, too, and the neighbors of a vertex are stored by the label of the edge.

use mangrove::analytics::Team;
use mangrove::{Parameters, Result, Value};
use mangrove_generate::random::{below, mix};

use super::NAME;
use super::graph::of_counts;
use super::workload::{Subject, Workload};
use crate::harness::{Schedule, Timing, measure_alone, measure_runs, verify};
use crate::plot::{Axes, Line, Panel, svg};
use crate::report::{Growing, Row};
use crate::suites::Context;

const LABELS: [usize; 3] = [2, 20, 80];
const PROPERTY_TYPES: [usize; 3] = [0, 13, 52];
const EDGE_FACTORS: [u64; 3] = [8, 16, 32];

/// The part of the time of a case that a case of the grid has: there are 81.
const SHARE: f64 = 0.25;

/// What is measured in each graph.
const MEASURES: [&str; 3] = ["bfs", "new projection", "read of a vertex"];

/// Measures all graphs of a scale and returns the plot.
pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>, scale: u32) -> Result<String> {
    let mut panels = MEASURES.map(|measure| Panel { title: format!("{measure}, µs"), lines: Vec::new() });
    for (labels, properties) in LABELS.into_iter().flat_map(|labels| PROPERTY_TYPES.map(|types| (labels, types))) {
        let name = format!("{labels} labels, {properties} properties");
        for panel in &mut panels {
            panel.lines.push(Line { name: name.clone(), points: Vec::new() });
        }
        for factor in EDGE_FACTORS {
            let of = |measure: &str| format!("grid: {measure}, scale {scale}, {name}, {factor} edges a vertex");
            if !MEASURES.into_iter().any(|measure| context.options.wants(&of(measure), "")) {
                continue;
            }
            let subject = Subject::new(of_counts(scale, factor, labels, properties)?)?;
            let seconds = context.options.seconds * SHARE;
            let team = Team::alone();
            for (measure, panel) in MEASURES.into_iter().zip(&mut panels) {
                let case = of(measure);
                if !context.options.wants(&case, "") {
                    continue;
                }
                let (variant, timing) = match measure {
                    "bfs" => ("live", measure_runs(seconds, &mut |run| subject.run(Workload::Bfs, run, 1, &team))?),
                    "new projection" => ("undirected", measure_runs(seconds, &mut |_| subject.project(&team))?),
                    _ => ("prepared", reads(context, &subject, &case)?),
                };
                if let Some(line) = panel.lines.last_mut() {
                    line.points.push((factor as f64, timing.median / 1e3));
                }
                report.push(Row::time(NAME, &case, variant, timing));
            }
        }
    }
    Ok(svg("edges a vertex", Axes::Linear, &panels))
}

/// Times reads of a vertex by its id: how many neighbors and how many properties it has.
fn reads(context: &Context<'_>, subject: &Subject, case: &str) -> Result<Timing> {
    let database = &subject.loaded.database;
    let prepared = database.prepare("g.V(x).union(both().count(), values().count())")?;
    let mut parameters = Parameters::new();
    let mut read = move |input: u64| -> Result<u64> {
        parameters.insert("x".into(), Value::I64(input as i64));
        let numbers = database.run(&prepared, &parameters)?.collect()?;
        // Two numbers up to 2^32 in one answer, which is what the next input is drawn from.
        Ok(numbers.iter().fold(0, |digest, number| match number {
            Value::I64(number) => digest << 32 | *number as u64,
            _ => u64::MAX,
        }))
    };
    let facts = &subject.loaded.facts;
    let expected = |vertex: u64| facts.degrees[vertex as usize] << 32 | facts.properties[vertex as usize];
    let count = facts.degrees.len() as u64;
    verify(case, &mut read, count, &mut |vertex| Ok(expected(vertex)))?;
    let schedule = Schedule::of(context.options).alone();
    let slice_seconds = schedule.slice_seconds * SHARE;
    let mut last = 0;
    measure_alone(Schedule { slice_seconds, ..schedule }, &mut |run| {
        last = read(below(mix(last ^ run), count))?;
        Ok(last)
    })
}
