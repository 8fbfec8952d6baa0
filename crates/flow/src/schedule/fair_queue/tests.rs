//! The queue under a simulation: executors are plain structs, and the lengths of turns come from a seed.

use std::collections::HashMap as Map;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;

/// The longest turn, in nanoseconds.
const TURN_NANOS_MAX: u64 = 1_000_000;

/// A task of the simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Job {
    id: u64,
    tenant: Tenant,
    class: TaskClass,
    /// Turns until it is done.
    left: u64,
}

struct Turn {
    ticket: Ticket,
    job: Job,
    nanos: u64,
    ends_at: u64,
}

/// Executors with a queue, by hand.
struct Simulation {
    queue: FairQueue<Job>,
    executors: Vec<Option<Turn>>,
    random: StdRng,
    now: u64,
    last_id: u64,
    /// CPU time by tenant and by task.
    tenant_nanos: Map<Tenant, u64>,
    job_nanos: Map<u64, u64>,
}

impl Simulation {
    fn new(executors: usize, seed: u64) -> Self {
        Simulation {
            queue: FairQueue::default(),
            executors: (0..executors).map(|_| None).collect(),
            random: StdRng::seed_from_u64(seed),
            now: 0,
            last_id: 0,
            tenant_nanos: Map::new(),
            job_nanos: Map::new(),
        }
    }

    fn add(&mut self, tenant: &str, class: TaskClass, turns: u64) -> u64 {
        self.last_id += 1;
        let job = Job { id: self.last_id, tenant: Tenant::new(tenant), class, left: turns };
        self.queue.add(&job.tenant.clone(), class, job);
        self.last_id
    }

    /// Adds queries that never end.
    fn add_endless(&mut self, tenant: &str, count: usize) {
        for _ in 0..count {
            self.add(tenant, TaskClass::Query, u64::MAX);
        }
    }

    fn begin(&mut self, executor: usize, ticket: Ticket, job: Job) {
        let nanos = self.random.random_range(50_000..=TURN_NANOS_MAX);
        self.executors[executor] = Some(Turn { ticket, job, nanos, ends_at: self.now + nanos });
    }

    /// Gives each free executor a task, if there is one.
    fn fill(&mut self) {
        for executor in 0..self.executors.len() {
            if self.executors[executor].is_none()
                && let Some((ticket, job)) = self.queue.take()
            {
                self.begin(executor, ticket, job);
            }
        }
    }

    /// Runs until the next turn ends, and returns its task if it is done.
    fn step(&mut self) -> Option<Job> {
        self.fill();
        let running = self.executors.iter().enumerate();
        let ends = running.filter_map(|(n, turn)| Some((turn.as_ref()?.ends_at, n)));
        let (now, executor) = ends.min()?;
        self.now = now;
        let Turn { mut ticket, mut job, nanos, .. } = self.executors[executor].take()?;
        self.queue.charge(&mut ticket, nanos);
        *self.tenant_nanos.entry(job.tenant.clone()).or_default() += nanos;
        *self.job_nanos.entry(job.id).or_default() += nanos;
        job.left -= 1;
        if job.left == 0 {
            return Some(job);
        }
        if self.queue.goes_on(&ticket) {
            self.begin(executor, ticket, job);
        } else {
            self.queue.put_back(ticket, job);
        }
        None
    }

    fn nanos(&self, tenant: &str) -> u64 {
        self.tenant_nanos.get(&Tenant::new(tenant)).copied().unwrap_or(0)
    }
}

fn weight(weight: u32) -> Weight {
    Weight::new(weight).unwrap()
}

/// FLOW-24 for two tenants with more queries than executors, at every moment and in the end.
fn check_shares(executors: usize, weights: [u32; 2], seed: u64) {
    let mut simulation = Simulation::new(executors, seed);
    let names = ["a", "b"];
    for (name, number) in names.iter().zip(weights) {
        simulation.queue.set_weight(&Tenant::new(*name), weight(number));
        simulation.add_endless(name, 2 * executors + 1);
    }
    let longest: f64 = weights.iter().map(|number| TURN_NANOS_MAX as f64 / f64::from(*number)).sum();
    let bound = (executors + 1) as f64 * longest;
    for _ in 0..20_000 {
        simulation.step();
        let [a, b] = [0, 1].map(|n| simulation.nanos(names[n]) as f64 / f64::from(weights[n]));
        assert!((a - b).abs() <= bound, "{executors} executors, seed {seed}: {a} and {b} differ by more than {bound}");
    }
    let ratio = simulation.nanos("b") as f64 / simulation.nanos("a") as f64;
    let wanted = f64::from(weights[1]) / f64::from(weights[0]);
    assert!((ratio / wanted - 1.0).abs() < 0.05, "{executors} executors: {ratio} instead of {wanted}");
}

