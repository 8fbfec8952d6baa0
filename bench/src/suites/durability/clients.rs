//! Clients: each commits one transaction after the other and waits for each. Every client has a thread of its own,
//! however few cores there are.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mangrove::{Error, Result};

use crate::oltp::histogram::Histogram;

/// Runs a client's transaction of this number, from 0 on. It returns after the commit.
pub(super) type Perform = Box<dyn FnMut(u64) -> Result<()> + Send>;

/// One client, with the times of its transactions.
pub(super) struct Client {
    perform: Perform,
    /// The number of committed transactions.
    pub(super) done: u64,
}

impl Client {
    pub(super) fn new(perform: Perform) -> Self {
        Client { perform, done: 0 }
    }

    fn commit(&mut self) -> Result<()> {
        (self.perform)(self.done)?;
        self.done += 1;
        Ok(())
    }
}

/// The outcomes of several clients.
#[derive(Clone, Debug, Default)]
pub(super) struct Slice {
    /// Latency in nanoseconds a transaction.
    pub(super) latency: Histogram,
    /// The time from the moment when all were ready until the last had ended.
    pub(super) seconds: f64,
}

impl Slice {
    /// Transactions a second.
    pub(super) fn rate(&self) -> f64 {
        self.latency.count() as f64 / self.seconds.max(1e-9)
    }
}

/// Lets clients commit for a time; each commits at least once.
pub(super) fn run_for(clients: &mut [Client], seconds: f64) -> Result<Slice> {
    let length = Duration::from_secs_f64(seconds);
    run_while(clients, &|since: Instant| since.elapsed() < length, || Ok(())).map(|((), slice)| slice)
}

/// Lets clients commit while this thread runs `meanwhile`; each commits at least once.
pub(super) fn run_beside<T>(clients: &mut [Client], other: impl FnOnce() -> Result<T>) -> Result<(T, Slice)> {
    let is_over = AtomicBool::new(false);
    run_while(clients, &|_| !is_over.load(Ordering::Relaxed), || {
        let outcome = other();
        is_over.store(true, Ordering::Relaxed);
        outcome
    })
}

fn run_while<T>(
    clients: &mut [Client],
    goes_on: &(dyn Fn(Instant) -> bool + Sync),
    other: impl FnOnce() -> Result<T>,
) -> Result<(T, Slice)> {
    let ready = Barrier::new(clients.len() + 1);
    let run = |client: &mut Client| {
        let mut latency = Histogram::default();
        ready.wait();
        let (since, mut before) = (Instant::now(), Instant::now());
        loop {
            client.commit()?;
            let after = Instant::now();
            latency.add((after - before).as_nanos() as u64);
            before = after;
            if !goes_on(since) {
                return Ok::<_, Error>(latency);
            }
        }
    };
    std::thread::scope(|scope| {
        let run = &run;
        let running: Vec<_> = clients.iter_mut().map(|client| scope.spawn(move || run(client))).collect();
        ready.wait();
        let start = Instant::now();
        let outcome = other();
        let mut slice = Slice::default();
        for thread in running {
            slice.latency.merge(&thread.join().map_err(|_| Error::bug("a client panicked while it was timed"))??);
        }
        slice.seconds = start.elapsed().as_secs_f64();
        Ok((outcome?, slice))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counting() -> Client {
        let mut expected = 0;
        Client::new(Box::new(move |number| {
            assert_eq!(number, expected);
            expected += 1;
            Ok(())
        }))
    }

    #[test]
    fn every_client_commits_at_least_once_and_is_counted() {
        let mut clients = vec![counting(), counting(), counting()];
        let first = run_for(&mut clients, 0.0).unwrap();
        let ((), second) = run_beside(&mut clients, || Ok(())).unwrap();
        assert!(clients.iter().all(|client| client.done >= 2));
        let done: u64 = clients.iter().map(|client| client.done).sum();
        assert_eq!(first.latency.count() + second.latency.count(), done);
        assert!(first.rate() > 0.0);
    }

    #[test]
    fn the_error_of_one_client_is_that_of_all() {
        let fails = Client::new(Box::new(|_| Err(Error::invalid("no"))));
        let error = run_for(&mut [counting(), fails], 0.0).unwrap_err();
        assert_eq!(error.message(), "no");
    }
}
