//! Queries that several threads work on: the results that must not depend on which thread did what.

use mangrove::{Database, Parameters, QueryOptions, Value};

/// A chain of managers: p0 manages p1, and so on. Everyone has a name and three skills.
fn company(people: u32) -> Database {
    let database = Database::in_memory();
    for n in 0..people {
        let script = format!(
            "g.addV('person').property(T.id, {n}).property('name', 'p{n}')\
             .addV('skill').property('level', 1).addE('has').from(V({n}))"
        );
        database.query(&script).unwrap().collect().unwrap();
        for level in [2, 3] {
            let skill = format!("g.addV('skill').property('level', {level}).as('s').V({n}).addE('has').to('s')");
            database.query(&skill).unwrap().collect().unwrap();
        }
        if n > 0 {
            let edge = format!("g.V({}).addE('manages').to(V({n}))", n - 1);
            database.query(&edge).unwrap().collect().unwrap();
        }
    }
    database
}

/// The results of a traversal with simulated helpers, sorted by their texts.
fn helped(database: &Database, traversal: &str, seed: u64) -> Vec<String> {
    let prepared = database.prepare(traversal).unwrap();
    let transaction = database.begin().unwrap();
    let results = transaction.run_helped(&prepared, &Parameters::new(), &QueryOptions::default(), seed).unwrap();
    let mut texts: Vec<String> = results.iter().map(|(value, times)| format!("{value:?} {times}")).collect();
    texts.sort();
    texts
}

fn alone(database: &Database, traversal: &str) -> Vec<String> {
    let prepared = database.prepare(traversal).unwrap();
    let results = database.run(&prepared, &Parameters::new()).unwrap().collect_bulked().unwrap();
    let mut texts: Vec<String> = results.iter().map(|(value, times)| format!("{value:?} {times}")).collect();
    texts.sort();
    texts
}

/// The results of a nested traversal for one row keep their order: pairs, ways, first results.
#[test]
fn nested_traversals_keep_the_order_of_their_results() {
    let database = company(40);
    for traversal in [
        "g.V().hasLabel('person').local(union(label(), id()).fold())",
        "g.V().hasLabel('person').project('pair').by(union(values('name'), label(), id()).fold())",
        "g.V().hasLabel('person').map(union(in('manages').values('name'), values('name')).fold())",
        "g.V().hasLabel('person').project('way').by(repeat(out('manages')).emit().values('name').fold())",
        "g.V().hasLabel('person').project('first').by(repeat(out('manages')).emit().values('name'))",
        "g.V().hasLabel('person').local(out('has').values('level').limit(2).fold())",
        "g.V().hasLabel('person').order().by('name').values('name').limit(7)",
    ] {
        let expected = alone(&database, traversal);
        assert!(expected.len() > 5, "{traversal}: {expected:?}");
        for seed in 0..60 {
            assert_eq!(helped(&database, traversal, seed), expected, "{traversal}, seed {seed}");
        }
    }
}

/// Threads that help return sums, counts, groups and properties as one thread does.
#[test]
fn what_is_combined_is_the_same() {
    let database = company(40);
    for traversal in [
        "g.V().out().count()",
        "g.V().values('level').sum()",
        "g.V().values('level').mean()",
        "g.V().values('level').max()",
        "g.V().hasLabel('skill').union(values('level').min(), values('level').count())",
        "g.V().values('level').union(sum(), max(), count())",
        "g.V().out().union(count(), count())",
        "g.V().values('level', 'name').union(count(), count())",
        "g.V().hasLabel('person').out('has').groupCount().by(in('has').count()).unfold()",
        "g.V().groupCount().by(both().count()).unfold()",
        "g.V().order().by(both().count()).by(id())",
        "g.V().where(both().count().is(gt(3)))",
        "g.V().or(out('has').count().is(3), in('manages')).id()",
        "g.V().hasLabel('person').out('has').groupCount().by('level').unfold()",
        "g.V().hasLabel('person').out('has').group().by('level').by(count()).unfold()",
        "g.V().out().label().dedup()",
        "g.V().order().by(id())",
        "g.V().optional(out('manages')).count()",
        "g.V().optional(outE('manages')).path()",
        "g.V().both().optional(out('manages')).optional(in('has')).groupCount().by('name').unfold()",
        "g.V().hasLabel('person').out('manages')",
    ] {
        let expected = alone(&database, traversal);
        assert!(!expected.is_empty() && expected != [format!("{:?} 1", Value::Null)], "{traversal}");
        for seed in 0..30 {
            assert_eq!(helped(&database, traversal, seed), expected, "{traversal}, seed {seed}");
        }
    }
}

