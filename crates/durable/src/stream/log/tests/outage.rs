//! A home that is away for a while: writes are refused, reads go on, and commits are accepted again by themselves.

use super::*;

/// What a home does with a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Open,
    /// It answers that it is away, and does nothing.
    Away,
    /// It gives no answer until it is open again. Then it carries out every second request, and says of the others that
    /// they may have been.
    Silent,
}

/// A home that can be away.
#[derive(Debug)]
struct OutageHome {
    home: Arc<dyn Home>,
    mode: parking_lot::Mutex<Mode>,
    held: parking_lot::Mutex<Vec<(Request, HeldCompletion)>>,
}

struct HeldCompletion(Completion);

impl std::fmt::Debug for HeldCompletion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a completion")
    }
}

impl OutageHome {
    fn new(home: Arc<dyn Home>) -> Arc<Self> {
        Arc::new(OutageHome { home, mode: parking_lot::Mutex::new(Mode::Open), held: parking_lot::Mutex::default() })
    }

    fn set(&self, mode: Mode) {
        *self.mode.lock() = mode;
        for (number, (request, HeldCompletion(done))) in std::mem::take(&mut *self.held.lock()).into_iter().enumerate()
        {
            match number % 2 {
                0 => done(Err(HomeError::new(HomeErrorKind::Unknown, "a request was lost"))),
                _ => self.home.submit(request, done),
            }
        }
    }
}

impl Home for OutageHome {
    fn submit(&self, request: Request, done: Completion) {
        let mode = *self.mode.lock();
        match mode {
            Mode::Open => self.home.submit(request, done),
            Mode::Away => done(Err(HomeError::new(HomeErrorKind::Unavailable, "the store is being repaired"))),
            Mode::Silent => self.held.lock().push((request, HeldCompletion(done))),
        }
    }

    fn describe(&self, name: &str) -> String {
        self.home.describe(name)
    }

    fn traits(&self) -> HomeTraits {
        self.home.traits()
    }
}

/// Times out early, so that an outage of a test is short.
fn hasty() -> ObjectLogOptions {
    ObjectLogOptions {
        lease: Duration::from_millis(30),
        stall_after: Duration::from_millis(60),
        commit_wait: Duration::from_millis(120),
        read_wait: Duration::from_millis(60),
        ..ObjectLogOptions::default()
    }
}

/// Waits until something is true.
fn until(what: &str, mut is_true: impl FnMut() -> bool) {
    for _ in 0..20_000 {
        if is_true() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("never happened: {what}");
}

#[test]
fn writes_are_refused_and_reads_go_on_until_the_home_is_back() {
    for mode in [Mode::Away, Mode::Silent] {
        let outage = OutageHome::new(new_home());
        let home: Arc<dyn Home> = outage.clone();
        let owner = Owner::open(&home, hasty());
        owner.insert(1).unwrap();
        outage.set(mode);
        let unknown = owner.insert(2).unwrap_err();
        assert_eq!(unknown.kind(), ErrorKind::OutcomeUnknown, "{unknown}");
        assert!(unknown.to_string().contains("has not confirmed it in 0.1 s"), "{unknown}");
        let refused = owner.insert(3).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ReadOnly, "{refused}");
        let text = refused.to_string();
        assert!(text.contains("has not confirmed the log for 0.") && text.contains("try again later"), "{text}");
        assert_eq!(text.contains("the store is being repaired"), mode == Mode::Away, "{text}");
        let status = owner.log.status();
        let ObjectLogState::Stalled { since, cause } = &status.state else { panic!("{status:?}") };
        assert!(cause.contains("has not confirmed the log") && *since < status.oldest_unsettled.unwrap(), "{status:?}");
        assert_eq!((status.in_flight, status.waiting_commits), (1, 0), "{status:?}");
        // What is not durable is not shown to readers.
        assert_eq!(owner.log.admit_read().unwrap(), ReadGrounds::Unproved);
        assert_eq!(owner.find(&[1, 2, 3]), [true, false, false]);
        assert!(owner.log.status().unproved_reads > 0);

        outage.set(Mode::Open);
        // Without a further commit or read.
        until("the commit is durable", || owner.find(&[2]) == [true]);
        until("reads are proved", || owner.log.admit_read().unwrap() == ReadGrounds::Proved);
        assert_eq!(owner.log.status().state, ObjectLogState::Running);
        owner.insert(4).unwrap();
        assert_eq!(owner.find(&[1, 2, 3, 4]), [true, true, false, true]);
        drop(owner);
        assert_eq!(Owner::open(&home, hasty()).find(&[1, 2, 3, 4]), [true, true, false, true]);
    }
}

#[test]
fn reads_can_be_refused_without_a_proof() {
    let outage = OutageHome::new(new_home());
    let home: Arc<dyn Home> = outage.clone();
    let owner = Owner::open(&home, ObjectLogOptions { reads_without_home: false, ..hasty() });
    owner.log.admit_read().unwrap();
    outage.set(Mode::Silent);
    let refused = std::iter::repeat_with(|| owner.log.admit_read()).find_map(Result::err).unwrap();
    assert_eq!(refused.kind(), ErrorKind::Io);
    assert!(refused.to_string().contains("whether another process has opened the graph"), "{refused}");
    outage.set(Mode::Open);
    until("reads are proved", || owner.log.admit_read().is_ok());
}

#[test]
fn an_index_and_its_names_wait_for_the_home() {
    let outage = OutageHome::new(new_home());
    let home: Arc<dyn Home> = outage.clone();
    let owner = Owner::open(&home, hasty());
    owner.insert(1).unwrap();
    outage.set(Mode::Silent);
    std::thread::scope(|scope| {
        let index = scope.spawn(|| {
            let keys = vec![owner.manager.store().catalog().intern_key("name")];
            let element = ElementKind::Vertex;
            owner.manager.create_index(&IndexOptions { element, label: None, keys, ordered: false, unique: false })
        });
        // Longer than a commit waits.
        until("the log has stalled", || matches!(owner.log.status().state, ObjectLogState::Stalled { .. }));
        std::thread::sleep(hasty().commit_wait);
        outage.set(Mode::Open);
        index.join().unwrap().unwrap();
    });
    drop(owner);
    let next = Owner::open(&home, hasty());
    assert_eq!(next.manager.store().indexes().len(), 1);
    assert_eq!(next.manager.store().catalog().key_count(), 1);
}

#[test]
fn a_home_that_is_gone_does_not_keep_the_log_from_being_closed() {
    let outage = OutageHome::new(new_home());
    let home: Arc<dyn Home> = outage.clone();
    let owner = Owner::open(&home, hasty());
    outage.set(Mode::Silent);
    let error = owner.log.finish(Duration::from_millis(50)).unwrap_err();
    assert!(error.kind() == ErrorKind::Io && error.to_string().contains("has not confirmed the end"), "{error}");
    assert_eq!(owner.log.admit_read().unwrap_err().kind(), ErrorKind::Closed);
    // The answers come after the log was closed.
    outage.set(Mode::Open);
}
