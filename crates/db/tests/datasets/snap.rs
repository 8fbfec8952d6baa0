//! SNAP graphs: degrees and two hops, compared with plain counts of the files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use mangrove::Database;
use mangrove_testdata::dataset;

use super::support::{ask, load_clean, number};

/// The edges of a file, in its order: an independent count to compare with.
struct EdgeList {
    edges: Vec<(i64, i64)>,
}

impl EdgeList {
    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let edge = |line: &str| {
            let mut ends = line.split(',').map(|field| field.parse::<i64>().ok());
            (ends.next().flatten().unwrap(), ends.next().flatten().unwrap())
        };
        EdgeList { edges: text.lines().map(edge).collect() }
    }

    /// The number of edges of each vertex on one side.
    fn degrees(&self, end: impl Fn(&(i64, i64)) -> i64) -> BTreeMap<i64, i64> {
        let mut degrees = BTreeMap::new();
        self.edges.iter().for_each(|edge| *degrees.entry(end(edge)).or_default() += 1);
        degrees
    }

    /// The vertices that a vertex reaches in exactly two steps along the edges.
    fn two_steps(&self, start: i64) -> BTreeSet<i64> {
        let next =
            |from: &BTreeSet<i64>| self.edges.iter().filter(|(s, _)| from.contains(s)).map(|(_, t)| *t).collect();
        let first: BTreeSet<i64> = next(&BTreeSet::from([start]));
        next(&first)
    }
}

/// The largest degree, and the smallest id that has it.
fn largest(degrees: &BTreeMap<i64, i64>) -> (i64, i64) {
    let (id, degree) = degrees.iter().max_by_key(|(id, degree)| (**degree, -**id)).unwrap();
    (*id, *degree)
}

fn check_degrees(db: &Database, name: &str, direction: &str, degrees: &BTreeMap<i64, i64>) {
    let script = format!(
        "g.V().order().by({direction}().count(), desc).by(id).limit(1).project('id', 'n').by(id).by({direction}().count()).select(values)"
    );
    let (id, degree) = largest(degrees);
    assert_eq!(ask(db, &script), [format!("[{id},{degree}]")], "{name} {direction}");
    let without = number(db, &format!("g.V().not({direction}()).count()"));
    assert_eq!(without, number(db, "g.V().count()") - degrees.len() as i64, "{name} {direction}");
}

/// Checks a graph. `component` is the size of its largest weakly connected component.
fn check_graph(name: &str, vertices: i64, edges: i64, component: i64) {
    let Some(folder) = dataset("snap") else { return };
    let folder = folder.join(name);
    let list = EdgeList::read(&folder.join("edges.csv"));
    let db = load_clean(&[folder], Some("snap"));
    assert_eq!((number(&db, "g.V().count()"), number(&db, "g.E().count()")), (vertices, edges), "{name}");
    assert_eq!(list.edges.len() as i64, edges, "{name}");

    let (out, into) = (list.degrees(|e| e.0), list.degrees(|e| e.1));
    check_degrees(&db, name, "out", &out);
    check_degrees(&db, name, "in", &into);
    let loops = list.edges.iter().filter(|(source, target)| source == target).count() as i64;
    assert_eq!(number(&db, "g.V().as('v').out().where(eq('v')).count()"), loops, "{name}");

    let walks: i64 = list.edges.iter().map(|(_, middle)| out.get(middle).copied().unwrap_or(0)).sum();
    assert_eq!(number(&db, "g.V().out().out().count()"), walks, "{name}");
    let (hub, _) = largest(&out);
    let reached = list.two_steps(hub).len() as i64;
    assert_eq!(number(&db, &format!("g.V({hub}).out().out().dedup().count()")), reached, "{name}");

    // The hub lies in the largest weakly connected component, whose size the publisher of the data states.
    let script = format!(
        "g.V({hub}).repeat(both().where(without('seen')).dedup().aggregate('seen')).cap('seen').unfold().count()"
    );
    assert_eq!(number(&db, &script), component, "{name}");
    assert_eq!(number(&db, &format!("g.V({hub}).repeat(both().dedup()).emit().count()")), component, "{name}");
}

#[test]
fn wiki_vote() {
    check_graph("wiki-Vote", 7_116, 103_689, 7_067);
}

#[test]
fn bitcoin_otc() {
    check_graph("bitcoin-otc", 5_881, 35_592, 5_875);
}

#[test]
fn email_eu_core() {
    check_graph("email-Eu-core", 1_005, 25_571, 986);
}

/// Ratings lie on the edges, from -10 to 10 and never 0.
#[test]
fn ratings_of_bitcoin_otc() {
    let Some(folder) = dataset("snap") else { return };
    let text = std::fs::read_to_string(folder.join("bitcoin-otc/edges.csv")).unwrap();
    let ratings: Vec<i64> = text.lines().map(|line| line.split(',').nth(2).unwrap().parse().unwrap()).collect();
    let db = load_clean(&[folder.join("bitcoin-otc")], Some("snap"));
    let negative = ratings.iter().filter(|rating| **rating < 0).count() as i64;
    assert_eq!(number(&db, "g.E().has('rating', lt(0)).count()"), negative);
    assert_eq!(number(&db, "g.E().has('rating', 0).count()"), 0);
    let best = ratings.iter().filter(|rating| **rating == 10).count() as i64;
    assert_eq!(number(&db, "g.E().has('rating', 10).count()"), best);
}
