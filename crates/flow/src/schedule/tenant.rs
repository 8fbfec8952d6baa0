//! Tenants: the parties that share the executors by weight.

use std::fmt;
use std::str::FromStr;

use smol_str::SmolStr;

/// The name of a tenant: of a user, of a graph, or of any other party whose queries together get one share of the
/// executors' time. The default tenant has the empty name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tenant(SmolStr);

impl Tenant {
    /// The tenant of a name.
    pub fn new(name: impl Into<SmolStr>) -> Self {
        Tenant(name.into())
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The weight of a tenant, from 1 to 10,000. While two tenants have more work than the executors can do, the CPU time
/// that they get is in the ratio of their weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight(u16);

impl Weight {
    /// The weight of a tenant without a weight of its own. It is 100, so that other tenants can get less as well as
    /// more; control groups of Linux have the same default and range.
    pub const DEFAULT: Weight = Weight(100);

    /// The largest weight.
    pub const MAX: Weight = Weight(10_000);

    /// A weight; `None` for a number out of the range.
    pub fn new(weight: u32) -> Option<Self> {
        let weight = u16::try_from(weight).ok()?;
        (1..=Weight::MAX.0).contains(&weight).then_some(Weight(weight))
    }

    /// The number.
    pub fn get(self) -> u32 {
        u32::from(self.0)
    }
}

impl Default for Weight {
    fn default() -> Self {
        Weight::DEFAULT
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Weight {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().ok().and_then(Weight::new).ok_or_else(|| {
            let max = Weight::MAX;
            format!(
                "`{text}` is no weight: a weight is a whole number from 1 to {max}, and {} by default",
                Weight::DEFAULT
            )
        })
    }
}

/// A tenant's part of a set of executors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TenantShare {
    /// The weight of the tenant.
    pub weight: Weight,
    /// The weight divided by the weights of all tenants that have a task: the part of the executors' time that the
    /// tenant gets if all of them have enough work. `None` if the tenant has no task.
    pub share: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_in_their_range() {
        assert_eq!("300".parse(), Ok(Weight(300)));
        assert_eq!(Weight::new(10_000), Some(Weight::MAX));
        for text in ["0", "10001", "65636", "-1", "much", ""] {
            assert!(text.parse::<Weight>().unwrap_err().contains("from 1 to 10000"), "{text}");
        }
    }
}
