//! The service `mangrove.statistics`: how many elements the graph has, how its degrees are distributed, and where its
//! edges may lead.
//!
//! Every row is a map whose entry `fact` says what the row is about. The rows of one kind have the same entries.

use mangrove_graph::connections::{Connections, Ends, ListFacts};
use mangrove_graph::statistics::{DegreeStatistics, EdgeTable, LabelStatistics, Statistics};
use mangrove_graph::{Catalog, Direction, ElementKind, LabelId, LabelSetId, Result, Value};

use super::registry::{Arguments, row};
use crate::management::count;
use crate::state::Database;

/// The rows that a call asks for.
struct Wanted<'a> {
    catalog: &'a Catalog,
    /// Only vertices with this label, or with exactly these labels.
    label: Option<&'a str>,
    /// The same of edges.
    edge: Option<&'a str>,
    /// Also rows for the buckets of degrees and for values.
    histogram: bool,
    /// Also rows for the labels that edges lead to.
    ends: bool,
    /// Also rows for the walks of two edges.
    walks: bool,
    /// Also rows for the facts on which plans may rely.
    connections: bool,
}

/// Returns the facts about the vertices and edges that are asked for. The first call makes the statistics on the
/// caller's time, and so does a call that asks for a refresh.
pub(super) fn statistics(database: &Database, arguments: &Arguments<'_>) -> Result<Vec<Value>> {
    let wanted = Wanted {
        catalog: database.catalog(),
        label: arguments.text("label")?,
        edge: arguments.text("edge")?,
        histogram: arguments.flag("histogram")?,
        ends: arguments.flag("ends")?,
        walks: arguments.flag("walks")?,
        connections: arguments.flag("connections")?,
    };
    if wanted.walks && wanted.label.is_none() {
        return Err(arguments.missing("label", "walks are shown for the vertices of one label"));
    }
    if arguments.flag("refresh")? || database.statistics().is_none() {
        database.measure_statistics(&mut || arguments.check_limits())?;
    }
    // There are some: newer ones replace them, and nothing takes them away.
    let Some(dated) = database.dated_statistics() else { return Ok(Vec::new()) };
    let statistics = &*dated.statistics;
    let mut rows = vec![row([
        ("fact", "graph".into()),
        ("vertices", count(statistics.vertices())),
        ("edges", count(statistics.edges())),
        ("commits_since", count(dated.commits_since)),
        ("age_ms", count(dated.age_ms)),
        ("pass_micros", count(dated.pass_micros)),
        ("stale", dated.is_stale.into()),
    ])];
    for label in statistics.labels().iter().filter(|label| wanted.has(wanted.label, label.label)) {
        arguments.check_limits()?;
        wanted.add_label(label, &mut rows);
    }
    wanted.add_indexes(database, statistics, &mut rows);
    wanted.add_values(statistics, &mut rows);
    if wanted.connections
        && let Some(connections) = database.begin_read()?.view().connections()
    {
        wanted.add_connections(&connections, &mut rows);
    }
    Ok(rows)
}

