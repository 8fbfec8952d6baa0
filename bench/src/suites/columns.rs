//! Properties by columns: maps of many neighbors, the first vertices by a property, groups, and a filter.
//!
//! `bare` is a plain loop over the typed interface: it reads the same vertices by columns, 1,024 at a time, and makes
//! the same maps, sums or sorted arrays. So the ratio shows the cost of the query, not of the store. The neighbors are
//! those of one vertex and lie scattered over all pages; the other cases scan all vertices.

use std::collections::{HashMap, HashSet};

use mangrove::{
    Database, Direction, Error, ExpandCursor, ExpandRequest, Expansion, GraphView, KeyId, LabelFilter, LabelSetId,
    Numbers, Parameters, Result, ScanCursor, Share, Token, UserId, Value, ValueRows, VertexId,
};
use mangrove_store::{BulkColumn, ColumnData};
use smol_str::{SmolStr, format_smolstr};

use super::Context;
use crate::harness::{Operation, Schedule, measure, verify};
use crate::options::{Options, Suite};
use crate::people::{self, AGE, BORN, NAME, PERSON};
use crate::report::{Growing, Row};
use crate::social::{self, KNOWS};
use mangrove_generate::random::{RandomStream, below, mix};

const NAME_OF_SUITE: &str = Suite::Columns.name();

/// Vertices in one call.
const BATCH: usize = 1_024;
/// The largest number of neighbors.
const NEIGHBORS_MAX: usize = 100_000;
/// A property: one of [`CITY_COUNT`] short texts.
const CITY: &str = "city";
const CITY_COUNT: u64 = 50;
/// The number of first vertices that a query returns.
const FIRST: usize = 10;
/// The filter passes a tenth of the vertices.
const AGE_ABOVE: i64 = 89;

/// Targets, as multiples of the plain loop: for queries that add or compare numbers, and for queries that make maps.
const NUMBERS_MAX: f64 = 1.3;
const MAPS_MAX: f64 = 2.0;

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    let graph = Graph::load(1 << context.options.scale.log_vertices())?;
    let run = Run { options: context.options, schedule: context.schedule.alone() };
    neighbors(&graph, &run, report)?;
    firsts(&graph, &run, report)?;
    groups(&graph, &run, report)?;
    filters(&graph, &run, report)?;
    aggregates(&graph, &run, report)
}

/// People with four properties; one of them knows many others.
#[derive(Clone)]
struct Graph {
    database: Database,
    person: LabelSetId,
    knows: LabelSetId,
    /// The person who knows the others.
    hub: VertexId,
    count: usize,
    neighbor_count: usize,
}

fn city(number: u64) -> SmolStr {
    format_smolstr!("city{:02}", below(mix(number ^ 0xC17), CITY_COUNT))
}

impl Graph {
    fn load(count: usize) -> Result<Self> {
        let database = Database::in_memory();
        let catalog = database.catalog();
        let (person, knows) = (catalog.intern_label_text(PERSON), catalog.intern_label_text(KNOWS));
        let numbers = 0..count as u64;
        let column = |key, values| BulkColumn { key: catalog.intern_key(key), values };
        let columns = [
            column(BORN, ColumnData::I64(numbers.clone().map(people::born).collect())),
            column(NAME, ColumnData::String(numbers.clone().map(people::name).collect())),
            column(AGE, ColumnData::I64(numbers.clone().map(people::age).collect())),
            column(CITY, ColumnData::String(numbers.clone().map(city).collect())),
        ];
        let ids: Vec<UserId> = numbers.map(people::id).collect();
        let mut loader = database.bulk_load()?;
        let vertices: Vec<VertexId> = loader.vertices(person, count, Some(&ids), &columns)?;
        let mut others = vertices[1..].to_vec();
        shuffle(&mut others);
        others.truncate(NEIGHBORS_MAX);
        let ends: Vec<(VertexId, VertexId)> = others.iter().map(|&other| (vertices[0], other)).collect();
        social::load_edges(&mut loader, knows, &ends)?;
        loader.finish()?;
        Ok(Graph { database, person, knows, hub: vertices[0], count, neighbor_count: others.len() })
    }

