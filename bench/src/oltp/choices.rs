//! The choices of the suites that run transactions: operations, interfaces, isolation levels, skew.

use std::path::PathBuf;

use clap::ValueEnum;
use mangrove::{Error, Isolation, Result};

use super::session::Api;
use super::skew::Skew;
use super::template::Operations;
use crate::options::Suite;

/// The suites that plot.
const PLOTTING: [Suite; 5] = [Suite::Collection, Suite::Scopes, Suite::Policies, Suite::Isolation, Suite::Gdi];

/// An isolation level, by its name on the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Level {
    /// Transactions run as if one after the other
    Serializable,
    /// Transactions read one snapshot and do not overwrite one another
    Snapshot,
}

impl Level {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Level::Serializable => "serializable",
            Level::Snapshot => "snapshot",
        }
    }

    /// The database's isolation level.
    pub fn isolation(self) -> Isolation {
        match self {
            Level::Serializable => Isolation::Serializable,
            Level::Snapshot => Isolation::Snapshot,
        }
    }
}

/// The choices of one run.
#[derive(Clone, Debug)]
pub struct Choices {
    /// The operations; `None`: those that the suite is named after.
    pub operations: Option<Operations>,
    /// The interfaces.
    pub apis: Vec<Api>,
    /// The isolation levels.
    pub levels: Vec<Level>,
    /// The distributions by which vertices are picked. Suites run once for each.
    pub skews: Vec<Skew>,
    /// The time of updates before locality is measured, and of each run of the suite `collection`.
    pub churn_seconds: f64,
    /// The file for the plot of one of the suites [`PLOTTING`].
    pub plot: Option<PathBuf>,
    /// The directory for the suite `durability`; `None`: the system's temporary directory.
    pub directory: Option<PathBuf>,
    /// Addresses of homes for the suite `durability`, beside homes in memory.
    pub homes: Vec<String>,
}

impl Default for Choices {
    fn default() -> Self {
        Choices {
            operations: None,
            apis: vec![Api::Typed, Api::Gremlin],
            levels: vec![Level::Serializable, Level::Snapshot],
            skews: vec![Skew::Uniform],
            churn_seconds: 5.0,
            plot: None,
            directory: None,
            homes: Vec::new(),
        }
    }
}

/// The most seconds of updates. An hour is long enough to see memory grow.
const CHURN_SECONDS_MAX: f64 = 3_600.0;

impl Choices {
    /// Returns an error for a time that is too long, for operations that a suite does not have, or for two plots in one
    /// file.
    pub fn check(&self, suites: &[Suite]) -> Result<()> {
        if !(0.0..=CHURN_SECONDS_MAX).contains(&self.churn_seconds) {
            let message =
                format!("{} seconds of updates were asked for; use 0 to {CHURN_SECONDS_MAX}", self.churn_seconds);
            return Err(Error::invalid(message));
        }
        let plotting: Vec<&str> = PLOTTING.iter().filter(|suite| suites.contains(suite)).map(|s| s.name()).collect();
        if self.plot.is_some() && plotting.len() > 1 {
            let message = format!("--plot names one file, and each of {} plots; run one of them", plotting.join(", "));
            return Err(Error::invalid(message));
        }
        suites.iter().try_for_each(|suite| self.operations_of(*suite).map(drop))
    }

    /// The operations of a suite: those chosen, else those that the suite is named after, else those of the GDI paper.
    /// Returns an error if the suite does not have the chosen ones.
    pub fn operations_of(&self, suite: Suite) -> Result<Operations> {
        let own = if suite == Suite::Lbv { Operations::Lbv } else { Operations::Gdi };
        let chosen = self.operations.unwrap_or(own);
        let is_available = match suite {
            Suite::LinkBench | Suite::ReadMostly => chosen == Operations::Gdi,
            Suite::Lbv => chosen == Operations::Lbv,
            _ => true,
        };
        if is_available {
            return Ok(chosen);
        }
        let message = format!(
            "the suite {} has no form with --ops {}: `linkbench` and `read-mostly` are mixes of --ops gdi, `lbv` is all \
             mixes of --ops lbv",
            suite.name(),
            chosen.name()
        );
        Err(Error::invalid(message))
    }
}
