//! The executor threads.
//!
//! A process has one set of executors, [`Executors::shared`]. However many databases it has, there are no more
//! executors than cores. The threads of this set live as long as the process and do not keep it from ending. A set of
//! one's own ([`Executors::start`]) is for tests and benches; its threads end when it is dropped.
//!
//! Freeing the memory of a query may take long; a thread of its own does it ([`Executors::discard`]).

use std::any::Any;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use parking_lot::Mutex;

use super::fair_queue::TaskClass;
use super::scheduler::{Scheduler, Waker};
use super::task::Task;
use super::tenant::{Tenant, TenantShare, Weight};
use super::thread::lower_priority;

/// The options of a set of executors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutorOptions {
    /// The number of executor threads; 0 means one for each core.
    pub count: usize,
    /// By how much the nice value of the threads is higher than that of the process; 0 leaves their priority alone. A
    /// failure to set it is ignored.
    ///
    /// Light queries run on the threads that receive requests. If all cores are busy with executors, such a thread
    /// would wait until the system's scheduler ends the slice of an executor, which takes milliseconds. A thread of
    /// higher priority takes the core when it wakes.
    pub nice: u32,
}

impl Default for ExecutorOptions {
    fn default() -> Self {
        ExecutorOptions { count: 0, nice: 5 }
    }
}

/// How busy the executors are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecutorLoad {
    /// Executor threads.
    pub threads: u64,
    /// Threads that are running a task.
    pub busy: u64,
    /// Tasks that wait for a thread.
    pub queued: u64,
    /// Turns begun since the start.
    pub turns: u64,
}

/// A set of executor threads. Dropping it stops each thread after the turn that it is running. Tasks that are not done
/// then get no further turn.
pub struct Executors {
    scheduler: Arc<Scheduler>,
    /// The channel to the thread that frees; `None` tells that thread to end.
    discarded: Option<Sender<Discarded>>,
    threads: Vec<JoinHandle<()>>,
}

/// A value to be dropped.
type Discarded = Box<dyn Any + Send>;

/// The executors of the process.
struct SharedExecutors {
    options: Option<ExecutorOptions>,
    /// The weights that were set before the start.
    weights: Vec<(Tenant, Weight)>,
    /// `None` until they are first needed. A static is never dropped, so the threads are never waited for.
    started: Option<Arc<Executors>>,
}

static SHARED: Mutex<SharedExecutors> =
    Mutex::new(SharedExecutors { options: None, weights: Vec::new(), started: None });

impl Executors {
    /// The executors of the process. The first call starts them.
    pub fn shared() -> io::Result<Arc<Self>> {
        let mut shared = SHARED.lock();
        if let Some(started) = &shared.started {
            return Ok(started.clone());
        }
        let started = Executors::start(shared.options.unwrap_or_default())?;
        for (tenant, weight) in shared.weights.drain(..) {
            started.set_weight(&tenant, weight);
        }
        Ok(shared.started.insert(Arc::new(started)).clone())
    }

    /// Sets the options of the executors of the process. Returns false if they were started before: then nothing
    /// changes.
    #[must_use]
    pub fn configure_shared(options: ExecutorOptions) -> bool {
        let mut shared = SHARED.lock();
        if shared.started.is_none() {
            shared.options = Some(options);
        }
        shared.started.is_none()
    }

    /// Sets the weight of a tenant on the executors of the process, as [`Executors::set_weight`] does, without starting
    /// them.
    pub fn set_shared_weight(tenant: &Tenant, weight: Weight) {
        let mut shared = SHARED.lock();
        match &shared.started {
            Some(started) => started.set_weight(tenant, weight),
            None => {
                shared.weights.retain(|(known, _)| known != tenant);
                shared.weights.push((tenant.clone(), weight));
            }
        }
    }

    /// The load of the executors of the process. All figures are 0 until they are started.
    pub fn shared_load() -> ExecutorLoad {
        let started = SHARED.lock().started.clone();
        started.map_or_else(ExecutorLoad::default, |executors| executors.load())
    }

    /// As [`Executors::owe`], on the executors of the process. Until they are started, no tenant owes anything.
    pub fn owe_shared(tenant: &Tenant, nanos: u64) {
        let started = SHARED.lock().started.clone();
        if let Some(executors) = started {
            executors.owe(tenant, nanos);
        }
    }

