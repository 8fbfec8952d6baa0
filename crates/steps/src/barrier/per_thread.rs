//! The state of an operator of which each thread of an open run has a part for itself (FLOW-29).
//!
//! As long as one thread works on the query, the state is a field. When helpers join, that field becomes the part of the
//! home, and each helper gets an empty part. A thread changes its part as if it were alone. At the end of a group, the
//! home joins what the parts hold of the group.
//!
//! ```text
//!   home        part 0 ◄─ join ─┬───────┐      at the end of a group
//!   helper 1    part 1 ─────────┘       │
//!   helper 2    part 2 ─────────────────┘
//! ```
//!
//! This suits operators whose results do not depend on the order of rows, and whose groups are few. A part is under a
//! lock, because more threads than parts share them, and because the home drops cancelled state. The lock is nearly
//! always free. A thread takes it once a message, and holds one at a time; the home, at the end, its own and another.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use mangrove_flow::{GroupId, Output, Shared, SharedState, Step, TagSet};
use mangrove_graph::{Error, Result};
use parking_lot::{Mutex, MutexGuard};

use crate::rows::Rows;
use crate::rows::held::ByInstance;

/// The parts of a state. More threads than that share them.
const PARTS: usize = 16;

/// The number of the home among the threads.
pub(crate) const HOME: usize = 0;

/// Numbers the helpers that join.
#[derive(Debug)]
pub(crate) struct Threads(AtomicUsize);

impl Default for Threads {
    fn default() -> Self {
        Threads(AtomicUsize::new(HOME + 1))
    }
}

impl Threads {
    /// Returns the number of a helper that joins.
    pub fn join(&self) -> usize {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// The parts of a state, by thread.
pub(crate) struct Parts<S> {
    parts: Box<[Mutex<S>]>,
    threads: Threads,
}

impl<S> Parts<S> {
    /// The parts of a state that the home has had alone. `empty` makes those of the other threads.
    pub fn new(home: S, empty: impl Fn() -> S) -> Self {
        let others = (HOME + 1..PARTS).map(|_| Mutex::new(empty()));
        Parts { parts: std::iter::once(Mutex::new(home)).chain(others).collect(), threads: Threads::default() }
    }

    /// Returns the part of a thread ([`Threads`]).
    pub fn of(&self, thread: usize) -> MutexGuard<'_, S> {
        self.parts[thread % PARTS].lock()
    }

    /// Returns all parts, that of the home first.
    pub fn all(&self) -> &[Mutex<S>] {
        &self.parts
    }
}

/// See the header of this file. `S` holds the state of all groups.
pub(crate) enum PerThread<S> {
    /// One thread works on the query.
    Own(S),
    /// Several threads do.
    Shared(Arc<Parts<S>>),
    /// As `Shared`, on a helper: the operator at the home holds it. And the number of the helper's thread.
    Joined(Weak<Parts<S>>, usize),
}

impl<S: Default> Default for PerThread<S> {
    fn default() -> Self {
        PerThread::Own(S::default())
    }
}

impl<S: Default + Send + 'static> PerThread<S> {
    /// Lets `work` change the part of this thread. Does nothing on a helper whose run is over.
    pub fn with(&mut self, work: impl FnOnce(&mut S) -> Result<()>) -> Result<()> {
        match self {
            PerThread::Own(state) => work(state),
            PerThread::Shared(parts) => work(&mut parts.of(HOME)),
            PerThread::Joined(parts, thread) => match parts.upgrade() {
                Some(parts) => work(&mut parts.of(*thread)),
                None => Ok(()),
            },
        }
    }

    /// At the home, after [`PerThread::combine`]: lets `work` change its part. Fails on a helper, which receives no end of
    /// a group.
    pub fn at_home<R>(&mut self, work: impl FnOnce(&mut S) -> Result<R>) -> Result<R> {
        match self {
            PerThread::Own(state) => work(state),
            PerThread::Shared(parts) => work(&mut parts.of(HOME)),
            PerThread::Joined(..) => Err(Error::bug("only the home ends a group")),
        }
    }

    /// At the home: returns true if other threads may have parts.
    pub fn is_shared(&self) -> bool {
        matches!(self, PerThread::Shared(_))
    }

    /// At the home: lets `work` change the part of every thread.
    pub fn each(&mut self, mut work: impl FnMut(&mut S)) {
        match self {
            PerThread::Own(state) => work(state),
            PerThread::Shared(parts) => parts.all().iter().for_each(|part| work(&mut part.lock())),
            PerThread::Joined(..) => {}
        }
    }

    /// At the home, when a group has ended: calls `join` with the home's part and that of another thread, for each one.
    /// `join` moves what the other part holds of the group, or some of it: then it returns [`Step::More`], and so does
    /// this, and the operator calls it again in its next step. A part that holds nothing of the group is done.
    pub fn combine(&mut self, mut join: impl FnMut(&mut S, &mut S) -> Result<Step>) -> Result<Step> {
        let PerThread::Shared(parts) = self else { return Ok(Step::Done) };
        let mut home = parts.of(HOME);
        for other in &parts.all()[HOME + 1..] {
            if join(&mut home, &mut other.lock())? == Step::More {
                return Ok(Step::More);
            }
        }
        Ok(Step::Done)
    }

