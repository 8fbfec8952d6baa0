//! Differences between the engine and the reference that are intended, with their reasons.
//!
//! A difference in the corpus names its reason. A difference in a random case has a reason if the reason's test covers
//! it. Each test is as narrow as possible: it names the steps and the answers of both sides, never a whole family. If
//! [`crate::rephrase`] has a rephrased script for a reason, both sides must also agree on that.

use crate::Answer;

/// An intended difference.
pub struct Known {
    /// The name in the corpus.
    pub name: &'static str,
    /// The reason of the difference.
    pub why: &'static str,
    /// Returns true if a difference has this reason. Arguments: the traversal, the reference's answer, the engine's.
    pub covers: fn(&str, &Answer, &Answer) -> bool,
}

/// The test of differences that occur only in the corpus.
const CORPUS_ONLY: fn(&str, &Answer, &Answer) -> bool = |_, _, _| false;

const fn in_the_corpus(name: &'static str, why: &'static str) -> Known {
    Known { name, why, covers: CORPUS_ONLY }
}

/// All intended differences.
pub const KNOWN: &[Known] = &[
    // Numbers.
    in_the_corpus("nan-counts", "a sum or mean with a NaN is NaN; the reference counts NaN as 0 of the other type"),
    in_the_corpus(
        "negative-zero",
        "0.0 and -0.0 are one number, as IEEE 754 has it; the reference compares their bits",
    ),
    Known {
        name: "fold-of-merged",
        why: "fold(seed, operator) folds a value once for each traverser; the reference folds it once for a merged \
              traverser, although fold() counts its bulk",
        covers: |script, theirs, ours| {
            let folds = script.find(".fold(0").is_some_and(|at| {
                let operator = script[at..].split_once(", Operator.").map_or("", |(_, operator)| operator);
                let counts = ["sum", "minus", "mult", "div", "addAll"].iter().any(|name| operator.starts_with(name));
                counts && merges(&script[..at])
            });
            folds && theirs.is_ok() && ours.is_ok()
        },
    },
    in_the_corpus("decimal-scale", "1.0m and 1.00m are one number in dedup() and groups, as they are for eq()"),
    Known {
        name: "sum-long",
        why: "Operator.sumLong adds whole numbers of any width; the reference fails for all types but long",
        covers: |script, theirs, ours| {
            script.contains("Operator.sumLong") && fails_with(theirs, "ClassCastException") && ours.is_ok()
        },
    },
    Known {
        name: "count-among-types",
        why: "count() is compared with the numbers of a list whatever their types; the reference's optimization of counts \
              casts them to the type of one and fails",
        covers: |script, theirs, ours| {
            let listed = [".count().is(P.within(", ".count().is(P.without("].iter().any(|test| script.contains(test));
            listed && fails_with(theirs, "ClassCastException") && ours.is_ok()
        },
    },
    in_the_corpus("shortest-double", "Java writes the smallest double with one digit more than necessary"),
    in_the_corpus(
        "float-to-bigint",
        "a float beyond the range of long becomes a big integer; in the reference it becomes the largest long",
    ),
    in_the_corpus("no-silent-infinity", "a literal too large for its type is refused; the reference reads infinity"),
    // Dates.
    in_the_corpus(
        "same-instant",
        "dates of one instant are equal whatever their offsets; the reference distinguishes them",
    ),
    in_the_corpus(
        "int-days",
        "dateAdd() takes 64 bits; the reference truncates the number to 32 bits and gets another date",
    ),
    // Comparisons.
    in_the_corpus(
        "orders-anything",
        "min(), max() and order(local) order values of all types; the reference fails at a cast",
    ),
    in_the_corpus("no-text-no-match", "a predicate of texts is false for other values; the reference fails at a cast"),
    in_the_corpus("element-order", "lt(), gt() and the like compare elements by internal id, not by user id"),
    // Texts.
    in_the_corpus("whole-characters", "a character outside the basic plane is one character; Java counts two halves"),
    Known {
        name: "substring-of-empty",
        why: "substring() of an empty text is empty; at a negative index the reference divides by the text's length",
        covers: |script, theirs, ours| {
            script.contains("substring(") && fails_with(theirs, "ArithmeticException: / by zero") && ours.is_ok()
        },
    },
    // Nulls and missing values.
    in_the_corpus("null-unfolds", "unfold() of null is null; the reference fails"),
    in_the_corpus("null-among-names", "a null among labels is ignored; the reference fails"),
    in_the_corpus(
        "group-count-aside",
        "groupCount('x') leaves out an object for which its by() is unproductive, like groupCount(); the reference \
         fails",
    ),
    in_the_corpus(
        "group-of-nothing",
        "a group whose traversal has no result is left out; the reference shows the content of its barrier",
    ),
    in_the_corpus("by-identity", "by(identity()) reduces to one value; the reference removes identity() first"),
    in_the_corpus("unknown-label", "in where(), a label that no object bears drops the row; the reference fails"),
    in_the_corpus("unknown-variable", "in math(), a variable without a value drops the row; the reference fails"),
    in_the_corpus(
        "cap-of-nothing",
        "cap() of a name that no step fills is refused, also beside a name that a step fills",
    ),
    in_the_corpus(
        "key-order",
        "addV() sets properties in the order of the script; the reference uses hash order if a traversal computes a \
         key",
    ),
    in_the_corpus(
        "property-order",
        "properties are in the order of vertex and key; TinkerGraph's are in the order of their ids",
    ),
    in_the_corpus(
        "all-of-several",
        "group().by(key) keeps all values of a key; the reference fails if there are several",
    ),
    in_the_corpus(
        "any-or-collection",
        "within('a') takes the value of a, or its members; the reference fails at a cast",
    ),
    // Side effects.
    in_the_corpus(
        "effects-so-far",
        "a side effect that is read midway has the values of the traversers before; the reference inserts a barrier",
    ),
    in_the_corpus(
        "emit-of-leaving",
        "emit() is also evaluated for objects that leave the loop, which only its side effects show",
    ),
    // Collections.
    in_the_corpus("range-past-a-map", "skip(local, n) past the end of a map is an empty map; the reference fails"),
    in_the_corpus("negative-tail", "tail() of a negative number is refused; the reference returns nothing"),
    in_the_corpus(
        "merged-on-the-way",
        "traversers and sacks merge at a barrier() of the script and in loops; the reference adds barriers of its own",
    ),
    Known {
        name: "own-sack",
        why: "every traverser folds into its own sack; in the reference all traversers fold into one list",
        covers: |script, theirs, ours| {
            let folds = script.contains("withSack([])") && script.contains("sack(Operator.addAll)");
            // For two equal ids, the reference also makes two traversers.
            let alike = |theirs: &[String], ours: &[String]| {
                theirs.windows(2).all(|pair| pair[0] == pair[1])
                    && (theirs.len() == ours.len() || repeats_a_value(script, ".hasId("))
            };
            folds && matches!((theirs, ours), (Ok(theirs), Ok(ours)) if alike(theirs, ours))
        },
    },
    // Steps.
    in_the_corpus("nothing-connected", "and() between steps with nothing on one side passes; the reference drops all"),
    in_the_corpus("optional-once", "optional(count()) counts once; the reference also returns the 0 of its own test"),
    in_the_corpus("loops-outside", "loops() outside a loop is refused, also after a loop; the reference returns 0"),
    in_the_corpus("services", "call() also lists the database's own services"),
    in_the_corpus("with-nowhere", "with() after a step without options is refused; the reference ignores it"),
    in_the_corpus("value-map-false", "valueMap(false) is without tokens, as documented; the reference adds them"),
    Known {
        name: "hidden-everywhere",
        why: "no step reads properties that vertexProperties or includeMetaProperties hides; in the reference has(key, \
              value), elementMap() and format() do",
        covers: |script, theirs, ours| {
            let reads = has_value(script) || ["elementMap(", "format("].iter().any(|step| script.contains(step));
            let fails_later = fails_with(theirs, "IllegalStateException: addE(");
            hides_properties(script) && reads && (theirs.is_ok() || fails_later) && ours.is_ok()
        },
    },
    in_the_corpus(
        "edge-properties-seen",
        "vertexProperties hides no properties of edges; in the reference, a by() does",
    ),
    in_the_corpus("by-of-map", "by(key) reads maps also under vertexProperties; the reference fails at a cast"),
    Known {
        name: "hop-without-edge",
        why: "if a SubgraphStrategy filters the edges of a hop, paths do not show the edge; in the reference they do",
        covers: |script, theirs, ours| {
            let paths = [".path(", ".tree(", "simplePath(", "cyclicPath("].iter().any(|step| script.contains(step));
            script.contains("SubgraphStrategy(")
                && script.contains("edges: ")
                && paths
                && theirs.is_ok()
                && ours.is_ok()
        },
    },
    in_the_corpus(
        "property-ids",
        "the id of a vertex property is made of its vertex and key; TinkerGraph numbers vertex properties",
    ),
    in_the_corpus(
        "typed-ids",
        "the string '1' and the number 1 are different ids, and so are an int and a long; TinkerGraph's id manager \
         converts them",
    ),
    Known {
        name: "reads-more",
        why: "the parser also accepts forms of 3.7 and of other clients that the grammar of 3.8 lacks",
        covers: |script, theirs, ours| {
            let more = [".store(", "branch(T.label)"].iter().any(|form| script.contains(form))
                || script.starts_with("g.withSack(");
            more && fails_with(theirs, "GremlinParserException") && ours.is_ok()
        },
    },
    in_the_corpus("reads-less", "a predicate takes no traversal, and inject() takes no token as a value"),
    in_the_corpus(
        "or-anywhere",
        "an or() in match() may come first, be alone, or be nested; the reference then does not find its variables",
    ),
    // Writes.
    Known {
        name: "reserved-keys",
        why: "ReservedKeysVerificationStrategy verifies every step that writes; the reference omits merges, and \
              property() of existing elements",
        covers: |script, theirs, ours| {
            let asked = script.contains("ReservedKeysVerificationStrategy(") && script.contains("throwException: true");
            asked && theirs.is_ok() && ours.as_ref().is_err_and(|error| error.contains("reserved"))
        },
    },
    in_the_corpus("no-elements-in-properties", "a property holds plain values; TinkerGraph keeps any object of Java"),
    in_the_corpus(
        "edge-last-value",
        "if a new edge gets two values for one key, the last one stays; the reference fails",
    ),
    in_the_corpus(
        "held-by-value",
        "a held property is identified by vertex, key, position and value, also if it was written again",
    ),
    in_the_corpus("edge-meta", "meta-properties of an edge's property are refused; the reference loses them silently"),
    in_the_corpus(
        "merge-cardinality",
        "in a merge, a value with a cardinality is searched for like a plain value, and is written to edges",
    ),
    in_the_corpus("end-by-id", "an option for an end of an edge may also return a vertex id; the reference refuses it"),
    in_the_corpus(
        "end-map-checked",
        "the map that describes an end of an edge is checked like other maps; the reference ignores invalid entries",
    ),
    Known {
        name: "missing-end",
        why: "mergeE() fails if inV is no vertex, as for the other end; the reference does nothing",
        covers: |script, theirs, ours| {
            script.contains("mergeE(") && script.contains("option(Merge.inV") && theirs.is_ok() && ours.is_err()
        },
    },
    Known {
        name: "has-id-twice",
        why: "hasId(2, 2) is a test; at the start of a traversal the reference looks up each id and returns v[2] twice",
        covers: |script, theirs, ours| repeats_a_value(script, ".hasId(") && theirs.is_ok() && ours.is_ok(),
    },
    Known {
        name: "barrier-before-writes",
        why: "a writing step reads all its input before it writes; in the reference, a traversal meets its own writes",
        covers: |script, theirs, ours| {
            let write = ["addE(", "addV(", "drop()", "mergeV(", "mergeE(", "property("]
                .iter()
                .filter_map(|step| script.find(step))
                .min();
            let walks =
                |before: &str| [".in(", ".out(", ".both(", ".to(", "E(", ".V("].iter().any(|hop| before.contains(hop));
            write.is_some_and(|at| walks(&script[..at])) && theirs.is_ok() && ours.is_ok()
        },
    },
    Known {
        name: "equal-starts",
        why: "of two equal traversers in mergeV(), the second finds the element that the first created; the reference \
              merges the traversers",
        covers: |script, theirs, ours| injects_equal_before_merge(script) && theirs.is_ok() && ours.is_ok(),
    },
    Known {
        name: "call-of-merged",
        why: "a service answers each traverser once; in the reference it answers a merged traverser as often as its \
              bulk says, and every answer gets that bulk",
        covers: |script, theirs, ours| {
            let called = script.find(".call('tinker.degree.centrality'").is_some_and(|at| merges(&script[..at]));
            called && matches!((theirs, ours), (Ok(theirs), Ok(ours)) if theirs.len() >= ours.len())
        },
    },
    Known {
        name: "match-order",
        why: "a pattern of match() waits until its variables are bound; the reference tries or(), and(), not() and \
              where() before that, and fails",
        covers: |script, theirs, ours| {
            let errors = [
                "IllegalArgumentException: The step with label ",
                "IllegalArgumentException: Neither the map, sideEffects, nor path has a ",
                "IllegalStateException: The provided match pattern is unsolvable",
                "IndexOutOfBoundsException: Index 0 out of bounds for length 0",
            ];
            let inside = script.find("match(").is_some_and(|at| {
                ["__.or(", "__.not(", "__.where(", "__.and("].iter().any(|test| script[at..].contains(test))
            });
            inside && errors.iter().any(|error| fails_with(theirs, error)) && ours.is_ok()
        },
    },
    Known {
        name: "partition-by",
        why: "by('key') reads no property that includeMetaProperties hides; the reference restricts steps, but not \
              modulators",
        covers: |script, theirs, ours| {
            script.contains("includeMetaProperties: true") && script.contains(".by('") && theirs.is_ok() && ours.is_ok()
        },
    },
    Known {
        name: "partition-property-of-new",
        why: "a traversal in a property() of addV() reads the input of the step, as without includeMetaProperties; in \
              the reference it then reads the new vertex",
        covers: |script, theirs, ours| {
            let asked = script.contains("includeMetaProperties: true") && script.contains(".addV(");
            asked && script.contains("').property('") && theirs.is_ok() && ours.is_ok()
        },
    },
    Known {
        name: "partition-key-shown",
        why: "the key of a partition is an ordinary property; the reference leaves it out of lists of all properties",
        covers: |script, theirs, ours| {
            let all =
                ["properties()", "values()", "valueMap()", "propertyMap()"].iter().any(|step| script.contains(step));
            let shows = |answer: &Answer| {
                answer.as_ref().is_ok_and(|results| results.iter().any(|result| result.contains("part")))
            };
            // A value alone does not show its key.
            let shown = script.contains("values()") || (shows(ours) && !shows(theirs));
            script.contains("includeMetaProperties: true") && all && shown && theirs.is_ok() && ours.is_ok()
        },
    },
    Known {
        name: "counted-again",
        why: "count() of an empty stream returns 0 once; after a local() with a reduction, the reference also counts \
              the reduction",
        covers: |script, theirs, ours| {
            let is = |answer: &Answer, counts: &[&str]| answer.as_ref().is_ok_and(|results| results == counts);
            script.contains("local(") && is(theirs, &["0L", "1L"]) && is(ours, &["0L"])
        },
    },
    Known {
        name: "count-within-nothing",
        why: "a count is never within an empty list and always without it; the reference fails to plan the test",
        covers: |script, theirs, ours| {
            let asked =
                ["count().is(P.within([]))", "count().is(P.without([]))"].iter().any(|test| script.contains(test));
            asked && fails_with(theirs, "NoSuchElementException") && ours.is_ok()
        },
    },
    Known {
        name: "no-ids",
        why: "no id is within an empty list; the reference fails when it looks up the ids",
        covers: |script, theirs, ours| {
            let none = ["has(T.id, P.within([]))", "hasId(P.within([]))"].iter().any(|test| script.contains(test));
            none && fails_with(theirs, "NullPointerException: Cannot read the array length because \"graphStep.ids\"")
                && ours.is_ok()
        },
    },
    Known {
        name: "match-in-where",
        why: "where() takes a match() like any other traversal; the reference mistakes the labels of its patterns for \
              those of where()",
        covers: |script, theirs, ours| {
            let of_match = |error: &String| {
                error.starts_with("IllegalArgumentException: A where()-traversal must have")
                    && error.contains("MatchStep(")
            };
            script.contains("match(") && theirs.as_ref().is_err_and(of_match) && ours.is_ok()
        },
    },
    Known {
        name: "match-left-over",
        why: "a nested match() begins anew for each traverser; in the reference, matches that a test or a by() left \
              unread come out for the next traverser",
        covers: |script, theirs, ours| nested_match(script) && theirs.is_ok() && ours.is_ok(),
    },
    Known {
        name: "identity-removed",
        why: "flatMap(identity().identity()) returns its input; the reference removes both steps first and returns \
              nothing",
        covers: |script, theirs, ours| {
            script.contains("flatMap(__.identity().identity())") && theirs.is_ok() && ours.is_ok()
        },
    },
    Known {
        name: "filter-of-objects",
        why: "filter(P) tests the object, like is(P); the reference compares the traverser, which equals no value",
        covers: |script, theirs, ours| script.contains("filter(P.") && theirs.is_ok() && ours.is_ok(),
    },
    Known {
        name: "null-mixed",
        why: "select(Pop.mixed, 'a') returns the labeled objects also if one is null; the reference then returns \
              nothing for all rows",
        covers: |script, theirs, ours| {
            let asked = script.starts_with("g.inject(null") && script.contains("select(Pop.mixed, ");
            asked && theirs.as_ref().is_ok_and(Vec::is_empty) && ours.is_ok()
        },
    },
    Known {
        name: "meta-twice",
        why: "if a meta-property gets two values, the last one stays; the reference fails",
        covers: |_, theirs, ours| {
            fails_with(theirs, "IllegalArgumentException: Only single value meta-properties") && ours.is_ok()
        },
    },
    Known {
        name: "partition-key-asked",
        why: "the key of a partition is an ordinary property; the reference refuses to read it",
        covers: |_, theirs, ours| {
            fails_with(theirs, "IllegalStateException: Cannot explicitly request the partitionKey") && ours.is_ok()
        },
    },
    Known {
        name: "norm-of-merged",
        why: "merged traversers share the weight of their sack, so all weights sum to 1; in the reference each has the \
              weight of all",
        covers: |script, theirs, ours| {
            let is_one = |total: f64| (total - 1.0).abs() < 1e-9;
            let normed = |theirs: &[String], ours: &[String]| {
                theirs.len() == ours.len() && is_one(total(ours)) && total(theirs) > 1.0
            };
            script.contains("normSack") && matches!((theirs, ours), (Ok(theirs), Ok(ours)) if normed(theirs, ours))
        },
    },
    // In a random case, this is the reason if the reference agrees after its optimizations are off (`cases.rs`).
    in_the_corpus("optimizer", "the reference's optimizations change its answer"),
];