    /// Returns a tenant's part of the executors of the process at the moment, without starting them.
    pub fn shared_share(tenant: &Tenant) -> TenantShare {
        let shared = SHARED.lock();
        let Some(started) = shared.started.clone() else {
            let set = shared.weights.iter().find(|(known, _)| known == tenant);
            return TenantShare { weight: set.map_or(Weight::DEFAULT, |(_, weight)| *weight), share: None };
        };
        drop(shared);
        started.share(tenant)
    }

    /// Starts a set of executor threads of one's own, and the thread that frees.
    pub fn start(options: ExecutorOptions) -> io::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let count = if options.count == 0 { cores } else { options.count };
        // Where executors share a core, one that spins would keep another from its work.
        let may_spin = cores > 1 && count <= cores;
        let scheduler = Arc::new(Scheduler::new(count, may_spin));
        let (discarded, garbage) = channel();
        let mut executors = Executors { scheduler, discarded: Some(discarded), threads: Vec::new() };
        for n in 0..count {
            let scheduler = executors.scheduler.clone();
            executors.start_thread(format!("mangrove-executor-{n}"), move || {
                if options.nice > 0 {
                    lower_priority(options.nice);
                }
                scheduler.run_tasks();
            })?;
        }
        executors.start_thread("mangrove-freeing".to_owned(), move || free_discarded(&garbage))?;
        Ok(executors)
    }

    fn start_thread(&mut self, name: String, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        self.threads.push(std::thread::Builder::new().name(name).spawn(work)?);
        Ok(())
    }

    /// Puts a query of a tenant into the queue. `make` receives the waker of the task before the first turn.
    pub fn spawn(&self, tenant: &Tenant, make: impl FnOnce(Waker) -> Box<dyn Task>) {
        self.scheduler.spawn(tenant, TaskClass::Query, make);
    }

    /// As [`Executors::spawn`], for a task that helps a running query of the tenant. It gets a turn only when no query
    /// waits for one, unless it says that its query may have to wait for it ([`Task::is_needed`]).
    pub fn spawn_helper(&self, tenant: &Tenant, make: impl FnOnce(Waker) -> Box<dyn Task>) {
        self.scheduler.spawn(tenant, TaskClass::Helper, make);
    }

    /// Charges a tenant for queries that ran on the threads of their callers for this many nanoseconds (FLOW-48). The
    /// call does not wait for the queue of tasks.
    pub fn owe(&self, tenant: &Tenant, nanos: u64) {
        self.scheduler.owe(tenant, nanos);
    }

    /// Sets the weight of a tenant, now and for later. [`Weight::DEFAULT`] removes the entry.
    pub fn set_weight(&self, tenant: &Tenant, weight: Weight) {
        self.scheduler.set_weight(tenant, weight);
    }

    /// Returns a tenant's part of the executors at the moment.
    pub fn share(&self, tenant: &Tenant) -> TenantShare {
        self.scheduler.share(tenant)
    }

    /// Drops a value on the thread that frees. Freeing a gigabyte of values takes tenths of a second.
    pub fn discard(&self, garbage: impl Any + Send) {
        if let Some(discarded) = &self.discarded {
            // The thread ends only with these executors. A value that it cannot take is dropped here.
            let _ = discarded.send(Box::new(garbage));
        }
    }

    /// Returns how busy the executors are.
    pub fn load(&self) -> ExecutorLoad {
        let (queued, turns) = self.scheduler.queued_and_turns();
        let threads = self.count();
        ExecutorLoad { threads: threads as u64, busy: threads.saturating_sub(self.idle()) as u64, queued, turns }
    }

    /// Returns the number of executors that are parked or look for work. The figure may be old when it is read.
    pub fn idle(&self) -> usize {
        self.scheduler.idle()
    }

    /// Returns the number of executor threads.
    pub fn count(&self) -> usize {
        // The last thread is the one that frees.
        self.threads.len().saturating_sub(1)
    }
}

impl Drop for Executors {
    fn drop(&mut self) {
        self.scheduler.close();
        self.discarded = None;
        for thread in self.threads.drain(..) {
            // A task may own the last handle of its executors. Its thread then ends by itself, after the task is
            // dropped.
            if thread.thread().id() == std::thread::current().id() {
                continue;
            }
            // An executor catches the panics of its tasks, so its thread ends without one.
            let _ = thread.join();
        }
    }
}

/// Drops values until the channel is closed and empty.
fn free_discarded(garbage: &Receiver<Discarded>) {
    for discarded in garbage {
        // A panic in one drop must not end the thread.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(discarded)));
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests;
