//! The tenants of a server, which share its executors by weight.
//!
//! Each user is a tenant, named `user/NAME`. On a server without users each graph is one, named `graph/NAME`. A
//! traversal may name another one, `with("tenant", "NAME")`, which is `tenant/NAME`: never that of a user or graph.
//!
//! - **SERVER-11.** A user does not get more than its share of the executors by the text of its queries. Each name is a
//!   tenant with a share of its own, and all graphs use the same executors. So only an administrator of all graphs may
//!   name a tenant; without users, each client is one.

use std::fmt;
use std::str::FromStr;

use mangrove::{Executors, Tenant, Weight};
use mangrove_graph::{Error, ErrorKind, Result};
use smol_str::format_smolstr;

use crate::access::caller::Caller;
use crate::access::graph_name::ALL_GRAPHS;

const USER: &str = "user/";
const GRAPH: &str = "graph/";
const NAMED: &str = "tenant/";

/// The tenant of a caller's query on a graph. `named` is the tenant that the traversal names, if it names one. Fails if
/// the caller may not name it (SERVER-11).
pub fn tenant_of(caller: &Caller, graph: &str, named: Option<&str>) -> Result<Tenant> {
    let own = match caller.is_authenticated() {
        true => Tenant::new(format_smolstr!("{USER}{}", caller.name())),
        false => Tenant::new(format_smolstr!("{GRAPH}{graph}")),
    };
    match named {
        None => Ok(own),
        Some(name) if caller.administers(ALL_GRAPHS) => Ok(Tenant::new(format_smolstr!("{NAMED}{name}"))),
        Some(_) => Err(Error::new(
            ErrorKind::Forbidden,
            format!(
                "with(\"tenant\", …) needs the role admin on all graphs (`{ALL_GRAPHS}`), which the user `{}` has \
                 not: leave it out, then the query counts for the tenant {own}, whose weight an administrator sets \
                 (`tenant_weights`)",
                caller.name()
            ),
        )),
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

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let mut weights: Vec<(Tenant, Weight)> = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let entry = part.rsplit_once('=').map(|(name, weight)| (name.trim(), weight.trim()));
            let is_tenant =
                |name: &str| [USER, GRAPH, NAMED].iter().any(|kind| name.len() > kind.len() && name.starts_with(kind));
            let Some((name, weight)) = entry.filter(|(name, _)| is_tenant(name)) else {
                return Err(format!(
                    "`{part}` is no weight of a tenant: write {USER}NAME=WEIGHT, or {GRAPH}NAME=WEIGHT on a server \
                     without users, or {NAMED}NAME=WEIGHT for one that traversals name"
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
    use crate::access::caller::{Access, Rights};

    #[test]
    fn a_user_is_a_tenant_and_without_users_a_graph() {
        let ada = Caller::user("ada", Rights::default(), "here");
        assert_eq!(tenant_of(&ada, "books", None).unwrap().name(), "user/ada");
        assert_eq!(tenant_of(&Caller::anybody("here"), "books", None).unwrap().name(), "graph/books");
    }

    #[test]
    fn only_an_administrator_of_all_graphs_names_another_tenant() {
        let user = |graph: &str, level| Caller::user("ada", Rights::new([(graph.into(), level)]), "here");
        let named = |caller: &Caller| tenant_of(caller, "books", Some("reports"));
        assert_eq!(named(&Caller::anybody("here")).unwrap().name(), "tenant/reports");
        let root = user("*", Access::Admin);
        assert_eq!(named(&root).unwrap().name(), "tenant/reports");
        assert_eq!(named(&root.reading()).unwrap().name(), "tenant/reports");
        for caller in [user("books", Access::Admin), user("*", Access::Write)] {
            let error = named(&caller).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Forbidden);
            assert!(error.message().contains("counts for the tenant user/ada"), "{error}");
        }
    }

    #[test]
    fn weights_are_read_as_they_are_shown() {
        let weights: TenantWeights = "user/ada=300, graph/books=50,user/a=b=7,tenant/reports=20,".parse().unwrap();
        assert_eq!(weights.to_string(), "user/ada=300,graph/books=50,user/a=b=7,tenant/reports=20");
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
