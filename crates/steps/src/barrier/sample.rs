//! `sample()` and `coin()`: rows by chance.
//!
//! `sample(n)` takes `n` traversers of each instance without putting any back, with probability by weight. Every
//! traverser draws a key, the logarithm of a random number divided by its weight, and those with the `n` largest keys
//! are taken (Efraimidis and Spirakis 2006). A row that stands for many draws its largest keys one after the other,
//! without drawing those of the rest.
//!
//! With a seed the samples are the ones TinkerPop takes: traversers are asked in turn, each with its share of the weight
//! from itself on, until one is taken, and so on from the first again. The chances are the same; the time is not, as
//! it grows with the product of rows and samples.

use mangrove_flow::{GroupId, Operator, Output, QueryContext};
use mangrove_graph::{Error, Result, Value, numeric};
use mangrove_plan::logical::Operand;

use crate::barrier::held::HeldRows;
use crate::environment::Environment;
use crate::meter::Meter;
use crate::random::Random;
use crate::row::local::{elements, size};
use crate::rows::{Column, Rows};

/// What a key costs; and more bytes of them than any limit allows.
const KEY_BYTES: u64 = size_of::<(u32, f64, u32)>() as u64;
const KEYS_BYTES_MAX: u64 = 1 << 50;

/// `sample(n)`; computed column 0 holds the weights.
pub struct Sample {
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

    /// The rows taken of each instance, with how many of the traversers they stand for.
    fn take(&mut self, rows: &Rows, out: &Output<'_, Rows>) -> Result<Vec<(u32, u64)>> {
        self.random.begin(out);
        let weights = (0..rows.len()).map(|row| weight(rows, row)).collect::<Result<Vec<f64>>>()?;
        if self.random.is_seeded() && weights.iter().all(|weight| weight.is_finite()) {
            self.in_turn(rows, &weights, out)
        } else {
            self.by_keys(rows, &weights, out)
        }
    }