/// Returns true if this part of a script may merge equal traversers.
fn merges(script: &str) -> bool {
    [
        ".barrier(",
        "repeat(",
        ".order(",
        ".sample(",
        ".aggregate(",
        "branch(",
        "choose(",
        "union(",
        "inject(",
        "V(1, 1",
        "optional(",
        "local(",
    ]
    .iter()
    .any(|step| script.contains(step))
}

/// The sum of results that are floats; NaN if one is no float.
fn total(results: &[String]) -> f64 {
    results.iter().map(|result| result.parse().unwrap_or(f64::NAN)).sum()
}

/// Returns true if a strategy of this script hides properties of vertices.
fn hides_properties(script: &str) -> bool {
    script.contains("includeMetaProperties: true") || script.contains("vertexProperties: ")
}

/// Returns true if a step of this script filters by a key and a value: `has('key', value)`.
fn has_value(script: &str) -> bool {
    let steps = script.split(").").filter_map(|step| step.split_once("has('"));
    steps.into_iter().any(|(_, arguments)| arguments.contains("', "))
}

/// Returns true if a `match()` is nested in another step.
fn nested_match(script: &str) -> bool {
    let depth = |part: &str| part.matches('(').count().saturating_sub(part.matches(')').count());
    script.match_indices("match(").any(|(at, _)| depth(&script[..at]) > 0)
}