#[test]
fn shares_follow_the_weights() {
    for executors in [1, 2, 3, 8] {
        for seed in 0..4 {
            check_shares(executors, [100, 300], seed);
            check_shares(executors, [100, 100], seed);
            check_shares(executors, [7, 50], seed);
        }
    }
}

#[test]
fn the_tasks_of_a_tenant_get_the_same_time() {
    for executors in [1, 2, 4] {
        let mut simulation = Simulation::new(executors, 1);
        simulation.add_endless("a", 10);
        for _ in 0..20_000 {
            simulation.step();
        }
        let (least, most) = (simulation.job_nanos.values().min(), simulation.job_nanos.values().max());
        let difference = most.unwrap() - least.unwrap();
        assert!(difference <= 2 * (executors as u64 + 1) * TURN_NANOS_MAX, "{difference}");
    }
}

#[test]
fn a_new_weight_counts_from_the_next_turn() {
    let mut simulation = Simulation::new(1, 3);
    simulation.add_endless("a", 3);
    simulation.add_endless("b", 3);
    for _ in 0..2_000 {
        simulation.step();
    }
    let before = [simulation.nanos("a"), simulation.nanos("b")];
    simulation.queue.set_weight(&Tenant::new("b"), weight(300));
    for _ in 0..20_000 {
        simulation.step();
    }
    let ratio = (simulation.nanos("b") - before[1]) as f64 / (simulation.nanos("a") - before[0]) as f64;
    assert!((ratio / 3.0 - 1.0).abs() < 0.05, "{ratio}");
}

/// A client that sends its queries one after the other keeps its debt: it gets its share and no more.
#[test]
fn short_queries_in_a_row_get_the_share_of_their_tenant() {
    let mut simulation = Simulation::new(1, 4);
    simulation.queue.set_weight(&Tenant::new("heavy"), weight(300));
    simulation.add_endless("heavy", 2);
    simulation.add("short", TaskClass::Query, 1);
    for _ in 0..20_000 {
        if simulation.step().is_some() {
            simulation.add("short", TaskClass::Query, 1);
        }
    }
    let ratio = simulation.nanos("heavy") as f64 / simulation.nanos("short") as f64;
    assert!((ratio / 3.0 - 1.0).abs() < 0.05, "{ratio}");
}

/// A tenant that could not use more than one executor gets no credit for it later.
#[test]
fn an_absence_gives_no_credit() {
    let mut simulation = Simulation::new(4, 5);
    simulation.add_endless("single", 1);
    simulation.add_endless("many", 20);
    for _ in 0..20_000 {
        simulation.step();
    }
    let before = [simulation.nanos("single"), simulation.nanos("many")];
    assert!(before[0] * 2 < before[1], "it had one of four executors: {before:?}");
    simulation.add_endless("single", 20);
    for _ in 0..2_000 {
        simulation.step();
    }
    let gained = [simulation.nanos("single") - before[0], simulation.nanos("many") - before[1]];
    let ratio = gained[0] as f64 / gained[1] as f64;
    assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
}

/// FLOW-48: a tenant all of whose queries ran on the threads of their callers waits until another one has had as much, or
/// until the debt is at its bound.
#[test]
fn runs_on_callers_threads_are_a_debt() {
    const MILLI: u64 = 1_000_000;
    for (owed_millis, of_weight, waits_millis) in [(0, 100, 0), (100, 100, 100), (100, 200, 50), (60_000, 100, 1_000)] {
        let mut simulation = Simulation::new(1, 8);
        let inline = Tenant::new("inline");
        simulation.queue.set_weight(&inline, weight(of_weight));
        simulation.add_endless("other", 2);
        for _ in 0..1_000 {
            simulation.step();
        }
        for _ in 0..10 {
            simulation.queue.owe([(inline.clone(), owed_millis * MILLI / 10)]);
        }
        simulation.add_endless("inline", 1);
        let before = simulation.nanos("other");
        while simulation.nanos("inline") == 0 {
            simulation.step();
        }
        let waited = simulation.nanos("other") - before;
        let difference = waited.abs_diff(waits_millis * MILLI);
        assert!(difference <= 2 * TURN_NANOS_MAX, "{owed_millis} ms owed, weight {of_weight}: waited for {waited} ns");
    }
}

