//! Loops whose traversers have an order by a value: best-first search, and shortest ways.

use std::collections::{BTreeSet, HashMap};

use mangrove::{Database, TraversalMetrics, UserId, Value};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

fn results(database: &Database, script: &str) -> Vec<Value> {
    database
        .query(script)
        .unwrap_or_else(|e| panic!("{script}: {e}"))
        .collect()
        .unwrap_or_else(|e| panic!("{script}: {e}"))
}

/// The messages and the rows into an operator, whose name in a profile begins with this text.
fn work_of(profile: &TraversalMetrics, operator: &str) -> (i64, i64) {
    let found = profile.flat().into_iter().find(|(_, one)| one.name.starts_with(operator));
    let (_, found) = found.expect("the profile has the operator");
    let [Some(Value::I64(messages)), Some(Value::I64(rows))] =
        ["messages", "rowsIn"].map(|name| found.annotation(name))
    else {
        panic!("{found:?}")
    };
    (*messages, *rows)
}

const WIDTH: i64 = 40;
const START: (i64, i64) = (5, 20);
const GOAL: (i64, i64) = (34, 20);

fn id_of((x, y): (i64, i64)) -> i64 {
    x + WIDTH * y
}

/// A grid with a wall in the middle that leaves ways around it. Each cell has its distance to the goal, as if there
/// was no wall.
fn grid() -> Database {
    let database = Database::in_memory();
    let is_wall = |(x, y): (i64, i64)| x == WIDTH / 2 && (16..=24).contains(&y);
    let cells: Vec<(i64, i64)> =
        (0..WIDTH * WIDTH).map(|n| (n % WIDTH, n / WIDTH)).filter(|cell| !is_wall(*cell)).collect();
    let transaction = database.begin().unwrap();
    let ids: Vec<UserId> = cells.iter().map(|cell| id_of(*cell).into()).collect();
    let vertices = transaction.insert_vertices(database.catalog().intern_label_text("cell"), &ids).unwrap();
    let by_cell: HashMap<(i64, i64), _> = cells.iter().copied().zip(vertices.iter().copied()).collect();
    let distance = |(x, y): (i64, i64)| Value::I64((x - GOAL.0).abs() + (y - GOAL.1).abs());
    let distances: Vec<_> = cells.iter().zip(&vertices).map(|(cell, vertex)| (*vertex, distance(*cell))).collect();
    transaction.set_vertex_property("distance", &distances).unwrap();
    let next = |(x, y): &(i64, i64)| [(x + 1, *y), (*x, y + 1)];
    let edge = |from: &(i64, i64), to: (i64, i64)| Some((by_cell[from], *by_cell.get(&to)?));
    let ends: Vec<_> = cells.iter().flat_map(|cell| next(cell).into_iter().filter_map(|to| edge(cell, to))).collect();
    transaction.insert_edges(database.catalog().intern_label_text("e"), &ends).unwrap();
    transaction.commit().unwrap();
    database
}

/// The search of the goal with a policy, and what follows it.
fn search(policy: &str, rest: &str) -> String {
    let (start, goal) = (id_of(START), id_of(GOAL));
    format!("g.V({start}).repeat(both('e')){policy}.until(hasId({goal})).dedup().limit(1){rest}")
}

/// A best-first search looks at few vertices, also where the straight way is closed.
#[test]
fn the_nearest_vertex_goes_first() {
    let database = grid();
    let explained = database.explain(&search(".with('policy', 'by distance')", "")).unwrap();
    assert!(
        explained
            .contains("repeat, each vertex once, by distance between traversers and dfs inside, at most 1 at a time"),
        "{explained}"
    );
    let expanded = |policy: &str| {
        assert_eq!(results(&database, &search(policy, ".id()")), [Value::I64(id_of(GOAL))], "{policy}");
        let profile = results(&database, &search(policy, ".profile()"));
        let [Value::TraversalMetrics(profile)] = &profile[..] else { panic!("{profile:?}") };
        let (messages, rows) = work_of(profile, "expand both e");
        println!("{policy:<50} {messages} messages at both(), {rows} vertices");
        rows
    };
    let (one_by_one, bfs) = (expanded(""), expanded(".with('policy', 'bfs')"));
    let (dfs, fifo) = (expanded(".with('policy', 'dfs')"), expanded(".with('policy', 'fifo')"));
    let best = expanded(".with('policy', 'by distance')");
    let worst = expanded(".with('policy', 'by distance desc')");
    let several = expanded(".with('policy', 'by distance').with('maxInstances', 8)");
    assert!(best * 5 < one_by_one.min(bfs).min(dfs).min(fifo), "{best} of {one_by_one}, {bfs}, {dfs}, {fifo}");
    assert!(several < bfs / 2 && best < worst, "{several}, {worst}");
}

