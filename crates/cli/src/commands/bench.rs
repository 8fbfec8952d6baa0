//! `mangrove bench`: the benchmarks of crate `mangrove-bench`, printed as a table.

use std::io::Write;

use crate::Failure;
use crate::args::BenchArgs;

/// Runs the suites and prints what they measured.
pub fn run(args: BenchArgs) -> Result<(), Failure> {
    let table = args.arguments.run(args.suites)?;
    writeln!(std::io::stdout(), "{table}")?;
    Ok(())
}
