//! Projections have the vertices and lists of their view, and refreshed ones those of the new view.

use std::collections::BTreeMap;
use std::sync::Arc;

use mangrove_analytics::algorithm::triangles;
use mangrove_analytics::{Orientation, Projection, ProjectionOptions, Team};
use mangrove_graph::{
    Direction, EdgeId, ExpandCursor, ExpandRequest, Expansion, GraphView, LabelFilter, Numbers, ScanCursor, Share,
    Value, VertexId,
};
use mangrove_testdata::{case_count, first_seed};
use mangrove_txn::Transaction;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::common::{World, all, of_labels, with_teams};

/// The cells of each vertex: neighbors, with the bits of the weight and the edge.
type Rows = BTreeMap<VertexId, Vec<(VertexId, u64, u64)>>;

/// By scans and expansions.
fn expected(view: &dyn GraphView, options: &ProjectionOptions, direction: Direction) -> Rows {
    let (mut vertices, mut cursor) = (Vec::new(), ScanCursor::default());
    while !view.scan_vertices(&options.vertices, Share::ALL, &mut cursor, 100, &mut vertices).unwrap() {}
    let mut rows: Rows = vertices.iter().map(|vertex| (*vertex, Vec::new())).collect();
    let (mut found, mut cursor) = (Expansion::default(), ExpandCursor::default());
    let request = ExpandRequest { direction, labels: options.edges.clone(), edges: true, limit: usize::MAX };
    assert!(view.expand(&vertices, &request, &mut cursor, &mut found).unwrap());
    for at in 0..found.len() {
        if !rows.contains_key(&found.neighbor[at]) {
            continue;
        }
        let mut numbers = Numbers::default();
        let weight = options.weight.map(|key| {
            assert!(view.edge_numbers(&[found.edge[at]], key, &mut numbers).unwrap());
            numbers.floats.first().copied().unwrap_or(options.default_weight)
        });
        let edge = if options.names_edges { found.edge[at].to_bits() } else { 0 };
        let cell = (found.neighbor[at], weight.map_or(0, f64::to_bits), edge);
        rows.get_mut(&vertices[found.row[at] as usize]).unwrap().push(cell);
    }
    rows.values_mut().for_each(|row| row.sort_unstable());
    rows
}

fn rows_of<'p>(
    projection: &'p Projection,
    row: impl Fn(u32) -> &'p [u32],
    weights: impl Fn(u32) -> &'p [f64],
    edges: impl Fn(u32) -> &'p [EdgeId],
) -> Rows {
    let numbering = projection.numbering();
    let of = |at: u32| {
        let (weights, edges) = (weights(at), edges(at));
        let cell = |(nth, other): (usize, &u32)| {
            let weight = weights.get(nth).map_or(0, |weight| weight.to_bits());
            (numbering.vertex(*other), weight, edges.get(nth).map_or(0, |edge| edge.to_bits()))
        };
        let mut cells: Vec<_> = row(at).iter().enumerate().map(cell).collect();
        cells.sort_unstable();
        (numbering.vertex(at), cells)
    };
    numbering.present(0..numbering.positions()).map(of).collect()
}

fn check(projection: &Projection, view: &dyn GraphView, what: &str) {
    let options = projection.options();
    let out = rows_of(
        projection,
        |at| projection.outgoing(at),
        |at| projection.outgoing_weights(at),
        |at| projection.outgoing_edges(at),
    );
    let direction = if projection.is_directed() { Direction::Out } else { Direction::Both };
    assert_eq!(out, expected(view, options, direction), "{what}");
    assert_eq!(projection.vertex_count(), out.len() as u64, "{what}");
    assert_eq!(projection.cell_count(), out.values().map(|row| row.len() as u64).sum::<u64>(), "{what}");
    let incoming = rows_of(
        projection,
        |at| projection.incoming(at),
        |at| projection.incoming_weights(at),
        |at| projection.incoming_edges(at),
    );
    let direction = if projection.is_directed() { Direction::In } else { Direction::Both };
    assert_eq!(incoming, expected(view, options, direction), "{what}, incoming");
    let parts = projection.parts();
    let ends: Vec<usize> = parts.iter().map(|part| part.end).collect();
    let begins: Vec<usize> = parts.iter().map(|part| part.start).collect();
    assert!(begins.iter().skip(1).eq(ends.iter().take(ends.len().saturating_sub(1))), "{what}: {parts:?}");
    assert_eq!((begins.first().copied().unwrap_or(0), ends.last().copied().unwrap_or(0)), (0, projection.positions()));
    assert!(parts.iter().all(|part| !part.is_empty()), "{what}: {parts:?}");
}

