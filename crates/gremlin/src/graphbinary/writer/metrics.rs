//! Writing the answer to `profile()`. `reader/metrics.rs` reads the same form.
//!
//! Its parts follow one another without type codes, except the items of its lists and maps.

use mangrove_graph::{OperatorMetrics, Result, TraversalMetrics};
use smol_str::SmolStr;

use super::{code, count, head, length, string, value};

/// Appends metrics, fully qualified.
pub(super) fn traversal_metrics(out: &mut Vec<u8>, metrics: &TraversalMetrics) -> Result<()> {
    head(out, code::TRAVERSAL_METRICS);
    count(out, metrics.nanos)?;
    operators(out, &metrics.operators)
}

fn operators(out: &mut Vec<u8>, operators: &[OperatorMetrics]) -> Result<()> {
    length(out, operators.len())?;
    operators.iter().try_for_each(|metrics| operator(out, metrics))
}

fn operator(out: &mut Vec<u8>, metrics: &OperatorMetrics) -> Result<()> {
    head(out, code::METRICS);
    string(out, &metrics.id)?;
    string(out, &metrics.name)?;
    count(out, metrics.nanos)?;
    figures(out, &metrics.counts, |out, number| {
        head(out, code::LONG);
        count(out, *number)
    })?;
    figures(out, &metrics.annotations, value)?;
    operators(out, &metrics.nested)
}

/// Appends a map with strings as keys.
fn figures<T>(
    out: &mut Vec<u8>,
    figures: &[(SmolStr, T)],
    write: impl Fn(&mut Vec<u8>, &T) -> Result<()>,
) -> Result<()> {
    length(out, figures.len())?;
    figures.iter().try_for_each(|(name, figure)| {
        head(out, code::STRING);
        string(out, name)?;
        write(out, figure)
    })
}
