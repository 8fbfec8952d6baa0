//! The tenants of a server, which share its executors by weight.
//!
//! Each user is a tenant, named `user/NAME`. On a server without users each graph is one, named `graph/NAME`.

use std::fmt;
use std::str::FromStr;

use mangrove::{Executors, Tenant, Weight};
use smol_str::format_smolstr;

use crate::access::caller::Caller;

const USER: &str = "user/";
const GRAPH: &str = "graph/";

/// The tenant of a caller's queries on a graph.
pub fn tenant_of(caller: &Caller, graph: &str) -> Tenant {
    if caller.is_authenticated() {
        Tenant::new(format_smolstr!("{USER}{}", caller.name()))
    } else {
        Tenant::new(format_smolstr!("{GRAPH}{graph}"))
    }
}

/// The weights of tenants. The others have [`Weight::DEFAULT`].
///
/// As text, it is a list such as `user/ada=300,graph/books=50`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantWeights(Vec<(Tenant, Weight)>);

impl TenantWeights {
    /// Gives the executors of the process these weights instead of others.
    pub fn replace(&self, before: &TenantWeights) {
        for (tenant, _) in &before.0 {
            if self.0.iter().all(|(kept, _)| kept != tenant) {
                Executors::set_shared_weight(tenant, Weight::DEFAULT);
            }
        }
        for (tenant, weight) in &self.0 {
            Executors::set_shared_weight(tenant, *weight);
        }
    }

    /// Returns true if no tenant has a weight of its own.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for TenantWeights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (tenant, weight)) in self.0.iter().enumerate() {
            write!(f, "{}{tenant}={weight}", if n == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl FromStr for TenantWeights {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut weights: Vec<(Tenant, Weight)> = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let entry = part.rsplit_once('=').map(|(name, weight)| (name.trim(), weight.trim()));
            let is_tenant =
                |name: &str| [USER, GRAPH].iter().any(|kind| name.len() > kind.len() && name.starts_with(kind));
            let Some((name, weight)) = entry.filter(|(name, _)| is_tenant(name)) else {
                return Err(format!(
                    "`{part}` is no weight of a tenant: write {USER}NAME=WEIGHT, or {GRAPH}NAME=WEIGHT on a server \
                     without users"
                ));
            };
            let tenant = Tenant::new(name);
            if weights.iter().any(|(known, _)| *known == tenant) {
                return Err(format!("the tenant {tenant} has two weights"));
            }
            weights.push((tenant, weight.parse()?));
        }
        Ok(TenantWeights(weights))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::caller::Rights;

    #[test]
    fn a_user_is_a_tenant_and_without_users_a_graph() {
        let ada = Caller::user("ada", Rights::default(), "here");
        assert_eq!(tenant_of(&ada, "books").name(), "user/ada");
        assert_eq!(tenant_of(&Caller::anybody("here"), "books").name(), "graph/books");
    }

    #[test]
    fn weights_are_read_as_they_are_shown() {
        let weights: TenantWeights = "user/ada=300, graph/books=50,user/a=b=7,".parse().unwrap();
        assert_eq!(weights.to_string(), "user/ada=300,graph/books=50,user/a=b=7");
        assert_eq!(weights.to_string().parse(), Ok(weights));
        assert!("".parse::<TenantWeights>().unwrap().is_empty());
        for (text, part) in [
            ("ada=300", "user/NAME=WEIGHT"),
            ("user/ada", "user/NAME=WEIGHT"),
            ("user/=3", "user/NAME=WEIGHT"),
            ("user/ada=0", "from 1 to 10000"),
            ("user/ada=1,user/ada=2", "two weights"),
        ] {
            let error = text.parse::<TenantWeights>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
