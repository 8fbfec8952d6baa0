//! Scripts and bytecode, from text or bytes to their results on a small graph.

use std::cell::RefCell;

use mangrove::{Database, ErrorKind, Parameters, Prepared, QueryLimits, QueryOptions, Result};
use mangrove_graph::DateTime;
use mangrove_gremlin::message::Gremlin;
use mangrove_gremlin::{ParseOptions, Statement, Terminal, decode_graphbinary_frame, parse};
use uuid::Uuid;

use super::wire::written_everywhere;

/// The time limit of a script.
const TIME_NANOS: u64 = 200_000_000;

/// The memory limit of a script.
const MEMORY_BYTES: u64 = 32 << 20;

/// The largest number of results that are read.
const RESULT_COUNT_MAX: usize = 1_000;

/// The number of runs on one database: names in scripts stay in its catalog, so another database then takes its place.
const RUN_COUNT_MAX: u32 = 1_000;

/// The graph that scripts run on.
const GRAPH: &[&str] = &[
    "g.addV('person').property(id,1).property('name','marko').property('age',29)",
    "g.addV('person').property(id,2).property('name','vadas').property('age',27)",
    "g.addV('software').property(id,3).property('name','lop').property('lang','java')",
    "g.addV('person').property(id,4).property('name','josh').property('age',32)",
    "g.addV('software').property(id,5).property('name','ripple').property(list,'lang','java').property(list,'lang','scala')",
    "g.addV('person').property(id,6).property('name','peter').property('age',35)",
    "g.V(1).addE('knows').to(__.V(2)).property('weight',0.5d)",
    "g.V(1).addE('knows').to(__.V(4)).property('weight',1.0d)",
    "g.V(1).addE('created').to(__.V(3)).property('weight',0.4d)",
    "g.V(4).addE('created').to(__.V(5)).property('weight',1.0d)",
    "g.V(4).addE('created').to(__.V(3)).property('weight',0.4d)",
    "g.V(6).addE('created').to(__.V(3)).property('weight',0.2d)",
];

/// Parses a script. Each of its traversals is printed. If the printed text parses, it must be the same traversal.
pub fn script(bytes: &[u8]) -> bool {
    let Some(statements) = std::str::from_utf8(bytes).ok().and_then(statements_of) else { return false };
    for statement in statements {
        let Statement::Traversal { source, bytecode, .. } = statement else { continue };
        let text = bytecode.to_string();
        let printed = text.replacen('g', &source, 1);
        if let Some(again) = statements_of(&printed) {
            let [Statement::Traversal { bytecode: again, .. }] = again.as_slice() else {
                panic!("{printed:?} is not one traversal")
            };
            assert_eq!(text, again.to_string(), "printed, it reads as something else");
        }
    }
    true
}

/// Runs a script. It counts as accepted if it can be planned: whether it ends within its limits depends on the machine.
pub fn query(bytes: &[u8]) -> bool {
    let Some(statements) = std::str::from_utf8(bytes).ok().and_then(statements_of) else { return false };
    let mut is_good = false;
    for statement in statements {
        if let Statement::Traversal { bytecode, terminal, .. } = statement {
            is_good |= on_database(|database, is_planned| {
                run_prepared(database, &Prepared::new(&bytecode, Terminal::Explain)?, &Parameters::new())?;
                let prepared = Prepared::new(&bytecode, terminal)?;
                *is_planned = true;
                run_prepared(database, &prepared, &Parameters::new())
            });
        }
    }
    is_good
}

/// Runs the traversal of a request in GraphBinary.
pub fn request(bytes: &[u8]) -> bool {
    let Ok(request) = decode_graphbinary_frame(bytes) else { return false };
    let (Ok(gremlin), Ok(parameters)) = (request.gremlin(), request.bindings()) else { return false };
    match gremlin {
        Gremlin::Bytecode(bytecode) => on_database(|database, is_planned| {
            let prepared = database.prepare_bytecode(bytecode)?;
            *is_planned = true;
            run_prepared(database, &prepared, &parameters)
        }),
        Gremlin::Text(text) => query(text.as_bytes()),
    }
}

fn statements_of(text: &str) -> Option<Vec<Statement>> {
    let now = Some(DateTime { seconds: 1_600_000_000, nanos: 0, offset_seconds: 0 });
    let parsed = parse(text, &ParseOptions { now, fresh_uuid: Some(Uuid::nil()), ..Default::default() }).ok()?;
    Some(parsed.into_iter().map(|statement| statement.statement).collect())
}

thread_local! {
    static DATABASE: RefCell<Option<(Database, u32)>> = const { RefCell::new(None) };
}

/// Runs a traversal on the database. Returns true if it could be planned.
fn on_database(run: impl FnOnce(&Database, &mut bool) -> Result<()>) -> bool {
    let database = DATABASE.with_borrow_mut(|kept| {
        let (database, runs) =
            kept.take().filter(|(_, runs)| *runs < RUN_COUNT_MAX).unwrap_or_else(|| (small_graph(), 0));
        *kept = Some((database.clone(), runs + 1));
        database
    });
    let mut is_planned = false;
    if let Err(error) = run(&database, &mut is_planned) {
        assert!(error.kind() != ErrorKind::Bug, "a bug: {error}");
    }
    is_planned
}

/// A database with that graph.
pub fn small_graph() -> Database {
    let database = Database::in_memory();
    for script in GRAPH {
        database.query(script).and_then(|results| results.collect().map(drop)).expect("the graph is right");
    }
    database
}

/// Runs a traversal in a transaction that is rolled back.
fn run_prepared(database: &Database, prepared: &Prepared, parameters: &Parameters) -> Result<()> {
    let options = QueryOptions {
        limits: QueryLimits { time_nanos: Some(TIME_NANOS), memory_bytes: MEMORY_BYTES },
        ..QueryOptions::default()
    };
    let transaction = database.begin()?;
    for result in transaction.run_with(prepared, parameters, &options)?.take(RESULT_COUNT_MAX) {
        written_everywhere(&result?);
    }
    Ok(())
}
