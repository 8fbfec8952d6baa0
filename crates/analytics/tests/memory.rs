//! Memory and progress of algorithms: projections draw from the budget of the process and give way, queries are charged for what algorithms hold, and
//! a run that ends early gives everything back.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use mangrove_analytics::cache::ProjectionCache;
use mangrove_analytics::named::Choice;
use mangrove_analytics::registry::{ALGORITHMS, AlgorithmInfo, Output, find};
use mangrove_analytics::{Orientation, Projection, Team};
use mangrove_flow::clock::Clock;
use mangrove_flow::{QueryControl, QueryLimits, QueryProgress, QueryProgressFigures};
use mangrove_graph::{ErrorKind, GraphView, MemoryBudget, Purpose, Result, UserId, Value};
use mangrove_txn::TransactionManager;

use crate::common::{World, all, graph_of};

const LIMIT: u64 = 1 << 20;

fn projections(budget: &MemoryBudget) -> u64 {
    budget.used_for(Purpose::Projections)
}

/// Fails unless the second number is the first but for a twentieth.
#[track_caller]
fn assert_about(one: u64, other: u64) {
    assert!(one.abs_diff(other) <= one / 20, "{one} and {other}");
}

/// A graph of several pages, in which each vertex has three edges.
fn several_pages() -> TransactionManager {
    let edge = |at: i64, step: i64| (at, at * step % 6_000, (at % 7) as f64);
    let edges: Vec<_> = (0..6_000).flat_map(|at| [edge(at, 3), edge(at, 5), edge(at, 7)]).collect();
    graph_of(&(0..6_000).collect::<Vec<_>>(), &edges).0
}

#[test]
fn a_projection_draws_its_pages_until_the_last_one_that_shares_them_is_dropped() {
    let manager = several_pages();
    let budget = MemoryBudget::of(LIMIT);
    let team = Team::alone().drawing_on(&budget);
    let options = all(Orientation::Directed, None);
    let first = Arc::new(Projection::of(&manager.begin_read().unwrap(), &options, &team).unwrap());
    let whole = projections(&budget);
    assert_about(first.bytes(), whole);
    let txn = manager.begin(Default::default()).unwrap();
    let (mut ends, ids) = (Vec::new(), [1, 2].map(UserId::int));
    txn.find_vertices(&ids, &mut ends).unwrap();
    let label = manager.store().catalog().intern_label_text("edge");
    txn.insert_edge(ends[0].unwrap(), ends[1].unwrap(), label, None).unwrap();
    txn.commit().unwrap();
    let (second, did) = first.refreshed(&manager.begin_read().unwrap(), &team).unwrap();
    assert!(did.read < did.kept, "{did:?}");
    assert!(projections(&budget) > whole && projections(&budget) < whole * 3 / 2, "shared pages are drawn once");
    drop(first);
    assert_about(second.bytes(), projections(&budget));
    drop(second);
    assert_eq!(budget.used_bytes(), 0);
    let little = MemoryBudget::of(whole / 2);
    let refused = Projection::of(&manager.begin_read().unwrap(), &options, &Team::alone().drawing_on(&little));
    let refused = refused.map(|projection| projection.bytes()).unwrap_err();
    assert!(refused.kind() == ErrorKind::MemoryLimit && refused.message().contains("a projection needs"), "{refused}");
    assert_eq!(little.used_bytes(), 0);
}

#[test]
fn kept_projections_that_no_algorithm_uses_give_way() {
    let manager = several_pages();
    let budget = MemoryBudget::of(LIMIT);
    let cache = ProjectionCache::giving_way_in(&budget);
    let team = Team::alone().drawing_on(&budget);
    let view = manager.begin_read().unwrap();
    let read = |orientation| cache.projection(&view, &all(orientation, None), &team).unwrap();
    let used = read(Orientation::Directed);
    drop(read(Orientation::Undirected));
    assert_eq!(cache.count(), 2);
    // One is in use: only the other gives way.
    let rest = LIMIT - used.bytes() * 11 / 10;
    assert!(rest > budget.left_bytes());
    let query = budget.draw(Purpose::Queries, rest).unwrap();
    assert_eq!(cache.count(), 1);
    assert_about(used.bytes(), projections(&budget));
    assert!(budget.draw(Purpose::Queries, used.bytes()).is_err());
    drop(used);
    let other = budget.draw(Purpose::Messages, LIMIT - rest).unwrap();
    assert_eq!((cache.count(), projections(&budget)), (0, 0));
    drop((query, other));
    // A projection takes the place of one that was used longer ago.
    let one = read(Orientation::Directed).bytes();
    let others = budget.draw(Purpose::Graphs, budget.left_bytes() - one / 10).unwrap();
    let again = read(Orientation::Undirected);
    assert_eq!(cache.count(), 1);
    assert_about(again.bytes(), projections(&budget));
    drop((again, others));
    drop(cache);
    assert_eq!(budget.used_bytes(), 0);
}

