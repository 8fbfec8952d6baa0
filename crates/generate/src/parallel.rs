//! Makes chunks on several threads and takes them in order.
//!
//! Workers claim the numbers of chunks in ascending order and make the chunks. The calling thread takes finished chunks
//! by number. A worker waits before a chunk that is [`AHEAD`] times the number of workers, or more, ahead of the one
//! taken next. So a slow caller bounds the memory. Neither the chunks nor their order depend on the number of threads.

use std::collections::BTreeMap;

use mangrove::{Error, Result};
use parking_lot::{Condvar, Mutex};

/// Chunks that may be unfinished or untaken, for each worker.
const AHEAD: usize = 4;

/// Makes the chunks `0..count` with `make` on `threads` threads, and calls `take` with them in order on this thread.
/// The first error of `take` ends both and is returned. A panic of `make` becomes a panic of this thread.
pub(crate) fn in_order<T: Send>(
    threads: usize,
    count: usize,
    make: impl Fn(usize) -> T + Sync,
    mut take: impl FnMut(usize, T) -> Result<()>,
) -> Result<()> {
    if threads <= 1 || count <= 1 {
        return (0..count).try_for_each(|chunk| take(chunk, make(chunk)));
    }
    let workers = threads.min(count);
    let queue = ChunkQueue::new(count, workers * AHEAD);
    std::thread::scope(|scope| {
        // The scope waits for the workers, so they must stop in whatever way this closure ends.
        let _stop = StopOnDrop(&queue);
        for worker in 0..workers {
            std::thread::Builder::new()
                .name(format!("generate-{worker}"))
                .spawn_scoped(scope, || work(&queue, &make))
                .map_err(|e| Error::from(e).context("cannot start a thread to generate with; ask for fewer"))?;
        }
        (0..count).try_for_each(|chunk| take(chunk, queue.take(chunk)))
    })
}

/// Makes chunks until no more are wanted: the body of a worker.
fn work<T>(queue: &ChunkQueue<T>, make: impl Fn(usize) -> T) {
    let mut guard = StopOnPanic { queue, done: false };
    while let Some(chunk) = queue.claim() {
        let made = make(chunk);
        queue.put(chunk, made);
    }
    guard.done = true;
}

/// The finished chunks, between the workers and the calling thread.
struct ChunkQueue<T> {
    state: Mutex<QueueState<T>>,
    /// Notified when the next chunk is ready, or a worker has panicked.
    made: Condvar,
    /// Notified when a chunk was taken, or no more are wanted.
    taken: Condvar,
    /// The number of chunks.
    count: usize,
    /// A chunk is made only if its number is less than this above the number of the chunk taken next.
    window: usize,
}

struct QueueState<T> {
    next_to_make: usize,
    next_to_take: usize,
    /// Chunks that were made and not taken, by number.
    ready: BTreeMap<usize, T>,
    /// True if no more chunks are wanted.
    stopped: bool,
    panicked: bool,
}

impl<T> ChunkQueue<T> {
    fn new(count: usize, window: usize) -> Self {
        let state =
            QueueState { next_to_make: 0, next_to_take: 0, ready: BTreeMap::new(), stopped: false, panicked: false };
        ChunkQueue { state: Mutex::new(state), made: Condvar::new(), taken: Condvar::new(), count, window }
    }

    /// Claims the next chunk, and waits until it may be made; `None` when there is no more to do.
    fn claim(&self) -> Option<usize> {
        let mut state = self.state.lock();
        let chunk = state.next_to_make;
        if chunk >= self.count {
            return None;
        }
        state.next_to_make += 1;
        while !state.stopped && chunk >= state.next_to_take + self.window {
            self.taken.wait(&mut state);
        }
        (!state.stopped).then_some(chunk)
    }

    /// Hands over a chunk that was made.
    fn put(&self, chunk: usize, made: T) {
        let mut state = self.state.lock();
        state.ready.insert(chunk, made);
        if chunk == state.next_to_take {
            self.made.notify_one();
        }
    }

    /// Waits for a chunk and takes it. The calling thread takes chunks in ascending order. Panics if a worker has.
    fn take(&self, chunk: usize) -> T {
        let mut state = self.state.lock();
        loop {
            if let Some(made) = state.ready.remove(&chunk) {
                state.next_to_take = chunk + 1;
                self.taken.notify_all();
                return made;
            }
            assert!(!state.panicked, "a generator thread panicked");
            self.made.wait(&mut state);
        }
    }

    /// Lets the workers end after the chunks that they are making, and wakes all threads that wait.
    fn stop(&self, panicked: bool) {
        let mut state = self.state.lock();
        state.stopped = true;
        state.panicked |= panicked;
        self.made.notify_all();
        self.taken.notify_all();
    }
}

/// Stops the workers when it is dropped.
struct StopOnDrop<'a, T>(&'a ChunkQueue<T>);

impl<T> Drop for StopOnDrop<'_, T> {
    fn drop(&mut self) {
        self.0.stop(false);
    }
}

/// Wakes the calling thread if a worker panics, so that it does not wait forever.
struct StopOnPanic<'a, T> {
    queue: &'a ChunkQueue<T>,
    done: bool,
}

impl<T> Drop for StopOnPanic<'_, T> {
    fn drop(&mut self) {
        if !self.done {
            self.queue.stop(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_come_in_order_whatever_the_number_of_threads() {
        for threads in [1, 2, 7] {
            let mut taken = Vec::new();
            let take = |chunk, made: usize| {
                assert_eq!(made, chunk * chunk);
                taken.push(chunk);
                Ok(())
            };
            in_order(threads, 100, |chunk| chunk * chunk, take).unwrap();
            assert_eq!(taken, (0..100).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_error_of_the_taker_ends_it() {
        let take = |chunk, _| if chunk == 5 { Err(Error::invalid("enough")) } else { Ok(()) };
        assert_eq!(in_order(3, 1_000_000, |chunk| chunk, take).unwrap_err().message(), "enough");
    }

    #[test]
    #[should_panic(expected = "a generator thread panicked")]
    fn a_panic_of_a_worker_reaches_the_caller() {
        let make = |chunk| assert!(chunk != 20, "a bug");
        let _ = in_order(2, 100, make, |_, ()| Ok(()));
    }
}
