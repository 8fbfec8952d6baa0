//! The queue of the tasks that wait for an executor: which task gets the next turn.
//!
//! ```text
//!            tenant ada (weight 100)       tenant bob (weight 300)
//!            virtual time 700              virtual time 650         ◄── least: its queries are next
//!             ├─ query 1    time 300        └─ query 3    time 950
//!             ├─ query 2    time 250
//!             └─ helper 4   time 150
//! ```
//!
//! Tenants share the CPU time of the executors by their weights, and the tasks of one tenant share its part equally.
//! The *virtual time* of a tenant is the CPU time of its tasks, times [`Weight::DEFAULT`], divided by its weight. That
//! of a task is its CPU time. The task with the least time of the tenant with the least time goes next. This is
//! start-time fair queuing (Goyal, Vin, Cheng 1996) in two levels, with several servers.
//!
//! - **FLOW-24.** While two tenants have a query in the queue all the time, the virtual times that they gain differ by
//!   at most *n* + 1 turns of each, where *n* is the number of executors. The same holds for two tasks of one tenant.
//! - **FLOW-25.** A tenant or task that was absent gets no credit for it. Its time is raised to the *floor*, the time
//!   at which the last one was chosen. A newcomer starts at the least time among those that wait and have had a turn,
//!   and goes after those of the same time. So a short query waits for few turns. A stream of newcomers keeps no task
//!   waiting forever, because later newcomers go after the first task that has had a turn.
//! - **FLOW-26.** A helper is chosen only if no query waits. Helpers of all tenants are in an order of their own, by
//!   the same virtual times of tenants. A helper that its query may have to wait for counts as a query.
//!
//! - **FLOW-48.** A tenant pays for the time of its queries on the threads of their callers: it is added to the tenant's
//!   virtual time while another tenant has a task. Such a debt is at most [`DEBT_NANOS_MAX`] above the floor, because no
//!   queue limits how much a tenant does there.
//!
//! A tenant without a task keeps its virtual time until the floor has passed it. Otherwise a client could lose its debt
//! by sending its queries one after the other.
//!
//! The queue has no threads, locks or clocks. Its owner measures the turns and reports them with [`FairQueue::charge`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashMap;

use super::tenant::{Tenant, TenantShare, Weight};

/// The class of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskClass {
    /// A query.
    Query,
    /// A task that helps a query which is running.
    Helper,
}

const CLASSES: [TaskClass; 2] = [TaskClass::Query, TaskClass::Helper];

/// A virtual time, in nanoseconds. The weight scales a nanosecond by up to 100, so 64 bits would overflow after a month
/// of 64 busy executors.
type VirtualTime = u128;

/// The least charge of a turn. A turn that the CPU clock measures as 0 must not go before others for free.
const TURN_NANOS_MIN: u64 = 1_000;

/// Tenants without a task whose virtual times are kept. Above this number, those with the least debt are forgotten.
const ABSENT_TENANTS_MAX: usize = 1_024;

/// How far above the floor the virtual time of a tenant may come by the time on the threads of callers. So a query of the
/// tenant waits for a second of another tenant's time, but not for all of an hour in which the tenant had only light
/// queries.
const DEBT_NANOS_MAX: VirtualTime = 1_000_000_000;

/// What a task takes from turn to turn: its tenant and its virtual time. The owner of the queue keeps the ticket while
/// the task runs or waits to be woken.
#[derive(Debug)]
pub(crate) struct Ticket {
    tenant: Arc<TenantNumber>,
    /// The class of the task.
    own_class: TaskClass,
    /// The class that it counts as.
    class: TaskClass,
    time: VirtualTime,
    has_run: bool,
}

impl Ticket {
    /// Says whether a query may have to wait for the next turn of the task: then it counts as a query (FLOW-26).
    pub fn set_needed(&mut self, is_needed: bool) {
        self.class = if is_needed { TaskClass::Query } else { self.own_class };
    }
}

/// The index of a tenant. The reference count tells how many tasks the tenant has.
#[derive(Debug)]
struct TenantNumber(usize);

/// The position in an order: a virtual time, and the number of the arrival, so that of equal ones the first is first.
type Position = (VirtualTime, u64);

/// The tasks of one class and tenant that wait.
struct WaitingTasks<T> {
    by_time: BTreeMap<Position, (Ticket, T)>,
    /// The time at which the last task was chosen.
    floor: VirtualTime,
    /// The position of the tenant in the order of tenants; `None` if no task waits.
    position: Option<Position>,
}

struct TenantState<T> {
    name: Tenant,
    number: Arc<TenantNumber>,
    weight: Weight,
    time: VirtualTime,
    /// True if a task has had a turn since the tenant was absent.
    has_run: bool,
    /// By class.
    waiting: [WaitingTasks<T>; 2],
}

impl<T> WaitingTasks<T> {
    /// FLOW-25: the virtual time of a new task. The search passes over new tasks only. They are few: each has a thread
    /// that waits for its results, or helps such a one.
    fn start_of_newcomer(&self) -> VirtualTime {
        let first = self.by_time.iter().find(|(_, (ticket, _))| ticket.has_run).or(self.by_time.first_key_value());
        first.map_or(self.floor, |((time, _), _)| self.floor.max(*time))
    }
}

