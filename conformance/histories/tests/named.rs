//! Every anomaly by name, in a history made by hand; and histories without anomalies.

use mangrove_histories::{History, Kind, Level, Object, Order, Report, Transaction, check};

const X: Object = Object(1);
const Y: Object = Object(2);

fn history(transactions: Vec<Transaction>) -> History {
    let mut history = History::default();
    history.name(X, "x");
    history.name(Y, "y");
    history.extend(transactions);
    history
}

fn report(transactions: Vec<Transaction>) -> Report {
    check(&history(transactions)).unwrap()
}

/// Transactions that are all concurrent, so only the data orders them.
fn concurrent(process: u32) -> Transaction {
    Transaction::committed(process, 0, 100)
}

#[track_caller]
fn finds(kind: Kind, order: Order, transactions: Vec<Transaction>) -> Report {
    let report = report(transactions);
    let found = report.anomalies.iter().find(|a| a.kind == kind && a.order == order);
    assert!(found.is_some(), "{kind:?} was not found, but {:#?}", report.anomalies);
    report
}

#[track_caller]
fn passes(level: Level, transactions: Vec<Transaction>) {
    let report = report(transactions);
    let first = report.violations(level).next();
    assert!(first.is_none(), "{level:?} should allow it: {}", first.unwrap());
}

#[track_caller]
fn only_allowed_below_serializable(report: &Report) {
    assert!(report.violations(Level::StrongSnapshot).next().is_none(), "{:#?}", report.anomalies);
    assert!(report.violations(Level::Serializable).next().is_some());
}

#[test]
fn dirty_write_in_lists() {
    // One transaction came first on x, the other on y.
    finds(
        Kind::G0,
        Order::Data,
        vec![
            concurrent(0).append(X, 1).append(Y, 1),
            concurrent(1).append(X, 2).append(Y, 2),
            concurrent(2).read_list(X, &[1, 2]).read_list(Y, &[2, 1]),
        ],
    );
}

#[test]
fn aborted_read() {
    for transactions in [
        vec![Transaction::aborted(0, 0, 9).append(X, 1), concurrent(1).read_list(X, &[1])],
        vec![Transaction::aborted(0, 0, 9).write(X, 1), concurrent(1).read(X, Some(1))],
        vec![Transaction::aborted(0, 0, 9).add(X, 1), concurrent(1).read_set(X, &[1])],
    ] {
        let report = finds(Kind::G1a, Order::Data, transactions);
        assert!(report.violations(Level::ReadCommitted).next().is_some());
        assert!(report.anomalies[0].explanation.contains("T1 read 1 in x, which T0 wrote and then aborted"));
    }
}

#[test]
fn intermediate_read() {
    finds(Kind::G1b, Order::Data, vec![concurrent(0).append(X, 1).append(X, 2), concurrent(1).read_list(X, &[1])]);
    finds(Kind::G1b, Order::Data, vec![concurrent(0).write(X, 1).write(X, 2), concurrent(1).read(X, Some(1))]);
}

#[test]
fn circular_information_flow() {
    finds(
        Kind::G1c,
        Order::Data,
        vec![concurrent(0).append(X, 1).read_list(Y, &[1]), concurrent(1).append(Y, 1).read_list(X, &[1])],
    );
    finds(
        Kind::G1c,
        Order::Data,
        vec![concurrent(0).write(X, 1).read(Y, Some(1)), concurrent(1).write(Y, 1).read(X, Some(1))],
    );
}

#[test]
fn read_skew() {
    // The reader sees the writer's x but not its y.
    let report = finds(
        Kind::GSingle,
        Order::Data,
        vec![concurrent(0).append(X, 1).append(Y, 1), concurrent(1).read_list(X, &[1]).read_list(Y, &[])],
    );
    assert!(report.violations(Level::Snapshot).next().is_some());
    assert!(report.violations(Level::ReadCommitted).next().is_none());
    finds(
        Kind::GSingle,
        Order::Data,
        vec![concurrent(0).write(X, 1).write(Y, 1), concurrent(1).read(X, Some(1)).read(Y, None)],
    );
    finds(
        Kind::GSingle,
        Order::Data,
        vec![concurrent(0).add(X, 1).add(Y, 1), concurrent(1).read_set(X, &[1]).read_set(Y, &[])],
    );
}

#[test]
fn fuzzy_read_and_phantom_in_one_transaction() {
    finds(Kind::Internal, Order::Data, vec![concurrent(0).write(X, 1), concurrent(1).read(X, None).read(X, Some(1))]);
    finds(Kind::Internal, Order::Data, vec![concurrent(0).add(X, 1), concurrent(1).read_set(X, &[]).read_set(X, &[1])]);
    finds(Kind::Internal, Order::Data, vec![concurrent(0).append(X, 1).read_list(X, &[])]);
    finds(Kind::Internal, Order::Data, vec![concurrent(0).add(X, 1).remove(X, 1).read_set(X, &[1])]);
}

