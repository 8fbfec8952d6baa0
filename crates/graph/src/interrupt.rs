//! The question of long work to the program around it: is the work to end?

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};

/// A question that running work, such as a query or a load, asks the program around it: is the work to end? For programs that
/// learn of a signal only when they look, such as Ctrl-C in an interpreter.
///
/// Threads that work on a query ask before every 16th message, and between the parts of an algorithm: many thousands of times a
/// second. So the function returns at once, unless its time to look has come.
#[derive(Clone)]
pub struct Interrupt(Arc<dyn Fn() -> bool + Send + Sync>);

impl Interrupt {
    /// An interrupt that is raised when `is_raised` returns true.
    pub fn new(is_raised: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Interrupt(Arc::new(is_raised))
    }

    /// Asks.
    pub fn is_raised(&self) -> bool {
        (self.0)()
    }

    /// Asks. Fails with `Cancelled` if the interrupt is raised; the message names the work.
    pub fn check(&self, work: &str) -> Result<()> {
        match self.is_raised() {
            false => Ok(()),
            true => Err(Error::new(ErrorKind::Cancelled, format!("{work} was cancelled by an interrupt"))),
        }
    }
}

impl std::fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Interrupt")
    }
}