impl<T> TenantState<T> {
    fn new(name: Tenant, number: usize, weight: Weight, time: VirtualTime) -> Self {
        let waiting = CLASSES.map(|_| WaitingTasks { by_time: BTreeMap::new(), floor: 0, position: None });
        TenantState { name, number: Arc::new(TenantNumber(number)), weight, time, has_run: false, waiting }
    }

    /// Returns true if no task of the tenant waits, runs, or may be woken.
    fn is_absent(&self) -> bool {
        Arc::strong_count(&self.number) == 1
    }
}

/// The tasks that wait for an executor.
pub(crate) struct FairQueue<T> {
    /// `None` is free for the next tenant.
    tenants: Vec<Option<TenantState<T>>>,
    numbers: HashMap<Tenant, usize>,
    free: Vec<usize>,
    /// The weights that differ from the default.
    weights: HashMap<Tenant, Weight>,
    /// The tenants with a waiting task, by class.
    order: [BTreeSet<(Position, usize)>; 2],
    /// The time at which the last tenant was chosen.
    floor: VirtualTime,
    /// Arrivals so far.
    arrivals: u64,
    len: usize,
    /// Absent tenants are forgotten when there are this many tenants.
    sweep_at: usize,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        FairQueue {
            tenants: Vec::new(),
            numbers: HashMap::new(),
            free: Vec::new(),
            weights: HashMap::new(),
            order: [BTreeSet::new(), BTreeSet::new()],
            floor: 0,
            arrivals: 0,
            len: 0,
            sweep_at: ABSENT_TENANTS_MAX,
        }
    }
}

impl<T> FairQueue<T> {
    /// The number of tasks that wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Adds a new task.
    pub fn add(&mut self, tenant: &Tenant, class: TaskClass, task: T) {
        let number = self.number_of(tenant);
        let start = self.start_of_newcomer(class);
        let state = self.state(number);
        // FLOW-25: a tenant that comes back starts as a new one does, or later if it has a debt.
        if state.is_absent() {
            state.time = state.time.max(start);
            state.has_run = false;
        }
        let time = state.waiting[class as usize].start_of_newcomer();
        let ticket = Ticket { tenant: state.number.clone(), own_class: class, class, time, has_run: false };
        self.put_back(ticket, task);
    }

    /// FLOW-25: the virtual time of a new tenant.
    fn start_of_newcomer(&self, class: TaskClass) -> VirtualTime {
        let has_run = |number: usize| self.tenants[number].as_ref().is_some_and(|state| state.has_run);
        let order = &self.order[class as usize];
        let first = order.iter().find(|(_, number)| has_run(*number)).or(order.first());
        first.map_or(self.floor, |((time, _), _)| self.floor.max(*time))
    }

    /// Adds a task again, after its turn or when it was woken.
    pub fn put_back(&mut self, mut ticket: Ticket, task: T) {
        let (number, floor) = (ticket.tenant.0, self.floor);
        self.arrivals += 1;
        let arrival = self.arrivals;
        let (state, class) = (self.state(number), ticket.class);
        // FLOW-25: no credit for an absence.
        state.time = state.time.max(floor);
        let waiting = &mut state.waiting[class as usize];
        ticket.time = ticket.time.max(waiting.floor);
        waiting.by_time.insert((ticket.time, arrival), (ticket, task));
        self.len += 1;
        self.reorder(number);
    }

    /// Takes out the task that is next.
    pub fn take(&mut self) -> Option<(Ticket, T)> {
        // FLOW-26: helpers come after all queries.
        let class = CLASSES.into_iter().find(|class| !self.order[*class as usize].is_empty())?;
        let (_, number) = *self.order[class as usize].first()?;
        let state = self.state(number);
        let waiting = &mut state.waiting[class as usize];
        let (_, (ticket, task)) = waiting.by_time.pop_first()?;
        waiting.floor = waiting.floor.max(ticket.time);
        let time = state.time;
        self.floor = self.floor.max(time);
        self.len -= 1;
        // Tenants of the same time take turns.
        self.reorder(number);
        Some((ticket, task))
    }

    /// Adds the CPU time of a turn to a task and its tenant.
    pub fn charge(&mut self, ticket: &mut Ticket, nanos: u64) {
        let nanos = VirtualTime::from(nanos.max(TURN_NANOS_MIN));
        ticket.time += nanos;
        ticket.has_run = true;
        let number = ticket.tenant.0;
        let state = self.state(number);
        state.has_run = true;
        state.time += nanos * VirtualTime::from(Weight::DEFAULT.get()) / VirtualTime::from(state.weight.get());
        self.reorder(number);
    }

