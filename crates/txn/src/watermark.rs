//! The clock that draws commit timestamps, and the stable watermark.
//!
//! Timestamps are 1, 2, 3, … (0 is the bulk-loaded base). A transaction draws one, installs its writes, and
//! marks the timestamp finished in a ring. The watermark is the largest timestamp at or below which all are
//! finished; whoever finishes, or waits, helps to advance it. Nobody is in charge, so nobody can be missed.
//!
//! Invariants:
//!
//! 1. `watermark ≤ clock`, and both only grow.
//! 2. Slot `ts % RING` holds `ts` only once `ts` is finished, and is written only when the watermark has
//!    passed `ts - RING`, so a slot is never reused before it was counted. A drawer that is that far ahead
//!    waits; the ones it waits for have lower timestamps and wait for no one with a higher one.
//! 3. Every timestamp drawn is finished: [`Drawn`] does so when dropped, during a panic too. A timestamp
//!    that stayed unfinished would stop the watermark for good.
//!
//! Waiting spins a little, then yields the core: a committer that was preempted needs it.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

const RING: usize = 1 << 14;
/// Beyond this, spinning keeps the core from those we wait for.
const SPINS_BEFORE_YIELD: u32 = 64;

/// Clock and watermark; see the module.
#[derive(Debug)]
pub struct Watermark {
    clock: CachePadded<AtomicU64>,
    stable: CachePadded<AtomicU64>,
    finished: Box<[AtomicU64]>,
}

/// A timestamp that was drawn and is finished when this is dropped.
#[must_use = "a timestamp that is not finished stops the watermark"]
#[derive(Debug)]
pub struct Drawn<'a> {
    watermark: &'a Watermark,
    ts: u64,
}

impl Default for Watermark {
    fn default() -> Self {
        Self::new()
    }
}

impl Watermark {
    /// A clock at the base: nothing drawn, everything stable.
    pub fn new() -> Self {
        Watermark {
            clock: CachePadded::new(AtomicU64::new(0)),
            stable: CachePadded::new(AtomicU64::new(0)),
            finished: (0..RING).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// The stable watermark.
    #[inline]
    pub fn stable(&self) -> u64 {
        // SeqCst: a begin publishes its slot before it reads this (`snapshots`). Acquire would do for seeing
        // what the commits up to here installed: its partner is the compare-and-swap in `advance`.
        self.stable.load(Ordering::SeqCst)
    }

    /// The last timestamp drawn.
    pub fn last_drawn(&self) -> u64 {
        self.clock.load(Ordering::Acquire)
    }

    /// Draws the next timestamp.
    pub fn draw(&self) -> Drawn<'_> {
        Drawn { watermark: self, ts: self.clock.fetch_add(1, Ordering::AcqRel) + 1 }
    }

    /// Returns once the watermark has reached `ts`, which must have been drawn.
    pub fn wait_for(&self, ts: u64) {
        let mut spins = 0;
        while self.stable() < ts {
            self.advance();
            if spins < SPINS_BEFORE_YIELD {
                spins += 1;
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
    }

    fn slot(&self, ts: u64) -> &AtomicU64 {
        &self.finished[ts as usize % RING]
    }

    /// Moves the watermark over what is finished.
    fn advance(&self) {
        let mut stable = self.stable.load(Ordering::Acquire);
        // Acquire: its partner is the Release in `finish`; it carries the installed writes on to whoever
        // reads the watermark.
        while self.slot(stable + 1).load(Ordering::Acquire) == stable + 1 {
            match self.stable.compare_exchange(stable, stable + 1, Ordering::SeqCst, Ordering::Acquire) {
                Ok(_) => stable += 1,
                Err(current) => stable = current,
            }
        }
    }

    fn finish(&self, ts: u64) {
        self.wait_for(ts.saturating_sub(RING as u64));
        self.slot(ts).store(ts, Ordering::Release);
        self.advance();
    }
}

impl Drawn<'_> {
    /// The timestamp.
    pub fn ts(&self) -> u64 {
        self.ts
    }
}

impl Drop for Drawn<'_> {
    fn drop(&mut self) {
        self.watermark.finish(self.ts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watermark_stops_at_the_first_unfinished_timestamp() {
        let watermark = Watermark::new();
        let (one, two, three) = (watermark.draw(), watermark.draw(), watermark.draw());
        assert_eq!((one.ts(), three.ts(), watermark.stable()), (1, 3, 0));
        drop(two);
        assert_eq!(watermark.stable(), 0);
        drop(one);
        assert_eq!(watermark.stable(), 2);
        drop(three);
        assert_eq!((watermark.stable(), watermark.last_drawn()), (3, 3));
    }

    #[test]
    fn a_panic_between_draw_and_finish_does_not_stop_it() {
        let watermark = Watermark::new();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _drawn = watermark.draw();
            panic!("while installing");
        }));
        assert!(outcome.is_err());
        assert_eq!(watermark.stable(), 1);
    }

    #[test]
    fn many_threads_go_round_the_ring_several_times() {
        let watermark = Watermark::new();
        let each = RING as u64;
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..each {
                        let drawn = watermark.draw();
                        let ts = drawn.ts();
                        assert!(watermark.stable() < ts);
                        drop(drawn);
                        watermark.wait_for(ts);
                    }
                });
            }
        });
        assert_eq!((watermark.stable(), watermark.last_drawn()), (4 * each, 4 * each));
    }
}
