//! LDBC's reads: the short ones (`is`) and the complex ones (`ic`).
//!
//! | queries | networks | expected answers |
//! |---|---|---|
//! | G-Tran's templates IS1–IS4, IC1–IC4 (Table 5) | generated, LDBC's | the reference |
//! | LDBC's IC1–IC14 | LDBC's | published: 16 operations of each |
//! | LDBC's IS1–IS7 | LDBC's | published: 100 operations in order, with updates between them |
//!
//! The answers of short reads are published between updates. So the suite first performs all 100 operations on a
//! database of its own and checks them. Then it takes the answers of the same texts on the network without updates, and
//! all ways must agree on them.

use std::path::Path;

use mangrove::{Database, Error, Result};
use mangrove_queries::published::{self, Operation};
use mangrove_queries::{JsonParameters, Query, QuerySet, Runner, bound, difference, load_files, shift_likes};
use serde_json::Value as Json;

use super::Context;
use super::papers::measure_some;
use crate::harness::wrong;
use crate::options::Suite;
use crate::queries::asked::{Asked, Run};
use crate::queries::network::{Network, Origin};
use crate::queries::turns::measure;
use crate::report::Growing;

pub(super) fn run(context: &Context<'_>, suite: Suite, report: &mut Growing<'_>) -> Result<()> {
    let templates = QuerySet::named("gtran-templates");
    let is_asked = |query: &Query| query.name.starts_with(prefix(suite));
    Network::each(context.options, suite, report, &|network, report| {
        measure_some(context, suite, network, &templates, &is_asked, report)?;
        for asked in of_ldbc(network, suite, report)? {
            measure(context.options, suite, &network.replicas, &asked, None, report)?;
        }
        Ok(())
    })
}

/// Returns LDBC's reads with the published answers, if this is LDBC's network. `suite` says which ones.
pub(super) fn of_ldbc(network: &Network, suite: Suite, report: &mut Growing<'_>) -> Result<Vec<Asked>> {
    let Origin::Ldbc(folder) = &network.origin else { return Ok(Vec::new()) };
    let set = QuerySet::named("ldbc-interactive");
    let is_short = suite == Suite::ShortReads;
    let answered = if is_short { short(network, &set, folder)? } else { complex(folder)? };
    let mut all = Vec::new();
    for query in set.queries.iter().filter(|query| query.name.starts_with(prefix(suite))) {
        let runs: Vec<Run> = answered.iter().filter(|read| read.query == query.name).map(Read::run).collect();
        if runs.is_empty() {
            let why = format!("LDBC's {} was left out: the data set has no answers to it.", query.name);
            report.note(suite.name(), why);
            continue;
        }
        all.push(Asked {
            case: format!("{}, LDBC's {}", network.name, query.name),
            text: query.text.trim().to_owned(),
            runs,
            comparison: published::comparison(query),
            unordered: query.unordered.clone(),
        });
    }
    Ok(all)
}

/// The letters with which the names of a suite's reads begin.
fn prefix(suite: Suite) -> &'static str {
    if suite == Suite::ShortReads { "IS" } else { "IC" }
}

/// A read with its answer.
pub(super) struct Read {
    /// The name of the query.
    pub query: String,
    parameters: JsonParameters,
    answer: Vec<Json>,
}

impl Read {
    /// The read as a run of its query.
    pub fn run(&self) -> Run {
        Run { parameters: bound(&self.parameters), expected: self.answer.clone() }
    }
}

/// The query of an operation.
fn query_of<'a>(set: &'a QuerySet, operation: &Operation) -> Result<&'a Query> {
    let found = set.queries.iter().find(|query| query.name == operation.query);
    found.ok_or_else(|| {
        Error::invalid(format!("the data set has operations {}, which no query set has", operation.query))
    })
}

/// The published complex reads.
pub(super) fn complex(folder: &Path) -> Result<Vec<Read>> {
    let set = QuerySet::named("ldbc-interactive");
    let operations = published::complex_reads(folder).map_err(Error::invalid)?;
    let read = |operation: Operation| {
        let parameters = query_of(&set, &operation)?.with_derived(&operation.parameters);
        Ok(Read { query: operation.query, parameters, answer: operation.answer.unwrap_or_default() })
    };
    operations.into_iter().map(read).collect()
}

/// The published short reads, with their answers on the network as loaded. Reads of elements that only the updates make
/// are left out.
fn short(network: &Network, set: &QuerySet, folder: &Path) -> Result<Vec<Read>> {
    let operations = published::mixed_operations(folder).map_err(Error::invalid)?;
    perform(set, &operations, folder)?;
    let runner = Runner::new(&network.replicas.smallest().database);
    let mut reads = Vec::new();
    for operation in operations.into_iter().filter(|operation| operation.query.starts_with("IS")) {
        let answer = runner.ask(query_of(set, &operation)?, &operation.parameters)?;
        if !answer.is_empty() {
            reads.push(Read { query: operation.query, parameters: operation.parameters, answer });
        }
    }
    Ok(reads)
}

/// Performs the operations in order on a database of its own, and checks the answers of all reads.
fn perform(set: &QuerySet, operations: &[Operation], folder: &Path) -> Result<()> {
    let database = Database::in_memory();
    load_files(&database, &folder.join("data"))?;
    shift_likes(&database);
    let runner = Runner::new(&database);
    for operation in operations {
        let query = query_of(set, operation)?;
        let Some(expected) = &operation.answer else {
            runner.update(query, &operation.parameters)?;
            continue;
        };
        let rows = runner.ask(query, &operation.parameters)?;
        if let Some(problem) = difference(&rows, expected, &published::comparison(query), &query.unordered) {
            return Err(wrong(format!("LDBC's {} of {:?}: {problem}", query.name, operation.parameters)));
        }
    }
    Ok(())
}
