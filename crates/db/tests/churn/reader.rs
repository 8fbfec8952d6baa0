//! A reader: one snapshot, read in small batches through cursors, while other clients change the graph.

use mangrove::{Error, Result, Transaction};
use rand::Rng;
use rand::rngs::SmallRng;

use crate::life::Life;
use crate::names::Outcome;
use crate::observed::Observed;
use crate::reading::Walk;
use crate::writer::sees;

/// The largest number of walks that a reader has open at a time.
const WALKS: usize = 4;

/// One snapshot, read in small batches that go on through cursors.
pub struct Reader<'a> {
    life: &'a Life,
    random: SmallRng,
    running: Option<Running>,
    pub read_count: u64,
}

struct Running {
    // The first field, because walks must be dropped before the transaction that they read.
    walks: Vec<Walk>,
    transaction: Transaction,
    seen: Vec<Observed>,
    steps_left: usize,
}

impl<'a> Reader<'a> {
    pub fn new(life: &'a Life, random: SmallRng) -> Self {
        Reader { life, random, running: None, read_count: 0 }
    }

    /// Begins a snapshot, reads a batch of it, or compares its observations with the model.
    pub fn step(&mut self) -> Outcome<()> {
        let Some(mut running) = self.running.take() else {
            let acknowledged = self.life.book().last_ts();
            let transaction = match self.life.db().begin_read() {
                Ok(transaction) => transaction,
                Err(error) => return self.life.excuse(error),
            };
            let begin_ts = transaction.begin_ts();
            let steps_left = self.random.random_range(5..80);
            self.running = Some(Running { walks: Vec::new(), transaction, seen: Vec::new(), steps_left });
            return sees(begin_ts, acknowledged);
        };
        if running.steps_left > 0 {
            running.steps_left -= 1;
            let outcome = self.read(&mut running);
            self.running = Some(running);
            return outcome.or_else(|error: Error| self.life.excuse(error));
        }
        self.finish(running)
    }

    fn read(&mut self, running: &mut Running) -> Result<()> {
        let reading = self.life.reading(&running.transaction);
        if running.walks.len() < WALKS && self.random.random_bool(0.3) {
            running.walks.extend(reading.begin_walk(&mut self.random)?);
            return Ok(());
        }
        if running.walks.is_empty() || self.random.random_bool(0.2) {
            return reading.look(&mut self.random, &mut running.seen);
        }
        let place = self.random.random_range(0..running.walks.len());
        let limit =
            if self.random.random() { self.random.random_range(1..12) } else { self.random.random_range(1..400) };
        match reading.walk_on(running.walks.swap_remove(place), limit)? {
            Ok(observed) => running.seen.push(observed),
            Err(further) => running.walks.push(further),
        }
        Ok(())
    }

    /// Takes all walks to their ends, and checks the observations.
    fn finish(&mut self, mut running: Running) -> Outcome<()> {
        let reading = self.life.reading(&running.transaction);
        for mut walk in running.walks.drain(..) {
            loop {
                match reading.walk_on(walk, self.random.random_range(1..1_000)) {
                    Ok(Ok(observed)) => break running.seen.push(observed),
                    Ok(Err(further)) => walk = further,
                    Err(error) => return self.life.excuse(error),
                }
            }
        }
        self.read_count += running.seen.len() as u64;
        let begin_ts = running.transaction.begin_ts();
        self.life.book().check(&running.seen, begin_ts).map_err(|error| format!("a reader {error}"))
    }
}
