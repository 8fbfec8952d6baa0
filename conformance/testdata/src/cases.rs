//! The number of cases of random tests, and their seeds.

use std::fmt::Display;
use std::str::FromStr;

/// The number of cases of a test that tries `in_ci` of them in CI: `MANGROVE_CASES`, or `MANGROVE_TIMES` times `in_ci`.
/// Use the first for a single test, and the second for all tests together, because the cost of a case differs between
/// tests by a factor of up to a thousand.
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

/// The seed of the first case: `MANGROVE_FIRST`, which repeats a failed case, or the default.
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