    /// See [`mangrove_flow::Operator::share`].
    pub fn share(&mut self) -> Option<Shared> {
        self.share_with(S::default)
    }

    /// As [`PerThread::share`]. `empty` makes the parts of the helpers.
    pub fn share_with(&mut self, empty: impl Fn() -> S) -> Option<Shared> {
        let PerThread::Own(state) = self else { return None };
        let parts = Arc::new(Parts::new(std::mem::take(state), empty));
        *self = PerThread::Shared(parts.clone());
        Some(Shared { state: parts, from_port: 0 })
    }

    /// See [`mangrove_flow::Operator::join`].
    pub fn join(&mut self, state: &SharedState) {
        if let Ok(parts) = state.clone().downcast::<Parts<S>>() {
            *self = PerThread::Joined(Arc::downgrade(&parts), parts.threads.join());
        }
    }

    /// Ends a run. Returns true if no part holds anything. Then the next run begins with one thread, and the part of the
    /// home.
    pub fn recycle(&mut self, is_empty: impl Fn(&S) -> bool) -> bool {
        let home = match self {
            PerThread::Own(state) => return is_empty(state),
            PerThread::Shared(parts) if !parts.all().iter().all(|part| is_empty(&part.lock())) => return false,
            PerThread::Shared(parts) => std::mem::take(&mut *parts.of(HOME)),
            PerThread::Joined(..) => S::default(),
        };
        *self = PerThread::Own(home);
        true
    }
}

impl<T: Send + 'static> PerThread<ByInstance<T>> {
    /// At the home, when a group has ended: joins the states of all threads, as [`ByInstance::take_over`]. If the group is
    /// cancelled, drops those of the helpers.
    pub fn combine_states(
        &mut self,
        group: GroupId,
        out: &Output<'_, Rows>,
        mut join: impl FnMut(&mut T, &mut T) -> Result<(u64, Step)>,
    ) -> Result<Step> {
        let is_cancelled = out.is_cancelled(group);
        self.combine(|home, other| {
            if is_cancelled {
                other.drop_group(group, out);
                return Ok(Step::Done);
            }
            home.take_over(group, other, out, &mut join)
        })
    }

    /// See [`ByInstance::cancelled`]. If a helper adds to a cancelled instance after this, the result is dropped downstream.
    pub fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        self.each(|states| states.cancelled(group, tags, out));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Moves at most one number at a time.
    fn move_one(home: &mut Vec<u32>, other: &mut Vec<u32>) -> Result<Step> {
        match other.pop() {
            Some(number) => {
                home.push(number);
                Ok(Step::More)
            }
            None => Ok(Step::Done),
        }
    }

    fn add(state: &mut PerThread<Vec<u32>>, number: u32) {
        state
            .with(|numbers| {
                numbers.push(number);
                Ok(())
            })
            .unwrap();
    }

    #[test]
    fn the_home_joins_what_more_threads_than_parts_have_added() {
        let mut home: PerThread<Vec<u32>> = PerThread::default();
        add(&mut home, 0);
        assert!(home.combine(move_one).unwrap() == Step::Done, "a run that is not open has one part");
        let shared = home.share().unwrap();
        assert!(home.share().is_none());
        let threads = 2 * PARTS as u32;
        std::thread::scope(|scope| {
            for number in 1..=threads {
                let state = &shared.state;
                scope.spawn(move || {
                    let mut helper: PerThread<Vec<u32>> = PerThread::default();
                    helper.join(state);
                    add(&mut helper, number);
                });
            }
        });
        assert!(!home.recycle(Vec::is_empty), "parts of helpers count");
        let mut steps = 0;
        while home.combine(move_one).unwrap() == Step::More {
            steps += 1;
        }
        let mut all = Vec::new();
        home.with(|numbers| {
            all.append(numbers);
            Ok(())
        })
        .unwrap();
        all.sort_unstable();
        assert_eq!(all, (0..=threads).collect::<Vec<_>>());
        // Thread `PARTS` shares the part of the home.
        assert!((1..=threads as usize).contains(&steps));
        assert!(home.recycle(Vec::is_empty));
        assert!(matches!(home, PerThread::Own(_)));
    }

    #[test]
    fn a_helper_of_a_run_that_is_over_does_nothing() {
        let mut home: PerThread<Vec<u32>> = PerThread::default();
        let mut helper: PerThread<Vec<u32>> = PerThread::default();
        helper.join(&home.share().unwrap().state);
        add(&mut helper, 1);
        home.each(Vec::clear);
        assert!(home.recycle(Vec::is_empty));
        add(&mut helper, 2);
        let mut numbers = vec![3];
        home.with(|held| {
            numbers.append(held);
            Ok(())
        })
        .unwrap();
        assert_eq!(numbers, [3]);
        assert!(helper.recycle(Vec::is_empty));
    }
}
