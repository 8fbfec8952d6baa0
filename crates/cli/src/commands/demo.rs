//! `mangrove demo`: a sample graph, traversals and transactions.

use std::io;

use crate::Failure;
use crate::args::DemoArgs;

/// Runs the demo.
pub fn run(args: &DemoArgs) -> Result<(), Failure> {
    Ok(mangrove_demo::run(args.directory.clone(), &mut io::stdout().lock())?)
}