/// Returns true if a merge follows directly on `inject()` of two equal values.
fn injects_equal_before_merge(script: &str) -> bool {
    let Some((before, _)) = script.split_once(").merge") else { return false };
    before.rfind(".inject(").is_some_and(|at| repeats_a_value(&before[at..], ".inject("))
}

/// Returns true if two arguments of the first call of this step have the same text.
fn repeats_a_value(script: &str, step: &str) -> bool {
    let Some((_, arguments)) = script.split_once(step) else { return false };
    let (mut depth, mut values) = (0_i32, vec![String::new()]);
    for c in arguments.chars() {
        depth += i32::from(matches!(c, '[' | '(')) - i32::from(matches!(c, ']' | ')'));
        match c {
            _ if depth < 0 => break,
            ',' if depth == 0 => values.push(String::new()),
            c => values.last_mut().expect("one is there from the beginning").push(c),
        }
    }
    let values: Vec<&str> = values.iter().map(|value| value.trim()).collect();
    (1..values.len()).any(|at| values[..at].contains(&values[at]))
}

/// Returns true if the reference fails with this error.
fn fails_with(theirs: &Answer, error: &str) -> bool {
    theirs.as_ref().is_err_and(|message| message.starts_with(error))
}

/// The difference with this name.
pub fn find(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}

/// The differences whose tests cover a case.
pub fn covering(traversal: &str, reference: &Answer, ours: &Answer) -> impl Iterator<Item = &'static Known> {
    KNOWN.iter().filter(|known| (known.covers)(traversal, reference, ours))
}
