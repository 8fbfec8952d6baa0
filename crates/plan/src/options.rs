//! What the planner may do beyond translating a traversal step by step.

/// Which optimizations are made. None of them changes what a traversal means, so a plan without any is what one with all
/// of them can be held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanOptions {
    /// The [rules](crate::rules) rewrite the logical traversal.
    pub rewrite: bool,
    /// Neighboring operators become one where that is cheaper.
    pub fuse: bool,
    /// Equal rows are merged between hops.
    pub merge: bool,
    /// Indexes find vertices.
    pub use_indexes: bool,
}

impl PlanOptions {
    /// No optimization.
    pub const NONE: PlanOptions = PlanOptions { rewrite: false, fuse: false, merge: false, use_indexes: false };
}

impl Default for PlanOptions {
    /// All of them.
    fn default() -> Self {
        PlanOptions { rewrite: true, fuse: true, merge: true, use_indexes: true }
    }
}
