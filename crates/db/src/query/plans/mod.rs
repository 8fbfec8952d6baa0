//! The cache of plans.
//!
//! It has two levels. A text that was sent before finds its plan and its literals without being parsed. Every other
//! text, and all bytecode, finds its plan by its *shape*: the traversal without the literals that are taken out
//! (PLAN-3). So texts that differ only in these literals share a plan.
//!
//! ```text
//! text ────────────────▶ Text { plan, literals } ─┐
//!   └─parse─▶ bytecode                            ├─▶ variants of a shape: plans with their guards
//!               └─write_shape─▶ key, literals ────┘
//! ```
//!
//! A shape has one plan for each way in which planning depends on the literals: the *variants*. One serves a request
//! if its guards admit the literals.
//!
//! Everything in the cache is bounded in bytes together, and what was used least recently goes first. Texts have only
//! weak references to plans. No lock is held while a text is parsed or a plan is made.

mod recent;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use mangrove_graph::{DateTime, Draw, Error, MemoryBudget, Purpose, Result, Value};
use mangrove_gremlin::{Bytecode, ParseOptions, Statement, Terminal};
use mangrove_plan::{PlanOptions, literals};
use parking_lot::Mutex;
use smol_str::SmolStr;

use super::prepared::{AnswerKind, Prepared, PreparedShape, ToPrepare, without_terminal};
use recent::Recent;

/// The most bytes of all plans of a database, unless it is configured otherwise.
const BYTES_MAX: usize = 64 << 20;

/// A longer text, or shape, in bytes, is not kept: it is data, not a query.
const KEPT_KEY_BYTES_MAX: usize = 16 << 10;

/// The most variants of a shape. One more takes the place of the one that was used least recently.
const VARIANTS_MAX: usize = 16;

/// An estimate of the bytes of an entry besides its key and its value.
const ENTRY_BYTES: usize = 160;

/// What a key begins with. So a text is never taken for a shape.
#[derive(Clone, Copy)]
enum KeyKind {
    Text,
    Shape,
    Explain,
    Profile,
}

/// An entry of the cache.
enum Kept {
    Text(KeptText),
    Shape(KeptShape),
}

/// A text whose plan is an entry of its own.
struct KeptText {
    shape: Weak<PreparedShape>,
    /// The position of the entry of the plan.
    shape_at: usize,
    literals: Arc<[Value]>,
    bytes: usize,
}

struct KeptShape {
    /// The plans of the shape, the one that was used last first. Never empty.
    variants: Vec<Arc<PreparedShape>>,
    key_bytes: usize,
    /// The traversal with a `?` for every value, for people.
    shown: Box<str>,
}

impl KeptShape {
    /// The variant that serves these literals.
    fn variant(&mut self, literals: &[Value]) -> Option<Arc<PreparedShape>> {
        let at = self.variants.iter().position(|variant| variant.admits(literals))?;
        self.variants[..=at].rotate_right(1);
        self.variants.first().cloned()
    }

    fn bytes(&self) -> usize {
        ENTRY_BYTES
            + self.key_bytes
            + self.shown.len()
            + self.variants.iter().map(|variant| variant.bytes()).sum::<usize>()
    }
}

/// The plans of a database.
pub(crate) struct PlanCache {
    kept: Mutex<CachedPlans>,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// The size of the plan cache, and how well it is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanCacheReport {
    /// The number of plans in the cache.
    pub plans: u64,
    /// The number of texts that are known without being parsed.
    pub texts: u64,
    /// The bytes of all of them, approximately.
    pub bytes: u64,
    /// The most bytes of all of them.
    pub bytes_max: u64,
    /// The number of look-ups that found a plan.
    pub hits: u64,
    /// The number of look-ups that had to make a plan.
    pub misses: u64,
    /// The number of plans and texts that made room for others.
    pub evictions: u64,
}

/// A plan in the cache.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptPlan {
    /// The traversal source that it names.
    pub source: String,
    /// The traversal with a `?` for every value.
    pub shape: String,
    /// What it relies on of the literals that were taken out, which are numbered from 0 in the order of the traversal.
    pub guards: Vec<String>,
    /// How often it was found in the cache.
    pub hits: u64,
    /// The mean time of a run, from its begin to its last result, in microseconds. One run in 16 is timed.
    pub mean_micros: Option<f64>,
    /// The bytes that it takes with its instances, approximately.
    pub bytes: u64,
}

