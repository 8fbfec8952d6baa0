//! The memory budget of a program that embeds the database: graphs, queries, loads and transactions draw on it, and
//! every draw is given back.

use std::path::PathBuf;
use std::time::Duration;

use mangrove::{
    Database, DatabaseOptions, ErrorKind, Isolation, LoadOptions, MemoryBudget, Parameters, Purpose, QueryLimits,
    QueryOptions, Transaction, TransactionOptions, UpsertKeys, UserId, Value,
};

const MIB: u64 = 1 << 20;

/// An empty graph that draws on a budget.
fn database(budget: &MemoryBudget) -> Database {
    let memory_budget = budget.clone();
    Database::with_options(&DatabaseOptions { memory_budget, executor_count: 1, ..DatabaseOptions::default() })
}

/// Waits until nothing is in use: a collector may hold the last handle of a dropped graph.
fn check_all_is_given_back(budget: &MemoryBudget) {
    for _ in 0..1_000 {
        if budget.used_bytes() > 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    assert_eq!(budget.used_bytes(), 0);
}

/// A file with this number of persons.
fn people(name: &str, count: usize) -> PathBuf {
    let path = std::env::temp_dir().join(format!("mangrove-budget-{}-{name}.csv", std::process::id()));
    let rows: String = (0..count).map(|n| format!("{n},{},person\n", "text".repeat(40))).collect();
    std::fs::write(&path, format!("id:ID,note:string,:LABEL\n{rows}")).unwrap();
    path
}

#[test]
fn loads_are_refused_at_the_budget() {
    let budget = MemoryBudget::of(16 * MIB);
    let file = people("loads", 200_000);
    let files = std::slice::from_ref(&file);
    let database_of_bulk = database(&budget);
    let refused = database_of_bulk.load(files, &LoadOptions::default(), &mut |_| {}).unwrap_err();
    assert!(refused.kind() == ErrorKind::MemoryLimit && refused.message().contains("memory_budget"), "{refused}");
    assert!(budget.peak_bytes() > 10 * MIB, "{budget:?}");
    drop(database_of_bulk);
    check_all_is_given_back(&budget);
    let database_of_upsert = database(&budget);
    let refused = database_of_upsert.upsert(files, &LoadOptions::default(), UpsertKeys::default(), &mut |_| {});
    let refused = refused.unwrap_err();
    assert!(refused.kind() == ErrorKind::MemoryLimit && refused.message().contains("memory_budget"), "{refused}");
    assert_eq!(budget.used_for(Purpose::Loads), 0);
    // Existing elements can be read.
    assert!(database_of_upsert.query("g.V().hasLabel('person').limit(1)").unwrap().count() == 1);
    drop(database_of_upsert);
    check_all_is_given_back(&budget);
    std::fs::remove_file(file).unwrap();
}

#[test]
fn the_memory_of_a_load_beside_the_graph_counts() {
    // Other users have drawn nearly all of the budget.
    let budget = MemoryBudget::of(64 * MIB);
    let file = people("ids", 100_000);
    let graph = database(&budget);
    let others = budget.draw(Purpose::Queries, 63 * MIB - budget.used_bytes()).unwrap();
    let refused = graph.load(std::slice::from_ref(&file), &LoadOptions::default(), &mut |_| {}).unwrap_err();
    assert!(refused.message().contains("memory budget of 67108864 bytes"), "{refused}");
    assert!(graph.is_empty());
    drop(others);
    let report = graph.load(std::slice::from_ref(&file), &LoadOptions::default(), &mut |_| {}).unwrap();
    assert_eq!(report.vertices, 100_000);
    assert_eq!(budget.used_bytes(), budget.used_for(Purpose::Graphs));
    std::fs::remove_file(file).unwrap();
}

#[test]
fn a_graph_counts_what_it_uses() {
    let budget = MemoryBudget::of(256 * MIB);
    let graph = database(&budget);
    let is_told = |graph: &Database| {
        let (used, told) = (graph.memory().total_bytes(), budget.used_for(Purpose::Graphs));
        assert!(used.abs_diff(told) <= MIB / 2, "{used} bytes are used, and {told} counted");
    };
    is_told(&graph);
    for _ in 0..20 {
        graph.query("g.inject(1).repeat(union(identity(), identity())).times(12).addV('n').property('a', 1)").unwrap();
        is_told(&graph);
    }
    assert!(budget.used_bytes() > MIB, "{budget:?}");
    graph.query("g.V().drop()").unwrap();
    graph.collect_garbage();
    graph.compact();
    is_told(&graph);
    drop(graph);
    check_all_is_given_back(&budget);
}

/// A query that stops early, fails, is abandoned or ends gives back its draws; also one that runs in a recycled
/// instance.
#[test]
fn queries_give_back_however_they_end() {
    let budget = MemoryBudget::of(64 * MIB);
    let graph = database(&budget);
    graph.query("g.inject(1).repeat(union(identity(), identity())).times(15).addV('n').property('a', 1)").unwrap();
    let of_queries = || budget.used_for(Purpose::Queries);
    let options = |memory_bytes| {
        let limits = QueryLimits { memory_bytes, ..QueryLimits::default() };
        QueryOptions { limits, inline_messages: 1, ..QueryOptions::default() }
    };
    let heavy = graph.prepare("g.V().as('a').order().by('a').path()").unwrap();
    for _ in 0..3 {
        let mut results = graph.run(&heavy, &Parameters::new()).unwrap();
        results.next().unwrap().unwrap();
        assert!(of_queries() >= MIB, "{budget:?}");
        drop(results);
        assert_eq!(of_queries(), 0);
        assert_eq!(graph.run(&heavy, &Parameters::new()).unwrap().count(), 1 << 15);
        assert_eq!(of_queries(), 0);
        let mut count = 0;
        graph
            .run_shared(&heavy, &Parameters::new(), &options(u64::MAX), &mut |batch| {
                count += batch.len();
                Ok(())
            })
            .unwrap();
        assert_eq!((count, of_queries()), (1 << 15, 0));
        let failed =
            graph.run_with(&heavy, &Parameters::new(), &options(2 * MIB)).and_then(|results| results.collect());
        assert_eq!((failed.unwrap_err().kind(), of_queries()), (ErrorKind::MemoryLimit, 0));
    }
    // The budget refuses before the limit of the query.
    let others = budget.draw(Purpose::Graphs, budget.left_bytes() - MIB / 2).unwrap();
    let refused = graph.run(&heavy, &Parameters::new()).and_then(|results| results.collect()).unwrap_err();
    assert!(refused.message().contains("the query needs") && refused.message().contains("memory_budget"), "{refused}");
    assert_eq!(graph.query("g.V().limit(3).count()").unwrap().collect().unwrap(), [Value::I64(3)]);
    drop(others);
    assert_eq!(of_queries(), 0);
}

/// The query makes texts of 64 KiB. The results that wait for a slow reader are more than one message, and are bounded.
#[test]
fn results_that_wait_for_their_reader_count() {
    let budget = MemoryBudget::of(64 * MIB);
    let graph = database(&budget);
    let script = "g.inject(1..4096).unfold().asString().concat(x)";
    let prepared = graph.prepare(script).unwrap();
    let parameters: Parameters = [("x".into(), Value::from("x".repeat(64 << 10)))].into_iter().collect();
    let options = QueryOptions { inline_messages: 0, ..QueryOptions::default() };
    let (mut count, mut most) = (0, 0);
    graph
        .run_shared(&prepared, &parameters, &options, &mut |batch| {
            let length = |value: &Value| if let Value::String(text) = value { text.len() } else { 0 };
            let bytes: usize = batch.iter().map(|(text, _)| length(text)).sum();
            if count == 0 {
                // The query continues until its queue of results is full.
                std::thread::sleep(Duration::from_millis(200));
            }
            most = most.max(budget.used_for(Purpose::Queries));
            assert!(budget.used_for(Purpose::Queries) >= bytes as u64, "{budget:?}");
            count += batch.iter().map(|(_, bulk)| bulk).sum::<u64>();
            Ok(())
        })
        .unwrap();
    assert_eq!(count, 1 << 12);
    assert!((3 * MIB..16 * MIB).contains(&most), "{most}");
    assert_eq!(budget.used_for(Purpose::Queries), 0);
    // When a reader leaves, the waiting results are freed. A thread of the executors frees the memory of the operators.
    let left = graph.run_shared(&prepared, &parameters, &options, &mut |_| Err(mangrove::Error::invalid("enough")));
    assert_eq!(left.unwrap_err().message(), "enough");
    drop((prepared, graph));
    check_all_is_given_back(&budget);
}

/// The write sets of recent commits are kept for serializable transactions, count towards the budget, and are dropped
/// if others need the memory.
#[test]
fn the_history_of_commits_counts_and_gives_way() {
    let budget = MemoryBudget::of(64 * MIB);
    let graph = database(&budget);
    graph.query("g.inject(1).repeat(union(identity(), identity())).times(12).addV('n').property('a', 0)").unwrap();
    let prepared = graph.prepare("g.V().limit(300).property('a', 1).count()").unwrap();
    let commit = |times: usize| {
        for _ in 0..times {
            let tx =
                graph.begin_with(TransactionOptions { isolation: Isolation::Snapshot, ..Default::default() }).unwrap();
            tx.run(&prepared, &Parameters::new()).unwrap().collect().unwrap();
            tx.commit().unwrap();
        }
    };
    let of_history = || budget.used_for(Purpose::Transactions);
    let long = graph.begin().unwrap();
    long.query("g.V().hasLabel('other').count()").unwrap().collect().unwrap();
    commit(600);
    assert!(of_history() > MIB, "{budget:?}, {} bytes of history", graph.commit_history_bytes());
    let others = budget.draw(Purpose::Queries, budget.left_bytes()).unwrap();
    let kept = of_history();
    long.query("g.V().limit(1).count()").unwrap().collect().unwrap();
    drop(others);
    drop(long);
    commit(600);
    assert!(of_history() < kept, "{budget:?}, {kept} before");
    drop(graph);
    check_all_is_given_back(&budget);
}

/// The access set of a transaction counts until its end, and is refused if the budget has no room for it.
#[test]
fn the_memory_of_a_transaction_counts_until_its_end() {
    let budget = MemoryBudget::of(64 * MIB);
    let graph = database(&budget);
    graph.query("g.inject(1).repeat(union(identity(), identity())).times(16).addV('n').property('a', 0)").unwrap();
    let of_transactions = || budget.used_for(Purpose::Transactions);
    let before = of_transactions();
    // Read sets keep ids as hashes, which cannot be packed.
    let ids: Vec<UserId> = (0..65_536).map(|n| UserId::from(format!("person {n}").as_str())).collect();
    let look_up = |tx: &Transaction| {
        let mut found = Vec::new();
        ids.chunks(1_024).try_for_each(|ids| tx.view().find_vertices(ids, &mut found))
    };
    let write = |tx: &Transaction| tx.query("g.V().property('a', 2).count()")?.collect().map(drop);
    for work in [&look_up as &dyn Fn(&Transaction) -> mangrove::Result<()>, &write] {
        let tx = graph.begin().unwrap();
        work(&tx).unwrap();
        let kept = of_transactions() - before;
        assert!(kept >= MIB / 2, "{kept} bytes are kept");
        tx.rollback();
        assert_eq!(of_transactions(), before);
        // Other users have drawn nearly all of the budget.
        let tx = graph.begin().unwrap();
        let others = budget.draw(Purpose::Loads, budget.left_bytes() - MIB / 4).unwrap();
        let refused = work(&tx).unwrap_err();
        assert!(refused.kind() == ErrorKind::MemoryLimit && refused.message().contains("memory_budget"), "{refused}");
        drop(others);
        drop(tx);
        assert_eq!(of_transactions(), before);
    }
    // A transaction that only reads keeps no access set.
    let reader = graph.begin_read().unwrap();
    look_up(&reader).unwrap();
    assert_eq!(of_transactions(), before);
}

/// A deletion makes room, however small it is, and whichever limit was reached.
#[test]
fn deleted_elements_make_room() {
    for options in [
        DatabaseOptions { memory_budget: MemoryBudget::of(16 * MIB), ..DatabaseOptions::default() },
        DatabaseOptions { memory_limit_bytes: 14 * MIB, ..DatabaseOptions::default() },
    ] {
        let graph = Database::with_options(&options);
        let add = graph.prepare("g.addV('n').property('text', x)").unwrap();
        let parameters: Parameters = [("x".into(), Value::from("x".repeat(100_000)))].into_iter().collect();
        while graph.run(&add, &parameters).is_ok() {}
        graph.query("g.V().drop()").unwrap();
        let mut tries = 0;
        while graph.query("g.addV('n')").is_err() {
            tries += 1;
            assert!(tries < 1_000, "writes are refused still: {:?}", graph.garbage());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The bytes of a kind in `mangrove.memory`.
fn bytes_of(graph: &Database, kind: &str) -> u64 {
    let script = format!("g.call('mangrove.memory').where(select('kind').is('{kind}')).select('bytes')");
    match &graph.query(&script).unwrap().collect().unwrap()[..] {
        [Value::I64(bytes)] => *bytes as u64,
        other => panic!("{kind}: {other:?}"),
    }
}

/// Projections count, and those that are only kept for later algorithms go before a query, a write or a message is refused.
#[test]
fn projections_count_and_kept_ones_give_way() {
    let budget = MemoryBudget::of(64 * MIB);
    let graph = database(&budget);
    graph.query("g.inject(1).repeat(union(identity(), identity())).times(14).addV('n').property('a', 1)").unwrap();
    let ask = |script: &str| graph.query(script).and_then(|results| results.collect());
    let used = || budget.used_for(Purpose::Projections);
    assert_eq!((bytes_of(&graph, "kept projections"), used()), (0, 0));
    ask("g.call('mangrove.algo.wcc').count()").unwrap();
    let kept = bytes_of(&graph, "kept projections");
    assert!(kept > 100_000 && used().abs_diff(kept) < kept / 20, "{kept}, {budget:?}");
    assert_eq!(bytes_of(&graph, "total"), graph.memory().total_bytes() + kept);
    ask("g.call('mangrove.projection.create').with('name', 'all')").unwrap();
    let named = bytes_of(&graph, "named projections");
    assert!(named > 100_000 && used().abs_diff(kept + named) < kept / 10, "{named}, {budget:?}");
    // Others have left less than a query needs.
    let others = budget.draw(Purpose::Messages, budget.left_bytes()).unwrap();
    assert_eq!(ask("g.V().values('a').limit(100).count()").unwrap(), [Value::I64(100)]);
    assert_eq!(bytes_of(&graph, "kept projections"), 0, "the query took the place of the kept projection");
    assert_eq!(bytes_of(&graph, "named projections"), named);
    drop(others);
    ask("g.call('mangrove.algo.wcc').count()").unwrap();
    let others = budget.draw(Purpose::Messages, budget.left_bytes()).unwrap();
    ask("g.addV('m')").unwrap();
    assert_eq!(bytes_of(&graph, "kept projections"), 0, "so did the write");
    drop(others);
    let others = budget.draw(Purpose::Messages, budget.left_bytes() - named / 2).unwrap();
    let refused = ask("g.call('mangrove.projection.create').with('name', 'again')").unwrap_err();
    assert!(refused.message().contains("mangrove.projection.drop"), "{refused}");
    ask("g.call('mangrove.projection.drop').with('name', 'all')").unwrap();
    assert_eq!(bytes_of(&graph, "named projections"), 0);
    drop((others, graph));
    check_all_is_given_back(&budget);
}
