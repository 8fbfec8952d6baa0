//! The names of Gremlin's steps, and the error for a step that is not supported. The names here must be the names that
//! the other files of this module compile.

use mangrove_graph::Error;

use super::site::Site;

/// The steps and modulators that this compiler supports, sorted.
#[rustfmt::skip] // One name on each line would take pages.
const SUPPORTED: &[&str] = &[
    "E", "V", "addE", "addV", "aggregate", "all", "and", "any", "as", "asBool", "asDate", "asNumber", "asString",
    "barrier", "both", "bothE", "bothV", "branch", "by", "call", "cap", "choose", "coalesce", "coin", "combine",
    "concat", "conjoin", "connectedComponent", "constant", "count", "cyclicPath", "dateAdd", "dateDiff", "dedup", "difference", "discard",
    "disjunct", "drop", "element", "elementMap", "emit", "fail", "filter", "flatMap", "fold", "format", "from",
    "group", "groupCount", "has", "hasId", "hasKey", "hasLabel", "hasNot", "hasValue", "id", "identity", "in", "inE",
    "inV", "index", "inject", "intersect", "io", "is", "key", "lTrim", "label", "length", "limit", "local", "loops", "map",
    "match", "math", "max", "mean", "merge", "mergeE", "mergeV", "min", "none", "not", "option", "optional", "or",
    "order", "otherV", "out", "outE", "outV", "pageRank", "path", "peerPressure", "product", "project", "properties", "property", "propertyMap", "rTrim",
    "range", "read", "repeat", "replace", "reverse", "sack", "sample", "select", "shortestPath", "sideEffect", "simplePath", "skip", "split",
    "store", "subgraph", "substring", "sum", "tail", "timeLimit", "times", "to", "toE", "toLower", "toUpper", "toV", "tree", "trim",
    "unfold", "union", "until", "value", "valueMap", "values", "where", "with", "write",
];

/// The other steps of Gremlin, each with the advice of the error; empty if there is none.
#[rustfmt::skip] // As above.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("program", "programs of Java cannot run here; call('--list') has the algorithms"),
    ("profile", "write profile() as the last step, or profile('p').cap('p') as the last two"),
];

/// All names that are supported.
#[cfg(test)]
pub(super) fn supported() -> impl Iterator<Item = &'static str> {
    SUPPORTED.iter().copied()
}

/// Returns true if a step of this name is supported.
pub(super) fn is_supported(name: &str) -> bool {
    SUPPORTED.binary_search(&name).is_ok()
}

/// The error for a step that is not supported.
pub(super) fn not_supported(site: &Site<'_>) -> Error {
    match UNSUPPORTED.iter().find(|(known, _)| *known == site.name) {
        Some((_, "")) => site.unsupported("the step is not supported yet"),
        Some((_, instead)) => site.unsupported(format_args!("the step is not supported yet; {instead}")),
        None => {
            let names = SUPPORTED.iter().copied().chain(UNSUPPORTED.iter().map(|(known, _)| *known));
            site.unsupported(format_args!(
                "Gremlin has no step of this name{}",
                mangrove_gremlin::suggest(site.name, names)
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn supported_names_are_sorted_and_apart_from_the_rest() {
        assert!(SUPPORTED.is_sorted(), "is_supported searches by bisection");
        assert!(UNSUPPORTED.iter().all(|(name, _)| !is_supported(name)));
    }
}
