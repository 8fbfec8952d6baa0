//! Isolation, tested from outside: classic anomalies one by one, the LDBC ACID suite, invariants under load, and random
//! histories that a checker verifies. `docs/isolation.md` says what each part tests.

mod acid;
mod anomalies;
mod attempt;
mod exhaustive;
mod histories;
mod invariants;
mod support;
mod workload;
