//! Which optimizations the planner makes.

/// How the order of a walk or a `match()` is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planner {
    /// The steps stay in the order in which they are written.
    Written,
    /// An order that is expected to make few rows.
    Greedy,
    /// For tests: an order that a seed chooses among all.
    Forced(u64),
}

/// The optimizations to make. None of them changes the meaning of a traversal, so tests compare plans with all of them
/// to plans without any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanOptions {
    /// Rewrite the logical traversal by the [rules](crate::rules).
    pub rewrite: bool,
    /// Replace neighboring operators by a cheaper one.
    pub fuse: bool,
    /// Merge equal rows between hops.
    pub merge: bool,
    /// Find vertices by indexes.
    pub use_indexes: bool,
    /// Leave out tests that facts about edges answer.
    pub use_connections: bool,
    /// Count the matches of a pattern without a row for each, if the planner may choose.
    pub weigh: bool,
    /// How the order of a walk or a `match()` is chosen.
    pub planner: Planner,
    /// Estimate how many rows leave each operator, for `explain()` and `profile()`. It changes no plan.
    pub estimate: bool,
    /// For tests: every instance counts as heavy, and begins again in a group of its own if its scope allows that.
    pub set_all_apart: bool,
}

impl PlanOptions {
    /// No optimization.
    pub const NONE: PlanOptions = PlanOptions {
        rewrite: false,
        fuse: false,
        merge: false,
        use_indexes: false,
        use_connections: false,
        weigh: false,
        planner: Planner::Written,
        estimate: false,
        set_all_apart: false,
    };
}

impl Default for PlanOptions {
    /// All optimizations.
    fn default() -> Self {
        PlanOptions {
            rewrite: true,
            fuse: true,
            merge: true,
            use_indexes: true,
            use_connections: true,
            weigh: true,
            planner: Planner::Greedy,
            estimate: false,
            set_all_apart: false,
        }
    }
}
