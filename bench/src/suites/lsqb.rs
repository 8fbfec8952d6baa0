//! The nine patterns of LSQB, and subgraphs of friends (Banyan, figure 8).
//!
//! On LSQB's own graph the counts are the published ones, on generated networks those of the reference.

use mangrove::{Database, LoadOptions, Mapping, Parameters, Result};
use mangrove_queries::{Query, QuerySet, papers, published};
use serde_json::json;

use super::Context;
use super::papers::measure_some;
use crate::harness::wrong;
use crate::options::Suite;
use crate::queries::asked::{Asked, Run};
use crate::queries::data;
use crate::queries::network::{Network, Replicas, size_row};
use crate::queries::turns::measure;
use crate::report::Growing;

const SUITE: Suite = Suite::Lsqb;

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    let (patterns, subgraphs) = (QuerySet::named("lsqb"), QuerySet::named("patterns"));
    let network = Network::generated(context.options)?;
    network.describe(SUITE, report);
    // The other forms of a pattern make each match a row, and are for tests.
    measure_some(context, SUITE, &network, &patterns, &|query| !query.name.contains("literal"), report)?;
    let is_subgraph = |query: &Query| !query.name.contains("-hop") && !query.name.contains("between");
    measure_some(context, SUITE, &network, &subgraphs, &is_subgraph, report)?;
    drop(network);
    match data::find(context.options, data::LSQB)? {
        Ok(data) => on_published(context, &data, &patterns, report),
        Err(why) => {
            report.note(SUITE.name(), why);
            Ok(())
        }
    }
}

/// Measures the patterns on LSQB's graph.
fn on_published(context: &Context<'_>, data: &data::DataSet, set: &QuerySet, report: &mut Growing<'_>) -> Result<()> {
    let counts = published::lsqb_counts(&data.folder, "0.1").map_err(mangrove::Error::invalid)?;
    let files = [data.folder.join("data")];
    let replicas = Replicas::fill(context.options, &|database: &Database| {
        let options = LoadOptions { mapping: Mapping::shipped("lsqb"), ..LoadOptions::default() };
        let rejects = database.load(&files, &options, &mut |_| {})?.rejects;
        if rejects == 0 { Ok(()) } else { Err(wrong(format!("{rejects} rows of LSQB's graph do not load"))) }
    })?;
    let (vertices, edges) = replicas.smallest().database.element_counts();
    report.push(size_row(SUITE, "LSQB 0.1", vertices, edges));
    for query in &set.queries {
        let Some(count) = counts.get(&query.name) else { continue };
        let asked = Asked {
            case: format!("LSQB 0.1, {}", query.name),
            text: query.text.trim().to_owned(),
            runs: vec![Run { parameters: Parameters::new(), expected: vec![json!(count)] }],
            comparison: papers::comparison(query),
            unordered: Vec::new(),
        };
        measure(context.options, SUITE, &replicas, &asked, None, report)?;
    }
    Ok(())
}