fn read(world: &World) -> Transaction {
    world.manager.begin_read().unwrap()
}

#[test]
fn rows_are_those_of_expansions() {
    let first = first_seed(100);
    for seed in first..first + case_count(8) {
        let mut world = World::new(seed);
        world.write(30);
        with_teams(|team| {
            for orientation in [Orientation::Directed, Orientation::Undirected] {
                let weighted = all(orientation, Some(world.weight));
                let named = ProjectionOptions { names_edges: true, ..weighted.clone() };
                let of_some = of_labels(world.labels[0], world.along[0], orientation);
                let of_one =
                    ProjectionOptions { edges: LabelFilter::Any, weight: Some(world.weight), ..of_some.clone() };
                for options in [all(orientation, None), weighted, named, of_some, of_one] {
                    let view = read(&world);
                    let projection = Projection::of(&view, &options, team).unwrap();
                    check(&projection, &view, &format!("seed {seed}, {options:?}, {team:?}"));
                }
            }
        });
    }
}

#[test]
fn a_refreshed_projection_is_that_of_the_new_moment() {
    let first = first_seed(200);
    for seed in first..first + case_count(8) {
        let mut world = World::new(seed);
        world.write(4);
        let team = Team::alone();
        let weighted = all(Orientation::Directed, Some(world.weight));
        let choices = [
            all(Orientation::Directed, None),
            ProjectionOptions { names_edges: true, ..all(Orientation::Undirected, None) },
            weighted,
            of_labels(world.labels[0], world.along[1], Orientation::Undirected),
        ];
        for options in choices {
            let mut projection = Arc::new(Projection::of(&read(&world), &options, &team).unwrap());
            let earlier = read(&world);
            for step in 0..5 {
                // Small changes, and one that needs new pages.
                world.write(if step == 3 { 400 } else { 1 });
                let view = read(&world);
                projection = projection.refreshed(&view, &team).unwrap().0;
                check(&projection, &view, &format!("seed {seed}, step {step}, {options:?}"));
            }
            // Back to an earlier moment.
            let back = projection.refreshed(&earlier, &team).unwrap().0;
            check(&back, &earlier, &format!("seed {seed}, back, {options:?}"));
        }
    }
}

#[test]
fn a_reversed_projection_keeps_its_moment_and_is_refreshed_turned_around() {
    let mut world = World::new(first_seed(300));
    world.write(30);
    let (team, options) = (Team::alone(), all(Orientation::Directed, Some(world.weight)));
    let projection = Projection::of(&read(&world), &options, &team).unwrap();
    let mut reversed = Arc::new(projection.clone().reversed());
    assert_eq!(reversed.commit(), projection.commit());
    for steps in [0, 1, 1, 400] {
        world.write(steps);
        let view = read(&world);
        reversed = reversed.refreshed(&view, &team).unwrap().0;
        assert_eq!(reversed.commit(), view.shown_commit());
        check(&(*reversed).clone().reversed(), &view, &format!("after {steps} more steps"));
    }
}

#[test]
fn only_changed_pages_are_read_again() {
    let mut world = World::new(7);
    world.write(2_000);
    let team = Team::alone();
    let projection = Arc::new(Projection::of(&read(&world), &all(Orientation::Directed, None), &team).unwrap());
    let (same, refreshed) = projection.refreshed(&read(&world), &team).unwrap();
    assert!(Arc::ptr_eq(&same, &projection) && refreshed.read == 0 && refreshed.kept > 3, "{refreshed:?}");
    let txn = world.begin();
    txn.insert_edge(world.vertices[0], world.vertices[0], world.along[0], None).unwrap();
    txn.commit().unwrap();
    let view = read(&world);
    let (next, refreshed) = projection.refreshed(&view, &team).unwrap();
    assert_eq!((refreshed.read, next.cell_count()), (1, projection.cell_count() + 1));
    check(&next, &view, "an edge more");
    // What a transaction has written itself is in no commit.
    let txn = world.begin();
    txn.insert_edge(world.vertices[1], world.vertices[1], world.along[0], None).unwrap();
    txn.finish_statement().unwrap();
    let (own, refreshed) = next.refreshed(&txn, &team).unwrap();
    assert_eq!((refreshed.kept, own.commit()), (0, None));
    check(&own, &txn, "own changes");
    txn.rollback();
    let view = read(&world);
    check(&own.refreshed(&view, &team).unwrap().0, &view, "after a rollback");
}