    fn key(&self, name: &str) -> KeyId {
        self.database.catalog().intern_key(name)
    }

    /// Calls `each` with the neighbors, at most [`BATCH`] at a time.
    fn each_neighbors(&self, mut each: impl FnMut(&dyn GraphView, &[VertexId]) -> Result<()>) -> Result<()> {
        let labels = LabelFilter::Sets([self.knows].into());
        let request = ExpandRequest { direction: Direction::Out, labels, edges: false, limit: BATCH };
        let transaction = self.database.begin_read()?;
        let (view, mut cursor, mut ended) = (transaction.view(), ExpandCursor::default(), false);
        let mut found = Expansion::default();
        while !ended {
            found.clear();
            ended = view.expand(&[self.hub], &request, &mut cursor, &mut found)?;
            found.neighbor.chunks(BATCH).try_for_each(|chunk| each(view, chunk))?;
        }
        Ok(())
    }

    /// Calls `each` with all people, at most [`BATCH`] at a time.
    fn each_people(&self, mut each: impl FnMut(&dyn GraphView, &[VertexId]) -> Result<()>) -> Result<()> {
        let labels = LabelFilter::Sets([self.person].into());
        let transaction = self.database.begin_read()?;
        let (view, mut cursor, mut ended) = (transaction.view(), ScanCursor::default(), false);
        let mut vertices = Vec::with_capacity(BATCH);
        while !ended {
            vertices.clear();
            ended = view.scan_vertices(&labels, Share::ALL, &mut cursor, BATCH, &mut vertices)?;
            each(view, &vertices)?;
        }
        Ok(())
    }

    /// Calls `each` with the numbers of all people under a key.
    fn each_numbers(&self, key: KeyId, mut each: impl FnMut(&[i64])) -> Result<()> {
        let mut numbers = Numbers::default();
        self.each_people(|view, vertices| {
            each(integers(view, vertices, key, &mut numbers)?);
            Ok(())
        })
    }

    /// Calls `each` with the numbers of the neighbors under a key.
    fn each_numbers_of_neighbors(&self, key: KeyId, mut each: impl FnMut(&[i64])) -> Result<()> {
        let mut numbers = Numbers::default();
        self.each_neighbors(|view, vertices| {
            each(integers(view, vertices, key, &mut numbers)?);
            Ok(())
        })
    }

    /// Calls `each` with the texts of all people under a key.
    fn each_text(&self, key: KeyId, mut each: impl FnMut(SmolStr)) -> Result<()> {
        let mut rows = ValueRows::default();
        self.each_people(|view, vertices| {
            rows.clear();
            view.vertex_values(vertices, key, &mut rows)?;
            for value in rows.value.drain(..) {
                match value {
                    Value::String(text) => each(text),
                    _ => return Err(Error::bug("the property of all people is a text")),
                }
            }
            Ok(())
        })
    }
}

/// The numbers of some vertices under a key.
fn integers<'a>(
    view: &dyn GraphView,
    vertices: &[VertexId],
    key: KeyId,
    numbers: &'a mut Numbers,
) -> Result<&'a [i64]> {
    numbers.clear();
    if !view.vertex_numbers(vertices, key, numbers)? {
        return Err(Error::bug("the property of all people is a number"));
    }
    Ok(&numbers.integers)
}

fn shuffle(vertices: &mut [VertexId]) {
    let mut random = RandomStream::from_seed(5);
    for at in (1..vertices.len()).rev() {
        vertices.swap(at, random.below(at as u64 + 1) as usize);
    }
}

/// A digest of a result that does not depend on the order of a map's entries.
fn digest(value: &Value) -> u64 {
    match value {
        Value::Map(entries) => {
            let entry = |(key, value): &(Value, Value)| digest(key) ^ digest(value).rotate_left(13);
            entries.iter().map(entry).fold(1, u64::wrapping_add)
        }
        Value::List(values) => values.iter().fold(2, |all, value| all.wrapping_mul(31).wrapping_add(digest(value))),
        Value::Token(Token::Id) => 3,
        Value::Token(_) => 4,
        Value::F64(number) => number.to_bits(),
        other => people::digest(other),
    }
}

