//! How many cases a random test tries, and with which seeds.

use std::fmt::Display;
use std::str::FromStr;

/// How many cases a test tries that tries so many in CI: as many as `MANGROVE_CASES` says, or `MANGROVE_TIMES` as many as
/// in CI. The former is for a test run by itself, the latter for all of them together, since a case of one may cost a
/// thousand of another's.
pub fn case_count<N>(in_ci: N) -> N
where
    N: FromStr + Copy + std::ops::Mul<Output = N>,
    N::Err: Display,
{
    match (variable("MANGROVE_CASES"), variable("MANGROVE_TIMES")) {
        (Some(cases), _) => cases,
        (None, Some(times)) => in_ci * times,
        (None, None) => in_ci,
    }
}

/// The seed of the first case: `MANGROVE_FIRST`, to run one again that failed.
pub fn first_seed(default: u64) -> u64 {
    variable("MANGROVE_FIRST").unwrap_or(default)
}

fn variable<N: FromStr>(name: &str) -> Option<N>
where
    N::Err: Display,
{
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|error| panic!("{name}={text}: {error}")))
}