/// Edges come and leave, parallel ones and loops too, at vertices with many edges and with few. Two projections are refreshed at their own pace.
#[test]
fn rows_are_amended_by_what_commits_have_changed() {
    let first = first_seed(400);
    for seed in first..first + case_count(6) {
        let mut world = World::new(seed);
        world.write(200);
        // Those of deleted vertices have gone, too.
        world.edges = edges_of(&read(&world));
        let mut rng = SmallRng::seed_from_u64(seed);
        let team = Team::alone();
        let of_some = of_labels(world.labels[0], world.along[0], Orientation::Directed);
        let of_one = ProjectionOptions { edges: LabelFilter::Any, ..of_some.clone() };
        let (directed, undirected) = (all(Orientation::Directed, None), all(Orientation::Undirected, None));
        let weighted =
            |options: &ProjectionOptions| ProjectionOptions { weight: Some(world.weight), ..options.clone() };
        let named = |options: &ProjectionOptions| ProjectionOptions { names_edges: true, ..options.clone() };
        let both = weighted(&named(&of_some));
        let of_edges = [weighted(&directed), weighted(&undirected), named(&undirected), weighted(&of_some), both];
        let choices = [directed, undirected, of_some, of_one].into_iter().chain(of_edges).map(|options| {
            let projection = Projection::of(&read(&world), &options, &team).unwrap();
            [Arc::new(projection.clone()), Arc::new(projection.reversed())]
        });
        let mut projections: Vec<Arc<Projection>> = choices.into_iter().flatten().collect();
        let mut amended = vec![0; projections.len()];
        for step in 0..12 {
            // Few changes, and so many that some rows lose many cells.
            for _ in 0..[3, 40][step % 2] {
                let txn = world.begin();
                for _ in 0..rng.random_range(1..8) {
                    if rng.random_bool(0.3) && !world.edges.is_empty() {
                        let edge = world.edges[rng.random_range(0..world.edges.len())];
                        let length = Value::F64(f64::from(rng.random_range(0..40_u32)) / 8.0);
                        txn.set_edge_property(edge, world.weight, length).unwrap();
                    } else if rng.random_bool(0.5) && world.edges.len() > 50 {
                        let at = rng.random_range(0..world.edges.len());
                        txn.delete_edge(world.edges.swap_remove(at)).unwrap();
                    } else {
                        let mut any =
                            |few: bool| world.vertices[rng.random_range(0..if few { 3 } else { world.vertices.len() })];
                        let ends = [any(true), any(step % 3 == 0)];
                        let label = world.along[usize::from(rng.random_bool(0.3))];
                        world.edges.push(txn.insert_edge(ends[0], ends[1], label, None).unwrap());
                    }
                }
                // What is rolled back is no change.
                if rng.random_bool(0.9) {
                    txn.commit().unwrap();
                } else {
                    txn.rollback();
                    world.edges = edges_of(&read(&world));
                }
            }
            if step == 7 {
                world.manager.compact();
            }
            let view = read(&world);
            for (nth, projection) in projections.iter_mut().enumerate() {
                if nth % 2 == 1 && step % 4 == 1 {
                    continue;
                }
                let (next, refreshed) = projection.refreshed(&view, &team).unwrap();
                amended[nth] += refreshed.amended;
                *projection = next;
                // Commits that changed nothing of a projection leave it as it is.
                let is_same = refreshed.read + refreshed.amended == 0;
                assert!(is_same || projection.commit() == view.shown_commit());
                let is_turned = nth % 2 == 1;
                let turned = || (**projection).clone().reversed();
                let what = format!("seed {seed}, step {step}, {:?}", projection.options());
                check(&if is_turned { turned() } else { (**projection).clone() }, &view, &what);
                let again = Projection::of(&view, projection.options(), &team).unwrap();
                assert_eq!(
                    triangles::total(projection, &team).unwrap(),
                    triangles::total(&again, &team).unwrap(),
                    "{what}"
                );
            }
        }
        assert!(amended.iter().all(|amended| *amended > 10), "seed {seed}: {amended:?}");
    }
}