#[test]
fn lost_update() {
    finds(
        Kind::LostUpdate,
        Order::Data,
        vec![concurrent(0).read(X, None).write(X, 1), concurrent(1).read(X, None).write(X, 2)],
    );
    finds(
        Kind::LostUpdate,
        Order::Data,
        vec![concurrent(0).read_list(X, &[]).append(X, 1), concurrent(1).read_list(X, &[]).append(X, 2)],
    );
}

#[test]
fn removing_the_same_twice_is_a_lost_update() {
    let added = Transaction::committed(0, 0, 1).add(X, 1);
    let removal = |process, end| Transaction::committed(process, 2, end).read_set(X, &[1]).remove(X, 1);
    finds(Kind::LostUpdate, Order::Data, vec![added.clone(), removal(1, 4), removal(2, 4)]);
    // One of the two values is missing.
    let aborted = Transaction::aborted(1, 2, 4).read_set(X, &[1]).remove(X, 1);
    passes(Level::StrictSerializable, vec![added, aborted, removal(2, 4)]);
}

#[test]
fn write_skew() {
    let report = finds(
        Kind::G2Item,
        Order::Data,
        vec![concurrent(0).read(X, None).write(Y, 1), concurrent(1).read(Y, None).write(X, 1)],
    );
    only_allowed_below_serializable(&report);
    let text = report.anomalies[0].to_string();
    assert!(text.contains("T0 read x without what T1 changed"), "{text}");
    assert!(text.contains("T1 (process 1, 0 to 100, committed): read y = nothing, write x := 1"), "{text}");
}

#[test]
fn write_skew_of_three_and_over_a_predicate() {
    let z = Object(3);
    let report = finds(
        Kind::G2Item,
        Order::Data,
        vec![
            concurrent(0).read_list(X, &[]).append(Y, 1),
            concurrent(1).read_list(Y, &[]).append(z, 1),
            concurrent(2).read_list(z, &[]).append(X, 1),
            Transaction::committed(3, 200, 300).read_list(X, &[1]).read_list(Y, &[1]).read_list(z, &[1]),
        ],
    );
    only_allowed_below_serializable(&report);
    // Each transaction counts the set, and each adds to it.
    let report = finds(
        Kind::G2,
        Order::Data,
        vec![concurrent(0).read_set(X, &[]).add(X, 1), concurrent(1).read_set(X, &[]).add(X, 2)],
    );
    only_allowed_below_serializable(&report);
    // The read-only transaction anomaly of Fekete, O'Neil and O'Neil: without the reader, the history is serializable.
    let report = finds(
        Kind::G2Item,
        Order::Data,
        vec![
            concurrent(0).read(X, None).read(Y, None).write(X, 1),
            Transaction::committed(1, 0, 10).read(Y, None).write(Y, 2),
            Transaction::committed(2, 20, 30).read(X, None).read(Y, Some(2)),
        ],
    );
    only_allowed_below_serializable(&report);
}

#[test]
fn long_fork() {
    let report = finds(
        Kind::LongFork,
        Order::Data,
        vec![
            concurrent(0).write(X, 1),
            concurrent(1).write(Y, 1),
            concurrent(2).read(X, Some(1)).read(Y, None),
            concurrent(3).read(X, None).read(Y, Some(1)),
        ],
    );
    assert!(report.violations(Level::Snapshot).next().is_some());
}

#[test]
fn anti_dependencies_that_are_not_in_a_row() {
    let z = Object(3);
    // Like the long fork, with a third writer whose own read distinguishes it from the others.
    let report = finds(
        Kind::GNonadjacent,
        Order::Data,
        vec![
            concurrent(0).write(X, 1),
            concurrent(1).write(Y, 1).write(z, 1),
            concurrent(2).read(X, Some(1)).read(Y, None),
            concurrent(3).read(z, Some(1)).write(z, 2),
            concurrent(4).read(z, Some(2)).read(X, None),
        ],
    );
    assert!(report.violations(Level::Snapshot).next().is_some());
}

#[test]
fn what_lists_show_directly() {
    finds(
        Kind::IncompatibleOrder,
        Order::Data,
        vec![
            concurrent(0).append(X, 1),
            concurrent(1).append(X, 2),
            concurrent(2).read_list(X, &[1, 2]),
            concurrent(3).read_list(X, &[2]),
        ],
    );
    finds(Kind::DuplicateValue, Order::Data, vec![concurrent(0).append(X, 1), concurrent(1).read_list(X, &[1, 1])]);
    finds(Kind::GarbageRead, Order::Data, vec![concurrent(0).read_list(X, &[7])]);
    finds(Kind::GarbageRead, Order::Data, vec![concurrent(0).read(X, Some(7))]);
}