    /// Adds the time for which queries of tenants ran on the threads of their callers (FLOW-48).
    pub fn owe(&mut self, owed: impl IntoIterator<Item = (Tenant, u64)>) {
        let mut present = self.tenants.iter().flatten().filter(|state| !state.is_absent());
        let (first, second) = (present.next().map(|state| state.number.0), present.next().is_some());
        // If no tenant has a task, none waits.
        let Some(first) = first else { return };
        for (tenant, nanos) in owed {
            let number = self.number_of(&tenant);
            if number == first && !second {
                continue;
            }
            let floor = self.floor;
            let state = self.state(number);
            let more = VirtualTime::from(nanos) * VirtualTime::from(Weight::DEFAULT.get());
            let time = state.time.max(floor) + more / VirtualTime::from(state.weight.get());
            state.time = time.min(floor + DEBT_NANOS_MAX).max(state.time);
            self.reorder(number);
        }
    }

    /// Returns true if a task that has had a turn would be next again. Then its next turn has begun, without a way
    /// through the queue.
    pub fn goes_on(&mut self, ticket: &Ticket) -> bool {
        let (number, class) = (ticket.tenant.0, ticket.class);
        if class == TaskClass::Helper && !self.order[TaskClass::Query as usize].is_empty() {
            return false;
        }
        let first = self.order[class as usize].iter().find(|(_, other)| *other != number).map(|(at, _)| at.0);
        let floor = self.floor;
        let state = self.state(number);
        let time = state.time;
        let waiting = &mut state.waiting[class as usize];
        let sibling = waiting.by_time.keys().next().map(|(time, _)| *time);
        // Of equal times, the one that waits goes first.
        if time < floor
            || ticket.time < waiting.floor
            || first.is_some_and(|first| first <= time)
            || sibling.is_some_and(|sibling| sibling <= ticket.time)
        {
            return false;
        }
        waiting.floor = waiting.floor.max(ticket.time);
        self.floor = time;
        true
    }

    /// Sets the weight of a tenant, from its next turn on.
    pub fn set_weight(&mut self, tenant: &Tenant, weight: Weight) {
        if weight == Weight::DEFAULT {
            self.weights.remove(tenant);
        } else {
            self.weights.insert(tenant.clone(), weight);
        }
        if let Some(number) = self.numbers.get(tenant).copied() {
            self.state(number).weight = weight;
        }
    }

    /// Returns a tenant's part of the executors at the moment.
    pub fn share(&self, tenant: &Tenant) -> TenantShare {
        let weight = self.weights.get(tenant).copied().unwrap_or_default();
        let present = || self.tenants.iter().flatten().filter(|state| !state.is_absent());
        let has_task = present().any(|state| state.name == *tenant);
        let all: u32 = present().map(|state| state.weight.get()).sum();
        TenantShare { weight, share: has_task.then(|| f64::from(weight.get()) / f64::from(all)) }
    }

    /// Takes out all tasks.
    pub fn take_all(&mut self) -> Vec<(Ticket, T)> {
        std::iter::from_fn(|| self.take()).collect()
    }

    fn state(&mut self, number: usize) -> &mut TenantState<T> {
        self.tenants[number].as_mut().expect("a ticket keeps its tenant")
    }

    /// Gives a tenant its place in the orders of tenants.
    fn reorder(&mut self, number: usize) {
        self.arrivals += 1;
        let arrival = self.arrivals;
        let state = self.tenants[number].as_mut().expect("a ticket keeps its tenant");
        for (order, waiting) in self.order.iter_mut().zip(&mut state.waiting) {
            let position = (!waiting.by_time.is_empty()).then_some((state.time, arrival));
            if let Some(before) = std::mem::replace(&mut waiting.position, position) {
                order.remove(&(before, number));
            }
            if let Some(position) = position {
                order.insert((position, number));
            }
        }
    }

    fn number_of(&mut self, tenant: &Tenant) -> usize {
        match self.numbers.get(tenant) {
            Some(number) => *number,
            None => self.add_tenant(tenant),
        }
    }

    fn add_tenant(&mut self, name: &Tenant) -> usize {
        if self.numbers.len() >= self.sweep_at {
            self.forget_absent_tenants();
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.tenants.push(None);
            self.tenants.len() - 1
        });
        let weight = self.weights.get(name).copied().unwrap_or_default();
        self.tenants[number] = Some(TenantState::new(name.clone(), number, weight, self.floor));
        self.numbers.insert(name.clone(), number);
        number
    }

    /// Forgets the absent tenants that have no debt, and of the others those with the least, until few are left.
    fn forget_absent_tenants(&mut self) {
        let absent = self.tenants.iter().flatten().filter(|state| state.is_absent());
        let mut absent: Vec<(VirtualTime, usize)> = absent.map(|state| (state.time, state.number.0)).collect();
        absent.sort_unstable();
        let debtless = absent.partition_point(|(time, _)| *time <= self.floor);
        let count = debtless.max(absent.len().saturating_sub(ABSENT_TENANTS_MAX / 2));
        for (_, number) in &absent[..count] {
            if let Some(state) = self.tenants[*number].take() {
                self.numbers.remove(&state.name);
                self.free.push(*number);
            }
        }
        self.sweep_at = self.numbers.len() + ABSENT_TENANTS_MAX / 2;
    }
}

#[cfg(test)]
mod tests;