struct Run<'a> {
    options: &'a Options,
    schedule: Schedule,
}

impl Run<'_> {
    /// Times the plain loop and the query, per element. The loop's answer is the expected one.
    fn compare(
        &self,
        report: &mut Growing<'_>,
        (case, count, target): (&str, usize, Option<f64>),
        mut bare: Box<dyn Operation>,
        database: &Database,
        script: &str,
    ) -> Result<()> {
        let expected = bare.perform(0)?;
        let mut limit = None;
        if self.options.wants(case, "bare") {
            let timing = measure(self.schedule, 1, &mut [bare])?.divided_by(count as f64);
            limit = Some(timing.median);
            report.push(Row::time(NAME_OF_SUITE, case, "bare", timing));
        }
        if self.options.wants(case, "prepared") {
            let mut prepared = ask(database, script)?;
            verify(&format!("columns: {script}"), &mut *prepared, 1, &mut |_| Ok(expected))?;
            let timing = measure(self.schedule, 1, &mut [prepared])?.divided_by(count as f64);
            let aim = target.zip(limit).map(|(times, limit)| times * limit);
            report.push(Row::time(NAME_OF_SUITE, case, "prepared", timing).beside(limit).aiming_at(aim));
        }
        Ok(())
    }
}

/// A Gremlin query as an operation. Only if the result is one list does its digest depend on the order.
fn ask(database: &Database, script: &str) -> Result<Box<dyn Operation>> {
    let (database, prepared) = (database.clone(), database.prepare(script)?);
    Ok(Box::new(move |_| {
        let mut results = database.run(&prepared, &Parameters::new())?;
        let mut answer = 0u64;
        while let Some(batch) = results.next_batch()? {
            let sum = batch.iter().map(|(value, bulk)| digest(value).wrapping_mul(*bulk));
            answer = sum.fold(answer, u64::wrapping_add);
        }
        Ok(answer)
    }))
}

/// Calls `each` with the values of some keys, row by row; every vertex has all of them. Returns the sum of its results.
fn by_row(
    view: &dyn GraphView,
    vertices: &[VertexId],
    keys: &[KeyId],
    columns: &mut [ValueRows],
    mut each: impl FnMut(usize, &mut dyn Iterator<Item = Value>) -> u64,
) -> Result<u64> {
    for (key, column) in keys.iter().zip(columns.iter_mut()) {
        column.clear();
        view.vertex_values(vertices, *key, column)?;
        if column.row.len() != vertices.len() {
            return Err(Error::bug("all people have one value for each key"));
        }
    }
    let mut columns: Vec<_> = columns.iter_mut().map(|column| column.value.drain(..)).collect();
    let row = |row| each(row, &mut columns.iter_mut().filter_map(Iterator::next));
    Ok((0..vertices.len()).map(row).fold(0, u64::wrapping_add))
}

/// The neighbors' values under two keys.
fn flat(graph: &Graph) -> Box<dyn Operation> {
    let (graph, keys) = (graph.clone(), [graph.key(BORN), graph.key(NAME)]);
    let mut columns = [ValueRows::default(), ValueRows::default()];
    Box::new(move |_| {
        let mut total = 0u64;
        graph.each_neighbors(|view, vertices| {
            let digests = |_, values: &mut dyn Iterator<Item = Value>| {
                values.map(|value| digest(&value)).fold(0, u64::wrapping_add)
            };
            total = total.wrapping_add(by_row(view, vertices, &keys, &mut columns, digests)?);
            Ok(())
        })?;
        Ok(total)
    })
}

