//! What tests of patterns share: random choices, and plans that are made with options.

use mangrove::{Database, Parameters, PlanOptions, Planner, Prepared, Value};
use mangrove_gremlin::{ParseOptions, Statement, Terminal, parse_one};
use rand::prelude::*;
use rand::rngs::StdRng;

/// Random choices.
pub struct Random(StdRng);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(StdRng::seed_from_u64(seed))
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.0.random_range(0..bound)
    }

    pub fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    /// A number below a bound, small ones far more often.
    pub fn skewed(&mut self, bound: usize) -> usize {
        (0..3).map(|_| self.below(bound)).min().unwrap_or_default()
    }

    pub fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        all.shuffle(&mut self.0);
    }
}

/// Prepares a traversal.
pub fn prepared(script: &str, terminal: Terminal, options: PlanOptions) -> Prepared {
    let parsed = parse_one(script, &ParseOptions::default());
    let Ok(Statement::Traversal { bytecode, .. }) = parsed else { panic!("{script}: {parsed:?}") };
    Prepared::with_options(&bytecode, terminal, options).unwrap_or_else(|error| panic!("{script}: {error}"))
}

/// What `explain()` says.
pub fn explained(db: &Database, script: &str, options: PlanOptions) -> String {
    let prepared = prepared(script, Terminal::Explain, options);
    let results = db.run(&prepared, &Parameters::new()).unwrap().collect().unwrap();
    let [Value::String(text)] = &results[..] else { panic!("{script}: {results:?}") };
    text.to_string()
}

/// An order, or a way to count, that a seed chooses.
pub fn forced(seed: u64) -> PlanOptions {
    PlanOptions { planner: Planner::Forced(seed), ..PlanOptions::default() }
}
