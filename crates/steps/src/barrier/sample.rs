//! `sample()` and `coin()`: random samples of rows.
//!
//! `sample(n)` takes `n` traversers of each instance without replacement, with probability by weight. Every traverser
//! draws a key, the logarithm of a random number divided by its weight, and the `n` largest keys win (Efraimidis and
//! Spirakis 2006). A row that stands for many traversers draws its largest keys one after the other, without drawing
//! the others.
//!
//! With a seed the samples are those of TinkerPop (STEPS-1): it asks the traversers in turn, each with its share of the
//! weight from itself on, until one is taken, and starts again at the first. The probabilities are the same. The time
//! is not: it grows with the product of rows and samples.

use mangrove_flow::{BATCH_ROWS, Cursor, GroupId, Operator, Output, Step, TagSet};
use mangrove_graph::{Error, Result, Value, numeric, pieces};
use mangrove_plan::logical::Operand;

use crate::context::execution::ExecutionContext;
use crate::context::random::Random;
use crate::context::type_name::a_type;
use crate::limits::meter::Meter;
use crate::rows::held::HeldRows;
use crate::rows::{ObjectColumn, Rows};
use crate::values::collection::{elements, size};

/// The bytes of a key, and a number of bytes above any memory limit.
const KEY_BYTES: u64 = size_of::<(u32, f64, u32)>() as u64;
const KEYS_BYTES_MAX: u64 = 1 << 50;

/// `sample(n)`; computed column 0 holds the weights.
pub(crate) struct Sample {
    operand: Operand,
    count: usize,
    held: HeldRows,
    random: Random,
}

impl Sample {
    /// This many.
    pub fn new(operand: Operand) -> Self {
        Sample { operand, count: 0, held: HeldRows::default(), random: Random::default() }
    }

    /// Returns the rows taken of each instance, with the number of their traversers that were taken.
    fn take(&mut self, rows: &Rows, out: &Output<'_, Rows>) -> Result<Vec<(u32, u64)>> {
        self.random.begin(out.context(), out.control());
        let mut meter = Meter::new(out.control());
        let mut weights = Vec::with_capacity(rows.len());
        for row in 0..rows.len() {
            meter.charge(size_of::<f64>())?;
            weights.push(weight(rows, row)?);
        }
        if self.random.is_seeded() && weights.iter().all(|weight| weight.is_finite()) {
            self.in_turn(rows, &weights, out)
        } else {
            self.by_keys(rows, &weights, out)
        }
    }

    /// Takes the traversers with the largest keys, in the order of the rows.
    fn by_keys(&mut self, rows: &Rows, weights: &[f64], out: &Output<'_, Rows>) -> Result<Vec<(u32, u64)>> {
        let mut keys: Vec<(u32, f64, u32)> = Vec::new();
        let mut charged = 0_u64;
        for (row, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            let mut logarithm = 0.0;
            let draws = rows.bulk(row).min(self.count as u64);
            // Charged before the keys are drawn, so that a sample larger than memory is refused.
            out.control().charge(draws.saturating_mul(KEY_BYTES).min(KEYS_BYTES_MAX))?;
            charged = charged.saturating_add(draws.saturating_mul(KEY_BYTES).min(KEYS_BYTES_MAX));
            for drawn in 0..draws {
                if (drawn + 1).is_multiple_of(CHECK_EVERY) {
                    out.control().check()?;
                }
                logarithm += (1.0 - self.random.unit()).ln() / (rows.bulk(row) - drawn) as f64;
                keys.push((rows.tag(row), logarithm / weight, row as u32));
            }
        }
        let check = || out.control().check();
        pieces::sort(&mut keys, pieces::WORDS, check, |a, b| a.0.cmp(&b.0).then_with(|| b.1.total_cmp(&a.1)))?;
        let mut taken: Vec<(u32, u64)> = Vec::new();
        for instance in keys.chunk_by(|a, b| a.0 == b.0) {
            taken.extend(instance.iter().take(self.count).map(|(_, _, row)| (*row, 1)));
        }
        drop(keys);
        out.control().release(charged);
        pieces::sort(&mut taken, pieces::WORDS, check, Ord::cmp)?;
        taken.dedup_by(|next, kept| {
            next.0 == kept.0 && {
                kept.1 += 1;
                true
            }
        });
        Ok(taken)
    }

