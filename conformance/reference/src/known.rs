//! What we answer otherwise than the reference, and why it stays so.
//!
//! A difference in the corpus says its name; one of a random case has one if it looks as the name's test says. Each test
//! is as narrow as it can be: it names the steps and what each side says, never a whole family. Where [`crate::rephrase`]
//! has other words for a reason, both sides must also agree with those.

use crate::Answer;

/// A difference that is to stay.
pub struct Known {
    /// What the corpus calls it.
    pub name: &'static str,
    /// Why we answer otherwise.
    pub why: &'static str,
    /// Whether a random case that differs does so for this reason: the traversal, the reference's answer, ours.
    pub covers: fn(&str, &Answer, &Answer) -> bool,
}

/// For those that random cases do not come to.
const CORPUS_ONLY: fn(&str, &Answer, &Answer) -> bool = |_, _, _| false;

const fn in_the_corpus(name: &'static str, why: &'static str) -> Known {
    Known { name, why, covers: CORPUS_ONLY }
}

/// All of them.
pub const KNOWN: &[Known] = &[
    // Numbers.
    in_the_corpus("nan-counts", "a sum or mean with a NaN is NaN; the reference takes NaN for 0 of the other type"),
    in_the_corpus(
        "negative-zero",
        "0.0 and -0.0 are one number, as IEEE 754 has it; the reference compares their bits",
    ),
    Known {
        name: "fold-of-merged",
        why: "fold(seed, operator) takes a value once for each traverser; the reference once for those that merged, though \
              fold() counts them",
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
        why: "Operator.sumLong adds whole numbers of any width; the reference fails for all but longs",
        covers: |script, theirs, ours| {
            script.contains("Operator.sumLong") && fails_with(theirs, "ClassCastException") && ours.is_ok()
        },
    },
    in_the_corpus("shortest-double", "Java writes the least double with one digit more than it needs"),
    in_the_corpus(
        "float-to-bigint",
        "a float beyond 64 bits becomes that integer; the reference's is the largest long",
    ),
    in_the_corpus("no-silent-infinity", "a literal too large for its type is refused; the reference reads infinity"),
    // Dates.
    in_the_corpus(
        "same-instant",
        "dates of one instant are equal whatever their offsets; the reference tells them apart",
    ),
    in_the_corpus("int-days", "dateAdd() takes 64 bits; the reference cuts the number to 32 and comes to another date"),
    // What compares.
    in_the_corpus(
        "orders-anything",
        "min(), max() and order(local) have an order for all values; Java fails at a cast",
    ),
    in_the_corpus("no-text-no-match", "a predicate of texts is false for what is none; the reference fails at a cast"),
    in_the_corpus("element-order", "lt() and its kin take elements in the order of internal ids, not of the users'"),
    // Texts.
    in_the_corpus("whole-characters", "a character outside the basic plane is one; Java cuts it in two halves"),
    Known {
        name: "substring-of-empty",
        why: "substring() of an empty text is empty; at a negative index the reference divides by the text's length",
        covers: |script, theirs, ours| {
            script.contains("substring(") && fails_with(theirs, "ArithmeticException: / by zero") && ours.is_ok()
        },
    },
    // Nulls and absent things.
    in_the_corpus("null-unfolds", "unfold() of null is null; the reference fails"),
    in_the_corpus("null-among-names", "a null among labels stands for none; the reference fails"),
    in_the_corpus(
        "group-count-aside",
        "groupCount('x') leaves out what its by() has nothing of, as groupCount() does; the reference fails",
    ),
    in_the_corpus(
        "group-of-nothing",
        "a group whose traversal gives nothing is left out; the reference shows what its barrier held",
    ),
    in_the_corpus("by-identity", "by(identity()) reduces to one value; the reference drops identity() first"),
    in_the_corpus("unknown-label", "a label that nothing bears drops the row in where(); the reference fails"),
    in_the_corpus("unknown-variable", "a variable of math() that nothing bears drops the row; the reference fails"),
    in_the_corpus("cap-of-nothing", "cap() of a name that no step fills is refused, also beside one that is filled"),
    in_the_corpus(
        "key-order",
        "addV() gives properties in the order they are written in; the reference, where a traversal gives a key, in that of hashes",
    ),
    in_the_corpus(
        "property-order",
        "properties are in the order of vertex and key; TinkerGraph's are in that of their numbers",
    ),
    in_the_corpus(
        "all-of-several",
        "what a group keeps under a key are all values of it; the reference fails at several",
    ),
    in_the_corpus("any-or-collection", "within('a') takes what a stands for, or its members; Java fails at a cast"),
    // Side effects.
    in_the_corpus(
        "effects-so-far",
        "a side effect that is read on the way has what the traversers before put there; the reference puts a barrier before",
    ),
    in_the_corpus("emit-of-leaving", "emit() is also asked of what leaves the loop, which only its side effects show"),
    // Collections.
    in_the_corpus("range-past-a-map", "skip(local, n) past the end of a map is an empty map; the reference fails"),
    in_the_corpus("negative-tail", "tail() of a negative number is refused; the reference gives nothing"),
    in_the_corpus(
        "merged-on-the-way",
        "traversers and sacks merge at a barrier() that is written and in loops; the reference has barriers of its own, too",
    ),
    Known {
        name: "own-sack",
        why: "every traverser folds into its own sack; in the reference all write to one list",
        covers: |script, theirs, ours| {
            let folds = script.contains("withSack([])") && script.contains("sack(Operator.addAll)");
            // Of two ids that are equal the reference also makes two traversers.
            let alike = |theirs: &[String], ours: &[String]| {
                theirs.windows(2).all(|pair| pair[0] == pair[1])
                    && (theirs.len() == ours.len() || repeats_a_value(script, ".hasId("))
            };
            folds && matches!((theirs, ours), (Ok(theirs), Ok(ours)) if alike(theirs, ours))
        },
    },
    // Steps.
    in_the_corpus("nothing-connected", "and() between steps with nothing on one side passes; the reference drops all"),
    in_the_corpus("optional-once", "optional(count()) counts once; the reference also gives the 0 of its own test"),
    in_the_corpus("loops-outside", "loops() outside of a loop is refused, also behind one; the reference says 0"),
    in_the_corpus("services", "call() lists the database's own services besides"),
    in_the_corpus("with-nowhere", "with() behind a step that knows no option is refused; the reference passes it over"),
    in_the_corpus("value-map-false", "valueMap(false) is without tokens, as documented; the reference adds them"),
    Known {
        name: "hidden-everywhere",
        why: "what vertexProperties or includeMetaProperties hides no step reads; has(key, value), elementMap() and format() \
              of the reference do",
        covers: |script, theirs, ours| {
            let reads = has_value(script) || ["elementMap(", "format("].iter().any(|step| script.contains(step));
            let fails_later = fails_with(theirs, "IllegalStateException: addE(");
            hides_properties(script) && reads && (theirs.is_ok() || fails_later) && ours.is_ok()
        },
    },
    in_the_corpus("edge-properties-seen", "vertexProperties hides nothing of edges; a by() of the reference does"),
    in_the_corpus(
        "by-of-map",
        "by(key) takes entries of maps beside vertexProperties, too; the reference fails at a cast",
    ),
    Known {
        name: "hop-without-edge",
        why: "a hop whose edges a SubgraphStrategy filters stays a hop in paths; the reference shows the edge",
        covers: |script, theirs, ours| {
            let paths = [".path(", ".tree(", "simplePath(", "cyclicPath("].iter().any(|step| script.contains(step));
            script.contains("SubgraphStrategy(")
                && script.contains("edges: ")
                && paths
                && theirs.is_ok()
                && ours.is_ok()
        },
    },
    in_the_corpus("property-ids", "a vertex property's id is made of its vertex and key; TinkerGraph numbers them"),
    in_the_corpus(
        "typed-ids",
        "the string '1' is another id than 1, an int another than a long; TinkerGraph's manager converts",
    ),
    Known {
        name: "reads-more",
        why: "the parser also reads forms of 3.7 and of other clients that the grammar of 3.8 has not",
        covers: |script, theirs, ours| {
            let more = [".store(", "branch(T.label)"].iter().any(|form| script.contains(form))
                || script.starts_with("g.withSack(");
            more && fails_with(theirs, "GremlinParserException") && ours.is_ok()
        },
    },
    in_the_corpus("reads-less", "a predicate takes no traversal and inject() no token of the language as a value"),
    in_the_corpus(
        "or-anywhere",
        "an or() in match() may come first, alone, or nested; the reference then fails to find its variables",
    ),
    // Writes.
    Known {
        name: "reserved-keys",
        why: "ReservedKeysVerificationStrategy verifies every step that writes; the reference forgets merges, and property() \
              of what is there",
        covers: |script, theirs, ours| {
            let asked = script.contains("ReservedKeysVerificationStrategy(") && script.contains("throwException: true");
            asked && theirs.is_ok() && ours.as_ref().is_err_and(|error| error.contains("reserved"))
        },
    },
    in_the_corpus("no-elements-in-properties", "a property holds plain values; TinkerGraph keeps any object of Java"),
    in_the_corpus("edge-last-value", "of two values for one key of a new edge the last stays; the reference fails"),
    in_the_corpus(
        "held-by-value",
        "a held property is the one of its vertex, key, place and value, also when it was written anew",
    ),
    in_the_corpus("edge-meta", "meta-properties of an edge's property are refused; the reference loses them silently"),
    in_the_corpus(
        "merge-cardinality",
        "a value with a cardinality in a merge is that value: it is searched for and, on edges, written",
    ),
    in_the_corpus(
        "end-by-id",
        "an option for an end of an edge may also give a vertex's id; the reference refuses one",
    ),
    in_the_corpus(
        "end-map-checked",
        "the map that describes an end of an edge is checked like the others; the reference looks for what is left of it",
    ),
    Known {
        name: "missing-end",
        why: "mergeE() whose inV is no vertex fails, as with any other end; the reference does nothing",
        covers: |script, theirs, ours| {
            script.contains("mergeE(") && script.contains("option(Merge.inV") && theirs.is_ok() && ours.is_err()
        },
    },
    Known {
        name: "has-id-twice",
        why: "hasId(2, 2) is a test; at the start of a traversal the reference looks each id up and gives v[2] twice",
        covers: |script, theirs, ours| repeats_a_value(script, ".hasId(") && theirs.is_ok() && ours.is_ok(),
    },
    Known {
        name: "barrier-before-writes",
        why: "a writing step reads all its input before it writes; in the reference a walk meets what it just wrote",
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
        why: "of two equal traversers that merge, the second finds what the first made; the reference merges them into one",
        covers: |script, theirs, ours| injects_equal_before_merge(script) && theirs.is_ok() && ours.is_ok(),
    },
    Known {
        name: "call-of-merged",
        why: "a service answers each traverser once; in the reference it answers each of those that merged, and every answer \
              counts for all of them",
        covers: |script, theirs, ours| {
            let called = script.find(".call('tinker.degree.centrality'").is_some_and(|at| merges(&script[..at]));
            called && matches!((theirs, ours), (Ok(theirs), Ok(ours)) if theirs.len() >= ours.len())
        },
    },
    Known {
        name: "match-order",
        why: "a pattern of match() waits until the variables it speaks of are bound; the reference tries or(), and(), not() \
              and where() before that, and fails",
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
        why: "by('key') shows no property that includeMetaProperties hides; the reference asks only steps, not modulators",
        covers: |script, theirs, ours| {
            script.contains("includeMetaProperties: true") && script.contains(".by('") && theirs.is_ok() && ours.is_ok()
        },
    },
    Known {
        name: "partition-property-of-new",
        why: "a traversal in a property() of addV() is asked of what came in, as without includeMetaProperties; the reference \
              then asks the new vertex",
        covers: |script, theirs, ours| {
            let asked = script.contains("includeMetaProperties: true") && script.contains(".addV(");
            asked && script.contains("').property('") && theirs.is_ok() && ours.is_ok()
        },
    },
    Known {
        name: "partition-key-shown",
        why: "the key of a partition is a property like any other; the reference leaves it out of all properties",
        covers: |script, theirs, ours| {
            let all =
                ["properties()", "values()", "valueMap()", "propertyMap()"].iter().any(|step| script.contains(step));
            let shows = |answer: &Answer| {
                answer.as_ref().is_ok_and(|results| results.iter().any(|result| result.contains("part")))
            };
            // A value alone does not say its key.
            let shown = script.contains("values()") || (shows(ours) && !shows(theirs));
            script.contains("includeMetaProperties: true") && all && shown && theirs.is_ok() && ours.is_ok()
        },
    },
    Known {
        name: "counted-again",
        why: "count() of nothing counts once; after a local() with a reduction, the reference counts the reduction besides",
        covers: |script, theirs, ours| {
            let is = |answer: &Answer, counts: &[&str]| answer.as_ref().is_ok_and(|results| results == counts);
            script.contains("local(") && is(theirs, &["0L", "1L"]) && is(ours, &["0L"])
        },
    },
    Known {
        name: "count-within-nothing",
        why: "a count is within nothing never, and without nothing always; the reference fails to plan it",
        covers: |script, theirs, ours| {
            let asked =
                ["count().is(P.within([]))", "count().is(P.without([]))"].iter().any(|test| script.contains(test));
            asked && fails_with(theirs, "NoSuchElementException") && ours.is_ok()
        },
    },
    Known {
        name: "no-ids",
        why: "an id within nothing is no id; the reference fails where it looks the ids up",
        covers: |script, theirs, ours| {
            let none = ["has(T.id, P.within([]))", "hasId(P.within([]))"].iter().any(|test| script.contains(test));
            none && fails_with(theirs, "NullPointerException: Cannot read the array length because \"graphStep.ids\"")
                && ours.is_ok()
        },
    },
    Known {
        name: "match-in-where",
        why: "where() takes a match() as any other traversal; the reference takes its patterns for its own labels",
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
        why: "a nested match() begins anew for each traverser; in the reference what a test or a by() left unread of the last \
              one's matches comes out for the next",
        covers: |script, theirs, ours| nested_match(script) && theirs.is_ok() && ours.is_ok(),
    },
    Known {
        name: "identity-removed",
        why: "flatMap(identity().identity()) gives what it is given; the reference empties it first, and nothing comes out",
        covers: |script, theirs, ours| {
            script.contains("flatMap(__.identity().identity())") && theirs.is_ok() && ours.is_ok()
        },
    },
    Known {
        name: "filter-of-objects",
        why: "filter(P) tests the object, as is(P) does; the reference compares the traverser, which equals nothing",
        covers: |script, theirs, ours| script.contains("filter(P.") && theirs.is_ok() && ours.is_ok(),
    },
    Known {
        name: "null-mixed",
        why: "select(Pop.mixed, 'a') finds what is named, also beside a null; the reference then finds nothing for any row",
        covers: |script, theirs, ours| {
            let asked = script.starts_with("g.inject(null") && script.contains("select(Pop.mixed, ");
            asked && theirs.as_ref().is_ok_and(Vec::is_empty) && ours.is_ok()
        },
    },
    Known {
        name: "meta-twice",
        why: "of two values for one meta-property the last stays; the reference fails",
        covers: |_, theirs, ours| {
            fails_with(theirs, "IllegalArgumentException: Only single value meta-properties") && ours.is_ok()
        },
    },
    Known {
        name: "partition-key-asked",
        why: "the key of a partition is a property like any other; the reference refuses to read it",
        covers: |_, theirs, ours| {
            fails_with(theirs, "IllegalStateException: Cannot explicitly request the partitionKey") && ours.is_ok()
        },
    },
    Known {
        name: "norm-of-merged",
        why: "traversers that a sack's operator merges share its weight, so that all weights sum to 1; the reference gives each \
              the weight of all",
        covers: |script, theirs, ours| {
            let is_one = |total: f64| (total - 1.0).abs() < 1e-9;
            let normed = |theirs: &[String], ours: &[String]| {
                theirs.len() == ours.len() && is_one(total(ours)) && total(theirs) > 1.0
            };
            script.contains("normSack") && matches!((theirs, ours), (Ok(theirs), Ok(ours)) if normed(theirs, ours))
        },
    },
    // Random cases have it where the reference itself agrees with us once its optimization is off (`cases.rs`).
    in_the_corpus("optimizer", "the reference's optimization changes the answer"),
];

/// Returns true if equal traversers may have become one by the end of this part of a script.
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

/// The sum of results that are floats; NaN if one is none.
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

/// Returns true if two arguments of this step, where it occurs first, are written alike.
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

/// Whether the reference fails with this.
fn fails_with(theirs: &Answer, error: &str) -> bool {
    theirs.as_ref().is_err_and(|message| message.starts_with(error))
}

/// The one of that name.
pub fn find(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}

/// Those whose test covers a difference.
pub fn covering(traversal: &str, reference: &Answer, ours: &Answer) -> impl Iterator<Item = &'static Known> {
    KNOWN.iter().filter(|known| (known.covers)(traversal, reference, ours))
}
