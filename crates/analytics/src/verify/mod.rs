//! For each algorithm another one: plain, sequential, and obviously right. Tests and benches compare the two.
//!
//! None of them shares code with what it verifies, apart from the rows.
//!
//! | file | verifies |
//! |---|---|
//! | `large` | nothing: it has numbers of paths that no double holds |
//! | `centrality`, `community`, `paths`, `similarity`, `structure` | the algorithms of these kinds |
//! | [`sampling`] | samples of neighbors |

mod centrality;
mod community;
mod large;
mod paths;
pub mod sampling;
mod similarity;
mod structure;

pub use self::centrality::*;
pub use self::community::*;
pub use self::paths::*;
pub use self::similarity::*;
pub use self::structure::*;

use crate::projection::Projection;

/// All positions with a vertex.
fn vertices(projection: &Projection) -> impl Iterator<Item = u32> + '_ {
    (0..projection.positions() as u32).filter(|at| projection.numbering().exists(*at))
}