/// Threads share what a `dedup()` has seen, and the rows that wait for the next iteration of a loop.
#[test]
fn what_is_shared_is_the_same() {
    let database = company(40);
    for traversal in [
        "g.V().out().dedup().count()",
        "g.V().both().both().dedup()",
        "g.V().outE().dedup().inV().dedup().count()",
        "g.V().hasLabel('skill').values('level').dedup()",
        "g.V().union(values('level'), both(), outE()).dedup().count()",
        "g.V().both().dedup().by(label()).count()",
        "g.V().hasLabel('person').as('a').out('has').dedup('a').count()",
        "g.V().repeat(both('manages')).times(3).groupCount().unfold()",
        "g.V().repeat(both('manages')).times(3).dedup().count()",
        "g.V().repeat(both('manages').dedup()).emit().count()",
        "g.V(0, 20).repeat(both('manages').dedup()).emit().times(9)",
        "g.V(0).repeat(both('manages')).emit().times(12).dedup().count()",
        "g.V().repeat(out()).until(hasLabel('skill')).groupCount().unfold()",
        "g.V().until(hasLabel('skill')).repeat(out()).count()",
        "g.V().emit(hasLabel('person')).repeat(out('manages')).times(4).groupCount().by('name').unfold()",
        "g.V(0, 1, 2).repeat(out('manages').repeat(both('manages')).times(2)).times(3).groupCount().unfold()",
        "g.V(0, 1, 2).repeat(both('manages')).times(4).path().dedup().count()",
        "g.V().both().barrier().both().barrier().groupCount().unfold()",
        "g.V().barrier().values('level').barrier().count()",
        "g.V(0, 20).repeat(both('manages').barrier()).times(5).groupCount().unfold()",
        "g.V().both().barrier().limit(10).count()",
        "g.V().outE().barrier().outV().barrier().dedup()",
        "g.withSack(1.0d).V().both().barrier(normSack).both().count()",
        "g.V().both().both().both().both().count()",
        "g.V().union(both().both().both(), outE().inV().both().both()).both().count()",
    ] {
        let expected = alone(&database, traversal);
        assert!(!expected.is_empty() && expected != [format!("{:?} 1", Value::I64(0))], "{traversal}");
        for seed in 0..30 {
            assert_eq!(helped(&database, traversal, seed), expected, "{traversal}, seed {seed}");
        }
    }
}

/// Helpers work off nested traversals themselves, with the states of all operators inside.
#[test]
fn what_runs_in_scopes_of_helpers_is_the_same() {
    let database = company(40);
    for traversal in [
        "g.V().where(out('manages').out('manages')).count()",
        "g.V().hasLabel('person').not(out('manages').out('manages')).values('name')",
        "g.V().or(out('manages').in('manages'), has('level', 3)).groupCount().by(label()).unfold()",
        "g.V().hasLabel('person').local(out('has').values('level').sum())",
        "g.V().hasLabel('person').local(out('has').values('level').union(max(), count()).fold())",
        "g.V().hasLabel('person').local(out('has').order().by('level', desc).limit(1)).groupCount().by('level').unfold()",
        "g.V().hasLabel('person').local(both().dedup().count()).groupCount().unfold()",
        "g.V().hasLabel('person').local(union(out('has'), out('manages').out('has')).values('level').fold().unfold())",
        "g.V().hasLabel('person').flatMap(coalesce(out('manages').out('manages'), in('manages'))).values('name')",
        "g.V().hasLabel('person').project('a', 'b').by(out('has').count()).by(both('manages').values('name').min())",
        "g.V().hasLabel('person').order().by(out('has').values('level').sum()).by('name').values('name')",
        "g.V().hasLabel('person').group().by(out('has').count()).by(out('manages').count()).unfold()",
        "g.V().hasLabel('person').local(repeat(out('manages')).times(3).count())",
        "g.V().hasLabel('person').where(repeat(out('manages')).until(has('name', 'p17')))",
        "g.V().hasLabel('person').local(out('has').group().by('level').by(count())).unfold()",
        "g.V().hasLabel('person').where(local(out('manages').where(local(out('has').count()).is(gt(2))))).values('name')",
        "g.V().hasLabel('person').as('a').out('manages').where(out('manages').where(neq('a'))).values('name')",
        "g.V().hasLabel('person').choose(out('manages').count().is(1), out('has').count(), constant('leaf'))",
    ] {
        let expected = alone(&database, traversal);
        assert!(!expected.is_empty() && expected != [format!("{:?} 1", Value::I64(0))], "{traversal}");
        for seed in 0..40 {
            assert_eq!(helped(&database, traversal, seed), expected, "{traversal}, seed {seed}");
        }
    }
}

/// An error inside a nested traversal ends the query, whichever thread meets it.
#[test]
fn an_error_in_a_scope_of_a_helper_ends_the_query() {
    let database = company(40);
    let prepared = database.prepare("g.V().hasLabel('person').local(values('name').sum())").unwrap();
    let transaction = database.begin().unwrap();
    for seed in 0..40 {
        let outcome = transaction.run_helped(&prepared, &Parameters::new(), &QueryOptions::default(), seed);
        let error = outcome.unwrap_err();
        assert!(error.message().contains("a number is needed"), "seed {seed}: {error}");
    }
}
