//! The services `mangrove.config`, `mangrove.gc`, `mangrove.memory`, `mangrove.names`, `mangrove.plans`,
//! `mangrove.stats` and `mangrove.transactions`.

use mangrove_graph::{KeyId, LabelId, MemoryBudget, Purpose, Result, Value};
use mangrove_txn::AbortCause;

use super::durability;
use super::registry::{Arguments, row};
use crate::management::count;
use crate::state::Database;

/// Changes the settings that are given. Returns all settings.
pub(super) fn config(database: &Database, arguments: &Arguments<'_>) -> Result<Vec<Value>> {
    arguments.given.iter().try_for_each(|(name, value)| database.configure(name, value))?;
    Ok(vec![row(database.config())])
}

/// Collects garbage or compacts, if an argument says so. Returns one row: the backlog of the collectors, and the
/// numbers of records that they have collected so far.
pub(super) fn garbage(database: &Database, arguments: &Arguments<'_>) -> Result<Vec<Value>> {
    if arguments.flag("compact")? {
        database.compact();
    } else if arguments.flag("collect")? {
        database.collect_garbage();
    }
    let report = database.garbage();
    Ok(vec![row([
        ("queued_writes", count(report.queued_writes)),
        ("tasks", count(report.tasks)),
        ("in_limbo", count(report.in_limbo)),
        ("versions", count(report.versions)),
        ("values", count(report.values)),
        ("vertices", count(report.vertices)),
        ("edges", count(report.edges)),
        ("cells", count(report.cells)),
        ("tables", count(report.tables)),
        ("pages", count(report.pages)),
    ])])
}

/// Returns one row for each kind of record, one for the projections that are kept, one for those with names, and one with the
/// total.
pub(super) fn memory(database: &Database, _: &Arguments<'_>) -> Result<Vec<Value>> {
    let report = database.memory();
    let (projections, named) = (database.projections(), database.projections().named());
    let of_records = report.rows.iter().map(|kind| (kind.name, kind.allocations, kind.bytes));
    let of_projections = [
        ("kept projections", projections.count() as u64, projections.bytes()),
        ("named projections", named.list().len() as u64, named.bytes()),
    ];
    let mut all: Vec<(&str, u64, u64)> = of_records.chain(of_projections).collect();
    let sum = |of: fn(&(&str, u64, u64)) -> u64| all.iter().map(of).sum();
    all.push(("total", sum(|kind| kind.1), sum(|kind| kind.2)));
    let kinds = all.into_iter().map(|(kind, allocations, bytes)| {
        row([("kind", kind.into()), ("allocations", count(allocations)), ("bytes", count(bytes))])
    });
    Ok(kinds.collect())
}

/// Returns one row: counts of transactions, and the lag (in commits) and age of the oldest snapshot.
pub(super) fn transactions(database: &Database, _: &Arguments<'_>) -> Result<Vec<Value>> {
    let counters = database.transaction_counters();
    let aborts = AbortCause::ALL.iter().map(|&cause| (cause.name(), count(counters.aborted(cause))));
    Ok(vec![row([
        ("active", count(counters.active)),
        ("commits", count(counters.commits)),
        ("read_only", count(counters.read_only)),
        ("aborts", row(aborts)),
        ("retries", count(database.retry_count())),
        ("dependency_waits", count(counters.dependency_waits)),
        ("pre_reads", count(counters.pre_reads)),
        ("oldest_snapshot_lag", count(database.snapshot_lag())),
        ("oldest_snapshot_age_ms", count(database.snapshot_age_ms())),
    ])])
}

/// Returns one row with a list of names of each kind. A name stays in its list after its last element was deleted.
pub(super) fn names(database: &Database, _: &Arguments<'_>) -> Result<Vec<Value>> {
    let catalog = database.catalog();
    let sorted = |mut names: Vec<smol_str::SmolStr>| {
        names.sort_unstable();
        Value::list(names.into_iter().map(Value::String).collect())
    };
    let number = |n: usize| u32::try_from(n).expect("names are numbered by 32 bits");
    let labels = (0..number(catalog.label_count())).map(|id| catalog.label_name(LabelId(id)));
    let keys = (0..number(catalog.key_count())).map(|id| catalog.key_name(KeyId(id)));
    Ok(vec![row([("labels", sorted(labels.collect())), ("keys", sorted(keys.collect()))])])
}

/// Returns a row for each plan in the cache, those that were used last first.
pub(super) fn plans(database: &Database, arguments: &Arguments<'_>) -> Result<Vec<Value>> {
    let mut rows = Vec::new();
    for plan in database.kept_plans() {
        arguments.check_limits()?;
        rows.push(row([
            ("source", plan.source.into()),
            ("shape", plan.shape.into()),
            ("guards", Value::list(plan.guards.into_iter().map(Value::from).collect())),
            ("hits", count(plan.hits)),
            ("mean_micros", plan.mean_micros.map_or(Value::Null, Value::F64)),
            ("bytes", count(plan.bytes)),
        ]));
    }
    Ok(rows)
}

/// The memory budget of the process and the part in use; null if there is no budget.
fn memory_budget(budget: &MemoryBudget) -> Value {
    let Some(limit) = budget.limit_bytes() else { return Value::Null };
    let used = |purpose: Purpose| (Value::from(purpose.name()), count(budget.used_for(purpose)));
    row([
        ("limit", count(limit)),
        ("used", count(budget.used_bytes())),
        ("peak", count(budget.peak_bytes())),
        ("by_purpose", Value::map(Purpose::ALL.into_iter().map(used).collect())),
    ])
}

/// Returns one row with the figures of the other services.
pub(super) fn stats(database: &Database, arguments: &Arguments<'_>) -> Result<Vec<Value>> {
    let first = |rows: Vec<Value>| rows.into_iter().next().unwrap_or(Value::Null);
    let load = database.executor_load();
    let executors = row([
        ("threads", count(load.threads)),
        ("busy", count(load.busy)),
        ("queued", count(load.queued)),
        ("turns", count(load.turns)),
    ]);
    let plans = database.plan_cache();
    let plans = row([
        ("plans", count(plans.plans)),
        ("texts", count(plans.texts)),
        ("bytes", count(plans.bytes)),
        ("bytes_max", count(plans.bytes_max)),
        ("hits", count(plans.hits)),
        ("misses", count(plans.misses)),
        ("evictions", count(plans.evictions)),
    ]);
    Ok(vec![row([
        ("memory", Value::list(memory(database, arguments)?)),
        ("memory_limit", count(database.memory().limit_bytes)),
        ("memory_budget", memory_budget(database.memory_budget())),
        ("transactions", first(transactions(database, arguments)?)),
        ("garbage", first(garbage(database, arguments)?)),
        ("durability", first(durability::state(database, arguments)?)),
        ("plan_cache", plans),
        ("executors", executors),
    ])])
}
