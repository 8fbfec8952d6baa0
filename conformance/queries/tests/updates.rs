//! Replays LDBC's update streams, all eight kinds, as transactions. Afterwards the graph equals plain maps with the
//! same updates.

use std::collections::BTreeMap;

use mangrove::{Database, Value};
use mangrove_queries::reference::{self, Graph, apply};
use mangrove_queries::{DataSet, QuerySet, Runner, loaded, stream, to_json};
use serde_json::Value as Json;

/// Counts by name.
type Counts = BTreeMap<String, u64>;

fn count(names: impl Iterator<Item = String>) -> Counts {
    let mut counts = Counts::new();
    names.for_each(|name| *counts.entry(name).or_default() += 1);
    counts
}

fn counts_of(db: &Database, script: &str) -> Counts {
    let rows =
        db.query(script).and_then(mangrove::ResultStream::collect).unwrap_or_else(|error| panic!("{script}: {error}"));
    let Value::Map(entries) = &rows[0] else { panic!("{script} gives a map") };
    let mut counts = Counts::new();
    for (name, count) in entries.iter() {
        let name = match to_json(name) {
            Json::String(text) => text,
            number => number.to_string(),
        };
        // A key may occur as a 32-bit number, as loaded, and as a 64-bit number, as written. The group then has two
        // keys.
        *counts.entry(name).or_default() += to_json(count).as_u64().unwrap();
    }
    counts
}

/// Compares the number of vertices by label, of edges by relation, and of edges by each date.
fn check_same(db: &Database, graph: &Graph) {
    let kinds = count(graph.vertices.iter().map(|vertex| vertex.kind.clone()));
    let mut labels = Counts::new();
    for (label, count) in counts_of(db, "g.V().groupCount().by(label)") {
        // `Place::City` counts as `Place`.
        *labels.entry(label.split("::").next().unwrap().to_owned()).or_default() += count;
    }
    assert_eq!(labels, kinds);
    assert_eq!(counts_of(db, "g.E().groupCount().by(label)"), count(graph.edges.iter().map(|edge| edge.label.clone())));
    let on_edges = |key: &str| {
        let numbers = graph.edges.iter().filter_map(|edge| edge.property.as_ref().filter(|(name, _)| name == key));
        count(numbers.map(|(_, number)| number.to_string()))
    };
    for key in ["creationDate", "joinDate", "classYear", "workFrom"] {
        assert_eq!(counts_of(db, &format!("g.E().has('{key}').groupCount().by('{key}')")), on_edges(key), "{key}");
    }
    for key in ["content", "imageFile", "firstName", "title", "length", "browserUsed"] {
        let texts = count((0..graph.vertices.len()).filter_map(|vertex| graph.text(vertex, key)).map(str::to_owned));
        assert_eq!(counts_of(db, &format!("g.V().has('{key}').groupCount().by('{key}')")), texts, "{key}");
    }
    let friends =
        graph.of_kind("Person").map(|person| (graph.id(person).to_string(), graph.friends(person).len() as u64));
    assert_eq!(counts_of(db, "g.V().hasLabel('Person').group().by('id').by(both('knows').count())"), friends.collect());
    let posts = |forum| graph.out(forum, "containerOf").len() as u64;
    let forums = graph.of_kind("Forum").map(|forum| (graph.id(forum).to_string(), posts(forum)));
    assert_eq!(
        counts_of(db, "g.V().hasLabel('Forum').group().by('id').by(out('containerOf').count())"),
        forums.collect()
    );
}

#[test]
fn update_streams_lead_to_the_same_graph() {
    let Some(folder) = DataSet::Small.folder() else { return };
    let db = loaded(DataSet::Small, &folder);
    let mut graph = reference::load(&DataSet::Small.files(&folder));
    check_same(&db, &graph);
    let updates = stream::updates(&folder);
    assert_eq!(updates.len(), 6_920);
    let (set, runner) = (QuerySet::named("ldbc-interactive"), Runner::new(&db));
    for update in &updates {
        runner
            .update(set.query(&update.query), &update.parameters)
            .unwrap_or_else(|error| panic!("{update:?}: {error}"));
        apply(&mut graph, update);
    }
    let kinds = count(updates.iter().map(|update| update.query.clone()));
    assert_eq!(kinds.len(), 8, "all eight kinds: {kinds:?}");
    check_same(&db, &graph);
}
