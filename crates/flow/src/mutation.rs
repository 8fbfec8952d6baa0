//! Rules that a test may break, to see that the simulation of queries notices (feature `mutations`).

/// A rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// The end of a group does not wait for its parcels (FLOW-21).
    EndOvertakesParcels,
    /// A parcel is worked off before what it sends home was sent (FLOW-21).
    DoneBeforeSent,
    /// A part of a parcel that a helper shares again does not count towards its token (FLOW-21).
    PartIsUncounted,
    /// The home sleeps without looking at what has come home (FLOW-23).
    HomeSleepsBesideWork,
    /// A passing operator of a helper keeps what it holds.
    PassingOperatorKeepsRows,
    /// A cancellation does not reach nested groups (FLOW-40).
    CancellationStopsAtGroup,
    /// A cancellation reaches the instances nested in the next instance (FLOW-40).
    CancellationReachesNeighbor,
    /// Operators with state are not told of cancellations (FLOW-41).
    StateOutlivesCancellation,
    /// Batches of a canceled group stay in their inboxes (FLOW-41).
    MessagesOutliveCancellation,
    /// The rest of a heavy row goes after the end of its group (FLOW-45).
    HeavyRowGoesAfterEnd,
}

#[cfg(feature = "mutations")]
thread_local! {
    static BROKEN: std::cell::Cell<Option<Mutation>> = const { std::cell::Cell::new(None) };
}

/// Breaks a rule on this thread, or none.
#[cfg(feature = "mutations")]
pub fn set(mutation: Option<Mutation>) {
    BROKEN.set(mutation);
}

/// Returns true if the rule is broken on this thread.
#[cfg(feature = "mutations")]
pub(crate) fn is_set(mutation: Mutation) -> bool {
    BROKEN.get() == Some(mutation)
}

/// Returns true if the rule is broken on this thread.
#[cfg(not(feature = "mutations"))]
#[inline(always)]
pub(crate) fn is_set(_mutation: Mutation) -> bool {
    false
}
