//! Traversals of rising difficulty, which only read the graph. Their answers are printed and not checked.

use std::io::Write;

use mangrove::{Database, Detached, Materialize, Parameters, QueryOptions, Result, Value};

use crate::{now, numbers_right, shown, table};

/// A question and the traversal that answers it.
struct Question {
    words: &'static str,
    gremlin: &'static str,
}

const fn ask(words: &'static str, gremlin: &'static str) -> Question {
    Question { words, gremlin }
}

const QUESTIONS: &[Question] = &[
    ask("How many vertices of each kind are there?", "g.V().groupCount().by(label)"),
    ask("What are the properties of one airport?", "g.V('SEA').elementMap()"),
    ask("Which airports does Chicago have?", "g.V().has('airport', 'city', 'Chicago').values('name').order()"),
    ask("How many airports does Hawaii have?", "g.V('HI').in('inState').count()"),
    ask(
        "Which airlines have the most routes?",
        "g.E().hasLabel('route').groupCount().by('airline').order(local).by(values, desc).limit(local, 5)",
    ),
    ask(
        "Which airports can be reached from Boise without a stop, by state?",
        "g.V('BOI').out('route').dedup().groupCount().by('state').order(local).by(values, desc)",
    ),
    ask(
        "Which airports have the most routes?",
        "g.V().hasLabel('airport').project('airport', 'city', 'routes').by(id).by('city').by(outE('route').count())\
         .order().by(select('routes'), desc).limit(5)",
    ),
    ask(
        "How many airports can be reached from Bangor with one stop, but not without?",
        "g.V('BGR').out('route').aggregate('direct').out('route').where(without('direct')).not(hasId('BGR')).dedup().count()",
    ),
    ask(
        "Which routes are flown one way only?",
        "g.V().hasLabel('airport').as('a').out('route').as('b').where(not(out('route').where(eq('a'))))\
         .select('a', 'b').by(id).dedup().limit(5)",
    ),
    ask(
        "How do I get from Honolulu to Bangor with the fewest stops?",
        "g.V('HNL').repeat(out('route').dedup()).until(hasId('BGR')).path().by(id).limit(1)",
    ),
    ask(
        "Which connections of up to two flights lead from Honolulu to Bangor, and how many of each?",
        "g.V('HNL').repeat(out('route').simplePath()).emit().times(2).hasId('BGR').groupCount().by(path().by(id))",
    ),
    ask(
        "Which pairs of states have the most routes between them?",
        "g.E().hasLabel('route').project('from', 'to').by(outV().values('state')).by(inV().values('state')).groupCount()\
         .order(local).by(values, desc).limit(local, 3)",
    ),
    ask(
        "How many round trips of three flights does Southwest offer from Denver?",
        "g.V('DEN').as('home').outE('route').has('airline', 'WN').inV().outE('route').has('airline', 'WN').inV()\
         .outE('route').has('airline', 'WN').inV().where(eq('home')).count()",
    ),
    ask(
        "What is the plan of the search from Honolulu to Bangor?",
        "g.V('HNL').repeat(out('route').dedup()).until(hasId('BGR')).path().by(id).explain()",
    ),
];

/// The largest number of rows printed for one answer.
const ROWS_MAX: usize = 8;

/// Runs all traversals.
pub fn run(db: &Database, out: &mut dyn Write) -> Result<()> {
    for (number, question) in QUESTIONS.iter().enumerate() {
        writeln!(out, "{}. {}\n   {}", number + 1, question.words, question.gremlin)?;
        writeln!(out, "{}\n", answer(db, question.gremlin)?)?;
    }
    Ok(())
}

/// The answer as a table, with the times of planning and running.
pub fn answer(db: &Database, gremlin: &str) -> Result<String> {
    let begin = now();
    let prepared = db.prepare(gremlin)?;
    let planned = begin.elapsed();
    let options = QueryOptions { materialize: Materialize::Tokens, ..QueryOptions::default() };
    let results = db.run_with(&prepared, &Parameters::new(), &options)?.collect()?;
    let run = begin.elapsed() - planned;
    Ok(format!("{}\n   parsed in {}, planned and run in {}", render(&results), shown(planned), shown(run)))
}

/// Results as a table: the entries of one map as rows, maps with the same keys as columns, other values as one column.
pub fn render(results: &[Value]) -> String {
    match results {
        [Value::String(text)] if text.contains('\n') => text.trim_end().to_string(),
        [Value::Map(entries)] => {
            let rows = entries.iter().map(|(key, value)| vec![text(key), text(value)]);
            rows_as_table(&["key", "value"], rows.collect())
        }
        [Value::Map(first), ..] if results.iter().all(|result| matches!(result, Value::Map(_))) => {
            let columns: Vec<String> = first.iter().map(|(key, _)| text(key)).collect();
            let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
            rows_as_table(&columns, results.iter().map(cells).collect())
        }
        _ => rows_as_table(&["result"], results.iter().map(|result| vec![text(result)]).collect()),
    }
}

fn cells(result: &Value) -> Vec<String> {
    match result {
        Value::Map(entries) => entries.iter().map(|(_, value)| text(value)).collect(),
        other => vec![text(other)],
    }
}

/// The first [`ROWS_MAX`] rows as a table. Columns of numbers are aligned to the right.
fn rows_as_table(columns: &[&str], rows: Vec<Vec<String>>) -> String {
    let is_number = |at: usize| rows.iter().all(|row| row.get(at).is_none_or(|cell| cell.parse::<f64>().is_ok()));
    let numeric: Vec<usize> = (0..columns.len()).filter(|at| is_number(*at)).collect();
    let left_out = rows.len().saturating_sub(ROWS_MAX);
    let mut table = table(columns);
    for row in rows.into_iter().take(ROWS_MAX) {
        table.add_row(row);
    }
    numbers_right(&mut table, numeric);
    if left_out == 0 { table.to_string() } else { format!("{table}\n   … and {left_out} more") }
}

/// A value as the text of a cell. An element is its id.
fn text(value: &Value) -> String {
    match value {
        Value::String(s) => s.to_string(),
        Value::I32(n) => n.to_string(),
        Value::I64(n) => n.to_string(),
        Value::F64(x) => x.to_string(),
        Value::Token(mangrove::Token::Id) => "id".to_owned(),
        Value::Token(mangrove::Token::Label) => "label".to_owned(),
        Value::List(items) => items.iter().map(text).collect::<Vec<_>>().join(", "),
        Value::Path(path) => path.objects.iter().map(text).collect::<Vec<_>>().join(" → "),
        Value::Map(entries) => entries.iter().map(|(_, value)| text(value)).collect::<Vec<_>>().join(" → "),
        Value::Detached(element) => match element.as_ref() {
            Detached::Vertex { id, .. } | Detached::Edge { id, .. } => text(id),
            Detached::VertexProperty(property) => text(&property.value),
            Detached::Property { value, .. } => text(value),
        },
        other => format!("{other:?}"),
    }
}