#[test]
fn a_refresh_without_room_for_both_reads_anew() {
    let mut world = World::new(5);
    world.write(60);
    let budget = MemoryBudget::of(LIMIT);
    let cache = ProjectionCache::giving_way_in(&budget);
    let team = Team::alone().drawing_on(&budget);
    let options = all(Orientation::Directed, Some(world.weight));
    let one = cache.projection(&world.manager.begin_read().unwrap(), &options, &team).unwrap().bytes();
    let _others = budget.draw(Purpose::Graphs, LIMIT - one * 3 / 2).unwrap();
    for _ in 0..3 {
        world.write(2);
        let view = world.manager.begin_read().unwrap();
        let refreshed = cache.projection(&view, &options, &team).unwrap();
        assert_eq!(refreshed.commit(), view.shown_commit());
        assert_about(refreshed.bytes(), projections(&budget));
    }
}

#[test]
fn named_projections_are_refused_when_there_is_no_room() {
    let manager = several_pages();
    let budget = MemoryBudget::of(LIMIT);
    let cache = ProjectionCache::giving_way_in(&budget);
    let team = Team::alone().drawing_on(&budget);
    let view = manager.begin_read().unwrap();
    let first = cache.named().create("first", Choice::default(), &view, &team).unwrap().projection.bytes();
    assert_about(first, projections(&budget));
    assert_eq!(cache.named().bytes(), first);
    // What has a name does not give way.
    let others = budget.draw(Purpose::Graphs, budget.left_bytes() - first / 2).unwrap();
    assert!(budget.draw(Purpose::Queries, first).is_err());
    let refused = cache.named().create("second", Choice::default(), &view, &team).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::MemoryLimit);
    for word in ["'second'", "memory budget", "mangrove.projection.drop"] {
        assert!(refused.message().contains(word), "{refused}");
    }
    assert_about(first, projections(&budget));
    drop(cache.named().drop("first").unwrap());
    cache.named().create("second", Choice::default(), &view, &team).unwrap();
    drop((others, cache));
    assert_eq!(budget.used_bytes(), 0);
}

/// A clock that each look moves on, so that a limit of time is a number of looks. It notes what the progress of the query is then.
#[derive(Default)]
struct Looks {
    looks: AtomicU64,
    progress: Arc<QueryProgress>,
    seen: Mutex<Vec<Option<QueryProgressFigures>>>,
}

impl Clock for Looks {
    fn now_nanos(&self) -> u64 {
        self.seen.lock().unwrap().push(self.progress.read());
        self.looks.fetch_add(1, Ordering::Relaxed)
    }
}

/// A run of an algorithm, with the control of its query and the number of looks whether the query has ended.
struct Run {
    output: Result<Output>,
    control: Arc<QueryControl>,
    looks: u64,
    seen: Vec<Option<QueryProgressFigures>>,
}

/// Runs an algorithm that finds its query over after so many looks.
fn run(
    algorithm: &AlgorithmInfo,
    options: &[(String, Value)],
    view: &dyn GraphView,
    cache: &ProjectionCache,
    (budget, looks): (&MemoryBudget, u64),
) -> Run {
    let clock = Arc::new(Looks::default());
    let limits = QueryLimits { time_nanos: Some(looks), ..QueryLimits::default() };
    let control = Arc::new(QueryControl::new(limits, clock.clone(), Arc::default()).drawing_on(budget));
    control.show_progress_in(clock.progress.clone());
    let team = Team::alone().controlled_by(control.clone()).drawing_on(budget);
    let output = algorithm.run(view, cache, options, &team);
    drop(team);
    assert_eq!(clock.progress.read(), None, "nothing goes on after the run");
    let seen = std::mem::take(&mut *clock.seen.lock().unwrap());
    Run { output, control, looks: clock.looks.load(Ordering::Relaxed) - 1, seen }
}

