//! Which optimizations the planner makes.

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
    /// For tests: every instance counts as heavy, and begins again in a group of its own if its scope allows that.
    pub set_all_apart: bool,
}

impl PlanOptions {
    /// No optimization.
    pub const NONE: PlanOptions =
        PlanOptions { rewrite: false, fuse: false, merge: false, use_indexes: false, set_all_apart: false };
}

impl Default for PlanOptions {
    /// All optimizations.
    fn default() -> Self {
        PlanOptions { rewrite: true, fuse: true, merge: true, use_indexes: true, set_all_apart: false }
    }
}