    /// Takes the traversers that TinkerPop takes, in the order in which it takes them.
    fn in_turn(&mut self, rows: &Rows, weights: &[f64], out: &Output<'_, Rows>) -> Result<Vec<(u32, u64)>> {
        let mut order: Vec<u32> = (0..rows.len() as u32).filter(|row| weights[*row as usize] > 0.0).collect();
        // One stream of draws serves all instances. TinkerPop does not define which comes first (for groups, the order
        // of a Java hash map decides): here the last one does, as in TinkerPop's own example.
        let check = || out.control().check();
        pieces::sort(&mut order, pieces::WORDS, check, |a, b| rows.tag(*b as usize).cmp(&rows.tag(*a as usize)))?;
        let mut taken = Vec::new();
        for instance in order.chunk_by(|a, b| rows.tag(*a as usize) == rows.tag(*b as usize)) {
            let mut members: Vec<SampleMember> = instance
                .iter()
                .map(|&row| SampleMember {
                    row,
                    weight: weights[row as usize],
                    left: rows.bulk(row as usize),
                    taken: 0,
                })
                .collect();
            let all = members.iter().fold(0_u64, |all, member| all.saturating_add(member.left));
            if all <= self.count as u64 {
                taken.extend(members.iter().map(|member| (member.row, member.left)));
                continue;
            }
            let total: f64 = members.iter().map(|member| member.weight * member.left as f64).sum();
            let mut first_taken = Vec::new();
            for _ in 0..self.count {
                let at = self.next(&mut members, total, out)?;
                if members[at].taken == 1 {
                    first_taken.push(at);
                }
            }
            taken.extend(first_taken.into_iter().map(|at| (members[at].row, members[at].taken)));
        }
        Ok(taken)
    }

    /// Returns the index of the member that one more traverser is taken of. At least one is left.
    fn next(&mut self, members: &mut [SampleMember], total: f64, out: &Output<'_, Rows>) -> Result<usize> {
        let mut draws = 0_u64;
        loop {
            let mut rest = total;
            for (at, member) in members.iter_mut().enumerate() {
                for _ in 0..member.left {
                    draws += 1;
                    if draws.is_multiple_of(CHECK_EVERY) {
                        out.control().check()?;
                    }
                    if self.random.unit() <= member.weight / rest {
                        member.left -= 1;
                        member.taken += 1;
                        return Ok(at);
                    }
                    rest -= member.weight;
                }
            }
        }
    }
}

/// A row that may be taken, and how many of its traversers are left.
struct SampleMember {
    row: u32,
    weight: f64,
    left: u64,
    taken: u64,
}

/// Returns the weight of a row; 0 if it has none, or one that is not positive.
fn weight(rows: &Rows, row: usize) -> Result<f64> {
    let Some(weight) = rows.computed_value(0, row) else { return Ok(0.0) };
    let number = numeric::to_f64(weight)
        .ok_or_else(|| Error::evaluation(format!("sample() weighs with numbers; by() gives {}", a_type(weight))))?;
    Ok(if number > 0.0 { number } else { 0.0 })
}

impl Operator<Rows> for Sample {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        let count = context.resolve_integer(&self.operand, "the argument of sample()")?;
        self.count = usize::try_from(count).unwrap_or(0);
        Ok(())
    }

    fn recycle(&mut self) -> bool {
        self.random.recycle();
        self.held.is_empty()
    }

    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        self.held.cancelled(group, tags, out);
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        self.held.add(group, batch, out)
    }

    /// The first step draws. After it, the row of the cursor is 1, and each step sends a batch.
    fn finish_step(
        &mut self,
        _port: u8,
        group: GroupId,
        instances: u32,
        at: &mut Cursor,
        out: &mut Output<'_, Rows>,
    ) -> Result<Step> {
        if at.is_start() {
            at.row = 1;
            if let Some((rows, charged)) = self.held.take(group, out)? {
                let taken = self.take(&rows, out)?;
                for some in taken.chunks(BATCH_ROWS) {
                    self.held.add(group, kept(&rows, some), out)?;
                }
                out.control().release(charged);
            }
        }
        if self.held.send_next(group, 0, out)? == Step::More {
            return Ok(Step::More);
        }
        out.finish_all(group, instances)?;
        Ok(Step::Done)
    }
}

/// Returns some rows with their new bulks.
fn kept(rows: &Rows, kept: &[(u32, u64)]) -> Rows {
    let (kept, bulks): (Vec<u32>, Vec<u64>) = kept.iter().copied().unzip();
    let mut rows = rows.take(&kept);
    rows.computed.clear();
    if rows.bulk.is_some() {
        rows.bulk = Some(bulks);
    }
    rows
}

/// `coin(p)`: lets each traverser through with this probability.
pub(crate) struct Coin {
    operand: Operand,
    probability: f64,
    random: Random,
}

impl Coin {
    pub fn new(operand: Operand) -> Self {
        Coin { operand, probability: 0.0, random: Random::default() }
    }
}

/// Draws between two checks of the limits of the query.
const CHECK_EVERY: u64 = 1 << 16;