/// The options of runs of an algorithm: what must be given; and with weights, if it takes them.
fn options_of(algorithm: &AlgorithmInfo) -> Vec<Vec<(String, Value)>> {
    let given = |name: &str, value: Value| (name.to_owned(), value);
    let mut needed = Vec::new();
    for option in algorithm.all_options() {
        match option.name {
            "source" => needed.push(given("source", 1.into())),
            "target" => needed.push(given("target", 105.into())),
            "weight" if option.default.is_none() => needed.push(given("weight", "weight".into())),
            // With all sources the rows are more than the limit.
            "sources" => needed.push(given("sources", Value::list((1..200).map(Value::I64).collect()))),
            "samples" => needed.push(given("samples", 200.into())),
            "k" => needed.push(given("k", 5.into())),
            _ => {}
        }
    }
    let weighted = algorithm.all_options().any(|option| option.name == "weight" && option.default.is_some());
    let with_weights = [&needed[..], &[given("weight", "weight".into())]].concat();
    if weighted { vec![needed, with_weights] } else { vec![needed] }
}

#[test]
fn an_algorithm_that_is_ended_at_any_point_gives_its_memory_back() {
    let manager = several_pages();
    let view = manager.begin_read().unwrap();
    let budget = MemoryBudget::of(1 << 30);
    for algorithm in ALGORITHMS {
        for options in options_of(algorithm) {
            let what = format!("{} {options:?}", algorithm.name);
            let cache = ProjectionCache::giving_way_in(&budget);
            cache.set_limit(0);
            let whole = run(algorithm, &options, &view, &cache, (&budget, u64::MAX));
            let found = whole.output.unwrap_or_else(|error| panic!("{what}: {error}"));
            // The projection alone has a look a page.
            assert!(whole.looks > 6, "{what}: {} looks", whole.looks);
            assert_eq!((whole.control.memory(), projections(&budget)), (0, 0), "{what}");
            let all = whole.looks;
            let mut points = vec![0, 1, 2, 5, all / 3, all / 2, all * 3 / 4, all.saturating_sub(2), all - 1];
            points.sort_unstable();
            points.dedup();
            for point in points.into_iter().filter(|point| *point < all) {
                let ended = run(algorithm, &options, &view, &cache, (&budget, point));
                let error =
                    ended.output.map(|output| output.len()).expect_err(&format!("{what} after {point} of {all}"));
                assert_eq!(error.kind(), ErrorKind::Timeout, "{what}: {error}");
                assert_eq!(ended.control.memory(), 0, "{what} after {point} of {all}");
                assert_eq!(projections(&budget), 0, "{what} after {point} of {all}");
            }
            // With a kept projection that an ended run has read, or has begun to read.
            cache.set_limit(u64::MAX);
            for point in [3, all / 2] {
                run(algorithm, &options, &view, &cache, (&budget, point));
            }
            let again = run(algorithm, &options, &view, &cache, (&budget, u64::MAX));
            assert_eq!(again.output.unwrap(), found, "{what}: the same after runs that were ended");
        }
    }
    assert_eq!(budget.used_bytes(), 0);
}

