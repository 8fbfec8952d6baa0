//! Work on the parts of a file by several threads, with the results in the order of the parts.
//!
//! - **LOAD-4.** The same files give the same batches in the same order, on any number of threads. Threads only parse.
//!   The caller's thread takes the parsed parts in the order of the file.
//!
//! The caller makes jobs: it cuts a file into parts, which costs little. Threads parse the parts. The caller takes the
//! results in the order of their jobs and, within a job, in the order in which the thread delivered them.
//!
//! Memory is bounded: each thread has at most two jobs begun, and each job has at most [`RESULTS_AHEAD`] results that
//! were not taken yet. No deadlock is possible. Threads take jobs in their order, so the job whose results the caller
//! takes next has a thread before any later job can fill its queue.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use mangrove_graph::{Error, Result};

/// The most results of one job that wait to be taken.
const RESULTS_AHEAD: usize = 16;

/// Delivers one result. Returns false if the caller wants no more, because something failed.
pub(crate) type Deliver<'h, T> = dyn FnMut(T) -> bool + 'h;

/// Jobs that wait for a thread, each with the queue for its results.
type Jobs<J, T> = Receiver<(J, SyncSender<Result<T>>)>;

/// Does `work` on every job, and calls `take` with the results in their order (LOAD-4). The first error of either ends
/// it.
///
/// A single job, or all jobs if there is one thread, run on the caller's thread.
pub(crate) fn in_order<J: Send, T: Send>(
    threads: NonZeroUsize,
    mut jobs: impl FnMut() -> Result<Option<J>>,
    work: impl Fn(J, &mut Deliver<'_, T>) -> Result<()> + Sync,
    mut take: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    // If a job cannot be made, the results of the jobs before it are taken first, and then the error is returned.
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
    // Never full: the loop below begins at most this many jobs.
    let (sender, queue) = sync_channel::<(J, SyncSender<Result<T>>)>(2 * threads.get());
    let queue = Mutex::new(queue);
    std::thread::scope(|scope| {
        for number in 0..threads.get() {
            let worker = || work_on(&queue, &work);
            std::thread::Builder::new().name(format!("mangrove-load-{number}")).spawn_scoped(scope, worker)?;
        }
        // Moved into this closure, so that an early return drops it and the threads end.
        let sender = sender;
        let mut failure = None;
        let mut begun: VecDeque<Receiver<Result<T>>> = VecDeque::new();
        loop {
            while failure.is_none() && begun.len() < 2 * threads.get() {
                match ready.pop_front().or_else(|| jobs.next()) {
                    None => break,
                    Some(Err(e)) => failure = Some(e),
                    Some(Ok(job)) => {
                        let (deliver, results) = sync_channel(RESULTS_AHEAD);
                        begun.push_back(results);
                        sender.send((job, deliver)).map_err(|_| Error::bug("the threads that load ended early"))?;
                    }
                }
            }
            let Some(results) = begun.pop_front() else { return failure.map_or(Ok(()), Err) };
            results.into_iter().try_for_each(|result| take(result?))?;
        }
    })
}

/// The work of one thread: job after job, until there are no more or their results are not wanted.
fn work_on<J, T>(queue: &Mutex<Jobs<J, T>>, work: &(impl Fn(J, &mut Deliver<'_, T>) -> Result<()> + Sync)) {
    loop {
        let next = queue.lock().expect("no holder panics").recv();
        let Ok((job, deliver)) = next else { return };
        if let Err(e) = work(job, &mut |result| deliver.send(Ok(result)).is_ok()) {
            // A closed channel means that the caller has met an error before.
            let _ = deliver.send(Err(e));
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
            |job, deliver| {
                // More than wait at once, and unlike amounts of work.
                for part in 0..40 + job % 7 {
                    if !deliver(job * 100 + part) {
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
    fn the_caller_may_stop_early() {
        for threads in [1, 3] {
            let mut taken = 0;
            let mut next = 0..1_000_000_u32;
            let outcome = in_order(
                NonZeroUsize::new(threads).unwrap(),
                || Ok(next.next()),
                |job, deliver| {
                    deliver(job);
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
