//! Social networks: the same one in a database for each number of executors, and as the reference graph.

use std::collections::BTreeMap;
use std::path::PathBuf;

use mangrove::{Database, DatabaseOptions, Error, Result};
use mangrove_generate::social::SocialSpec;
use mangrove_generate::{
    GeneratedColumn, GeneratedEdges, GeneratedIds, GeneratedValues, GeneratedVertices, GraphSink, MemorySink, social,
};
use mangrove_queries::reference::{self, Graph};
use mangrove_queries::{create_indexes, load_files};

use super::data::{self, DataSet};
use crate::options::{Options, Scale, Suite};
use crate::report::{Growing, Metric, Row};

/// The seed of generated networks.
const SEED: u64 = 20;

/// The persons of the network for tests. Tags, places and organisations are always 27,000 vertices.
const PERSONS_TINY: u64 = 40;

/// The vertices for each person of LDBC's network of scale factor 0.1.
const VERTICES_OF_PERSON: u64 = 327_588 / 1_528;

/// A database and the number of its executors.
pub struct Replica {
    /// The number of executors.
    pub executors: usize,
    /// The database.
    pub database: Database,
}

/// The same graph in a database for each number of executors. Never empty; the numbers ascend.
pub struct Replicas(Vec<Replica>);

impl Replicas {
    /// Fills a database for each number of executors that the options name.
    pub fn fill(options: &Options, fill: &dyn Fn(&Database) -> Result<()>) -> Result<Self> {
        let replica = |&executors: &usize| {
            let options = DatabaseOptions { executor_count: executors, ..DatabaseOptions::default() };
            let database = Database::with_options(&options);
            fill(&database)?;
            Ok(Replica { executors, database })
        };
        options.queries.executors.iter().map(replica).collect::<Result<_>>().map(Replicas)
    }

    /// All of them.
    pub fn all(&self) -> &[Replica] {
        &self.0
    }

    /// The one with the fewest executors.
    pub fn smallest(&self) -> &Replica {
        &self.0[0]
    }
}

/// Where a network comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The generator. Parameters of queries are drawn.
    Generated,
    /// LDBC's files in this folder. Parameters are those of the query sets.
    Ldbc(PathBuf),
}

/// A social network.
pub struct Network {
    /// Its name in reports.
    pub name: String,
    /// Where it comes from.
    pub origin: Origin,
    /// The databases.
    pub replicas: Replicas,
    /// The same network in maps.
    pub reference: Graph,
}