/// A run on the thread of its caller is no debt if no other tenant has a task.
#[test]
fn where_no_other_tenant_waits_there_is_no_debt() {
    let [inline, other] = ["inline", "other"].map(Tenant::new);
    let mut queue = FairQueue::default();
    queue.owe([(inline.clone(), 1_000_000_000)]);
    queue.add(&inline, TaskClass::Query, 1);
    queue.owe([(inline.clone(), 1_000_000_000)]);
    queue.add(&other, TaskClass::Query, 2);
    let (_first, number) = queue.take().unwrap();
    assert_eq!(number, 1);
}

/// FLOW-25: newcomers arrive all the time, more than the executors can serve.
#[test]
fn newcomers_starve_no_task() {
    for of_own_tenants in [false, true] {
        let mut simulation = Simulation::new(1, 6);
        simulation.queue.set_weight(&Tenant::new("old"), weight(1));
        let mut old = Vec::new();
        for _ in 0..3 {
            old.push(simulation.add("old", TaskClass::Query, u64::MAX));
        }
        for round in 0..5_000 {
            let tenant = if of_own_tenants { format!("new {round}") } else { "old".to_owned() };
            simulation.add(&tenant, TaskClass::Query, 1);
            simulation.step();
        }
        for id in old {
            let turns = simulation.job_nanos[&id] / TURN_NANOS_MAX;
            assert!(turns > 5, "query {id} got about {turns} turns, own tenants: {of_own_tenants}");
        }
    }
}

/// A newcomer waits for the turns that have begun and for one turn of those with the same time, not for all queries.
#[test]
fn a_short_query_waits_for_few_turns() {
    let mut simulation = Simulation::new(1, 7);
    simulation.add_endless("a", 64);
    for _ in 0..1_000 {
        simulation.step();
    }
    for _ in 0..100 {
        let id = simulation.add("a", TaskClass::Query, 1);
        let turns = std::iter::repeat_with(|| simulation.step()).take_while(|done| done.is_none()).count();
        assert!(turns <= 2, "query {id} waited for {turns} turns");
    }
}

#[test]
fn a_helper_runs_only_when_no_query_waits() {
    let mut queue = FairQueue::default();
    let [a, b] = [Tenant::new("a"), Tenant::new("b")];
    queue.add(&a, TaskClass::Helper, "helper of a");
    queue.add(&b, TaskClass::Query, "query of b");
    queue.add(&b, TaskClass::Helper, "helper of b");
    let (mut query, name) = queue.take().unwrap();
    assert_eq!(name, "query of b");
    queue.charge(&mut query, 500_000);
    // The query is done.
    drop(query);
    // Helpers are in the order of their tenants' times.
    let (mut helper, name) = queue.take().unwrap();
    assert_eq!(name, "helper of a");
    queue.charge(&mut helper, 100_000);
    assert!(queue.goes_on(&helper), "tenant b had more time");
    queue.add(&b, TaskClass::Query, "another query of b");
    assert!(!queue.goes_on(&helper));
}