impl Operator<Rows> for Coin {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        let value = context.resolve(&self.operand)?;
        self.probability = numeric::to_f64(&value)
            .ok_or_else(|| Error::invalid(format!("coin() takes a probability from 0 to 1, not {}", a_type(&value))))?;
        Ok(())
    }

    fn recycle(&mut self) -> bool {
        self.random.recycle();
        true
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        self.random.begin(out.context(), out.control());
        let mut taken = Vec::new();
        for row in 0..batch.len() {
            let mut heads = 0;
            for draw in 1..=batch.bulk(row) {
                heads += u64::from(self.random.unit() < self.probability);
                if draw.is_multiple_of(CHECK_EVERY) {
                    out.control().check()?;
                }
            }
            if heads > 0 {
                taken.push((row as u32, heads));
            }
        }
        out.emit(0, group, kept(&batch, &taken))
    }
}

/// `sample(local, n)`: some members of a collection, in its order; with a seed, in the order of TinkerPop.
pub(crate) struct LocalSample {
    operand: Operand,
    count: usize,
    random: Random,
    remember: crate::rows::Remember,
}

impl LocalSample {
    /// This many.
    pub fn new(operand: Operand, remember: crate::rows::Remember) -> Self {
        LocalSample { operand, count: 0, random: Random::default(), remember }
    }

    fn sample(&mut self, object: &Value, meter: &mut Meter<'_>) -> Result<Value> {
        meter.charge(size(object).saturating_mul(3 * size_of::<Value>()))?;
        let Some(members) = elements(object)? else { return Ok(object.clone()) };
        if members.len() <= self.count {
            return Ok(object.clone());
        }
        let indexes = if self.random.is_seeded() {
            self.in_turn(members.len(), meter)?
        } else {
            self.by_keys(members.len(), meter)?
        };
        let chosen = indexes.into_iter().map(|at| members[at].clone());
        Ok(match object {
            Value::Set(_) => Value::Set(chosen.collect::<Vec<_>>().into()),
            Value::Map(_) => Value::map(
                chosen
                    .filter_map(|entry| match entry {
                        Value::Entry(entry) => Some((*entry).clone()),
                        _ => None,
                    })
                    .collect(),
            ),
            _ => Value::list(chosen.collect()),
        })
    }
}

/// A message ends early after this many bytes were made for it.
const MESSAGE_BYTES: u64 = 1 << 20;

impl LocalSample {
    /// Draws indexes into a collection of this size, ascending.
    fn by_keys(&mut self, size: usize, meter: &mut Meter<'_>) -> Result<Vec<usize>> {
        let mut keys: Vec<(f64, usize)> = Vec::with_capacity(size);
        for at in 0..size {
            meter.pass(size_of::<(f64, usize)>())?;
            keys.push((self.random.unit(), at));
        }
        let check = || meter.control().check();
        pieces::sort(&mut keys, pieces::WORDS, check, |a, b| b.0.total_cmp(&a.0))?;
        let mut indexes: Vec<usize> = keys.into_iter().take(self.count).map(|(_, at)| at).collect();
        pieces::sort(&mut indexes, pieces::WORDS, check, Ord::cmp)?;
        Ok(indexes)
    }

    /// Draws the indexes that TinkerPop draws, in its order: one of those left, again and again.
    fn in_turn(&mut self, size: usize, meter: &mut Meter<'_>) -> Result<Vec<usize>> {
        let mut left: Vec<usize> = (0..size).collect();
        let mut indexes = Vec::with_capacity(self.count);
        while indexes.len() < self.count {
            // Removing one moves those after it.
            meter.pass(size_of_val(&left[..]))?;
            indexes.push(left.remove(self.random.index(left.len())));
        }
        Ok(indexes)
    }
}

impl Operator<Rows> for LocalSample {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        let count = context.resolve_integer(&self.operand, "the argument of sample()")?;
        self.count = usize::try_from(count).unwrap_or(0);
        Ok(())
    }

    fn recycle(&mut self) -> bool {
        self.random.recycle();
        true
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        self.random.begin(out.context(), out.control());
        let mut first = 0;
        while first < batch.len() {
            let (mut sampled, mut meter) = (Vec::new(), Meter::new(out.control()));
            while first + sampled.len() < batch.len() && meter.made() < MESSAGE_BYTES {
                sampled.push(self.sample(&batch.object(first + sampled.len()), &mut meter)?);
            }
            let from: Vec<u32> = (first as u32..(first + sampled.len()) as u32).collect();
            first += sampled.len();
            let mut rows = batch.derive(&from, ObjectColumn::from_values(sampled));
            rows.remember(&self.remember);
            drop(meter);
            out.emit(0, group, rows)?;
        }
        Ok(())
    }
}