struct CachedPlans {
    recent: Recent<Kept>,
    /// What the cache draws on the memory budget of the process.
    draw: Draw,
    budget: MemoryBudget,
    plans: usize,
    texts: usize,
    evictions: u64,
}

impl CachedPlans {
    /// The plan of a text that was sent before, with its literals.
    fn text(&mut self, key: &[u8]) -> Option<Prepared> {
        let at = self.recent.find(key)?;
        let Some(Kept::Text(text)) = self.recent.get_mut(at) else { return None };
        let (shape, shape_at) = (text.shape.upgrade()?, text.shape_at);
        shape.figures().hits.fetch_add(1, Ordering::Relaxed);
        let prepared = Prepared::of_shape(shape, text.literals.clone());
        let bytes = text.bytes;
        // The plan is used after its text. So it outlives all its texts.
        let none = self.recent.touch(at, bytes);
        debug_assert!(none.is_empty());
        self.use_shape(shape_at);
        Some(prepared)
    }

    /// The plan of a shape that serves these literals, and the position of its entry.
    fn shape(&mut self, key: &[u8], literals: &[Value]) -> Option<(Arc<PreparedShape>, usize)> {
        let at = self.recent.find(key)?;
        let Some(Kept::Shape(shape)) = self.recent.get_mut(at) else { return None };
        let variant = shape.variant(literals)?;
        variant.figures().hits.fetch_add(1, Ordering::Relaxed);
        self.use_shape(at);
        Some((variant, at))
    }

    /// Notes that an entry of a shape is used. Its plan and instances may have grown since the last use.
    fn use_shape(&mut self, at: usize) {
        let Some(Kept::Shape(shape)) = self.recent.get_mut(at) else { return };
        let bytes = shape.bytes();
        let gone = self.recent.touch(at, bytes);
        self.settle(gone);
    }

    /// Adds a plan to those of a shape, which is shown as a text, unless one that serves the literals has come meanwhile.
    /// Returns the plan that is kept, with the position of its entry.
    fn keep_shape(
        &mut self,
        key: Vec<u8>,
        made: Arc<PreparedShape>,
        literals: &[Value],
        shown: String,
    ) -> (Arc<PreparedShape>, usize) {
        if let Some(known) = self.shape(&key, literals) {
            return known;
        }
        let found = self.recent.find(&key);
        if let Some(at) = found
            && let Some(Kept::Shape(shape)) = self.recent.get_mut(at)
        {
            if shape.variants.len() < VARIANTS_MAX {
                self.plans += 1;
            } else {
                shape.variants.pop();
                self.evictions += 1;
            }
            shape.variants.insert(0, made.clone());
            self.use_shape(at);
            return (made, at);
        }
        let shape = KeptShape { key_bytes: key.len(), variants: vec![made.clone()], shown: shown.into() };
        let bytes = shape.bytes();
        self.plans += 1;
        let (at, gone) = self.recent.insert(key.into(), Kept::Shape(shape), bytes);
        self.settle(gone);
        (made, at)
    }

    /// Adds a text.
    fn keep_text(&mut self, key: Vec<u8>, text: KeptText) {
        let (bytes, shape_at) = (text.bytes, text.shape_at);
        let is_known = self.recent.find(&key).is_some();
        self.texts += usize::from(!is_known);
        let (_, mut gone) = self.recent.insert(key.into(), Kept::Text(text), bytes);
        if is_known {
            gone.remove(0);
        }
        self.settle(gone);
        self.use_shape(shape_at);
    }

    /// Counts the entries that are gone, and draws the bytes of the others. If they exceed the memory budget of the
    /// process, more entries go.
    fn settle(&mut self, gone: Vec<Kept>) {
        self.count_gone(&gone);
        let bytes = self.recent.bytes() as u64;
        if bytes == self.draw.bytes() {
            return;
        }
        if bytes > self.draw.bytes() && !self.budget.has_room(bytes - self.draw.bytes()) {
            let most = self.recent.bytes_max();
            let gone = self.recent.set_bytes_max(self.draw.bytes() as usize);
            self.recent.set_bytes_max(most);
            self.count_gone(&gone);
        }
        // Another holder may have drawn meanwhile what was left. The next use draws again.
        let _ = self.draw.resize(self.recent.bytes() as u64);
    }

