//! Query sets: Banyan's complex queries (`cq`), Grasper's queries (`grasper`), groups and sorts (`barriers`).
//!
//! The texts and their translation are in `conformance/queries/sets`. Every answer is compared with the reference's.

use mangrove::Result;
use mangrove_queries::{Query, QuerySet};

use super::Context;
use crate::options::Suite;
use crate::queries::asked::Asked;
use crate::queries::drawn::Drawn;
use crate::queries::network::Network;
use crate::queries::turns::{is_wanted, measure};
use crate::report::Growing;

pub(super) fn run(context: &Context<'_>, suite: Suite, set: &str, report: &mut Growing<'_>) -> Result<()> {
    let set = QuerySet::named(set);
    Network::each(context.options, suite, report, &|network, report| {
        measure_some(context, suite, network, &set, &|_| true, report)
    })
}

/// Measures the queries of a set for which `wanted` is true.
pub(super) fn measure_some(
    context: &Context<'_>,
    suite: Suite,
    network: &Network,
    set: &QuerySet,
    wanted: &dyn Fn(&Query) -> bool,
    report: &mut Growing<'_>,
) -> Result<()> {
    let drawn = Drawn::of(&network.reference);
    // The reference takes seconds for some answers, so it answers only the queries that are measured.
    let is_wanted = |query: &&Query| is_wanted(context.options, &Asked::case(network, query));
    for query in set.queries.iter().filter(|query| wanted(query) && !query.slow).filter(is_wanted) {
        match Asked::of_paper(network, &drawn, set, query) {
            Some(asked) => measure(context.options, suite, &network.replicas, &asked, None, report)?,
            None => {
                let why =
                    format!("{} was left out on the network {}: there are no parameters.", query.name, network.name);
                report.note(suite.name(), why);
            }
        }
    }
    Ok(())
}
