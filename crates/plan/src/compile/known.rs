//! The names Gremlin has, and what to say about the ones that are not supported.

use mangrove_graph::Error;

use super::site::Site;

/// Steps and modulators this compiler understands.
#[rustfmt::skip] // A name a line would be pages of names.
const SUPPORTED: &[&str] = &[
    "E", "V", "addE", "addV", "aggregate", "and", "as", "barrier", "both", "bothE", "bothV", "by", "call", "cap", "choose",
    "coalesce", "constant", "count", "cyclicPath", "dedup", "discard", "drop", "elementMap", "emit", "filter",
    "flatMap", "fold", "from", "group", "groupCount", "has", "hasId", "hasKey", "hasLabel", "hasNot", "hasValue", "id",
    "identity", "in", "inE", "inV", "inject", "is", "key", "label", "limit", "local", "loops", "map", "max", "mean",
    "min", "none", "not", "option", "optional", "or", "order", "otherV", "out", "outE", "outV", "path", "project",
    "properties", "property", "range", "repeat", "select", "sideEffect", "simplePath", "skip", "sum", "tail", "times",
    "to", "toE", "toV", "unfold", "union", "until", "value", "valueMap", "values", "where", "with",
];

/// Steps Gremlin has besides, with what a user can write today; empty if there is nothing.
#[rustfmt::skip] // As above.
const KNOWN: &[(&str, &str)] = &[
    ("all", ""), ("any", ""), ("asBool", ""), ("asDate", ""), ("asNumber", ""), ("asString", ""),
    ("branch", "use choose(…).option(…) or union(…)"), ("coin", ""), ("combine", ""), ("concat", ""),
    ("conjoin", ""), ("connectedComponent", ""), ("dateAdd", ""), ("dateDiff", ""), ("difference", ""),
    ("disjunct", ""), ("element", ""), ("fail", ""), ("format", ""), ("index", ""), ("intersect", ""), ("io", ""),
    ("lTrim", ""), ("length", ""), ("match", "use as(…) with where(…) and select(…)"), ("math", ""), ("merge", ""),
    ("mergeE", "look for the edge with where(…) and use coalesce(…, addE(…))"),
    ("mergeV", "use V().has(…).fold().coalesce(unfold(), addV(…))"), ("pageRank", ""), ("peerPressure", ""),
    ("product", ""), ("profile", ""), ("program", ""), ("propertyMap", "use valueMap() or properties()"),
    ("rTrim", ""), ("read", ""), ("replace", ""), ("reverse", ""), ("sack", ""), ("sample", ""),
    ("shortestPath", "use repeat(…).until(…).path()"), ("split", ""), ("store", "use local(aggregate(…))"),
    ("subgraph", ""), ("substring", ""), ("timeLimit", "use with(\"evaluationTimeout\", …) at the source"),
    ("toLower", ""), ("toUpper", ""), ("tree", "use path()"), ("trim", ""), ("write", ""),
];

/// Every name that is understood.
#[cfg(test)]
pub(super) fn supported() -> impl Iterator<Item = &'static str> {
    SUPPORTED.iter().copied()
}

/// Whether a step of this name is understood.
pub(super) fn is_supported(name: &str) -> bool {
    SUPPORTED.binary_search(&name).is_ok()
}

/// The error for a step that is not understood.
pub(super) fn not_supported(site: &Site<'_>) -> Error {
    match KNOWN.iter().find(|(known, _)| *known == site.name) {
        Some((_, "")) => site.unsupported("the step is not supported yet"),
        Some((_, instead)) => site.unsupported(format_args!("the step is not supported yet; {instead}")),
        None => {
            let names = SUPPORTED.iter().copied().chain(KNOWN.iter().map(|(known, _)| *known));
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
        assert!(KNOWN.iter().all(|(name, _)| !is_supported(name)));
    }
}