    fn count_gone(&mut self, gone: &[Kept]) {
        for kept in gone {
            match kept {
                Kept::Text(_) => {
                    self.texts -= 1;
                    self.evictions += 1;
                }
                Kept::Shape(shape) => {
                    self.plans -= shape.variants.len();
                    self.evictions += shape.variants.len() as u64;
                }
            }
        }
    }
}

impl PlanCache {
    /// An empty cache, which draws on the memory budget of the process.
    pub fn new(budget: &MemoryBudget) -> Self {
        let kept = CachedPlans {
            recent: Recent::new(BYTES_MAX),
            draw: budget.account(Purpose::Plans),
            budget: budget.clone(),
            plans: 0,
            texts: 0,
            evictions: 0,
        };
        PlanCache { kept: Mutex::new(kept), hits: AtomicU64::new(0), misses: AtomicU64::new(0) }
    }

    /// Its size, and how well it is used.
    pub fn report(&self) -> PlanCacheReport {
        let kept = self.kept.lock();
        PlanCacheReport {
            plans: kept.plans as u64,
            texts: kept.texts as u64,
            bytes: kept.recent.bytes() as u64,
            bytes_max: kept.recent.bytes_max() as u64,
            evictions: kept.evictions,
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
        }
    }

    /// All plans, those that were used last first.
    pub fn plans(&self) -> Vec<KeptPlan> {
        let kept = self.kept.lock();
        let shapes = kept.recent.iter().filter_map(|(_, kept, _)| match kept {
            Kept::Shape(shape) => Some(shape),
            Kept::Text(_) => None,
        });
        let plan = |(shape, plan): (&KeptShape, &Arc<PreparedShape>)| KeptPlan {
            source: plan.source().into(),
            shape: shape.shown.clone().into(),
            guards: plan.guards().iter().map(ToString::to_string).collect(),
            hits: plan.figures().hits.load(Ordering::Relaxed),
            mean_micros: plan.figures().mean_micros(),
            bytes: plan.bytes() as u64,
        };
        shapes.flat_map(|shape| shape.variants.iter().map(move |plan| (shape, plan))).map(plan).collect()
    }

    /// The most bytes of all entries.
    pub fn bytes_max(&self) -> u64 {
        self.kept.lock().recent.bytes_max() as u64
    }

    /// Changes the most bytes of all entries.
    pub fn set_bytes_max(&self, bytes_max: u64) {
        let mut kept = self.kept.lock();
        let gone = kept.recent.set_bytes_max(usize::try_from(bytes_max).unwrap_or(usize::MAX));
        kept.settle(gone);
    }

    /// The prepared script.
    pub fn script(&self, script: &str) -> Result<Prepared> {
        let key = [&[KeyKind::Text as u8], script.as_bytes()].concat();
        if script.len() <= KEPT_KEY_BYTES_MAX
            && let Some(known) = self.kept.lock().text(&key)
        {
            self.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(known);
        }
        let (source, bytecode, terminal, volatile) = parse_traversal(script)?;
        let (prepared, shape_at) = self.shared(&source, &bytecode, terminal)?;
        // A text such as `datetime()` has another meaning each time.
        if let Some(shape_at) = shape_at.filter(|_| !volatile && script.len() <= KEPT_KEY_BYTES_MAX) {
            let literals = prepared.lifted().clone();
            let bytes = ENTRY_BYTES + size_of::<KeptText>() + key.len() + literals.iter().map(bytes_of).sum::<usize>();
            let shape = Arc::downgrade(prepared.shape());
            self.kept.lock().keep_text(key, KeptText { shape, shape_at, literals, bytes });
        }
        Ok(prepared)
    }

    /// The prepared traversal of bytecode.
    pub fn bytecode(&self, bytecode: &Bytecode) -> Result<Prepared> {
        self.traversal("g", bytecode, Terminal::None)
    }

    /// The prepared traversal of a source.
    pub fn traversal(&self, source: &str, bytecode: &Bytecode, terminal: Terminal) -> Result<Prepared> {
        Ok(self.shared(source, bytecode, terminal)?.0)
    }

