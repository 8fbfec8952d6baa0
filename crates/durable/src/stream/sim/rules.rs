//! The rules of followers and pins, which only the simulation breaks.

/// Each field is a rule. All hold; the simulation breaks one, to see that it notices.
#[derive(Clone, Copy, Debug)]
pub(super) struct FollowRules {
    /// A reader pins a manifest before it looks whether that is kept, and before it reads (LOG-81).
    pub(super) pins_before_reading: bool,
    /// A follower reads streams without a gap (LOG-72).
    pub(super) follows_prefix: bool,
    /// A follower goes from one stream to the next only if a manifest lists both (LOG-72).
    pub(super) goes_on_if_listed: bool,
    /// A follower pins no manifest that needs less than it has not read (LOG-77).
    pub(super) pins_what_it_needs: bool,
    /// A collector lists pins after its manifest counts, not before it is put (LOG-81).
    pub(super) lists_pins_when_counted: bool,
    /// A collector that does not find a pin which it has listed lists again (LOG-76).
    pub(super) lists_pins_again: bool,
}

impl Default for FollowRules {
    fn default() -> Self {
        FollowRules {
            pins_before_reading: true,
            follows_prefix: true,
            goes_on_if_listed: true,
            pins_what_it_needs: true,
            lists_pins_when_counted: true,
            lists_pins_again: true,
        }
    }
}
