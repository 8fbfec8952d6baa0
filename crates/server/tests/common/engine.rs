//! The engine: one committed counter. The first argument of `inject` says what a request does.
//!
//! | request | does |
//! |---|---|
//! | `inject('count')` | gives the counter |
//! | `inject('add')` | adds one and gives nothing |
//! | `inject('range', n)` | gives 0 to n - 1 |
//! | `inject('broken', n)` | gives 0 to n - 1, then fails |
//! | `inject('bulk', n)` | gives the number 7, n times |
//! | `inject('hang')` | ends only when it is cancelled |
//! | `inject('slow')` | takes a while, then gives 1 unless it is cancelled |
//! | `inject('conflict', n)` | conflicts the first n times, then gives how often it was run |
//! | `inject('fail')`, `inject('panic')` | do that |
//! | `inject('echo', x)` | gives x, which may be a parameter |
//! | `inject('internal')` | gives a value the wire cannot hold |

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mangrove_graph::{Error, ErrorKind, Result, Value, VertexId};
use mangrove_gremlin::Argument;
use mangrove_server::{Caller, Engine, EngineTransaction, QueryRequest, ResultSink};
use smol_str::SmolStr;

#[derive(Default)]
pub struct State {
    pub counter: AtomicI64,
    pub running: AtomicUsize,
    pub given: AtomicUsize,
    pub runs: AtomicI64,
    pub rolled_back: AtomicUsize,
    pub last_request: Mutex<Option<QueryRequest>>,
    pub read_only: Mutex<Option<String>>,
}

#[derive(Default)]
pub struct FakeEngine(pub Arc<State>);

struct FakeTransaction {
    state: Arc<State>,
    pending: i64,
    ended: bool,
}

impl Engine for FakeEngine {
    fn sources(&self, _: &Caller) -> Vec<SmolStr> {
        vec!["g".into(), "gmodern".into()]
    }

    fn begin(&self, _: &str, _: &Caller) -> Result<Box<dyn EngineTransaction>> {
        Ok(Box::new(FakeTransaction { state: Arc::clone(&self.0), pending: 0, ended: false }))
    }

    fn read_only(&self, _: &Caller) -> Vec<(SmolStr, String)> {
        self.0.read_only.lock().unwrap().iter().map(|cause| ("g".into(), cause.clone())).collect()
    }

    fn run(&self, request: &QueryRequest, sink: &mut dyn ResultSink) -> Result<()> {
        let mut transaction = self.begin(&request.source, &request.caller)?;
        transaction.run(request, sink)?;
        transaction.commit(&request.caller)
    }
}

impl EngineTransaction for FakeTransaction {
    fn run(&mut self, request: &QueryRequest, sink: &mut dyn ResultSink) -> Result<()> {
        *self.state.last_request.lock().unwrap() = Some(request.clone());
        self.state.running.fetch_add(1, Ordering::SeqCst);
        let _running = Running(&self.state);
        let limit =
            request.bytecode.steps.iter().find(|step| step.name == "limit").map(|step| number(&step.arguments[0]));
        let discard = request.bytecode.steps.iter().any(|step| step.name == "discard");
        let give = |sink: &mut dyn ResultSink, value: Value, bulk: i64| {
            self.state.given.fetch_add(1, Ordering::SeqCst);
            if discard { Ok(()) } else { sink.accept(vec![(value, bulk as u64)]) }
        };
        let [Argument::Value(Value::String(command)), operands @ ..] = request.bytecode.steps[0].arguments.as_slice()
        else {
            return Err(Error::invalid("the fake engine runs inject('command')"));
        };
        match command.as_str() {
            "count" => give(sink, Value::I64(self.state.counter.load(Ordering::SeqCst) + self.pending), 1),
            "add" => {
                self.pending += 1;
                Ok(())
            }
            "range" => {
                let end = number(&operands[0]).min(limit.unwrap_or(i64::MAX));
                (0..end).try_for_each(|i| give(sink, Value::I64(i), 1))
            }
            "broken" => {
                (0..number(&operands[0])).try_for_each(|i| give(sink, Value::I64(i), 1))?;
                Err(Error::evaluation("broken as asked"))
            }
            "bulk" => give(sink, Value::I64(7), number(&operands[0])),
            "hang" => loop {
                if request.cancel.load(Ordering::Relaxed) {
                    return Err(Error::new(ErrorKind::Cancelled, "cancelled"));
                }
                std::thread::sleep(Duration::from_millis(1));
            },
            "slow" => {
                std::thread::sleep(Duration::from_millis(300));
                match request.cancel.load(Ordering::Relaxed) {
                    true => Err(Error::new(ErrorKind::Cancelled, "cancelled")),
                    false => give(sink, Value::I64(1), 1),
                }
            }
            "conflict" => {
                let run = self.state.runs.fetch_add(1, Ordering::SeqCst) + 1;
                give(sink, Value::I64(run), 1)?;
                if run <= number(&operands[0]) { Err(Error::conflict("another transaction won")) } else { Ok(()) }
            }
            "fail" => Err(Error::evaluation("failed as asked")),
            "panic" => panic!("panicked as asked"),
            "echo" => match &operands[0] {
                Argument::Parameter(name) => give(sink, request.parameters[name].clone(), 1),
                Argument::Value(value) => give(sink, value.clone(), 1),
                other => Err(Error::invalid(format!("{other:?} is no value"))),
            },
            "internal" => give(sink, Value::Vertex(VertexId::from_bits(1)), 1),
            other => Err(Error::invalid(format!("the fake engine has no command {other}"))),
        }
    }

    fn write_mark(&self) -> usize {
        usize::try_from(self.pending).unwrap()
    }

    fn commit(mut self: Box<Self>, _: &Caller) -> Result<()> {
        self.ended = true;
        self.state.counter.fetch_add(self.pending, Ordering::SeqCst);
        Ok(())
    }

    fn rollback(self: Box<Self>) {}
}

impl Drop for FakeTransaction {
    fn drop(&mut self) {
        if !self.ended && self.pending > 0 {
            self.state.rolled_back.fetch_add(1, Ordering::SeqCst);
        }
    }
}

struct Running<'a>(&'a State);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

fn number(argument: &Argument) -> i64 {
    match argument {
        Argument::Value(Value::I32(n)) => i64::from(*n),
        Argument::Value(Value::I64(n)) => *n,
        other => panic!("{other:?} is no number"),
    }
}