/// The neighbors as maps of some keys; optionally with id and label first, or with values in lists.
fn maps(graph: &Graph, keys: &[&'static str], tokens: bool, lists: bool) -> Box<dyn Operation> {
    let names: Vec<Value> = keys.iter().map(|&key| Value::from(key)).collect();
    let keys: Vec<KeyId> = keys.iter().map(|key| graph.key(key)).collect();
    let mut columns: Vec<ValueRows> = keys.iter().map(|_| ValueRows::default()).collect();
    let (graph, mut ids) = (graph.clone(), Vec::new());
    Box::new(move |_| {
        let mut total = 0u64;
        graph.each_neighbors(|view, vertices| {
            ids.clear();
            if tokens {
                view.vertex_user_ids(vertices, &mut ids)?;
            }
            let sum = by_row(view, vertices, &keys, &mut columns, |row, values| {
                let mut entries = Vec::with_capacity(names.len() + 2);
                if tokens {
                    entries.push((Value::Token(Token::Id), ids[row].clone()));
                    entries.push((Value::Token(Token::Label), Value::from(PERSON)));
                }
                let wrap = |value| if lists { Value::list(vec![value]) } else { value };
                entries.extend(names.iter().cloned().zip(values.map(wrap)));
                digest(&Value::map(entries))
            })?;
            total = total.wrapping_add(sum);
            Ok(())
        })?;
        Ok(total)
    })
}

fn neighbors(graph: &Graph, run: &Run<'_>, report: &mut Growing<'_>) -> Result<()> {
    let two = [BORN, NAME];
    let all = [BORN, NAME, AGE, CITY];
    let cases = [
        ("values of two keys, a neighbor", flat(graph), "values('born', 'name')"),
        ("valueMap of all four keys, a neighbor", maps(graph, &all, false, true), "valueMap()"),
        ("valueMap of two keys, a neighbor", maps(graph, &two, false, true), "valueMap('born', 'name')"),
        ("elementMap, a neighbor", maps(graph, &all, true, false), "elementMap()"),
        (
            "project by two keys, a neighbor",
            maps(graph, &two, false, false),
            "project('born', 'name').by('born').by('name')",
        ),
    ];
    for (case, bare, step) in cases {
        let script = format!("g.V(0).out('knows').{step}");
        run.compare(report, (case, graph.neighbor_count, Some(MAPS_MAX)), bare, &graph.database, &script)?;
    }
    Ok(())
}

/// All people's numbers in one array, from which `answer` computes the answer.
fn gathered(graph: &Graph, key: &str, answer: impl Fn(&mut [i64]) -> u64 + Send + 'static) -> Box<dyn Operation> {
    let (graph, key, mut all) = (graph.clone(), graph.key(key), Vec::new());
    Box::new(move |_| {
        all.clear();
        graph.each_numbers(key, |numbers| all.extend_from_slice(numbers))?;
        Ok(answer(&mut all))
    })
}

/// A fold over all people's numbers.
fn folded(graph: &Graph, key: &str, fold: impl Fn(u64, i64) -> u64 + Send + 'static) -> Box<dyn Operation> {
    let (graph, key) = (graph.clone(), graph.key(key));
    Box::new(move |_| {
        let mut answer = 0;
        graph.each_numbers(key, |numbers| answer = numbers.iter().fold(answer, |answer, n| fold(answer, *n)))?;
        Ok(answer)
    })
}

fn digest_list(values: impl Iterator<Item = Value>) -> u64 {
    digest(&Value::list(values.collect()))
}

fn firsts(graph: &Graph, run: &Run<'_>, report: &mut Growing<'_>) -> Result<()> {
    let top = gathered(graph, BORN, move |numbers| {
        let first = FIRST.min(numbers.len());
        numbers.select_nth_unstable_by(first - 1, |a, b| b.cmp(a));
        numbers[..first].sort_unstable_by(|a, b| b.cmp(a));
        digest_list(numbers[..first].iter().copied().map(Value::I64))
    });
    let sorted = gathered(graph, BORN, move |numbers| {
        numbers.sort_unstable();
        digest_list(numbers.iter().copied().map(Value::I64))
    });
    let (people, key, mut names) = (graph.clone(), graph.key(NAME), Vec::new());
    let texts: Box<dyn Operation> = Box::new(move |_| {
        people.each_text(key, |text| names.push(text))?;
        names.sort_unstable();
        Ok(digest_list(names.drain(..).map(Value::String)))
    });
    let cases = [
        ("first ten by a number, a vertex", top, "order().by('born', desc).limit(10).values('born')"),
        ("all by a number, a vertex", sorted, "order().by('born').values('born')"),
        ("all by a text, a vertex", texts, "order().by('name').values('name')"),
    ];
    for (case, bare, steps) in cases {
        let script = format!("g.V().hasLabel('person').{steps}.fold()");
        run.compare(report, (case, graph.count, None), bare, &graph.database, &script)?;
    }
    Ok(())
}

/// The digest of a group count.
fn counted<K>(counts: &HashMap<K, i64>, key: impl Fn(&K) -> Value) -> u64 {
    digest(&Value::map(counts.iter().map(|(k, n)| (key(k), Value::I64(*n))).collect()))
}

/// The sum of the years of birth, by age.
fn sums(graph: &Graph) -> Box<dyn Operation> {
    let (graph, age, born) = (graph.clone(), graph.key(AGE), graph.key(BORN));
    let (mut ages, mut years) = (Numbers::default(), Numbers::default());
    Box::new(move |_| {
        let mut sums: HashMap<i64, i64> = HashMap::new();
        graph.each_people(|view, vertices| {
            ages.clear();
            years.clear();
            if !view.vertex_numbers(vertices, age, &mut ages)? || !view.vertex_numbers(vertices, born, &mut years)? {
                return Err(Error::bug("both properties of all people are numbers"));
            }
            ages.integers.iter().zip(&years.integers).for_each(|(age, born)| *sums.entry(*age).or_default() += born);
            Ok(())
        })?;
        Ok(counted(&sums, |n| Value::I64(*n)))
    })
}

fn groups(graph: &Graph, run: &Run<'_>, report: &mut Growing<'_>) -> Result<()> {
    let (people, age) = (graph.clone(), graph.key(AGE));
    let by_age: Box<dyn Operation> = Box::new(move |_| {
        let mut counts: HashMap<i64, i64> = HashMap::new();
        people.each_numbers(age, |ages| ages.iter().for_each(|age| *counts.entry(*age).or_default() += 1))?;
        Ok(counted(&counts, |n| Value::I64(*n)))
    });
    let (people, city) = (graph.clone(), graph.key(CITY));
    let by_city: Box<dyn Operation> = Box::new(move |_| {
        let mut counts: HashMap<SmolStr, i64> = HashMap::new();
        people.each_text(city, |text| *counts.entry(text).or_default() += 1)?;
        Ok(counted(&counts, |text| Value::String(text.clone())))
    });
    let cases = [
        ("group count by a number, a vertex", by_age, "groupCount().by('age')"),
        ("group count by a text, a vertex", by_city, "groupCount().by('city')"),
        ("sums by a number, a vertex", sums(graph), "group().by('age').by(values('born').sum())"),
    ];
    for (case, bare, steps) in cases {
        let script = format!("g.V().hasLabel('person').{steps}");
        run.compare(report, (case, graph.count, None), bare, &graph.database, &script)?;
    }
    Ok(())
}

fn filters(graph: &Graph, run: &Run<'_>, report: &mut Growing<'_>) -> Result<()> {
    let passing = folded(graph, AGE, |count, age| count + u64::from(age > AGE_ABOVE));
    let total = folded(graph, AGE, |sum, age| sum + age as u64);
    let (people, key, wanted) = (graph.clone(), graph.key(CITY), city(1));
    let living: Box<dyn Operation> = Box::new(move |_| {
        let mut count = 0;
        people.each_text(key, |text| count += u64::from(text == wanted))?;
        Ok(count)
    });
    let cases = [
        ("filter by a number, counted, a vertex", passing, format!("has('age', gt({AGE_ABOVE})).count()")),
        ("filter by a text, counted, a vertex", living, format!("has('city', '{}').count()", city(1))),
        ("sum of a number, a vertex", total, "values('age').sum()".to_owned()),
    ];
    for (case, bare, steps) in cases {
        let script = format!("g.V().hasLabel('person').{steps}");
        run.compare(report, (case, graph.count, Some(NUMBERS_MAX)), bare, &graph.database, &script)?;
    }
    Ok(())
}

/// The number, the sum and the largest of some numbers.
#[derive(Clone, Copy)]
struct Aggregate {
    count: u64,
    sum: i64,
    largest: i64,
}

impl Aggregate {
    const NONE: Self = Aggregate { count: 0, sum: 0, largest: i64::MIN };

    fn add(&mut self, numbers: &[i64]) {
        self.count += numbers.len() as u64;
        self.sum += numbers.iter().sum::<i64>();
        self.largest = numbers.iter().copied().fold(self.largest, i64::max);
    }

    /// The digest of the mean.
    fn mean(self) -> u64 {
        digest(&Value::F64(self.sum as f64 / self.count as f64))
    }
}

/// The values of a step `values('age')`, in the operators that follow it.
fn aggregates(graph: &Graph, run: &Run<'_>, report: &mut Growing<'_>) -> Result<()> {
    let key = graph.key(AGE);
    let of_people = |answer: fn(Aggregate) -> u64| -> Box<dyn Operation> {
        let people = graph.clone();
        Box::new(move |_| {
            let mut all = Aggregate::NONE;
            people.each_numbers(key, |ages| all.add(ages))?;
            Ok(answer(all))
        })
    };
    let above = |answer: fn(u64, i64) -> u64| -> Box<dyn Operation> {
        folded(graph, AGE, move |total, age| if age > AGE_ABOVE { answer(total, age) } else { total })
    };
    let neighbors = graph.clone();
    let of_neighbors: Box<dyn Operation> = Box::new(move |_| {
        let mut all = Aggregate::NONE;
        neighbors.each_numbers_of_neighbors(key, |ages| all.add(ages))?;
        Ok(all.mean())
    });
    let people = graph.clone();
    let counts: Box<dyn Operation> = Box::new(move |_| {
        let mut counts: HashMap<i64, i64> = HashMap::new();
        people.each_numbers(key, |ages| ages.iter().for_each(|age| *counts.entry(*age).or_default() += 1))?;
        Ok(counted(&counts, |n| Value::I64(*n)))
    });
    let people = graph.clone();
    let distinct: Box<dyn Operation> = Box::new(move |_| {
        let mut seen: HashSet<i64> = HashSet::new();
        people.each_numbers(key, |ages| seen.extend(ages))?;
        Ok(seen.len() as u64)
    });
    let sorted = gathered(graph, AGE, |ages| {
        ages.sort_unstable();
        digest_list(ages.iter().copied().map(Value::I64))
    });
    let all_three = |all: Aggregate| all.mean().wrapping_add(all.largest as u64).wrapping_add(all.count);
    let passing = format!("values('age').is(gt({AGE_ABOVE}))");
    let cases = [
        ("mean of a number, a vertex", of_people(Aggregate::mean), "values('age').mean()".to_owned()),
        ("largest number, a vertex", of_people(|all| all.largest as u64), "values('age').max()".to_owned()),
        ("values that pass, counted, a vertex", above(|count, _| count + 1), format!("{passing}.count()")),
        ("values that pass, summed, a vertex", above(|sum, age| sum + age as u64), format!("{passing}.sum()")),
        (
            "three aggregates of values, a vertex",
            of_people(all_three),
            "values('age').union(mean(), max(), count())".to_owned(),
        ),
        ("group count of values, a vertex", counts, "values('age').groupCount()".to_owned()),
        ("distinct values, a vertex", distinct, "values('age').dedup().count()".to_owned()),
        ("values in order, a vertex", sorted, "values('age').order().fold()".to_owned()),
    ];
    for (case, bare, steps) in cases {
        let script = format!("g.V().hasLabel('person').{steps}");
        run.compare(report, (case, graph.count, None), bare, &graph.database, &script)?;
    }
    let script = "g.V(0).out('knows').values('age').mean()";
    let case = ("mean of a number, a neighbor", graph.neighbor_count, Some(NUMBERS_MAX));
    run.compare(report, case, of_neighbors, &graph.database, script)
}
