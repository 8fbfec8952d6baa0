//! The rules of streams and fencing, which only the simulation breaks.

use crate::home::settle::SettleRules;

/// Each field is a rule. All hold; the simulation breaks one, to see that it notices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// A writer acknowledges only a prefix of settled objects without a gap (LOG-50).
    pub(crate) acknowledges_prefix: bool,
    /// How puts are settled (LOG-52, LOG-53).
    pub(crate) settle: SettleRules,
    /// A successor claims the manifest before it fences (LOG-55).
    pub(crate) claims_first: bool,
    /// A successor fences from the floor of its manifest, not from the first object (LOG-55).
    pub(crate) fences_from_floor: bool,
    /// A manifest counts only if a list after its put shows none larger (LOG-56).
    pub(crate) looks_for_larger: bool,
    /// Ends of streams are never deleted (LOG-57).
    #[cfg(test)]
    pub(crate) keeps_ends: bool,
    /// A successor acknowledges nothing for the length of a lease after its last fence (LOG-58).
    pub(crate) waits_for_lease: bool,
    /// A successor serves no read for the length of a lease after its last fence (LOG-58).
    pub(crate) holds_reads: bool,
    /// An object renews the lease from the time of its first attempt, not of its outcome (LOG-59).
    pub(crate) leases_from_attempt: bool,
    /// A look at the next name is sent only while nothing is in flight (LOG-59).
    pub(crate) looks_when_settled: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Rules {
            acknowledges_prefix: true,
            settle: SettleRules::default(),
            claims_first: true,
            fences_from_floor: true,
            looks_for_larger: true,
            #[cfg(test)]
            keeps_ends: true,
            waits_for_lease: true,
            holds_reads: true,
            leases_from_attempt: true,
            looks_when_settled: true,
        }
    }
}
