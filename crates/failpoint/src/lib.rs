//! Failpoints: named points of the program at which a test makes it fail, panic or wait.
//!
//! A simulated disk can fail at every operation on files. A failpoint is for a moment between two such operations, or
//! for code that uses no disk. The program calls [`reach`] (a test may panic or wait there) or [`check`] (a test may
//! also fail there), and a test gives a [`Point`] an action with [`set`]:
//!
//! ```
//! use mangrove_failpoint::{Point, check, set};
//!
//! let failing = set(Point::GraphCreated, || Err(std::io::Error::other("the test says so")));
//! # #[cfg(debug_assertions)]
//! assert!(check(Point::GraphCreated).is_err());
//! drop(failing);
//! assert!(check(Point::GraphCreated).is_ok());
//! ```
//!
//! Points are global to the process, and a point has at most one action. So tests that set points are a program of
//! their own (`tests/failpoints.rs` of their crate), and each holds a [`Scenario`], which lets one of them run at a
//! time.
//!
//! Without `debug_assertions`, so in every release build, points are empty functions. This crate depends on no other
//! crate of Mangrove.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

use std::io;

macro_rules! points {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// A point of the program.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Point {
            $($(#[doc = $doc])* $name,)*
        }

        impl Point {
            /// All points.
            pub const ALL: &'static [Point] = &[$(Point::$name),*];
        }
    };
}

points! {
    /// A flush has taken commits from the queue and has written nothing.
    FlushTaken,
    /// A flush has written and synced its commits, and has not published that.
    FlushWritten,
    /// A log segment has its name, and the directory is not synced.
    SegmentNamed,
    /// A log segment that a checkpoint covers is about to be examined for reuse.
    SegmentRetired,
    /// A checkpoint has read the floor of the log and has no snapshot.
    CheckpointFloor,
    /// The page images of a checkpoint are written, and its names are not.
    CheckpointImages,
    /// All files of a checkpoint are synced, and its manifest is not written.
    CheckpointFiles,
    /// The manifest of a checkpoint is durable, and the old files are not removed.
    CheckpointManifest,
    /// The old files of a checkpoint are removed, and the log that it covers is not released.
    CheckpointRelease,
    /// A worker of a recovery is about to apply redo entries.
    RecoveryWorker,
    /// A recovery has its graph, and nothing on the disk was changed.
    Recovered,
    /// An opening has its fencing epoch, and the torn end of the log is not cut.
    RecoveryEpoch,
    /// A collector thread is about to be started.
    CollectorStart,
    /// A collector, or a caller that collects, is about to compact.
    Compaction,
    /// The results of a request that writes are encoded, and it is not committed.
    RequestSealed,
    /// A request is over, and committed if it wrote; its last results are not sent.
    RequestDone,
    /// The database of a new graph exists, and its directory does not have the name of the graph.
    GraphCreated,
    /// The directory of a new graph has its name, and the server does not list the graph.
    GraphNamed,
    /// A graph is about to be marked as dropped on the disk.
    GraphDrop,
    /// The directory of a dropped graph has been renamed and is about to be removed.
    GraphRemove,
}

#[cfg(debug_assertions)]
mod active {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use parking_lot::{Mutex, MutexGuard};

    use super::{Point, io};

    type Action = Arc<dyn Fn() -> io::Result<()> + Send + Sync>;

    /// How many points have an action. While there is none, a point costs one load.
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    /// At most one action per point.
    static ACTIONS: Mutex<Vec<(Point, Action)>> = Mutex::new(Vec::new());
    /// Held by the test whose [`super::Scenario`] exists.
    static TURN: Mutex<()> = Mutex::new(());

    #[inline]
    pub(super) fn run(point: Point) -> io::Result<()> {
        match COUNT.load(Ordering::Relaxed) {
            0 => Ok(()),
            _ => act(point),
        }
    }

    #[cold]
    fn act(point: Point) -> io::Result<()> {
        let found = ACTIONS.lock().iter().find(|(other, _)| *other == point).map(|(_, action)| action.clone());
        // The action runs without the lock: it may wait for another thread that reaches a point.
        found.map_or(Ok(()), |action| action())
    }

    pub(super) fn set(point: Point, action: Action) {
        let mut actions = ACTIONS.lock();
        actions.retain(|(other, _)| *other != point);
        actions.push((point, action));
        COUNT.store(actions.len(), Ordering::Relaxed);
    }

    pub(super) fn clear(point: Point) {
        let mut actions = ACTIONS.lock();
        actions.retain(|(other, _)| *other != point);
        COUNT.store(actions.len(), Ordering::Relaxed);
    }

    pub(super) fn take_turn() -> MutexGuard<'static, ()> {
        TURN.lock()
    }
}

/// Marks that the program is at a point. A test may panic or wait here. Panics if the test's action returns an error.
#[inline]
pub fn reach(point: Point) {
    check(point).expect("this point panics or waits, and cannot fail");
}

/// Marks that the program is at a point. A test may panic, wait or fail here. Returns the error of the test's action.
#[inline]
pub fn check(point: Point) -> io::Result<()> {
    #[cfg(debug_assertions)]
    return active::run(point);
    #[cfg(not(debug_assertions))]
    {
        let _ = point;
        Ok(())
    }
}

/// Runs an action whenever a point is reached, until the guard is dropped. A second action for the same point replaces
/// the first, and then the drop of either guard removes it. Without `debug_assertions` this does nothing.
#[must_use]
pub fn set(point: Point, action: impl Fn() -> io::Result<()> + Send + Sync + 'static) -> Armed {
    #[cfg(debug_assertions)]
    active::set(point, std::sync::Arc::new(action));
    #[cfg(not(debug_assertions))]
    drop(action);
    Armed { point }
}

/// A point with an action. Dropping it removes the action of the point.
#[derive(Debug)]
pub struct Armed {
    point: Point,
}

impl Drop for Armed {
    fn drop(&mut self) {
        #[cfg(debug_assertions)]
        active::clear(self.point);
        #[cfg(not(debug_assertions))]
        let _ = self.point;
    }
}

/// The turn of a test that sets points. One exists at a time in a process.
#[derive(Debug)]
pub struct Scenario {
    #[cfg(debug_assertions)]
    _turn: parking_lot::MutexGuard<'static, ()>,
}

impl Scenario {
    /// Waits until no other test sets points.
    #[allow(clippy::new_without_default, reason = "it waits")]
    pub fn new() -> Self {
        Scenario {
            #[cfg(debug_assertions)]
            _turn: active::take_turn(),
        }
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn a_point_does_what_a_test_says_and_nothing_else() {
        let _scenario = Scenario::new();
        let count = Arc::new(AtomicU64::new(0));
        let counted = count.clone();
        let armed = set(Point::FlushTaken, move || {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        reach(Point::FlushTaken);
        reach(Point::FlushWritten);
        assert_eq!(count.load(Ordering::Relaxed), 1);
        let failing = set(Point::GraphDrop, || Err(io::Error::other("no")));
        assert_eq!(check(Point::GraphDrop).unwrap_err().to_string(), "no");
        drop((armed, failing));
        reach(Point::FlushTaken);
        assert!(check(Point::GraphDrop).is_ok());
        assert_eq!(count.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn an_action_that_panics_panics_at_its_point() {
        let _scenario = Scenario::new();
        let _armed = set(Point::FlushTaken, || panic!("here"));
        assert!(std::panic::catch_unwind(|| reach(Point::FlushTaken)).is_err());
        reach(Point::FlushWritten);
    }
}