    /// The prepared traversal, and the position of the entry of its plan, if that is kept. Traversals that differ only in
    /// literals share a plan, unless it depends on the literals. Each keeps its own literals. A plan that is shown itself
    /// is made with its literals.
    fn shared(&self, source: &str, bytecode: &Bytecode, terminal: Terminal) -> Result<(Prepared, Option<usize>)> {
        let (bytecode, answer) = without_terminal(bytecode, terminal);
        let kind = match answer {
            AnswerKind::Results => KeyKind::Shape,
            AnswerKind::Explain => KeyKind::Explain,
            AnswerKind::Profile => KeyKind::Profile,
        };
        let mut key = Vec::with_capacity(256);
        key.push(kind as u8);
        key.extend_from_slice(&(source.len() as u64).to_le_bytes());
        key.extend_from_slice(source.as_bytes());
        let literals = match answer {
            AnswerKind::Results => literals::write_shape(&bytecode, &mut key),
            AnswerKind::Explain | AnswerKind::Profile => {
                literals::write_whole(&bytecode, &mut key);
                Vec::new()
            }
        };
        if let Some((shape, at)) = self.kept.lock().shape(&key, &literals) {
            self.hits.fetch_add(1, Ordering::Relaxed);
            return Ok((Prepared::of_shape(shape, literals.into()), Some(at)));
        }
        self.misses.fetch_add(1, Ordering::Relaxed);
        let lifted = if literals.is_empty() { None } else { literals::lift(&bytecode) };
        let options = PlanOptions::default();
        let without = lifted.as_ref().map_or(&*bytecode, |lifted| &lifted.bytecode);
        let given = ToPrepare { source, bytecode: without, answer, literals: &literals, options };
        let made = match PreparedShape::new(&given) {
            Ok(made) => Arc::new(made),
            // Preparing it with its literals gives an error in terms of the traversal as it was written.
            Err(_) if !literals.is_empty() => {
                let given = ToPrepare { bytecode: &bytecode, literals: &[], ..given };
                return Ok((Prepared::of_shape(Arc::new(PreparedShape::new(&given)?), Arc::default()), None));
            }
            Err(error) => return Err(error),
        };
        if key.len() > KEPT_KEY_BYTES_MAX {
            return Ok((Prepared::of_shape(made, literals.into()), None));
        }
        let shown = literals::shown(without);
        let (shape, at) = self.kept.lock().keep_shape(key, made, &literals, shown);
        Ok((Prepared::of_shape(shape, literals.into()), Some(at)))
    }
}

/// The bytes of a literal of a kept text.
fn bytes_of(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::String(text) if text.is_heap_allocated() => text.len(),
            Value::List(members) => members.iter().map(bytes_of).sum(),
            _ => 0,
        }
}

/// Prepares one statement for the answer to `explain()`.
pub(crate) fn prepare_to_explain(script: &str) -> Result<Prepared> {
    let (source, mut bytecode, terminal, _) = parse_traversal(script)?;
    terminal.apply(&mut bytecode);
    Prepared::of_source(&source, &bytecode, Terminal::Explain)
}

/// The source, the steps and the terminal step of a traversal, and whether its text has another meaning each time.
fn parse_traversal(script: &str) -> Result<(SmolStr, Bytecode, Terminal, bool)> {
    match mangrove_gremlin::parse_one(script, &parse_options(script))? {
        Statement::Traversal { source, bytecode, terminal, volatile } => Ok((source, bytecode, terminal, volatile)),
        Statement::Transaction { .. } => Err(Error::unsupported(
            "g.tx() belongs to a session; in a program, begin a transaction with Database::begin",
        )),
        Statement::Value(_) | Statement::Variable(_) => {
            Err(Error::unsupported("a value alone is no traversal; write g.inject(…) to have it as a result"))
        }
    }
}

/// Parse options with the current time for `datetime()` and a source of random UUIDs for `UUID()`.
pub(crate) fn parse_options(text: &str) -> ParseOptions {
    // Random bytes come from the system, which takes longer than to parse a light query.
    let fresh_uuid = text.contains("UUID").then(uuid::Uuid::new_v4);
    ParseOptions { now: now(), fresh_uuid, ..ParseOptions::default() }
}

#[expect(clippy::disallowed_methods, reason = "datetime() without an argument asks for the wall clock")]
fn now() -> Option<DateTime> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(DateTime { seconds: i64::try_from(since.as_secs()).ok()?, nanos: since.subsec_nanos(), offset_seconds: 0 })
}
