//! The LDBC Labelled Subgraph Query Benchmark: nine patterns, counted.
//!
//! `queries/lsqb.txt` has the patterns in a form the engine can count fast, `queries/lsqb_literal.txt` and
//! `queries/lsqb_slow.txt` as the benchmark writes them. The same patterns run on the LDBC SNB graph (`ldbc.rs`).

use mangrove::Database;
use mangrove_testdata::dataset;

use crate::cases::Case;
use crate::support::{ask, full, load_clean, number};

const FAST: &str = include_str!("queries/lsqb.txt");
const QUICK: &str = include_str!("queries/lsqb_literal.txt");
const SLOW: &str = include_str!("queries/lsqb_slow.txt");

/// The traversals that run besides the fast ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Literal {
    /// None.
    None,
    /// The patterns as the benchmark writes them, where that takes seconds.
    Quick,
    /// All patterns as the benchmark writes them, also where that takes a minute.
    Slow,
}

/// Checks the counts of the nine patterns, by the fast traversals and by those of `literal`.
#[track_caller]
pub fn check_counts(db: &Database, graph: &str, expected: &[(String, i64)], literal: Literal) {
    assert_eq!(expected.len(), 9, "{graph}: nine patterns have a count");
    let files = [(FAST, Literal::None), (QUICK, Literal::Quick), (SLOW, Literal::Slow)];
    for (file, _) in files.iter().filter(|(_, level)| *level <= literal) {
        for case in Case::parse_all(file) {
            let (_, count) = expected.iter().find(|(name, _)| *name == case.name).expect("every pattern has a count");
            assert_eq!(number(db, &case.script), *count, "{graph} {}: {}", case.name, case.script);
        }
    }
}

/// The publisher's counts for a scale: lines of system, variant, scale, query, seconds and count.
fn published(scale: &str) -> Option<Vec<(String, i64)>> {
    let file = dataset("lsqb_sf0.1")?.join("expected/expected-output.csv");
    let lines = std::fs::read_to_string(file).unwrap();
    let rows = lines.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let counts = rows.filter(|row| row[2] == scale).map(|row| (format!("q{}", row[3]), row[5].parse().unwrap()));
    Some(counts.collect())
}

#[test]
fn the_example_graph_has_the_published_counts() {
    let (Some(folder), Some(expected)) = (dataset("lsqb_sfexample"), published("example")) else { return };
    let db = load_clean(&[folder], Some("lsqb"));
    assert_eq!((number(&db, "g.V().count()"), number(&db, "g.E().count()")), (28, 72));
    check_counts(&db, "example", &expected, Literal::Slow);
}

#[test]
fn scale_factor_a_tenth_has_the_published_counts() {
    let (Some(folder), Some(expected)) = (dataset("lsqb_sf0.1"), published("0.1")) else { return };
    let db = load_clean(&[folder.join("data")], Some("lsqb"));
    assert_eq!((number(&db, "g.V().count()"), number(&db, "g.E().count()")), (432_235, 2_080_404));
    assert_eq!(number(&db, "g.E().hasLabel('knows').count()"), 18_135);
    assert_eq!(number(&db, "g.V().hasLabel('Person').both('knows').count()"), 2 * 18_135);
    // Posts and comments have a creator each, and comments answer one message.
    assert_eq!(ask(&db, "g.V().hasLabel('Post', 'Comment').not(out('hasCreator').count().is(1)).count()"), ["0"]);
    assert_eq!(ask(&db, "g.V().hasLabel('Comment').not(out('replyOf').count().is(1)).count()"), ["0"]);
    check_counts(&db, "scale factor 0.1", &expected, if full() { Literal::Slow } else { Literal::Quick });
}