/// Shortest ways from a vertex by the sums of weights, with each vertex finished once.
fn shortest(edges: &[(usize, usize, i64)], from: usize) -> HashMap<usize, i64> {
    let (mut done, mut waiting) = (HashMap::new(), BTreeSet::from([(0, from)]));
    while let Some((sum, vertex)) = waiting.pop_first() {
        if done.contains_key(&vertex) {
            continue;
        }
        done.insert(vertex, sum);
        waiting.extend(edges.iter().filter(|edge| edge.0 == vertex).map(|(_, to, weight)| (sum + weight, *to)));
    }
    done
}

/// With the sack as the order, the first way that reaches a vertex is the shortest one.
#[test]
fn the_sack_orders_ways_by_their_length() {
    for seed in 0..20 {
        let mut random = StdRng::seed_from_u64(seed);
        let edges: Vec<(usize, usize, i64)> = (0..14)
            .flat_map(|from| (from + 1..14).map(move |to| (from, to)))
            .map(|(from, to)| (from, to, random.random_range(1..40) * (to - from) as i64))
            .filter(|(_, _, weight)| weight % 3 != 0)
            .collect();
        let database = Database::in_memory();
        for vertex in 0..14 {
            results(&database, &format!("g.addV().property(T.id, {vertex}L)"));
        }
        for (from, to, weight) in &edges {
            let script = format!("g.V({from}L).addE('e').to(V({to}L)).property('w', {weight}L)");
            results(&database, &script);
        }
        let lengths = shortest(&edges, 0);
        for to in 1..14 {
            for max in ["", ".with('maxInstances', 1)"] {
                let script = format!(
                    "g.withSack(0L).V(0L).until(hasId({to}L)).repeat(outE('e').sack(sum).by('w').inV())\
                     .with('policy', 'by sack()'){max}.limit(1).sack()"
                );
                let expected: Vec<Value> = lengths.get(&to).map(|length| Value::I64(*length)).into_iter().collect();
                assert_eq!(results(&database, &script), expected, "seed {seed}: {script}");
            }
        }
    }
}

/// Each policy finds the same rows, of several loops at once, in loops nested in loops and in other scopes.
#[test]
fn an_order_by_a_value_changes_no_result() {
    let database = grid();
    let start = id_of(START);
    for script in [
        format!("V({start}).repeat(both('e')).times(4).count()"),
        format!("V({start}).repeat(both('e')).emit().times(3).dedup().count()"),
        format!("V({start}, 3, 77).repeat(both('e')).emit().until(has('distance', lt(26))).dedup().id()"),
        format!("V({start}, 3).local(repeat(both('e')).times(3).count())"),
        format!("V({start}, 3).repeat(both('e').where(repeat(out('e')).times(2).has('distance'))).times(2).id()"),
        format!("V({start}, 3).repeat(repeat(out('e')).times(2).in('e')).emit().times(2).path()"),
        format!("V({start}).repeat(local(both('e').order().by('distance').limit(1))).times(3).path()"),
        format!("V({start}).values('distance').repeat(map(constant(1).sum())).times(2)"),
        format!("V({start}).until(loops().is(3)).repeat(union(out('e'), in('e'))).values('distance').sum()"),
    ] {
        let sorted = |script: &str| {
            let mut found: Vec<String> = results(&database, script).iter().map(|row| format!("{row:?}")).collect();
            found.sort();
            found
        };
        let expected = sorted(&format!("g.{script}"));
        assert!(!expected.is_empty(), "{script}");
        for policy in ["by distance", "by distance desc/bfs", "by unknown/fifo"] {
            for max in ["", ".with('maxInstances', 3)"] {
                let script = format!("g.with('policy', '{policy}'){max}.{script}");
                assert_eq!(sorted(&script), expected, "{script}");
            }
        }
    }
}