#[test]
fn estimates_are_what_a_query_is_charged_and_follow_the_options() {
    let manager = several_pages();
    let view = manager.begin_read().unwrap();
    let budget = MemoryBudget::of(1 << 30);
    let cache = ProjectionCache::giving_way_in(&budget);
    for algorithm in ALGORITHMS {
        let options = options_of(algorithm).swap_remove(0);
        cache.clear();
        let estimate = algorithm.estimate(&view, &cache, &options).unwrap();
        assert!(!estimate.is_kept && estimate.state > 0, "{}: {estimate:?}", algorithm.name);
        assert_eq!(cache.count(), 0, "nothing is read");
        let ran = run(algorithm, &options, &view, &cache, (&budget, u64::MAX));
        assert_eq!(ran.control.memory_peak(), estimate.needed(), "{}", algorithm.name);
        let bytes = cache.bytes();
        assert!(bytes / 2 <= estimate.projection && estimate.projection <= bytes * 2, "{estimate:?}, {bytes}");
        let kept = algorithm.estimate(&view, &cache, &options).unwrap();
        assert!(kept.is_kept && kept.needed() == estimate.state, "{}: {kept:?}", algorithm.name);
        // Refused before anything is read.
        cache.clear();
        let limits = QueryLimits { memory_bytes: estimate.needed() - 1, ..QueryLimits::default() };
        let control = Arc::new(QueryControl::new(limits, Arc::new(Looks::default()), Arc::default()));
        let team = Team::alone().controlled_by(control.clone()).drawing_on(&budget);
        let refused = algorithm.run(&view, &cache, &options, &team).map(|output| output.len()).unwrap_err();
        assert_eq!((refused.kind(), control.memory()), (ErrorKind::MemoryLimit, 0), "{}: {refused}", algorithm.name);
        assert_eq!(cache.count(), 0, "{}", algorithm.name);
    }
    let state = |name: &str, option: &str, value: i64| {
        find(name).unwrap().estimate(&view, &cache, &[(option.to_owned(), value.into())]).unwrap().state
    };
    assert!(state("fast_rp", "dimensions", 256) > state("fast_rp", "dimensions", 128) * 19 / 10);
    assert!(state("random_walks", "walks", 20) > state("random_walks", "walks", 10) * 19 / 10);
    assert!(state("random_walks", "sources", 3) < state("random_walks", "walks", 1));
    // Rows are as many as pairs, up to the limit.
    let pairs = |option: &str, value: i64| state("all_shortest_paths", option, value);
    let without = pairs("limit", 1) - 28;
    assert_eq!(pairs("limit", 1_000), without + 28_000);
    let of_one = pairs("sources", 1) - without;
    assert!(of_one > 28 && of_one < 28_000_000, "{of_one}");
    assert_eq!(pairs("limit", i64::MAX), without + of_one * (of_one / 28), "all vertices are sources");
    let error = find("fast_rp").unwrap().estimate(&view, &cache, &[("dimensions".to_owned(), 0.into())]).unwrap_err();
    assert!(error.message().contains("a whole number from 1 to 4096"), "{error}");
}

#[test]
fn a_run_shows_what_it_does_and_how_far_it_has_come() {
    let manager = several_pages();
    let view = manager.begin_read().unwrap();
    let budget = MemoryBudget::of(1 << 30);
    for algorithm in ALGORITHMS {
        let cache = ProjectionCache::giving_way_in(&budget);
        let options = options_of(algorithm).swap_remove(0);
        let ran = run(algorithm, &options, &view, &cache, (&budget, u64::MAX));
        let shown: Vec<QueryProgressFigures> = ran.seen.into_iter().flatten().collect();
        let (first, last) = (shown[0], shown[shown.len() - 1]);
        assert_eq!((first.phase, first.unit, first.done), ("projection", "pages", 0), "{}", algorithm.name);
        assert!(first.all >= 6, "{}: {first:?}", algorithm.name);
        assert_eq!(last.phase, algorithm.name);
        assert!(shown.iter().all(|figures| figures.done <= figures.all), "{}: {shown:?}", algorithm.name);
        let (unit, all) = match algorithm.name {
            "pagerank" | "hits" | "katz" | "cdlp" | "peer_pressure" | "fast_rp" => ("rounds", None),
            "betweenness" | "closeness" | "harmonic" => ("sources", Some(200)),
            "all_shortest_paths" | "k_hop" => ("sources", Some(199)),
            "k_shortest_paths" => ("paths", Some(5)),
            "louvain" | "leiden" => ("levels", Some(32)),
            _ => ("parts", None),
        };
        assert!(shown.iter().any(|figures| figures.unit == unit), "{}: {shown:?}", algorithm.name);
        let counted: Vec<_> = shown.iter().filter(|figures| figures.unit == unit).collect();
        assert!(
            all.is_none_or(|all| counted.iter().all(|figures| figures.all == all)),
            "{}: {counted:?}",
            algorithm.name
        );
        if unit == "rounds" || unit == "sources" {
            assert!(counted.iter().any(|figures| figures.done > 0), "{}: {counted:?}", algorithm.name);
        }
    }
}