#[test]
fn stale_reads_and_lost_writes_in_real_time() {
    // The write was acknowledged, and a later read misses it.
    for stale in [
        vec![Transaction::committed(0, 0, 1).append(X, 1), Transaction::committed(1, 2, 3).read_list(X, &[])],
        vec![Transaction::committed(0, 0, 1).write(X, 1), Transaction::committed(1, 2, 3).read(X, None)],
        vec![Transaction::committed(0, 0, 1).add(X, 1), Transaction::committed(1, 2, 3).read_set(X, &[])],
        vec![
            Transaction::committed(0, 0, 1).add(X, 1).add(X, 2),
            Transaction::committed(1, 2, 3).remove(X, 1),
            Transaction::committed(2, 4, 5).read_set(X, &[1, 2]),
        ],
    ] {
        let report = finds(Kind::GSingle, Order::RealTime, stale);
        assert!(report.violations(Level::Serializable).next().is_none());
        assert!(report.violations(Level::StrictSerializable).next().is_some());
        assert!(report.violations(Level::StrongSnapshot).next().is_some());
    }
    // A process does not see its own last transaction. Real time reveals it, too, but the order of processes is tried
    // first.
    finds(
        Kind::GSingle,
        Order::Process,
        vec![Transaction::committed(0, 0, 1).append(X, 1), Transaction::committed(0, 2, 3).read_list(X, &[])],
    );
}

#[test]
fn a_removed_value_is_gone_whoever_added_it() {
    let report = report(vec![
        Transaction::committed(0, 0, 1).add(X, 1),
        Transaction::committed(1, 2, 3).read_set(X, &[1]).remove(X, 1),
        Transaction::committed(2, 4, 5).read_set(X, &[]),
    ]);
    assert!(report.anomalies.is_empty(), "{:#?}", report.anomalies);
    // The reader began after the addition, did not meet the value, and yet came before the removal.
    finds(
        Kind::GSingle,
        Order::RealTime,
        vec![
            Transaction::committed(0, 0, 1).add(X, 1),
            Transaction::committed(1, 10, 20).remove(X, 1).read(Y, None).write(Y, 1),
            Transaction::committed(2, 2, 20).read_set(X, &[]).read(Y, None),
        ],
    );
}

#[test]
fn an_addition_of_unknown_outcome_may_end_after_a_reader_begins() {
    // The reader came before the addition, although the client of the addition had given up by then.
    passes(
        Level::StrictSerializable,
        vec![
            Transaction::new(0, 0, 1, mangrove_histories::Outcome::Unknown).add(X, 1),
            Transaction::committed(1, 10, 20).read_set(X, &[1]).remove(X, 1).read(Y, None).write(Y, 1),
            Transaction::committed(2, 2, 20).read_set(X, &[]).read(Y, None),
        ],
    );
}

#[test]
fn serial_histories_have_no_anomaly() {
    passes(Level::StrictSerializable, vec![]);
    passes(
        Level::StrictSerializable,
        vec![
            Transaction::committed(0, 0, 1).append(X, 1).write(Y, 1),
            Transaction::committed(1, 2, 3).read_list(X, &[1]).append(X, 2).read_list(X, &[1, 2]),
            Transaction::aborted(1, 4, 5).append(X, 9).write(Y, 9),
            Transaction::committed(0, 6, 7).read_list(X, &[1, 2]).read(Y, Some(1)).write(Y, 2).read(Y, Some(2)),
        ],
    );
    // Concurrent transactions may be ordered either way.
    passes(
        Level::StrictSerializable,
        vec![concurrent(0).append(X, 1), concurrent(1).append(X, 2), concurrent(2).read_list(X, &[2])],
    );
}

#[test]
fn an_unknown_outcome_is_decided_by_who_saw_it() {
    let unknown = || Transaction::new(0, 0, 1, mangrove_histories::Outcome::Unknown).append(X, 1).append(Y, 1);
    passes(Level::StrictSerializable, vec![unknown(), Transaction::committed(1, 2, 3).read_list(X, &[])]);
    passes(Level::StrictSerializable, vec![unknown(), Transaction::committed(1, 2, 3).read_list(X, &[1])]);
    // The transaction took effect after its client gave it up.
    passes(
        Level::StrictSerializable,
        vec![
            unknown(),
            Transaction::committed(1, 2, 3).read_list(X, &[]),
            Transaction::committed(1, 4, 5).read_list(X, &[1]),
        ],
    );
    // A write was seen, so the transaction committed, so all its writes must be seen.
    finds(
        Kind::GSingle,
        Order::Data,
        vec![unknown(), Transaction::committed(1, 2, 3).read_list(X, &[1]).read_list(Y, &[])],
    );
}

#[test]
fn a_workload_that_breaks_the_rules_is_told() {
    let twice = history(vec![concurrent(0).append(X, 1), concurrent(1).append(X, 1)]);
    assert!(check(&twice).unwrap_err().to_string().contains("1 is written to x twice"));
    let mixed = history(vec![concurrent(0).append(X, 1), concurrent(1).write(X, 2)]);
    assert!(check(&mixed).unwrap_err().to_string().contains("x is used as"));
}
