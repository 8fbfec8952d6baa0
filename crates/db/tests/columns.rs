//! Reading properties by columns gives the same results as reading rows: with values of one type, of several types and
//! without values, with own uncommitted writes, updates, and deleted elements.

use mangrove::{Database, Result, Transaction, UserId, Value};
use mangrove_graph::compare;

/// More vertices than a few messages hold, and not a multiple of a message.
const COUNT: usize = 2_500;

/// The values under the key `p`.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Integers,
    Floats,
    Texts,
    /// Integers first, then everything.
    Late,
    /// Some vertices have no value.
    Sparse,
}

const KINDS: [Kind; 5] = [Kind::Integers, Kind::Floats, Kind::Texts, Kind::Late, Kind::Sparse];

fn mixed(n: usize) -> usize {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40
}

fn p(kind: Kind, n: usize) -> Option<Value> {
    let number = (mixed(n) % 40) as i32 - 20;
    let float = |n: i32| match n {
        7 => f64::NAN,
        8 => -0.0,
        n => f64::from(n / 2),
    };
    Some(match (kind, n) {
        (Kind::Integers, _) => Value::I32(number),
        (Kind::Floats, _) => Value::F64(float(number)),
        (Kind::Texts, _) => Value::from(format!("{}{}", "text that is long ".repeat(n % 2), number)),
        (Kind::Late, n) if n < COUNT / 2 => Value::I32(number),
        (Kind::Late, n) => match n % 4 {
            0 => Value::I64(i64::from(number)),
            1 => Value::F64(float(number)),
            2 => Value::from("text"),
            _ => Value::Bool(true),
        },
        (Kind::Sparse, n) if n % 3 == 0 => return None,
        (Kind::Sparse, _) => Value::I32(number),
    })
}

fn q(n: usize) -> Option<Value> {
    (!n.is_multiple_of(5)).then_some(Value::I64((mixed(n) % 3) as i64))
}

/// The expected graph, by vertex; `None` was deleted.
#[derive(Clone)]
struct People {
    kind: Kind,
    rows: Vec<Option<[Option<Value>; 2]>>,
}

/// The id of a vertex: its number with an offset, so that it equals no automatic id.
fn id(n: usize) -> Value {
    Value::I64(n as i64)
}

impl People {
    fn load(kind: Kind) -> Result<(Database, People)> {
        let database = Database::in_memory();
        let rows: Vec<_> = (0..COUNT).map(|n| Some([p(kind, n), q(n)])).collect();
        let people = People { kind, rows };
        let transaction = database.begin()?;
        let label = database.catalog().intern_label_text("person");
        let ids: Vec<UserId> = (0..COUNT).map(|n| UserId::int(n as i64)).collect();
        let vertices = transaction.insert_vertices(label, &ids)?;
        for (at, key) in ["p", "q"].into_iter().enumerate() {
            let value =
                |(n, row): (usize, &Option<[Option<Value>; 2]>)| Some((vertices[n], row.as_ref()?[at].clone()?));
            let values: Vec<_> = people.rows.iter().enumerate().filter_map(value).collect();
            transaction.set_vertex_property(key, &values)?;
        }
        transaction.commit()?;
        Ok((database, people))
    }

