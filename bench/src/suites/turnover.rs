//! Memory after churn of vertices. Each vertex is deleted with its edges, and another one is added with as many, until
//! every slot was used several times. Then the graph is compacted, and its memory is compared with that of the same
//! graph loaded afresh. One thread writes; collectors run beside it.

use mangrove::{Database, Result, VertexId};

use super::Context;
use super::locality::copy;
use crate::options::Suite;
use crate::people::{self, PeopleContent, PeopleNames};
use crate::report::{Growing, Metric, Row};
use crate::social::{self, KNOWS};
use mangrove_generate::random::{RandomStream, mix};

const NAME: &str = Suite::Locality.name();
const CASE: &str = "vertices churned";

/// Edges that are added with a vertex, half of them incoming: as many as are deleted with another.
const DEGREE: u64 = 32;
/// The number of vertices deleted and added, as a multiple of the vertices of the graph.
const TURNS: u64 = 2;
/// The target for memory after churn and compaction, as a multiple of the memory of a fresh graph.
const MEMORY_MAX: f64 = 1.3;

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    if !context.options.wants(CASE, "compacted") {
        return Ok(());
    }
    let count = 1_u64 << context.options.scale.log_vertices().saturating_sub(3).max(4);
    let database = churned(count)?;
    let memory = |database: &Database| database.memory().total_bytes() as f64;
    let afresh = memory(&copy(&database)?);
    let mut push = |variant: &str, bytes: f64, target: Option<f64>| {
        let row = Row::single(NAME, CASE, variant, Metric::Size, bytes, "B").beside(afresh).aiming_at(target);
        report.push(row.with("vertices", count as f64, "count"));
    };
    push("memory, fresh", afresh, None);
    push("memory, churned", memory(&database), None);
    database.compact();
    push("memory, compacted", memory(&database), Some(MEMORY_MAX * afresh));
    for row in database.memory().rows.iter().filter(|row| row.bytes > 0) {
        push(&format!("compacted, {}", row.name), row.bytes as f64, None);
    }
    Ok(())
}

fn churned(count: u64) -> Result<Database> {
    let database = Database::in_memory();
    let names = PeopleNames::of(&database);
    let knows = database.catalog().intern_label_text(KNOWS);
    let mut random = RandomStream::from_seed(mix(count));
    let mut loader = database.bulk_load()?;
    let mut vertices =
        people::load(&mut loader, names.person, &people::batches(&database, count as usize, PeopleContent::Ids))?;
    let any = |vertices: &[VertexId], random: &mut RandomStream| vertices[random.below(vertices.len() as u64) as usize];
    let edges: Vec<_> =
        (0..count * DEGREE / 2).map(|_| (any(&vertices, &mut random), any(&vertices, &mut random))).collect();
    social::load_edges(&mut loader, knows, &edges)?;
    loader.finish()?;
    for number in count..count * (1 + TURNS) {
        let at = random.below(count) as usize;
        let transaction = database.begin()?;
        transaction.delete_vertices(&[vertices[at]])?;
        vertices[at] = transaction.insert_vertex(names.person, Some(people::id(number)))?;
        let ends: Vec<_> = (0..DEGREE)
            .map(|edge| {
                let other = any(&vertices, &mut random);
                if edge % 2 == 0 { (vertices[at], other) } else { (other, vertices[at]) }
            })
            .collect();
        transaction.insert_edges(knows, &ends)?;
        transaction.commit()?;
    }
    Ok(database)
}
