//! Random transactions over all kinds of objects of a graph, in one history, so that dependencies connect different
//! kinds.
//!
//! | objects | kind | written by | read by |
//! |---|---|---|---|
//! | list property of a vertex | list | `property(list, …)` | `values()` |
//! | single property of a vertex | register | Gremlin, typed | Gremlin, typed |
//! | property of an edge | register | `g.E().property()` | `g.E().values()` |
//! | neighbors of a hub | set | `addE` or typed, dropping the edge or the neighbor | `out()`, typed, `count()` |
//! | vertices, or edges, with a value under a key | set | `addV`, `addE`, changing the value, `drop()` | scan, hash index, ordered index, range, `count()` |
//! | the vertex under an id | set | `addV` with the id, `drop()` | `g.V(id)` that may be absent |
//!
//! Objects come in *generations*: after some hundred transactions new ones take their place, so that reads stay
//! short. Within a generation, some are hot: they are chosen by Zipf's law.

use mangrove::{Database, Result, Value};
use mangrove_histories::{Object, Operation};
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;

use super::attempt::Attempt;
use super::support::integer;

/// The number of objects of a kind in a generation.
const OBJECTS: u64 = 4;
/// Values an item's property runs through before the item is dropped.
const BUCKETS: u64 = 4;
/// Labels of items.
const ITEM_LABELS: u64 = 32;
/// The kinds of items: whether they are edges, and their key. The keys have no index, one for equality, and an ordered
/// one.
const ITEM_KINDS: [(bool, &str); 5] =
    [(false, "plain"), (false, "hashed"), (false, "sorted"), (true, "hashed"), (true, "sorted")];

const LIST: u64 = 1;
const REGISTER: u64 = 2;
const EDGE_REGISTER: u64 = 3;
const HUB: u64 = 4;
const SLOT: u64 = 5;
const ITEMS: u64 = 6;

const INDEX_BITS: u32 = 12;
const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;
const KIND_SHIFT: u32 = 40;

/// The number of an object, from its parts.
fn object(kind: u64, generation: u64, index: u64) -> Object {
    Object(kind << KIND_SHIFT | generation << INDEX_BITS | index)
}

fn kind(object: Object) -> u64 {
    object.0 >> KIND_SHIFT
}

fn generation(object: Object) -> u64 {
    (object.0 >> INDEX_BITS) & ((1 << (KIND_SHIFT - INDEX_BITS)) - 1)
}

/// The id of the vertex or edge that an object lives in. Values, which are ids of other vertices, stay below.
fn id(object: Object) -> i64 {
    object.0 as i64
}

/// The items of a generation and of one of [`ITEM_KINDS`] whose property has this value.
fn items_object(generation: u64, kind: u64, value: u64) -> Object {
    object(ITEMS, generation, kind * BUCKETS + value)
}

/// The number of kinds of pairs.
pub const PAIR_KINDS: usize = 10;

/// Two objects of one kind that no other generation has.
pub fn pair(kind: usize, generation: u64) -> [Object; 2] {
    match [LIST, REGISTER, EDGE_REGISTER, HUB, SLOT].get(kind) {
        Some(&kind) => [0, 1].map(|index| object(kind, generation, index)),
        None => [0, 1].map(|value| items_object(generation, kind as u64 - 5, value)),
    }
}

/// Makes the pairs of one kind.
pub fn set_up_pairs(database: &Database, generations: u64, kind: usize) {
    set_up(database, generations, &[pair(kind, 0)[0].0 >> KIND_SHIFT]);
}

/// The kinds whose objects must exist before they are read or written.
pub const PREPARED: [u64; 4] = [LIST, REGISTER, EDGE_REGISTER, HUB];

/// Makes the objects of all generations, of these kinds.
pub fn set_up(database: &Database, generations: u64, kinds: &[u64]) {
    super::support::create_indexes(database);
    let tx = database.begin().unwrap();
    let run = |script: &str, values: &[i64]| {
        let prepared = database.prepare(script).unwrap();
        tx.run(&prepared, &super::support::parameters(values)).unwrap().collect().unwrap();
    };
    for generation in 0..generations {
        for (&kind, index) in kinds.iter().flat_map(|kind| (0..OBJECTS).map(move |index| (kind, index))) {
            let object = id(object(kind, generation, index));
            match kind {
                LIST | REGISTER | HUB => run("g.addV('object').property(id, v)", &[object]),
                EDGE_REGISTER => run("g.addV('end').as('v').addE('self').to('v').property(id, v)", &[object]),
                _ => {}
            }
        }
    }
    tx.commit().unwrap();
}