/// Random operations. No task is lost or doubled, helpers come last, and a task goes on only if the queue would choose
/// it.
#[test]
fn random_operations_lose_no_task() {
    for seed in 0..mangrove_testdata::case_count(300) {
        let mut random = StdRng::seed_from_u64(seed);
        // One queue lets tasks go on; in the other they always go through the queue.
        let mut queues = [FairQueue::default(), FairQueue::default()];
        let (mut queued, mut running, mut waiting): (Vec<u64>, Vec<[Ticket; 2]>, Vec<[Ticket; 2]>) = Default::default();
        let (mut running_ids, mut waiting_ids): (Vec<u64>, Vec<u64>) = Default::default();
        let is_helper = |id: u64| id.is_multiple_of(3);
        let mut last = 0;
        for _ in 0..400 {
            match random.random_range(0..10) {
                0..=2 => {
                    last += 1;
                    let class = if is_helper(last) { TaskClass::Helper } else { TaskClass::Query };
                    let tenant = Tenant::new(format!("t{}", random.random_range(0..4)));
                    for queue in &mut queues {
                        queue.add(&tenant, class, last);
                    }
                    queued.push(last);
                }
                3 => {
                    let tenant = Tenant::new(format!("t{}", random.random_range(0..4)));
                    let weight = weight(random.random_range(1..=10_000));
                    for queue in &mut queues {
                        queue.set_weight(&tenant, weight);
                    }
                }
                4..=5 if !waiting.is_empty() => {
                    let n = random.random_range(0..waiting.len());
                    let (id, tickets) = (waiting_ids.swap_remove(n), waiting.swap_remove(n));
                    for (queue, ticket) in queues.iter_mut().zip(tickets) {
                        queue.put_back(ticket, id);
                    }
                    queued.push(id);
                }
                6..=7 if running.len() < 3 => {
                    let [one, two] = queues.each_mut().map(FairQueue::take);
                    let Some(((one, id), (two, twin))) = one.zip(two) else {
                        assert_eq!(queued, Vec::<u64>::new(), "seed {seed}");
                        continue;
                    };
                    assert_eq!(id, twin, "seed {seed}: both queues choose the same task");
                    let place = queued.iter().position(|known| *known == id).expect("it was queued, once");
                    queued.swap_remove(place);
                    assert!(!is_helper(id) || queued.iter().all(|id| is_helper(*id)), "seed {seed}: FLOW-26");
                    running.push([one, two]);
                    running_ids.push(id);
                }
                _ if !running.is_empty() => {
                    let n = random.random_range(0..running.len());
                    let (id, mut tickets) = (running_ids.swap_remove(n), running.swap_remove(n));
                    let nanos = random.random_range(0..TURN_NANOS_MAX);
                    for (queue, ticket) in queues.iter_mut().zip(&mut tickets) {
                        queue.charge(ticket, nanos);
                    }
                    match random.random_range(0..4) {
                        0 => {}
                        1 => {
                            waiting.push(tickets);
                            waiting_ids.push(id);
                        }
                        _ if queues[0].goes_on(&tickets[0]) => {
                            let [one, two] = tickets;
                            queues[1].put_back(two, id);
                            let (two, next) = queues[1].take().unwrap();
                            assert_eq!(next, id, "seed {seed}: it is next");
                            running.push([one, two]);
                            running_ids.push(id);
                        }
                        _ => {
                            for (queue, ticket) in queues.iter_mut().zip(tickets) {
                                queue.put_back(ticket, id);
                            }
                            queued.push(id);
                        }
                    }
                }
                _ => {}
            }
            assert_eq!(queues.each_ref().map(FairQueue::len), [queued.len(); 2], "seed {seed}");
        }
        let mut left: Vec<u64> = queues[0].take_all().into_iter().map(|(_, id)| id).collect();
        left.sort_unstable();
        queued.sort_unstable();
        assert_eq!(left, queued, "seed {seed}");
    }
}

#[test]
fn absent_tenants_are_forgotten() {
    let mut simulation = Simulation::new(1, 8);
    simulation.queue.set_weight(&Tenant::new("tenant 1"), weight(300));
    simulation.add_endless("endless", 1);
    for round in 0..20_000 {
        simulation.add(&format!("tenant {round}"), TaskClass::Query, 1);
        simulation.step();
    }
    // Those whose task still waits are not absent.
    let waiting = simulation.queue.len();
    let known = simulation.queue.numbers.len();
    assert!(known <= waiting + 2 * ABSENT_TENANTS_MAX, "{known} tenants are known, {waiting} tasks wait");
    assert_eq!(simulation.queue.numbers.len(), simulation.queue.tenants.iter().flatten().count());
    while simulation.queue.len() > 0 && simulation.now < 60_000_000_000 {
        simulation.step();
    }
    for round in 0..5_000 {
        simulation.add(&format!("later {round}"), TaskClass::Query, 1);
        while simulation.step().is_none() {}
    }
    let known = simulation.queue.numbers.len();
    assert!(known <= 2 * ABSENT_TENANTS_MAX, "{known} tenants are known");
    assert_eq!(simulation.queue.weights.len(), 1, "a weight that was set stays");
}

/// The share of a tenant is its weight among those of all tenants that have a task, also while the task runs.
#[test]
fn a_share_counts_the_tenants_that_are_there() {
    let mut simulation = Simulation::new(1, 3);
    let share = |simulation: &Simulation, name: &str| simulation.queue.share(&Tenant::new(name));
    simulation.queue.set_weight(&Tenant::new("ada"), weight(300));
    assert_eq!(share(&simulation, "ada"), TenantShare { weight: weight(300), share: None });
    simulation.add("ada", TaskClass::Query, 1);
    simulation.add("ada", TaskClass::Query, 1);
    assert_eq!(share(&simulation, "ada").share, Some(1.0));
    simulation.add("bob", TaskClass::Query, 1);
    assert_eq!(share(&simulation, "ada").share, Some(0.75));
    assert_eq!(share(&simulation, "bob"), TenantShare { weight: Weight::DEFAULT, share: Some(0.25) });
    assert_eq!(share(&simulation, "eve"), TenantShare { weight: Weight::DEFAULT, share: None });
    let (ticket, _job) = simulation.queue.take().expect("a task waits");
    assert_eq!(share(&simulation, "bob").share, Some(0.25));
    drop(ticket);
    while simulation.step().is_some() || simulation.queue.len() > 0 {}
    assert_eq!(share(&simulation, "ada").share, None);
}