    /// Changes of every kind: new values, also of other types, removed values, deleted and added vertices.
    fn change(&mut self, transaction: &Transaction) -> Result<()> {
        let ids: Vec<UserId> = (0..self.rows.len()).map(|n| UserId::int(n as i64)).collect();
        let mut found = Vec::new();
        transaction.view().find_vertices(&ids, &mut found)?;
        for (n, vertex) in found.into_iter().enumerate() {
            let (Some(vertex), Some(row)) = (vertex, &mut self.rows[n]) else { continue };
            match mixed(n + 1) % 23 {
                0 => {
                    transaction.delete_vertices(&[vertex])?;
                    self.rows[n] = None;
                }
                1 => {
                    transaction.remove_vertex_property("p", &[vertex])?;
                    row[0] = None;
                }
                2 | 3 => {
                    row[0] = p(self.kind, n + 77);
                    let values: Vec<_> = row[0].iter().map(|value| (vertex, value.clone())).collect();
                    transaction.remove_vertex_property("p", &[vertex])?;
                    transaction.set_vertex_property("p", &values)?;
                }
                4 => {
                    row[1] = Some(Value::I64(9));
                    transaction.set_vertex_property("q", &[(vertex, Value::I64(9))])?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Numbers of the people as a scan finds them, and the two values of each.
    fn scanned(&self, ids: &[Value]) -> Vec<(usize, &[Option<Value>; 2])> {
        let number = |id: &Value| match id {
            Value::I64(n) => *n as usize,
            other => panic!("{other:?} is no id that was given"),
        };
        let row = |id| (number(id), self.rows[number(id)].as_ref().expect("nobody sees who was deleted"));
        let rows: Vec<_> = ids.iter().map(row).collect();
        assert_eq!(rows.len(), self.rows.iter().flatten().count());
        rows
    }
}

/// The same for NaN, and another for numbers of another type.
fn text(values: &[Value]) -> String {
    format!("{values:?}")
}

/// The results on one thread: those of several, and the keys of their maps, come in any order.
fn ask(transaction: &Transaction, script: &str) -> Result<Vec<Value>> {
    transaction.query(&script.replacen("g.", "g.with('parallel', 1).", 1)).unwrap().collect()
}

#[track_caller]
fn check(transaction: &Transaction, people: &People) {
    let ask = |script: &str| ask(transaction, script).unwrap_or_else(|e| panic!("{script}: {e}"));
    let ids = ask("g.V().id()");
    let rows = people.scanned(&ids);
    let same = |script: &str, expected: Vec<Value>| {
        assert_eq!(text(&ask(script)), text(&expected), "{script} of {:?}", people.kind);
    };

    let with_p: Vec<_> = rows.iter().filter_map(|(n, row)| Some((*n, row[0].clone()?, row[1].clone()))).collect();
    let ids_of = |rows: &[(usize, Value, Option<Value>)]| rows.iter().map(|(n, ..)| id(*n)).collect::<Vec<_>>();
    let mut sorted = with_p.clone();
    sorted.sort_by(|a, b| compare::order(&a.1, &b.1));
    same("g.V().order().by('p').id()", ids_of(&sorted));
    same("g.V().order().by('p').limit(7).id()", ids_of(&sorted[..7]));
    sorted.clone_from(&with_p);
    sorted.sort_by(|a, b| compare::order(&b.1, &a.1));
    same("g.V().order().by('p', desc).id()", ids_of(&sorted));
    same("g.V().order().by('p', desc).range(3, 40).id()", ids_of(&sorted[3..40]));
    same("g.V().order().by('p', desc).tail(4).id()", ids_of(&sorted[sorted.len() - 4..]));
    let mut sorted: Vec<_> = with_p.iter().filter(|row| row.2.is_some()).cloned().collect();
    sorted.sort_by(|a, b| {
        let by_q = compare::order(a.2.as_ref().unwrap(), b.2.as_ref().unwrap());
        by_q.then_with(|| compare::order(&b.1, &a.1))
    });
    same("g.V().order().by('q').by('p', desc).limit(300).id()", ids_of(&sorted[..300]));
    same("g.V().order().by('q').by('p', desc).id()", ids_of(&sorted));

    let mut groups: Vec<(Value, i64, Option<i64>)> = Vec::new();
    for (_, key, q) in &with_p {
        let at = groups.iter().position(|(known, ..)| compare::equivalent(known, key)).unwrap_or_else(|| {
            groups.push((key.clone(), 0, None));
            groups.len() - 1
        });
        groups[at].1 += 1;
        if let Some(Value::I64(q)) = q {
            groups[at].2 = Some(groups[at].2.unwrap_or(0) + q);
        }
    }
    let counts: Vec<_> = groups.iter().map(|(key, count, _)| (key.clone(), Value::I64(*count))).collect();
    same("g.V().groupCount().by('p')", vec![Value::map(counts.clone())]);
    same("g.V().group().by('p').by(count())", vec![Value::map(counts)]);
    let sums = groups.iter().filter_map(|(key, _, sum)| Some((key.clone(), Value::I64((*sum)?)))).collect();
    same("g.V().group().by('p').by(values('q').sum())", vec![Value::map(sums)]);

    same(
        "g.V().values('q', 'p')",
        rows.iter().flat_map(|(_, row)| [row[1].clone(), row[0].clone()]).flatten().collect(),
    );
    let map = |row: &[Option<Value>; 2], list: bool| -> Vec<(Value, Value)> {
        let wrap = |value: Value| if list { Value::list(vec![value]) } else { value };
        let entry = |(key, value): (&str, &Option<Value>)| Some((Value::from(key), wrap(value.clone()?)));
        ["p", "q"].into_iter().zip(row).filter_map(entry).collect()
    };
    same("g.V().valueMap('p', 'q')", rows.iter().map(|(_, row)| Value::map(map(row, true))).collect());
    let heads = |n: usize| {
        vec![(Value::Token(mangrove::Token::Id), id(n)), (Value::Token(mangrove::Token::Label), Value::from("person"))]
    };
    let elements = rows.iter().map(|(n, row)| Value::map([heads(*n), map(row, false)].concat()));
    same("g.V().elementMap('p', 'q')", elements.collect());
    let projected = rows.iter().map(|(_, row)| Value::map(map(row, false)));
    same("g.V().project('p', 'q').by('p').by('q')", projected.collect());

    let count = |passes: &dyn Fn(&Value) -> bool| Value::I64(with_p.iter().filter(|row| passes(&row.1)).count() as i64);
    let above = |value: &Value| compare::comparable(value, &Value::I32(5)).is_some_and(|order| order.is_gt());
    same("g.V().has('p', gt(5)).count()", vec![count(&above)]);
    same("g.V().has('p', 3).count()", vec![count(&|value| compare::equal(value, &Value::I32(3)))]);
    same("g.V().has('p', 'text').count()", vec![count(&|value| compare::equal(value, &Value::from("text")))]);
    same("g.V().has('p', '-3').count()", vec![count(&|value| compare::equal(value, &Value::from("-3")))]);

    let values = |passes: &dyn Fn(&Value) -> bool| {
        with_p.iter().map(|row| row.1.clone()).filter(|value| passes(value)).collect::<Vec<_>>()
    };
    same("g.V().values('p').is(gt(5))", values(&above));
    same("g.V().values('p').is(neq(3))", values(&|value| !compare::equal(value, &Value::I32(3))));
    same("g.V().values('p').is(gt(5)).count()", vec![count(&above)]);
    same("g.V().values('p').count()", vec![count(&|_| true)]);
    let counts = groups.iter().map(|(key, count, _)| (key.clone(), Value::I64(*count))).collect();
    same("g.V().values('p').groupCount()", vec![Value::map(counts)]);
    let mut sorted = values(&|_| true);
    sorted.sort_by(compare::order);
    same("g.V().values('p').order()", sorted.clone());
    sorted.truncate(9);
    same("g.V().values('p').order().limit(9)", sorted);
}

/// A column of numbers gives the results and errors of the same numbers as values: `fold().unfold()` makes values.
#[track_caller]
fn check_numbers_as_values(transaction: &Transaction, people: &People) {
    let ask = |script: &str| match ask(transaction, script) {
        Ok(values) => text(&values),
        // The steps that an error names differ.
        Err(error) => error.to_string().split(" (in the step").next().unwrap_or_default().to_owned(),
    };
    for steps in [
        "sum()",
        "mean()",
        "is(gt(5)).sum()",
        "is(lt(5.5)).mean()",
        "is(between(-3, 4)).min()",
        "is(outside(-3, 4)).max()",
        "is(not(gt(5))).count()",
        "is(within(1, 2.0, 'text')).groupCount()",
        "is(typeOf(GType.INT)).count()",
        "is(gt(100)).sum()",
        "is(gt(5)).order().limit(3)",
        "union(sum(), max(), count())",
        "union(is(gt(5)).count(), groupCount())",
        "as('a').is(gt(5)).where(eq('a')).count()",
        "as('a').is(gt(5)).select('a').sum()",
        "is(gt(5)).path().count(local).sum()",
        "order().by(desc).limit(5)",
        "order().out()",
        "order().values('x')",
        "order().has('x')",
        "order().dedup()",
        "dedup()",
        "dedup().count()",
        "groupCount('c').is(gt(5)).count()",
        "groupCount('c').cap('c')",
        "is(gt(5)).group().by(count(local))",
    ] {
        let (numbers, values) =
            (format!("g.V().values('p').{steps}"), format!("g.V().values('p').fold().unfold().{steps}"));
        assert_eq!(ask(&numbers), ask(&values), "{numbers} of {:?}", people.kind);
    }
}

#[test]
fn columns_are_read_as_rows_are_seen() {
    for kind in KINDS {
        let (database, mut people) = People::load(kind).unwrap();
        check(&database.begin_read().unwrap(), &people);
        let before = (database.begin_read().unwrap(), people.clone());
        let transaction = database.begin().unwrap();
        people.change(&transaction).unwrap();
        check(&transaction, &people);
        check_numbers_as_values(&transaction, &people);
        check(&before.0, &before.1);
        transaction.commit().unwrap();
        check(&before.0, &before.1);
        check(&database.begin_read().unwrap(), &people);
    }
}

#[test]
fn several_values_of_one_key_stay_together() {
    let database = Database::in_memory();
    let add = "g.addV('a').property(list, 'k', 3).property(list, 'k', 1).property('n', 'x').\
               addV('b').property('n', 'y').property('k', 2).addV('a').property('n', 'z')";
    database.query(add).unwrap().collect().unwrap();
    let check = |script: &str, expected: Vec<Value>| {
        assert_eq!(text(&database.query(script).unwrap().collect().unwrap()), text(&expected), "{script}");
    };
    let list = |values: Vec<i32>| Value::list(values.into_iter().map(Value::from).collect());
    let entry = |key: &str, value: Value| (Value::from(key), value);
    check(
        "g.V().order().by('n').valueMap('k')",
        vec![
            Value::map(vec![entry("k", list(vec![3, 1]))]),
            Value::map(vec![entry("k", list(vec![2]))]),
            Value::map(vec![]),
        ],
    );
    check("g.V().order().by('n').values('n', 'k').limit(4)", vec!["x".into(), 3.into(), 1.into(), "y".into()]);
    check("g.V().has('n', 'x').elementMap('k').select('k')", vec![1.into()]);
    check("g.V().group().by('n').by('k').select('x').unfold()", vec![3.into(), 1.into()]);
    // A key with several values has no single value.
    for script in ["g.V().order().by('k')", "g.V().groupCount().by('k')", "g.V().project('a').by('k')"] {
        let error = database.query(script).unwrap().collect().unwrap_err();
        assert!(error.message().contains("several values under the key"), "{script}: {error}");
    }
}

/// A column of numbers has all values of a vertex, in the order of the values.
#[test]
fn several_numbers_of_one_key_stay_together() {
    let database = Database::in_memory();
    let add = "g.addV().property(list, 'k', 3).property(list, 'k', 1).property(list, 'k', 2).\
               addV().property('k', 9).addV().addV().addV().property(list, 'k', 8).property(list, 'k', 7)";
    database.query(add).unwrap().collect().unwrap();
    for (script, expected) in [
        ("g.V().values('k').is(neq(0))", vec![3, 1, 2, 9, 8, 7]),
        ("g.V().values('k').is(gt(2))", vec![3, 9, 8, 7]),
        ("g.V().values('k').order()", vec![1, 2, 3, 7, 8, 9]),
        ("g.V().as('a').values('k').is(gt(2)).select('a').values('k').is(lt(4))", vec![3, 1, 2]),
    ] {
        let found = database.query(script).unwrap().collect().unwrap();
        assert_eq!(text(&found), text(&expected.into_iter().map(Value::I32).collect::<Vec<_>>()), "{script}");
    }
}