/// Names for explanations.
pub fn name(object: Object) -> String {
    let (generation, index) = (generation(object), object.0 & INDEX_MASK);
    match kind(object) {
        LIST => format!("list{generation}.{index}"),
        REGISTER => format!("value{generation}.{index}"),
        EDGE_REGISTER => format!("edge{generation}.{index}"),
        HUB => format!("out{generation}.{index}"),
        SLOT => format!("id{generation}.{index}"),
        _ => {
            let Items { is_edge, key, .. } = items_of(object);
            format!("{key}{}{generation}={}", if is_edge { "E" } else { "" }, index % BUCKETS)
        }
    }
}

/// Chooses by Zipf's law: the first twice as often as the second, three times as often as the third, ….
fn zipf(random: &mut SmallRng, count: u64) -> u64 {
    let total: f64 = (1..=count).map(|i| 1.0 / i as f64).sum();
    let mut left = random.random_range(0.0..total);
    for i in 1..count {
        left -= 1.0 / i as f64;
        if left < 0.0 {
            return i - 1;
        }
    }
    count - 1
}

/// One random operation; only reads if `read_only`.
pub fn operate(attempt: &mut Attempt<'_>, random: &mut SmallRng, generation: u64, read_only: bool) -> Result<()> {
    let writes = !read_only && random.random_bool(0.5);
    let typed = attempt.is_sound() && random.random_bool(0.5);
    let kind = random.random_range(LIST..=ITEMS + 1);
    let object = object(kind, generation, zipf(random, OBJECTS));
    match kind {
        // A blind write tells nothing of the order, so most writes read first.
        REGISTER | EDGE_REGISTER if writes && random.random_bool(0.8) => {
            touch(attempt, object, false, typed)?;
            touch(attempt, object, true, typed)
        }
        LIST | REGISTER | EDGE_REGISTER | SLOT => touch(attempt, object, writes, typed),
        HUB => hub(attempt, random, object, writes, typed),
        _ => items(attempt, random, generation, writes),
    }
}

/// Reads an object or writes to it in the simplest way: appends to a list, overwrites a register, adds to a set;
/// creates the vertex under an id if it is absent, and drops it otherwise.
pub fn touch(attempt: &mut Attempt<'_>, object: Object, writes: bool, typed: bool) -> Result<()> {
    match kind(object) {
        LIST => list(attempt, object, writes),
        REGISTER if writes => write_register(attempt, object, typed),
        REGISTER => read_register(attempt, object, typed),
        EDGE_REGISTER if writes => write_edge_register(attempt, object),
        EDGE_REGISTER => read_edge_register(attempt, object),
        HUB if writes => add_leaf(attempt, object, typed),
        HUB => read_leaves(attempt, object, typed).map(drop),
        SLOT => slot(attempt, object, writes),
        _ if writes => add_item(attempt, object),
        _ => read_items(attempt, object, object).map(drop),
    }
}

fn list(attempt: &mut Attempt<'_>, object: Object, writes: bool) -> Result<()> {
    if writes {
        let value = attempt.value();
        attempt.note(Operation::Append { object, value });
        return attempt.write("g.V(v).property(list, 'items', x)", &[id(object), value as i64]);
    }
    let values = attempt.read_numbers("g.V(v).values('items')", &[id(object)])?;
    attempt.note(Operation::ReadList { object, values });
    Ok(())
}

fn read_register(attempt: &mut Attempt<'_>, object: Object, typed: bool) -> Result<()> {
    let value = match typed {
        true => attempt.typed_value(id(object), "value")?,
        false => attempt.read_numbers("g.V(v).values('value')", &[id(object)])?.first().copied(),
    };
    attempt.note(Operation::Read { object, value });
    Ok(())
}

fn write_register(attempt: &mut Attempt<'_>, object: Object, typed: bool) -> Result<()> {
    let value = attempt.value();
    attempt.note(Operation::Write { object, value });
    match typed {
        true => attempt.typed_set(id(object), "value", value),
        false => attempt.write("g.V(v).property(single, 'value', x)", &[id(object), value as i64]),
    }
}

