//! Every word in the parser's own tables occurs in generated traversals, or is listed here with the reason why it does
//! not.

use std::collections::BTreeMap;

use mangrove_gremlin::{Argument, Bytecode, Instruction, Predicate, vocabulary};

use super::{CASE_COUNT, TRAVERSALS};

/// The least number of occurrences of a word in this many cases.
const TIMES_MIN: usize = 15;

/// Steps that the generator never makes.
pub const LEFT_OUT: &[(&str, &str)] = &[
    ("connectedComponent", "reads the whole graph: tests of its own"),
    ("io", "reads and writes files: tests of its own"),
    ("pageRank", "reads the whole graph: tests of its own"),
    ("peerPressure", "reads the whole graph: tests of its own"),
    ("profile", "asks for a report of the run instead of results"),
    ("read", "belongs to io()"),
    ("shortestPath", "reads the whole graph: tests of its own"),
    ("write", "belongs to io()"),
];

/// Source instructions that the generator never makes.
const SOURCES_LEFT_OUT: &[(&str, &str)] = &[("withComputer", "is for algorithms, which have tests of their own")];

/// How often each word came up.
#[derive(Default)]
struct Counts {
    steps: BTreeMap<String, usize>,
    sources: BTreeMap<String, usize>,
    predicates: BTreeMap<&'static str, usize>,
}

impl Counts {
    fn add(&mut self, traversal: &Bytecode) {
        for instruction in &traversal.source {
            *self.sources.entry(instruction.name.to_string()).or_default() += 1;
            self.arguments(instruction);
        }
        for instruction in &traversal.steps {
            *self.steps.entry(instruction.name.to_string()).or_default() += 1;
            self.arguments(instruction);
        }
    }

    fn arguments(&mut self, instruction: &Instruction) {
        for argument in &instruction.arguments {
            match argument {
                Argument::Traversal(child) => self.add(child),
                Argument::Predicate(predicate) => self.predicate(predicate),
                Argument::Strategy(name, settings) => {
                    *self.sources.entry(name.to_string()).or_default() += 1;
                    for (_, setting) in settings {
                        if let Argument::Traversal(child) = setting {
                            self.add(child);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn predicate(&mut self, predicate: &Predicate) {
        let mut count = |name: &'static str| *self.predicates.entry(name).or_default() += 1;
        match predicate {
            Predicate::Compare(..) => count("a comparison"),
            Predicate::Within(_) => count("within"),
            Predicate::Without(_) => count("without"),
            Predicate::Text(..) => count("a test of a text"),
            Predicate::TypeOf(_) => count("typeOf"),
            Predicate::And(_) => count("both of two"),
            Predicate::Or(_) => count("one of two"),
            Predicate::Not(_) => count("not"),
        }
    }
}

/// Prints the counts, the rarest first, and returns the words that occur too seldom and have no reason listed.
fn check(what: &str, words: &[&str], counts: &BTreeMap<String, usize>, left_out: &[(&str, &str)]) -> Vec<String> {
    let mut table: Vec<(usize, &str)> =
        words.iter().map(|word| (counts.get(*word).copied().unwrap_or(0), *word)).collect();
    table.sort_unstable();
    println!("{what} in {CASE_COUNT} cases:");
    let mut missing = Vec::new();
    for (count, word) in table {
        let reason = left_out.iter().find(|(name, _)| *name == word).map(|(_, reason)| *reason);
        println!("{count:8} {word}{}", reason.map(|reason| format!(" (left out: {reason})")).unwrap_or_default());
        match reason {
            None if count < TIMES_MIN => missing.push(format!("{word} came up {count} times")),
            Some(_) if count > 0 => missing.push(format!("{word} is said to be left out and came up {count} times")),
            _ => {}
        }
    }
    missing
}

#[test]
fn every_word_of_the_language_is_generated_or_left_out_for_a_reason() {
    let mut counts = Counts::default();
    TRAVERSALS.iter().for_each(|traversal| counts.add(traversal));
    let strategies = [
        "SubgraphStrategy",
        "PartitionStrategy",
        "ReadOnlyStrategy",
        "ProductiveByStrategy",
        "LazyBarrierStrategy",
        "ReservedKeysVerificationStrategy",
        "EdgeLabelVerificationStrategy",
    ];
    let sources = [vocabulary::source_methods(), &strategies].concat();
    let predicates: Vec<&str> =
        ["a comparison", "within", "without", "a test of a text", "typeOf", "both of two", "one of two", "not"].into();
    let by_name = counts.predicates.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
    let missing = [
        check("steps", vocabulary::steps(), &counts.steps, LEFT_OUT),
        check("sources", &sources, &counts.sources, SOURCES_LEFT_OUT),
        check("predicates", &predicates, &by_name, &[]),
    ];
    assert!(missing.iter().all(Vec::is_empty), "{:?}", missing.concat());
    // A reason for a word that is not in the tables would be stale.
    for (word, _) in LEFT_OUT {
        assert!(vocabulary::steps().contains(word), "{word} is no step");
    }
}
