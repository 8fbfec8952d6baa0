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
    /// A parcel is worked off although the helper keeps rows of it (FLOW-46).
    KeptParcelIsDone,
    /// A cancellation does not reach nested groups (FLOW-40).
    CancellationStopsAtGroup,
    /// A cancellation reaches the instances nested in the next instance (FLOW-40).
    CancellationReachesNeighbor,
    /// Operators with state are not told of cancellations (FLOW-41).
    StateOutlivesCancellation,
    /// Batches of a cancelled group stay in their inboxes (FLOW-41).
    MessagesOutliveCancellation,
    /// A message that waits for a read does not count towards its token (FLOW-21).
    ParkedIsUncounted,
    /// A completion of a ticket that has ended completes the next ticket of the same number (FLOW-30).
    LateCompletionIsHeeded,
    /// A completion that comes before its message is parked is lost.
    EarlyCompletionIsLost,
    /// A hold is dropped before its step (FLOW-31).
    HoldIsDroppedEarly,
    /// A refused message waits although the run may ask again (FLOW-32).
    RoundIsIgnored,
    /// A refused message does not come back (FLOW-32).
    RefusedIsKept,
    /// A message that must keep its order overtakes one that waits for a read (FLOW-33).
    OrderOfWaitingIsIgnored,
    /// A completion does not wake the home (FLOW-23).
    CompletionDoesNotWake,
    /// The rest of a heavy row goes after the end of its group (FLOW-45).
    HeavyRowGoesAfterEnd,
    /// A helper's replica does not join the state that the home shares (FLOW-29).
    ReplicaDoesNotJoin,
    /// A helper's replica receives batches at all ports of an operator with shared state (FLOW-29).
    EveryPortIsShared,
    /// A helper shares messages of groups that it has opened (FLOW-50).
    GroupsOfHelpersAreShared,
    /// At the end of its turn, a helper puts down messages of groups that it has opened (FLOW-50).
    GroupsOfHelpersArePutDown,
    /// An end goes on before its parts are worked off (FLOW-49).
    EndOvertakesParts,
    /// A part counts as worked off when the home takes it back (FLOW-49).
    PartTakenBackIsDone,
    /// The calls in a lane do not count towards its time (FLOW-47).
    TimeOfLaneIsIgnored,
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