fn read_edge_register(attempt: &mut Attempt<'_>, object: Object) -> Result<()> {
    let value = attempt.read_numbers("g.E(v).values('value')", &[id(object)])?.first().copied();
    attempt.note(Operation::Read { object, value });
    Ok(())
}

fn write_edge_register(attempt: &mut Attempt<'_>, object: Object) -> Result<()> {
    let value = attempt.value();
    attempt.note(Operation::Write { object, value });
    attempt.write("g.E(v).property('value', x)", &[id(object), value as i64])
}

fn add_leaf(attempt: &mut Attempt<'_>, object: Object, typed: bool) -> Result<()> {
    let value = attempt.value();
    attempt.note(Operation::Add { object, value });
    if typed {
        return attempt.typed_leaf(id(object), value as i64, "has");
    }
    attempt.write("g.addV('leaf').property(id, v)", &[value as i64])?;
    attempt.write("g.V(v).as('h').V(x).addE('has').from('h')", &[id(object), value as i64])
}

fn read_leaves(attempt: &mut Attempt<'_>, object: Object, typed: bool) -> Result<Vec<u64>> {
    let values = match typed {
        true => attempt.typed_neighbors(id(object), "has")?,
        false => attempt.read_numbers("g.V(v).out('has').id()", &[id(object)])?,
    };
    attempt.note(Operation::ReadSet { object, values: values.clone() });
    Ok(values)
}

/// Adds a leaf to a hub; or reads its leaves, and drops one or counts them.
fn hub(attempt: &mut Attempt<'_>, random: &mut SmallRng, object: Object, writes: bool, typed: bool) -> Result<()> {
    if writes && random.random_bool(0.6) {
        return add_leaf(attempt, object, typed);
    }
    let values = read_leaves(attempt, object, typed)?;
    if let Some(&value) = values.choose(random).filter(|_| writes) {
        attempt.note(Operation::Remove { object, value });
        return match random.random_bool(0.5) {
            true => attempt.write("g.V(v).drop()", &[value as i64]),
            false => attempt.write("g.V(v).outE('has').where(inV().hasId(x)).drop()", &[id(object), value as i64]),
        };
    }
    if random.random_bool(0.3) {
        let count = attempt.read_numbers("g.V(v).out('has').count()", &[id(object)])?;
        note_count(attempt, object, &values, count[0]);
    }
    Ok(())
}

/// A count that contradicts an earlier read is recorded as another read, which contradicts that read, too.
fn note_count(attempt: &mut Attempt<'_>, object: Object, values: &[u64], count: u64) {
    let values = values.iter().copied().chain(std::iter::repeat(u64::MAX)).take(count as usize).collect();
    attempt.note(Operation::ReadSet { object, values });
}

fn slot(attempt: &mut Attempt<'_>, object: Object, writes: bool) -> Result<()> {
    let values = attempt.read_numbers("g.V(v).values('token')", &[id(object)])?;
    attempt.note(Operation::ReadSet { object, values: values.clone() });
    if !writes {
        return Ok(());
    }
    if let Some(&value) = values.first() {
        attempt.note(Operation::Remove { object, value });
        return attempt.write("g.V(v).drop()", &[id(object)]);
    }
    let value = attempt.value();
    attempt.note(Operation::Add { object, value });
    attempt.write("g.addV('slot').property(id, v).property('token', x)", &[id(object), value as i64])
}

/// An item as it was read: its element, and the token that it got with its present value.
#[derive(Clone, Copy)]
struct Item {
    id: i64,
    value: u64,
    token: u64,
}

/// The items that an object stands for.
struct Items {
    is_edge: bool,
    key: &'static str,
    label: String,
    value: u64,
}

impl Items {
    /// The step that all elements of the kind come from.
    fn source(&self) -> &'static str {
        if self.is_edge { "E" } else { "V" }
    }
}

/// The kind, label and value of the items that an object stands for. Every generation has values of its own; that
/// some share a label keeps the number of different scripts small.
fn items_of(object: Object) -> Items {
    let (generation, index) = (generation(object), object.0 & INDEX_MASK);
    let (is_edge, key) = ITEM_KINDS[(index / BUCKETS) as usize];
    let label = format!("item{}", generation % ITEM_LABELS);
    Items { is_edge, key, label, value: generation * BUCKETS + index % BUCKETS }
}

