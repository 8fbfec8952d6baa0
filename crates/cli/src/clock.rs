//! Elapsed time, for figures that a person reads.

use std::time::{Duration, Instant};

/// Measures the time since its creation.
#[derive(Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    #[expect(clippy::disallowed_methods, reason = "the edge of the house: the figure is for a person to read")]
    pub fn start() -> Self {
        Stopwatch(Instant::now())
    }

    /// The time since.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}
