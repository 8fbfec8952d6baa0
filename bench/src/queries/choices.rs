//! The choices of the suites that run queries: numbers of executors, and the directory of the data sets.

use std::path::PathBuf;

use mangrove::{Error, Result};

/// The choices of one run.
#[derive(Clone, Debug)]
pub struct QueryChoices {
    /// The numbers of executors. Each has a database of its own, with the same graph.
    pub executors: Vec<usize>,
    /// The directory of the data sets; `None`: only generated networks.
    pub data: Option<PathBuf>,
}

impl Default for QueryChoices {
    fn default() -> Self {
        QueryChoices { executors: vec![1, 2, 4, 8], data: None }
    }
}

/// A larger number of executors is taken for a typing error.
const EXECUTORS_MAX: usize = 1_024;

/// Each number has a graph of its own in memory.
const NUMBERS_MAX: usize = 16;

impl QueryChoices {
    /// Returns an error for numbers of executors that cannot be run, or that do not ascend.
    pub fn check(&self) -> Result<()> {
        let numbers = &self.executors;
        if numbers.is_empty() || numbers.len() > NUMBERS_MAX {
            let message = format!("{} numbers of executors were given; give 1 to {NUMBERS_MAX}", numbers.len());
            return Err(Error::invalid(message));
        }
        if let Some(number) = numbers.iter().find(|number| !(1..=EXECUTORS_MAX).contains(*number)) {
            return Err(Error::invalid(format!("{number} executors were asked for; use 1 to {EXECUTORS_MAX}")));
        }
        if !numbers.is_sorted_by(|a, b| a < b) {
            return Err(Error::invalid(format!("the numbers of executors do not ascend: {numbers:?}")));
        }
        Ok(())
    }
}
