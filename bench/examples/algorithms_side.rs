//! Graph algorithms of Mangrove, as one side of the comparison with other libraries (`bench/peers/algorithms.py`).
//!
//! Usage: `algorithms_side all|THREADS`, the number of threads of an algorithm.
//!
//! A case is a transaction, the look for what has changed since the last projection, and the algorithm. The answer is an array by position; its
//! form for comparison, by the number of the vertex, is made outside of the time.

#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "the benchmarks are where time is taken")]

mod lines;

use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use mangrove::analytics::algorithm::{betweenness, bfs, k_core, lcc, louvain, pagerank, scc, triangles, wcc};
use mangrove::analytics::cache::ProjectionCache;
use mangrove::analytics::{Orientation, Projection, ProjectionOptions, Team};
use mangrove::{Database, Error, LabelFilter, LoadOptions, Result, UserId};
use mangrove_flow::schedule::{ExecutorOptions, Executors, Tenant};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use lines::{Request, invalid, resident_bytes, serve};

#[global_allocator]
static ALLOCATOR: mangrove_allocator::Allocator = mangrove_allocator::Allocator;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match side(&arguments).and_then(serve) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", error.message());
            ExitCode::FAILURE
        }
    }
}

fn side(arguments: &[String]) -> Result<Side> {
    let usage = || Error::invalid("usage: algorithms_side all|THREADS");
    let threads = match arguments {
        [word] if word == "all" => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        [number] => number.parse().ok().filter(|threads| (1..=1_024).contains(threads)).ok_or_else(usage)?,
        _ => return Err(usage()),
    };
    Side::new(threads)
}

/// The part of `workloads.json` that this side reads.
#[derive(Deserialize)]
struct Workloads {
    cases: HashMap<String, Vec<(String, Operation)>>,
}

/// The parameters of an algorithm; each has some of them.
#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Operation {
    damping: f64,
    tolerance: f64,
    rounds: u32,
    source: u32,
    sources: Vec<u32>,
}

/// A number for each position, or one in all.
enum Answer {
    One(u64),
    Whole(Vec<u32>),
    Numbers(Vec<f64>),
}

struct Side {
    team: Team,
    threads: usize,
    /// The threads of the team beside this one.
    _executors: Option<Executors>,
    database: Database,
    cache: ProjectionCache,
    /// By the number of the vertex.
    positions: Vec<u32>,
    cases: HashMap<String, Vec<(String, Operation)>>,
}

impl Side {
    fn new(threads: usize) -> Result<Self> {
        let (team, executors) = match threads {
            1 => (Team::alone(), None),
            _ => {
                let executors = Executors::start(ExecutorOptions { count: threads - 1, ..ExecutorOptions::default() })?;
                (Team::with_executors(&executors, &Tenant::default(), threads - 1), Some(executors))
            }
        };
        Ok(Side {
            team,
            threads,
            _executors: executors,
            database: Database::in_memory(),
            cache: ProjectionCache::default(),
            positions: Vec::new(),
            cases: HashMap::new(),
        })
    }

    fn load(&mut self, folder: &Path) -> Result<Json> {
        let start = Instant::now();
        let files = ["vertices.csv", "arcs.csv", "pairs.csv"].map(|name| folder.join(name));
        self.database.load(&files, &LoadOptions::default(), &mut |_| {})?;
        let seconds = start.elapsed().as_secs_f64();
        let begin = Instant::now();
        let pairs = self.projection("pair", Orientation::Undirected)?;
        self.projection("arc", Orientation::Directed)?;
        let projected = begin.elapsed().as_secs_f64();
        let transaction = self.database.begin_read()?;
        let ids: Vec<UserId> = (0..pairs.vertex_count()).map(|number| UserId::int(number as i64)).collect();
        let mut found = Vec::new();
        transaction.view().find_vertices(&ids, &mut found)?;
        let position = |vertex: Option<mangrove::VertexId>| vertex.map(|vertex| pairs.numbering().position(vertex));
        self.positions = found.into_iter().filter_map(position).collect();
        if self.positions.len() != ids.len() {
            return Err(Error::invalid("vertices.csv does not have the numbers from 0 on"));
        }
        let path = folder.join("workloads.json");
        let text = std::fs::read_to_string(&path).map_err(|error| Error::from(error).context(path.display()))?;
        let workloads: Workloads = serde_json::from_str(&text).map_err(|error| invalid("workloads.json", error))?;
        self.cases = workloads.cases;
        Ok(json!({
            "seconds": seconds,
            "version": env!("CARGO_PKG_VERSION"),
            "settings": {
                "asked through": "Rust, on projections of the last commit",
                "threads": self.threads,
                "both projections": format!("{:.1} ms", projected * 1e3),
                "profile": if cfg!(debug_assertions) { "DEBUG: times mean nothing" } else { "release" },
            },
        }))
    }

    /// The projection of the edges with a label.
    fn projection(&self, label: &str, orientation: Orientation) -> Result<Arc<Projection>> {
        let edges = LabelFilter::Sets([self.database.catalog().intern_label_text(label)].into());
        let options = ProjectionOptions { edges, orientation, ..ProjectionOptions::default() };
        self.cache.projection(self.database.begin_read()?.view(), &options, &self.team)
    }

