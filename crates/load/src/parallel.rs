//! Work on the parts of a file by several threads, with results in the order of the parts.
//!
//! The caller makes jobs (it cuts a file into parts, which costs little) and takes results; threads do what lies between (they
//! parse). Results are taken in the order of their jobs, and within one in the order in which they were handed over, so
//! what comes of a file does not depend on how many threads there are, or on which is quick.
//!
//! What waits is bounded: a few jobs for every thread, and of each at most [`RESULTS_AHEAD`] results that nobody took yet. There is
//! no deadlock: threads take jobs in their order, so the job whose results are taken next is at work before any later one can
//! fill its queue.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use mangrove_graph::{Error, Result};

/// Results of one job that wait to be taken.
const RESULTS_AHEAD: usize = 16;

/// Takes one result; false: the work is over, because somebody failed.
pub(crate) type Hand<'h, T> = dyn FnMut(T) -> bool + 'h;

/// Jobs that wait for a thread, each with the queue for its results.
type Jobs<J, T> = Receiver<(J, SyncSender<Result<T>>)>;

/// Does `work` on every job and shows `take` the results in their order. The first error of either ends it.
///
/// A single job, or a single thread, is done on the caller's thread.
pub(crate) fn in_order<J: Send, T: Send>(
    threads: NonZeroUsize,
    mut jobs: impl FnMut() -> Result<Option<J>>,
    work: impl Fn(J, &mut Hand<'_, T>) -> Result<()> + Sync,
    mut take: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    // A job that cannot be made is an error behind the results of those that were.
    let mut jobs = std::iter::from_fn(|| jobs().transpose()).fuse();
    let Some(first) = jobs.next() else { return Ok(()) };
    let second = if threads.get() > 1 && first.is_ok() { jobs.next() } else { None };
    let mut ready: VecDeque<_> = [Some(first), second].into_iter().flatten().collect();
    if ready.len() == 1 {
        return ready.into_iter().chain(jobs).try_for_each(|job| {
            let mut outcome = Ok(());
            work(job?, &mut |result| {
                outcome = take(result);
                outcome.is_ok()
            })?;
            outcome
        });
    }
    // Bounded by the number of jobs that are begun, below.
    let (sender, queue) = sync_channel::<(J, SyncSender<Result<T>>)>(2 * threads.get());
    let queue = Mutex::new(queue);
    std::thread::scope(|scope| {
        for number in 0..threads.get() {
            let worker = || work_on(&queue, &work);
            std::thread::Builder::new().name(format!("mangrove-load-{number}")).spawn_scoped(scope, worker)?;
        }
        // Owned here, so that an error on the way drops it and the threads end.
        let sender = sender;
        let mut failure = None;
        let mut begun: VecDeque<Receiver<Result<T>>> = VecDeque::new();
        loop {
            while failure.is_none() && begun.len() < 2 * threads.get() {
                match ready.pop_front().or_else(|| jobs.next()) {
                    None => break,
                    Some(Err(e)) => failure = Some(e),
                    Some(Ok(job)) => {
                        let (hand, results) = sync_channel(RESULTS_AHEAD);
                        begun.push_back(results);
                        sender.send((job, hand)).map_err(|_| Error::bug("the threads that load ended early"))?;
                    }
                }
            }
            let Some(results) = begun.pop_front() else { return failure.map_or(Ok(()), Err) };
            results.into_iter().try_for_each(|result| take(result?))?;
        }
    })
}

/// What a thread does: one job after the other, until there are none, or nobody wants their results.
fn work_on<J, T>(queue: &Mutex<Jobs<J, T>>, work: &(impl Fn(J, &mut Hand<'_, T>) -> Result<()> + Sync)) {
    loop {
        let next = queue.lock().expect("no holder panics").recv();
        let Ok((job, hand)) = next else { return };
        if let Err(e) = work(job, &mut |result| hand.send(Ok(result)).is_ok()) {
            // Nobody listening means that something else failed before.
            let _ = hand.send(Err(e));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(threads: usize, jobs: u32, fail_at: Option<u32>) -> (Vec<u32>, Result<()>) {
        let mut next = 0..jobs;
        let mut taken = Vec::new();
        let outcome = in_order(
            NonZeroUsize::new(threads).unwrap(),
            || Ok(next.next()),
            |job, hand| {
                // More than wait at once, and unlike amounts of work.
                for part in 0..40 + job % 7 {
                    if !hand(job * 100 + part) {
                        return Ok(());
                    }
                }
                if fail_at == Some(job) { Err(Error::invalid(format!("job {job}"))) } else { Ok(()) }
            },
            |result| {
                taken.push(result);
                Ok(())
            },
        );
        (taken, outcome)
    }

    #[test]
    fn results_have_the_order_of_their_jobs() {
        let (expected, _) = run(1, 30, None);
        assert!(expected.is_sorted() && expected.len() > 1200);
        for threads in [2, 3, 8] {
            let (taken, outcome) = run(threads, 30, None);
            assert!(outcome.is_ok());
            assert_eq!(taken, expected, "{threads} threads");
        }
        assert!(run(4, 0, None).0.is_empty());
        assert_eq!(run(4, 1, None).0.len(), 40);
    }

    #[test]
    fn an_error_comes_after_the_results_before_it() {
        let (expected, failure) = run(1, 30, Some(11));
        assert_eq!(failure.unwrap_err().message(), "job 11");
        for threads in [2, 5] {
            let (taken, outcome) = run(threads, 30, Some(11));
            assert_eq!((taken, outcome.unwrap_err().message()), (expected.clone(), "job 11"));
        }
    }

    #[test]
    fn who_takes_may_stop_early() {
        for threads in [1, 3] {
            let mut taken = 0;
            let mut next = 0..1_000_000_u32;
            let outcome = in_order(
                NonZeroUsize::new(threads).unwrap(),
                || Ok(next.next()),
                |job, hand| {
                    hand(job);
                    Ok(())
                },
                |_| {
                    taken += 1;
                    if taken == 5 { Err(Error::invalid("enough")) } else { Ok(()) }
                },
            );
            assert_eq!((taken, outcome.unwrap_err().message()), (5, "enough"));
            assert!(next.start < 100, "jobs are made as they are needed: {next:?}");
        }
    }
}