fn edges_of(view: &dyn GraphView) -> Vec<EdgeId> {
    let (mut edges, mut cursor) = (Vec::new(), ScanCursor::default());
    while !view.scan_edges(&LabelFilter::Any, Share::ALL, &mut cursor, 1_000, &mut edges).unwrap() {}
    edges
}

/// Two edges with the same ends, of which the projection has one.
#[test]
fn a_weight_of_an_edge_with_another_label_is_none_of_the_projection() {
    let world = World::new(5);
    let txn = world.begin();
    let ends = [0, 1].map(|_| txn.insert_vertex(world.labels[0], None).unwrap());
    let edges = world.along.map(|along| txn.insert_edge(ends[0], ends[1], along, None).unwrap());
    txn.commit().unwrap();
    let team = Team::alone();
    let of_one = of_labels(world.labels[0], world.along[0], Orientation::Directed);
    let options = ProjectionOptions { weight: Some(world.weight), ..of_one };
    let mut projection = Arc::new(Projection::of(&read(&world), &options, &team).unwrap());
    // The first refresh begins the notes of properties and the log of changes.
    for (step, (edge, weight)) in [(0, 2.0), (0, 3.0), (0, 4.0), (1, 5.0), (0, 6.0), (1, 7.0)].into_iter().enumerate() {
        let txn = world.begin();
        txn.set_edge_property(edges[edge], world.weight, Value::F64(weight)).unwrap();
        txn.commit().unwrap();
        let view = read(&world);
        let (next, refreshed) = projection.refreshed(&view, &team).unwrap();
        check(&next, &view, &format!("step {step}"));
        assert_eq!(refreshed.amended, usize::from(step >= 1), "step {step}");
        projection = next;
    }
    let (same, refreshed) = projection.refreshed(&read(&world), &team).unwrap();
    assert!(Arc::ptr_eq(&same, &projection) && refreshed.kept > 0, "{refreshed:?}");
}

#[test]
fn a_page_that_gets_a_vertex_is_read_and_not_amended() {
    let mut world = World::new(9);
    world.write(60);
    let (team, options) = (Team::alone(), all(Orientation::Directed, None));
    let mut projection = Arc::new(Projection::of(&read(&world), &options, &team).unwrap());
    let mut refresh = |world: &World, write: &dyn Fn(&Transaction)| {
        let txn = world.begin();
        write(&txn);
        txn.commit().unwrap();
        let view = read(world);
        let (next, refreshed) = projection.refreshed(&view, &team).unwrap();
        check(&next, &view, "refreshed");
        projection = next;
        (refreshed.read, refreshed.amended)
    };
    let link = |txn: &Transaction| {
        txn.insert_edge(world.vertices[0], world.vertices[0], world.along[0], None).unwrap();
    };
    assert_eq!(refresh(&world, &link), (1, 0), "no refresh has asked for changes before");
    assert_eq!(refresh(&world, &link), (0, 1));
    let (read, amended) = refresh(&world, &|txn| txn.delete_vertex(world.vertices[0]).unwrap());
    assert_eq!(read, 1, "the page of the vertex; {amended} others have lost edges");
}

#[test]
fn a_vertex_is_found_by_its_own_id_and_not_by_that_of_an_earlier_one() {
    let mut world = World::new(11);
    world.write(3);
    let team = Team::alone();
    let txn = world.begin();
    let deleted = txn.insert_vertex(world.labels[0], None).unwrap();
    txn.commit().unwrap();
    let txn = world.begin();
    txn.delete_vertex(deleted).unwrap();
    txn.commit().unwrap();
    world.manager.compact();
    let inserted = (0..5_000).map(|_| {
        let txn = world.begin();
        let vertex = txn.insert_vertex(world.labels[0], None).unwrap();
        txn.commit().unwrap();
        vertex
    });
    let mut in_its_place = inserted.filter(|vertex| vertex.with_generation(0) == deleted.with_generation(0));
    let again = in_its_place.next().expect("a free place is used again");
    let projection = Projection::of(&read(&world), &all(Orientation::Directed, None), &team).unwrap();
    let numbering = projection.numbering();
    assert_eq!(numbering.position(deleted), numbering.position(again));
    assert_eq!((numbering.find(deleted), numbering.find(again)), (None, Some(numbering.position(again))));
}