    fn run(&self, algorithm: &str, operation: &Operation) -> Result<Answer> {
        let team = &self.team;
        if algorithm == "scc" {
            return Ok(Answer::Whole(scc::run(&*self.projection("arc", Orientation::Directed)?, team)?));
        }
        let projection = &*self.projection("pair", Orientation::Undirected)?;
        Ok(match algorithm {
            "pagerank" => {
                let &Operation { damping, tolerance, rounds, .. } = operation;
                let options =
                    pagerank::PageRankOptions { damping, tolerance, rounds, ..pagerank::PageRankOptions::default() };
                Answer::Numbers(pagerank::run(projection, &options, team)?.ranks)
            }
            "wcc" => Answer::Whole(wcc::run(projection, team)?),
            "bfs" => {
                let source = self.position(operation.source)?;
                Answer::Whole(bfs::run(projection, source, bfs::Follow::Outgoing, team)?)
            }
            "lcc" => Answer::Numbers(lcc::run(projection, team)?),
            "triangles" => Answer::One(triangles::total(projection, team)?),
            "k-core" => Answer::Whole(k_core::run(projection, team)?),
            "louvain" => Answer::Whole(louvain::run(projection, &Default::default(), team)?.of_positions),
            "betweenness" => {
                let sources =
                    operation.sources.iter().map(|source| self.position(*source)).collect::<Result<Vec<_>>>()?;
                Answer::Numbers(betweenness::of_sources(projection, &sources, team)?)
            }
            _ => return Err(Error::invalid(format!("NotThere: it has no {algorithm}"))),
        })
    }

    fn position(&self, number: u32) -> Result<u32> {
        let position = self.positions.get(number as usize).copied();
        position.ok_or_else(|| Error::invalid(format!("there is no vertex {number}")))
    }

    /// The numbers of an answer by the numbers of vertices; -1 for vertices that a search does not reach.
    fn listed(&self, answer: &Answer) -> Json {
        let of = |value: &dyn Fn(usize) -> Json| self.positions.iter().map(|at| value(*at as usize)).collect();
        match answer {
            Answer::One(number) => json!([number]),
            Answer::Whole(numbers) => of(&|at| match numbers[at] {
                bfs::UNREACHED => json!(-1),
                number => json!(number),
            }),
            Answer::Numbers(numbers) => of(&|at| json!(numbers[at])),
        }
    }

    fn time(&self, case: &str, passes: usize) -> Result<Vec<u64>> {
        let operations = self.cases.get(case).ok_or_else(|| Error::invalid(format!("there is no case `{case}`")))?;
        let mut nanos = Vec::with_capacity(operations.len() * passes);
        for (algorithm, operation) in std::iter::repeat_n(operations, passes).flatten() {
            let start = Instant::now();
            let answer = self.run(algorithm, operation)?;
            nanos.push(start.elapsed().as_nanos() as u64);
            drop(answer);
        }
        Ok(nanos)
    }
}

impl lines::Side for Side {
    fn handle(&mut self, request: Request) -> Result<Json> {
        match request {
            Request::Load { folder } => self.load(&folder),
            Request::Answer { operations } => {
                let answer = |(algorithm, given): &(String, Json)| {
                    let operation = Operation::deserialize(given).map_err(|error| invalid("an operation", error))?;
                    Ok(self.listed(&self.run(algorithm, &operation)?))
                };
                Ok(json!({"answers": operations.iter().map(answer).collect::<Result<Vec<_>>>()?}))
            }
            Request::Time { case, passes } => Ok(json!({"nanos": self.time(&case, passes)?})),
            Request::Rephrase => Ok(json!({"rephrased": false})),
            Request::Memory => Ok(json!({"bytes": resident_bytes()?})),
            Request::End => Ok(json!({})),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lines::Side as _;

    #[test]
    fn answers_are_in_the_order_of_the_numbers_of_vertices() {
        let folder = std::env::temp_dir().join(format!("mangrove-algorithms-side-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
        write("vertices.csv", "id:ID,:LABEL\n2,vertex\n0,vertex\n1,vertex\n3,vertex\n4,vertex\n");
        // A triangle and a pair.
        write("arcs.csv", ":START_ID,:END_ID,:TYPE\n0,1,arc\n1,0,arc\n1,2,arc\n2,0,arc\n3,4,arc\n");
        write("pairs.csv", ":START_ID,:END_ID,:TYPE\n0,1,pair\n1,2,pair\n0,2,pair\n3,4,pair\n");
        write("workloads.json", r#"{"cases": {"bfs": [["bfs", {"source": 3}]]}}"#);
        for threads in ["all", "1"] {
            let mut side = side(&[threads.to_owned()]).unwrap();
            side.handle(Request::Load { folder: folder.clone() }).unwrap();
            let mut ask = |algorithm: &str, given: Json| {
                let operations = vec![(algorithm.to_owned(), given)];
                side.handle(Request::Answer { operations }).map(|answer| answer["answers"][0].clone())
            };
            assert_eq!(ask("bfs", json!({"source": 0})).unwrap(), json!([0, 1, 1, -1, -1]));
            assert_eq!(ask("lcc", json!({})).unwrap(), json!([1.0, 1.0, 1.0, 0.0, 0.0]));
            assert_eq!(ask("triangles", json!({})).unwrap(), json!([1]));
            assert_eq!(ask("k-core", json!({})).unwrap(), json!([2, 2, 2, 1, 1]));
            let components = ask("scc", json!({})).unwrap();
            assert!(components[0] == components[1] && components[0] == components[2] && components[3] != components[4]);
            let ranks = ask("pagerank", json!({"damping": 0.85, "tolerance": 1e-9, "rounds": 50})).unwrap();
            assert!((ranks[3].as_f64().unwrap() - 0.2).abs() < 1e-9);
            assert!(ask("hits", json!({})).unwrap_err().message().contains("NotThere"));
            assert!(ask("bfs", json!({"source": 9})).is_err());
            let timed = side.handle(Request::Time { case: "bfs".to_owned(), passes: 3 }).unwrap();
            assert_eq!(timed["nanos"].as_array().unwrap().len(), 3);
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