impl Network {
    /// Runs `measure` on the generated network, and then on LDBC's if the data set is there. Otherwise the report says
    /// why it was left out.
    pub fn each(
        options: &Options,
        suite: Suite,
        report: &mut Growing<'_>,
        measure: &dyn Fn(&Network, &mut Growing<'_>) -> Result<()>,
    ) -> Result<()> {
        let network = Network::generated(options)?;
        network.describe(suite, report);
        measure(&network, report)?;
        drop(network);
        match data::find(options, data::LDBC)? {
            Ok(data) => {
                let network = Network::ldbc(options, &data)?;
                network.describe(suite, report);
                measure(&network, report)
            }
            Err(why) => {
                report.note(suite.name(), why);
                Ok(())
            }
        }
    }

    /// The generated network of the scale.
    pub fn generated(options: &Options) -> Result<Self> {
        let (name, persons) = size(options.scale)?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let spec = SocialSpec { persons, seed: SEED, threads };
        let fill = |database: &Database| {
            let mut sink = MemorySink::new(database)?;
            spec.generate(&mut sink)?;
            sink.finish()?;
            create_indexes(database)
        };
        let replicas = Replicas::fill(options, &fill)?;
        let mut sink = ReferenceSink::default();
        spec.generate(&mut sink)?;
        Ok(Network { name: format!("social {name}"), origin: Origin::Generated, replicas, reference: sink.0 })
    }

    /// LDBC's network of scale factor 0.1.
    pub fn ldbc(options: &Options, data: &DataSet) -> Result<Self> {
        let files = data.folder.join("data");
        let replicas = Replicas::fill(options, &|database| load_files(database, &files))?;
        // The database has accepted every row of these files, so the reference does, too.
        let reference = reference::load(&files);
        Ok(Network { name: "LDBC 0.1".into(), origin: Origin::Ldbc(data.folder.clone()), replicas, reference })
    }

    /// Reports the size of the network.
    pub fn describe(&self, suite: Suite, report: &mut Growing<'_>) {
        let (vertices, edges) = self.replicas.smallest().database.element_counts();
        report.push(size_row(suite, &self.name, vertices, edges));
    }
}

/// The size of a graph: its edges, and for programs its vertices.
pub fn size_row(suite: Suite, name: &str, vertices: u64, edges: u64) -> Row {
    let row = Row::single(suite.name(), name, "edges", Metric::Count, edges as f64, "");
    row.with("vertices", vertices as f64, "")
}

/// The name of the generated network of a scale, and its number of persons.
fn size(scale: Scale) -> Result<(String, u64)> {
    let factor = |factor: f64| Ok((factor.to_string(), social::persons_at(factor)?));
    match scale {
        Scale::Tiny => Ok((format!("of {PERSONS_TINY} persons"), PERSONS_TINY)),
        Scale::Small => factor(0.03),
        Scale::Medium => factor(0.1),
        Scale::Full => factor(0.3),
        Scale::Log(log) => {
            let persons = ((1 << log) / VERTICES_OF_PERSON).max(PERSONS_TINY);
            Ok((format!("of {persons} persons"), persons))
        }
    }
}

/// Fills a reference graph. Keeps the first property of an edge, and of a vertex all that have one value.
#[derive(Default)]
struct ReferenceSink(Graph);

impl GraphSink for ReferenceSink {
    fn vertices(&mut self, batch: GeneratedVertices) -> Result<()> {
        let GeneratedIds::Local(ids) = &batch.ids else {
            return Err(Error::bug("the generator of social networks makes ids that are no numbers of their label"));
        };
        let kind = batch.label.split("::").next().unwrap_or_default();
        for (row, id) in ids.iter().enumerate() {
            let text = |column: &GeneratedColumn| Some((column.key.to_string(), text(&column.values, row)?));
            let properties: BTreeMap<String, String> = batch.columns.iter().filter_map(text).collect();
            self.0.add_vertex(kind, *id, properties);
        }
        Ok(())
    }

    fn edges(&mut self, batch: GeneratedEdges) -> Result<()> {
        for (row, (from, to)) in batch.ends.iter().enumerate() {
            let number = |column: &GeneratedColumn| Some((column.key.to_string(), number(&column.values, row)?));
            let property = batch.columns.first().and_then(number);
            self.0.add_edge(&batch.label, *from as usize, *to as usize, property);
        }
        Ok(())
    }
}

/// The value of a row as text; `None` if it has none, or several.
fn text(values: &GeneratedValues, row: usize) -> Option<String> {
    match values {
        GeneratedValues::Bool(values) => Some(values[row].to_string()),
        GeneratedValues::F64(values) => Some(values[row].to_string()),
        GeneratedValues::Text(values) => Some(values[row].to_string()),
        GeneratedValues::OptionalText(values) => values[row].as_ref().map(ToString::to_string),
        numbers => number(numbers, row).map(|number| number.to_string()),
    }
}

fn number(values: &GeneratedValues, row: usize) -> Option<i64> {
    match values {
        GeneratedValues::I32(values) => Some(values[row].into()),
        GeneratedValues::I64(values) => Some(values[row]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_has_the_elements_of_the_databases() {
        let options = Options::for_tests(&[Suite::KHop]);
        let network = Network::generated(&options).unwrap();
        let counts = (network.reference.vertices.len() as u64, network.reference.edges.len() as u64);
        for replica in network.replicas.all() {
            assert_eq!(replica.database.element_counts(), counts, "{} executors", replica.executors);
        }
        assert_eq!(network.reference.of_kind("Person").count() as u64, PERSONS_TINY);
    }
}