impl Wanted<'_> {
    /// Returns true if a label set has a label of this name or is the set that is written like this (`a::b`).
    fn has(&self, name: Option<&str>, set: LabelSetId) -> bool {
        let is_label = |label: &LabelId, name: &str| self.catalog.label_name(*label) == name;
        name.is_none_or(|name| {
            self.catalog.label_set_name(set) == name
                || self.catalog.labels_of(set).iter().any(|label| is_label(label, name))
        })
    }

    fn name(&self, set: LabelSetId) -> Value {
        Value::String(self.catalog.label_set_name(set))
    }

    fn add_label(&self, label: &LabelStatistics, rows: &mut Vec<Value>) {
        let name = self.name(label.label);
        rows.push(row([("fact", "vertices".into()), ("label", name.clone()), ("vertices", count(label.vertices))]));
        let tables = || label.tables().iter().filter(|degrees| self.has(self.edge, degrees.table.label));
        for degrees in tables() {
            rows.push(row([
                ("fact", "degrees".into()),
                ("label", name.clone()),
                ("direction", direction(degrees.table)),
                ("edge", self.name(degrees.table.label)),
                ("vertices", count(degrees.sources)),
                ("edges", count(degrees.edges)),
                ("mean", (degrees.edges as f64 / label.vertices.max(1) as f64).into()),
                ("max", count(degrees.max_degree)),
            ]));
            if self.histogram {
                self.add_buckets(&name, degrees, rows);
            }
            if self.ends {
                self.add_ends(&name, degrees, rows);
            }
        }
        if self.walks {
            let pairs = tables().enumerate().flat_map(|(at, a)| tables().skip(at).map(move |b| (a, b)));
            rows.extend(pairs.filter_map(|(a, b)| {
                let walks = label.moment(a.table, b.table)?;
                Some(row([
                    ("fact", "walks".into()),
                    ("label", name.clone()),
                    ("direction", direction(a.table)),
                    ("edge", self.name(a.table.label)),
                    ("other_direction", direction(b.table)),
                    ("other_edge", self.name(b.table.label)),
                    ("walks", count(walks as u64)),
                ]))
            }));
        }
    }

    fn add_buckets(&self, name: &Value, degrees: &DegreeStatistics, rows: &mut Vec<Value>) {
        for (at, bucket) in degrees.buckets.iter().enumerate().filter(|(_, bucket)| bucket.count > 0) {
            // Bucket `at` begins at 2^(at - 1), and bucket 0 at 0.
            let from = 1_u64.checked_shl(at as u32).unwrap_or(u64::MAX) / 2;
            rows.push(row([
                ("fact", "bucket".into()),
                ("label", name.clone()),
                ("direction", direction(degrees.table)),
                ("edge", self.name(degrees.table.label)),
                ("degree_from", count(from)),
                ("vertices", count(bucket.count)),
                ("edges", count(bucket.sum)),
            ]));
        }
    }

    fn add_ends(&self, name: &Value, degrees: &DegreeStatistics, rows: &mut Vec<Value>) {
        for (end, part) in &degrees.ends {
            rows.push(row([
                ("fact", "ends".into()),
                ("label", name.clone()),
                ("direction", direction(degrees.table)),
                ("edge", self.name(degrees.table.label)),
                ("end", self.name(*end)),
                ("part", (*part).into()),
            ]));
        }
    }

    /// Where edges may lead. Unlike the figures of other rows, which describe one snapshot, this holds for every edge.
    fn add_connections(&self, connections: &Connections, rows: &mut Vec<Value>) {
        let is_wanted =
            |facts: &&ListFacts| self.has(self.label, facts.vertices) && self.has(self.edge, facts.table.label);
        rows.extend(connections.lists().iter().filter(is_wanted).map(|facts| {
            let ends = match &facts.ends {
                Ends::Sets(sets) => Value::list(sets.iter().map(|set| self.name(*set)).collect()),
                Ends::Any => Value::Null,
            };
            row([
                ("fact", "connection".into()),
                ("label", self.name(facts.vertices)),
                ("direction", direction(facts.table)),
                ("edge", self.name(facts.table.label)),
                ("ends", ends),
                ("functional", facts.is_functional.into()),
            ])
        }));
    }

    /// The keys whose values are counted; with `histogram` also the values that are frequent, and the bounds of parts with
    /// equally many of the others.
    fn add_values(&self, statistics: &Statistics, rows: &mut Vec<Value>) {
        for known in statistics.values().iter().filter(|known| self.has(self.label, known.label)) {
            let about = |fact: &str| {
                [
                    ("fact", fact.into()),
                    ("label", self.name(known.label)),
                    ("key", Value::String(self.catalog.key_name(known.key))),
                ]
            };
            let figures = [("values", count(known.values)), ("distinct", count(known.distinct))];
            rows.push(row(about("values").into_iter().chain(figures)));
            if !self.histogram {
                continue;
            }
            rows.extend(known.frequent().iter().map(|(value, times)| {
                row(about("value").into_iter().chain([("value", value.clone()), ("values", count(*times))]))
            }));
            rows.extend(known.parts().map(|(from, values)| {
                row(about("part").into_iter().chain([("value_from", from.clone()), ("values", count(values as u64))]))
            }));
        }
    }

    /// The indexes of the label, and those of all vertices; likewise of edges.
    fn add_indexes(&self, database: &Database, statistics: &Statistics, rows: &mut Vec<Value>) {
        let known = database.indexes();
        for figures in statistics.indexes() {
            // An index that was dropped since then is no fact.
            let Some(index) = known.iter().find(|index| index.id == figures.index) else { continue };
            let definition = &index.definition;
            let wanted = match definition.element {
                ElementKind::Vertex => self.label,
                ElementKind::Edge => self.edge,
            };
            if wanted.is_some_and(|name| definition.label.as_ref().is_some_and(|label| label != name)) {
                continue;
            }
            rows.push(row([
                ("fact", "index".into()),
                ("element", definition.element.name().into()),
                ("label", definition.label.clone().map_or(Value::Null, Value::String)),
                ("key", Value::list(definition.keys.iter().cloned().map(Value::String).collect())),
                ("entries", count(figures.entries)),
                ("distinct", count(figures.distinct)),
            ]));
        }
    }
}

fn direction(table: EdgeTable) -> Value {
    match table.direction {
        Direction::In => "IN".into(),
        Direction::Out | Direction::Both => "OUT".into(),
    }
}