/// Adds, reads, changes, drops or counts items: elements that are found by the value of a property. Whenever an
/// item gets a value, it gets a new token with it, so that the sets of tokens by value tell their history.
fn items(attempt: &mut Attempt<'_>, random: &mut SmallRng, generation: u64, writes: bool) -> Result<()> {
    let kind = random.random_range(0..ITEM_KINDS.len() as u64);
    let value = zipf(random, BUCKETS);
    let first = items_object(generation, kind, value);
    if writes && random.random_bool(0.5) {
        return add_item(attempt, first);
    }
    let ranges = ITEM_KINDS[kind as usize].1 == "sorted" && random.random_bool(0.5);
    let last = if ranges { items_object(generation, kind, random.random_range(value..BUCKETS)) } else { first };
    let met = read_items(attempt, first, last)?;
    if let Some(&item) = met.choose(random).filter(|_| writes) {
        return change_item(attempt, Object(first.0 + item.value - items_of(first).value), item);
    }
    if first == last && random.random_bool(0.3) {
        let of = items_of(first);
        let script = format!("g.{}().hasLabel('{}').has('{}', v).count()", of.source(), of.label, of.key);
        let count = attempt.read_numbers(&script, &[of.value as i64])?;
        let values: Vec<u64> = met.iter().map(|item| item.token).collect();
        note_count(attempt, first, &values, count[0]);
    }
    Ok(())
}

fn add_item(attempt: &mut Attempt<'_>, object: Object) -> Result<()> {
    let token = attempt.value();
    attempt.note(Operation::Add { object, value: token });
    let Items { is_edge, key, label, value } = items_of(object);
    let element = match is_edge {
        false => format!("addV('{label}')"),
        // An edge of a vertex of its own.
        true => format!("addV('end').as('a').addE('{label}').to('a')"),
    };
    let script = format!("g.{element}.property(id, v).property('{key}', x).property('token', v)");
    attempt.write(&script, &[token as i64, value as i64])
}

/// The items with a value from `first`'s to `last`'s; by equality where that is one value.
fn read_items(attempt: &mut Attempt<'_>, first: Object, last: Object) -> Result<Vec<Item>> {
    let of = items_of(first);
    let (low, high, key) = (of.value, items_of(last).value, of.key);
    let predicate = if low == high { "v" } else { "between(v, x)" };
    let script = format!(
        "g.{}().hasLabel('{}').has('{key}', {predicate})\
         .project('id', 'value', 'token').by(id).by('{key}').by('token')",
        of.source(),
        of.label
    );
    let item = |row: Value| {
        let Value::Map(row) = row else { panic!("a map expected, not {row:?}") };
        // A serializable transaction that will not commit may find an item without its properties, which another
        // transaction has dropped meanwhile. If the reader commits nevertheless, the token in the
        // history is one that no transaction wrote, so the checker reports it.
        let [id, value, token] = [0, 1, 2].map(|i| row.get(i).map_or(-1, |(_, value)| integer(value)));
        let value = if row.len() == 3 { value as u64 } else { low };
        Item { id, value, token: token as u64 }
    };
    let met: Vec<Item> = attempt.read(&script, &[low as i64, high as i64 + 1])?.into_iter().map(item).collect();
    for value in low..=high {
        let values: Vec<u64> = met.iter().filter(|item| item.value == value).map(|item| item.token).collect();
        attempt.note(Operation::ReadSet { object: Object(first.0 + value - low), values });
    }
    Ok(met)
}

/// Gives an item the next value; drops it after the last.
fn change_item(attempt: &mut Attempt<'_>, object: Object, item: Item) -> Result<()> {
    attempt.note(Operation::Remove { object, value: item.token });
    let of = items_of(object);
    let next = item.value + 1;
    if next.is_multiple_of(BUCKETS) {
        // An edge goes with its vertex, or alone.
        let script = match (of.is_edge, item.token.is_multiple_of(2)) {
            (false, _) => "g.V(v).drop()",
            (true, true) => "g.E(v).outV().drop()",
            (true, false) => "g.E(v).drop()",
        };
        return attempt.write(script, &[item.id]);
    }
    let token = attempt.value();
    attempt.note(Operation::Add { object: Object(object.0 + 1), value: token });
    let script = match of.is_edge {
        false => format!("g.V(v).property(single, '{}', x).property(single, 'token', y)", of.key),
        true => format!("g.E(v).property('{}', x).property('token', y)", of.key),
    };
    attempt.write(&script, &[item.id, next as i64, token as i64])
}