    /// Those with the largest keys, in the order of the rows.
    fn by_keys(&mut self, rows: &Rows, weights: &[f64], out: &Output<'_, Rows>) -> Result<Vec<(u32, u64)>> {
        let mut keys: Vec<(u32, f64, u32)> = Vec::new();
        let mut charged = 0_u64;
        for (row, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            let mut logarithm = 0.0;
            let draws = rows.bulk(row).min(self.count as u64);
            // More than memory holds is refused before it is drawn.
            out.context().charge(draws.saturating_mul(KEY_BYTES).min(KEYS_BYTES_MAX))?;
            charged = charged.saturating_add(draws.saturating_mul(KEY_BYTES).min(KEYS_BYTES_MAX));
            for drawn in 0..draws {
                logarithm += (1.0 - self.random.unit()).ln() / (rows.bulk(row) - drawn) as f64;
                keys.push((rows.tag(row), logarithm / weight, row as u32));
            }
        }
        keys.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| b.1.total_cmp(&a.1)));
        let mut taken: Vec<(u32, u64)> = Vec::new();
        for instance in keys.chunk_by(|a, b| a.0 == b.0) {
            taken.extend(instance.iter().take(self.count).map(|(_, _, row)| (*row, 1)));
        }
        drop(keys);
        out.context().release(charged);
        taken.sort_unstable();
        taken.dedup_by(|next, kept| {
            next.0 == kept.0 && {
                kept.1 += 1;
                true
            }
        });
        Ok(taken)
    }

    /// As TinkerPop takes them, in the order in which they are taken.
    fn in_turn(&mut self, rows: &Rows, weights: &[f64], out: &Output<'_, Rows>) -> Result<Vec<(u32, u64)>> {
        let mut order: Vec<u32> = (0..rows.len() as u32).filter(|row| weights[*row as usize] > 0.0).collect();
        // One stream of draws serves all instances. Which comes first is nobody's to know (of groups, it is how a hash map
        // of Java's has their keys): the last one does, as in TinkerPop's own example.
        order.sort_by_key(|row| std::cmp::Reverse(rows.tag(*row as usize)));
        let mut taken = Vec::new();
        for instance in order.chunk_by(|a, b| rows.tag(*a as usize) == rows.tag(*b as usize)) {
            let mut members: Vec<Member> = instance
                .iter()
                .map(|&row| Member { row, weight: weights[row as usize], left: rows.bulk(row as usize), taken: 0 })
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

    /// The place of the member that one more is taken of; there is one left.
    fn next(&mut self, members: &mut [Member], total: f64, out: &Output<'_, Rows>) -> Result<usize> {
        let mut draws = 0_u64;
        loop {
            let mut rest = total;
            for (at, member) in members.iter_mut().enumerate() {
                for _ in 0..member.left {
                    draws += 1;
                    if draws.is_multiple_of(CHECK_EVERY) {
                        out.context().check()?;
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

/// A row that may be taken, with what is left of the traversers it stands for.
struct Member {
    row: u32,
    weight: f64,
    left: u64,
    taken: u64,
}

/// The weight of a row; 0 where it has none, or one that gives no chance.
fn weight(rows: &Rows, row: usize) -> Result<f64> {
    let Some(weight) = rows.computed_value(0, row) else { return Ok(0.0) };
    let number = numeric::to_f64(weight).ok_or_else(|| {
        Error::evaluation(format!("sample() weighs with numbers; by() gives a {}", weight.type_name()))
    })?;
    Ok(if number > 0.0 { number } else { 0.0 })
}

impl Operator<Rows> for Sample {
    fn begin(&mut self, environment: &Environment) -> Result<()> {
        let count = environment.resolve_integer(&self.operand, "the argument of sample()")?;
        self.count = usize::try_from(count).unwrap_or(0);
        Ok(())
    }

    fn rest(&mut self) -> bool {
        self.random.rest();
        self.held.is_empty()
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        self.held.add(group, batch, out)
    }

    fn finish(&mut self, _port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        if let Some(rows) = self.held.take(group, out) {
            let (kept, bulks): (Vec<u32>, Vec<u64>) = self.take(&rows, out)?.into_iter().unzip();
            emit(rows, &kept, bulks, group, out)?;
        }
        out.finish_all(group, instances)
    }
}

/// Sends the rows that are kept, standing for so many.
fn emit(rows: Rows, kept: &[u32], bulks: Vec<u64>, group: GroupId, out: &mut Output<'_, Rows>) -> Result<()> {
    let mut rows = rows.take(kept);
    rows.computed.clear();
    if rows.bulk.is_some() {
        rows.bulk = Some(bulks);
    }
    for chunk in rows.chunks() {
        out.emit(0, group, chunk)?;
    }
    Ok(())
}

/// `coin(p)`: every traverser with this probability.
pub struct Coin {
    operand: Operand,
    probability: f64,
    random: Random,
}

impl Coin {
    /// This probability.
    pub fn new(operand: Operand) -> Self {
        Coin { operand, probability: 0.0, random: Random::default() }
    }
}

/// How many draws pass between two looks at the query's limits.
const CHECK_EVERY: u64 = 1 << 16;
const LOCAL_CHECK_EVERY: usize = 1 << 8;

impl Operator<Rows> for Coin {
    fn begin(&mut self, environment: &Environment) -> Result<()> {
        let value = environment.resolve(&self.operand)?;
        self.probability = numeric::to_f64(&value).ok_or_else(|| {
            Error::invalid(format!("coin() takes a probability from 0 to 1, not a {}", value.type_name()))
        })?;
        Ok(())
    }

    fn rest(&mut self) -> bool {
        self.random.rest();
        true
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        self.random.begin(out);
        let (mut kept, mut bulks) = (Vec::new(), Vec::new());
        for row in 0..batch.len() {
            let mut heads = 0;
            for draw in 1..=batch.bulk(row) {
                heads += u64::from(self.random.unit() < self.probability);
                if draw.is_multiple_of(CHECK_EVERY) {
                    out.context().check()?;
                }
            }
            if heads > 0 {
                kept.push(row as u32);
                bulks.push(heads);
            }
        }
        emit(batch, &kept, bulks, group, out)
    }
}

/// `sample(local, n)`: some members of a collection, in its order; with a seed in that of TinkerPop.
pub struct LocalSample {
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

    fn sample(&mut self, object: &Value, context: &QueryContext) -> Result<Value> {
        let mut meter = Meter::new(context);
        meter.charge(size(object).saturating_mul(3 * size_of::<Value>()))?;
        let Some(members) = elements(object)? else { return Ok(object.clone()) };
        if members.len() <= self.count {
            return Ok(object.clone());
        }
        let places =
            if self.random.is_seeded() { self.in_turn(members.len(), context)? } else { self.by_keys(members.len()) };
        let chosen = places.into_iter().map(|at| members[at].clone());
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

impl LocalSample {
    /// Places in a collection of this size, ascending.
    fn by_keys(&mut self, size: usize) -> Vec<usize> {
        let mut keys: Vec<(f64, usize)> = (0..size).map(|at| (self.random.unit(), at)).collect();
        keys.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut places: Vec<usize> = keys.into_iter().take(self.count).map(|(_, at)| at).collect();
        places.sort_unstable();
        places
    }

    /// As TinkerPop takes them, in the order in which they are taken: one of what is left, again and again.
    fn in_turn(&mut self, size: usize, context: &QueryContext) -> Result<Vec<usize>> {
        let mut left: Vec<usize> = (0..size).collect();
        let mut places = Vec::with_capacity(self.count);
        while places.len() < self.count {
            if places.len().is_multiple_of(LOCAL_CHECK_EVERY) {
                context.check()?;
            }
            places.push(left.remove(self.random.index(left.len())));
        }
        Ok(places)
    }
}

impl Operator<Rows> for LocalSample {
    fn begin(&mut self, environment: &Environment) -> Result<()> {
        let count = environment.resolve_integer(&self.operand, "the argument of sample()")?;
        self.count = usize::try_from(count).unwrap_or(0);
        Ok(())
    }

    fn rest(&mut self) -> bool {
        self.random.rest();
        true
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        self.random.begin(out);
        let sampled =
            (0..batch.len()).map(|row| self.sample(&batch.object(row), out.context())).collect::<Result<Vec<_>>>()?;
        let mut rows = batch.with_objects(Column::from_values(sampled));
        rows.remember(&self.remember);
        out.emit(0, group, rows)
    }
}
